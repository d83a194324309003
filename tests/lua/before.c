/* SPDX-License-Identifier: MIT */
/* While servers are upgraded, scripts of before/ meet what newer ones have stored. They are those
 * of the last version that knew neither attributes nor attempts of form 2. */
#include "script.h"

SCRIPTS(before);

/* One that asks for something more, and what its key or tag is in the index. */
static const struct {
    const char *record, *index;
} jobs[] = {
    {"\\02\\00\\03T\\01abody", "['t a a']"},  {"\\02\\00\\05h\\03x=1body", "[]"},
    {"\\02\\00\\03Q\\01\\09body", "[]"},      {"\\02\\00\\04U\\02ekbody", "['u k a']"},
    {"\\02\\00\\05L\\03s40body", "[]"},       {"\\02\\00\\04R\\0240body", "[]"},
    {"\\02\\00\\0bG\\09! g:{q}  body", "[]"}, {KEEP "body", "[]"},
    {"\\02\\00\\05b\\03l20body", "[]"},       {"\\02\\00\\03e\\015body", "[]"},
    {"\\02\\00\\06r\\045000body", "[]"},
};
enum { JOBS = sizeof jobs / sizeof *jobs };

#define SAME(what, got, expected) same(__FILE__, __LINE__, what, got, expected)

static void has(const char *set, const char *index)
{
    SAME(set, show(ask("ZRANGE s:{q}:%s 0 -1", set)), "['a']");
    SAME("index", show(ask("ZRANGE s:{q}:index 0 -1")), index);
}

static struct redisReply *by_before(const char *name, const char *args)
{
    run_before(true);
    struct redisReply *r = run(name, args);
    run_before(false);
    return r;
}

/* The only job that a claim gives, with its record. */
static void claimed(const char *record, const char *try_no)
{
    struct redisReply *r = run("claim", "0 me 1000 9");

    cr_assert_eq(r->elements, 8, "%s", show(r));
    SAME("record", show(r->element[7]->element[4]), text("'%s'", record));
    cr_assert(strstr(show(r->element[7]), try_no), "%s", show(r));
}

Test(before, claims_run_no_job_that_asks_for_more_and_a_requeue_brings_it_back)
{
    for (int i = 0; i < JOBS; i++) {
        now_at(0);
        given("schedule", text("0 a +5 0 '%s'", jobs[i].record));
        SAME("get", show(by_before("get", "0 a")), "[U 'EDATA']");
        now_at(10);
        SAME("claim", show(by_before("claim", "0 me 1000 9")), "[U+10000 0 0 1 0 0 0]");
        has("dead", jobs[i].index);

        given("reschedule", "0 a +0 0");
        claimed(jobs[i].record, " me 1 10 ");
        has("run", jobs[i].index);
        ask("FLUSHALL");
    }
}

/* What each settle of then answers to the run of a by U+1, and what it changes: nothing. */
static void settles_are_egone(void)
{
    static const char *const settles[][2] = {
        {"done", ""}, {"retry", " 5 why"}, {"fail", " why"}, {"release", ""}, {"renew", " 500"}};
    char *keys_then = keys();

    for (size_t i = 0; i < sizeof settles / sizeof *settles; i++) {
        struct redisReply *r = by_before(settles[i][0], text("0 me a U+1%s", settles[i][1]));
        SAME(settles[i][0], show(r), "[U 'EGONE']");
        SAME("keys", keys(), keys_then);
    }
}

/* What such a run does at its end was not known then: it ends by its lease. */
Test(before, settles_change_no_run_of_a_job_whose_attempt_says_more)
{
    static const char *const records[] = {"\\02\\00\\03T\\01abody", "\\02\\00\\03Q\\01\\09body",
                                          "\\02\\00\\04U\\02ekbody", "\\02\\00\\06R\\045000body",
                                          "\\02\\00\\03e\\015body"};

    for (size_t i = 0; i < sizeof records / sizeof *records; i++) {
        now_at(0);
        given("schedule", text("0 a +0 0 %s", records[i]));
        claimed(records[i], "'2 U+1 me 1 10 ");
        settles_are_egone();
        now_at(2000);
        SAME("sweep", show(by_before("sweep", "0")), "[U+2000000 1 0 0]");
        claimed(records[i], "'2 U+2000001 me 2 10 ");
        given("done", "0 me a U+2000001");
        KEYS("seq U+2000001");
        ask("FLUSHALL");
    }
}

