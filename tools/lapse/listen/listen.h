/* SPDX-License-Identifier: MIT */
#ifndef LISTEN_H
#define LISTEN_H
#include "client/client.h"
#include "job/keys.h"
#include "listen/exec.h"
#include "listen/lines.h"
#include "listen/weighted.h"

struct listen {
    struct client c; /* first: on_refused gets this */
    struct globals *g;

    /* what was asked for */
    unsigned max_jobs, count;
    bool exec_given, drain, no_wait, force, strict;
    int64_t grace_ms; /* -1: not given */
    int64_t run_ms;
    struct weighted queues;
    char **argv; /* of --exec; NULL: none */
    struct env_options env;

    /* the start */
    int64_t opened_ms;    /* monotonic, as all of these */
    int64_t connected_ms; /* 0: not yet */
    int n_calm;           /* watches since it connected, or since it was refused something */
    bool proven;          /* Redis has served us, and refused nothing meanwhile */
    uint64_t claimed;     /* jobs, when a claim was last refused */

    /* the jobs */
    unsigned n_begun, n_running;
    struct lines lines;
    struct exec exec;

    /* --drain */
    unsigned n_depths;                  /* replies to come */
    bool has_due;                       /* a queue has a job that was due at the start */
    char due_queue[KEYS_QUEUE_MAX + 1]; /* one of a pattern that has; "": none is known */
    int64_t asked_ms;

    /* the end */
    bool closing;
    bool draining; /* a signal asked for the end */
    int n_signals; /* TERM and INT so far */
    int quitting;  /* exit code of a second signal */

    ev_signal term, interrupt, hangup, usr1;
    ev_timer tick, watch;
};
enum { LISTEN_SLACK_MS = 2000 }; /* for the replies to the last settles */

/* Takes over what the options and arguments say; 0, or an exit code after it has printed why. Then
 * listen_run() follows, or listen_free(). */
int listen_prepare(struct listen *in, struct globals *g, struct arguments *args);
/* Runs until it is stopped, and frees it; returns the exit code. */
int listen_run(struct listen *in);
void listen_free(struct listen *in);
void listen_stop(struct listen *in, int code);
#endif
