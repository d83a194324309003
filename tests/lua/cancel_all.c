/* SPDX-License-Identifier: MIT */
#include "script.h"

SCRIPTS(cancel_all);

Test(cancel_all, of_the_waiting_removes_all_of_them_and_no_other)
{
    five();
    given("schedule", "0 x +0 0 " REC);
    RUN("cancel_all", "0 1 '' '' 0 100 '' 0", "[U+20000 3 0 '']");
    KEYS("run u:T+10 r:T+1000 | dead d:T | jobs d=" REC "d r=" REC
         "r u=\\01\\01\\01u | attempts " ATTEMPT_D " " ATTEMPT_R " " ATTEMPT_U " | seq U+4");
    HEARD("");
}

/* u has used its only try, and no sweep has said so yet. */
Test(cancel_all, of_the_dead_removes_all_of_them_and_no_other)
{
    five();
    RUN("cancel_all", "0 3 '' '' 0 100 '' 0", "[U+20000 2 0 '']");
    KEYS("due w:T+500 | run e:T+10 r:T+1000 | jobs e=" REC "e r=" REC "r w=" REC
         "w | attempts " ATTEMPT_E " " ATTEMPT_R " | seq U+4 | t w:T+499");
}

Test(cancel_all, of_the_running_counts_them_and_leaves_them)
{
    five();
    RUN("cancel_all", "0 2 '' '' 0 100 '' 0", "[U+20000 0 1 '']");
    KEYS(FIVE);
}

Test(cancel_all, of_nothing_writes_nothing)
{
    ask("CONFIG RESETSTAT");
    for (int state = 1; state <= 3; state++) {
        RUN("cancel_all", text("0 %d '' '' 0 100 '' 0", state), "[U 0 0 '']");
    }
    cr_assert_eq(calls("zrem") + calls("hdel") + calls("del"), 0);
}

Test(cancel_all, takes_what_is_due_or_died_before_a_moment)
{
    given("schedule", "0 a +5 0 " REC " b +6 0 " REC " c +7 0 " REC);
    RUN("cancel_all", "0 1 '' '' T+6 100 '' 0", "[U 1 0 '']");
    KEYS("due b:T+6 c:T+7 | jobs b=" REC " c=" REC " | t b:T+5 c:T+6");
    given("kill", "0 b x");
    now_at(1);
    given("kill", "0 c x");
    RUN("cancel_all", "0 3 '' '' T 100 '' 0", "[U+1000 0 0 '']");
    RUN("cancel_all", "0 3 '' '' T+1 100 '' 0", "[U+1000 1 0 '']");
    KEYS("dead c:T+1 | jobs c=" REC " | attempts c=1 0 - 0 10 0 T+7 x");
}

Test(cancel_all, takes_those_whose_reason_has_a_part)
{
    given("schedule", "0 a +5 0 " REC " b +5 0 " REC " c +5 0 " REC " d +5 0 " REC);
    given("kill", "0 a 'HTTP 500 of shop' b 'HTTP 404' c 'no ^HTTP.* 5'");
    RUN("cancel_all", "0 3 '' '^HTTP.' 0 100 '' 0", "[U 1 0 '']");
    RUN("cancel_all", "0 3 '' 'HTTP ' 0 100 '' 0", "[U 2 0 '']");
    RUN("cancel_all", "0 1 '' 'HTTP' 0 100 '' 0", "[U 0 0 '']");
    KEYS("due d:T+5 | jobs d=" REC " | t d:T+4");
}

/* Runs it until its cursor is empty; returns how often, and in *n how many were selected in all. */
static int until_none_is_left(const char *name, const char *before, const char *behind,
                              long long *n)
{
    const char *cursor = "";

    *n = 0;
    for (int runs = 1;; runs++) {
        redisReply *r = run(name, text("%s '%s'%s", before, cursor, behind));
        cr_assert_eq(r->type, REDIS_REPLY_ARRAY, "%s", r->str);
        *n += r->element[1]->integer;
        cr_assert_leq(r->element[1]->integer, 100);
        if (r->element[3]->len == 0) {
            return runs;
        }
        cr_assert_lt(runs, 100, "it does not end");
        cursor = r->element[3]->str;
    }
}

