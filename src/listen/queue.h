/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_QUEUE_H
#define LAPSE_QUEUE_H
#include "listen/eviction.h"
#include "listen/reclaim.h"
#include "base/table.h"
#include "listen/watch.h"

/* The queues that this process handles, and the claims it makes for them. */
struct work {
    struct context *context;
    struct script *script;
    struct wake wake;
    struct eviction eviction;
    struct leases leases;
    struct list queues;
    struct table names;  /* of queues */
    struct list stopped; /* queues that are freed when nothing of them is on its way */
    struct list owing;   /* queues that have due jobs we had no slots for; served in turn */
    struct list pool;    /* claims to use again */
    struct timer pause;
    unsigned n_held, n_asked, n_pool; /* jobs held, jobs asked for */
    unsigned n_owing;
    int64_t turn_due_us; /* monotonic: since when work_turn() has something to do; 0: it has not */
    bool met, closing;   /* met: Redis was there once */
};

/* One of them. */
struct queue {
    struct watch watch;
    struct list node, owes;
    struct table_node named;
    struct work *work;
    lapse_handler *fn;
    void *arg;
    unsigned max, n_held, n_asked;
    bool stopped, again; /* again: reclaim, Redis may hold more for us than we do */
    int64_t paused_us;   /* monotonic: Redis refused, nothing is claimed until then */
    bool reclaim_next;   /* as soon as no claim is on its way; none is sent until then */
    bool oldest_asked;   /* a claim by age is on its way: one is enough */
    bool owes_when_free; /* it owes, and is full by its own max_running */
    enum lapse_via owes_via;
    struct claim *open; /* the claim by name that was asked last, while it is not answered */
    struct reclaim reclaim;
    char key[KEYS_MAX], name[KEYS_QUEUE_MAX + 1];
};

/* Hints: they lead to a claim, now or as soon as there are slots. */
void queue_named(void *arg, struct watch *watch, struct span id, enum lapse_via via);
void queue_oldest(void *arg, struct watch *watch, enum lapse_via via);

/* Something may have changed for a queue that owes, or for one that stopped: work_turn() looks. */
void work_want_turn(struct work *w);

void queue_claim(struct queue *q, enum lapse_via via); /* the oldest */
/* those that owe, as far as there are slots */
void queue_owing(struct work *w);
void queue_forgive(struct queue *q);  /* it owes nothing any more */
void queue_withdraw(struct queue *q); /* a claim by name that is not sent yet */
void queue_reclaim(struct queue *q);
void queue_reclaimed(void *arg, int err, int64_t n_returned);
void queue_freed(void *arg, void *queue);                /* a job of it is not held any more */
void queue_told(void *arg, void *queue, int64_t due_ms); /* by ourselves: a job of it is due then */
void queue_close(struct work *w);                        /* frees the claims kept for use */

#endif
