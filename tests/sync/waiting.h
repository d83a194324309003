/* SPDX-License-Identifier: MIT */
/* A test's use of lapse_sync.h: a Redis, handles, and what is left at their end. Criterion may be
 * told of a failure by the thread of the test alone, so handlers only write down what they see. */
#ifndef WAITING_H
#define WAITING_H
#include "allocations.h"
#include "audit.h"
#include "redis.h"
#include "test.h"
#include <criterion/criterion.h>
#include <lapse_sync.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOUR = 3600000 };

struct waiting {
    struct server *server;
    struct lapse_options options; /* of waiting_open() */
    struct lapse_sync *s;         /* the first handle */
    int n_fds;
    long n_live;
};

void waiting_start(struct waiting *w);
/* The same without a handle. */
void waiting_bare(struct waiting *w);
struct lapse_sync *waiting_open(struct waiting *w);
/* Closes the first handle, audits the queues, and checks that nothing is left over. */
void waiting_end(struct waiting *w, const char *queue);

/* The condition holds within a minute. */
#define wait_until(cond)                                                          \
    do {                                                                          \
        int64_t wait_end_ms = test_now_ms() + 60000;                              \
        while (!(cond)) {                                                         \
            cr_assert(test_now_ms() < wait_end_ms, "never came true: %s", #cond); \
            wait_a_little();                                                      \
        }                                                                         \
    } while (0)
void wait_a_little(void); /* three milliseconds */

/* Schedules in the queue "q". id NULL: lapse makes one up. */
int schedule(struct lapse_sync *s, const char *id, int64_t delay_ms);
struct lapse_depth depth_of(struct lapse_sync *s, const char *queue);
struct lapse_stats stats_of(struct lapse_sync *s);

/* ---- a handler: it writes down what it ran, waits while it is to block, and settles ---- */
enum way { DONE, RETRY, SNOOZE, FAIL, RELEASE, KEEP };
enum { KEPT = 256 };
struct worker {
    _Atomic enum way way;
    atomic_bool blocks;
    atomic_uint began, ended; /* calls of the handler */
    atomic_uint inside, most; /* of them at a time; the most there ever were */
    atomic_uint settled;      /* settles that returned 0 */
    atomic_int err;           /* the last error of another one */
    atomic_uint last_try;
    pthread_mutex_t mutex; /* of what follows */
    struct lapse_job *kept[KEPT];
    unsigned n_kept;
};
void worker_init(struct worker *k, enum way way);
lapse_sync_handler worker_on_job; /* arg: a worker */
void worker_settle(struct worker *k, struct lapse_sync *s, struct lapse_job *job, enum way way);
int listen_with(struct lapse_sync *s, struct worker *k, unsigned threads, unsigned max_running);
/* Listens, and has kept the job "a". */
void worker_keep_one(struct worker *k, struct lapse_sync *s);
#endif
