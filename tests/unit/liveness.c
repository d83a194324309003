/* SPDX-License-Identifier: MIT */
#include "redis/liveness.h"
#include "unit.h"
#include <criterion/criterion.h>

enum { REPLY_MS = 1000, START_US = 50000000, SECOND_LOOK_US = 20000 };

static struct liveness l;

static void start(void)
{
    unit_clock.mono_at_us = START_US;
    liveness_init(&l, REPLY_MS);
    liveness_start(&l);
}

TestSuite(liveness, .init = start);

Test(liveness, asks_after_half_of_reply_ms_of_silence)
{
    cr_expect_eq(liveness_ask_at_us(&l), START_US + 500000);
    unit_clock.mono_at_us += 300000;
    liveness_heard(&l);
    cr_expect_eq(liveness_ask_at_us(&l), START_US + 800000);
}

Test(liveness, owes_an_answer_only_until_something_is_heard)
{
    cr_expect_eq(liveness_owed_since_us(&l), 0);
    unit_clock.mono_at_us += 500000;
    liveness_asked(&l);
    cr_expect_eq(liveness_owed_since_us(&l), START_US + 500000);
    unit_clock.mono_at_us += 1;
    liveness_heard(&l);
    cr_expect_eq(liveness_owed_since_us(&l), 0);
}

Test(liveness, ends_after_reply_ms_of_silence_and_half_of_it_after_it_was_asked)
{
    cr_expect_eq(liveness_deadline_us(&l, START_US), START_US + 1000000 - SECOND_LOOK_US);
    cr_expect_eq(liveness_deadline_us(&l, START_US + 500000), START_US + 1000000 - SECOND_LOOK_US);
    cr_expect_eq(liveness_deadline_us(&l, START_US + 900000), START_US + 1400000 - SECOND_LOOK_US,
                 "it was silent, and then asked");
    unit_clock.mono_at_us += 700000;
    liveness_heard(&l);
    cr_expect_eq(liveness_deadline_us(&l, START_US), START_US + 1700000 - SECOND_LOOK_US);
}

Test(liveness, looks_twice_before_it_gives_up)
{
    int64_t deadline_us = START_US + 10500;

    cr_expect_eq(liveness_wait_ms(&l, deadline_us), 11, "rounded up");
    unit_clock.mono_at_us += 10500;
    cr_expect_eq(liveness_wait_ms(&l, deadline_us), 20);
    unit_clock.mono_at_us += 20000;
    cr_expect_eq(liveness_wait_ms(&l, deadline_us), 0);
}

Test(liveness, is_proved_by_anything_heard_between_the_two_looks)
{
    int64_t deadline_us = START_US;

    cr_expect_eq(liveness_wait_ms(&l, deadline_us), 20);
    liveness_heard(&l);
    cr_expect_eq(liveness_wait_ms(&l, deadline_us), 20);
    liveness_moved(&l);
    cr_expect_eq(liveness_wait_ms(&l, deadline_us), 20);
    liveness_start(&l);
    cr_expect_eq(liveness_wait_ms(&l, deadline_us), 20);
    cr_expect_eq(liveness_wait_ms(&l, deadline_us), 0);
}

Test(liveness, of_a_full_socket_that_takes_more_lasts_for_reply_ms)
{
    cr_expect_not(liveness_moving(&l));
    liveness_moved(&l);
    cr_expect(liveness_moving(&l));
    cr_expect_eq(liveness_ask_at_us(&l), START_US + 500000, "it was a sign of life");
    unit_clock.mono_at_us += 999999;
    liveness_start(&l);
    cr_expect(liveness_moving(&l), "also of the connection before");
    unit_clock.mono_at_us += 1;
    cr_expect_not(liveness_moving(&l));
}
