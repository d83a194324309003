/* SPDX-License-Identifier: MIT */
/* arm, and the other scripts with arm_ahead_ms behind the database. */
#include "script.h"

SCRIPTS(arm);

Test(arm, a_job_due_later_than_that_has_no_trigger_yet)
{
    given("schedule", "'0 50' a +50 0 " REC " b +51 0 " REC);
    KEYS("due a:T+50 b:T+51 | jobs a=" REC " b=" REC " | t a:T+49");
    given("reschedule", "'0 50' a +51 0 b +50 0");
    KEYS("due b:T+50 a:T+51 | jobs a=" REC " b=" REC " | t b:T+49");
    given("schedule", "'0 50' b +51 2 " REC);
    KEYS("due a:T+51 b:T+51 | jobs a=" REC " b=" REC);
}

Test(arm, a_job_put_back_for_later_than_that_has_none_either)
{
    given("schedule", "0 a +0 0 " REC " b +0 0 " REC);
    given("claim", "0 me 1000 10");
    given("retry", "'0 50' me a U+1 51 x b U+2 50 x");
    KEYS("due b:T+50 a:T+51 | jobs a=" REC " b=" REC
         " | attempts a=1 U+1 me 1 10 U T+51 x b=1 U+2 me 1 10 U T+50 x | seq U+2 | t b:T+49");
}

Test(arm, sets_what_came_near_and_leaves_what_is_set)
{
    given("schedule", "'0 50' a +50 0 " REC " b +51 0 " REC " c +52 0 " REC);
    ask("SET s:{q}:t:a 1 PXAT %s", text("%" PRId64, T + 7));
    now_at(1);
    RUN("arm", "'0 50' 0", "[U+1000 T+51 0]");
    KEYS("due a:T+50 b:T+51 c:T+52 | jobs a=" REC " b=" REC " c=" REC " | t a:T+7 b:T+50");
    now_at(2);
    ask("DEL s:{q}:t:b");
    RUN("arm", "'0 50' T+51", "[U+2000 T+52 0]");
    KEYS("due a:T+50 b:T+51 c:T+52 | jobs a=" REC " b=" REC " c=" REC " | t a:T+7 c:T+51");
}

Test(arm, leaves_out_what_is_due_already)
{
    given("schedule", "'0 5' a +6 0 " REC " b +7 0 " REC);
    now_at(6);
    RUN("arm", "'0 5' 0", "[U+6000 T+11 0]");
    KEYS("due a:T+6 b:T+7 | jobs a=" REC " b=" REC " | t b:T+7");
}

static void far(int first, int n, int due)
{
    for (int i = first; i < first + n; i++) {
        given("schedule", text("'0 1' j%03d +%d 0 " REC, i, due));
    }
}

static long long triggers(void)
{
    return (long long)ask("KEYS s:{q}:t:*")->elements;
}

Test(arm, goes_on_after_a_hundred_with_those_of_the_same_millisecond)
{
    far(0, 60, 10);
    far(60, 90, 11);
    RUN("arm", "'0 20' T+9", "[U T+10 1]");
    cr_assert_eq(triggers(), 100);
    RUN("arm", "'0 20' T+10", "[U T+20 0]");
    cr_assert_eq(triggers(), 150);
}

Test(arm, leaves_what_is_over_a_hundred_in_one_millisecond_to_the_alarm)
{
    far(0, 120, 10);
    RUN("arm", "'0 20' 0", "[U T+9 1]");
    RUN("arm", "'0 20' T+9", "[U T+10 1]");
    RUN("arm", "'0 20' T+10", "[U T+20 0]");
    cr_assert_eq(triggers(), 100);
}
