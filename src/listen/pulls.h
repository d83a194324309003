/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_PULLS_H
#define LAPSE_PULLS_H
#include "listen/pull.h"
#include "listen/slots.h"
#include "listen/sweep.h"

struct pulls_events {
    /* Whether claims may be sent for the queue now. */
    bool (*may_claim)(void *arg);
    /* Why nothing is claimed at all: an error code; 0: it is. */
    int (*obstacle)(void *arg);
    /* The claim of one of them was answered: its owner is arg. */
    void (*claimed)(struct claim *c, int err, const struct claim_result *got);
    /* One waits: the queue is to hear of jobs that will be due. */
    void (*wait)(void *arg);
    /* There has been none for a while. */
    void (*unused)(void *arg);
};

/* The pulls of a queue without handler, in the order in which they came. */
struct pulls {
    struct context *context;
    struct claims *claims;
    struct span key;
    struct share *share; /* the slots for the jobs that they want */
    struct sweep *sweep;
    const struct pulls_events *events;
    void *arg;

    struct list all;
    bool closed;
    struct timer linger; /* since the last has ended */
    int64_t looked_us;   /* when it was looked whether there is anything to sweep, by clock_us() */
};

struct pulls_spec {
    struct context *context;
    struct claims *claims;
    struct span key;
    struct share *share;
    struct sweep *sweep;
    const struct pulls_events *events;
    void *arg;
};

void pulls_init(struct pulls *ps, const struct pulls_spec *spec);

/* Takes one on. Its id, n, wait_ms and end are set. EFULL: no slot is free, and it does not wait.
 */
int pulls_add(struct pulls *ps, struct pull *p);
/* Claims for those that ask for one job each. again: also for those that have asked before. */
void pulls_ask(struct pulls *ps, bool again);
/* A claim by age was asked for. */
void pulls_asked(struct pulls *ps);

/* The one that gets the next job of a claim; NULL: none wants it. */
struct pull *pulls_taker(const struct pulls *ps, const struct claim *c);
/* A claim of the queue was answered. got: NULL on an error. */
void pulls_answered(struct pulls *ps, const struct claim *c, int err,
                    const struct claim_result *got);

/* Redis is asked whether there is anything to sweep. */
void pulls_looked(struct pulls *ps);
/* There is nothing to sweep: no other claim follows. */
void pulls_not_again(struct pulls *ps);

/* Ends one, with err if it got no job. */
void pulls_end(struct pulls *ps, struct pull *p, int err);
/* Ends all, and takes on no more. */
void pulls_close(struct pulls *ps);

static inline bool pulls_empty(const struct pulls *ps)
{
    return list_empty(&ps->all);
}

#endif
