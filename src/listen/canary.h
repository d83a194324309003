/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_CANARY_H
#define LAPSE_CANARY_H
#include "job/keys.h"
#include "redis/node.h"

/* A trigger of our own on one Redis: it shows that expiry events reach us. */
struct canary {
    struct context *context;
    struct node *node;
    /* An event that had to come has not come. */
    void (*silent)(void *arg);
    void *arg;

    char key[KEYS_TRIGGER_MAX]; /* "": it is off */
    struct call set;
    bool pending;       /* the call is */
    bool moved;         /* the key was another one when the call was sent */
    bool is_set;        /* Redis has it, or has expired it by itself */
    bool expires_one;   /* the last one did: it was set when there was one before */
    unsigned n_unheard; /* canaries that were made to expire since an event was heard */
    struct timer timer;

    /* by clock_us(); 0: never */
    int64_t heard_us; /* the last event */
};

void canary_init(struct canary *c, struct node *node, void (*silent)(void *arg), void *arg);

/* Sets it among the triggers of a queue that is subscribed to, now and every few seconds. */
void canary_start(struct canary *c, const char *queue, const char *name);
void canary_stop(struct canary *c);

/* The connection for commands is there again. */
void canary_up(struct canary *c);
/* An event was heard, of a job or of the canary. */
void canary_heard(struct canary *c);

#endif
