/* SPDX-License-Identifier: MIT */
/* Reports: what the holder of a job has last said of it, until its life ends. */
#include "script.h"

SCRIPTS(report);

enum { REPORT_MAX = 65536 };
#define HAS "2 U+1 me 1 10 U T o=1 "
#define HELD "run r:T+1000 | jobs r=" REC "body"
#define REPORTED HELD " | attempts r=" HAS " | report r=half | seq U+1"

/* r runs, by U+1. */
static void running(void)
{
    ask("FLUSHALL");
    now_at(0);
    given("schedule", "0 r +0 0 " REC "body");
    given("claim", "0 me 1000 0 r");
}

static void reported(void)
{
    running();
    RUN("report", "0 me r U+1 half", "[U 1]");
}

static bool has_report(void)
{
    return redis_int(redis, "EXISTS s:{q}:report");
}

Test(report, of_a_job_that_runs_is_kept_and_shown)
{
    reported();
    KEYS(REPORTED);
    HEARD("");
    RUN("get", "0 r", "[U ['r' 2 T+1000 '" HAS "' '" REC "body' '' 'half']]");
}

Test(report, takes_the_place_of_the_one_before)
{
    reported();
    ask("CONFIG RESETSTAT");
    RUN("report", "0 * r U+1 all", "[U 1]");
    cr_assert_eq(calls("hset"), 1); /* the attempt stays as it is */
    KEYS(HELD " | attempts r=" HAS " | report r=all | seq U+1");
    ask("FLUSHALL");
}

Test(report, may_have_any_bytes_and_none)
{
    running();
    RUN("report", "0 me r U+1 ''", "[U 1]");
    RUN("get", "0 r", "[U ['r' 2 T+1000 '" HAS "' '" REC "body' '' '']]");
    RUN("report", "0 me r U+1 '\\00 \\0a\\ff'", "[U 1]");
    RUN("get", "0 r", "[U ['r' 2 T+1000 '" HAS "' '" REC "body' '' '\\00 \\0a\\ff']]");
}

Test(report, by_who_does_not_hold_the_job_is_egone_and_changes_nothing)
{
    static const char *const args[] = {"0 me r U+2 all", "0 you r U+1 all", "0 * r U all",
                                       "0 me nobody U+1 all", "0 m r U+1 all"};

    reported();
    for (size_t i = 0; i < sizeof args / sizeof *args; i++) {
        RUN("report", args[i], "[U 'EGONE']");
        KEYS(REPORTED);
    }

    given("retry", "0 me r U+1 50 why");
    RUN("report", "0 me r U+1 all", "[U 'EGONE']");
    now_at(50);
    given("claim", "0 me 1000 0 r");
    RUN("report", "0 me r U+1 all", "[U+50000 'EGONE']");
    RUN("report", "0 me r U+50001 all", "[U+50000 1]");
    ask("FLUSHALL"); /* its trigger is left, since it was claimed by its id */
}

/* As a settle, while no other has claimed the job. */
Test(report, is_kept_where_the_lease_is_over_and_nobody_has_found_that)
{
    running();
    now_at(1000);
    RUN("report", "0 me r U+1 late", "[U+1000000 1]");
    given("sweep", "0");
    RUN("report", "0 me r U+1 later", "[U+1000000 'EGONE']");
    RUN("get", "0 r",
        "[U+1000000 ['r' 1 T+1000 '2 U+1 me 1 10 U T+1000 o=1 the lease ended' '" REC
        "body' '' 'late']]");
}

static redisReply *report_of_size(const char *script, size_t size)
{
    char *report = malloc(size + 32);
    int at = strcmp(script, "done") == 0 ? sprintf(report, "%s ", moments("U+1")) : 0;
    char *token = moments("U+1");
    const char *argv[] = {"0", "me", "r", at ? report : token, report};
    size_t len[] = {1, 2, 1, at ? (size_t)at + size : strlen(token), size};

    memset(report + at, 'x', size);
    redisReply *r = run_bytes(script, at ? 4 : 5, argv, len);
    free(report);
    return r;
}

