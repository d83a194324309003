/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_H
#define CLIENT_H
#include "command.h"
#include <ev.h>

enum { SHOWN_LINES = 8, SHOWN_LINE = 1024 /* bytes */ };

/* A line of the library's log. */
struct shown_line {
    char line[SHOWN_LINE];
    int64_t last_ms; /* when it last came, shown or not; monotonic */
};

struct client {
    struct ev_loop *loop;
    struct lapse *l; /* NULL once closed */
    const struct globals *g;
    void (*on_refused)(struct client *c); /* Redis refuses something, or cannot be reached */
    void (*on_end)(struct client *c);     /* the handle is about to be freed; may be NULL */

    /* from health reports */
    bool wrong_password;
    bool by_sentinel;   /* it is a Sentinel that does not let us in, and has a user of its own */
    bool no_right;      /* a permission is missing */
    bool shut_out;      /* it keeps the user from connecting */
    bool evicts;        /* Redis may evict jobs */
    bool away;          /* Redis cannot be reached, or is loading */
    char away_why[200]; /* "Connection refused" */
    bool replica;       /* Redis takes no writes */
    bool refuses_claims;
    int64_t refused_ms; /* when the last claim was refused; monotonic */

    /* lines of level warning or worse: shown when they begin, not while they go on */
    struct shown_line shown[SHOWN_LINES];
    unsigned shown_next;
    char last_warning[600];

    bool one_shot;              /* only client_report() reports errors: the log is not shown */
    bool said_away;             /* it was reported that Redis cannot be reached */
    const char *unknown_advice; /* after a lost reply; NULL: the command changes nothing */
    int code;                   /* to exit with; the first that is not 0 stays */
};

/* 0 or an exit code. */
int client_open(struct client *c, struct globals *g, void (*on_refused)(struct client *));
void client_close(struct client *c, int64_t grace_ms);
/* Runs the loop until the handle is closed; returns the exit code. */
int client_run(struct client *c);

/* Prints what went wrong, unless err is 0, and returns the exit code; about: "orders/order-1". */
int client_report(struct client *c, int err, const char *about);
void client_set_exit_code(struct client *c, int code);
/* By a wrong password, or a missing right to connect. */
bool client_is_denied(const struct client *c);
/* Whatever goes wrong next is shown again. */
void client_forget_warnings(struct client *c);
#endif
