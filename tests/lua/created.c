/* SPDX-License-Identifier: MIT */
/* When a job was first scheduled: the attribute m of its record. */
#include "script.h"

SCRIPTS(created);

/* A header that asks for it, and the same when Redis has put a time in. */
#define ASKS "\\02\\00\\0fm\\0d0000000000000"
#define OF(when) "\\02\\00\\0fm\\0d" when
#define MADE(due, when) "['a' 1 " due " '' '" OF(when) "' 1]"

/* Its header x has what the attribute would look like; that of another version is not read. */
Test(created, is_put_into_no_record_that_does_not_ask)
{
    static const char *const records[] = {
        "\\02\\00\\13h\\11x=m\\0d0000000000000body",
        "\\02\\00\\12X\\10m\\0d0000000000000xbody",
    };

    for (size_t i = 0; i < sizeof records / sizeof *records; i++) {
        RUN("schedule", text("0 a +50 0 '%s'", records[i]), "[U T+50]");
        KEYS(text("due a:T+50 | jobs a=%s | t a:T+49", records[i]));
        ask("FLUSHALL");
    }
}

Test(created, redis_puts_its_time_into_the_record_and_answers_it)
{
    RUN("schedule", "0 a +5 0 " ASKS "one b +6 0 " REC "two", "[U " MADE("T+5", "T") " T+6]");
    KEYS("due a:T+5 b:T+6 | jobs a=" OF("T") "one b=" REC "two | t a:T+4 b:T+5");
    now_at(5);
    RUN("get", "0 a", "[U+5000 ['a' 1 T+5 '' '" OF("T") "one']]");
    RUN("claim", "0 me 1000 1",
        "[U+5000 0 T+6 0 0 0 0 ['a' 2 T+1005 '1 U+5001 me 1 10 U+5000 T+5 ' '" OF("T") "one' 0]]");
    given("done", "0 me a U+5001");
    given("cancel", "0 b 0");
}

/* A value of this form among the headers, or in the body, is none of ours. */
Test(created, no_other_digits_of_the_record_are_a_time)
{
    static const char record[] = "\\02\\00\\31h\\11x=m\\0d1111111111111m\\0d%sr\\0d2222222222222m"
                                 "\\0d3333333333333";
    static const char stored[] = "'\\02\\001h\\11x=m\\0d1111111111111m\\0d%sr\\0d2222222222222m"
                                 "\\0d3333333333333'";

    given("schedule", text("0 a +5 0 %s", text(record, "0000000000000")));
    same(__FILE__, __LINE__, "record", show(ask("HGET s:{q}:jobs a")), text(stored, "T"));
    given("cancel", "0 a 0");
}

/* Who schedules cannot say that it was another time; and what is no time stays as it is. */
Test(created, it_is_no_argument)
{
    RUN("schedule", "0 a +5 0 \\02\\00\\0fm\\0d1234567890123", "[U " MADE("T+5", "T") "]");
    RUN("schedule", "0 b +5 0 \\02\\00\\03m\\01x c +5 0 \\02\\00\\0fm\\0d000000000000x",
        "[U T+5 T+5]");
    KEYS("due a:T+5 b:T+5 c:T+5 | jobs a=" OF(
        "T") " b=\\02\\00\\03m\\01x c=\\02\\00\\0fm\\0d000000000000x | t a:T+4 b:T+4 c:T+4");
    given("cancel", "0 a 0 b 0 c 0");
}

Test(created, stays_through_all_that_leaves_the_job_the_life_that_it_has)
{
    given("schedule", "0 a +5 0 " ASKS);
    now_at(1);
    RUN("schedule", "0 a +9 1 " ASKS, "[U+1000 ['a' 1 T+5 '' '" OF("T") "']]");
    RUN("schedule", "0 a +9 4 " ASKS, "[U+1000 ['a' 1 T+10 '' '" OF("T") "' 2]]");
    RUN("schedule", "0 a +7 3 " ASKS, "[U+1000 ['a' 1 T+8 '' '" OF("T") "' 2]]");
    RUN("schedule", "0 a +9 5 " ASKS "x", "[U+1000 ['a' 1 T+10 '' '" OF("T") "' 2]]");
    RUN("reschedule", "0 a +1 0", "[U+1000 ['a' 1 T+2 '' '" OF("T") "']]");
    now_at(2);
    given("claim", "0 me 1000 0 a");
    given("retry", "0 me a U+2001 8 why");
    RUN("schedule", "0 a +9 5 " ASKS "y", "[U+2000 ['a' 1 T+11 '' '" OF("T") "' 2]]");
    given("kill", "0 a why");
    given("reschedule", "0 a +9 0");
    KEYS("due a:T+11 | jobs a=" OF("T") "y | seq U+2001 | t a:T+10");
    given("cancel", "0 a 0");
}

