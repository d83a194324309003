/* SPDX-License-Identifier: MIT */
#include "base/exact_timer.h"
#include "base/clock.h"
#include "loop.h"
#include "unit.h"
#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { WAIT_MS = 20000 };
#define HOUR_US ((int64_t)3600000000)

static struct ev_loop *loop;
static struct exact_timer a;
static int fired;
static int64_t fired_at_us;
static bool again;

static void on_fire(void *arg)
{
    cr_expect_eq(arg, &fired);
    cr_expect_eq(a.at_us, 0, "it is off when it fires");
    fired_at_us = clock_us();
    fired++;
    if (again && fired < 3) {
        exact_timer_set(&a, 1);
    }
}

static bool has_fired(void *times)
{
    return fired >= *(int *)times;
}

/* Does it on_fire, once, and not before that moment? */
static bool fires(int64_t at_us)
{
    int next = fired + 1;
    return loop_until(loop, has_fired, &next, WAIT_MS) && fired == next && fired_at_us >= at_us;
}

static void poll_loop(int times)
{
    while (times--) {
        ev_run(loop, EVRUN_NOWAIT);
    }
}

/* Its descriptor says that it is over, whether the loop knows or not. */
static bool over(int timeout_ms)
{
    struct pollfd p = {.fd = a.fd, .events = POLLIN};
    return poll(&p, 1, timeout_ms) == 1;
}

static void start(void)
{
    loop = ev_loop_new(0);
    memset(&a, 0x5a, sizeof a);
    exact_timer_init(&a, loop, on_fire, &fired);
}

static void end(void)
{
    exact_timer_close(&a);
    ev_loop_destroy(loop);
}

TestSuite(exact_timer, .init = start, .fini = end);

Test(exact_timer, fires_once_and_never_before_its_moment)
{
    cr_expect_eq(a.at_us, 0);
    poll_loop(3);
    cr_expect_eq(fired, 0, "it was not set");
    for (int i = 0; i < 20; i++) {
        int64_t at = clock_us() + 300 * i;
        exact_timer_set(&a, at);
        cr_expect_eq(a.at_us, at);
        cr_assert(fires(at));
    }

    poll_loop(3);
    cr_expect_eq(fired, 20);
}

Test(exact_timer, keeps_to_the_fraction_of_the_second)
{
    int64_t at = clock_us() / 1000000 * 1000000 + 1999999;
    exact_timer_set(&a, at);
    cr_assert(fires(at));
}

Test(exact_timer, of_a_past_moment_fires_at_once)
{
    const int64_t past[] = {1,  999999,  1000000,  clock_us() - 1,
                            -1, -999999, -1000000, -HOUR_US * 24 * 365 * 50};

    for (size_t i = 0; i < sizeof past / sizeof *past; i++) {
        exact_timer_set(&a, past[i]);
        cr_assert(fires(0), "%ld", (long)past[i]);
    }
}

Test(exact_timer, set_again_fires_at_the_new_moment_alone)
{
    int64_t at = clock_us() + 60000;

    exact_timer_set(&a, 1);
    exact_timer_set(&a, at);
    cr_expect(fires(at));
    exact_timer_set(&a, clock_us() + HOUR_US);
    exact_timer_set(&a, at = clock_us() + 1000);
    cr_expect(fires(at), "a nearer moment");
    poll_loop(3);
    cr_expect_eq(fired, 2);
}

Test(exact_timer, of_the_same_moment_stays_set)
{
    int64_t at = clock_us() + 2000;

    exact_timer_set(&a, at);
    exact_timer_set(&a, at);
    cr_expect(fires(at));
    exact_timer_set(&a, at);
    cr_expect(fires(at), "and may be set again when it has rung");
}

/* What the kernel says that is left, between two looks at the clock. */
Test(exact_timer, is_set_to_the_microsecond_and_once)
{
    struct itimerspec left;
    int64_t at = clock_us() + 24 * 100 * HOUR_US + 123456;

    exact_timer_set(&a, at);
    int64_t most_us = at - clock_us();
    cr_assert_eq(timerfd_gettime(a.fd, &left), 0);
    int64_t least_us = at - clock_us() - 1;
    int64_t left_us = left.it_value.tv_sec * 1000000 + left.it_value.tv_nsec / 1000;
    cr_expect(left_us >= least_us && left_us <= most_us, "%ld", (long)left_us);
    cr_expect(left.it_interval.tv_sec == 0 && left.it_interval.tv_nsec == 0,
              "it would wake the loop again and again");
}

/* As a daemon has it that closed its stdin. */
Test(exact_timer, may_have_descriptor_0)
{
    exact_timer_close(&a);
    close(0);
    exact_timer_init(&a, loop, on_fire, &fired);
    cr_assert_eq(a.fd, 0);
    exact_timer_set(&a, clock_us() + HOUR_US);
    cr_expect_not(timer_on(&a.coarse));
    exact_timer_set(&a, 1);
    cr_expect(fires(0));
    exact_timer_close(&a);
    cr_expect_eq(fcntl(0, F_GETFD), -1, "its descriptor is open");
}

