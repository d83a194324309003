/* SPDX-License-Identifier: MIT */
/* In bulk there is a window of requests in flight, which answers fill again. A rate is open loop: a
 * job is scheduled at its time whatever became of those before, and what the library does not take
 * (EFULL) is tried again at the next tick. So a rate that cannot be reached shows in the rate that
 * was reached, and not as lateness. */
#include "bench/load.h"
#include "bench/loop.h"
#include "cli/message.h"
#include "client/redis_sync.h"
#include <sys/timerfd.h>
#include <unistd.h>

enum { WINDOW = 8000, TICK_US = 1000, SECOND_US = 1000000 };

static void on_stored(struct lapse *l, int err, const struct lapse_job *job, void *arg);

static uint64_t load_in_flight(const struct load *load)
{
    return load->asked - load->stored - load->failed;
}

/* False: the library takes no more now, or the load is stopped. */
static bool load_next(struct load *load)
{
    struct lapse_due due = load->due;

    if (load->spaced) {
        due.delay_ms += (int64_t)load->asked;
    }
    if (load->one_by_one) {
        load->asked_us = monotonic_us();
    }

    int err = producer_schedule(load->producer, due, on_stored, load);
    if (!err) {
        load->asked++;
        return true;
    }

    if (err != LAPSE_EFULL) {
        load->stopped = true;
        load->err = load->err ? load->err : err;
    }

    return false;
}

static void load_fill_window(struct load *load)
{
    uint64_t window = load->one_by_one ? 1 : WINDOW;

    while (!load->stopped && load->asked < load->n && load_in_flight(load) < window) {
        if (!load_next(load)) {
            break;
        }
    }
}

static void load_count(struct load *load, int err)
{
    load->last_answer_us = monotonic_us();

    if (err) {
        load->failed++;
        load->err = load->err ? load->err : err;
        return;
    }

    load->stored++;
    if (load->late_after_us && load->last_answer_us > load->late_after_us) {
        load->late++;
    }
}

static void on_stored(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct load *load = arg;

    (void)l;
    (void)job;
    load_count(load, err);
    if (load->open_loop) {
        return;
    }

    if (err) {
        load->stopped = true;
    }
    if (load->answered) {
        histogram_add(load->answered, load->last_answer_us - load->asked_us);
    }
    if (load->one_by_one || load_in_flight(load) <= WINDOW / 2) {
        load_fill_window(load);
    }
}

static bool is_answered(void *arg)
{
    const struct load *load = arg;
    return (load->stopped || load->asked == load->n) && load_in_flight(load) == 0;
}

int load_in_bulk(struct load *load)
{
    load->start_us = monotonic_us();
    load->last_answer_us = load->start_us;
    load_fill_window(load);

    return loop_until(load->producer->loop, 0, is_answered, load);
}

static void on_load_tick(struct ev_loop *ev, ev_io *w, int events)
{
    struct load *load = w->data;
    uint64_t ticks;

    (void)ev;
    (void)events;
    if (read(w->fd, &ticks, sizeof ticks) != sizeof ticks) {
        return;
    }

    uint64_t elapsed_us = (uint64_t)(monotonic_us() - load->start_us);
    uint64_t expected = elapsed_us * load->per_second / SECOND_US + 1;
    if (expected > load->n) {
        expected = load->n;
    }

    while (!load->stopped && load->asked < expected) {
        if (!load_next(load)) {
            break;
        }
    }
}

/* The fd of a timer with one tick a job, but not more than one each TICK_US; -1: none. */
static int open_timer(unsigned per_second)
{
    int64_t every_us = SECOND_US / per_second;
    if (every_us < TICK_US) {
        every_us = TICK_US;
    }

    struct itimerspec every = {
        .it_interval = {every_us / SECOND_US, every_us % SECOND_US * 1000},
        .it_value = {0, 1},
    };
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

    if (fd >= 0 && timerfd_settime(fd, 0, &every, NULL)) {
        close(fd);
        return -1;
    }

    return fd;
}

int load_at_rate(struct load *load)
{
    struct bench_loop *loop = load->producer->loop;
    int fd = open_timer(load->per_second);
    ev_io tick;

    if (fd < 0) {
        message_print("cannot make a timer: %m");
        return INTERNAL;
    }

    ev_io_init(&tick, on_load_tick, fd, EV_READ);
    tick.data = load;
    load->open_loop = true;
    load->start_us = monotonic_us();
    load->last_answer_us = load->start_us;

    ev_io_start(loop->client.loop, &tick);
    int code = loop_until(loop, 0, is_answered, load);
    ev_io_stop(loop->client.loop, &tick);
    close(fd);

    return code;
}

int64_t load_rate(const struct load *load)
{
    int64_t took_us = load->last_answer_us - load->start_us;
    if (took_us < load->at_least_us) {
        took_us = load->at_least_us;
    }

    return took_us > 0 ? (int64_t)load->stored * SECOND_US / took_us : 0;
}