Test(report, of_more_than_64_kib_is_einval_and_the_one_before_stays)
{
    reported();
    same(__FILE__, __LINE__, "over", show(report_of_size("report", REPORT_MAX + 1)),
         "[U 'EINVAL']");
    KEYS(REPORTED);
    same(__FILE__, __LINE__, "most", show(report_of_size("report", REPORT_MAX)), "[U 1]");
    cr_assert_eq(redis_int(redis, "HSTRLEN s:{q}:report r"), REPORT_MAX);
    ask("FLUSHALL");
}

Test(report, of_many_jobs_is_answered_one_by_one)
{
    given("schedule", "0 a +0 0 " REC " b +0 0 " REC " c +0 0 " REC);
    given("claim", "0 me 1000 0 a b c");
    RUN("report", "0 me a U+1 x b U+1 y c U+3 z", "[U 1 'EGONE' 1]");
    RUN("done", "0 me a U+1 b U+2 c U+3", "[U 1 1 1]");
    KEYS("seq U+3");
}

Test(report, is_shown_until_256_kib_are_enough_for_one_call)
{
    static const char *const ids[] = {"a", "b", "c", "d", "e"};
    char *large = malloc(REPORT_MAX + 1);

    memset(large, 'x', REPORT_MAX);
    for (int i = 0; i < 5; i++) {
        given("schedule", text("0 %s +0 0 " REC, ids[i]));
        given("claim", text("0 me 1000 0 %s", ids[i]));
        char *token = moments(text("U+%d", i + 1));
        const char *argv[] = {"0", "me", ids[i], token, large};
        size_t len[] = {1, 2, 1, strlen(token), REPORT_MAX};
        run_bytes("report", 5, argv, len);
    }
    free(large);

    cr_assert_eq(run("get", "0 a b c d e")->elements, 1 + 4);
    ask("FLUSHALL");
}

/* ---- how long it lives ---- */
/* What gives a job back, or takes it, and lets it run again. */
Test(report, stays_while_a_job_is_tried_again)
{
    static const struct {
        const char *script, *args, *due, *reason;
        int try;
        int64_t at_ms;
    } backs[] = {
        {"retry", "0 me r U+1 5 why", "T+5", "why", 1, 0},
        {"retry", "0 me r U+1 ~5 why", "T+5", "why", 0, 0},
        {"release", "0 me r U+1", "T", "", 0, 0},
        {"sweep", "0", "T+1000", "the lease ended", 1, 1000},
    };

    for (size_t i = 0; i < sizeof backs / sizeof *backs; i++) {
        reported();
        now_at(backs[i].at_ms);
        given(backs[i].script, backs[i].args);
        now_at(1005);
        cr_assert(strstr(show(run("get", "0 r")), "'half'"), "%s", backs[i].script);
        given("claim", "0 me 1000 0 r");
        RUN("get", "0 r",
            text("[U+1005000 ['r' 2 T+2005 '2 U+1005001 me %d 10 U+1005000 %s o=1 %s' '" REC
                 "body' '' 'half']]",
                 backs[i].try + 1, backs[i].due, backs[i].reason));
    }
    ask("FLUSHALL");
}

Test(report, stays_beside_what_the_record_says)
{
    ask("FLUSHALL");
    given("schedule", "0 r +0 0 \\02\\00\\06Q\\01\\05T\\01a");
    given("claim", "0 me 1000 0 r");
    given("report", "0 me r U+1 half");
    given("retry", "0 me r U+1 0 why");
    given("claim", "0 me 1000 0 r");
    RUN("get", "0 r",
        "[U ['r' 2 T+1000 '2 U+2 me 2 10 U T x=1,q=5,o=1 why' '\\02\\00\\06Q\\01\\05T\\01a' "
        "'' 'half']]");
    given("done", "0 me r U+2");
    KEYS("seq U+2");
}

