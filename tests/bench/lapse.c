/* SPDX-License-Identifier: MIT */
/* lapse, through <lapse.h> only, as the other systems are used. Besides the arguments of all
 * programs it takes
 *
 *     o.NAME=VALUE         a field of lapse_options
 *     queues=N             spread the jobs over N queues, or listen to N
 *     hold=1               listen: run jobs, but settle none
 *     lasts=MS             listen: settle each so long after its start
 *     block=MS every=MS    listen: keep the loop for so long, so often
 *
 * and a verb of its own:
 *
 *     scatter  at= run= n= most_ms=    jobs that are each due 0 to MOST_MS ms from now, at random
 *
 * Every allocation of the process is counted: those of src/base/mem.c, and beside them those of
 * hiredis and libev. */
#include "bench.h"
#include <ev.h>
#include <lapse.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IN_FLIGHT = 8000, CLOSE_MS = 1000, QUEUE_BYTES = 32 };

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

static void *count_mem(void *old, size_t size)
{
    if (size == 0) {
        free(old);
        return NULL;
    }

    n_mem++;
    return realloc(old, size);
}

static struct ev_loop *loop;
static struct lapse *handle;
static long n_unanswered;
static int64_t n_queues;
static bool hold;
static int64_t lasts_ms;

static void on_log(int level, const char *text, void *arg)
{
    (void)level;
    (void)arg;
    fprintf(stderr, "bench: lapse: %s\n", text);
}

static void lapse_system_open(const char *address)
{
    struct lapse_options o = lapse_options_init();
    char url[256];
    const char *name;
    const char *value;

    snprintf(url, sizeof url, "%s%s", *address == '/' ? "unix://" : "redis://127.0.0.1:", address);
    lapse_set_allocator(count_mem);
    o.url = url;
    o.log = on_log;

    for (size_t i = 0; (name = argument_option(i, &value)); i++) {
        if (lapse_options_set(&o, name, value)) {
            die("lapse takes no %s=%s", name, value);
        }
    }

    n_queues = argument_int("queues", 1);
    hold = argument_int("hold", 0) != 0;
    lasts_ms = argument_int("lasts", 0);
    loop = ev_loop_new(0);

    int err = loop ? lapse_open(&handle, loop, &o) : LAPSE_ENOMEM;
    if (err) {
        die("lapse_open: %s", lapse_strerror(err));
    }
}

/* ---- producing ---- */
static const char *queue_name(char out[QUEUE_BYTES], int64_t number)
{
    if (n_queues == 1) {
        snprintf(out, QUEUE_BYTES, "bench");
    } else {
        snprintf(out, QUEUE_BYTES, "bench-%05lld", (long long)(number % n_queues));
    }
    return out;
}

static void on_scheduled(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    (void)l;
    (void)job;
    (void)arg;

    if (err) {
        die("schedule: %s", lapse_strerror(err));
    }

    n_unanswered--;
}

static void schedule(const char *id, const char *body, struct lapse_due due)
{
    struct lapse_spec s = lapse_spec_init();
    char queue[QUEUE_BYTES];

    s.queue = queue_name(queue, strtoll(id + KIND_LEN, NULL, 10));
    s.id = id;
    s.body = body;
    s.body_len = BODY_LEN;
    s.due = due;

    int err = lapse_schedule(handle, &s, on_scheduled, NULL);
    if (err) {
        die("schedule: %s", lapse_strerror(err));
    }

    n_unanswered++;
}

static void lapse_put(const char *id, const char *body, int64_t due_ms)
{
    schedule(id, body, due_ms ? lapse_at(due_ms) : lapse_in(0));
}

static void lapse_wait_below(long in_flight)
{
    while (n_unanswered > in_flight) {
        ev_run(loop, EVRUN_ONCE);
    }
}

static long scatter_most_ms;

static void put_scattered(const char *id, const char *body, int64_t due_ms)
{
    (void)due_ms;
    schedule(id, body, lapse_in(random() % (scatter_most_ms + 1)));
}

static int lapse_verb(const char *verb)
{
    static const struct system scattered = {
        .window = IN_FLIGHT, .put = put_scattered, .wait = lapse_wait_below};
    char kind[KIND_LEN + 1];

    if (strcmp(verb, "scatter") != 0) {
        return -1;
    }

    scatter_most_ms = (long)argument_required("most_ms");
    srandom(1);
    snprintf(kind, sizeof kind, "j%03u", (unsigned)argument_required("run") % 1000);

    return produce_bulk(&scattered, kind, 0, 0);
}

