/* SPDX-License-Identifier: MIT */
/* sweep and resume: jobs come back from leases that ended, and from claims whose answer was
 * lost. */
#include "script.h"

SCRIPTS(sweep);
SCRIPTS(resume);

Test(sweep, takes_back_a_job_that_was_not_renewed_or_lets_it_die)
{
    five();
    RUN("sweep", "5", "[U+20000 2 1 0 0]");
    KEYS("due e:T+10 w:T+500 | run r:T+1000 | dead d:T u:T+10 | " FIVE_JOBS " | attempts " ATTEMPT_D
         " e=1 U+1 me 1 10 U T+10 the lease ended " ATTEMPT_R
         " u=1 U+2 me 1 1 U T+10 the lease ended | seq U+4 | t w:T+499");
    HEARD("5 '0 e'");
    RUN("sweep", "5", "[U+20000 0 0 0 0]");
    HEARD("");
}

Test(sweep, takes_a_job_at_the_very_end_of_its_lease)
{
    five();
    given("sweep", "0");
    char *before = dumps();
    now_at(999);
    RUN("sweep", "0", "[U+999000 0 0 0 0]");
    same(__FILE__, __LINE__, "keys", dumps(), before);
    now_at(1000);
    RUN("sweep", "0", "[U+1000000 1 0 0 0]");
    HEARD("0 '0 r'");
}

Test(sweep, of_a_job_that_died_is_silent)
{
    given("schedule", "0 a +0 0 \\01\\01\\01");
    given("claim", "0 me 10 1");
    now_at(15);
    RUN("sweep", "0", "[U+15000 1 1 0 0]");
    KEYS("dead a:T+10 | jobs a=\\01\\01\\01 | attempts a=1 U+1 me 1 1 U T+10 the lease ended | seq "
         "U+1");
    HEARD("");
}

Test(sweep, never_lets_a_job_with_unlimited_tries_die)
{
    given("schedule", "0 a +0 0 \\01\\01\\ff\\ff\\ff\\ff\\0f b +0 0 \\01\\01\\02");
    given("claim", "0 me 10 0 a b");
    ask("HSET s:{q}:attempts a %s b %s", "1 1 me 4294967295 4294967295 5 5 ", "1 2 me 3 2 5 5 ");
    now_at(10);
    RUN("sweep", "0", "[U+10000 2 1 0 0]");
    HEARD("0 '0 a'");
}

Test(sweep, takes_back_a_running_job_without_a_holder)
{
    given("schedule", "0 a +0 0 \\01\\01\\01 b +0 0 \\01\\01\\01");
    given("claim", "0 me 10 0 a b");
    ask("HDEL s:{q}:attempts a");
    ask("HSET s:{q}:attempts b %s", "2 ?");
    now_at(10);
    RUN("sweep", "0", "[U+10000 2 0 0 0]");
    KEYS("due a:T+10 b:T+10 | jobs a=\\01\\01\\01 b=\\01\\01\\01 | attempts b=2 ? | seq U+2");
    HEARD("0 '0 a 0 b'");
}

/* Its backoff is 3 ms in each try. */
#define WAITS_3 "\\01\\06\\03\\03"

/* Job a: its lease ended at T+10, it was claimed again, and that lease ends at T+20. */
static void ends_again(void)
{
    given("schedule", "0 a +0 0 " WAITS_3);
    given("claim", "0 me 10 1");
    now_at(10);
    RUN("sweep", "0", "[U+10000 1 0 0 0]");
    HEARD("0 '0 a'");
    given("claim", "0 me 10 1");
}

Test(sweep, from_the_second_lease_in_a_row_that_ended_a_job_waits_for_its_backoff)
{
    ends_again();
    now_at(20);
    RUN("get", "0 a",
        "[U+20000 ['a' 1 T+23 '1 U+10001 me 2 10 U+10000 T+10 the lease ended' '" WAITS_3 "']]");
    RUN("sweep", "0", "[U+20000 1 0 0 0]");
    KEYS("due a:T+23 | jobs a=" WAITS_3
         " | attempts a=1 U+10001 me 2 10 U+10000 T+23 the lease ended | seq U+10001 | t a:T+22");
    HEARD("0 'T+23 a'");
    now_at(22);
    RUN("claim", "0 me 10 1", "[U+22000 0 T+23 0 0 0 0]");
    now_at(23);
    given("claim", "0 me 10 1");
    now_at(33);
    RUN("sweep", "0", "[U+33000 1 0 0 0]");
    HEARD("0 'T+36 a'");
}

