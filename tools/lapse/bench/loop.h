/* SPDX-License-Identifier: MIT */
#ifndef LOOP_H
#define LOOP_H
#include "client/client.h"
#include <stdbool.h>

/* The producer's client, its loop, and the signals that end a run. */
struct bench_loop {
    struct client client; /* first: the callbacks get it */
    const char *queue;    /* for messages */
    int signum;           /* that came; 0: none */
    ev_signal term, interrupt;
    ev_timer progress;
    ev_tstamp progress_start_s;
    void (*print_progress)(void *arg);
    void *progress_arg;
};

/* 0, or an exit code after it has printed why. queue must live as long as the loop. */
int loop_open(struct bench_loop *loop, struct globals *g, const char *queue);
/* From its return on a signal ends the process at once. */
void loop_close(struct bench_loop *loop);
bool loop_is_open(const struct bench_loop *loop);

/* Runs until over() says so, asking at least every so many ms (0: when something happens). Returns
 * 0, or an exit code if a signal came or the client was closed. */
int loop_until(struct bench_loop *loop, int every_ms, bool (*over)(void *arg), void *arg);
int loop_wait(struct bench_loop *loop, int64_t ms);
/* Calls print() once a second while the loop runs, and less often after ten seconds; NULL: no
 * longer. */
void loop_set_progress(struct bench_loop *loop, void (*print)(void *arg), void *arg);
#endif
