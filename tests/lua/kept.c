/* SPDX-License-Identifier: MIT */
/* Jobs that are known for a while after their end: the attribute K. */
#include "script.h"

SCRIPTS(kept);

#define SAME(what, got, expected) same(__FILE__, __LINE__, what, got, expected)
#define IS_KEPT(record, attempt) "kept a:T+60000 | jobs a=" record " | attempts a=" attempt " "
/* As it is before any run. */
#define UNRUN(how) "2 0 - 0 10 0 T e=" how

static void waits(const char *record)
{
    given("schedule", text("0 a +0 0 %sbody", record));
}

static void runs(const char *record)
{
    waits(record);
    given("claim", "0 me 1000 1");
}

static void empty(void)
{
    ask("FLUSHALL");
    now_at(0);
    heard();
}

Test(kept, is_a_job_that_is_done_without_its_body)
{
    runs(KEEP);
    RUN("done", "0 me a U+1", "[U 1]");
    KEYS(IS_KEPT(KEEP, "2 U+1 me 1 10 U T e=1") " | seq U+1");
    HEARD("");
    RUN("done", "0 me a U+1", "[U 'EGONE']");
}

Test(kept, is_a_job_that_is_done_from_outside)
{
    runs(KEEP);
    RUN("done", "0 * a U+1", "[U 1]");
    KEYS(IS_KEPT(KEEP, "2 U+1 me 1 10 U T e=1") " | seq U+1");
}

Test(kept, is_a_body_if_that_is_asked_for)
{
    runs(KEEP_BODY);
    ask("CONFIG RESETSTAT");
    given("done", "0 me a U+1");
    cr_assert_eq(calls("hset"), 1, "the record is not written again");
    RUN("get", "0 a", "[U ['a' 4 T+60000 '2 U+1 me 1 10 U T e=1 ' '" KEEP_BODY "body']]");
    RUN("list", "0 4 10 '' ''",
        "[U 0 ['a' 4 T+60000 '2 U+1 me 1 10 U T e=1 ' '" KEEP_BODY "body']]");
}

Test(kept, is_a_job_that_is_cancelled_while_it_waits)
{
    waits(KEEP);
    RUN("cancel", "0 a 0", "[U ['a' 1 T '' '" KEEP "']]");
    KEYS(IS_KEPT(KEEP, UNRUN("2")));
}

Test(kept, is_a_job_that_is_cancelled_when_it_is_dead_or_its_lease_is_over)
{
    runs(KEEP);
    given("fail", "0 me a U+1 why");
    given("cancel", "0 a 0");
    KEYS(IS_KEPT(KEEP, "2 U+1 me 1 10 U T e=2 why") "| seq U+1");
}

Test(kept, is_a_job_whose_lease_is_over_when_it_is_cancelled)
{
    runs(KEEP);
    now_at(1000);
    given("cancel", "0 a 0");
    KEYS("kept a:T+61000 | jobs a=" KEEP " | attempts a=2 U+1 me 1 10 U T e=2  | seq U+1");
}

Test(kept, is_a_job_that_is_cancelled_with_many)
{
    given("schedule", "0 a +5 0 " KEEP_A "x b +5 0 " TAG_A "x");
    RUN("cancel_all", "0 0 a '' 0 100 '' 0", "[U 2 0 '']");
    KEYS(IS_KEPT(KEEP_A, "2 0 - 0 10 0 T+5 e=2"));
    empty();
    waits(KEEP);
    RUN("cancel_all", "0 1 '' '' 0 100 '' 0", "[U 1 0 '']");
    KEYS(IS_KEPT(KEEP, UNRUN("2")));
}

/* A done is a done. */
Test(kept, is_a_job_that_was_asked_to_stop_as_its_run_ended)
{
    static const char *const ends[][2] = {
        {"release", "0 me a U+1"},     {"fail", "0 me a U+1 why"}, {"retry", "0 me a U+1 5 why"},
        {"retry", "0 * a U+1 '' why"}, {"done", "0 me a U+1"},
    };

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        empty();
        runs(KEEP);
        given("cancel", "0 a 1");
        bool is_done = strcmp(ends[i][0], "done") == 0;
        RUN(ends[i][0], ends[i][1], is_done ? "[U 1]" : "[U -1]");
        KEYS(text(IS_KEPT(KEEP, "2 U+1 me 1 10 U T e=%d") " | seq U+1", is_done ? 1 : 2));
    }
    empty();
    runs(KEEP);
    given("cancel", "0 a 1");
    now_at(1000);
    RUN("sweep", "0", "[U+1000000 1 0 0 0]");
    KEYS("kept a:T+61000 | jobs a=" KEEP " | attempts a=2 U+1 me 1 10 U T e=2  | seq U+1");
}