Test(cancel_all, takes_a_hundred_in_a_call_and_its_cursor_leads_on)
{
    long long n;

    many(0, 250, "+5");
    cr_assert_eq(until_none_is_left("cancel_all", "0 1 '' '' 0 100", " 0", &n), 3);
    cr_assert_eq(n, 250);
    KEYS("");
}

/* All have one score, so the order of their ids is all that there is. */
Test(cancel_all, passes_by_what_it_leaves_once)
{
    long long n;

    many(0, 250, "+5");
    for (int i = 0; i < 250; i++) {
        given("kill", text("0 j%03d %s", i, i % 3 ? "one" : "other"));
    }
    cr_assert_eq(until_none_is_left("cancel_all", "0 3 '' other 0 100", " 0", &n), 3);
    cr_assert_eq(n, 84);
    cr_assert_eq(redis_int(redis, "ZCARD s:{q}:dead"), 250 - 84);
}

Test(cancel_all, deletes_no_more_than_was_asked_for_and_goes_on_behind_them)
{
    given("schedule", "0 a +5 0 " REC " b +6 0 " REC " c +7 0 " REC);
    RUN("cancel_all", "0 1 '' '' 0 2 '' 0", "[U 2 0 '1 U T+7 T+6 b']");
    KEYS("due c:T+7 | jobs c=" REC " | t c:T+6");
    RUN("cancel_all", text("0 1 '' '' 0 2 '%s' 0", moments("1 U T+7 T+6 b")), "[U 1 0 '']");
}

Test(cancel_all, of_which_a_call_is_repeated_takes_what_is_left_behind_its_cursor)
{
    given("schedule", "0 a +5 0 " REC " b +5 0 " REC " c +5 0 " REC " d +5 0 " REC);
    RUN("cancel_all", "0 1 '' '' 0 1 '' 0", "[U 1 0 '1 U T+5 T+5 a']");
    RUN("cancel_all", text("0 1 '' '' 0 1 '%s' 0", moments("1 U T+5 T+5 a")),
        "[U 1 0 '1 U T+5 T+5 b']");
    RUN("cancel_all", text("0 1 '' '' 0 1 '%s' 0", moments("1 U T+5 T+5 a")),
        "[U 1 0 '1 U T+5 T+5 c']");
    RUN("cancel_all", text("0 1 '' '' 0 1 '%s' 0", moments("1 U T+5 T+5 a")), "[U 1 0 '']");
    RUN("cancel_all", text("0 1 '' '' 0 1 '%s' 0", moments("1 U T+5 T+5 a")), "[U 0 0 '']");
}

/* Producers who are faster than the walk do not keep it going. */
Test(cancel_all, ends_at_the_last_one_that_was_there_when_it_began)
{
    given("schedule", "0 a +5 0 " REC " b +6 0 " REC);
    RUN("cancel_all", "0 1 '' '' 0 1 '' 0", "[U 1 0 '1 U T+6 T+5 a']");
    given("schedule", "0 c +7 0 " REC " d +6 0 " REC);
    RUN("cancel_all", text("0 1 '' '' 0 100 '%s' 0", moments("1 U T+6 T+5 a")), "[U 2 0 '']");
    KEYS("due c:T+7 | jobs c=" REC " | t c:T+6");
}

Test(cancel_all, leaves_what_was_claimed_since_it_began)
{
    given("schedule", "0 a +0 0 " REC " b +0 0 " REC " z +5 0 " REC);
    RUN("cancel_all", "0 1 '' '' 0 1 '' 0", "[U 1 0 '1 U T+5 T a']");
    given("claim", "0 me 1000 1");
    given("retry", "0 me b U+1 3 later");
    RUN("cancel_all", text("0 1 '' '' 0 100 '%s' 0", moments("1 U T+5 T a")), "[U 1 0 '']");
    KEYS("due b:T+3 | jobs b=" REC " | attempts b=1 U+1 me 1 10 U T+3 later | seq U+1 | t b:T+2");
    RUN("cancel_all", "0 1 '' '' 0 100 '' 0", "[U 1 0 '']");
}

