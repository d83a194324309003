/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "loop.h"
#include "unit.h"
#include <criterion/criterion.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WAIT_MS = 20000 };
#define HOUR_US ((int64_t)3600000000)

/* ---- clocks ---- */
Test(clock, us_is_the_monotonic_clock_in_microseconds)
{
    unit_clock.wall_add_us = HOUR_US;
    unit_clock.mono_at_us = 98765 * (int64_t)1000000 + 432109;
    cr_expect_eq(clock_us(), 98765432109);
    unit_clock.mono_at_us = 0;
    int64_t a = clock_us();
    int64_t b = clock_us();
    cr_expect_leq(a, b);
}

Test(clock, random_differs)
{
    uint64_t ones = 0;
    uint64_t zeros = 0;

    for (int i = 0; i < 256; i++) {
        uint64_t r = clock_random();
        ones |= r;
        zeros |= ~r;
    }

    cr_expect_eq(ones, UINT64_MAX, "each bit is 1 at times");
    cr_expect_eq(zeros, UINT64_MAX, "and 0 at times");
}

Test(clock, random_differs_at_one_moment)
{
    unit_clock.mono_at_us = 1000000;
    cr_expect_neq(clock_random(), clock_random());
}

Test(clock, random_without_entropy_is_of_the_moment_and_the_process)
{
    unit_no_entropy = true;
    unit_clock.mono_at_us = 1000000;

    uint64_t here = clock_random();
    cr_expect_eq(clock_random(), here);
    unit_clock.mono_at_us++;

    uint64_t next = clock_random();
    cr_expect_neq(next >> 32, here >> 32, "a microsecond later it is another, high and low");
    cr_expect_neq(next & UINT32_MAX, here & UINT32_MAX);
    unit_clock.mono_at_us--;

    int fds[2];
    cr_assert_eq(pipe(fds), 0);

    pid_t pid = fork();
    if (pid == 0) {
        uint64_t r = clock_random();
        _exit(write(fds[1], &r, sizeof r) != sizeof r);
    }

    uint64_t there = here;
    cr_assert_eq(read(fds[0], &there, sizeof there), (ssize_t)sizeof there);
    cr_assert_eq(waitpid(pid, NULL, 0), pid);
    cr_expect_neq(there, here, "and in another process");
    close(fds[0]);
    close(fds[1]);
}

/* ---- Redis's clock ---- */
Test(clock, server_time_and_ours_convert_both_ways)
{
    struct server_clock c = {.offset_us = -500};

    cr_expect_eq(clock_server_us(&c, 1000), 500);
    cr_expect_eq(clock_mono_us(&c, 500), 1000);
    c.offset_us = 1790000000000000;
    cr_expect_eq(clock_server_us(&c, 7), 1790000000000007);
    cr_expect_eq(clock_mono_us(&c, 1790000000000007), 7);
    cr_expect_eq(clock_mono_us(&c, 1), -1789999999999999, "before we were up");
}

/* Rows are replies to one client, in order: what was asked and heard when, what Redis said, and
 * what we then hold. */
Test(clock, keeps_the_latest_offset_that_fits_every_reply)
{
    static const struct {
        int64_t sent, heard, server, offset;
        const char *why;
    } rows[] = {
        {100, 110, 1005, 895, "the first is taken at its lower bound"},
        {120, 130, 1025, 895, "the same again"},
        {200, 5200, 1150, 895, "a stalled one has wide bounds and moves nothing"},
        {300, 305, 1204, 899, "a tighter lower bound is better"},
        {400, 420, 1310, 899, "a slow one between: within its bounds"},
        {500, 510, 1399, 899, "offset equal to the upper bound still fits"},
        {600, 610, 1509, 899, "offset equal to the lower bound too"},
        {700, 710, 1598, 888, "one over the upper bound: Redis's clock went back, by a little"},
        {800, 810, 1699, 889, "one below the lower bound: it went on"},
        {900, 910, 901805, 900895, "a step forward"},
        {1000, 9000, 905000, 900895, "stalled after it"},
        {9100, 9110, 4005, -5105, "a step back"},
        {9200, 9200, 4095, -5105, "no time at all on the way"},
    };
    struct server_clock c = {0};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        clock_heard(&c, rows[i].sent, rows[i].heard, rows[i].server);
        cr_expect(c.known);
        cr_expect_eq(c.offset_us, rows[i].offset, "row %zu: %s; it is %ld", i, rows[i].why,
                     (long)c.offset_us);
    }
}

