/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_TOPO_H
#define LAPSE_TOPO_H
#include "redis/node.h"

/* The Redis servers that a handle uses, and which of them has a key. What is above asks by keys,
 * and does not know how many there are. */
struct topo {
    struct context *context;
    int db; /* of all of them */
    struct list nodes;
    /* The node that has a key: always one, whether it is up or not. */
    struct node *(*find)(struct topo *t, struct span key);
    struct masters *masters; /* NULL: it is one Redis */
};

/* One Redis, which has all keys. Others may follow, with another function to find theirs. */
void topo_init(struct topo *t, struct node *only);
void topo_add(struct topo *t, struct node *n);

static inline struct node *topo_node(struct topo *t, struct span key)
{
    return t->find(t, key);
}

static inline struct node *topo_node_at(struct list *at)
{
    return CONTAINER(at, struct node, of_topo);
}

/* The one that was there first. */
static inline struct node *topo_first(const struct topo *t)
{
    return topo_node_at(t->nodes.next);
}

/* Is one of them up? */
bool topo_any_up(const struct topo *t);

/* Unix time by the clock of one of them, for what is of no queue; 0: none was heard yet. */
int64_t topo_time_us(const struct topo *t);

#endif