/* Each way to die. */
Test(report, of_a_dead_job_stays_until_it_is_cancelled_or_waits_again)
{
    static const struct {
        const char *before, *before_args, *script, *args;
    } deaths[] = {
        {NULL, NULL, "fail", "0 me r U+1 why"},
        {"retry", "0 me r U+1 5 why", "kill", "0 r why"},
    };

    for (size_t i = 0; i < sizeof deaths / sizeof *deaths; i++) {
        reported();
        if (deaths[i].before) {
            given(deaths[i].before, deaths[i].before_args);
        }
        given(deaths[i].script, deaths[i].args);
        cr_assert(strstr(show(run("get", "0 r")), " 3 T '") &&
                      strstr(show(run("get", "0 r")), "'half'"),
                  "%s", keys());
        given("cancel", "0 r 0");
        KEYS("seq U+1");
    }

    reported();
    given("fail", "0 me r U+1 why");
    given("reschedule", "0 r +70 0");
    KEYS("due r:T+70 | jobs r=" REC "body | seq U+1 | t r:T+69");
}

Test(report, of_a_job_that_dies_in_its_claim_stays)
{
    static const char *const settings[] = {"", "forward=list"};

    for (size_t i = 0; i < 2; i++) {
        ask("FLUSHALL");
        now_at(0);
        given("schedule", "0 late +0 0 \\02\\00\\04L\\02d1 bad +0 0 " REC);
        given("claim", "0 me 1000 0 late bad");
        given("report", "0 me late U+1 half bad U+2 some");
        given("retry", "0 me late U+1 5 x bad U+2 5 x");
        ask("HSET s:{q}:jobs bad %b", "\3", (size_t)1);
        given("configure", text("0 %s", *settings[i] ? settings[i] : "paused="));
        now_at(10);
        given("claim", "0 me 1000 100");
        cr_assert_eq(redis_int(redis, "ZCARD s:{q}:dead"), 2);
        cr_assert_eq(redis_int(redis, "HLEN s:{q}:report"), 2);
        cr_assert(strstr(show(run("get", "0 late")), "'half'"));
        given("cancel", "0 late 0 bad 0");
        cr_assert(!has_report());
    }
    ask("FLUSHALL");
}

/* After these steps the job is gone, or begins a new life: it has no attempt that says more. */
Test(report, goes_with_the_life_of_its_job)
{
    static const struct {
        const char *steps[8];
    } ways[] = {
        {{"done", "0 me r U+1"}},
        {{"done", "0 * r U+1"}},
        {{"cancel", "0 r 1", "done", "0 me r U+1"}},
        {{"cancel", "0 r 1", "retry", "0 me r U+1 5 x"}},
        {{"cancel", "0 r 1", "fail", "0 me r U+1 x"}},
        {{"cancel", "0 r 1", "release", "0 me r U+1"}},
        {{"reschedule", "0 r +5 1", "done", "0 me r U+1"}},
        {{"reschedule", "0 r +5 1", "retry", "0 me r U+1 5 x"}},
        {{"reschedule", "0 r +5 1", "fail", "0 me r U+1 x"}},
        {{"reschedule", "0 r +5 1", "release", "0 me r U+1"}},
        {{"schedule", "0 r +5 3 " REC, "done", "0 me r U+1"}},
        {{"schedule", "0 r +5 5:9 " REC, "release", "0 me r U+1"}},
        {{"retry", "0 me r U+1 5 x", "cancel", "0 r 0"}},
        {{"retry", "0 me r U+1 5 x", "cancel_all", "0 1 '' '' 0 100 '' 0"}},
        {{"retry", "0 me r U+1 5 x", "schedule", "0 r +5 2 " REC}},
        {{"retry", "0 me r U+1 5 x", "schedule", "0 r +5 5 " REC}},
        {{"retry", "0 me r U+1 0 x", "configure", "0 forward=list", "claim", "0 - 1000 100"}},
        {{"fail", "0 me r U+1 x", "schedule", "0 r +5 3 " REC}},
        {{"fail", "0 me r U+1 x", "reschedule_all", "0 3 '' '' 0 100 '' 0 +5 0"}},
        {{"fail", "0 me r U+1 x", "cancel_all", "0 3 '' '' 0 100 '' 0"}},
        {{"fail", "0 me r U+1 x", "configure", "0 dead_max=0", "sweep", "0"}},
    };

    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const char *const *step = ways[i].steps;
        reported();
        for (; *step; step += 2) {
            cr_assert(has_report());
            given(step[0], step[1]);
        }
        cr_assert(!has_report(), "%s %s: %s", ways[i].steps[0], step[-2], keys());
    }
    ask("FLUSHALL");
}

