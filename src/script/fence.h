/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_FENCE_H
#define LAPSE_FENCE_H
#include "script/script.h"

/* Copies of what was written: those that are asked for, or those that there are. */
struct fence_copies {
    unsigned replicas; /* that have it; with fsync those that have it on disk */
    bool fsync;        /* Redis itself has it on disk */
};

/* A request that is answered when there are enough copies of what it wrote; embedded in what asked
 * for that. */
struct fence_wait {
    struct list node;
    struct script_request *request;
    struct fence_copies wanted;
    unsigned n_replicas; /* how many are known to have it */
    unsigned connection; /* the only one on which a fence counts */
    /* Runs once, unless fence_forget() has. 0; EALONE: it was written, and is not known to have so
     * many copies; EREFUSED, EDENIED: it was not sent, because Redis cannot wait. */
    void (*end)(struct fence_wait *w, int err);
};

/* WAIT is asked for replicas, WAITAOF for disks. */
enum fence_command { FENCE_WAIT, FENCE_WAITAOF, FENCE_COMMANDS };

struct fence;

/* The question whether Redis knows such a command, and lets this user. */
struct fence_probe {
    struct call call;
    struct fence *fence;
    bool asked; /* and not answered */
    bool passed;
};

/* Waits for copies. It has a connection of its own from the first wait on. */
struct fence {
    struct context *context;
    struct script *script;
    struct node *node;
    struct fence_probe probes[FENCE_COMMANDS];
    unsigned n_connections; /* so far */

    struct list withheld; /* not sent before their probe has passed */
    struct list released; /* not answered */
    struct list written;  /* answered; the next round is for them */

    /* a round: one fence, and all that were answered before it */
    struct list round;
    struct call fence_call;
    struct call wait_call;
    unsigned n_calls;           /* of these, without an answer */
    bool broken;                /* nothing more is learned in it */
    int64_t fenced_us;          /* monotonic: when the fence was sent */
    struct fence_copies wanted; /* by the last WAIT */
    struct fence_copies copies; /* its answer */
};

void fence_init(struct fence *f, struct script *script, struct node *node);

/* Nothing is confirmed any more: what was written ends with EALONE. */
void fence_close(struct fence *f);

static inline bool fence_is_wanted(const struct fence_copies *wanted)
{
    return wanted->replicas > 0 || wanted->fsync;
}

/* Prepares a request that is about to be submitted: it is withheld until Redis is known to be able
 * to wait as it wants. */
void fence_prepare(struct fence *f, struct fence_wait *w);
/* The request was answered: end() runs when there are enough copies, or none are to be expected. */
void fence_add(struct fence *f, struct fence_wait *w);
/* The request has failed: nothing is waited for. */
void fence_forget(struct fence_wait *w);

/* Once in each turn of the loop: begins a round if one is wanted. */
void fence_turn(struct fence *f);

#endif
