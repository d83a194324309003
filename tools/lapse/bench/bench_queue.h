/* SPDX-License-Identifier: MIT */
#ifndef BENCH_QUEUE_H
#define BENCH_QUEUE_H
#include "bench/servers.h"
#include "job/keys.h"

/* The queue of the bench as it lies in Redis. Functions that return int return 0, or an exit code
 * after they have printed why. */
struct bench_queue {
    struct servers *servers;
    const char *name;
    char keys[KEYS_PARTS][KEYS_MAX];
    char none[KEYS_MAX];             /* the key that keeps scripts from half a queue */
    char alive[KEYS_MAX];            /* the key of the listeners that are alive */
    char queues[KEYS_MAX];           /* the key of the registry */
    char triggers[KEYS_TRIGGER_MAX]; /* what the keys of triggers begin with */
    char canaries[KEYS_TRIGGER_MAX]; /* likewise */
};

/* space: NULL is the default. name must live as long as the queue. */
void bench_queue_init(struct bench_queue *q, struct servers *servers, const char *space,
                      const char *name);
/* Connects its servers: as servers_open() does. */
int bench_queue_connect(struct bench_queue *q, const struct globals *g, const char *url,
                        int64_t wait_ms);
/* The server that it is on, and how that is called in a cluster. */
struct redis_sync *bench_queue_server(const struct bench_queue *q);
const char *bench_queue_place(const struct bench_queue *q);
/* Nobody listens, and all jobs are of a bench that was killed; those are removed. */
int bench_queue_check(const struct bench_queue *q);
/* n: of listeners that are known to receive events. */
int bench_queue_count_listeners(const struct bench_queue *q, int64_t *n);
/* To be called before the listeners stop: their canaries expire now instead of lying about. */
void bench_queue_expire_canaries(const struct bench_queue *q);
/* Removes our jobs, and the queue if nothing else is in it. */
int bench_queue_erase(const struct bench_queue *q);
#endif
