/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_TIMER_H
#define LAPSE_TIMER_H
#include <ev.h>
#include <stdbool.h>
#include <stdint.h>

/* Calls fn(arg) once, in whole milliseconds: for deadlines and pauses. */
struct timer {
    ev_timer ev;
    struct ev_loop *loop;
    void (*fn)(void *arg);
    void *arg;
};

void timer_init(struct timer *t, struct ev_loop *loop, void (*fn)(void *), void *arg);
/* Starts it, or starts it again: it fires for_ms from now. */
void timer_set(struct timer *t, int64_t for_ms);
void timer_stop(struct timer *t);

static inline bool timer_on(const struct timer *t)
{
    return ev_is_active(&t->ev);
}

#endif
