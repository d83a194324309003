/* SPDX-License-Identifier: MIT */
/* What is asked of a job while it runs. */
#include "script.h"

SCRIPTS(marks);

#define CANCEL "c=1"
#define AGAIN "d=T+70"

/* r runs, by U+1; it has one try. */
static void running(void)
{
    given("schedule", "0 r +0 0 \\01\\01\\01body");
    given("claim", "0 me 1000 0 r");
}

static void running_and(const char *script, const char *args)
{
    running();
    given(script, args);
}

#define RUNS(more) "run r:T+1000 | jobs r=\\01\\01\\01body | attempts r=" more " | seq U+1"
#define PLAIN "1 U+1 me 1 1 U T "
#define MARKED(mark) "2 U+1 me 1 1 U T " mark " "
#define WAITS "due r:T+70 | jobs r=\\01\\01\\01body | seq U+1 | t r:T+69"
#define GONE "seq U+1"

Test(marks, a_cancel_of_a_running_job_asks_it_and_tells_its_holder)
{
    running();
    RUN("cancel", "3 r 1", "[U ['r' 2 T+1000 '" MARKED(CANCEL) "' '\\01\\01\\01']]");
    KEYS(RUNS(MARKED(CANCEL)));
    HEARD("3 'stop r U+1'");
    RUN("cancel", "3 r 1", "[U ['r' 2 T+1000 '" MARKED(CANCEL) "' '\\01\\01\\01']]");
    KEYS(RUNS(MARKED(CANCEL)));
    RUN("get", "0 r", "[U ['r' 2 T+1000 '" MARKED(CANCEL) "' '\\01\\01\\01body']]");
}

Test(marks, one_notice_tells_of_all_that_are_asked_to_stop)
{
    given("schedule", "0 a +0 0 " REC " b +0 0 " REC " c +9 0 " REC);
    given("claim", "0 me 1000 0 a b");
    ask("CONFIG RESETSTAT");
    run("cancel", "0 a 1 c 1 b 1 none 1");
    cr_assert_eq(calls("publish"), 1);
    HEARD("0 'stop a U+1 b U+2'");
    KEYS("run a:T+1000 b:T+1000 | jobs a=" REC " b=" REC
         " | attempts a=2 U+1 me 1 10 U T c=1  b=2 U+2 me 1 10 U T c=1  | seq U+2");
}

Test(marks, a_reschedule_of_a_running_job_is_written_down_and_tells_nobody)
{
    running();
    RUN("reschedule", "0 r +70 1", "[U ['r' 2 T+1000 '" MARKED(AGAIN) "' '\\01\\01\\01']]");
    KEYS(RUNS(MARKED(AGAIN)));
    HEARD("");
    RUN("reschedule", "0 r +315576000001 1", "[U 'EINVAL']");
    KEYS(RUNS(MARKED(AGAIN)));
}

Test(marks, without_the_flag_a_running_job_is_busy_and_stays_as_it_is)
{
    running();
    RUN("cancel", "0 r 0", "[U 'EBUSY']");
    RUN("reschedule", "0 r +5 0", "[U 'EBUSY']");
    KEYS(RUNS(PLAIN));
    HEARD("");
}

Test(marks, the_later_of_cancel_and_reschedule_counts)
{
    running();
    given("reschedule", "0 r +70 1");
    given("cancel", "0 r 1");
    KEYS(RUNS(MARKED(CANCEL)));
    given("reschedule", "0 r +70 1 r +60 1 r +70 1");
    KEYS(RUNS(MARKED(AGAIN)));
}

Test(marks, leave_what_else_the_attempt_has)
{
    running();
    const char *plain = ask("HGET s:{q}:attempts r")->str;
    int token = (int)strcspn(plain + 2, " ");
    ask("HSET s:{q}:attempts r %s", text("2 %.*s me 1 1 5 5 x=1,q=7 why", token, plain + 2));
    given("cancel", "0 r 1");
    KEYS(RUNS("2 U+1 me 1 1 5 5 x=1,q=7,c=1 why"));
    given("reschedule", "0 r +70 1");
    KEYS(RUNS("2 U+1 me 1 1 5 5 x=1,q=7,d=T+70 why"));
}

