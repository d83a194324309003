/* SPDX-License-Identifier: MIT */
#include "base/timer.h"

static void on_timer(struct ev_loop *loop, ev_timer *ev, int events)
{
    (void)loop;
    (void)events;
    struct timer *t = ev->data;
    t->fn(t->arg);
}

void timer_init(struct timer *t, struct ev_loop *loop, void (*fn)(void *), void *arg)
{
    ev_timer_init(&t->ev, on_timer, 0., 0.);
    t->ev.data = t;
    t->loop = loop;
    t->fn = fn;
    t->arg = arg;
}

void timer_set(struct timer *t, int64_t for_ms)
{
    /* libev counts from the start of the loop's iteration, which may be long ago, or has never
     * been. Adding ev_time() - ev_now() would not help: both are by the wall clock, so a step of
     * that would be waited for. */
    ev_now_update(t->loop);
    ev_timer_stop(t->loop, &t->ev);
    ev_timer_set(&t->ev, (double)for_ms / 1000., 0.);
    ev_timer_start(t->loop, &t->ev);
}

void timer_stop(struct timer *t)
{
    ev_timer_stop(t->loop, &t->ev);
}
