/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_EXACT_TIMER_H
#define LAPSE_EXACT_TIMER_H
#include "base/timer.h"

/* Calls fn(arg) at a moment, to the microsecond: libev's epoll waits whole milliseconds, a timerfd
 * does not. */
struct exact_timer {
    ev_io io;
    struct timer coarse; /* instead, where there is no timerfd, or libev cannot watch it */
    struct ev_loop *loop;
    void (*fn)(void *arg);
    void *arg;
    int64_t at_us; /* by clock_us(); 0: off */
    int fd;        /* -1: none */
};

void exact_timer_init(struct exact_timer *t, struct ev_loop *loop, void (*fn)(void *), void *arg);
/* at_us is by clock_us(); one that is past fires at once, and 0 turns the timer off. */
void exact_timer_set(struct exact_timer *t, int64_t at_us);
void exact_timer_close(struct exact_timer *t);

#endif
