/* SPDX-License-Identifier: MIT */
#include "base/timer.h"
#include "base/clock.h"
#include "loop.h"
#include "unit.h"
#include <criterion/criterion.h>

enum { WAIT_MS = 20000 };
#define HOUR_US ((int64_t)3600000000)

static struct ev_loop *loop;
static char fired[32];
static struct timer timer[2];

static void on_fire(void *name)
{
    size_t n = strlen(fired);
    cr_assert_lt(n, sizeof fired - 1);
    fired[n] = *(char *)name;
}

static bool has_fired(void *name)
{
    return strchr(fired, *(char *)name) != NULL;
}

static void poll_loop(int times)
{
    while (times--) {
        ev_run(loop, EVRUN_NOWAIT);
    }
}

static void start(void)
{
    loop = ev_loop_new(0);
    memset(timer, 0x5a, sizeof timer);
    timer_init(&timer[0], loop, on_fire, "a");
    timer_init(&timer[1], loop, on_fire, "b");
}

static void end(void)
{
    timer_stop(&timer[0]);
    timer_stop(&timer[1]);
    ev_loop_destroy(loop);
}

TestSuite(timer, .init = start, .fini = end);

Test(timer, fires_once_in_order_of_time)
{
    cr_expect_not(timer_on(&timer[0]));
    timer_set(&timer[0], 30000);
    timer_set(&timer[1], 20000);
    cr_expect(timer_on(&timer[0]) && timer_on(&timer[1]));
    poll_loop(3);
    cr_expect_str_eq(fired, "");
    unit_pass_us(20000000);
    poll_loop(3);
    cr_expect_str_eq(fired, "b");
    cr_expect_not(timer_on(&timer[1]), "it is a one-shot");
    cr_expect(timer_on(&timer[0]));
    unit_pass_us(20 * HOUR_US);
    poll_loop(3);
    cr_expect_str_eq(fired, "ba");
    unit_pass_us(20 * HOUR_US);
    poll_loop(3);
    cr_expect_str_eq(fired, "ba");
}

Test(timer, fires_by_itself)
{
    timer_set(&timer[0], 5);
    cr_expect(loop_until(loop, has_fired, "a", WAIT_MS));
    timer_set(&timer[0], 0);
    fired[0] = '\0';
    cr_expect(loop_until(loop, has_fired, "a", WAIT_MS), "in no time");
}

Test(timer, counts_in_milliseconds)
{
    timer_set(&timer[0], 40000);
    unit_pass_us(30000000);
    poll_loop(2);
    cr_expect_str_eq(fired, "");
    unit_pass_us(10000000);
    poll_loop(2);
    cr_expect_str_eq(fired, "a");
}

Test(timer, stopped_does_not_fire)
{
    timer_set(&timer[0], 1);
    timer_stop(&timer[0]);
    cr_expect_not(timer_on(&timer[0]));
    timer_stop(&timer[0]);
    unit_pass_us(HOUR_US);
    poll_loop(3);
    cr_expect_str_eq(fired, "");
}

Test(timer, set_again_counts_from_the_start)
{
    timer_set(&timer[0], 1000);
    timer_set(&timer[0], 50000);
    unit_pass_us(20000000);
    poll_loop(2);
    cr_expect_str_eq(fired, "", "the first time is forgotten");
    timer_set(&timer[0], 50000);
    unit_pass_us(35000000);
    poll_loop(2);
    cr_expect_str_eq(fired, "", "55 s from the start, but 35 from now");
    timer_set(&timer[0], 1000);
    unit_pass_us(1000000);
    poll_loop(2);
    cr_expect_str_eq(fired, "a", "a nearer time replaces too");
}

static void long_stretch(void *for_ms)
{
    unit_pass_us(100 * 1000000);
    timer_set(&timer[1], *(int64_t *)for_ms);
}

/* The loop's own time stands still while user code runs in it. */
Test(timer, set_after_a_long_stretch_in_the_loop_is_not_early)
{
    int64_t for_ms = 50000;

    timer_init(&timer[0], loop, long_stretch, &for_ms);
    timer_set(&timer[0], 0);
    for (int i = 0; i < 1000 && !timer_on(&timer[1]); i++) {
        ev_run(loop, EVRUN_ONCE);
    }

    cr_assert(timer_on(&timer[1]));
    poll_loop(3);
    cr_expect_str_eq(fired, "");
    unit_pass_us(49 * 1000000 - HOUR_US / 120); /* 19 s */
    poll_loop(3);
    cr_expect_str_eq(fired, "");
    unit_pass_us(31 * 1000000);
    poll_loop(3);
    cr_expect_str_eq(fired, "b");
}

Test(timer, set_before_the_loop_ever_ran_is_not_early)
{
    unit_pass_us(HOUR_US);
    timer_set(&timer[0], 50000);
    poll_loop(3);
    cr_expect_str_eq(fired, "");
    unit_pass_us(50000000);
    poll_loop(3);
    cr_expect_str_eq(fired, "a");
}

Test(timer, is_not_moved_by_a_step_of_the_wall_clock)
{
    poll_loop(1);
    unit_clock.wall_add_us += HOUR_US;
    timer_set(&timer[0], 50000);
    unit_pass_us(50000000);
    poll_loop(3);
    cr_expect_str_eq(fired, "a", "it waits for an hour more");
    unit_clock.wall_add_us -= 5 * HOUR_US;
    timer_set(&timer[1], 50000);
    poll_loop(3);
    cr_expect_str_eq(fired, "a");
    unit_pass_us(50000000);
    poll_loop(3);
    cr_expect_str_eq(fired, "ab");
}

static void set_again(void *self)
{
    on_fire("s");
    if (strlen(fired) < 3) {
        timer_set(self, 0);
    }
}

static bool fired_thrice(void *arg)
{
    (void)arg;
    return strlen(fired) >= 3;
}

Test(timer, may_be_set_from_its_own_callback)
{
    timer_init(&timer[0], loop, set_again, &timer[0]);
    timer_set(&timer[0], 0);
    cr_expect(loop_until(loop, fired_thrice, NULL, WAIT_MS));
    poll_loop(3);
    cr_expect_str_eq(fired, "sss");
}
