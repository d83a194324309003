/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_H
#define CLIENT_H
#include "tool.h"
#include <ev.h>

struct client {
    struct ev_loop *loop;
    struct lapse *l; /* NULL once closed */
    const struct globals *g;
    ev_async refused;                     /* from the log hook, which may not call lapse */
    void (*on_refused)(struct client *c); /* Redis does not let us in */
    void (*on_end)(struct client *c);     /* the handle is about to be freed; NULL: nobody wants to know */
    int wrong_password, no_right, evicts; /* heard in the log */
    int code;                             /* to exit with; the first that is not 0 stays */
};
int client_open(struct client *c, struct globals *g, void (*on_refused)(struct client *)); /* 0 or an exit code */
/* Exit code for an answer; says what went wrong unless it is 0. about: "orders/order-1". */
int client_answer(struct client *c, int err, const char *about);
void client_fail(struct client *c, int code);
void client_close(struct client *c, int64_t grace_ms);
int client_run(struct client *c); /* until it is closed; its exit code */

/* ---- one question, one answer ---- */
struct question {
    struct client c;
    struct globals *g;
    const char *queue, *id;
    unsigned open; /* answers to come */
};
/* Opens, calls ask(q), which adds to q->open what it asks, and runs until all is answered. */
int question(struct question *q, struct globals *g, int (*ask)(struct question *q));
/* To be called in each answer with its code; 1: it was positive, print it. */
int answered(struct question *q, int err, const char *queue, const char *id);
#endif
