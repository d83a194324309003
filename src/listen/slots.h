/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_SLOTS_H
#define LAPSE_SLOTS_H
#include "listen/backlog.h"
#include <lapse.h>

/* The slots of all queues: jobs that are held and jobs that claims ask for stay within max_running
 * together. */
struct slots {
    unsigned max;
    unsigned n_held;
    unsigned n_claimed; /* asked for, by claims without an answer */
    struct backlog backlog;
    void (*backlog_due)(void *arg);
    void *arg;
};

/* Calls backlog_due(arg) when slots have changed while queues wait in the backlog. */
void slots_init(struct slots *all, unsigned max, void (*backlog_due)(void *arg), void *arg);
/* To be called when it has no share. */
void slots_close(struct slots *all);

static inline unsigned slots_free(const struct slots *all)
{
    unsigned n_used = all->n_held + all->n_claimed;
    return n_used < all->max ? all->max - n_used : 0;
}

static inline bool slots_unused(const struct slots *all)
{
    return all->n_held == 0 && all->n_claimed == 0;
}

/* A limit that several queues have together. Those at it wait for it, and each slot that becomes
 * free is of the one that came first. It lives until nobody uses it. */
struct cap {
    unsigned max;
    unsigned n_used;     /* jobs that its queues hold, or ask for */
    struct list waiting; /* shares, in order */
    unsigned n_users;
};

/* With one user, who releases it. NULL: out of memory. */
struct cap *cap_new(unsigned max);
void cap_release(struct cap *c);

/* The slots of one queue, and its place in the backlog. */
struct share {
    struct slots *all;
    struct seat seat;
    unsigned max;    /* 0: it has no limit of its own */
    struct cap *cap; /* NULL: it has no limit with others. It has one of the two at most */
    struct list capped;
    bool is_next; /* a slot of the cap became free for it */
    bool asks;    /* for n_wanted jobs, claimed and not held: its limit instead of max */
    unsigned n_wanted;
    unsigned n_held;
    unsigned n_claimed;
    bool waits_for_own; /* it goes to the backlog as soon as it is below its own limit */
    enum lapse_via via; /* the hint that found no slot */
};

struct share_spec {
    unsigned max;    /* 0: it has no limit of its own */
    struct cap *cap; /* NULL: it has no limit with others */
    unsigned weight; /* at least 1 */
    unsigned level;
};

/* ENOMEM. */
int share_init(struct share *s, struct slots *all, const struct share_spec *spec);
void share_end(struct share *s);

/* How many slots are free for the queue. */
unsigned share_free(const struct share *s);
/* How many of the free slots one claim may ask for, by the weights of those that wait. With
 * thousands of queues, most of them empty, a few claims would otherwise take them all. */
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
/* n slots are set aside for a claim of the oldest. */
void share_ask(struct share *s, unsigned n);
/* It was answered that there are more: the queue will join the backlog. */
void share_note_more(struct share *s);
/* It was answered, and if there are more, the queue has joined the backlog. */
void share_answered(struct share *s);
/* One job is held, or is not held any more. */
void share_hold(struct share *s);
void share_unhold(struct share *s);

/* From now on n jobs are to be claimed for it, however many it holds. */
void share_want(struct share *s, unsigned n);

void share_join_backlog(struct share *s, enum lapse_via via);
void share_leave_backlog(struct share *s);
/* Other queues of the backlog are served before it: a slot that is free now is theirs. */
bool share_others_wait(const struct share *s);

/* Calls serve() for the queues of the backlog, each once at most, while slots are free. A queue
 * that does not join again, or ask, has left the backlog then. The others keep their places. */
void slots_serve_backlog(struct slots *all, void (*serve)(struct share *s));

#endif
