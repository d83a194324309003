/* SPDX-License-Identifier: MIT */
/* The producer. Many in flight is a window that answers fill again; a rate is open loop: each job
 * is asked for at its time, whatever became of those before, and what the library will not take
 * (EFULL) is asked for again at the next tick. So a rate that cannot be reached shows in what was
 * reached, not in the lateness. */
#include "bench/bench.h"
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { WINDOW = 8000, TICK_US = 1000, PROGRESS_MS = 1000 };

static int on_its_way(const struct ask *a)
{
    return a->asked > a->stored + a->failed;
}

static void on_stored(struct lapse *l, int err, const struct lapse_job *job, void *arg);

static int ask_next(struct ask *a)
{
    struct bench *b = a->b;
    struct lapse_spec s = lapse_spec_init();
    char id[BENCH_ID_BYTES + 1];
    int err;

    snprintf(id, sizeof id, BENCH_ID, (unsigned long long)b->next);
    s.queue = b->queue;
    s.id = id;
    s.body = b->bytes;
    s.body_len = (size_t)b->body;
    s.due = a->due;
    s.due.delay_ms += a->apart ? (int64_t)a->asked : 0;
    a->sent_us = a->one_by_one ? monotonic_us() : 0;
    err = lapse_schedule(b->c.l, &s, on_stored, a);
    b->next += !err;
    a->asked += !err;
    if (err && err != LAPSE_EFULL) {
        a->err = a->err ? a->err : err;
        a->over = 1;
    }

    return err;
}

static void top_up(struct ask *a)
{
    uint64_t window = a->one_by_one ? 1 : WINDOW;
    while (!a->over && a->asked < a->n && a->asked - a->stored - a->failed < window &&
           !ask_next(a)) {}
}

static void on_stored(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct ask *a = arg;

    (void)l;
    (void)job;
    a->last_us = monotonic_us();
    a->stored += !err;
    a->failed += err != 0;
    a->err = a->err ? a->err : err;
    a->late += !err && a->late_us && a->last_us > a->late_us;

    if (!a->open_loop) {
        a->over |= err != 0;
        if (a->waited) {
            spread_add(a->waited, a->last_us - a->sent_us);
        }
        if (a->one_by_one || a->asked - a->stored - a->failed <= WINDOW / 2) {
            top_up(a);
        }
    }
}

static int all_answered(void *arg)
{
    const struct ask *a = arg;
    return (a->over || a->asked == a->n) && !on_its_way(a);
}

static void on_progress(struct ev_loop *loop, ev_timer *w, int events)
{
    struct ask *a = w->data;
    (void)loop;
    (void)events;
    message_print("%s: %llu of %llu, %lld/s", a->what, (unsigned long long)a->stored,
                  (unsigned long long)a->n, (long long)ask_per_second(a));
}

int64_t ask_per_second(const struct ask *a)
{
    int64_t took = a->last_us - a->start_us;
    took = took > a->at_least_us ? took : a->at_least_us;
    return took > 0 ? (int64_t)a->stored * 1000000 / took : 0;
}

int ask_many(struct ask *a)
{
    struct bench *b = a->b;
    ev_timer progress;
    int code;

    ev_timer_init(&progress, on_progress, PROGRESS_MS / 1000., PROGRESS_MS / 1000.);
    progress.data = a;
    if (a->what) {
        ev_timer_start(b->c.loop, &progress);
    }

    a->start_us = a->last_us = monotonic_us();
    top_up(a);
    code = bench_until(b, 0, all_answered, a);
    ev_timer_stop(b->c.loop, &progress);

    return code;
}

static void on_tick(struct ev_loop *loop, ev_io *w, int events)
{
    struct ask *a = w->data;
    uint64_t ticks;

    (void)loop;
    (void)events;
    if (read(w->fd, &ticks, sizeof ticks) == sizeof ticks) {
        uint64_t now = (uint64_t)(monotonic_us() - a->start_us) * a->per_second / 1000000 + 1;
        now = now < a->n ? now : a->n;
        while (!a->over && a->asked < now && !ask_next(a)) {}
    }
}

int ask_rate(struct ask *a)
{
    struct bench *b = a->b;
    int64_t every_us = 1000000 / a->per_second > TICK_US ? 1000000 / a->per_second : TICK_US;
    struct itimerspec every = {{every_us / 1000000, every_us % 1000000 * 1000}, {0, 1}};
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    int code;
    ev_io tick;

    if (fd < 0 || timerfd_settime(fd, 0, &every, NULL)) {
        message_print("no timer: %m");
        return INTERNAL;
    }

    ev_io_init(&tick, on_tick, fd, EV_READ);
    tick.data = a;
    a->open_loop = 1;
    a->start_us = a->last_us = monotonic_us();
    ev_io_start(b->c.loop, &tick);
    code = bench_until(b, 0, all_answered, a);
    ev_io_stop(b->c.loop, &tick);
    close(fd);

    return code;
}