Test(report, goes_with_a_job_whose_lease_is_over)
{
    static const struct {
        const char *asked, *script, *args;
    } ways[] = {
        {"reschedule", "sweep", "0"},
        {"reschedule", "cancel", "0 r 0"},
        {"reschedule", "reschedule", "0 r +5 0"},
        {"reschedule", "reschedule_all", "0 1 '' '' 0 100 '' 0 +5 0"},
        {"reschedule", "schedule", "0 r +2000 4 " REC},
        {"reschedule", "schedule", "0 r +5 2 " REC},
        {"cancel", "sweep", "0"},
        {"cancel", "reschedule", "0 r +5 0"},
    };

    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        reported();
        given(ways[i].asked, strcmp(ways[i].asked, "cancel") == 0 ? "0 r 1" : "0 r +5 1");
        now_at(1000);
        given(ways[i].script, ways[i].args);
        cr_assert(!has_report(), "%s: %s", ways[i].script, keys());
    }
    ask("FLUSHALL");
}

/* Its lease is over, and no sweep has passed: what dies is the job that follows the run. */
Test(report, goes_where_the_job_that_follows_its_run_is_killed)
{
    reported();
    given("schedule", "0 r +5000 5 " REC "y");
    now_at(1000);
    given("kill", "0 r x");
    cr_assert(!has_report());
    RUN("get", "0 r", "[U+1000000 ['r' 3 T+1000 '1 U+1 me 1 10 U T x' '" REC "y']]");
    ask("FLUSHALL");
}

Test(report, goes_with_a_job_that_is_skipped)
{
    given("schedule", "0 r +0 0 \\02\\00\\04L\\02s1");
    given("claim", "0 me 1000 0 r");
    given("report", "0 me r U+1 half");
    given("retry", "0 me r U+1 5 x");
    now_at(7);
    given("claim", "0 me 1000 100");
    KEYS("seq U+1");
}

/* An older version has put it back: it does not know of the marks. */
Test(report, goes_where_an_older_version_has_ended_the_run)
{
    static const char *const marks[] = {"c=1", "d=5"};

    for (size_t i = 0; i < 2; i++) {
        reported();
        ask("HSET s:{q}:attempts r %s", text("2 7 me 1 10 5 5 o=1,%s x", marks[i]));
        ask("ZREM s:{q}:run r");
        ask("ZADD s:{q}:due 5 r");
        given("claim", "0 me 1000 0 r");
        cr_assert(!has_report(), "%s", keys());
    }
    ask("FLUSHALL");
}

Test(report, goes_with_a_member_that_has_no_record)
{
    reported();
    ask("HDEL s:{q}:jobs r");
    now_at(1000);
    given("sweep", "0");
    KEYS("seq U+1");

    reported();
    given("retry", "0 me r U+1 0 x");
    ask("HDEL s:{q}:jobs r");
    given("claim", "0 me 1000 0 r");
    KEYS("seq U+1");
}