/* The report of a job stands behind its mark. */
Test(marks, asked_again_after_a_report_are_no_news)
{
    running();
    given("cancel", "0 r 1");
    given("report", "0 me r U+1 half");
    ask("CONFIG RESETSTAT");
    RUN("cancel_all", "0 2 '' '' 0 100 '' 1", "[U 0 0 '']");
    cr_assert_eq(calls("hset") + calls("publish"), 0);

    given("reschedule", "0 r +70 1");
    given("report", "0 me r U+1 half");
    ask("CONFIG RESETSTAT");
    RUN("reschedule_all", "0 2 '' '' 0 100 '' 1 +70 0", "[U 0 0 '' T+70]");
    cr_assert_eq(calls("hset"), 0);
    ask("FLUSHALL");
}

Test(marks, of_an_attempt_that_cannot_be_read_are_not_made)
{
    static const char *const attempt[] = {"3 1 me 1 1 5 5 x=1 ", "2 1 me 1 1 5 5 ", "1 1 me", ""};

    running();
    for (size_t i = 0; i < sizeof attempt / sizeof *attempt; i++) {
        ask("HSET s:{q}:attempts r %s", attempt[i]);
        RUN("cancel", "0 r 1", "[U 'EBUSY']");
        RUN("reschedule", "0 r +5 1", "[U 'EBUSY']");
        cr_assert_str_eq(ask("HGET s:{q}:attempts r")->str, attempt[i]);
    }
}

/* Each way in which a run ends. A done is a done. */
static const struct ending {
    const char *script, *args;
    const char *cancelled, *again;
    bool is_done;
} endings[] = {
    {"done", "0 me r U+1", "[U 1]", "[U T+70]", true},
    {"done", "0 * r U+1", "[U 1]", "[U T+70]", true},
    {"retry", "0 me r U+1 5 why", "[U -1]", "[U T+70]", false},
    {"retry", "0 * r U+1 '' why", "[U -1]", "[U T+70]", false},
    {"retry", "0 me r U+1 ~5 why", "[U -1]", "[U T+70]", false},
    {"fail", "0 me r U+1 why", "[U -1]", "[U T+70]", false},
    {"fail", "0 * r U+1 why", "[U -1]", "[U T+70]", false},
    {"release", "0 me r U+1", "[U -1]", "[U T+70]", false},
    {"release", "0 * r U+1", "[U -1]", "[U T+70]", false},
};
enum { ENDINGS = sizeof endings / sizeof *endings };

Test(marks, a_cancelled_job_is_gone_however_its_run_ends)
{
    for (size_t i = 0; i < ENDINGS; i++) {
        ask("FLUSHALL");
        running_and("cancel", "0 r 1");
        RUN(endings[i].script, endings[i].args, endings[i].cancelled);
        KEYS(GONE);
        HEARD("");
        RUN(endings[i].script, endings[i].args, "[U 'EGONE']");
    }
}

Test(marks, a_rescheduled_job_waits_again_however_its_run_ends_and_tries_from_the_beginning)
{
    for (size_t i = 0; i < ENDINGS; i++) {
        ask("FLUSHALL");
        now_at(0);
        running_and("reschedule", "0 r +70 1");
        RUN(endings[i].script, endings[i].args, endings[i].again);
        KEYS(WAITS);
        HEARD("0 'T+70 r'");
        RUN(endings[i].script, endings[i].args, "[U 'EGONE']");
        now_at(70);
        RUN("claim", "0 me 1000 0 r",
            "[U+70000 0 0 0 0 0 0 ['r' 2 T+1070 '1 U+70001 me 1 1 U+70000 T+70 ' "
            "'\\01\\01\\01body' 1]]");
    }

    ask("FLUSHALL"); /* the trigger, which has not expired */
}

Test(marks, a_job_rescheduled_to_a_moment_that_has_passed_is_due_at_once)
{
    for (size_t i = 0; i < ENDINGS; i++) {
        ask("FLUSHALL");
        now_at(0);
        running_and("reschedule", "0 r +70 1");
        now_at(100);
        RUN(endings[i].script, endings[i].args, "[U+100000 T+70]");
        KEYS("due r:T+70 | jobs r=\\01\\01\\01body | seq U+1");
        HEARD("0 '0 r'");
    }
}

