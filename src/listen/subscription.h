/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_SUB_H
#define LAPSE_SUB_H
#include "redis/node.h"
#include "base/table.h"
#include "job/keys.h"

/* A queue that is listened to; embedded in what wants to hear. */
struct ear {
    struct list node;
    struct table_node named;
    const char *queue; /* its owner's */
    char wake[KEYS_MAX];
    /* on the connection of now: */
    bool asked;     /* its subscription is sent */
    bool confirmed; /* and Redis has confirmed it */
    bool leaving;   /* the end of it is sent, and not confirmed: it must live until then */
};

struct sub_events {
    /* the first time on each connection */
    void (*confirmed)(void *arg, struct ear *e);
    void (*expired)(void *arg, struct ear *e, struct span id);  /* a trigger of ours; not trusted */
    void (*canary)(void *arg, struct ear *e, struct span name); /* somebody's: of whom */
    /* a message on its wake channel; not trusted */
    void (*woken)(void *arg, struct ear *e, struct span text);
    /* the connection is gone; no ear is confirmed */
    void (*deaf)(void *arg);
};

/* The subscription: one connection for the expiry events of all queues and the wake channel of
 * each. */
struct sub {
    struct context *context;
    struct node *node;
    const struct sub_events *events;
    void *arg;
    struct conn conn;
    struct list ears;
    struct table names;  /* of ears */
    struct list leaving; /* ears, in the order in which Redis will confirm that they end */
    unsigned n_asked;    /* ears whose subscription is sent */
    char kept[KEYS_MAX]; /* a channel that no ear listens to any more; empty: none. See sub.c */
    bool started, keeps; /* keeps: we may not unsubscribe */
    bool ending;         /* no need to: the connection is about to be closed */
};
void sub_init(struct sub *s, struct node *node, const struct sub_events *events, void *arg);
void sub_add(struct sub *s, struct ear *e, const char *queue);
void sub_remove(struct sub *s, struct ear *e); /* it lives on while it is leaving */
/* the connection for commands is up: this one may connect */
void sub_up(struct sub *s);
void sub_close(struct sub *s);

#endif