Test(report, of_a_run_is_not_that_of_a_job_that_waits_for_its_first_run)
{
    reported();
    given("reschedule", "0 r +0 1");
    given("done", "0 me r U+1");
    given("claim", "0 me 1000 0 r");
    RUN("get", "0 r", "[U ['r' 2 T+1000 '1 U+2 me 1 10 U T ' '" REC "body']]");
}

/* ---- with done ---- */
Test(report, that_comes_with_done_is_gone_with_the_job)
{
    reported();
    RUN("done", "0 me r '7 all of it'", "[U 'EGONE']");
    KEYS(REPORTED);
    RUN("done", text("0 me r '%s all of it'", moments("U+1")), "[U 1]");
    KEYS("seq U+1");
}

Test(report, of_more_than_64_kib_does_not_end_the_job)
{
    reported();
    same(__FILE__, __LINE__, "over", show(report_of_size("done", REPORT_MAX + 1)), "[U 'EINVAL']");
    KEYS(REPORTED);
    same(__FILE__, __LINE__, "most", show(report_of_size("done", REPORT_MAX)), "[U 1]");
    KEYS("seq U+1");
}

/* ---- of a job that is kept ---- */
#define KEPT_S "\\02\\00\\06K\\041000"

static void kept_running(void)
{
    ask("FLUSHALL");
    now_at(0);
    given("schedule", "0 r +0 0 " KEPT_S "body");
    given("claim", "0 me 1000 0 r");
}

Test(report, that_comes_with_done_is_the_result_of_a_job_that_is_kept)
{
    kept_running();
    RUN("done", text("0 me r '%s all of it'", moments("U+1")), "[U 1]");
    RUN("get", "0 r",
        "[U ['r' 4 T+1000 '2 U+1 me 1 10 U T o=1,e=1 ' '" KEPT_S "' '' 'all of it']]");

    kept_running();
    given("report", "0 me r U+1 half");
    RUN("done", text("0 * r '%s all of it'", moments("U+1")), "[U 1]");
    RUN("get", "0 r",
        "[U ['r' 4 T+1000 '2 U+1 me 1 10 U T o=1,e=1 ' '" KEPT_S "' '' 'all of it']]");
    now_at(1000);
    RUN("get", "0 r", "[U+1000000 'ENOENT']");
    given("sweep", "0");
    KEYS("seq U+1");
}

/* Each way to end and to be kept, and then to be gone. */
Test(report, of_a_job_that_is_kept_is_its_last_and_goes_with_it)
{
    static const struct {
        const char *steps[10];
    } ways[] = {
        {{"done", "0 me r U+1", "sweep", "0"}},
        {{"done", "0 me r U+1", "schedule", "0 r +5 2 " REC}},
        {{"done", "0 me r U+1", "cancel_all", "0 4 '' '' 0 100 '' 0"}},
        {{"cancel", "0 r 1", "fail", "0 me r U+1 x", "sweep", "0"}},
        {{"retry", "0 me r U+1 5000 x", "cancel", "0 r 0", "sweep", "0"}},
        {{"fail", "0 me r U+1 x", "cancel_all", "0 3 '' '' 0 100 '' 0", "sweep", "0"}},
        {{"retry", "0 me r U+1 0 x", "configure", "0 forward=list", "claim", "0 - 1000 100",
          "sweep", "0"}},
    };

    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const char *const *step = ways[i].steps;
        kept_running();
        given("report", "0 me r U+1 half");
        for (; *step; step += 2) {
            cr_assert(strstr(show(run("get", "0 r")), "'half'"), "%s: %s", step[0], keys());
            now_at(strcmp(step[0], "sweep") == 0 ? 1000 : 0);
            given(step[0], step[1]);
        }
        cr_assert(!has_report(), "row %zu: %s", i, keys());
    }
    ask("FLUSHALL");
}