/* It reports it with its body, as it does without K. */
Test(kept, is_a_job_that_is_skipped)
{
    waits(KEEP_LATE);
    now_at(2);
    RUN("claim", "0 me 1000 1", "[U+2000 0 0 0 0 0 0 ['a' 0 T '' '" KEEP_LATE "body' 0]]");
    KEYS("kept a:T+60002 | jobs a=" KEEP_LATE " | attempts a=" UNRUN("3") " ");
    empty();
    waits(KEEP_LATE);
    now_at(2);
    given("touch", "0 me 1000 100 0 0 1 1 0");
    KEYS("kept a:T+60002 | jobs a=" KEEP_LATE " | attempts a=" UNRUN("3") " ");
}

Test(kept, is_a_job_that_is_forwarded_with_its_token)
{
    waits(KEEP);
    given("configure", "0 forward=list");
    given("claim", "0 me 1000 1");
    KEYS(IS_KEPT(KEEP, "2 U+1 me 1 10 U T e=4") " | seq U+1 | conf 1 forward=list:s:{q}:list ");
    SAME("list", show(ask("LRANGE s:{q}:list 0 -1")), "['a T 1 U+1 body']");
    ask("DEL s:{q}:list");
}

Test(kept, and_skipped_is_a_job_that_is_not_forwarded)
{
    waits(KEEP_LATE);
    given("configure", "0 forward=list");
    now_at(2);
    given("claim", "0 me 1000 1");
    KEYS("kept a:T+60002 | jobs a=" KEEP_LATE
         " | attempts a=" UNRUN("3") "  | conf 1 forward=list:s:{q}:list ");
}

Test(kept, is_no_job_that_dies_it_is_dead)
{
    runs(KEEP);
    given("fail", "0 me a U+1 why");
    KEYS("dead a:T | jobs a=" KEEP "body | attempts a=2 U+1 me 1 10 U T x=1 why | seq U+1");
    given("configure", "0 dead_max=0");
    given("sweep", "0");
    KEYS("seq U+1 | conf 1 dead_max=0 ");
}

Test(kept, is_no_job_that_waits_again_after_its_run)
{
    runs(KEEP);
    given("reschedule", "0 a +5 1");
    RUN("done", "0 me a U+1", "[U T+5]");
    KEYS("due a:T+5 | jobs a=" KEEP "body | seq U+1 | t a:T+4");
}

/* So one whose answer was lost can be asked again. */
Test(kept, answers_a_cancel_once_more_if_it_was_cancelled)
{
    waits(KEEP);
    given("cancel", "0 a 0");
    char *before = dumps();
    RUN("cancel", "0 a 0", "[U ['a' 4 T+60000 '" UNRUN("2") " ' '" KEEP "']]");
    RUN("cancel", "0 a 1", "[U ['a' 4 T+60000 '" UNRUN("2") " ' '" KEEP "']]");
    SAME("keys", dumps(), before);
}

Test(kept, has_ended_for_who_would_change_it)
{
    static const char *const ends[] = {"1", "2", "3", "4", "5", ""};

    runs(KEEP);
    given("done", "0 me a U+1");
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        ask("HSET s:{q}:attempts a %s", text("2 1 me 1 10 5 5 e=%s ", ends[i]));
        char *before = dumps();
        if (i != 1) {
            RUN("cancel", "0 a 0", "[U 'EENDED']");
            RUN("cancel", "0 a 1", "[U 'EENDED']");
        }
        RUN("reschedule", "0 a +5 0", "[U 'EENDED']");
        RUN("reschedule", "0 a +5 1", "[U 'EENDED']");
        RUN("kill", "0 a why", "[U 'EENDED']");
        SAME("keys", dumps(), before);
    }
    HEARD("");
    ask("FLUSHALL");
}

Test(kept, does_not_wait_again_with_many)
{
    redisReply *r = run("reschedule_all", "0 4 '' '' 0 100 '' 0 +0 0");
    cr_assert(r->type == REDIS_REPLY_ERROR && strstr(r->str, "has ended"), "%s", show(r));
}

