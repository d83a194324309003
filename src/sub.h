/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_SUB_H
#define LAPSE_SUB_H
#include "conn.h"

/* A queue that is listened to; embedded in what wants to hear. */
struct ear {
    struct list node;
    const char *queue; /* its owner's */
    char wake[KEYS_MAX];
    bool confirmed; /* by Redis, on the connection of now */
};

struct sub_events {
    void (*confirmed)(void *arg, struct ear *e);                /* the first time on each connection */
    void (*expired)(void *arg, struct ear *e, struct span id);  /* a trigger of ours; not trusted */
    void (*canary)(void *arg, struct ear *e, struct span name); /* somebody's: of whom */
    void (*woken)(void *arg, struct ear *e, struct span text);  /* a message on its wake channel; not trusted */
    void (*deaf)(void *arg);                                    /* the connection is gone; no ear is confirmed */
};

/* The subscription: one connection for the expiry events of all queues and the wake channel of each. */
struct sub {
    struct core *core;
    const struct sub_events *events;
    void *arg;
    struct conn conn;
    struct list ears;
    bool started;
};
void sub_init(struct sub *s, struct core *core, const struct sub_events *events, void *arg);
void sub_add(struct sub *s, struct ear *e, const char *queue);
void sub_remove(struct sub *s, struct ear *e);
void sub_up(struct sub *s); /* the connection for commands is up: this one may connect */
void sub_close(struct sub *s);

#endif
