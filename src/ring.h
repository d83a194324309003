/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_RING_H
#define LAPSE_RING_H
#include "store.h"

struct ring_events {
    void (*ranked)(void *arg); /* our place is known anew */
    void (*silent)(void *arg); /* a canary's event is overdue */
};

/* A queue's listeners in order, and our place among them: who answers which event. */
struct ring {
    struct core *core;
    struct script *script;
    const struct ring_events *events;
    void *arg;
    struct span key, name;
    struct queue_ask listen;
    struct timer beat;
    int64_t rank, n;     /* ours, of how many; rank -1: we are not in it */
    bool wanted;         /* to be in it */
    bool entered, again; /* as asked last; ask once more, something changed meanwhile */
    unsigned n_unheard;  /* canaries read, since an event was heard */
    int64_t heard_us;    /* monotonic, of the last event; 0: none on this subscription */
    bool reads, closed;  /* reads: the heartbeat asked for reads a canary */
};
void ring_init(struct ring *r, struct core *core, struct script *script, struct span key, struct span name,
               const struct ring_events *events, void *arg);
void ring_enter(struct ring *r, bool wanted); /* or leave; also to hear our rank again */
void ring_soon(struct ring *r, bool wanted);  /* the same within a tenth of a second: what may change with every job */
void ring_heard(struct ring *r);              /* an event came */
void ring_deaf(struct ring *r);               /* the subscription is gone: we are in no place */
bool ring_owns(const struct ring *r, struct span id);
void ring_close(struct ring *r); /* no more beats */

#endif