Test(kept, is_deleted_by_a_cancel_of_all_that_are)
{
    given("schedule", "0 a +5 0 " KEEP " b +5 0 " KEEP " c +5 0 " KEEP " w +5 0 " KEEP);
    given("cancel", "0 a 0 b 0");
    now_at(10);
    given("cancel", "0 c 0");
    RUN("cancel_all", text("0 4 '' '' %s 100 '' 0", moments("T+60001")), "[U+10000 2 0 '']");
    RUN("cancel_all", "0 4 '' '' 0 100 '' 0", "[U+10000 1 0 '']");
    KEYS("due w:T+5 | jobs w=" KEEP " | t w:T+4");
    RUN("cancel_all", "0 4 '' '' 0 100 '' 0", "[U+10000 0 0 '']");
}

/* They are gone for who asks, and take no place among those that may be deleted. */
Test(kept, is_not_deleted_when_its_time_is_over)
{
    given("schedule", "0 a +5 0 " KEEP " b +5 0 " KEEP " c +5 0 " KEEP);
    given("cancel", "0 a 0 b 0");
    now_at(1);
    given("cancel", "0 c 0");
    now_at(60000);
    RUN("cancel_all", "0 4 '' '' 0 1 '' 0", "[U+60000000 1 0 '']");
    RUN("depth", "0", "[U+60000000 0 0 0 0 0 '']");
    RUN("cancel_all", "0 4 '' '' 0 100 '' 0", "[U+60000000 0 0 '']");
    given("sweep", "0");
    KEYS("");
}

Test(kept, is_deleted_a_hundred_at_a_time)
{
    char *ids = text("0");

    for (int i = 0; i < 150; i++) {
        given("schedule", text("0 j%03d +5 0 " KEEP, i));
        ids = text("%s j%03d 0", ids, i);
    }
    given("cancel", ids);
    RUN("cancel_all", "0 4 '' '' 0 100 '' 0", "[U 100 0 '4 U T+60000 T+60000 j099']");
    RUN("cancel_all", text("0 4 '' '' 0 100 '%s' 0", moments("4 U T+60000 T+60000 j099")),
        "[U 50 0 '']");
    KEYS("");
}

/* What a schedule finds of its id is as if that were dead. */
#define KEEP_FAILED "\\02\\00\\0aK\\0560000e\\015"
Test(kept, knows_why_its_runs_failed_until_it_is_forgotten)
{
    runs(KEEP_FAILED);
    given("retry", "0 me a U+1 0 why");
    given("claim", "0 me 1000 1");
    given("done", "0 me a U+2");
    KEYS(IS_KEPT(KEEP_FAILED, "2 U+2 me 2 10 U T r=1,e=1 why") "| errors a=T 1 3 why | seq U+2");

    now_at(60000);
    given("sweep", "0");
    KEYS("seq U+2");
}

Test(kept, is_like_dead_to_a_schedule)
{
    static const char *const new_life[] = {"2", "3", "4", "5", "5:9"};

    waits(KEEP);
    given("cancel", "0 a 0");
    char *before = dumps();
    RUN("schedule", "0 a +5 0 " REC, "[U 'EEXIST']");
    RUN("schedule", "0 a +5 1 " REC, "[U ['a' 4 T+60000 '" UNRUN("2") " ' '" KEEP "']]");
    SAME("keys", dumps(), before);

    for (size_t i = 0; i < sizeof new_life / sizeof *new_life; i++) {
        empty();
        waits(KEEP);
        given("cancel", "0 a 0");
        RUN("schedule", text("0 a +5 %s " REC, new_life[i]), "[U T+5]");
        bool has_limit = new_life[i][1] != '\0';
        KEYS(text("due a:T+5 | jobs a=" REC "%s | t a:T+4",
                  has_limit ? " | attempts a=2 0 - 0 10 0 T+5 w=T+9 " : ""));
    }
}

Test(kept, is_forgotten_when_its_time_is_over_though_no_sweep_has_passed)
{
    static const char *const how[] = {"0", "1", "2", "3", "4", "5"};

    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        empty();
        waits(KEEP);
        given("cancel", "0 a 0");
        now_at(59999);
        RUN("depth", "0", "[U+59999000 0 0 0 0 1 '']");
        now_at(60000);
        RUN("depth", "0", "[U+60000000 0 0 0 0 0 '']");
        RUN("get", "0 a", "[U+60000000 'ENOENT']");
        RUN("cancel", "0 a 0", "[U+60000000 'ENOENT']");
        RUN("reschedule", "0 a +5 0", "[U+60000000 'ENOENT']");
        RUN("kill", "0 a why", "[U+60000000 'ENOENT']");
        RUN("list", "0 4 10 '' ''", "[U+60000000 0]");
        RUN("schedule", text("0 a +5 %s " REC, how[i]), "[U+60000000 T+60005]");
        KEYS("due a:T+60005 | jobs a=" REC " | t a:T+60004");
    }
}

