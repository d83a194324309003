/* SPDX-License-Identifier: MIT */
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
static struct alarm a;
static int rung;
static int64_t at_ring_us;
static bool again;

static void ring(void *arg)
{
    cr_expect_eq(arg, &rung);
    cr_expect_eq(a.at_us, 0, "it is off when it rings");
    at_ring_us = clock_us();
    rung++;
    if (again && rung < 3) {
        alarm_set(&a, 1);
    }
}

static bool has_rung(void *times)
{
    return rung >= *(int *)times;
}

/* Does it ring, once, and not before that moment? */
static bool rings(int64_t at_us)
{
    int next = rung + 1;
    return loop_until(loop, has_rung, &next, WAIT_MS) && rung == next && at_ring_us >= at_us;
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
    alarm_init(&a, loop, ring, &rung);
}

static void end(void)
{
    alarm_close(&a);
    ev_loop_destroy(loop);
}

TestSuite(alarm, .init = start, .fini = end);

Test(alarm, rings_once_and_never_before_its_moment)
{
    cr_expect_eq(a.at_us, 0);
    poll_loop(3);
    cr_expect_eq(rung, 0, "it was not set");
    for (int i = 0; i < 20; i++) {
        int64_t at = clock_us() + 300 * i;
        alarm_set(&a, at);
        cr_expect_eq(a.at_us, at);
        cr_assert(rings(at));
    }

    poll_loop(3);
    cr_expect_eq(rung, 20);
}

Test(alarm, keeps_to_the_fraction_of_the_second)
{
    int64_t at = clock_us() / 1000000 * 1000000 + 1999999;
    alarm_set(&a, at);
    cr_assert(rings(at));
}

Test(alarm, of_a_past_moment_rings_at_once)
{
    const int64_t past[] = {1,  999999,  1000000,  clock_us() - 1,
                            -1, -999999, -1000000, -HOUR_US * 24 * 365 * 50};

    for (size_t i = 0; i < sizeof past / sizeof *past; i++) {
        alarm_set(&a, past[i]);
        cr_assert(rings(0), "%ld", (long)past[i]);
    }
}

Test(alarm, set_again_rings_at_the_new_moment_alone)
{
    int64_t at = clock_us() + 60000;

    alarm_set(&a, 1);
    alarm_set(&a, at);
    cr_expect(rings(at));
    alarm_set(&a, clock_us() + HOUR_US);
    alarm_set(&a, at = clock_us() + 1000);
    cr_expect(rings(at), "a nearer moment");
    poll_loop(3);
    cr_expect_eq(rung, 2);
}

Test(alarm, of_the_same_moment_stays_set)
{
    int64_t at = clock_us() + 2000;

    alarm_set(&a, at);
    alarm_set(&a, at);
    cr_expect(rings(at));
    alarm_set(&a, at);
    cr_expect(rings(at), "and may be set again when it has rung");
}

/* What the kernel says that is left, between two looks at the clock. */
Test(alarm, is_set_to_the_microsecond_and_once)
{
    struct itimerspec left;
    int64_t at = clock_us() + 24 * 100 * HOUR_US + 123456;

    alarm_set(&a, at);
    int64_t most_us = at - clock_us();
    cr_assert_eq(timerfd_gettime(a.fd, &left), 0);
    int64_t least_us = at - clock_us() - 1;
    int64_t left_us = left.it_value.tv_sec * 1000000 + left.it_value.tv_nsec / 1000;
    cr_expect(left_us >= least_us && left_us <= most_us, "%ld", (long)left_us);
    cr_expect(left.it_interval.tv_sec == 0 && left.it_interval.tv_nsec == 0,
              "it would wake the loop for ever");
}

/* As a daemon has it that closed its stdin. */
Test(alarm, may_have_descriptor_0)
{
    alarm_close(&a);
    close(0);
    alarm_init(&a, loop, ring, &rung);
    cr_assert_eq(a.fd, 0);
    alarm_set(&a, clock_us() + HOUR_US);
    cr_expect_not(timer_on(&a.coarse));
    alarm_set(&a, 1);
    cr_expect(rings(0));
    alarm_close(&a);
    cr_expect_eq(fcntl(0, F_GETFD), -1, "its descriptor is open");
}

