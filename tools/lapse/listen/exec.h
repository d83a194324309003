/* SPDX-License-Identifier: MIT */
#ifndef EXEC_H
#define EXEC_H
#include "command.h"
#include "listen/environment.h"
#include <ev.h>

enum { EXEC_KILL_MS = 5000 };

struct exec_child;
/* A command that runs once for each job. */
struct exec {
    struct ev_loop *loop;
    char **argv;
    char *path; /* of argv[0], found in PATH; owned */
    char **env; /* of all children; owned */
    size_t env_n;
    int64_t run_ms;
    lapse_cb *settled; /* of each settle, with the arg of exec_start() */
    /* The listener ended a command before it was finished: its job stays unsettled, and goes back
     * uncounted when the handle is closed. */
    void (*left_unsettled)(void *arg);
    unsigned n_unsettled;
    struct exec_child *first;
    ev_async ended; /* SIGCHLD came */
};

/* 0, or an exit code after it has printed why. */
int exec_init(struct exec *x, char **argv, const struct env_options *options);
/* From now on x->loop, the default one, reaps children; once in a process. */
void exec_begin(struct exec *x);
void exec_start(struct exec *x, struct lapse_job *job, void *arg);
/* The job is asked to stop: TERM to its command, KILL 5 s later. */
void exec_cancel(struct exec *x, const struct lapse_job *job);
void exec_stop(struct exec *x); /* TERM to all, KILL 5 s later */
void exec_kill(struct exec *x); /* KILL to all, now */
/* KILL to all; the jobs, no longer of a handle, are freed, and each arg is given to free(). */
void exec_free(struct exec *x);
#endif
