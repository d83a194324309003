/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_NODE_H
#define LAPSE_NODE_H
#include "redis/pubsub.h"
#include "redis/server_clock.h"

/* One Redis. */
struct node {
    struct context *context;
    struct endpoint endpoint;
    struct server_clock clock;
    struct conn commands;
    struct pubsub pubsub; /* begun by who subscribes */
};

/* events and arg: of the connection for commands. */
void node_init(struct node *n, struct context *context, const struct address *address,
               const struct conn_events *events, void *arg);

/* May commands be sent? */
static inline bool node_up(const struct node *n)
{
    return conn_up(&n->commands);
}

/* A reply said that Redis's time was server_us; its request was sent at sent_us, by clock_us(). */
void node_heard_clock(struct node *n, int64_t sent_us, int64_t server_us);

/* Unix time by Redis's clock; before the first reply it is not known, and not to be used. */
int64_t node_time_us(const struct node *n);
/* The moment of clock_us() at which Redis's clock shows server_us. */
int64_t node_mono_us(const struct node *n, int64_t server_us);

static inline bool node_knows_time(const struct node *n)
{
    return n->clock.known;
}

#endif