Test(alarm, turned_off_does_not_ring)
{
    alarm_set(&a, clock_us() + 1000);
    alarm_set(&a, 0);
    cr_expect_eq(a.at_us, 0);
    cr_expect_not(over(50));
    alarm_set(&a, 1);
    cr_assert(over(WAIT_MS));
    alarm_set(&a, 0); /* it is over, but the loop has not seen it */
    cr_expect_not(over(0));
    poll_loop(3);
    cr_expect_eq(rung, 0);
}

/* What the loop found in one turn it tells one by one: an earlier one may have set the alarm anew.
 */
Test(alarm, set_anew_between_its_end_and_the_ring_does_not_ring)
{
    alarm_set(&a, 1);
    cr_assert(over(WAIT_MS));
    ev_feed_event(loop, &a.io, EV_READ);
    alarm_set(&a, clock_us() + HOUR_US);
    ev_invoke_pending(loop);
    cr_expect_eq(rung, 0);
    alarm_set(&a, 1);
    cr_assert(over(WAIT_MS));
    ev_feed_event(loop, &a.io, EV_READ);
    alarm_set(&a, 0);
    ev_invoke_pending(loop);
    cr_expect_eq(rung, 0);
}

Test(alarm, may_be_set_from_its_own_ring)
{
    int all = 3;

    again = true;
    alarm_set(&a, 1);
    cr_expect(loop_until(loop, has_rung, &all, WAIT_MS));
    poll_loop(3);
    cr_expect_eq(rung, 3);
}

Test(alarm, closed_does_not_ring_and_gives_its_descriptor_back)
{
    int fd = a.fd;

    cr_assert_geq(fd, 0);
    cr_expect(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    cr_expect(fcntl(fd, F_GETFL) & O_NONBLOCK);
    alarm_set(&a, 1);
    cr_assert(over(WAIT_MS));
    alarm_close(&a);
    cr_expect_eq(a.fd, -1);
    cr_expect_eq(fcntl(fd, F_GETFD), -1, "its descriptor is open");
    poll_loop(3);
    cr_expect_eq(rung, 0);
    alarm_close(&a);
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
    alarm_init(&a, loop, ring, &rung);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &had), 0);
    cr_assert_eq(a.fd, -1);
}

TestSuite(coarse_alarm, .init = start_coarse, .fini = end);

Test(coarse_alarm, rings_once_in_the_millisecond_after_its_moment)
{
    for (int64_t at = 1040000000; at < 1040002000; at += 100) {
        int had = rung;
        unit_clock.mono_at_us = 1000000000;
        alarm_set(&a, at);
        unit_clock.mono_at_us = at - 1;
        poll_loop(3);
        cr_assert_eq(rung, had, "%ld", (long)at);
        unit_clock.mono_at_us = at + 1002;
        poll_loop(3);
        cr_assert_eq(rung, had + 1, "%ld", (long)at);
        unit_clock.mono_at_us += HOUR_US;
        poll_loop(3);
        cr_assert_eq(rung, had + 1, "%ld", (long)at);
    }
}

Test(coarse_alarm, is_late_by_part_of_a_millisecond_rather_than_early)
{
    for (int i = 0; i < 20; i++) {
        int64_t at = clock_us() + 37 * i + 999;
        alarm_set(&a, at);
        cr_assert(rings(at));
    }
}

Test(coarse_alarm, of_a_past_moment_rings_at_once)
{
    const int64_t past[] = {1, 5000000, 1000000000 - HOUR_US, -HOUR_US * 24 * 365 * 50};

    for (size_t i = 0; i < sizeof past / sizeof *past; i++) {
        unit_clock.mono_at_us = 1000000000;
        alarm_set(&a, past[i]);
        unit_clock.mono_at_us += 2;
        poll_loop(3);
        cr_expect_eq(rung, (int)i + 1, "%ld", (long)past[i]);
    }
}

Test(coarse_alarm, set_again_or_off_forgets_the_moment_before)
{
    alarm_set(&a, clock_us() + 10 * 1000000);
    alarm_set(&a, clock_us() + HOUR_US);
    unit_pass_us(20 * 1000000);
    poll_loop(3);
    cr_expect_eq(rung, 0);
    alarm_set(&a, 0);
    unit_pass_us(2 * HOUR_US);
    poll_loop(3);
    cr_expect_eq(rung, 0);
}

Test(coarse_alarm, closed_does_not_ring)
{
    alarm_set(&a, clock_us() + 1000000);
    alarm_close(&a);
    unit_pass_us(HOUR_US);
    poll_loop(3);
    cr_expect_eq(rung, 0);
}
