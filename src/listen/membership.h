/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_MEMBERSHIP_H
#define LAPSE_MEMBERSHIP_H
#include "listen/peers.h"

/* Makes the name of a listener, which all its memberships share. */
void membership_make_name(char out[PEER_NAME_MAX], const struct lapse_options *options);

/* What the memberships of all queues share. */
struct memberships {
    struct context *context;
    struct script *script;
    struct span name; /* ours, as Redis knows it */
    struct peers peers;
    struct list all;
    struct list waiting; /* those that are to ask, in order */
    unsigned credit;     /* how much may be asked now */
    int64_t credit_us;   /* by clock_us(): when that was so */
    struct timer timer;
    void (*told)(void *arg, enum lapse_told what); /* we were told something else than before */
    void *arg;
};

/* name is not copied. told and arg are to be set. */
void memberships_init(struct memberships *ms, struct script *script, struct span name);
/* The connection for commands is there again, or another one that has the names of the living. */
void memberships_up(struct memberships *ms);
/* The connection for commands is there again, of a Redis that may have queues. */
void memberships_go_on(struct memberships *ms);
/* Nothing is sent any more: Redis forgets us when our last heartbeat ends. */
void memberships_stop(struct memberships *ms);
/* No membership is left. */
void memberships_close(struct memberships *ms);

struct membership_events {
    /* What is known of our place has changed; rank -1: we are no member. */
    void (*ranked)(void *arg, int64_t rank, int64_t n_members);
    /* After membership_leave_for_good(): no request is pending any more. */
    void (*ended)(void *arg);
};

/* Our membership among the listeners of a queue: it decides who answers which event. */
struct membership {
    struct memberships *all;
    struct list node;
    struct list waits;
    const char *queue; /* its owner's */
    struct span key;
    const struct membership_events *events;
    void *arg;

    int64_t rank; /* -1: we are no member */
    int64_t n_members;
    struct peer **names; /* in the order of ranks, of those that are dead too */
    size_t n_names;
    bool wanted; /* we want to be a member */
    bool joined; /* we asked to be one last, and not to leave */
    bool beats;  /* a heartbeat is for it: it is one of the two */
    bool writes; /* when we ask next, it is to enter or leave, and not only to read the names */
    bool left_for_good;

    struct join_request join;
    struct call read;
    bool reading;
    struct timer timer;

    /* by clock_us(); 0: never */
    int64_t asked_us; /* the last request */
    int64_t ask_us;   /* when to ask next */
    int64_t full_us;  /* since when we have no free slot */
};

struct membership_spec {
    struct memberships *all;
    const char *queue; /* not copied */
    struct span key;
    const struct membership_events *events;
    void *arg;
};

void membership_init(struct membership *m, const struct membership_spec *spec);

/* Asks to be a member, also if we asked before: Redis may have lost that. */
void membership_join(struct membership *m);
void membership_leave(struct membership *m);
/* Others have joined or left: reads the names, a little later. */
void membership_refresh(struct membership *m);
/* Reads the names if that was long ago. */
void membership_verify(struct membership *m);
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
/* Stops asking without leaving. */
void membership_stop(struct membership *m);
void membership_free(struct membership *m);

static inline bool membership_pending(const struct membership *m)
{
    return m->join.request.pending || m->reading;
}

#endif
