/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_H
#define CLIENT_H
#include "command.h"
#include <ev.h>

enum { SAID_MOST = 8 };
struct said { /* a line of the log */
    char line[1024];
    int64_t last_ms; /* when it last came, shown or not; monotonic */
};
struct client {
    struct ev_loop *loop;
    struct lapse *l; /* NULL once closed */
    const struct globals *g;
    ev_async refused;                     /* from the log hook, which may not call lapse */
    void (*on_refused)(struct client *c); /* Redis does not let us in */
    /* the handle is about to be freed; NULL: nobody wants to know */
    void (*on_end)(struct client *c);
    /* heard in the log */
    int wrong_password, no_right, evicts;
    int away;           /* Redis cannot be reached, or is loading */
    char away_why[200]; /* "Connection refused" */
    char error[600];    /* the last line of a warning or worse */
    int replica;
    int refuses_claims;
    int64_t refused_ms; /* the last of them; monotonic */
    /* of a warning or worse: shown when they begin, not while they go on */
    struct said said[SAID_MOST];
    unsigned said_next;
    int one_shot;      /* what is wrong is said once, by client_report() */
    int shut_out;      /* for want of a right */
    const char *maybe; /* what to do where an answer was lost; NULL: nothing was to be changed */
    int said_away;
    int code; /* to exit with; the first that is not 0 stays */
};
/* 0 or an exit code */
int client_open(struct client *c, struct globals *g, void (*on_refused)(struct client *));
/* Exit code for an answer; says what went wrong unless it is 0. about: "orders/order-1". */
int client_report(struct client *c, int err, const char *about);
void client_news_is_good(struct client *c);     /* whatever is wrong next is new */
int client_is_shut_out(const struct client *c); /* by its password, or for want of a right */
void client_set_exit_code(struct client *c, int code);
void client_close(struct client *c, int64_t grace_ms);
int client_run(struct client *c); /* until it is closed; its exit code */

/* ---- one question, one answer ---- */
struct oneshot {
    struct client c;
    struct globals *g;
    const char *queue, *id;
    unsigned open;     /* answers to come */
    unsigned answered; /* by Redis */
    int64_t until_ms;  /* a Redis that is not there is waited for till then; monotonic */
    int (*ask)(struct oneshot *q);
};
/* Opens, calls ask(q), which adds to q->open what it asks, and runs until all is answered. */
int oneshot_run(struct oneshot *q, struct globals *g, int (*ask)(struct oneshot *q));
/* To be called in each answer with its code; 1: it was positive, print it. Where no answer came,
 * for Redis was not there, ask() may be called again. */
int oneshot_replied(struct oneshot *q, int err, const char *queue, const char *id);
#endif
