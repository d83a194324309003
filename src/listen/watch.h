/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_WAKE_H
#define LAPSE_WAKE_H
#include "base/exact_timer.h"
#include "base/heap.h"
#include "listen/membership.h"
#include "listen/subscription.h"

/* A queue that is watched; embedded in what claims its jobs. */
struct watch {
    struct list node;
    struct ear ear;
    struct wake *wake;
    struct span key; /* its owner's */
    bool on, room;   /* room: its owner can take jobs */

    struct membership membership;

    /* the alarm: when to look, by Redis's clock; 0: nothing known */
    struct queue_ask touch;
    struct heap_node rings; /* when ours is to ring */
    struct looks {
        int64_t due_us;   /* the first job that is due later: its trigger is to be read */
        int64_t grace_us; /* until then the jobs that are due already are left to their owners */
    } look;
    struct told {
        struct looks look;
        int64_t heard_us; /* monotonic, of the last wake that told it; 0: none */
    } told[2]; /* by wakes, older and newer, that the last script may not have known of */
    /* expired: monotonic, when the event of a trigger was heard last */
    int64_t cursor_ms, expired_us;
    bool ask_anyway; /* a watchdog that lost the thread */
    bool reading;    /* the same triggers once more */

    struct queue_ask arm;
    int64_t armed_ms; /* up to which due the triggers are set */

    struct queue_ask sweep;
    struct timer sweep_timer;
};

/* What a hint leads to. They mark or send; they never fail. */
struct wake_events {
    void (*named)(void *arg, struct watch *w, struct span id, enum lapse_via via);
    void (*oldest)(void *arg, struct watch *w, enum lapse_via via);
    void (*sweeping)(void *arg); /* leases that ended are about to be taken, ours too */
    void (*ended)(void *arg);    /* something of a watch that is off was on its way, and ended */
};

struct wake {
    struct context *context;
    struct script *script;
    const struct wake_events *events;
    void *arg;
    struct sub sub;
    struct list watches;
    struct heap looks;        /* of all watches, by Redis's clock */
    struct exact_timer alarm; /* for the first of them */
    char name[96];            /* in the registry: the listener's, and 64 random bits */
    uint64_t n_events;        /* heard, of jobs and canaries */
    bool deaf;                /* none come, and it was said */
};
void wake_init(struct wake *wk, struct context *context, struct script *script,
               const struct wake_events *events, void *arg);
void wake_watch(struct wake *wk, struct watch *w, const char *queue, struct span key);
void wake_unwatch(struct watch *w);
bool wake_free_to_go(const struct watch *w); /* after that: nothing of it is on its way */
/* What a script said that was sent then. True: the oldest job is overdue for longer than the grace,
 * and is anybody's to claim, now. */
bool wake_outlook(struct watch *w, const struct outlook *o, int64_t sent_us);
void wake_told(struct watch *w, int64_t due_ms); /* a job became due then */
void wake_room(struct watch *w, bool room);      /* we can take jobs of it, or cannot */
void wake_up(struct wake *wk);                   /* the connection for commands is there again */
void wake_close(struct wake *wk);

#endif
