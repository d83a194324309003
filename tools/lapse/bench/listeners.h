/* SPDX-License-Identifier: MIT */
#ifndef LISTENERS_H
#define LISTENERS_H
#include "bench/bench_queue.h"
#include "bench/listener.h"
#include "bench/loop.h"
#include <sys/types.h>

struct listeners_shared;

/* The listeners of one phase, each a process. */
struct listeners {
    unsigned n;      /* 0: the phase has none */
    uint64_t n_jobs; /* that the phase schedules at most */
    int64_t far_ms;  /* what the network adds to the time that they are given */
    pid_t *pids;
    struct listeners_shared *shared; /* memory */
    size_t shared_bytes;
    /* Our ends of pipes, -1: closed. Closing the gate starts the listeners, closing the leash stops
     * them; alive ends with the last of them. */
    int gate, leash, alive;
    const struct listeners *forked_before; /* of an earlier phase; NULL: none */
};

struct listeners_spec {
    struct globals *g;
    char *url; /* with its password */
    const char *queue;
    unsigned n;
    uint64_t n_jobs;
    bool holds;     /* they hold each job until it is asked to stop */
    int64_t rtt_ms; /* that the network adds */
    const struct listeners *forked_before;
};

/* To be called before the first connection is made; the listeners wait at the gate. Functions that
 * return int return 0, or an exit code after they have printed why. */
int listeners_fork(struct listeners *l, const struct listeners_spec *spec);
/* Opens the gate, and waits until all of them listen; unless no_events is set, also until they are
 * known to receive events. */
int listeners_start(struct listeners *l, struct bench_loop *loop, const struct bench_queue *queue,
                    int64_t clock_offset_us, uint64_t first_job);
/* What they measured can be read afterwards. */
void listeners_stop(struct listeners *l, const struct bench_queue *queue);
void listeners_free(struct listeners *l);

/* A job that runs is asked to stop now, by this process's monotonic clock. */
void listeners_are_asked(struct listeners *l, int64_t now_us);

const struct listener_figures *listeners_figures(const struct listeners *l, unsigned nth);
int64_t listeners_clock_offset_us(const struct listeners *l);
uint64_t listeners_settled(const struct listeners *l); /* jobs so far */
uint64_t listeners_ran(const struct listeners *l);     /* jobs that ran at least once */
int64_t listeners_cpu_us(const struct listeners *l);
int64_t listeners_rss_kib(const struct listeners *l); /* the highest peak of one of them */
#endif
