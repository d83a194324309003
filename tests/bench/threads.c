/* SPDX-License-Identifier: MIT */
/* lapse from many threads, through <lapse_sync.h>: they share a handle, and so a connection. Its
 * own verb:
 *
 *     threads  at= n= threads=    jobs due in an hour; each thread waits for the answer to the one
 *                                 before */
#include "bench.h"
#include <lapse_sync.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { MOST_THREADS = 256, AN_HOUR_MS = 3600000 };

static struct lapse_sync *handle;

static void on_log(int level, const char *text, void *arg)
{
    (void)level;
    (void)arg;
    fprintf(stderr, "bench: lapse: %s\n", text);
}

static void threads_open(const char *address)
{
    struct lapse_options o = lapse_options_init();
    char url[256];

    snprintf(url, sizeof url, "%s%s", *address == '/' ? "unix://" : "redis://127.0.0.1:", address);
    o.url = url;
    o.log = on_log;

    int err = lapse_sync_open(&handle, &o);
    if (err) {
        die("lapse_sync_open: %s", lapse_strerror(err));
    }
}

static void threads_put(const char *id, const char *body, int64_t due_ms)
{
    struct lapse_spec s = lapse_spec_init();

    s.queue = "bench";
    s.id = id;
    s.body = body;
    s.body_len = BODY_LEN;
    s.due = lapse_at(due_ms);

    int err = lapse_sync_schedule(handle, &s, 0, NULL);
    if (err) {
        die("schedule: %s", lapse_strerror(err));
    }
}

static struct {
    const struct system *system;
    int64_t n, due_ms;
    _Atomic int64_t next;
} work;

static void *put_some(void *arg)
{
    (void)arg;
    for (int64_t i; (i = work.next++) < work.n;) {
        put_numbered(work.system, "wait", i, work.due_ms);
    }
    return NULL;
}

static int threads_verb(const char *verb)
{
    static const struct system threads = {.put = threads_put};
    pthread_t thread[MOST_THREADS];

    if (strcmp(verb, "threads") != 0) {
        return -1;
    }

    int64_t n_threads = argument_required("threads");
    if (n_threads < 1 || n_threads > MOST_THREADS) {
        die("threads=%lld: must be from 1 to %d", (long long)n_threads, MOST_THREADS);
    }

    int64_t start_us = now_us();
    work.system = &threads;
    work.n = argument_required("n");
    work.due_ms = start_us / 1000 + AN_HOUR_MS;
    for (int64_t i = 0; i < n_threads; i++) {
        if (pthread_create(&thread[i], NULL, put_some, NULL)) {
            die("no thread could be made");
        }
    }
    for (int64_t i = 0; i < n_threads; i++) {
        pthread_join(thread[i], NULL);
    }

    figure("jobs_s", (double)work.n * 1e6 / (double)(now_us() - start_us));
    lapse_sync_close(handle, 1000);

    return 0;
}

int main(int argc, char **argv)
{
    static const struct system threads = {.open = threads_open, .verb = threads_verb};
    return bench_main(argc, argv, &threads);
}
