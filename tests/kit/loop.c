/* SPDX-License-Identifier: MIT */
#include "loop.h"
#include "test.h"
#include <ev.h>
#include <stddef.h>

static void on_deadline(struct ev_loop *loop, ev_timer *w, int events)
{
    (void)loop;
    (void)w;
    (void)events;
}

bool loop_turn(struct ev_loop *loop, int64_t end_ms)
{
    int64_t left_ms = end_ms - test_now_ms();
    ev_timer deadline;

    if (left_ms <= 0) {
        return false;
    }

    ev_timer_init(&deadline, on_deadline, (double)left_ms / 1000., 0.);
    ev_now_update(loop); /* the test may have been busy since the last turn */
    ev_timer_start(loop, &deadline);
    ev_run(loop, EVRUN_ONCE);
    ev_timer_stop(loop, &deadline);

    return true;
}

bool loop_until(struct ev_loop *loop, bool (*cond)(void *arg), void *arg, int timeout_ms)
{
    int64_t end_ms = test_now_ms() + timeout_ms;

    while (!cond(arg) && loop_turn(loop, end_ms)) {}
    return cond(arg);
}

bool is_true(void *flag)
{
    return *(bool *)flag;
}

void loop_for(struct ev_loop *loop, int ms)
{
    int64_t end_ms = test_now_ms() + ms;

    while (loop_turn(loop, end_ms)) {}
}
