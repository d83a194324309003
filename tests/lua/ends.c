/* SPDX-License-Identifier: MIT */
/* Who waits for the end of a job that is kept hears of it on the channel ends. */
#include "script.h"

SCRIPTS(ends);

/* It has one try, and is kept for a minute. */
#define KEEP_ONCE "\\02\\01\\01\\07K\\0560000"

struct step {
    const char *script, *args;
    int64_t after_ms; /* at that time */
};

static void do_steps(const struct step *step, const char *record)
{
    ask("FLUSHALL");
    now_at(0);
    given("schedule", text("0 a +0 0 %sbody", record));
    heard_ends();
    for (; step->script; step++) {
        HEARD_ENDS("");
        now_at(step->after_ms);
        given(step->script, step->args);
    }
}

static const struct step ways[][5] = {
    {{"claim", "0 me 1000 1", 0}, {"done", "0 me a U+1", 0}},
    {{"claim", "0 me 1000 1", 0}, {"done", "0 * a U+1", 0}},
    {{"cancel", "0 a 0", 0}},
    {{"cancel_all", "0 1 '' '' 0 100 '' 0", 0}},
    {{"claim", "0 me 1000 1", 0}, {"cancel", "0 a 1", 0}, {"release", "0 me a U+1", 0}},
    {{"claim", "0 me 1000 1", 0}, {"cancel", "0 a 1", 0}, {"retry", "0 me a U+1 5 x", 0}},
    {{"claim", "0 me 1000 1", 0}, {"cancel", "0 a 1", 0}, {"fail", "0 me a U+1 x", 0}},
    {{"claim", "0 me 1000 1", 0}, {"cancel", "0 a 1", 0}, {"sweep", "0", 1000}},
    {{"configure", "0 forward=list", 0}, {"claim", "0 - 1000 100", 0}},
    {{"kill", "0 a x", 0}},
    {{"claim", "0 me 1000 1", 0}, {"fail", "0 me a U+1 x", 0}},
};

Test(ends, of_a_job_that_is_kept_are_told_once)
{
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        do_steps(ways[i], KEEP);
        cr_expect_str_eq(heard_ends(), "0 'a'", "%zu", i);
    }
}

/* Nor of one with a tag. */
Test(ends, of_another_job_are_told_to_nobody)
{
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        do_steps(ways[i], REC);
        HEARD_ENDS("");
        do_steps(ways[i], "\\02\\00\\03T\\01t");
        HEARD_ENDS("");
    }
}

Test(ends, of_any_number_of_jobs_are_one_command_and_of_others_none)
{
    static const struct {
        const char *record;
        int n, published;
    } c[] = {{KEEP, 1, 1}, {KEEP, 100, 1}, {REC, 1, 0}, {REC, 100, 0}};

    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        char *args = text("0");
        char *ends = text("0 me");
        now_at(0);
        for (int k = 0; k < c[i].n; k++) {
            args = text("%s j%03d +0 0 %sbody", args, k, c[i].record);
            ends = text("%s j%03d U+%d", ends, k, k + 1);
        }
        given("schedule", args);
        given("claim", "0 me 1000 100");
        ask("CONFIG RESETSTAT");
        given("done", ends);
        cr_expect_eq(calls("publish"), c[i].published, "%zu", i);
        ask("FLUSHALL");
    }
}

/* Its body is gone when it is cancelled, and nothing ended when it died. */
Test(ends, of_a_dead_job_are_its_death_and_its_cancel)
{
    do_steps((const struct step[]){{"kill", "0 a x", 0}, {NULL, NULL, 0}}, KEEP);
    HEARD_ENDS("0 'a'");
    given("kill", "0 a x");
    HEARD_ENDS("");
    given("cancel", "0 a 0");
    HEARD_ENDS("0 'a'");
    given("cancel", "0 a 0");
    HEARD_ENDS("");
}

Test(ends, are_told_where_the_tries_are_used_up)
{
    static const struct step last[][5] = {
        {{"claim", "0 me 1000 1", 0}, {"retry", "0 me a U+1 5 x", 0}},
        {{"claim", "0 me 1000 1", 0}, {"sweep", "0", 1000}},
    };

    for (size_t i = 0; i < sizeof last / sizeof *last; i++) {
        do_steps(last[i], KEEP_ONCE);
        cr_expect_str_eq(heard_ends(), "0 'a'", "%zu", i);
    }
}

Test(ends, are_told_of_a_job_that_is_skipped_or_dies_at_its_claim)
{
    static const char *const late[] = {"\\02\\00\\0bK\\0560000L\\02s1",
                                       "\\02\\00\\0bK\\0560000L\\02d1"};
    static const struct step claims[][5] = {
        {{"claim", "0 me 1000 1", 2}},
        {{"claim", "0 me 1000 0 a", 2}},
        {{"configure", "0 forward=list", 0}, {"claim", "0 - 1000 100", 2}},
    };

    for (size_t i = 0; i < 2 * sizeof claims / sizeof *claims; i++) {
        do_steps(claims[i / 2], late[i % 2]);
        cr_expect_str_eq(heard_ends(), "0 'a'", "%zu", i);
    }
}

Test(ends, are_not_told_while_the_job_goes_on)
{
    static const struct step goes_on[][5] = {
        {{"claim", "0 me 1000 1", 0}, {"retry", "0 me a U+1 5 x", 0}},
        {{"claim", "0 me 1000 1", 0}, {"release", "0 me a U+1", 0}},
        {{"claim", "0 me 1000 1", 0}, {"sweep", "0", 1000}},
        {{"claim", "0 me 1000 1", 0}, {"reschedule", "0 a +5 1", 0}, {"done", "0 me a U+1", 0}},
    };

    for (size_t i = 0; i < sizeof goes_on / sizeof *goes_on; i++) {
        do_steps(goes_on[i], KEEP);
        cr_expect_str_eq(heard_ends(), "", "%zu", i);
    }
}

Test(ends, of_many_jobs_are_one_message_of_their_database)
{
    given("schedule", "0 a +0 0 " KEEP "x b +0 0 " REC "x c +0 0 " KEEP "x");
    given("claim", "0 me 1000 3");
    given("done", "7 me a U+1 b U+2 c U+3");
    HEARD_ENDS("7 'a c'");
}

/* Nobody can wait for such a job. */
Test(ends, of_an_id_that_is_none_are_told_to_nobody)
{
    given("schedule", "0 a +0 0 " KEEP "x");
    ask("HSET s:{q}:jobs %s %s", "a b", "");
    ask("ZADD s:{q}:due 5 %s", "a b");
    redisReply *record = ask("HGET s:{q}:jobs a");
    ask("HSET s:{q}:jobs %s %b", "a b", record->str, record->len);
    given("cancel_all", "0 1 '' '' 0 100 '' 0");
    HEARD_ENDS("0 'a'");
}

/* The end is stored all the same: who waits looks again. */
Test(ends, of_which_nobody_may_be_told_are_ends)
{
    do_steps((const struct step[]){{"claim", "0 me 1000 1", 0}, {NULL, NULL, 0}}, KEEP);
    ask("ACL SETUSER default resetchannels &s:{q}:notice:*");
    RUN("done", "0 me a U+1", "[U 1]");
    KEYS("kept a:T+60000 | jobs a=" KEEP " | attempts a=2 U+1 me 1 10 U T e=1  | seq U+1");
    ask("ACL SETUSER default allchannels");
}
