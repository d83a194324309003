/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_TASK_H
#define LAPSE_TASK_H
#include "base/list.h"
#include <ev.h>

/* A call of user code that waits for its turn of the loop. Embedded in what the call is about. */
struct task {
    struct list node;
    bool queued; /* ever: a task runs once, unless it repeats itself */

    /* Calls the user's function, or decides not to. */
    void (*run)(struct task *t);

    /* Ends the task, after run() or instead of it. With alive false the handle is gone: done() may
     * only free memory. */
    void (*done)(struct task *t, bool alive);
};

/* The tasks of one handle. User code runs from here only, so nothing of ours is half done beneath
 * it. */
struct task_queue {
    struct ev_loop *loop;
    struct list tasks;
    ev_idle idle;
    struct task_frame *frames; /* runs on the C stack: several where user code nests ev_run() */
};

void task_queue_init(struct task_queue *q, struct ev_loop *loop);

/* The task belongs to the queue until its done(). */
void task_queue_push(struct task_queue *q, struct task *t);

static inline bool task_queue_empty(const struct task_queue *q)
{
    return list_empty(&q->tasks);
}

/* Once more, before all others; called by done() with alive true, which then was not the end. */
void task_queue_repeat(struct task_queue *q, struct task *t);

/* Ends the tasks that still wait without running them. May be called by a task that runs. */
void task_queue_close(struct task_queue *q);

#endif