Test(exact_timer, turned_off_does_not_fire)
{
    exact_timer_set(&a, clock_us() + 1000);
    exact_timer_set(&a, 0);
    cr_expect_eq(a.at_us, 0);
    cr_expect_not(over(50));
    exact_timer_set(&a, 1);
    cr_assert(over(WAIT_MS));
    exact_timer_set(&a, 0); /* it is over, but the loop has not seen it */
    cr_expect_not(over(0));
    poll_loop(3);
    cr_expect_eq(fired, 0);
}

/* The loop calls back for each timer that it found to be over; an earlier callback may have set
 * this one again. */
Test(exact_timer, set_again_when_it_is_over_and_before_it_fires_does_not_fire)
{
    exact_timer_set(&a, 1);
    cr_assert(over(WAIT_MS));
    ev_feed_event(loop, &a.io, EV_READ);
    exact_timer_set(&a, clock_us() + HOUR_US);
    ev_invoke_pending(loop);
    cr_expect_eq(fired, 0);
    exact_timer_set(&a, 1);
    cr_assert(over(WAIT_MS));
    ev_feed_event(loop, &a.io, EV_READ);
    exact_timer_set(&a, 0);
    ev_invoke_pending(loop);
    cr_expect_eq(fired, 0);
}

Test(exact_timer, may_be_set_from_its_own_callback)
{
    int all = 3;

    again = true;
    exact_timer_set(&a, 1);
    cr_expect(loop_until(loop, has_fired, &all, WAIT_MS));
    poll_loop(3);
    cr_expect_eq(fired, 3);
}

Test(exact_timer, closed_does_not_fire_and_gives_its_descriptor_back)
{
    int fd = a.fd;

    cr_assert_geq(fd, 0);
    cr_expect(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    cr_expect(fcntl(fd, F_GETFL) & O_NONBLOCK);
    exact_timer_set(&a, 1);
    cr_assert(over(WAIT_MS));
    exact_timer_close(&a);
    cr_expect_eq(a.fd, -1);
    cr_expect_eq(fcntl(fd, F_GETFD), -1, "its descriptor is open");
    poll_loop(3);
    cr_expect_eq(fired, 0);
    exact_timer_close(&a);
}

/* Without a descriptor to have, timerfd_create(2) fails. */
static void start_coarse(void)
{
    struct rlimit had;
    struct rlimit none;

    loop = ev_loop_new(0);
    ev_run(loop, EVRUN_NOWAIT); /* libev has its own by now */
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &had), 0);
    none = had;
    none.rlim_cur = 0;
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    memset(&a, 0x5a, sizeof a);
    exact_timer_init(&a, loop, on_fire, &fired);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &had), 0);
    cr_assert_eq(a.fd, -1);
}

TestSuite(exact_timer_coarse, .init = start_coarse, .fini = end);

Test(exact_timer_coarse, fires_once_in_the_millisecond_after_its_moment)
{
    for (int64_t at = 1040000000; at < 1040002000; at += 100) {
        int had = fired;
        unit_clock.mono_at_us = 1000000000;
        exact_timer_set(&a, at);
        unit_clock.mono_at_us = at - 1;
        poll_loop(3);
        cr_assert_eq(fired, had, "%ld", (long)at);
        unit_clock.mono_at_us = at + 1002;
        poll_loop(3);
        cr_assert_eq(fired, had + 1, "%ld", (long)at);
        unit_clock.mono_at_us += HOUR_US;
        poll_loop(3);
        cr_assert_eq(fired, had + 1, "%ld", (long)at);
    }
}

Test(exact_timer_coarse, is_late_by_part_of_a_millisecond_rather_than_early)
{
    for (int i = 0; i < 20; i++) {
        int64_t at = clock_us() + 37 * i + 999;
        exact_timer_set(&a, at);
        cr_assert(fires(at));
    }
}

Test(exact_timer_coarse, of_a_past_moment_fires_at_once)
{
    const int64_t past[] = {1, 5000000, 1000000000 - HOUR_US, -HOUR_US * 24 * 365 * 50};

    for (size_t i = 0; i < sizeof past / sizeof *past; i++) {
        unit_clock.mono_at_us = 1000000000;
        exact_timer_set(&a, past[i]);
        unit_clock.mono_at_us += 2;
        poll_loop(3);
        cr_expect_eq(fired, (int)i + 1, "%ld", (long)past[i]);
    }
}

Test(exact_timer_coarse, set_again_or_off_forgets_the_moment_before)
{
    exact_timer_set(&a, clock_us() + 10 * 1000000);
    exact_timer_set(&a, clock_us() + HOUR_US);
    unit_pass_us(20 * 1000000);
    poll_loop(3);
    cr_expect_eq(fired, 0);
    exact_timer_set(&a, 0);
    unit_pass_us(2 * HOUR_US);
    poll_loop(3);
    cr_expect_eq(fired, 0);
}

Test(exact_timer_coarse, closed_does_not_fire)
{
    exact_timer_set(&a, clock_us() + 1000000);
    exact_timer_close(&a);
    unit_pass_us(HOUR_US);
    poll_loop(3);
    cr_expect_eq(fired, 0);
}