/* ---- listening ---- */
static void on_done(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    (void)l;
    (void)job;
    (void)arg;

    if (err) {
        die("done: %s", lapse_strerror(err));
    }

    job_settled();
    if (!listening()) {
        ev_break(loop, EVBREAK_ALL);
    }
}

struct lasting {
    ev_timer end;
    struct lapse_job *job;
};

static void on_end(struct ev_loop *l, ev_timer *w, int events)
{
    struct lasting *lasting = w->data;
    const char *id = lapse_job_id(lasting->job);

    (void)l;
    (void)events;
    job_ends(id, strlen(id));
    lapse_done(lasting->job, on_done, NULL);
    free(lasting);
}

static void job_lasts(struct lapse_job *job)
{
    struct lasting *lasting = malloc(sizeof *lasting);

    if (!lasting) {
        die("out of memory");
    }
    lasting->job = job;
    ev_now_update(loop);
    ev_timer_init(&lasting->end, on_end, (double)lasts_ms / 1000, 0.);
    lasting->end.data = lasting;
    ev_timer_start(loop, &lasting->end);
}

static void on_job(struct lapse *l, struct lapse_job *job, void *arg)
{
    const char *id = lapse_job_id(job);

    (void)l;
    (void)arg;
    job_started(id, strlen(id), lapse_job_claimed_us(job), lapse_job_due_ms(job));
    if (lasts_ms > 0) {
        job_lasts(job);
    } else if (!hold) {
        lapse_done(job, on_done, NULL);
    }
}

static void on_late(struct ev_loop *l, ev_timer *w, int events)
{
    (void)w;
    (void)events;
    ev_break(l, EVBREAK_ALL);
}

static void on_closed(void *arg)
{
    (void)arg;
    ev_break(loop, EVBREAK_ALL);
}

static void on_block(struct ev_loop *l, ev_timer *w, int events)
{
    const int64_t *block_us = w->data;

    (void)l;
    (void)events;
    sleep_until_us(now_us() + *block_us);
}

static void listen_to_queues(void)
{
    char queue[QUEUE_BYTES];

    for (int64_t i = 0; i < n_queues; i++) {
        int err = lapse_listen(handle, queue_name(queue, i), NULL, on_job, NULL);
        if (err) {
            die("lapse_listen: %s", lapse_strerror(err));
        }
    }
}

static void lapse_system_listen(void)
{
    struct lapse_stats s;
    ev_timer late;
    ev_timer block;
    int64_t block_us = argument_int("block", 0) * 1000;
    double every_s = (double)argument_int("every", 1000) / 1000;

    ev_now_update(loop);
    ev_timer_init(&late, on_late, (double)(listen_until_us() - now_us()) / 1e6, 0.);
    ev_timer_start(loop, &late);
    ev_timer_init(&block, on_block, every_s, every_s);
    block.data = &block_us;
    if (block_us > 0) {
        ev_timer_start(loop, &block);
    }
    listen_to_queues();

    uint64_t malloc_before = n_malloc;
    uint64_t mem_before = n_mem;
    ev_run(loop, 0);
    lapse_stats(handle, &s, sizeof s);

    if (s.done > 0) {
        uint64_t mem = n_mem - mem_before;
        uint64_t other = n_malloc - malloc_before - mem;
        figure("mem_allocs_job", (double)mem / (double)s.done);
        figure("other_allocs_job", (double)other / (double)s.done);
    }

#define LAPSE_X(name, text) figure("stat_" #name, (double)s.name);
    LAPSE_STATS(LAPSE_X)
#undef LAPSE_X

    lapse_close(handle, CLOSE_MS, on_closed, NULL);
    ev_run(loop, 0);
}

int main(int argc, char **argv)
{
    static const struct system lapse = {
        .window = IN_FLIGHT,
        .open = lapse_system_open,
        .put = lapse_put,
        .wait = lapse_wait_below,
        .listen = lapse_system_listen,
        .verb = lapse_verb,
    };
    return bench_main(argc, argv, &lapse);
}