Test(marks, decide_at_the_end_of_a_lease)
{
    running_and("cancel", "0 r 1");
    now_at(1000);
    RUN("sweep", "0", "[U+1000000 1 0 0 0]");
    KEYS(GONE);
    HEARD("");

    ask("FLUSHALL");
    now_at(0);
    running_and("reschedule", "0 r +1070 1");
    now_at(1000);
    RUN("get", "0 r", "[U+1000000 ['r' 1 T+1070 '2 U+1 me 1 1 U T d=T+1070 ' '\\01\\01\\01body']]");
    RUN("sweep", "0", "[U+1000000 1 0 0 0]");
    KEYS("due r:T+1070 | jobs r=\\01\\01\\01body | seq U+1 | t r:T+1069");
    HEARD("0 'T+1070 r'");
}

Test(marks, renew_tells_of_a_cancel_and_not_of_a_reschedule)
{
    running_and("reschedule", "0 r +70 1");
    RUN("renew", "0 me r U+1 500", "[U T+500]");
    given("cancel", "0 r 1");
    cr_assert_eq(run("renew", "0 * r U+1 600")->element[1]->integer, -(T + 600));
    cr_assert_eq(redis_int(redis, "ZSCORE s:{q}:run r"), T + 600);
}

Test(marks, a_cancel_or_reschedule_after_the_end_of_the_lease_is_as_of_a_waiting_job)
{
    running_and("cancel", "0 r 1");
    now_at(1000);
    given("reschedule", "0 r +70 1");
    KEYS("due r:T+1070 | jobs r=\\01\\01\\01body | seq U+1 | t r:T+1069");
    given("cancel", "0 r 1");
    KEYS(GONE);
}

/* It does not know of marks: the attempt is none to it, and the end of the lease changes nothing of
 * it. */
Test(marks, a_waiting_job_that_is_cancelled_is_removed_by_claim)
{
    static const char *const claims[] = {"0 me 1000 0 r", "0 me 1000 100"};

    for (size_t i = 0; i < 2; i++) {
        ask("FLUSHALL");
        now_at(0);
        running_and("cancel", "0 r 1");
        ask("ZREM s:{q}:run r");
        ask("ZADD s:{q}:due 5 r");
        RUN("claim", claims[i], "[U 0 0 0 0 0 0]");
        KEYS(GONE);
    }

    running_and("cancel", "0 r 1");
    ask("ZREM s:{q}:run r");
    ask("ZADD s:{q}:due 5 r");
    ask("SET s:{q}:conf %s", "1 forward=list:s:{q}:list ");
    given("claim", "0 - 1000 100");
    cr_assert_eq(redis_int(redis, "EXISTS s:{q}:list s:{q}:jobs s:{q}:attempts s:{q}:due"), 0);
}

Test(marks, a_waiting_job_that_is_rescheduled_begins_again_at_its_claim)
{
    running_and("reschedule", "0 r +70 1");
    ask("ZREM s:{q}:run r");
    ask("ZADD s:{q}:due 5 r");
    RUN("claim", "0 me 1000 0 r",
        "[U 0 0 0 0 0 0 ['r' 2 T+1000 '1 U+2 me 1 1 U 5 ' '\\01\\01\\01body' 1]]");
}

Test(marks, an_attempt_may_stand_before_the_first_claim)
{
    given("schedule", "0 a +0 0 " REC);
    ask("HSET s:{q}:attempts a %s", "2 0 - 0 10 0 0 f=5 ");
    RUN("get", "0 a", "[U ['a' 1 T '2 0 - 0 10 0 0 f=5 ' '" REC "']]");
    RUN("claim", "0 me 1000 0 a",
        "[U 0 0 0 0 0 0 ['a' 2 T+1000 '1 U+1 me 1 10 U T ' '" REC "' 1]]");
}

