/* SPDX-License-Identifier: MIT */
#ifndef ONESHOT_H
#define ONESHOT_H
#include "client/client.h"

/* A command that sends one request or a few, prints the replies, and exits. */
struct oneshot {
    struct client c; /* first: on_refused gets this */
    struct globals *g;
    const char *queue;   /* for messages */
    unsigned n_open;     /* replies to come */
    unsigned n_answered; /* replies that Redis gave */
    int64_t grace_ms;    /* of the close, after the last reply; 0: none */
    int64_t until_ms;    /* how long to wait for a Redis that cannot be reached; monotonic */
    int (*send)(struct oneshot *o);
};

/* Opens, calls send(o), which sends the requests through oneshot_sent(), and runs until all replies
 * are there. Where there is time left, send() is called again: if Redis could not be reached, or
 * has not answered what changes nothing. */
int oneshot_run(struct oneshot *o, struct globals *g, int (*send)(struct oneshot *o));
/* Counts a request that returned err; returns err. */
int oneshot_sent(struct oneshot *o, int err);
/* A reply came whose error the command has reported itself. */
void oneshot_ended(struct oneshot *o);
/* For each reply, with its error; true: it is good and is to be printed. */
bool oneshot_replied(struct oneshot *o, int err, const char *queue, const char *id);
#endif
