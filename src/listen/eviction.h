/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_EVICTION_H
#define LAPSE_EVICTION_H
#include "job/keys.h"
#include "script/queue_verbs.h"

struct eviction;

struct eviction_events {
    /* Jobs may be claimed after they could not be. */
    void (*allowed)(void *arg);
    /* It is to be asked again: eviction_check() with a queue that is there now, if there is one. */
    void (*again)(void *arg, struct eviction *e);
};

/* Whether this Redis may evict our keys, by its maxmemory-policy. No job is claimed from one that
 * may. */
struct eviction {
    struct context *context;
    struct script *script;
    struct node *node;
    const struct eviction_events *events;
    void *arg;

    struct eviction_request query;
    struct timer again;
    bool closed;
    char key[KEYS_MAX]; /* of the queue that was asked with last */
};

void eviction_init(struct eviction *e, struct script *script, struct node *node,
                   const struct eviction_events *events, void *arg);

/* Asks Redis, on each connection before the first claim. The key is that of any queue. */
void eviction_check(struct eviction *e, struct span key);

static inline bool eviction_known(const struct eviction *e)
{
    return e->node->eviction != NODE_EVICTION_UNKNOWN;
}

/* No job may be claimed: Redis has not answered yet, or may evict jobs. */
static inline bool eviction_forbids_claims(const struct eviction *e)
{
    return e->node->eviction != NODE_EVICTS_NOTHING;
}

/* Redis has answered that it may evict jobs. */
static inline bool eviction_possible(const struct eviction *e)
{
    return e->node->eviction == NODE_MAY_EVICT;
}

/* Has Redis been asked, and not answered? */
static inline bool eviction_is_pending(const struct eviction *e)
{
    return e->query.request.pending;
}

void eviction_close(struct eviction *e);

#endif