/* ---- selections ---- */
Test(marks, a_selection_asks_those_that_run_and_counts_each_once)
{
    given("schedule", "0 w +500 0 " REC " r +0 0 " REC " s +0 0 " REC);
    given("claim", "0 me 1000 0 r s");
    RUN("cancel_all", "3 2 '' '' 0 1 '' 1", "[U 0 1 '2 U+2 T+1000 T+1000 r']");
    HEARD("3 'stop r U+1'");
    RUN("cancel_all", text("3 2 '' '' 0 100 '%s' 1", moments("2 U+2 T+1000 T+1000 r")),
        "[U 0 1 '']");
    HEARD("3 'stop s U+2'");
    RUN("cancel_all", "3 2 '' '' 0 100 '' 1", "[U 0 0 '']");
    HEARD("");
    RUN("cancel_all", "3 2 '' '' 0 100 '' 0", "[U 0 2 '']");
    KEYS("due w:T+500 | run r:T+1000 s:T+1000 | jobs r=" REC " s=" REC " w=" REC
         " | attempts r=2 U+1 me 1 10 U T c=1  s=2 U+2 me 1 10 U T c=1  | seq U+2 | t w:T+499");
}

/* A renewal puts it behind all that were there at the beginning. */
Test(marks, a_selection_asks_one_that_was_renewed_meanwhile_and_none_that_was_claimed)
{
    given("schedule", "0 r +0 0 " REC " s +0 0 " REC " x +0 0 " REC);
    given("claim", "0 me 1000 0 r s");
    RUN("cancel_all", "0 2 '' '' 0 1 '' 1", "[U 0 1 '2 U+2 T+1000 T+1000 r']");
    given("renew", "0 me s U+2 2000 r U+1 2000");
    given("claim", "0 me 1000 0 x");
    RUN("cancel_all", text("0 2 '' '' 0 100 '%s' 1", moments("2 U+2 T+1000 T+1000 r")),
        "[U 0 1 '']");
    KEYS("run x:T+1000 r:T+2000 s:T+2000 | jobs r=" REC " s=" REC " x=" REC
         " | attempts r=2 U+1 me 1 10 U T c=1  s=2 U+2 me 1 10 U T c=1  x=1 U+3 me 1 10 U T  "
         "| seq U+3");
}

Test(marks, a_selection_lets_those_that_run_wait_again_each_at_its_moment)
{
    given("schedule", "0 r +0 0 " REC " s +0 0 " REC);
    given("claim", "0 me 1000 0 r s");
    RUN("reschedule_all", "0 2 '' '' 0 100 '' 1 T+2000 1000", "[U 0 2 '' T+2000]");
    HEARD("");
    RUN("reschedule_all", "0 2 '' '' 0 100 '' 1 T+2000 1000", "[U 0 0 '' T+2000]");
    given("done", "0 me r U+1 s U+2");
    cr_assert_eq(
        redis_int(redis, "ZCOUNT s:{q}:due %lld (%lld", (long long)T + 2000, (long long)T + 3000),
        2);
    cr_assert_neq(redis_int(redis, "ZSCORE s:{q}:due r"), redis_int(redis, "ZSCORE s:{q}:due s"));
    RUN("reschedule_all", "0 1 '' '' 0 100 '' 0 T+2000 1000", "[U 0 0 '' T+2000]");
}

/* Its lease is over, and so is its run: it begins again. */
Test(marks, a_selection_takes_back_what_was_asked_of_those_whose_lease_is_over)
{
    running_and("cancel", "0 r 1");
    now_at(1000);
    RUN("reschedule_all", "0 1 '' '' 0 100 '' 0 T+2000 0", "[U+1000000 1 0 '' T+2000]");
    KEYS("due r:T+2000 | jobs r=\\01\\01\\01body | seq U+1 | t r:T+1999");

    ask("FLUSHALL");
    now_at(0);
    running_and("cancel", "0 r 1");
    now_at(1000);
    RUN("cancel_all", "0 1 '' '' 0 100 '' 0", "[U+1000000 1 0 '']");
    KEYS(GONE);
}

/* ---- with tags and a priority ---- */
#define TAG_Q5 "\\02\\00\\06Q\\01\\05T\\01a"

