/* SPDX-License-Identifier: MIT */
#ifndef LISTEN_H
#define LISTEN_H
#include "client/client.h"
#include "listen/exec.h"
#include "listen/lines.h"

struct listen {
    struct client c; /* first: on_refused gets this */
    struct globals *g;
    /* what was asked for */
    unsigned jobs, count;
    bool exec_given, drain, no_wait, force;
    int64_t grace_ms; /* -1: not given */
    int64_t run_ms;
    char **queues;
    int n_queues;
    char **argv; /* of --exec, NULL: none */
    /* what is going on */
    unsigned begun, running;
    unsigned asked;        /* depths to come */
    int closing, draining; /* draining: told to stop */
    int leaving;           /* exit code of a second signal */
    int signals;           /* TERM and INT so far */
    int proven;            /* Redis answered claims, and nothing was refused meanwhile */
    uint64_t claimed;      /* jobs, when a claim was last refused */
    int due;               /* a queue has a job that was due at the start */
    int64_t opened_ms;
    int64_t connected_ms, asked_ms; /* monotonic; connected_ms 0: not yet */
    struct lines lines;
    struct exec exec;
    struct env_words env;
    ev_signal term, interrupt, hangup, usr1;
    ev_timer tick, watch;
};
extern const struct opt listen_opts[];
/* Sets up what the options and words say; 0, or an exit code and has said why. */
int listen_check(struct listen *in, struct globals *g, struct arguments *w);
int listen_run(struct listen *in); /* until it is told to stop; its exit code */
void listen_stop(struct listen *in, int code);
#endif
