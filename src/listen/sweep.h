/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_SWEEP_H
#define LAPSE_SWEEP_H
#include "base/heap.h"
#include "listen/look.h"
#include "script/lease_verbs.h"
#include "script/queue_verbs.h"
#include "base/task.h"

/* The sweeps of all queues: one timer, for the first of them. */
struct sweeps {
    struct context *context;
    struct script *script;
    struct task_queue *tasks;
    struct heap heap; /* by clock_us() */
    struct timer timer;
    int64_t timer_us; /* when it fires; 0: it is not set */
};

void sweeps_init(struct sweeps *ss, struct script *script, struct task_queue *tasks);
void sweeps_close(struct sweeps *ss);

struct sweep_events {
    /* Redis is asked about the queue: what else is to be asked may go along. */
    void (*looks)(void *arg);
    /* It is time to sweep: the queue has jobs, and Redis can be reached. */
    void (*due)(void *arg);
    /* Redis was asked, and there is nothing to sweep now. */
    void (*nothing)(void *arg);
    /* After sweep_stop(): something of the sweep that was pending is not any more. */
    void (*ended)(void *arg);
};

/* The slow look at one queue. It finds what every event and every alarm has missed. */
struct sweep {
    struct sweeps *sweeps;
    const char *queue;
    struct span key;
    const struct sweep_events *events;
    void *arg;
    bool on;

    struct heap_node node;
    struct look look;
    bool subscribed;  /* as it was set: we hear of new jobs */
    bool empty;       /* the queue had no job, and we have not heard of one since */
    int64_t heard_us; /* when we heard of one last, by clock_us() */

    struct sweep_request recover;
    struct arm_request arm;
    int64_t armed_ms; /* triggers are set for the jobs that are due until then */
};

struct sweep_spec {
    struct sweeps *sweeps;
    const char *queue; /* not copied */
    struct span key;
    const struct sweep_events *events;
    void *arg;
};

void sweep_start(struct sweep *s, const struct sweep_spec *spec);

/* The queue may have jobs. */
void sweep_heard(struct sweep *s);
/* Whether notices of the queue reach us. At first they do not. */
void sweep_set_subscribed(struct sweep *s, bool subscribed);

/* Asks Redis about the queue now, and leaves the next time as it is. false: it cannot be asked. */
bool sweep_look(struct sweep *s);

/* It has looked, and there was no job; nor was one heard of since. */
static inline bool sweep_found_none(const struct sweep *s)
{
    return s->empty;
}

/* It has asked, and has no answer yet. */
static inline bool sweep_looks(const struct sweep *s)
{
    return s->look.pending;
}

/* Ends the leases that are over: their jobs wait again, or are dead. And frees what has been known
 * for long enough. */
void sweep_recover(struct sweep *s);
/* Sets the triggers of jobs that come within arm_ahead_ms. Does nothing where there is no such
 * limit, as then each job has its trigger from the start. */
void sweep_arm(struct sweep *s);

void sweep_stop(struct sweep *s);

static inline bool sweep_pending(const struct sweep *s)
{
    return s->look.pending || s->recover.request.pending || s->arm.request.pending;
}

#endif
