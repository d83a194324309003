/* SPDX-License-Identifier: MIT */
#include "base/exact_timer.h"
#include "base/clock.h"
#include <sys/timerfd.h>
#include <unistd.h>

static void fire(void *arg)
{
    struct exact_timer *t = arg;
    t->at_us = 0;
    t->fn(t->arg);
}

static void on_readable(struct ev_loop *loop, ev_io *io, int events)
{
    (void)loop;

    struct exact_timer *t = io->data;
    uint64_t times;

    if (events & EV_ERROR) { /* epoll_ctl(2) failed, and libev has stopped to watch it */
        int64_t at_us = t->at_us;
        close(t->fd);
        t->fd = -1;
        t->at_us = 0;
        exact_timer_set(t, at_us);
    } else if (read(t->fd, &times, sizeof times) == sizeof times && t->at_us) {
        fire(t);
    }
}

void exact_timer_init(struct exact_timer *t, struct ev_loop *loop, void (*fn)(void *), void *arg)
{
    t->loop = loop;
    t->fn = fn;
    t->arg = arg;
    t->at_us = 0;
    t->fd = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    timer_init(&t->coarse, loop, fire, t);
    ev_io_init(&t->io, on_readable, t->fd, EV_READ);
    t->io.data = t;

    if (t->fd >= 0) {
        ev_io_start(loop, &t->io);
    }
}

void exact_timer_set(struct exact_timer *t, int64_t at_us)
{
    if (at_us < 0) {
        at_us = 1; /* before this machine was up, which timerfd_settime(2) cannot say */
    }

    if (at_us == t->at_us) {
        return;
    }

    t->at_us = at_us;

    if (t->fd >= 0) {
        struct itimerspec spec = {{0, 0}, {at_us / 1000000, at_us % 1000000 * 1000}};
        timerfd_settime(t->fd, TFD_TIMER_ABSTIME, &spec, NULL);
    } else if (at_us) {
        int64_t wait_us = at_us - clock_us();
        timer_set(&t->coarse, wait_us > 0 ? wait_us / 1000 + 1 : 0);
    } else {
        timer_stop(&t->coarse);
    }
}

void exact_timer_close(struct exact_timer *t)
{
    timer_stop(&t->coarse);

    if (t->fd >= 0) {
        ev_io_stop(t->loop, &t->io);
        close(t->fd);
        t->fd = -1;
    }
}