Test(sweep, waits_as_the_record_says)
{
    ends_again();
    ask("HSET s:{q}:jobs a %b", "\2\2\377\1\3b\1\146", (size_t)8);
    now_at(20);
    RUN("get", "0 a",
        "[U+20000 ['a' 1 T+275 '1 U+10001 me 2 10 U+10000 T+10 the lease ended' "
        "'\\02\\02\\ff\\01\\03b\\01f']]");
    given("sweep", "0");
    cr_assert_eq(redis_int(redis, "ZSCORE s:{q}:due a"), T + 275);
    ask("FLUSHALL");
}

Test(sweep, that_comes_late_makes_no_backoff_longer)
{
    ends_again();
    now_at(50);
    RUN("sweep", "0", "[U+50000 1 0 0 0]");
    KEYS("due a:T+23 | jobs a=" WAITS_3
         " | attempts a=1 U+10001 me 2 10 U+10000 T+23 the lease ended | seq U+10001");
    HEARD("0 '0 a'");
}

Test(sweep, counts_leases_that_ended_as_in_a_row_across_a_release_and_not_across_a_retry)
{
    ends_again();
    given("release", "0 me a U+10001");
    given("claim", "0 me 10 1");
    now_at(20);
    given("sweep", "0");
    KEYS("due a:T+23 | jobs a=" WAITS_3
         " | attempts a=1 U+10002 me 2 10 U+10000 T+23 the lease ended | seq U+10002 | t a:T+22");
    now_at(23);
    given("claim", "0 me 10 1");
    given("retry", "0 me a U+23001 0 ''");
    given("claim", "0 me 10 1");
    now_at(33);
    given("sweep", "0");
    KEYS("due a:T+33 | jobs a=" WAITS_3
         " | attempts a=1 U+23002 me 4 10 U+23000 T+33 the lease ended | seq U+23002");
}

Test(sweep, does_not_count_leases_that_ended_as_in_a_row_across_a_snooze)
{
    ends_again();
    given("retry", "0 me a U+10001 ~0 ''");
    given("claim", "0 me 10 1");
    now_at(20);
    given("sweep", "0");
    KEYS("due a:T+20 | jobs a=" WAITS_3
         " | attempts a=1 U+10002 me 2 10 U+10000 T+20 the lease ended | seq U+10002");
}

Test(sweep, reads_records_of_those_alone_whose_lease_ended_again)
{
    ends_again();
    given("schedule", "0 b +0 0 " REC);
    given("claim", "0 me 10 1");
    now_at(20);
    ask("CONFIG RESETSTAT");
    RUN("sweep", "0", "[U+20000 2 0 0 0]");
    cr_assert_eq(calls("hget"), 3, "two attempts, and a record");
    HEARD("0 'T+23 a 0 b'");
}

Test(sweep, stops_when_it_has_read_enough_records_for_one_call)
{
    enum { LEN = 200000 };
    char *body = calloc(1, LEN);

    memset(body, 'x', LEN);
    for (int i = 0; i < 4; i++) {
        char *id = text("%c", 'a' + i);
        ask("EVAL %s 0 %s %b",
            "redis.call('HSET', 's:{q}:jobs', ARGV[1], '\\1\\0' .. ARGV[2]) redis.call('ZADD', "
            "'s:{q}:run', 1, ARGV[1])",
            id, body, (size_t)LEN);
        ask("HSET s:{q}:attempts %s %s", id, "1 7 me 1 10 5 5 the lease ended");
    }

    RUN("sweep", "0", "[U 2 0 1 0]");
    RUN("sweep", "0", "[U 2 0 0 0]");
    cr_assert_eq(redis_int(redis, "ZCARD s:{q}:run"), 0);
    free(body);
    ask("FLUSHALL");
}

Test(sweep, waits_for_the_default_where_a_record_cannot_be_read)
{
    ends_again();
    ask("HSET s:{q}:jobs a %s", "?");
    now_at(20);
    given("sweep", "0");

    long long wait_ms = redis_int(redis, "ZSCORE s:{q}:due a") - T - 20;
    cr_assert(wait_ms >= 1500 && wait_ms <= 2000, "%lld", wait_ms);
    ask("FLUSHALL");
}

