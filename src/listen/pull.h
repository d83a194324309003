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
    struct span id;   /* of the one job that it asks for; empty: the oldest that are due */
    unsigned n;       /* jobs that it asks for */
    int64_t wait_ms;  /* for the first of them */
    void (*end)(struct pull *p, int err);

    struct list leases; /* of the jobs that it got, by their tasks */
    unsigned n_got;
    int64_t claimed_us; /* when the claim of the first of them was sent, by clock_us() */

    struct timer patience;
    void (*gave_up)(void *arg, struct pull *p);
    void *arg;
    bool expired;        /* it waits for answers that are to come, and for nothing more */
    bool fresh;          /* no answer has told yet that it gets nothing */
    bool asked;          /* a claim that covers it is on its way */
    bool held;           /* once another one followed, if there was anything to sweep */
    struct claim *claim; /* of its one job, while it is asked */
    int err;             /* of the last claim that covered it; 0: that succeeded */
};

/* Its id, n, wait_ms and end are set. Calls gave_up(arg, p) when its time is over: it may be ended
 * then. */
void pull_begin(struct pull *p, const struct context *context,
                void (*gave_up)(void *arg, struct pull *p), void *arg);
/* Ends it, with the jobs that it got, or with err if it got none. */
void pull_end(struct pull *p, int err);

/* What became of a claim. */
struct pull_answer {
    const struct claim *claim;
    int err;
    bool again; /* another claim may follow, after a sweep */
    bool more;  /* another claim follows: more jobs are due */
};
/* Ends it if it has its jobs, or need not wait any more. */
void pull_answered(struct pull *p, const struct pull_answer *answer);
/* There is nothing to sweep: no other claim follows. */
void pull_not_again(struct pull *p);

static inline bool pull_is_by_id(const struct pull *p)
{
    return p->id.len > 0;
}

/* How many jobs are to be claimed for it, by age. */
unsigned pull_wanted(const struct pull *p);
/* It got a job, by a claim that was sent then. */
void pull_got(struct pull *p, int64_t claimed_us);
/* It gets the next job of the claim. */
bool pull_takes(const struct pull *p, const struct claim *c);
/* The claim, which was answered, has brought nothing for it, for the first time. */
bool pull_is_unserved(const struct pull *p, const struct claim *c);

#endif