Test(cancel_all, stops_after_256_KiB_of_records)
{
    static char body[131073] = {1, 0};
    const char *argv[] = {"0", "a", "+5", "0", body, "b", "+5", "0", body, "c", "+5", "0", body};
    size_t len[] = {1, 1, 2, 1, 131072, 1, 2, 1, 131072, 1, 2, 1, 2};

    run_bytes("schedule", 13, argv, len);
    heard();
    RUN("cancel_all", "0 1 '' '' 0 100 '' 0", "[U 3 0 '']");
    len[8]++;
    run_bytes("schedule", 13, argv, len);
    RUN("cancel_all", "0 1 '' '' 0 100 '' 0", "[U 2 0 '1 U T+5 T+5 b']");
    KEYS("due c:T+5 | jobs c=" REC " | t c:T+4");
}

/* Of one whose lease is over that of its run, and the one that was to follow, too. */
Test(cancel_all, stops_after_256_KiB_of_both_records_of_a_job)
{
    static char body[131073] = {1, 0};
    const char *argv[] = {"0", "a", "+0", "0", body};
    size_t len[] = {1, 1, 2, 1, 131072};

    for (; len[4] <= 131073; len[4]++) {
        now_at(0);
        argv[3] = "0";
        run_bytes("schedule", 5, argv, len);
        given("claim", "0 me 1000 1");
        argv[3] = "5";
        run_bytes("schedule", 5, argv, len);
        now_at(1000);
        given("schedule", "0 b +5 0 " REC);
        RUN("cancel_all", "0 1 '' '' 0 100 '' 0",
            len[4] == 131072 ? "[U+1000000 2 0 '']" : "[U+1000000 1 0 '1 U+1000000 T+1005 0 ']");
        ask("FLUSHALL");
    }
}

Test(cancel_all, removes_the_entries_of_their_tags)
{
    given("schedule", "0 a +5 0 " TAG_A " b +6 0 " TAG_A);
    RUN("cancel_all", "0 1 '' '' 0 1 '' 0", "[U 1 0 '1 U T+6 T+5 a']");
    KEYS("due b:T+6 | jobs b=" TAG_A " | index 't a b' | t b:T+5");
}

Test(cancel_all, looks_for_the_jobs_of_a_series_or_a_group_and_of_no_other)
{
    given("schedule", "0 a +5 0 " TAG_A " b +6 0 " TAG_A);
    ask("CONFIG RESETSTAT");
    RUN("cancel_all", "0 1 '' '' 0 100 '' 0", "[U 2 0 '']");
    cr_assert_eq(calls("zrevrangebylex"), 0);
}

Test(cancel_all, removes_what_other_programs_have_left)
{
    ask("ZADD s:{q}:due 5 member -7 low inf high");
    ask("HSET s:{q}:attempts member x");
    ask("ZADD s:{q}:dead 6 %s", "a b");
    RUN("cancel_all", "0 1 '' '' 0 1 '' 0", "[U 1 0 '1 U inf -7 low']");
    RUN("cancel_all", text("0 1 '' '' 0 1 '%s' 0", moments("1 U inf -7 low")),
        "[U 1 0 '1 U inf 5 member']");
    RUN("cancel_all", text("0 1 '' '' 0 1 '%s' 0", moments("1 U inf 5 member")), "[U 1 0 '']");
    RUN("cancel_all", "0 3 '' '' 0 100 '' 0", "[U 1 0 '']");
    KEYS("");
}

Test(cancel_all, removes_a_job_whose_lease_is_over_whatever_is_in_its_attempt)
{
    static const char *const attempts[] = {"", "x", "1 1", "2 1", "3 1 me 1 1 5 5 x=1 "};

    for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++) {
        now_at(0);
        given("schedule", "0 a +0 0 " REC);
        given("claim", "0 me 1000 1");
        now_at(1000);
        ask("HSET s:{q}:attempts a %s", attempts[i]);
        RUN("cancel_all", "0 1 '' '' 0 100 '' 0", "[U+1000000 1 0 '']");
        ask("DEL s:{q}:seq");
        KEYS("");
    }
}

