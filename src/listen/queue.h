/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_QUEUE_H
#define LAPSE_QUEUE_H
#include "base/table.h"
#include "listen/gate.h"
#include "listen/delivery.h"
#include "listen/patterns.h"
#include "listen/reclaim.h"
#include "listen/shared.h"
#include "listen/trim.h"

/* A queue that this process has a handler for, or forwards, or asks for jobs of. */
struct queue {
    struct list node; /* its listener's */
    struct table_node named;
    uint64_t number; /* no other of its listener has it */

    /* of a queue that the registry has brought */
    const struct pattern *pattern; /* NULL: it is listened to by its own name */
    uint64_t walk;   /* the last walk through the names of the pattern that has met it */
    int64_t lost_us; /* by clock_us(): since when the registry does not name it; 0: it does */

    struct shared *shared;
    struct site *site; /* where it is, as far as is known */
    bool was_up;       /* the connection for commands was, once */
    bool has_moved;    /* and is to be looked at */
    char name[KEYS_QUEUE_MAX + 1];
    char key[KEYS_MAX];
    bool has_handler; /* else it is asked, or only forwarded */
    bool asked;       /* its jobs are for the pulls */
    bool stopped;
    struct pulls pulls;
    struct delivery delivery;
    void (*unused)(void *arg, struct queue *q);
    void *unused_arg;

    /* hints: each leads to a claim, now or as soon as there are slots */
    struct sweep sweep;
    bool hears; /* it has the other two as well: else only who asks claims, and when it asks */
    struct watch watch;
    struct alarm alarm;

    struct share share;
    struct claim *open;   /* the last claim of ids, until it is answered */
    bool oldest_claimed;  /* a claim by age is pending: one is enough */
    enum lapse_via later; /* a hint that came while nothing could be claimed; 0: none */

    struct timer pause;
    bool paused; /* Redis refused: nothing is claimed until the timer fires */

    struct gate gate;

    struct trim trim; /* of the stream that it is forwarded to */

    struct reclaim reclaim;
    bool reclaim_later;     /* Redis may hold jobs for us that we have never seen */
    bool reclaim_when_idle; /* when no claim is pending; until then none is sent */
};

struct queue_spec {
    struct shared *shared;
    const char *name;
    const struct pattern *pattern; /* NULL: of none */
    struct share_spec share;
    lapse_handler *handler; /* NULL: it is only forwarded, or asked */
    void *handler_arg;
    bool asked;
    /* Nobody has asked for its jobs for a while: it may be stopped. */
    void (*unused)(void *arg, struct queue *q);
    void *unused_arg;
};

/* NULL: out of memory. */
struct queue *queue_new(const struct queue_spec *spec);

/* The connection for commands is there, for the first time or again. */
void queue_up(struct queue *q);
/* Another Redis has the queue now. */
void queue_move(struct queue *q, struct site *to);
/* A job of the queue is due then: this process has scheduled it, or retries it. */
void queue_scheduled(struct queue *q, struct span id, int64_t due_ms);
/* The settings of the queue have changed. */
void queue_configured(struct queue *q);
/* A job of the queue is not held any more. */
void queue_lease_ended(struct queue *q);
/* Of a queue without handler: takes a pull on, whose id, n, wait_ms and end are set. EFULL: no slot
 * is free, and it does not wait. */
int queue_pull(struct queue *q, struct pull *p);
/* Claims the oldest jobs that are due, or joins the backlog. */
void queue_claim(struct queue *q, enum lapse_via via);
/* Claims may be allowed again: hints that came before are not forgotten. */
void queue_claims_allowed(struct queue *q);
/* This listener is quiet no more: jobs may be due that it did not ask for. */
void queue_go_on(struct queue *q);
/* A share of the backlog may be served: claims for its queue. */
void queue_serve(struct share *s);

/* The queue has no handler any more. Jobs that handlers have may still be settled. */
void queue_stop(struct queue *q);
/* The handle ends: nothing is sent any more. */
void queue_end(struct queue *q);

/* No job of it is held, and no request for it is pending. */
bool queue_is_idle(const struct queue *q);
/* It has no jobs, as far as is known. */
bool queue_is_empty(const struct queue *q);
void queue_free(struct queue *q);

#endif
