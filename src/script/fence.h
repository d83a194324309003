/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_FENCE_H
#define LAPSE_FENCE_H
#include "job/keys.h"
#include "script/script.h"

/* Copies of what was written: those that are asked for, or those that there are. */
struct fence_copies {
    unsigned replicas; /* that have it; with fsync those that have it on disk */
    bool fsync;        /* Redis itself has it on disk */
};

/* What waits for copies of what was written for it: embedded in what asks for them. */
struct fence_wait {
    struct list node;
    struct span key; /* of the queue in which it was written */
    struct fence_copies wanted;
    unsigned n_replicas; /* how many are known to have it */
    /* When it was sent, by clock_us(): only a fence on a connection of before counts. */
    int64_t sent_us;
    struct script_request *request; /* of what is withheld at first */
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

/* Waits for copies. It has a connection of its own: with the option replicas from the beginning,
 * else from the first wait on. */
struct fence {
    struct list of_fences;
    struct context *context;
    struct script *script;
    struct node *node;
    void (*changed)(void *arg);
    void *arg;
    struct fence_probe probes[FENCE_COMMANDS];
    int64_t up_us; /* monotonic: when the connection was last made */

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
    char key[KEYS_MAX];         /* of the last round */

    unsigned n_in_vain; /* rounds in a row that too few replicas confirmed, by the option */
    struct timer again; /* asks whether enough replicas are there, or whether Redis can wait */
};

/* Calls changed(arg) when jobs may be claimed again that could not be. */
void fence_init(struct fence *f, struct script *script, struct node *node,
                void (*changed)(void *arg), void *arg);

/* Nothing is confirmed any more: what was written ends with EALONE. */
void fence_close(struct fence *f);

static inline bool fence_is_wanted(const struct fence_copies *wanted)
{
    return wanted->replicas > 0 || wanted->fsync;
}

/* Nobody waits for copies. */
static inline bool fence_is_idle(const struct fence *f)
{
    return list_empty(&f->written) && list_empty(&f->round);
}

/* Nothing would miss it. */
static inline bool fence_is_unused(const struct fence *f)
{
    bool any_prepared = !list_empty(&f->withheld) || !list_empty(&f->released);

    return fence_is_idle(f) && !any_prepared && f->n_calls == 0;
}

static inline struct fence_wait *fence_wait_of(struct list *node)
{
    return CONTAINER(node, struct fence_wait, node);
}

/* Prepares a request that is about to be submitted: it is withheld until Redis is known to be able
 * to wait as it wants. */
void fence_prepare(struct fence *f, struct fence_wait *w);
/* What is released and was not sent is withheld again. */
void fence_withhold_unsent(struct fence *f);
/* What is withheld, and may go, is released. */
void fence_release(struct fence *f);
/* What another fence withholds is to be written where this one is. */
void fence_take_over(struct fence *f, struct fence_wait *w);
/* It was written, at sent_us: end() runs when there are enough copies, or none are to be expected,
 * which may be at once. */
void fence_add(struct fence *f, struct fence_wait *w);
/* The queue of the last round is on another node: what is known of the replicas is asked again. */
void fence_forget_key(struct fence *f);
/* Nothing is waited for: it has failed, or is not needed any more. */
void fence_forget(struct fence_wait *w);

/* Once in each turn of the loop: begins a round if one is wanted. */
void fence_turn(struct fence *f);

#endif