Test(kept, is_freed_by_a_sweep_when_its_time_is_over)
{
    given("schedule", "0 a +0 0 " KEEP " b +0 0 " KEEP);
    given("cancel", "0 a 0");
    now_at(1);
    given("cancel", "0 b 0");
    now_at(60000);
    RUN("sweep", "0", "[U+60000000 0 0 0 0]");
    KEYS("kept b:T+60001 | jobs b=" KEEP " | attempts b=" UNRUN("2") " ");
    now_at(60001);
    RUN("sweep", "0", "[U+60001000 0 0 0 0]");
    KEYS("");
}

Test(kept, is_freed_a_hundred_at_a_time_until_none_is_left)
{
    for (int i = 0; i < 250; i++) {
        given("schedule", text("0 j%03d +0 0 " KEEP, i));
        given("cancel", text("0 j%03d 0", i));
    }
    now_at(60000);
    RUN("sweep", "0", "[U+60000000 0 0 1 0]");
    cr_assert_eq(redis_int(redis, "ZCARD s:{q}:kept"), 150);
    RUN("sweep", "0", "[U+60000000 0 0 1 0]");
    RUN("sweep", "0", "[U+60000000 0 0 0 0]");
    KEYS("");
}

Test(kept, is_freed_when_redis_is_out_of_memory)
{
    waits(KEEP);
    given("cancel", "0 a 0");
    now_at(60000);
    ask("CONFIG SET maxmemory 1");
    given("sweep", "0");
    ask("CONFIG SET maxmemory 0");
    KEYS("");
}

/* By a version that does not know of kept, and leaves the id there. */
Test(kept, frees_no_job_that_has_been_made_since)
{
    waits(KEEP);
    given("cancel", "0 a 0");
    ask("ZADD s:{q}:due 5 a");
    now_at(60000);
    given("sweep", "0");
    KEYS("due a:5 | jobs a=" KEEP " | attempts a=" UNRUN("2") " ");
    ask("HDEL s:{q}:attempts a");
}

Test(kept, has_left_the_index)
{
    given("schedule", "0 a +0 0 \\02\\00\\0eK\\0560000T\\01aU\\02ek");
    given("claim", "0 me 1000 1");
    given("done", "0 me a U+1");
    cr_assert_eq(redis_int(redis, "EXISTS s:{q}:index"), 0);
    RUN("list_tag", "0 a 10 ''", "[U 0]");
    RUN("schedule", "0 b +5 0 \\02\\00\\04U\\02ek", "[U T+5]");
    RUN("check", "0 jobs 0 100", "[U 0 2 26 0]");
    RUN("check", "0 kept 0 100", text("[U 0 1 %d 0]", 14));
}

Test(kept, has_ended_though_how_cannot_be_read)
{
    runs(KEEP);
    given("done", "0 me a U+1");
    ask("HSET s:{q}:attempts a %s", "3 of a newer version");
    RUN("cancel", "0 a 0", "[U 'EENDED']");
    ask("FLUSHALL");
}

/* The attempt is that of the run; the tries of the record that was to follow are not its. */
Test(kept, is_shown_with_the_tries_of_its_run)
{
    given("schedule", "0 a +0 0 \\01\\01\\03old");
    given("claim", "0 me 1000 1");
    given("schedule", "0 a +5 3 " KEEP "new");
    now_at(1000);
    given("cancel", "0 a 0");
    KEYS("kept a:T+61000 | jobs a=" KEEP " | attempts a=2 U+1 me 1 3 U T e=2  | seq U+1");
}

/* A record that follows a run counts when the lease is over. */
Test(kept, is_the_record_that_was_to_follow)
{
    runs(KEEP);
    given("schedule", "0 a +5 3 " KEEP_A "new");
    now_at(1000);
    given("cancel", "0 a 0");
    KEYS("kept a:T+61000 | jobs a=" KEEP_A " | attempts a=2 U+1 me 1 10 U T e=2  | seq U+1");
    empty();
    runs(KEEP);
    given("schedule", "0 a +5 3 " KEEP_BODY "new");
    now_at(1000);
    given("cancel", "0 a 0");
    KEYS("kept a:T+61000 | jobs a=" KEEP_BODY "new | attempts a=2 U+1 me 1 10 U T e=2  | seq U+1");
}

