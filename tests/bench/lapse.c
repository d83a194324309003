/* SPDX-License-Identifier: MIT */
/* lapse, through <lapse.h> only, as the peers are used. o.NAME=VALUE sets a field of lapse_options.
 * Every malloc of the process is counted: those that src/mem makes, and beside them those of
 * hiredis and libev. */
#include "bench.h"
#include <ev.h>
#include <lapse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define QUEUE "bench"

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);

static uint64_t n_malloc, n_mem;

void *malloc(size_t size)
{
    n_malloc++;
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    n_malloc++;
    return __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
    n_malloc++;
    return __libc_realloc(old, size);
}

static void *mem(void *old, size_t size)
{
    if (size == 0) {
        free(old);
        return NULL;
    }
    n_mem++;
    return realloc(old, size);
}

static struct ev_loop *loop;
static struct lapse *l;
static long n_asked;

static void on_log(int level, const char *text, void *unused)
{
    (void)level;
    (void)unused;
    fprintf(stderr, "bench: lapse: %s\n", text);
}

static void open_handle(const char *at)
{
    struct lapse_options o = lapse_options_init();
    char url[256];
    const char *value;

    snprintf(url, sizeof url, "%s%s", *at == '/' ? "unix://" : "redis://127.0.0.1:", at);
    lapse_set_allocator(mem);
    o.url = url;
    o.log = on_log;

    for (size_t i = 0;; i++) {
        const char *name = arg_option(i, &value);
        if (!name) {
            break;
        }
        if (lapse_options_set(&o, name, value)) {
            die("lapse takes no %s=%s", name, value);
        }
    }

    loop = ev_loop_new(0);

    int err = loop ? lapse_open(&l, loop, &o) : LAPSE_ENOMEM;
    if (err) {
        die("lapse_open: %s", lapse_strerror(err));
    }
}

static void on_scheduled(struct lapse *handle, int err, const struct lapse_job *job, void *unused)
{
    (void)handle;
    (void)job;
    (void)unused;
    if (err) {
        die("schedule: %s", lapse_strerror(err));
    }
    n_asked--;
}

static void put(const char *id, const char *body, int64_t due_ms)
{
    struct lapse_spec s = lapse_spec_init();

    s.queue = QUEUE;
    s.id = id;
    s.body = body;
    s.body_len = BODY_LEN;
    s.due = due_ms ? lapse_at(due_ms) : lapse_in(0);
    int err = lapse_schedule(l, &s, on_scheduled, NULL);
    if (err) {
        die("schedule: %s", lapse_strerror(err));
    }

    n_asked++;
}

static void until(long in_flight)
{
    while (n_asked > in_flight) {
        ev_run(loop, EVRUN_ONCE);
    }
}

static void on_done(struct lapse *handle, int err, const struct lapse_job *job, void *unused)
{
    (void)handle;
    (void)job;
    (void)unused;
    if (err) {
        die("done: %s", lapse_strerror(err));
    }

    settled();
    if (!listening()) {
        ev_break(loop, EVBREAK_ALL);
    }
}

static void on_job(struct lapse *handle, struct lapse_job *job, void *unused)
{
    const char *id = lapse_job_id(job);
    (void)handle;
    (void)unused;
    heard(id, strlen(id), lapse_job_claimed_us(job), lapse_job_due_ms(job));
    lapse_done(job, on_done, NULL);
}

static void on_late(struct ev_loop *ours, ev_timer *w, int events)
{
    (void)w;
    (void)events;
    ev_break(ours, EVBREAK_ALL);
}

static void on_closed(void *unused)
{
    (void)unused;
    ev_break(loop, EVBREAK_ALL);
}

static void listen_jobs(void)
{
    struct lapse_stats s;
    ev_timer late;

    ev_now_update(loop);
    ev_timer_init(&late, on_late, (double)(listen_until_us() - now_us()) / 1e6, 0.);
    ev_timer_start(loop, &late);

    int err = lapse_listen(l, QUEUE, NULL, on_job, NULL);
    if (err) {
        die("lapse_handle: %s", lapse_strerror(err));
    }

    uint64_t malloc_before = n_malloc;
    uint64_t mem_before = n_mem;
    ev_run(loop, 0);
    lapse_stats(l, &s, sizeof s);

    if (s.done > 0) {
        tell("mem_allocs_job", (double)(n_mem - mem_before) / (double)s.done);
        tell("other_allocs_job",
             (double)(n_malloc - malloc_before - n_mem + mem_before) / (double)s.done);
    }
#define LAPSE_X(name, text) tell("stat_" #name, (double)s.name);
    LAPSE_STATS(LAPSE_X)
#undef LAPSE_X
    lapse_close(l, 1000, on_closed, NULL);
    ev_run(loop, 0);
}

int main(int argc, char **argv)
{
    static const struct peer lapse = {
        .window = 8000, .open = open_handle, .put = put, .until = until, .listen = listen_jobs};
    return bench_main(argc, argv, &lapse);
}
