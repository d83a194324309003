/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_SWEEP_H
#define LAPSE_SWEEP_H
#include "script/lease_verbs.h"
#include "script/queue_verbs.h"

struct sweep_events {
    /* It is time to sweep, and Redis can be reached. */
    void (*due)(void *arg);
    /* After sweep_stop(): no request is pending any more. */
    void (*ended)(void *arg);
};

/* The slow look at one queue. It finds what every event and every alarm has missed. */
struct sweep {
    struct context *context;
    struct script *script;
    struct span key;
    const struct sweep_events *events;
    void *arg;
    bool on;
    struct timer timer;
    struct sweep_request recover;
    struct arm_request arm;
    int64_t armed_ms; /* triggers are set for the jobs that are due until then */
};

struct sweep_spec {
    struct script *script;
    struct span key;
    const struct sweep_events *events;
    void *arg;
};

void sweep_start(struct sweep *s, const struct sweep_spec *spec);

/* Ends the leases that are over: their jobs wait again, or are dead. */
void sweep_recover(struct sweep *s);
/* Sets the triggers of jobs that come within arm_ahead_ms. Does nothing where there is no such
 * limit, as then each job has its trigger from the start. */
void sweep_arm(struct sweep *s);

void sweep_stop(struct sweep *s);

static inline bool sweep_pending(const struct sweep *s)
{
    return s->recover.request.pending || s->arm.request.pending;
}

#endif
