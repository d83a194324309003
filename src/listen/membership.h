/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_MEMBERSHIP_H
#define LAPSE_MEMBERSHIP_H
#include "job/keys.h"
#include "script/queue_verbs.h"

enum { MEMBERSHIP_NAME_MAX = KEYS_NAME_MAX + 32 };

/* Makes the name of a listener, which all its memberships share. */
void membership_make_name(char out[MEMBERSHIP_NAME_MAX], const struct lapse_options *settings);

struct membership_events {
    /* What is known of our place may have changed; rank -1: we are no member. */
    void (*ranked)(void *arg, int64_t rank, int64_t n_members);
    /* After membership_leave_for_good(): no request is pending any more. */
    void (*ended)(void *arg);
};

/* Our membership among the listeners of a queue: it decides who answers which event. */
struct membership {
    struct context *context;
    struct script *script;
    struct span key;
    struct span name; /* ours, as Redis knows it */
    const struct membership_events *events;
    void *arg;

    int64_t rank; /* -1: we are no member */
    int64_t n_members;
    bool wanted; /* we want to be a member */
    bool joined; /* we asked to be one last, and not to leave */
    bool left_for_good;

    struct heartbeat_request heartbeat;
    struct timer timer;

    /* by clock_us(); 0: never */
    int64_t asked_us;     /* the last request */
    int64_t heartbeat_us; /* the next heartbeat */
    int64_t refresh_us;   /* when to ask before that, because something has changed */
    int64_t full_us;      /* since when we have no free slot */
};

struct membership_spec {
    struct script *script;
    struct span key;
    struct span name;
    const struct membership_events *events;
    void *arg;
};

void membership_init(struct membership *m, const struct membership_spec *spec);

/* Asks to be a member, or only for our rank, if we are one already. */
void membership_join(struct membership *m);
void membership_leave(struct membership *m);
/* Others have joined or left: asks for our rank, a little later. */
void membership_refresh(struct membership *m);
/* Whether we can take jobs. That may change with every job: only when it has lasted for a while
 * does a member without free slots leave. */
void membership_set_free_slots(struct membership *m, bool any);

/* The subscription is gone: we hear no events, and are no member. */
void membership_lost_events(struct membership *m);

/* Is it for us to answer the event of this job? */
bool membership_owns(const struct membership *m, struct span id);
/* Is it our name? */
bool membership_is_ours(const struct membership *m, struct span name);
/* No member is before us. True of one that is no member too. */
bool membership_is_first(const struct membership *m);

void membership_leave_for_good(struct membership *m);
/* Stops the heartbeats without leaving: Redis forgets us when the last one ends. */
void membership_stop(struct membership *m);

static inline bool membership_pending(const struct membership *m)
{
    return m->heartbeat.request.pending;
}

#endif