Test(clock, says_how_far_it_moved)
{
    static const struct {
        int64_t sent, heard, server, moved;
    } rows[] = {
        {100, 110, 1005, 0}, /* the first: from nowhere */
        {200, 5200, 1150, 0},       {300, 305, 1204, 4},
        {900, 910, 901805, 899996}, {9100, 9110, 4005, -906000},
    };
    struct server_clock c = {0};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cr_expect_eq(clock_heard(&c, rows[i].sent, rows[i].heard, rows[i].server), rows[i].moved,
                     "row %zu", i);
    }
}

Test(clock, an_offset_of_zero_is_not_one_that_is_known)
{
    struct server_clock c = {0};
    clock_heard(&c, 100, 300, 200); /* 0 would fit */
    cr_expect_eq(c.offset_us, -100);
}

Test(clock, is_never_ahead_of_a_steady_server)
{
    uint64_t r = 1;

    for (int run = 0; run < 200; run++) {
        struct server_clock c = {0};
        int64_t truth = (int64_t)(unit_random(&r) >> 14) - (1ll << 49);
        int64_t now = 1000;
        int64_t tightest = INT64_MAX;
        for (int i = 0; i < 50; i++) {
            int64_t out = (int64_t)(unit_random(&r) % 1000);
            int64_t back = (int64_t)(unit_random(&r) % 1000);
            back *= unit_random(&r) % 8 ? 1 : 5000;
            clock_heard(&c, now, now + out + back, now + out + truth);
            tightest = back < tightest ? back : tightest;
            cr_assert_leq(c.offset_us, truth);
            cr_assert_geq(c.offset_us, truth - 5000 * 1000);
            now += out + back + 10;
        }
        clock_heard(&c, now, now, now + truth);
        cr_assert_eq(c.offset_us, truth, "a reply without a way has no doubt in it");
    }
}

Test(clock, a_step_is_followed_at_once_and_not_overtaken)
{
    uint64_t r = 2;

    for (int run = 0; run < 200; run++) {
        struct server_clock c = {0};
        int64_t now = 1000;
        int64_t truth = 0;
        for (int i = 0; i < 50; i++) {
            truth += (int64_t)(unit_random(&r) % (2 * HOUR_US)) - HOUR_US;
            int64_t out = (int64_t)(unit_random(&r) % 1000);
            int64_t back = (int64_t)(unit_random(&r) % 1000);
            clock_heard(&c, now, now + out + back, now + out + truth);
            cr_assert_leq(c.offset_us, truth + out);
            cr_assert_geq(c.offset_us, truth - back);
            now += out + back + 10;
        }
    }
}

/* ---- timers ---- */
static struct ev_loop *loop;
static char rung[32];
static struct timer timer[2];

static void ring(void *name)
{
    size_t n = strlen(rung);
    cr_assert_lt(n, sizeof rung - 1);
    rung[n] = *(char *)name;
}

static bool has_rung(void *name)
{
    return strchr(rung, *(char *)name) != NULL;
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
    timer_init(&timer[0], loop, ring, "a");
    timer_init(&timer[1], loop, ring, "b");
}

static void end(void)
{
    timer_stop(&timer[0]);
    timer_stop(&timer[1]);
    ev_loop_destroy(loop);
}

TestSuite(timer, .init = start, .fini = end);

