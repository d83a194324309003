/* SPDX-License-Identifier: MIT */
/* What the programs of this folder share: URL and how much to do as arguments, and a failure that
 * ends the program. Each thread of a program may fail. */
#ifndef PROGRAMS_H
#define PROGRAMS_H
#include <lapse_sync.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHECK(cond) ((cond) ? (void)0 : check_failed(#cond, __FILE__, __LINE__))
#define CHECK_OK(call) check_ok(call, #call, __LINE__)

static _Noreturn inline void check_failed(const char *what, const char *file, int line)
{
    fprintf(stderr, "%s:%d: %s does not hold\n", file, line, what);
    exit(1);
}

static inline void check_ok(int err, const char *what, int line)
{
    if (err != 0) {
        fprintf(stderr, "line %d: %s: %s\n", line, what, lapse_strerror(err));
        exit(1);
    }
}

static inline int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Within two minutes: under a race detector everything takes fifty times as long. */
#define UNTIL(cond)                           \
    do {                                      \
        int64_t until_ms = now_ms() + 120000; \
        while (!(cond)) {                     \
            CHECK(now_ms() < until_ms);       \
            poll(NULL, 0, 1);                 \
        }                                     \
    } while (0)

/* Puts a job in the place of another, which it returns, for the next one to settle. A mutex, as
 * helgrind knows no atomic exchange. */
static inline struct lapse_job *swap_job(struct lapse_job **place, struct lapse_job *job)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

    pthread_mutex_lock(&mutex);
    struct lapse_job *before = *place;
    *place = job;
    pthread_mutex_unlock(&mutex);

    return before;
}

static inline void on_log(int level, const char *line, void *arg)
{
    (void)arg;
    fprintf(stderr, "<%d> %s\n", level, line);
}

static inline struct lapse_sync *open_sync(const char *url, int64_t lease_ms)
{
    struct lapse_options o = lapse_options_init();
    struct lapse_sync *s = NULL;

    o.url = url;
    o.lease_ms = lease_ms;
    o.reply_ms = 60000;
    o.log = on_log;
    CHECK_OK(lapse_sync_open(&s, &o));
    return s;
}

static inline void schedule_in(struct lapse_sync *s, const char *queue, int64_t delay_ms)
{
    struct lapse_spec spec = lapse_spec_init();

    spec.queue = queue;
    spec.due = lapse_in(delay_ms);
    CHECK_OK(lapse_sync_schedule(s, &spec, 0, NULL));
}

static inline struct lapse_depth depth_of(struct lapse_sync *s, const char *queue)
{
    struct lapse_depth d;

    CHECK_OK(lapse_sync_depth(s, queue, 0, &d));
    return d;
}

static inline pthread_t start(void *(*run)(void *), void *arg)
{
    pthread_t thread;

    CHECK(pthread_create(&thread, NULL, run, arg) == 0);
    return thread;
}
#endif
