/* SPDX-License-Identifier: MIT */
#ifndef SNAPSHOT_H
#define SNAPSHOT_H
#include "bench/bench_queue.h"
#include "bench/listeners.h"

/* Counters at one moment. */
struct snapshot {
    struct redis_info info; /* of the server that has the queue */
    bool others_known;
    int64_t others_cpu_us; /* of the other masters of its cluster */
    int64_t us;            /* monotonic */
    int64_t listeners_cpu_us, producer_cpu_us;
    struct lapse_stats stats; /* of all listeners together */
    uint64_t allocs;
};
/* listeners: NULL: there are none. 0, or an exit code after it has printed why. */
int snapshot_take(struct snapshot *s, const struct bench_queue *queue,
                  const struct listeners *listeners);

/* What follows from two snapshots: in thousandths, so that all forms of it show three decimals. */
struct costs {
    bool server_known; /* INFO could be read */
    bool others_known; /* likewise of all other masters, of which there are some */
    /* a job */
    int64_t server_us, scripts, commands, others_us;
    int64_t listeners_us, producer_us, allocs, empty, touches;
    /* a second */
    int64_t scripts_per_s, commands_per_s, server_percent, others_percent, listeners_percent;
};
struct costs costs_of(const struct snapshot *before, const struct snapshot *after, uint64_t jobs);
int64_t thousandths(int64_t value, uint64_t of); /* of 0: 0 */
#endif
