/* SPDX-License-Identifier: MIT */
#ifndef LISTENER_H
#define LISTENER_H
#include "bench/histogram.h"
#include "command.h"

/* What one listener measures, in memory that it shares with the producer. */
struct listener_figures {
    int32_t ready;
    uint64_t early, twice, foreign, allocs;
    int64_t last_settled_us; /* monotonic */
    struct lapse_stats stats;
    struct histogram claimed, started;
    struct histogram heard; /* from the cancel of a job that runs to its event */
};

/* What a listener needs; of one phase. */
struct listener_task {
    struct globals *g;
    char *url; /* with its password */
    const char *queue;
    int leash;               /* fd: at its end the listener stops */
    int64_t clock_offset_us; /* our monotonic clock less Redis's */
    uint64_t first_job, n_jobs;
    /* When the last job was asked to stop, monotonic: until then it runs. NULL: each is done at
     * once. */
    const int64_t *asked_us;
    uint64_t *ran; /* a bit for each job, shared by the listeners */
    struct listener_figures *figures;
};

/* Runs jobs until the leash ends; returns the exit code of the process. */
int listener_run(const struct listener_task *task);
#endif
