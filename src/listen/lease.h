/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_HELD_H
#define LAPSE_HELD_H
#include "base/task.h"
#include "script/verbs.h"

enum settle { SETTLE_DONE, SETTLE_RETRY, SETTLE_FAIL, SETTLE_RELEASE };

/* A job that this process claimed. One allocation, with its texts and all that its settling will
 * need. */
struct held {
    struct list node;
    struct holder *holder; /* NULL: cut loose */
    void *owner;           /* its queue */
    struct span key;       /* of its queue, which it may outlive: a copy */
    enum held_state { HELD_QUEUED, HELD_RUNNING, HELD_SETTLING, HELD_SETTLED } state;
    bool in_handler, over; /* over: free it when the handler has returned */
    bool given_back;       /* while its handler had it, since the handle is closing */
    bool let_go;           /* by its handler, after that */
    enum settle settle;
    int64_t delay_ms;
    char reason[JOB_REASON_MAX + 1];
    int64_t lease_end_us, renew_at_us; /* monotonic; the end is no later than Redis's */
    int64_t run_end_us;                /* likewise; 0 until the handler begins */
    int64_t lease_ms;                  /* as asked for last */
    struct lapse *handle;              /* for the user's functions */
    struct task run;
    lapse_handler *handler;
    void *handler_arg;
    struct task settled;
    lapse_cb *settled_fn;
    void *settled_arg;
    int settled_err;
    struct settle_ask settling, renewing;
    struct lapse_job job; /* its texts follow */
};

struct holder_events {
    void (*freed)(void *arg, void *owner);                    /* a slot is free again */
    void (*put_back)(void *arg, void *owner, int64_t due_ms); /* a job waits again, till then */
};

enum { GIVEN_UP_MAX = 256 };
/* All that this process holds. */
struct holder {
    struct context *context;
    struct script *script;
    struct task_queue *tasks;
    const struct holder_events *events;
    void *arg;
    struct list all;
    struct timer tick;
    int64_t ticked_us;               /* monotonic: when it rang last, or was set first */
    int64_t looked_us;               /* monotonic: at all leases */
    uint64_t given_up[GIVEN_UP_MAX]; /* tokens of the last runs whose settle got no answer */
    unsigned n_given_up;             /* in all */
    uint64_t given_up_before;        /* the largest of those that had to make room; 0: none had */
};
void holder_init(struct holder *hs, struct context *context, struct script *script,
                 struct task_queue *tasks, const struct holder_events *events, void *arg);
/* Takes a claimed job and queues its handler; ENOMEM. sent_us: when the claim was. */
int holder_take(struct holder *hs, void *owner, const char *queue, struct span key,
                const struct job_row *row, enum lapse_via via, int64_t sent_us, int64_t lease_ms,
                lapse_handler *fn, void *arg);
void holder_release(struct holder *hs,
                    /* gives back what was not begun; owner NULL: of all queues */
                    const void *owner);
void holder_renew(struct holder *hs); /* all, the fresh ones a moment later */
void holder_look(struct holder *hs);  /* at all leases: which to renew, which are over */
/* what handlers have, its try not counted; false: there is nothing */
bool holder_give_back(struct holder *hs);
void holder_end(struct holder *hs); /* nothing is renewed any more */
/* nothing is on its way any more: cuts loose what handlers hold */
void holder_close(struct holder *hs);

struct held *held_of(struct lapse_job *job);
/* By the handler; what is cut loose is only freed. */
void held_settle(struct held *h, enum settle how, int64_t delay_ms, const char *reason,
                 lapse_cb *fn, void *arg);

#endif
