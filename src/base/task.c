/* SPDX-License-Identifier: MIT */
/* The only caller of user code. One entry a turn, then the loop polls: 256 jobs in hand starve
 * neither the renewal of their leases nor the socket. An idle watcher of the highest priority makes
 * that so: it runs once in each iteration and keeps the loop from sleeping. (ev_feed_event() was
 * tried: an entry that feeds the next never lets it poll.)
 *
 * User code may do anything in there: ask, settle, nest ev_run(), close the handle, abandon it. A
 * turn therefore touches nothing of the handle after the call before its frame says that the handle
 * is still there. */
#include "base/task.h"
#include "base/error.h"

struct frame {
    struct frame *below;
    bool gone;
};

static void call(struct core *core, struct req *r)
{
    struct lapse *l = core->handle;

    switch (r->kind) {
    case REQ_CALLBACK: r->fn.callback(l, r->err, r->job, r->arg); break;
    case REQ_DEPTH: r->fn.depth(l, r->err, r->depth, r->arg); break;
    case REQ_LIST: r->fn.list(l, r->err, r->jobs, r->n_jobs, r->arg); break;
    case REQ_HANDLER: r->fn.handler(l, (struct lapse_job *)(uintptr_t)r->job, r->arg); break;
    case REQ_CLOSED: r->fn.closed(r->arg); break;
    }
}

static void turn(struct ev_loop *loop, ev_idle *idle, int events)
{
    (void)loop;
    (void)events;

    struct deliver *d = idle->data;
    struct list *first = list_pop(&d->ended);
    if (list_empty(&d->ended)) {
        ev_idle_stop(d->core->loop, idle);
    }

    if (!first) {
        return;
    }

    struct req *r = CONTAINER(first, struct req, node);
    struct frame frame = {d->frames, false};
    void (*after)(struct req *, bool) =
        r->after; /* closed()'s entry is in the handle, and may go with it */
    d->frames = &frame;

    /* fn is one word, whichever it is */
    if (r->fn.callback && (!r->wanted || r->wanted(r))) {
        call(d->core, r);
    }

    if (!frame.gone) {
        d->frames = frame.below;
    }

    after(r, !frame.gone);
}

void deliver_init(struct deliver *d, struct core *core)
{
    d->core = core;
    d->frames = NULL;
    list_init(&d->ended);
    ev_idle_init(&d->idle, turn);
    ev_set_priority(&d->idle, EV_MAXPRI);
    d->idle.data = d;
}

void deliver_push(struct deliver *d, struct req *r, int err)
{
    ASSERT(!r->ended);
    r->ended = true;
    r->err = err;
    list_insert(&d->ended, &r->node);
    ev_idle_start(d->core->loop, &d->idle);
}

void deliver_close(struct deliver *d)
{
    struct list *i;

    ev_idle_stop(d->core->loop, &d->idle);
    for (struct frame *f = d->frames; f; f = f->below) {
        f->gone = true;
    }

    while ((i = list_pop(&d->ended))) {
        struct req *r = CONTAINER(i, struct req, node);
        r->after(r, false);
    }
}
