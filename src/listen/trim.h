/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_TRIM_H
#define LAPSE_TRIM_H
#include "base/timer.h"
#include "script/queue_verbs.h"

struct trim_events {
    /* Entries were cut: where the stream was full, it has room now. */
    void (*room)(void *arg);
    /* After trim_stop(): the request that was pending is not any more. */
    void (*ended)(void *arg);
};

/* The slow look at the stream that a queue is forwarded to. */
struct trim {
    struct script *script;
    struct span key;
    const struct trim_events *events;
    void *arg;
    bool on;
    bool again;    /* asked for while the request was pending */
    bool is_empty; /* by the last answer there is no stream, or it has no entries */
    struct timer timer;
    struct trim_request request;
};

void trim_start(struct trim *t, struct script *script, struct span key,
                const struct trim_events *events, void *arg);
/* The stream may have entries: it is looked at within sweep_ms, and again while it has any. */
void trim_soon(struct trim *t);
/* Jobs wait for room: is it the stream that is full? */
void trim_now(struct trim *t);
/* There may be a stream now. */
void trim_changed(struct trim *t);
void trim_stop(struct trim *t);

static inline bool trim_pending(const struct trim *t)
{
    return t->request.request.pending;
}

#endif
