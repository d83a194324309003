/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_MASTERS_H
#define LAPSE_MASTERS_H
#include "redis/redis_error.h"
#include "redis/slot_map.h"
#include "redis/topo.h"

/* A master of a cluster that has been used lately. */
struct master {
    struct node node;
    struct masters *masters;
    struct slot_place place;
    uint16_t number;      /* no other has it */
    struct call question; /* which node has which slots? */
    bool is_asked;        /* and has not answered */
    bool is_used;         /* since the last tick */
    int64_t used_us;      /* by clock_us(): the last tick before which it was used */
};

/* When requests for a hash slot go again. */
struct slot_pause {
    int64_t until_us; /* by clock_us(); 0: now */
    uint16_t wait_ms; /* how long the last pause was; 0: there was none since all went well */
    uint16_t n_moved; /* times in a row that it was said to be elsewhere */
    uint16_t said_by; /* the node that said so last, by its number */
};

struct masters_events {
    /* Commands can be sent to this node, now or again. */
    void (*up)(void *arg, struct node *n);
    /* Nobody has used it for a while. Lets go of it, as far as it is held. */
    void (*idle)(void *arg, struct node *n);
};

/* A Redis Cluster: which of its masters has a key, and a node for each that is used. */
struct masters {
    struct topo *topo;
    struct context *context;
    const struct address *address;
    const struct masters_events *events;
    void *arg;

    struct slot_map map;
    struct node **nodes; /* as many as the map has places; NULL: it was not used yet */
    unsigned n_nodes;
    uint16_t n_made;           /* nodes, so far */
    struct node nowhere;       /* has the slots that no known master has; it is never up */
    bool changed;              /* slots have another master since that was asked last */
    unsigned n_changes;        /* of that kind, and pauses that ended early */
    struct slot_pause *pauses; /* of each slot */
    int64_t *gained_us;        /* of each, by clock_us(): when it got another master */

    /* a connection to one place after the other, while no node can be asked */
    struct endpoint endpoint;
    struct conn seed;
    struct call question;
    bool seed_is_asked;
    unsigned at;       /* the place that is next: of the map, or behind these of the URL */
    unsigned n_silent; /* places in a row that did not answer as they should */
    int64_t left_us;   /* the attempt after which at went on, by when it had begun */

    struct timer ask;   /* the next question */
    struct timer tick;  /* each second */
    struct timer pause; /* the end of one: wakes the loop, so that requests go */
    int64_t asked_us;   /* by clock_us(): the last question */
    int64_t pause_us;   /* likewise: when the first pause ends, while its timer is on */
    bool is_used;       /* since the last tick */
    bool lacks_owner;   /* since the last tick a slot was used that no node has */
    bool closed;
};

/* The texts of address outlive c. t is made to find nodes by the map. ENOMEM: nothing is to be
 * closed. */
int masters_init(struct masters *c, struct topo *t, struct context *context,
                 const struct address *address, const struct masters_events *events, void *arg);
void masters_start(struct masters *c);

/* Closes all connections; what was sent and is not answered ends with ELOST. Nodes are still to be
 * found until masters_free(). */
void masters_close(struct masters *c);
void masters_free(struct masters *c);

/* The node that has a slot: always one, whether it is up or not. */
struct node *masters_node(struct masters *c, unsigned slot);

/* Has a slot got another master since this was asked last? */
bool masters_take_change(struct masters *c);
/* There was no memory to follow: the answer is to be the same the next time, a little later. */
void masters_repeat_change(struct masters *c);

/* A request for the slot was answered by this node with such an error. true: nothing has happened,
 * and it is to go again when the slot pauses no more. */
bool masters_refused(struct masters *c, unsigned slot, struct node *by, enum redis_error kind);
/* It was answered. */
void masters_answered(struct masters *c, unsigned slot);

/* By clock_us(): what was sent for the slot before was sent to another master. */
static inline int64_t masters_gained_us(const struct masters *c, unsigned slot)
{
    return c->gained_us[slot];
}

/* By clock_us(): when the last pause of the slot ends, or ended. */
static inline int64_t masters_pause_ends_us(const struct masters *c, unsigned slot)
{
    return c->pauses[slot].until_us;
}

/* May no request for the slot go? */
static inline bool masters_pauses(const struct masters *c, unsigned slot, int64_t now_us)
{
    return masters_pause_ends_us(c, slot) > now_us;
}

#endif
