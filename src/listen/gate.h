/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_GATE_H
#define LAPSE_GATE_H
#include "base/timer.h"
#include <stdbool.h>

/* What the settings of a queue close: until when Redis gives out no more of its jobs. */
struct gate {
    bool closed;
    struct timer timer;    /* for the moment at which it opens */
    int64_t configured_us; /* when we heard that the settings had changed, by clock_us() */
};

/* Calls over(arg) at the moment until which it was closed. */
void gate_init(struct gate *g, struct ev_loop *loop, void (*over)(void *arg), void *arg);

static inline bool gate_closed(const struct gate *g)
{
    return g->closed;
}

/* It may be open: the next claim will tell. */
void gate_open(struct gate *g);

/* The settings have changed: it may be open. True: it was closed. */
bool gate_configured(struct gate *g);

/* A claim was answered that the gate is closed. */
struct gate_answer {
    int64_t sent_us;  /* when the claim was sent, by clock_us() */
    int64_t now_ms;   /* when it was executed, by the clock of Redis */
    int64_t until_ms; /* by the same */
    int64_t until_us; /* the same moment, by clock_us() */
};

enum gate_news {
    GATE_OUTDATED, /* the settings may have changed since the claim was sent: another claim tells */
    GATE_OPEN,
    GATE_CLOSED,
    GATE_CLOSED_BRIEFLY /* maybe because the stream is full; or by the rate */
};
enum gate_news gate_answered(struct gate *g, const struct gate_answer *answer);

void gate_stop(struct gate *g);

#endif
