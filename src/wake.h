/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_WAKE_H
#define LAPSE_WAKE_H
#include "ring.h"
#include "sub.h"

/* A queue that is watched; embedded in what claims its jobs. */
struct watch {
    struct list node;
    struct ear ear;
    struct wake *wake;
    struct span key; /* its owner's */
    bool on, room;   /* room: its owner can take jobs */

    struct ring ring;

    /* the alarm: server time at which to look, microseconds; 0: nothing known */
    struct queue_ask touch;
    int64_t look_us, told_us, told_heard_us; /* told: by wakes since the last script that would know */
    int64_t cursor_ms, heard_us;             /* heard: monotonic, of the last event or wake */
    bool ask_anyway;                         /* a watchdog that lost the thread */
    bool reading;                            /* the same triggers once more */

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
};

struct wake {
    struct core *core;
    struct script *script;
    const struct wake_events *events;
    void *arg;
    struct sub sub;
    struct list watches;
    struct alarm alarm;
    char name[96];     /* in the registry: the listener's, and 64 random bits */
    uint64_t n_events; /* heard, of jobs and canaries */
    bool deaf;         /* none come, and it was said */
};
void wake_init(struct wake *wk, struct core *core, struct script *script, const struct wake_events *events, void *arg);
void wake_watch(struct wake *wk, struct watch *w, const char *queue, struct span key);
void wake_unwatch(struct watch *w);
bool wake_free_to_go(const struct watch *w); /* after that: nothing of it is on its way */
void wake_outlook(struct watch *w, const struct outlook *o, int64_t sent_us); /* what a script said */
void wake_told(struct watch *w, int64_t due_ms);                              /* a job became due then */
void wake_room(struct watch *w, bool room);                                   /* we can take jobs of it, or cannot */
void wake_up(struct wake *wk); /* the connection for commands is there again */
void wake_close(struct wake *wk);

#endif