/* An id of more than 255 bytes is none: its beginning suffices to pass by it. */
Test(cancel_all, passes_by_members_of_any_length)
{
    char *id = text("%0*d", 400, 0);
    long long n;

    for (int i = 0; i < 250; i++) {
        ask("ZADD s:{q}:dead 5 %s%d", id, i);
    }
    ask("ZADD s:{q}:dead 5 last");
    cr_assert_eq(until_none_is_left("cancel_all", "0 3 '' never 0 100", " 0", &n), 2);
    cr_assert_eq(n, 0);
    cr_assert_eq(until_none_is_left("cancel_all", "0 3 '' '' 0 100", " 0", &n), 2);
    ask("FLUSHALL");
}

Test(cancel_all, refuses_what_is_no_cursor)
{
    static const char *const cursors[] = {"x", "5 1 1 1 a", "1 x 1 1 a", "1 1 1 1", "0"};

    given("schedule", "0 a +5 0 " REC);
    char *before = dumps();
    for (size_t i = 0; i < sizeof cursors / sizeof *cursors; i++) {
        redisReply *r = run("cancel_all", text("0 1 '' '' 0 100 '%s' 0", cursors[i]));
        cr_assert(r->type == REDIS_REPLY_ERROR && strstr(r->str, "no cursor"), "%s", show(r));
    }
    cr_assert_str_eq(dumps(), before);
    KEYS("due a:T+5 | jobs a=" REC " | t a:T+4");
}

Test(cancel_all, reads_no_record_of_those_that_run)
{
    many(0, 3, "+0");
    given("claim", "0 me 1000 3");
    ask("CONFIG RESETSTAT");
    RUN("cancel_all", "0 2 '' '' 0 100 '' 0", "[U 0 3 '']");
    RUN("cancel_all", "0 2 '' '' 0 100 '' 1", "[U 0 3 '']");
    cr_assert_eq(calls("hget"), 0);
    ask("FLUSHALL");
}

/* They are counted and left, so it does not matter that one of them is claimed again meanwhile. */
Test(cancel_all, counts_those_that_run_of_its_beginning)
{
    many(0, 151, "+0");
    given("claim", "0 me 1000 100");
    given("claim", "0 me 1000 50");
    redisReply *r = run("cancel_all", "0 2 '' '' 0 100 '' 0");
    cr_assert_eq(r->element[2]->integer, 100, "%s", show(r));
    given("release", "0 me j120 U+121");
    given("claim", "0 me 1000 0 j120");
    given("claim", "0 me 2000 1");
    r = run("cancel_all", text("0 2 '' '' 0 100 '%s' 0", r->element[3]->str));
    cr_assert_eq(r->element[2]->integer, 50, "%s", show(r));
    ask("FLUSHALL");
}

Test(cancel_all, reads_no_job_that_cannot_be_one)
{
    many(0, 3, "+0");
    given("claim", "0 me 1000 2");
    given("schedule", "0 late +5 0 " REC);
    ask("CONFIG RESETSTAT");
    RUN("cancel_all", "0 1 '' '' T+1 100 '' 1", "[U 1 0 '']");
    cr_assert_eq(calls("zcount"), 2, "of leases that are over, and of jobs that wait");
    cr_assert_eq(calls("zrange"), 2, "the last of those that wait, and one page of them");
    RUN("cancel_all", "0 1 '' '' T+1 100 '' 1", "[U 0 0 '']");
    cr_assert_eq(calls("hmget"), 1, "of that page");
    ask("CONFIG RESETSTAT");
    RUN("cancel_all", "0 3 '' '' 0 100 '' 1", "[U 0 0 '']");
    cr_assert_eq(calls("hmget"), 0, "of those that run none is dead");
    ask("CONFIG RESETSTAT");
    RUN("cancel_all", "0 4 '' '' 0 100 '' 0", "[U 0 0 '']");
    cr_assert_eq(calls("zcount"), 1, "leases do not matter to those that are kept");
    ask("FLUSHALL");
}
