/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_SITE_H
#define LAPSE_SITE_H
#include "listen/alarm.h"
#include "listen/eviction.h"
#include "listen/watch.h"

/* One Redis, as the queues of a listener that are there share it. */
struct site {
    struct list of_sites;
    struct node *node;
    struct alarms alarms;
    struct eviction eviction;
    struct ear ear;
    unsigned n_queues; /* that are there, also those that have ended but for an answer */
    bool was_up;       /* the connection for commands was, once */
    bool has_gained;   /* queues have come, and are to be looked at */
};

/* The Redises that have queues of a listener, and the one that was there first. */
struct sites {
    struct script *script;
    struct watches *watches;
    const struct eviction_events *events;
    void *arg; /* of these */
    struct list all;
    struct site first;
};

void sites_init(struct sites *ss, struct script *script, struct watches *watches,
                const struct eviction_events *events, void *arg);

static inline struct site *site_of(struct list *node)
{
    return CONTAINER(node, struct site, of_sites);
}

/* The one of a node; NULL: no queue is there. */
struct site *sites_find(const struct sites *ss, const struct node *node);
/* The one of the node that has this key. NULL: there is no memory. */
struct site *sites_of_key(struct sites *ss, struct span key);
/* The one of a node, if nobody uses it: closes it, so that the node may go. */
void sites_let_go(struct sites *ss, struct node *node);

/* The connection for commands is there again. */
void site_up(struct site *s);

/* The handle closes. */
void sites_drain(struct sites *ss);
/* Nothing is sent any more. */
void sites_close(struct sites *ss);
/* No queue is left. */
void sites_free(struct sites *ss);

#endif