Test(timer, rings_once_in_order_of_time)
{
    cr_expect_not(timer_on(&timer[0]));
    timer_set(&timer[0], 30000);
    timer_set(&timer[1], 20000);
    cr_expect(timer_on(&timer[0]) && timer_on(&timer[1]));
    poll_loop(3);
    cr_expect_str_eq(rung, "");
    unit_pass_us(20000000);
    poll_loop(3);
    cr_expect_str_eq(rung, "b");
    cr_expect_not(timer_on(&timer[1]), "it is a one-shot");
    cr_expect(timer_on(&timer[0]));
    unit_pass_us(20 * HOUR_US);
    poll_loop(3);
    cr_expect_str_eq(rung, "ba");
    unit_pass_us(20 * HOUR_US);
    poll_loop(3);
    cr_expect_str_eq(rung, "ba");
}

Test(timer, rings_by_itself)
{
    timer_set(&timer[0], 5);
    cr_expect(loop_until(loop, has_rung, "a", WAIT_MS));
    timer_set(&timer[0], 0);
    rung[0] = '\0';
    cr_expect(loop_until(loop, has_rung, "a", WAIT_MS), "in no time");
}

Test(timer, counts_in_milliseconds)
{
    timer_set(&timer[0], 40000);
    unit_pass_us(30000000);
    poll_loop(2);
    cr_expect_str_eq(rung, "");
    unit_pass_us(10000000);
    poll_loop(2);
    cr_expect_str_eq(rung, "a");
}

Test(timer, stopped_does_not_ring)
{
    timer_set(&timer[0], 1);
    timer_stop(&timer[0]);
    cr_expect_not(timer_on(&timer[0]));
    timer_stop(&timer[0]);
    unit_pass_us(HOUR_US);
    poll_loop(3);
    cr_expect_str_eq(rung, "");
}

Test(timer, set_again_counts_anew)
{
    timer_set(&timer[0], 1000);
    timer_set(&timer[0], 50000);
    unit_pass_us(20000000);
    poll_loop(2);
    cr_expect_str_eq(rung, "", "the first time is forgotten");
    timer_set(&timer[0], 50000);
    unit_pass_us(35000000);
    poll_loop(2);
    cr_expect_str_eq(rung, "", "55 s from the start, but 35 from now");
    timer_set(&timer[0], 1000);
    unit_pass_us(1000000);
    poll_loop(2);
    cr_expect_str_eq(rung, "a", "a nearer time replaces too");
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
    cr_expect_str_eq(rung, "");
    unit_pass_us(49 * 1000000 - HOUR_US / 120); /* 19 s */
    poll_loop(3);
    cr_expect_str_eq(rung, "");
    unit_pass_us(31 * 1000000);
    poll_loop(3);
    cr_expect_str_eq(rung, "b");
}

Test(timer, set_before_the_loop_ever_ran_is_not_early)
{
    unit_pass_us(HOUR_US);
    timer_set(&timer[0], 50000);
    poll_loop(3);
    cr_expect_str_eq(rung, "");
    unit_pass_us(50000000);
    poll_loop(3);
    cr_expect_str_eq(rung, "a");
}

Test(timer, is_not_moved_by_a_step_of_the_wall_clock)
{
    poll_loop(1);
    unit_clock.wall_add_us += HOUR_US;
    timer_set(&timer[0], 50000);
    unit_pass_us(50000000);
    poll_loop(3);
    cr_expect_str_eq(rung, "a", "it waits for an hour more");
    unit_clock.wall_add_us -= 5 * HOUR_US;
    timer_set(&timer[1], 50000);
    poll_loop(3);
    cr_expect_str_eq(rung, "a");
    unit_pass_us(50000000);
    poll_loop(3);
    cr_expect_str_eq(rung, "ab");
}

static void set_again(void *self)
{
    ring("s");
    if (strlen(rung) < 3) {
        timer_set(self, 0);
    }
}

static bool rung_thrice(void *arg)
{
    (void)arg;
    return strlen(rung) >= 3;
}

Test(timer, may_be_set_from_its_own_ring)
{
    timer_init(&timer[0], loop, set_again, &timer[0]);
    timer_set(&timer[0], 0);
    cr_expect(loop_until(loop, rung_thrice, NULL, WAIT_MS));
    poll_loop(3);
    cr_expect_str_eq(rung, "sss");
}
