/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_LEASE_H
#define LAPSE_LEASE_H
#include "base/task.h"
#include "listen/around.h"
#include "script/fences.h"
#include "script/lease_verbs.h"

enum settle { SETTLE_DONE, SETTLE_RETRY, SETTLE_SNOOZE, SETTLE_FAIL, SETTLE_RELEASE };

/* How long a lease is that was renewed. */
struct lease_span {
    int64_t sent_us; /* when that was sent, by clock_us() */
    int64_t length_ms;
    struct renewed_lease lease;
};

/* A job that this process claimed. It is one allocation with its texts and with all that settling
 * it will need, so a settle cannot fail because memory is short. */
struct lease {
    struct list node;
    struct leases *leases; /* NULL: detached, and settling it only frees it */
    void *owner;           /* its queue */
    struct span key;       /* of its queue, which it may outlive: a copy */
    enum { LEASE_QUEUED, LEASE_RUNNING, LEASE_OVER, LEASE_SETTLING, LEASE_SETTLED } state;
    bool in_handler;
    bool disposed;         /* it is freed when the user's functions have returned and its renewal
                              has ended */
    bool given_back;       /* while its handler had it, since the handle is closing */
    bool was_settled_late; /* by its handler, after it was given back */

    /* by clock_us(); the lease ends no later than Redis thinks */
    int64_t end_us;
    int64_t renew_at_us;
    int64_t run_end_us; /* 0 until the handler begins */
    int64_t began_us, ran_us;
    bool renews_again; /* the end of its run was moved while it was being renewed */
    int64_t length_ms; /* as it was asked for last */
    struct renew_request renewing;

    struct fence_wait copies;         /* of its claim, and later of its settle */
    struct fence_wait renewal_copies; /* of the last renewal, which counts when there are some */
    struct lease_span renewal;

    struct lapse *handle; /* for the user's functions */
    struct task_queue *tasks;
    struct task run;
    lapse_handler *handler;
    void *handler_arg;
    struct passage passage;

    enum settle settle;
    int64_t delay_ms;
    char reason[JOB_REASON_MAX + 1];
    struct settle_request settling;
    struct task told; /* that it is asked to stop */
    bool in_told;
    struct task settled; /* tells all who are to hear of it, one in each turn of the loop */
    bool in_settled;
    lapse_cb *settled_fn;
    void *settled_arg;
    int settled_err;

    struct lapse_job job; /* its texts follow */
};

struct lease_events {
    /* The job is not held any more. */
    void (*ended)(void *arg, void *owner);
    /* The job waits again, until due_ms. */
    void (*retried)(void *arg, void *owner, struct span id, int64_t due_ms);
};

enum { UNSETTLED_MAX = 256 };

/* All leases of this process. */
struct leases {
    struct context *context;
    struct script *script;
    struct fences *fences;
    struct task_queue *tasks;
    const struct lease_events *events;
    void *arg;
    struct list all;
    struct arounds arounds; /* that of the handlers */

    struct timer tick;
    int64_t ticked_us;  /* when it fired last, or was first set */
    int64_t checked_us; /* when all leases were looked at last */

    uint64_t unsettled[UNSETTLED_MAX]; /* tokens of the last runs that could not be settled */
    unsigned n_unsettled;              /* since the start */
    uint64_t forgotten; /* the largest token that was dropped to make space; 0: none was */
};

/* What a claim brought, and who runs it. */
struct lease_spec {
    void *owner;
    const char *queue;
    struct span key;
    const struct job_row *row;
    enum lapse_via via;
    int64_t claimed_us; /* when the claim was sent, by clock_us() */
    int64_t length_ms;
    lapse_handler *handler;
    void *handler_arg;
    struct list *to; /* who asked for the job finds it there; NULL: its handler runs */
};

void leases_init(struct leases *ls, struct fences *fences, struct task_queue *tasks,
                 const struct lease_events *events, void *arg);

/* Called around each handler that begins from now on. EFULL: there are LAPSE_AROUND_MAX. */
int leases_around(struct leases *ls, const struct around *a);

/* Adds a lease, and makes its handler a task when the claim has copies, as far as some are wanted;
 * or puts that task into spec->to at once. A claim without copies is given back. ENOMEM: there is
 * no lease, and Redis holds the job for us all the same. */
int leases_add(struct leases *ls, const struct lease_spec *spec);

/* The jobs of such a list are their user's from now on, as those of handlers are; those that are
 * over by now are returned instead. out: as many as there are. Returns how many; they are not freed
 * before leases_given(). */
unsigned leases_give(struct list *from, struct lapse_job **out);
void leases_given(struct lapse_job *const *jobs, unsigned n);
/* Returns the jobs of such a list. No try is counted. */
void leases_release(struct list *from);

/* Returns the jobs of an owner whose handlers have not begun. No try is counted. */
void leases_release_queued(struct leases *ls, const void *owner);
/* Returns the jobs that handlers have. No try is counted. */
void leases_give_back(struct leases *ls);

/* After a reconnect: renews all leases of queues that this node has, those that are still fresh at
 * the next tick. */
void leases_renew(struct leases *ls, const struct node *node);
/* Looks at each lease: is it to be renewed, or over? */
void leases_check(struct leases *ls);

/* The tokens of a queue's jobs that must not be reclaimed: of those that are held, and of the last
 * runs that could not be settled. Writes at most leases_max_tokens() to out, and returns how many.
 */
size_t leases_max_tokens(const struct leases *ls, struct span key);
size_t leases_tokens(const struct leases *ls, struct span key, uint64_t *out);
/* A token up to this one may be of a run that could not be settled and is not remembered. */
uint64_t leases_forgotten_token(const struct leases *ls);

/* A job was settled by its token: if we hold it, we do so no longer. Its user may read it until it
 * settles it, which then tells EGONE. */
void leases_settled(struct leases *ls, const struct leased_job *job);

/* To be called before that, of a job that is dead by it: the event function gets what we know of
 * the job. */
void leases_tell_dead(struct leases *ls, const char *queue, const struct leased_job *job,
                      struct span reason);

/* A notice says that this job is asked to stop: if we hold it, Redis is asked. */
void leases_look(struct leases *ls, const struct leased_job *job);

/* A lease was renewed by its token. */
void leases_renewed(struct leases *ls, const struct leased_job *job, const struct lease_span *span);

/* Stops renewing leases. */
void leases_stop(struct leases *ls);
/* To be called when no request is pending: detaches the jobs that handlers have, and frees the
 * others. */
void leases_close(struct leases *ls);

struct lease *lease_of(struct lapse_job *job);
/* Called by the handler of the job, which then does not settle it. Redis does not hear of it. */
void lease_forget(struct lease *l);
/* Called by the handler of the job: it may be held for run_ms from now on. EGONE: it is lost. */
int lease_extend(struct lease *l, int64_t run_ms);
/* Does its handler have the job, which was not given back or settled by its token? */
bool lease_is_ours(const struct lease *l);
/* Called by the job's handler, once. fn may be NULL. */
void lease_settle(struct lease *l, enum settle how, int64_t delay_ms, const char *reason,
                  lapse_cb *fn, void *arg);

#endif
