/* SPDX-License-Identifier: MIT */
#ifndef EXEC_H
#define EXEC_H
#include "command.h"
#include <ev.h>

struct child;
struct exec { /* a command that runs once for each job */
    struct ev_loop *loop;
    char **argv;
    char *path; /* of argv[0], found in PATH; ours */
    char **env; /* what all children get; ours */
    size_t env_n;
    int64_t run_ms;
    lapse_cb *settled; /* of each settle, with the arg of exec_start() */
    /* We ended a command before it was through: its job is not settled, stays in hand, and goes
     * back uncounted when the handle is closed. */
    void (*kept)(void *arg);
    unsigned n_kept;
    struct child *first;
    ev_async ended; /* SIGCHLD came */
};
enum { ENV_MOST = 64 };
struct env_words { /* NAME: passed on, NAME=VALUE: set */
    const char *v[ENV_MOST];
    unsigned n;
};
/* struct env_words; 0, or USAGE and has said why */
int set_env(const struct opt *o, char *value, void *field);
/* 0, or an exit code and has said why */
int exec_init(struct exec *x, char **argv, const struct env_words *more);
/* from now on x->loop, the default one, reaps children; once in a process */
void exec_begin(struct exec *x);
void exec_start(struct exec *x, struct lapse_job *job, void *arg);
void exec_stop(struct exec *x); /* TERM to all, KILL 5 s later */
void exec_kill(struct exec *x); /* KILL to all, now */
/* KILL to all; the jobs, which the close cut loose, are dropped, and each arg is given to free().
 */
void exec_free(struct exec *x);
void unblock_signal(int signum);      /* though who started us had it blocked */
char *find_program(const char *name); /* its path, to be freed; NULL: there is none */
#define EXEC_KILL_MS 5000
#endif