Test(created, is_another_in_a_new_life)
{
    given("schedule", "0 a +5 0 " ASKS);
    now_at(1);
    RUN("schedule", "0 a +5 2 " ASKS, "[U+1000 " MADE("T+6", "T+1") "]");
    given("kill", "0 a why");
    now_at(2);
    RUN("schedule", "0 a +5 5 " ASKS, "[U+2000 " MADE("T+7", "T+2") "]");
    given("cancel", "0 a 0");
}

/* A debounced job that has not asked has no time, and then that of the first call that asks. */
Test(created, of_a_job_that_has_not_asked_the_next_call_says)
{
    given("schedule", "0 a +5 5 " REC);
    now_at(1);
    RUN("schedule", "0 a +5 5 " ASKS, "[U+1000 ['a' 1 T+6 '' '" OF("T+1") "' 2]]");
    now_at(2);
    RUN("schedule", "0 a +5 5 " ASKS, "[U+2000 ['a' 1 T+7 '' '" OF("T+1") "' 2]]");
    RUN("schedule", "0 a +5 5 " REC, "[U+2000 ['a' 1 T+7 '' '" REC "' 2]]");
    given("schedule", "0 a +5 5 '\\02\\00\\03T\\01t'");
    RUN("schedule", "0 a +5 5 " ASKS, "[U+2000 ['a' 1 T+7 '' '" OF("T+2") "' 2]]");
    given("cancel", "0 a 0");
}

/* What follows a run is a life of its own, and like a job that waits. */
Test(created, of_the_life_after_a_run_is_when_that_was_first_asked_for)
{
    given("schedule", "0 a +0 0 " ASKS);
    given("claim", "0 me 1000 0 a");
    now_at(1);
    RUN("schedule", "0 a +50 5 " ASKS "x",
        "[U+1000 ['a' 2 T+1000 '2 U+1 me 1 10 U T d=T+51,j=1 ' '" OF("T") "' 1]]");
    now_at(2);
    given("schedule", "0 a +50 5 " ASKS "y");
    given("schedule", "0 a +10 3 " ASKS "z");
    RUN("done", "0 me a U+1", "[U+2000 T+12]");
    KEYS("due a:T+12 | jobs a=" OF("T+1") "y | seq U+1 | t a:T+11");
    given("cancel", "0 a 0");
}

Test(created, by_a_key_is_that_of_the_job_that_holds_it)
{
    static const char rec[] = "\\02\\00\\13U\\02ekm\\0d0000000000000";

    given("schedule", text("0 a +5 0 %s", rec));
    now_at(1);
    RUN("schedule", text("0 b +5 5 %s", rec),
        "[U+1000 ['a' 1 T+6 '' '\\02\\00\\13U\\02ekm\\0dT' 2]]");
    RUN("schedule", text("0 b +5 2 %s", rec),
        "[U+1000 ['a' 1 T+6 '' '\\02\\00\\13U\\02ekm\\0dT+1' 1]]");
    given("cancel", "0 a 0");
}

/* Nor is more asked of Redis for jobs that ask for it. */
Test(created, costs_no_command)
{
    static const char *const records[] = {REC "x", ASKS "x"};
    static const char *const ways[] = {"0", "2", "5", "4"};
    long long n[2][4];

    for (int r = 0; r < 2; r++) {
        for (size_t i = 0; i < 4; i++) {
            ask("CONFIG RESETSTAT");
            given("schedule", text("0 a +5 %s %s", ways[i], records[r]));
            n[r][i] = commands();
            cr_assert_gt(n[r][i], 5, "those of the script, too");
            cr_assert_eq(n[r][i], n[0][i], "%s", ways[i]);
        }
        given("cancel", "0 a 0");
    }
}
