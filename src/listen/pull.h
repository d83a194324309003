/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_PULL_H
#define LAPSE_PULL_H
#include "base/list.h"
#include "base/span.h"
#include "base/timer.h"
#include "listen/claim.h"

/* A call of lapse_claim() or lapse_claim_id(): it asks for jobs of a queue without handler. */
struct pull {
    struct list node; /* among those of its queue; in no list when it has ended */
    struct pulls *pulls;
    struct span id;  /* of the one job that it asks for; empty: the oldest that are due */
    unsigned n;      /* jobs that it asks for */
    int64_t wait_ms; /* for the first of them */
    void (*end)(struct pull *p, int err);

    struct list leases; /* of the jobs that it got, by their tasks */
    unsigned n_got;

    struct timer patience;
    bool expired;        /* it waits for answers that are to come, and for nothing more */
    bool fresh;          /* no answer has told yet that it gets nothing */
    bool asked;          /* a claim that covers it is on its way */
    bool held;           /* once another one followed, if there was anything to sweep */
    struct claim *claim; /* of its one job, while it is asked */
    int err;             /* of the last claim that covered it; 0: that succeeded */
};

/* The pulls of a queue, in the order in which they came. */
struct pulls {
    struct list all;
    /* The time of one is over. It may be ended. */
    void (*gave_up)(void *arg, struct pull *p);
    void *arg;
};

void pulls_init(struct pulls *ps, void (*gave_up)(void *arg, struct pull *p), void *arg);

/* id, n, wait_ms and end are set. */
void pulls_add(struct pulls *ps, struct pull *p, const struct context *context);

/* How many jobs are to be claimed for them, by age. */
unsigned pulls_wanted(const struct pulls *ps);
/* One of them waits for what will be due. */
bool pulls_wait(const struct pulls *ps);
/* The one that gets the next job of a claim; NULL: none wants it. */
struct pull *pulls_taker(const struct pulls *ps, const struct claim *c);
/* A claim that was answered has brought nothing for one that it covered, for the first time. */
bool pulls_unserved(const struct pulls *ps, const struct claim *c);

/* A claim by age was asked for. */
void pulls_asked(struct pulls *ps);

/* What became of a claim. */
struct pulls_answer {
    const struct claim *claim;
    int err;
    bool again; /* another claim may follow, after a sweep */
    bool more;  /* another claim follows: more jobs are due */
};
/* Ends those that have their jobs, and those that need not wait any more. */
void pulls_answered(struct pulls *ps, const struct pulls_answer *answer);
/* There is nothing to sweep: no other claim follows. */
void pulls_not_again(struct pulls *ps);

/* Ends one, with the jobs that it got, or with err if it got none. */
void pull_end(struct pull *p, int err);
void pulls_end(struct pulls *ps, int err);

static inline bool pulls_empty(const struct pulls *ps)
{
    return list_empty(&ps->all);
}

#endif
