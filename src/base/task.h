/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_DELIVER_H
#define LAPSE_DELIVER_H
#include "base/context.h"
#include "base/list.h"

/* One call of user code that waits for its turn. Embedded in what it is about. */
struct req {
    struct list node;
    enum req_kind { REQ_CALLBACK, REQ_DEPTH, REQ_LIST, REQ_HANDLER, REQ_CLOSED } kind;
    union {
        lapse_cb *callback;
        lapse_depth_fn *depth;
        lapse_list_fn *list;
        lapse_handler *handler;
        void (*closed)(void *arg);
    } fn; /* NULL: nobody wants to know */
    void *arg;
    int err;
    const struct lapse_job *job; /* CALLBACK; NULL: none. HANDLER: the job, writable */
    const struct lapse_depth *depth;
    const struct lapse_job *const *jobs; /* LIST */
    size_t n_jobs;
    bool ended; /* its turn was asked for: that happens once */
    /* May still say no, just before the call; NULL: yes. */
    bool (*wanted)(struct req *r);
    /* After the call, or instead of it. alive false: the handle is gone, only free memory. */
    void (*after)(struct req *r, bool alive);
};

/* The queue of ended requests. User code runs from its turn only: nothing of ours is half done
 * beneath it. */
struct deliver {
    struct core *core;
    struct list ended;
    ev_idle idle;
    struct frame *frames; /* turns on the C stack: more than one where user code nests ev_run() */
};
void deliver_init(struct deliver *d, struct core *core);
void deliver_push(struct deliver *d, struct req *r, int err); /* r is the queue's until after() */
static inline bool deliver_idle(const struct deliver *d)
{
    return list_empty(&d->ended);
}
/* what still waits is freed uncalled; turns beneath us end quietly */
void deliver_close(struct deliver *d);

#endif