Test(sweep, removes_members_without_a_record_and_goes_on)
{
    given("schedule", "0 a +0 0 " REC " b +0 0 " REC " c +0 0 " REC);
    given("claim", "0 me 10 0 a b c");
    ask("HDEL s:{q}:jobs a b");
    ask("HDEL s:{q}:attempts b");
    now_at(10);
    RUN("sweep", "0", "[U+10000 3 0 0 0]");
    KEYS("due c:T+10 | jobs c=" REC " | attempts c=1 U+3 me 1 10 U T+10 the lease ended | seq U+3");
    HEARD("0 '0 c'");
}

Test(sweep, writes_a_dash_for_an_invalid_id_in_the_notice)
{
    given("schedule", "0 a +0 0 " REC);
    given("claim", "0 me 10 1");
    ask("HSET s:{q}:jobs %s %b", "b c", "\1\0", (size_t)2);
    ask("ZADD s:{q}:run 5 %s", "b c");
    now_at(10);
    RUN("sweep", "0", "[U+10000 2 0 0 0]");
    HEARD("0 '0 - 0 a'");
}

Test(sweep, takes_a_hundred_and_says_whether_there_may_be_more)
{
    many(0, 299, "+0");
    for (int i = 0; i < 3; i++) {
        given("claim", "0 me 10 100");
    }
    now_at(10);
    RUN("sweep", "0", "[U+10000 100 0 1 0]");
    RUN("sweep", "0", "[U+10000 100 0 1 0]");
    RUN("sweep", "0", "[U+10000 99 0 0 0]");
}

Test(resume, shows_what_runs_under_the_holders_name)
{
    given("schedule", "0 a +0 0 " REC " b +0 0 " REC " c +0 0 " REC " d +0 0 " REC " e +0 0 " REC
                      " f +0 0 " REC);
    given("claim", "0 me 1000 0 a");
    given("claim", "0 mee 1000 0 d");
    given("claim", "0 me 10 0 e f");
    given("retry", "0 me f U+4 0 'me too'");
    now_at(10);

    char *before = dumps();
    /* also where the lease is over, and no sweep has run */
    RUN("reclaim", "0 me 0", "[U+10000 0 'e' 'U+3' 'a' 'U+1']");
    RUN("reclaim", "0 mee 0", "[U+10000 0 'd' 'U+2']");
    RUN("reclaim", "0 nobody 0", "[U+10000 0]");
    same(__FILE__, __LINE__, "keys", dumps(), before);
    HEARD("");
}

Test(resume, passes_over_what_it_cannot_read)
{
    given("schedule", "0 a +0 0 " REC " b +0 0 " REC " c +0 0 " REC);
    given("claim", "0 me 1000 0 a b c");
    ask("HSET s:{q}:attempts a %s", "3 1 me 1 10 5 5 ");
    ask("HDEL s:{q}:attempts b");
    RUN("reclaim", "0 me 0", "[U 0 'c' 'U+3']");
    ask("FLUSHALL");
}

Test(resume, goes_through_all_in_pages)
{
    many(0, 900, "+0");
    many(900, 900, "+0");
    for (int i = 0; i < 18; i++) {
        given("claim", i % 3 ? "0 me 1000 100" : "0 you 1000 100");
    }

    long long page = 0;
    size_t pages = 0;
    size_t mine = 0;
    do {
        redisReply *r = run("reclaim", text("0 me %lld", page));
        page = r->element[1]->integer;
        mine += (r->elements - 2) / 2;
        pages++;
    } while (page);

    cr_assert_gt(pages, 2);
    cr_assert_eq(mine, 1200);
}

Test(sweep, shows_those_that_die_if_it_is_asked_to)
{
    given("schedule", "0 d +0 0 \\01\\01\\01body w +0 0 " REC);
    given("claim", "0 me 1000 0 d w");
    now_at(1000);
    RUN("sweep", "0 1",
        "[U+1000000 2 1 0 0 ['d' 3 T+1000 '1 U+1 me 1 1 U T+1000 the lease ended' "
        "'\\01\\01\\01body']]");
    RUN("sweep", "0 1", "[U+1000000 0 0 0 0]");
}