/* ---- what it costs ---- */
/* As many as before there were reports. */
Test(report, costs_no_command_where_there_is_none)
{
    static const struct {
        const char *before, *before_args, *script, *args;
        long long commands;
    } call[] = {
        {NULL, NULL, "done", "0 me r U+1", 7},
        {NULL, NULL, "get", "0 r", 5},
        {NULL, NULL, "sweep", "0", 7},
        {"retry", "0 me r U+1 5000 x", "schedule", "0 r +5000 2 " REC, 9},
        {"retry", "0 me r U+1 5000 x", "schedule", "0 r +5000 5 " REC, 10},
        {"retry", "0 me r U+1 5000 x", "cancel", "0 r 0", 8},
        {"retry", "0 me r U+1 5000 x", "kill", "0 r x", 9},
        {"retry", "0 me r U+1 0 x", "claim", "0 me 1000 100", 14},
        {"fail", "0 me r U+1 x", "schedule", "0 r +5000 2 " REC, 13},
        {"fail", "0 me r U+1 x", "reschedule", "0 r +5000 0", 12},
        {"fail", "0 me r U+1 x", "cancel_all", "0 3 '' '' 0 100 '' 0", 12},
    };

    for (size_t i = 0; i < sizeof call / sizeof *call; i++) {
        running();
        if (call[i].before) {
            given(call[i].before, call[i].before_args);
        }
        ask("CONFIG RESETSTAT");
        given(call[i].script, call[i].args);
        cr_expect_eq(commands(), call[i].commands, "%s %s: %lld", call[i].script, call[i].args,
                     commands());
    }
    ask("FLUSHALL");
}

/* Its attempt says that it has tags, and of no report. */
Test(report, costs_no_command_where_the_attempt_says_other_things)
{
    static const struct {
        const char *script, *args;
        long long commands;
    } call[] = {{"get", "0 r", 5}, {"retry", "0 me r U+1 0 x", 9}, {"done", "0 me r U+2", 9}};

    given("schedule", "0 r +0 0 '\\02\\00\\03T\\01t'");
    given("claim", "0 me 1000 1");
    for (size_t i = 0; i < sizeof call / sizeof *call; i++) {
        ask("CONFIG RESETSTAT");
        given(call[i].script, call[i].args);
        cr_expect_eq(commands(), call[i].commands, "%s: %lld", call[i].script, commands());
        if (i == 1) {
            given("claim", "0 me 1000 1");
        }
    }
    KEYS("seq U+2");
}

/* ---- doctor ---- */
Test(check, finds_reports_of_no_job_and_mend_removes_them)
{
    reported();
    ask("HSET s:{q}:report gone x late y");
    given("schedule", "0 late +5 0 " REC);
    redisReply *r = run("check", "0 report 0 100");
    cr_assert_eq(r->elements, 5 + 2, "%s", show(r));
    cr_assert(strstr(show(r), "['gone' 'report']") && strstr(show(r), "['late' 'report']"));
    RUN("mend", "0 r gone late", "[U '' 'report' 'report']");
    cr_assert_eq(redis_int(redis, "HLEN s:{q}:report"), 1);
    cr_assert_eq(run("check", "0 report 0 100")->elements, 5);
}

/* What its attempt says this version cannot know. */
Test(check, leaves_what_a_job_of_a_newer_version_has)
{
    static const char *const hashes[] = {"report", "errors"};

    for (size_t i = 0; i < 2; i++) {
        given("schedule", "0 r +5 0 " REC);
        ask("HSET s:{q}:attempts r %s", "3 of another form");
        ask("HSET s:{q}:%s r x", hashes[i]);
        cr_assert_eq(run("check", text("0 %s 0 100", hashes[i]))->elements, 5, "%s", hashes[i]);
        RUN("mend", "0 r", "[U '']");
        cr_assert_eq(redis_int(redis, text("EXISTS s:{q}:%s", hashes[i])), 1);
        ask("FLUSHALL");
    }
}
