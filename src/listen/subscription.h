/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_SUBSCRIPTION_H
#define LAPSE_SUBSCRIPTION_H
#include "job/keys.h"
#include "redis/node.h"

/* A queue whose events and notices are heard; embedded in what wants to hear them. */
struct ear {
    struct channel channel; /* of its notices */
    struct table_node named;
    const char *queue; /* its owner's */
    char notice[KEYS_MAX];
    char pattern[KEYS_MAX];
};

struct sub_events {
    /* Events and notices come from now on: once on each connection. */
    void (*confirmed)(void *arg, struct ear *e);
    /* The trigger of a job expired; from anyone, so not trusted. */
    void (*expired)(void *arg, struct ear *e, struct span id);
    /* The canary of the listener of that name expired; likewise. */
    void (*canary)(void *arg, struct ear *e, struct span name);
    /* A message on the channel of notices; likewise. */
    void (*woken)(void *arg, struct ear *e, struct span text);
    /* The connection is gone: nothing is heard. */
    void (*deaf)(void *arg);
};

/* What the messages of the subscription mean: events of which queue, notices. */
struct sub {
    struct context *context;
    struct node *node;
    const struct sub_events *events;
    void *arg;
    struct table names; /* of queues */
};

void sub_init(struct sub *s, struct node *node, const struct sub_events *events, void *arg);
void sub_add(struct sub *s, struct ear *e, const char *queue);
/* It must live on while its channel is leaving. */
void sub_remove(struct sub *s, struct ear *e);
void sub_close(struct sub *s);

#endif