Test(marks, one_that_waits_again_keeps_its_tags_and_its_priority_and_one_that_goes_loses_them)
{
    for (size_t i = 0; i < ENDINGS; i++) {
        ask("FLUSHALL");
        now_at(0);
        given("schedule", "0 r +0 0 " TAG_Q5);
        given("claim", "0 me 1000 0 r");
        given("reschedule", "0 r +70 1");
        given(endings[i].script, endings[i].args);
        cr_assert_eq(
            redis_int(redis, "ZCOUNT s:{q}:due (%lld (%lld", (long long)T + 69, (long long)T + 70),
            1, "%s", endings[i].script);
        cr_assert_eq(redis_int(redis, "ZCARD s:{q}:index"), 1);
        given("cancel", "0 r 0");
        KEYS(GONE);

        ask("FLUSHALL");
        given("schedule", "0 r +0 0 " TAG_Q5);
        given("claim", "0 me 1000 0 r");
        given("cancel", "0 r 1");
        given(endings[i].script, endings[i].args);
        KEYS(GONE);
    }

    given("schedule", "0 r +0 0 " TAG_Q5);
    given("claim", "0 me 1000 0 r");
    given("cancel", "0 r 1");
    now_at(1000);
    given("sweep", "0");
    cr_assert_eq(redis_int(redis, "EXISTS s:{q}:index s:{q}:jobs s:{q}:attempts s:{q}:run"), 0);
}

Test(marks, of_one_that_is_killed_after_its_lease_are_taken_back)
{
    running_and("cancel", "0 r 1");
    now_at(1000);
    given("kill", "0 r why");
    KEYS("dead r:T+1000 | jobs r=\\01\\01\\01body | attempts r=1 U+1 me 1 1 U T why | seq U+1");
}

/* Until when it may be put off is no mark. */
Test(marks, of_one_that_waits_are_none_and_a_kill_takes_nothing_else_back)
{
    given("schedule", "0 a +50 5:100 " REC);
    given("kill", "0 a why");
    KEYS("dead a:T | jobs a=" REC " | attempts a=2 0 - 0 10 0 T+50 w=T+100 why");
}

Test(marks, one_that_waits_again_as_it_is_gets_no_record_that_was_left_behind)
{
    running_and("reschedule", "0 r +70 1");
    ask("HSET s:{q}:next r %s", "\1\7stray");
    given("fail", "0 me r U+1 why");
    cr_assert_str_eq(ask("HGET s:{q}:jobs r")->str, "\1\1\1body");
    ask("DEL s:{q}:next");
    KEYS(WAITS);
}

Test(marks, of_a_job_with_an_id_that_is_none_no_holder_hears)
{
    ask("HSET s:{q}:jobs %s %s", "a b", "\1\7");
    ask("HSET s:{q}:attempts %s %s", "a b", "1 5 me 1 10 5 5 ");
    ask("ZADD s:{q}:run %lld %s", (long long)T + 1000, "a b");
    RUN("cancel_all", "0 2 '' '' 0 100 '' 1", "[U 0 1 '']");
    HEARD("");
    ask("FLUSHALL");
}

Test(marks, the_end_of_a_plain_job_that_was_cancelled_reads_no_record)
{
    running_and("cancel", "0 r 1");
    ask("CONFIG RESETSTAT");
    given("retry", "0 me r U+1 5 why");
    cr_assert_eq(calls("hget"), 0);
    KEYS(GONE);
}

Test(marks, of_plain_jobs_there_are_none_and_they_cost_no_command)
{
    static const struct {
        const char *script, *args;
        int commands;
    } call[] = {
        {"done", "0 me r U+1", 7},     {"retry", "0 me r U+1 5 x", 8}, {"fail", "0 me r U+1 x", 7},
        {"release", "0 me r U+1", 10}, {"renew", "0 me r U+1 500", 5}, {"cancel", "0 r 0", 4},
        {"reschedule", "0 r +5 0", 5},
    };

    for (size_t i = 0; i < sizeof call / sizeof *call; i++) {
        ask("FLUSHALL");
        running();
        ask("CONFIG RESETSTAT");
        given(call[i].script, call[i].args);
        cr_expect_eq(commands(), call[i].commands, "%s: %lld", call[i].script, commands());
    }
}