/* a runs by U+1, and these were asked of it. */
static void runs_and(const char *record, const char *script, const char *args)
{
    now_at(0);
    given("schedule", text("0 a +0 0 %s", record));
    given("claim", "0 me 1000 0 a");
    given(script, args);
}

Test(before, a_run_that_was_asked_to_stop_is_given_back_and_the_job_goes_then)
{
    runs_and(REC "body", "cancel", "0 a 1");
    settles_are_egone();
    now_at(2000);
    SAME("sweep", show(by_before("sweep", "0")), "[U+2000000 1 0 0]");
    RUN("claim", "0 me 1000 9", "[U+2000000 0 0 0 0 0 0]");
    KEYS("seq U+1");
}

Test(before, a_run_that_was_asked_to_wait_again_is_given_back_and_begins_again)
{
    runs_and(REC "body", "reschedule", "0 a +5000 1");
    settles_are_egone();
    now_at(2000);
    SAME("sweep", show(by_before("sweep", "0")), "[U+2000000 1 0 0]");
    claimed(REC "body", "'1 U+2000001 me 1 10 ");
    given("done", "0 me a U+2000001");
    KEYS("seq U+2000001");
}

/* The record that follows is not lost: doctor finds that nobody has taken it. */
Test(before, a_run_that_another_record_follows_is_given_back_and_the_record_stays)
{
    runs_and(REC "old", "schedule", "0 a +5000 3 " REC "new");
    settles_are_egone();
    now_at(2000);
    SAME("sweep", show(by_before("sweep", "0")), "[U+2000000 1 0 0]");
    SAME("next", show(ask("HGET s:{q}:next a")), "'" REC "new'");
    RUN("mend", "0 a", "[U+2000000 'next']");
    ask("FLUSHALL");
}

Test(before, what_a_run_has_reported_stays_until_its_end)
{
    runs_and(REC "body", "report", "0 me a U+1 half");
    settles_are_egone();
    now_at(2000);
    SAME("sweep", show(by_before("sweep", "0")), "[U+2000000 1 0 0]");
    claimed(REC "body", "'2 U+2000001 me 2 10 ");
    SAME("report", show(ask("HGET s:{q}:report a")), "'half'");
    given("done", "0 me a U+2000001");
    KEYS("seq U+2000001");
}

Test(before, a_cancel_leaves_a_report_that_counts_for_nothing_and_is_mended)
{
    runs_and(REC "body", "report", "0 me a U+1 half");
    given("retry", "0 me a U+1 5 why");
    SAME("cancel", show(by_before("cancel", "0 a")->element[1]->element[0]), "'a'");
    RUN("get", "0 a", "[U 'ENOENT']");
    given("schedule", "0 a +5 0 " REC);
    RUN("get", "0 a", "[U ['a' 1 T+5 '' '" REC "']]");
    given("cancel", "0 a 0");
    RUN("mend", "0 a", "[U 'report']");
    KEYS("seq U+1");
}

/* Its id is free. The sweep that frees what was kept leaves the next life, which has all its tries,
 * though the attempt of the life before was not removed. */
Test(before, a_job_that_is_kept_is_not_there)
{
    runs_and(KEEP "body", "done", "0 me a U+1");
    SAME("get", show(by_before("get", "0 a")), "[U 'ENOENT']");
    SAME("schedule", show(by_before("schedule", "0 a +90000 0 " REC "new")), "[U T+90000]");
    now_at(80000);
    given("sweep", "0");
    KEYS("due a:T+90000 | jobs a=" REC "new | attempts a=2 U+1 me 1 10 U T e=1  | seq U+1 | t "
         "a:T+89999");
    now_at(90000);
    claimed(REC "new", "'1 U+90000001 me 1 10 ");
    given("done", "0 me a U+90000001");
    ask("FLUSHALL");
}

Test(before, cancel_of_a_job_with_a_key_holds_up_no_other)
{
    given("schedule", "0 a +5 0 \\02\\00\\04U\\02ekbody");
    by_before("cancel", "0 a");
    KEYS("index 'u k a'");
    RUN("schedule", "0 b +5 0 \\02\\00\\04U\\02ekbody", "[U T+5]");
    RUN("check", "0 index 0 100", "[U 0 1 6 0]");
    given("cancel", "0 b 0");
    KEYS("");
}
