/* SPDX-License-Identifier: MIT */
#ifndef BENCH_H
#define BENCH_H
#include "bench/bench_queue.h"
#include "bench/loop.h"
#include "bench/phase.h"
#include "bench/producer.h"
#include "bench/proxy.h"
#include "bench/servers.h"

/* What the user asked for; 0: not asked for. */
struct bench_plan {
    const char *queue;
    unsigned rate, waiting, listeners, burst, schedule, cancel;
    int body_len;
    int64_t duration_ms, delay_ms, idle_ms;
    int64_t rtt_us; /* -1: not asked for */
};

struct bench {
    struct bench_plan plan;
    struct globals *g;
    char *url; /* with its password; owned, wiped */
    char queue_name[32];
    struct bench_queue queue;
    struct servers servers;
    char place[CLUSTER_PLACE]; /* of the queue's master when it began; "": there is no cluster */
    int n_masters;
    struct redis_info redis_at_start;
    struct bench_loop loop;
    struct producer producer;
    struct proxy proxy;

    /* in the order in which they are run */
    struct phase waiting, idle, schedule, single, rate, burst, cancel;
    struct histogram answers; /* of single */
    struct histogram pings;
};
#endif
