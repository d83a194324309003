/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "unit.h"
#include <criterion/criterion.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOUR_US ((int64_t)3600000000)

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