Test(kept, leaves_in_an_attempt_what_a_newer_version_has_put_there)
{
    runs(KEEP);
    ask("HSET s:{q}:attempts a %s", moments("2 U+1 me 1 10 U T f=5,ll=1,x=1,zz=7 why"));
    given("done", "0 me a U+1");
    KEYS(IS_KEPT(KEEP, "2 U+1 me 1 10 U T ll=1,zz=7,e=1 why") "| seq U+1");
}

Test(kept, are_a_hundred_jobs_by_one_call)
{
    char *args = text("0");
    char *ends = text("0 me");

    for (int i = 0; i < 100; i++) {
        args = text("%s j%03d +0 0 " KEEP "body", args, i);
        ends = text("%s j%03d U+%d", ends, i, i + 1);
    }
    given("schedule", args);
    given("claim", "0 me 1000 100");
    ask("CONFIG RESETSTAT");
    given("done", ends);
    cr_assert_eq(calls("hmget"), 1);
    cr_assert_eq(calls("hget"), 100);
    cr_assert_eq(calls("zrem") + calls("zadd"), 2);
    cr_assert_eq(calls("hset"), 2);
    cr_assert_eq(calls("hdel"), 0);
    RUN("depth", "0", "[U 0 0 0 0 100 '']");
}

/* As long as no more than 256 KiB were read; who asked asks again for the others. */
Test(kept, reads_no_job_more_after_256_KiB)
{
    static char record[131073] = "\x02\0\x07K\x05"
                                 "60000";

    for (size_t len = 131072; len <= 131073; len++) {
        const char *argv[1 + 4 * 4] = {"0"};
        size_t lens[1 + 4 * 4] = {1};
        for (size_t i = 0; i < 4; i++) {
            memcpy(argv + 1 + 4 * i, (const char *[]){text("%zu", i), "+0", "0", record},
                   4 * sizeof *argv);
            memcpy(lens + 1 + 4 * i, (size_t[]){1, 2, 1, len}, 4 * sizeof *lens);
        }
        run_bytes("schedule", 17, argv, lens);
        given("claim", "0 me 1000 0 0 0 1");
        given("claim", "0 me 1000 0 0 2 3");
        cr_assert_eq(run("done", "0 me 0 U+1 1 U+2 2 U+3 3 U+4")->elements,
                     len == 131072 ? 1 + 3 : 1 + 2);
        cr_assert_eq(ask("HLEN s:{q}:jobs")->integer, 4);
        RUN("done", "0 me 3 U+4", "[U 1]");
        empty();
    }
}

Test(kept, stays_where_it_is_least_wrong)
{
    waits(KEEP);
    given("cancel", "0 a 0");
    ask("ZADD s:{q}:dead 5 a");
    RUN("check", "0 jobs 0 100", "[U 0 1 11 0 ['a' 'many']]");
    RUN("mend", "0 a", "[U 'many']");
    KEYS("dead a:5 | jobs a=" KEEP " | attempts a=" UNRUN("2") " ");
    ask("FLUSHALL");
    ask("ZADD s:{q}:kept %s lost", moments("T+5"));
    RUN("check", "0 kept 0 100", text("[U 0 1 %d 0 ['lost' 'record']]", 4 + 13));
    given("mend", "0 lost");
    cr_assert_eq(redis_int(redis, "EXISTS s:{q}:kept"), 0);
    cr_assert_eq(redis_int(redis, "ZCARD s:{q}:dead"), 1);
}

/* Its capital letter is one that scripts must know. */
Test(kept, for_a_time_that_is_none_makes_a_record_unreadable)
{
    static const char *const values[] = {"\\010",
                                         "\\01b",
                                         "\\02"
                                         "05",
                                         "\\0eb1234567890123",
                                         "\\0d1234567890123",
                                         "\\03"
                                         "5bb",
                                         "\\02-5"};

    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        ask("FLUSHALL");
        int len = (int)strtol(text("%.2s", values[i] + 1), NULL, 16) + 2;
        given("schedule", text("0 a +0 0 \\02\\00\\%02xK%s", len, values[i]));
        RUN("get", "0 a", "[U 'EDATA']");
    }
    ask("FLUSHALL");
}
