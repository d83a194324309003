/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_RING_H
#define LAPSE_RING_H
#include "script/verbs.h"

struct ring_events {
    void (*ranked)(void *arg); /* our place is known anew */
    void (*silent)(void *arg); /* a canary's event is overdue */
    void (*left)(void *arg);   /* after ring_leave(): nothing is on its way any more */
};

/* A queue's listeners in order, and our place among them: who answers which event. */
struct ring {
    struct context *context;
    struct script *script;
    const struct ring_events *events;
    void *arg;
    struct span key, name;
    struct queue_ask listen;
    struct timer beat;
    int64_t rank, n;   /* ours, of how many; rank -1: we are not in it */
    bool wanted;       /* to be in it */
    bool entered;      /* as asked last */
    bool beats, reads; /* what was asked last is a heartbeat; it reads a canary */
    bool closed;
    unsigned n_unheard; /* canaries read, since an event was heard */
    /* monotonic; 0: never */
    int64_t heard_us; /* the last event on this subscription */
    int64_t asked_us; /* the last question */
    int64_t beat_us;  /* the next heartbeat */
    int64_t again_us; /* something changed: when to ask again */
    int64_t full_us;  /* since when we have no room */
};
void ring_init(struct ring *r, struct context *context, struct script *script, struct span key,
               struct span name, const struct ring_events *events, void *arg);
void ring_enter(struct ring *r, bool wanted); /* or leave; also to hear our rank again */
/* others say that the names did: hears our rank again, a little later */
void ring_changed(struct ring *r);
/* we can take jobs, or cannot: this may change with every job */
void ring_room(struct ring *r, bool room);
void ring_leave(struct ring *r); /* for good, at once */
void ring_heard(struct ring *r); /* an event came */
void ring_deaf(struct ring *r);  /* the subscription is gone: we are in no place */
bool ring_owns(const struct ring *r, struct span id);
void ring_close(struct ring *r); /* no more beats */

#endif
