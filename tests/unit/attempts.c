/* SPDX-License-Identifier: MIT */
#include "redis/attempts.h"
#include "unit.h"
#include <criterion/criterion.h>

enum { REPLY_MS = 5000 };

Test(attempts, back_off_grows_to_half_a_second)
{
    static const struct {
        unsigned n_failed;
        int64_t ms;
    } rows[] = {{0, 8}, {1, 64}, {2, 128}, {7, 448}, {8, 500}, {1000000, 500}, {UINT32_MAX, 500}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct attempts a = {.n_failed = rows[i].n_failed};
        cr_expect_eq(attempts_backoff_ms(&a), rows[i].ms, "after %u", rows[i].n_failed);
    }
}

Test(attempts, of_what_was_never_reached_have_their_share_of_reply_ms)
{
    struct attempts a = {.n_failed = 3};

    cr_expect_eq(attempts_patience_ms(&a, 0, REPLY_MS), REPLY_MS, "a Unix socket");
    cr_expect_eq(attempts_patience_ms(&a, 1, REPLY_MS), REPLY_MS);
    cr_expect_eq(attempts_patience_ms(&a, 2, REPLY_MS), REPLY_MS / 2);
    cr_expect_eq(attempts_patience_ms(&a, 8, REPLY_MS), REPLY_MS / 8);
    cr_expect_eq(attempts_patience_ms(&a, 8, 800), 800, "a share would be too short");
}

Test(attempts, of_what_was_reached_wait_not_for_the_kernel_to_send_again)
{
    static const struct {
        unsigned n_failed;
        int64_t reached_ms, patience_ms;
    } rows[] = {
        {0, 1, 404},    {1, 1, 404},     {7, 1, 404},     {8, 1, 808},    {9, 1, 404},
        {16, 1, 808},   {32, 1, 808},    {64, 1, 5000},   {128, 1, 5000}, {0, 500, 2400},
        {8, 500, 4800}, {0, 2000, 5000}, {8, 1000, 5000},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct attempts a = {.n_failed = rows[i].n_failed, .reached_ms = rows[i].reached_ms};
        cr_expect_eq(attempts_patience_ms(&a, 1, REPLY_MS), rows[i].patience_ms, "row %zu", i);
    }
}

Test(attempts, remember_how_long_it_took_to_connect)
{
    struct attempts a = {.reached_ms = 0};

    unit_clock.mono_at_us = 1000000;
    attempts_reached(&a, 1000000);
    cr_expect_eq(a.reached_ms, 1, "0 would mean never");
    attempts_reached(&a, 1000000 - 30000);
    cr_expect_eq(a.reached_ms, 31);
}

Test(attempts, are_forgotten_once_a_second_at_most)
{
    struct attempts a = {.n_failed = 5};

    unit_clock.mono_at_us = 10000000;
    attempts_worked(&a);
    cr_expect_eq(a.n_failed, 0);
    a.n_failed = 5;
    unit_clock.mono_at_us += 1000000;
    attempts_worked(&a);
    cr_expect_eq(a.n_failed, 5);
    unit_clock.mono_at_us += 1;
    attempts_worked(&a);
    cr_expect_eq(a.n_failed, 0);
}

Test(attempts, at_what_does_not_speak_like_redis_are_not_in_a_hurry)
{
    struct attempts a = {.n_failed = 0};

    attempts_garbled(&a);
    cr_expect_eq(a.n_failed, 4);
    a.n_failed = 9;
    attempts_garbled(&a);
    cr_expect_eq(a.n_failed, 9);
}
