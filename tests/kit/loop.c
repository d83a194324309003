/* SPDX-License-Identifier: MIT */
#include "support.h"
#include <ev.h>

static void on_deadline(struct ev_loop *loop, ev_timer *w, int events)
{
    (void)loop;
    (void)events;
    *(bool *)w->data = true;
}

bool loop_until(struct ev_loop *loop, bool (*cond)(void *arg), void *arg, int timeout_ms)
{
    bool over = false;
    ev_timer deadline;

    ev_timer_init(&deadline, on_deadline, timeout_ms / 1000., 0.);
    deadline.data = &over;
    ev_now_update(loop); /* the test may have been busy since the last turn */
    ev_timer_start(loop, &deadline);
    while (!cond(arg) && !over) {
        ev_run(loop, EVRUN_ONCE);
    }

    ev_timer_stop(loop, &deadline);
    return cond(arg);
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

void loop_for(struct ev_loop *loop, int ms)
{
    loop_until(loop, never, NULL, ms);
}

bool is_true(void *flag)
{
    return *(bool *)flag;
}
