/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_CONTEXT_H
#define LAPSE_CONTEXT_H
#include "base/clock.h"
#include "base/health.h"
#include "base/histogram.h"
#include "base/log.h"
#include "base/timer.h"

struct tallies;

/* What all modules of one handle share. */
struct context {
    struct ev_loop *loop;
    struct lapse_options options; /* complete: defaults are filled in, and url is NULL */
    struct log log;
    struct health health;
    struct lapse_stats stats;
    struct lapse_histogram late[VIAS]; /* of the jobs that were claimed */
    struct tallies *tallies;           /* by queue; NULL: nobody asks for that */
    struct lapse *handle;              /* for the user's callbacks */
    lapse_event_fn *on_event;          /* NULL: nobody wants to hear */
    void *on_event_arg;
    lapse_told_fn *on_told; /* likewise */
    void *on_told_arg;
};

/* How often to look for news that we are told of, as we may have missed some. */
static inline int64_t context_rarely_ms(const struct context *c)
{
    enum { TIMES = 12, MOST_MS = 60000 };
    int64_t every_ms = c->options.sweep_ms;

    if (every_ms >= MOST_MS) {
        return every_ms;
    }

    return every_ms * TIMES < MOST_MS ? every_ms * TIMES : MOST_MS;
}

#endif
