/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_SLOTS_H
#define LAPSE_SLOTS_H
#include "base/list.h"
#include <lapse.h>

/* The slots of all queues: jobs that are held and jobs that claims ask for stay within max_running
 * together. */
struct slots {
    unsigned max;
    unsigned n_held;
    unsigned n_claimed;  /* asked for, by claims without an answer */
    struct list backlog; /* queues that have due jobs and found no free slot, served in turn */
    unsigned n_backlog;
    void (*backlog_due)(void *arg);
    void *arg;
};

/* Calls backlog_due(arg) when slots have changed while queues wait in the backlog. */
void slots_init(struct slots *all, unsigned max, void (*backlog_due)(void *arg), void *arg);

static inline unsigned slots_free(const struct slots *all)
{
    unsigned n_used = all->n_held + all->n_claimed;
    return n_used < all->max ? all->max - n_used : 0;
}

static inline bool slots_unused(const struct slots *all)
{
    return all->n_held == 0 && all->n_claimed == 0;
}

/* The slots of one queue, and its place in the backlog. */
struct share {
    struct slots *all;
    struct list node;
    unsigned max; /* 0: it has no limit of its own */
    bool asks;    /* for n_wanted jobs, claimed and not held: its limit instead of max */
    unsigned n_wanted;
    unsigned n_held;
    unsigned n_claimed;
    bool waits_for_own; /* it goes to the backlog as soon as it is below its own limit */
    enum lapse_via via; /* the hint that found no slot */
};

void share_init(struct share *s, struct slots *all, unsigned max);

/* How many slots are free for the queue. */
unsigned share_free(const struct share *s);
/* How many of the free slots one claim may ask for. With thousands of queues, most of them empty, a
 * few claims would otherwise take them all. */
unsigned share_fair(const struct share *s);

static inline bool share_unused(const struct share *s)
{
    return s->n_held == 0 && s->n_claimed == 0;
}

/* A claim of it is pending that has a slot. */
static inline bool share_claims(const struct share *s)
{
    return s->n_claimed > 0;
}

/* n slots are set aside for a claim, or are free again. */
void share_claim(struct share *s, unsigned n);
void share_unclaim(struct share *s, unsigned n);
/* One job is held, or is not held any more. */
void share_hold(struct share *s);
void share_unhold(struct share *s);

/* From now on n jobs are to be claimed for it, however many it holds. */
void share_want(struct share *s, unsigned n);

void share_join_backlog(struct share *s, enum lapse_via via);
void share_leave_backlog(struct share *s);
/* Other queues wait in the backlog: a slot that is free now is theirs. */
bool share_others_wait(const struct share *s);

/* Calls serve() once for each queue of the backlog while slots are free. The queue has left the
 * backlog then, and may join it again. Queues for which no slot is left keep their place. */
void slots_serve_backlog(struct slots *all, void (*serve)(struct share *s));

#endif
