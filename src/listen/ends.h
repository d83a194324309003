/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_ENDS_H
#define LAPSE_ENDS_H
#include "base/timer.h"
#include "job/keys.h"
#include "listen/rota.h"
#include "redis/pubsub.h"
#include "script/script.h"

/* Who waits for the ends of jobs of one Redis hears of them over a subscription of its own. */
struct ends_ear {
    struct list of_ends;
    struct ends *ends;
    struct node *node;
    struct pubsub pubsub; /* its connection is made for the first wait */
    struct list queues;
    struct list leaving; /* queues for which nobody waits, and whose channel has not left */
};

/* Who waits for the ends of jobs, of all queues. */
struct ends {
    struct script *script;
    struct list ears;
    struct ends_ear first;
    struct table names; /* of the queues */
    struct rota rota;   /* of all that wait, who are looked at once in sweep_ms */
    struct timer tick;  /* the next turn */
    bool refused;       /* by Redis, and it was logged */
};

void ends_init(struct ends *e, struct script *script);
/* The connection for commands to this node is there again. */
void ends_up(struct ends *e, struct node *node);
/* Some queues have another node than before. false: there is no memory, and it is to be called
 * again. */
bool ends_remapped(struct ends *e);
/* Nobody has used this node for a while: lets go of it, if nobody waits there. */
void ends_let_go_of(struct ends *e, struct node *node);
/* The handle closes: nobody waits any more. */
void ends_drain(struct ends *e);
void ends_close(struct ends *e);

/* One that waits for the end of a job; embedded in what asks whether it has come. */
struct end_waiter {
    struct list node;        /* among those of its queue */
    struct list turn;        /* among those whose turn comes with its */
    struct table_node named; /* by id, of its queue */
    struct ended_queue *queue;
    /* The job may have ended. No waiter may be removed before this returns. */
    void (*look)(struct end_waiter *w);
    /* The handle closes, and w is removed. */
    void (*closed)(struct end_waiter *w);
};

/* ENOMEM. queue is copied; id must live as long as the waiter. */
int ends_add(struct ends *e, struct end_waiter *w, const char *queue, struct span id);
void ends_remove(struct end_waiter *w);

#endif
