/* SPDX-License-Identifier: MIT */
/* The only caller of user code.
 *
 * It runs one task in each iteration of the loop, then the loop polls: 256 jobs at hand starve
 * neither the renewal of their leases nor the socket. An idle watcher of the highest priority does
 * that: it runs once in each iteration, and keeps the loop from sleeping. (ev_feed_event() would
 * not do: a task that feeds the next one never lets the loop poll.)
 *
 * User code may do anything: ask, settle, nest ev_run(), close the handle, abandon it. So nothing
 * of the handle is touched after run(), unless the frame says that the handle is still there. */
#include "base/task.h"
#include "base/error.h"

struct task_frame {
    struct task_frame *below;
    bool gone; /* the handle is */
};

static void on_idle(struct ev_loop *loop, ev_idle *idle, int events)
{
    struct task_queue *q = idle->data;
    struct list *first = list_pop(&q->tasks);
    (void)events;

    if (list_empty(&q->tasks)) {
        ev_idle_stop(loop, idle);
    }
    if (!first) {
        return;
    }

    struct task *t = CONTAINER(first, struct task, node);
    void (*done)(struct task *, bool) = t->done; /* a task in the handle may go with the handle */
    struct task_frame frame = {.below = q->frames};

    q->frames = &frame;
    t->run(t);
    if (!frame.gone) {
        q->frames = frame.below;
    }

    done(t, !frame.gone);
}

void task_queue_init(struct task_queue *q, struct ev_loop *loop)
{
    *q = (struct task_queue){.loop = loop};
    list_init(&q->tasks);
    ev_idle_init(&q->idle, on_idle);
    ev_set_priority(&q->idle, EV_MAXPRI);
    q->idle.data = q;
}

void task_queue_push(struct task_queue *q, struct task *t)
{
    ASSERT(!t->queued);
    t->queued = true;
    list_insert(&q->tasks, &t->node);
    ev_idle_start(q->loop, &q->idle);
}

void task_queue_repeat(struct task_queue *q, struct task *t)
{
    list_insert(q->tasks.next, &t->node);
    ev_idle_start(q->loop, &q->idle);
}

void task_queue_close(struct task_queue *q)
{
    ev_idle_stop(q->loop, &q->idle);

    for (struct task_frame *f = q->frames; f; f = f->below) {
        f->gone = true;
    }

    for (struct list *i; (i = list_pop(&q->tasks));) {
        struct task *t = CONTAINER(i, struct task, node);
        t->done(t, false);
    }
}
