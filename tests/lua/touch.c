/* SPDX-License-Identifier: MIT */
/* touch and depth: when to look, and how much there is. */
#include "script.h"

SCRIPTS(touch);
SCRIPTS(depth);

/* Of two listeners the one of rank 0 owns a, b, e and f, the other c, d, g and h. */
#define ROW_OF(record, id, token, due, at, ends, expired) \
    "['" id "' 2 " ends " '1 " token " me 1 10 " at " " due " ' '" record "' " expired "]"
#define ROW(id, token, due, at, ends) ROW_OF(REC, id, token, due, at, ends, "0")
#define ROW_NOW(id, token) ROW(id, token, "T", "U", "T+1000")

/* ---- what it claims ---- */
Test(touch, reads_the_triggers_of_what_is_due_and_claims_it)
{
    RUN("touch", "0 me 1000 100 0 0 1 1 0", "[U 0 0 0 0 0 0 0 0 0 0 0 0 '']");
    given("schedule", "0 a +1 0 " REC "x b +2 0 " REC " c +9 0 " REC);

    char *before = dumps();
    RUN("touch", "0 me 1000 100 0 0 1 1 0", "[U 0 T+1 0 0 0 0 0 0 0 0 0 0 '']");
    RUN("touch", "0 me 1000 100 T-5 0 1 1 0", "[U 0 T+1 0 0 0 0 0 0 0 T-5 0 0 '']");
    same(__FILE__, __LINE__, "keys", dumps(), before);

    ask("DEL s:{q}:t:a s:{q}:t:b");
    now_at(2);
    RUN("touch", "0 me 1000 100 T 0 1 1 0",
        text("[U+2000 0 T+9 0 0 0 0 2 0 0 T+2 0 0 '' %s %s]",
             ROW_OF(REC "x", "a", "U+2001", "T+1", "U+2000", "T+1002", "0"),
             ROW("b", "U+2002", "T+2", "U+2000", "T+1002")));
    KEYS("due c:T+9 | run a:T+1002 b:T+1002 | jobs a=" REC "x b=" REC " c=" REC
         " | attempts a=1 U+2001 me 1 10 U+2000 T+1  b=1 U+2002 me 1 10 U+2000 T+2  | seq U+2002 "
         "| t c:T+8");
    RUN("touch", "0 me 1000 100 0 0 1 1 0", "[U+2000 0 T+9 0 0 0 0 0 0 0 0 0 0 '']");

    now_at(9);
    ask("DEL s:{q}:t:c");
    RUN("touch", "0 me 1000 100 T+2 0 1 1 0",
        "[U+9000 0 0 0 0 0 0 1 0 0 T+9 0 0 '' " ROW("c", "U+9001", "T+9", "U+9000", "T+1009") "]");
    HEARD("");
}

Test(touch, claims_its_own_jobs_alone)
{
    given("schedule", "0 a +0 0 " REC " b +0 0 " REC " c +0 0 " REC);
    RUN("touch", "0 me 1000 100 0 1 2 0 0",
        "[U T 0 0 0 0 0 1 0 0 T 0 0 '' " ROW_NOW("c", "U+1") "]");
    KEYS("due a:T b:T | run c:T+1000 | jobs a=" REC " b=" REC " c=" REC
         " | attempts c=1 U+1 me 1 10 U T  | seq U+1");
    RUN("touch", "0 me 1000 100 0 1 2 0 0", "[U T 0 0 0 0 0 0 0 0 T 0 0 '']");
    RUN("touch", "0 me 1000 100 0 0 2 0 0",
        "[U 0 0 0 0 0 0 2 0 0 T 0 0 '' " ROW_NOW("a", "U+2") " " ROW_NOW("b", "U+3") "]");
}

Test(touch, without_other_listeners_owns_every_job)
{
    given("schedule", "0 a +0 0 " REC " c +0 0 " REC);
    RUN("touch", "0 me 1000 1 0 7 1 0 0", "[U T 0 0 0 0 0 1 0 0 T 1 0 '' " ROW_NOW("a", "U+1") "]");
    RUN("touch", "0 me 1000 1 0 -1 0 0 0",
        "[U 0 0 0 0 0 0 1 0 0 T 0 0 '' " ROW_NOW("c", "U+2") "]");
}

Test(touch, claims_as_many_as_it_may_and_says_whether_more_are_due)
{
    given("schedule", "0 a +0 0 " REC " b +0 0 " REC " c +0 0 " REC " e +0 0 " REC);

    char *before = dumps();
    RUN("touch", "0 me 1000 0 0 0 2 1 0", "[U T 0 0 0 0 0 4 0 0 T 1 0 '']");
    same(__FILE__, __LINE__, "keys", dumps(), before);

    RUN("touch", "0 me 1000 2 0 0 2 1 0",
        "[U T 0 0 0 0 0 4 0 0 T 1 0 '' " ROW_NOW("a", "U+1") " " ROW_NOW("b", "U+2") "]");
    /* c is another's */
    RUN("touch", "0 me 1000 1 0 0 2 1 0", "[U T 0 0 0 0 0 2 0 0 T 0 0 '' " ROW_NOW("e", "U+3") "]");
}

Test(touch, claims_a_hundred_at_most)
{
    many(0, 150, "+0");
    ask("CONFIG RESETSTAT");

    redisReply *r = run("touch", "0 me 1000 1000 0 0 1 1 0");
    cr_assert_eq(r->elements, 14 + 100);
    same(__FILE__, __LINE__, "read", show(r->element[7]), "100");
    same(__FILE__, __LINE__, "more", show(r->element[11]), "1");
    same(__FILE__, __LINE__, "job", show(r->element[113]), ROW_NOW("j099", "U+100"));

    static const char *const once[] = {"zrem", "set", "zadd", "hset", "exists"};
    for (size_t i = 0; i < sizeof once / sizeof *once; i++) {
        cr_assert_eq(calls(once[i]), 1, "%s: %lld", once[i], calls(once[i]));
    }
    cr_assert_eq(calls("del"), 0);

    r = run("touch", "0 me 1000 1000 0 0 1 1 0");
    cr_assert_eq(r->elements, 14 + 50);
    same(__FILE__, __LINE__, "more", show(r->element[11]), "0");

    many(200, 100, "+0");
    r = run("touch", "0 me 1000 1000 0 0 1 1 0");
    cr_assert_eq(r->elements, 14 + 100);
    same(__FILE__, __LINE__, "more", show(r->element[11]), "1"); /* as far as it has seen */
}

Test(touch, claims_no_batch_more_after_256_KiB)
{
    static char body[262145] = {1, 0};
    const char *argv[1 + 4 * 4] = {"0"};
    size_t len[1 + 4 * 4] = {1};

    for (size_t i = 0; i < 4; i++) {
        const char *job[] = {text("%zu", i), "+0", "0", body};
        memcpy(argv + 1 + 4 * i, job, sizeof job);
        memcpy(len + 1 + 4 * i, (size_t[]){1, 2, 1, i ? 2 : sizeof body}, 4 * sizeof *len);
    }
    run_bytes("schedule", 17, argv, len);
    heard();

    redisReply *r = run("touch", "0 me 1000 100 0 0 1 1 0");
    cr_assert_eq(r->elements, 14 + 1);
    same(__FILE__, __LINE__, "oldest", show(r->element[1]), "T");
    same(__FILE__, __LINE__, "read", show(r->element[7]), "4");
    same(__FILE__, __LINE__, "more", show(r->element[11]), "1");
    RUN("touch", "0 me 1000 100 0 0 1 1 0",
        text("[U 0 0 0 0 0 0 3 0 0 T 0 0 '' %s %s %s]", ROW_NOW("1", "U+2"), ROW_NOW("2", "U+3"),
             ROW_NOW("3", "U+4")));
}

#define NOT_READ "stored data is in a format this version cannot read"

Test(touch, moves_what_it_cannot_read_to_dead_and_removes_what_was_lost)
{
    given("schedule", "0 a +0 0 " REC " b +0 0 \\02 c +0 0 \\02 f +0 0 " REC);
    ask("ZADD s:{q}:due %lld e %lld g", (long long)T, (long long)T);
    ask("HSET s:{q}:attempts e %s", "1 1 me 1 10 2 3 ");

    /* c and g are another's */
    RUN("touch", "0 me 1000 2 0 0 2 1 0",
        "[U T 0 1 0 0 0 6 0 0 T 1 0 '' " ROW_NOW("a", "U+1") " ['b' 3 T '1 0 me 0 0 U T " NOT_READ
                                                             "' '' 0]]");
    RUN("touch", "0 me 1000 100 0 0 2 1 0",
        "[U T 0 0 1 0 0 4 0 0 T 0 0 '' " ROW_NOW("f", "U+2") "]");
    KEYS("due c:T g:T | run a:T+1000 f:T+1000 | dead b:T | jobs a=" REC " b=\\02 c=\\02 f=" REC
         " | attempts a=1 U+1 me 1 10 U T  b=1 0 me 0 0 U T " NOT_READ
         " f=1 U+2 me 1 10 U T  | seq U+2");
    RUN("touch", "0 me 1000 100 0 1 2 1 0",
        "[U 0 0 1 1 0 0 2 0 0 T 0 0 '' ['c' 3 T '1 0 me 0 0 U T " NOT_READ "' '' 0]]");
}

Test(touch, with_a_last_token_that_is_none_is_refused_before_it_reads_a_trigger)
{
    ask("DEBUG SET-ACTIVE-EXPIRE 0");
    given("schedule", "0 a +0 0 " REC);
    ask("SET s:{q}:t:a 1 PX 1");
    wait_until(redis_now_ms(redis) + 1);
    ask("SET s:{q}:seq one");
    RUN("touch", "0 me 1000 100 0 0 1 1 0", "-ERR s:{q}:seq is no token");
    cr_assert_str_eq(expired(), "");
    cr_assert_eq(redis_int(redis, "ZCARD s:{q}:due"), 1);
    ask("DEL s:{q}:seq");
    given("touch", "0 me 1000 0 0 0 1 1 0");
    cr_assert_str_eq(expired(), "a");
}

/* ---- which triggers it reads ---- */
Test(touch, reads_the_triggers_of_others_if_it_is_asked_to)
{
    given("schedule", "0 a +1 0 " REC " c +1 0 " REC);
    now_at(1);
    ask("DEL s:{q}:t:a");
    RUN("touch", "0 me 1000 0 0 0 2 0 0", "[U+1000 T+1 0 0 0 0 0 0 0 0 T+1 1 0 '']");
    RUN("touch", "0 me 1000 0 0 0 2 1 0", "[U+1000 T+1 0 0 0 0 0 2 1 0 0 1 0 '']");
    RUN("touch", "0 me 1000 1 0 0 2 0 0",
        "[U+1000 T+1 0 0 0 0 0 1 0 0 T+1 0 0 '' " ROW("a", "U+1001", "T+1", "U+1000",
                                                      "T+1001") "]");
    ask("DEL s:{q}:t:c");
}

/* A key's clock is the script's start, which may be a moment before TIME. */
Test(touch, of_a_trigger_that_is_still_there_comes_again)
{
    given("schedule", "0 a T+1 0 " REC " b T+2 0 " REC " c T+3 0 " REC);
    now_at(2);
    RUN("touch", "0 me 1000 0 T 0 1 1 0", "[U+2000 T+1 T+3 0 0 0 0 2 2 0 T 1 0 '']");
    ask("DEL s:{q}:t:a");
    RUN("touch", "0 me 1000 0 T 0 1 1 0", "[U+2000 T+1 T+3 0 0 0 0 2 1 0 T 1 0 '']");
    ask("DEL s:{q}:t:b");
    RUN("touch", "0 me 1000 0 T 0 1 1 0", "[U+2000 T+1 T+3 0 0 0 0 2 0 0 T+2 1 0 '']");
}

Test(touch, deletes_the_triggers_of_what_it_claimed_if_any_is_still_there)
{
    given("schedule", "0 a +1 0 " REC " b +1 0 \\02 c +1 0 " REC " e +1 0 " REC);
    ask("HDEL s:{q}:jobs e");
    given("schedule", "0 f +1 0 " REC);
    now_at(1);
    RUN("touch", "0 me 1000 3 T 0 2 1 0",
        "[U+1000 T+1 0 1 1 0 0 5 5 0 T 1 0 '' " ROW(
            "a", "U+1001", "T+1", "U+1000", "T+1001") " ['b' 3 T+1 '1 0 me 0 0 U+1000 T+1 " NOT_READ
                                                      "' '' 0]]");
    KEYS("due c:T+1 f:T+1 | run a:T+1001 | dead b:T+1 | jobs a=" REC " b=\\02 c=" REC " f=" REC
         " | attempts a=1 U+1001 me 1 10 U+1000 T+1  b=1 0 me 0 0 U+1000 T+1 " NOT_READ
         " | seq U+1001 | t c:T+1 f:T+1");
    ask("DEL s:{q}:t:c s:{q}:t:f");
}

Test(touch, believes_no_cursor_from_the_future)
{
    given("schedule", "0 a +0 0 " REC);
    RUN("touch", "0 me 1000 100 T+1 0 1 1 0", "[U T 0 0 0 0 0 0 0 0 T 0 0 '']");
    now_at(-1);
    RUN("touch", "0 me 1000 100 T 0 1 1 0", "[U-1000 0 T 0 0 0 0 0 0 0 T-1 0 0 '']");
}

Test(touch, neither_reads_nor_claims_what_its_cursor_has_passed)
{
    given("schedule", "0 a +0 0 " REC " b +1 0 " REC);
    ask("DEL s:{q}:t:b");
    now_at(1);
    RUN("touch", "0 me 1000 100 T+1 0 1 1 0", "[U+1000 T 0 0 0 0 0 0 0 0 T+1 0 0 '']");
    RUN("touch", "0 me 1000 100 T 0 1 1 0",
        "[U+1000 T 0 0 0 0 0 1 0 0 T+1 0 0 '' " ROW("b", "U+1001", "T+1", "U+1000", "T+1001") "]");
}

/* What it passed over, being another's, moves the cursor too. */
Test(touch, reads_a_hundred_and_goes_on_after_them)
{
    many(0, 100, "+0");
    now_at(1);
    many(100, 50, "+0");
    RUN("touch", "0 me 1000 0 0 0 1 1 0", "[U+1000 T 0 0 0 0 0 100 0 0 T 1 0 '']");
    RUN("touch", "0 me 1000 0 T 0 1 1 0", "[U+1000 T 0 0 0 0 0 50 0 0 T+1 1 0 '']");
    RUN("touch", "0 me 1000 0 T+1 0 1 1 0", "[U+1000 T 0 0 0 0 0 0 0 0 T+1 0 0 '']");
    RUN("touch", "0 me 1000 0 0 64 64 0 0", "[U+1000 T 0 0 0 0 0 0 0 0 T 1 0 '']");
    RUN("touch", "0 me 1000 0 T 64 64 0 0", "[U+1000 T 0 0 0 0 0 0 0 0 T+1 0 0 '']");
    many(200, 101, "+0");
    RUN("touch", "0 me 1000 0 T-1 0 1 1 0", "[U+1000 T 0 0 0 0 0 100 0 0 T 1 0 '']");
    ask("SET s:{q}:t:j299 1"); /* the 151st of this millisecond: a batch is a backlog, and claimed
                                  as such */
    RUN("touch", "0 me 1000 0 T 0 1 1 0", "[U+1000 T 0 0 0 0 0 100 0 0 T+1 1 0 '']");
    ask("DEL s:{q}:t:j299");
}

Test(touch, makes_redis_say_expired)
{
    now_real();
    redis_do(redis, "DEBUG SET-ACTIVE-EXPIRE 0"); /* or Redis might be the first to look */
    given("schedule", "0 a +5 0 " REC " b +3600000 0 " REC);
    int64_t due = redis_int(redis, "ZSCORE s:{q}:due a");
    wait_until(due);
    cr_assert_str_eq(expired(), "");
    redisReply *r = run("touch", "0 me 1000 100 0 0 1 1 0");
    cr_assert_eq(r->element[7]->integer, 1);
    cr_assert_eq(r->element[8]->integer, 0);
    cr_assert_eq(r->element[9]->integer, 1);
    cr_assert_eq(r->element[10]->integer, due);
    cr_assert_eq(r->elements, 14 + 1);
    cr_assert_str_eq(r->element[14]->element[0]->str, "a");
    cr_assert_str_eq(expired(), "a");
}

/* The clock of the scripts stands still here, and Redis's own goes on: what the script says is due,
 * is overdue to Redis. */
Test(touch, counts_the_triggers_that_its_reading_expired)
{
    ask("DEBUG SET-ACTIVE-EXPIRE 0");
    given("schedule", "0 a +1 0 " REC " b +1 0 " REC " c +1 0 " REC);
    now_at(1);
    ask("SET s:{q}:t:a 1 PX 1");
    ask("SET s:{q}:t:b 1 PX 1");
    ask("DEL s:{q}:t:c");
    wait_until(redis_now_ms(redis) + 1);
    RUN("touch", "0 me 1000 0 0 0 1 1 0", "[U+1000 T+1 0 0 0 0 0 3 0 2 T+1 1 0 '']");
}

Test(touch, says_that_its_reading_expired_the_triggers_of_its_jobs_only_if_that_is_sure)
{
    ask("DEBUG SET-ACTIVE-EXPIRE 0");
    given("schedule", "0 a +0 0 " REC " b +0 0 " REC " e +0 0 " REC);
    ask("SET s:{q}:t:a 1 PX 1");
    ask("SET s:{q}:t:b 1 PX 1");
    wait_until(redis_now_ms(redis) + 1);
    /* e had none: which two of the three it expired is not known */
    RUN("touch", "0 me 1000 1 0 0 1 1 0", "[U T 0 0 0 0 0 3 0 2 T 1 0 '' " ROW_NOW("a", "U+1") "]");

    ask("SET s:{q}:t:b 1 PX 1");
    ask("SET s:{q}:t:e 1 PX 1");
    wait_until(redis_now_ms(redis) + 1);
    RUN("touch", "0 me 1000 1 0 0 1 1 0",
        "[U T 0 0 0 0 0 2 0 2 T 1 0 '' " ROW_OF(REC, "b", "U+2", "T", "U", "T+1000", "1") "]");
}

/* ---- what comes next ---- */
Test(touch, names_the_due_times_of_the_next_second)
{
    RUN("touch", "0 me 1000 0 0 0 1 1 24", "[U 0 0 0 0 0 0 0 0 0 0 0 T+999 '']");
    given("schedule", "0 a +0 0 " REC " b +5 0 " REC " c +999 0 " REC " d +1000 0 " REC);
    RUN("touch", "0 me 1000 0 T 0 1 1 0", "[U T T+5 0 0 0 0 0 0 0 T 0 0 '']");
    RUN("touch", "0 me 1000 0 T 0 1 1 24", "[U T T+5 0 0 0 0 0 0 0 T 0 T+999 '+T+5 +T+999']");
    now_at(1);
    RUN("touch", "0 me 1000 0 T+1 0 1 1 24",
        "[U+1000 T T+5 0 0 0 0 0 0 0 T+1 0 T+1000 '+T+5 +T+999 +T+1000']");
}

Test(touch, names_the_due_times_of_as_many_jobs_as_asked_for)
{
    given("schedule", "0 a +5 0 " REC " b +6 0 " REC " c +7 0 " REC);
    RUN("touch", "0 me 1000 0 0 0 1 1 1", "[U 0 T+5 0 0 0 0 0 0 0 0 0 T+5 '+T+5']");
    RUN("touch", "0 me 1000 0 0 0 1 1 2", "[U 0 T+5 0 0 0 0 0 0 0 0 0 T+6 '+T+5 +T+6']");
    RUN("touch", "0 me 1000 0 0 0 1 1 3", "[U 0 T+5 0 0 0 0 0 0 0 0 0 T+7 '+T+5 +T+6 +T+7']");
    RUN("touch", "0 me 1000 0 0 0 1 1 4", "[U 0 T+5 0 0 0 0 0 0 0 0 0 T+999 '+T+5 +T+6 +T+7']");
}

Test(touch, names_the_due_times_of_a_hundred_jobs_at_most)
{
    many(0, 99, "+5");
    given("schedule", "0 y +6 0 " REC " z +7 0 " REC);
    RUN("touch", "0 me 1000 0 0 0 1 1 1000", "[U 0 T+5 0 0 0 0 0 0 0 0 0 T+6 '+T+5 +T+6']");
}

Test(touch, names_the_next_due_time_if_that_is_later_than_in_a_second)
{
    given("schedule", "0 c +1001 0 " REC " d +5000 0 " REC);
    RUN("touch", "0 me 1000 0 0 0 1 1 24", "[U 0 T+1001 0 0 0 0 0 0 0 0 0 T+1001 '+T+1001']");
    RUN("touch", "0 me 1000 0 0 0 2 1 24", "[U 0 T+1001 0 0 0 0 0 0 0 0 0 T+1001 'T+1001']");
}

Test(touch, marks_the_due_times_of_its_own_jobs)
{
    /* of one millisecond: another's and its own; its own and another's; another's; its own */
    given("schedule", "0 d +5 0 " REC " e +5 0 " REC " b +6 0 " REC " c +6 0 " REC " g +7 0 " REC
                      " h +7 0 " REC " a +8 0 " REC " f +8 0 " REC);
    RUN("touch", "0 me 1000 0 0 0 2 1 24",
        "[U 0 T+5 0 0 0 0 0 0 0 0 0 T+999 '+T+5 +T+6 T+7 +T+8']");
    RUN("touch", "0 me 1000 0 0 1 2 1 24",
        "[U 0 T+5 0 0 0 0 0 0 0 0 0 T+999 '+T+5 +T+6 +T+7 T+8']");
    RUN("touch", "0 me 1000 0 0 1 1 1 24",
        "[U 0 T+5 0 0 0 0 0 0 0 0 0 T+999 '+T+5 +T+6 +T+7 +T+8']");
}

Test(touch, names_no_due_time_of_a_job_that_it_claims)
{
    given("schedule", "0 a +0 0 " REC " b +1 0 " REC);
    RUN("touch", "0 me 1000 1 0 0 1 1 24",
        "[U 0 T+1 0 0 0 0 1 0 0 T 0 T+999 '+T+1' " ROW_NOW("a", "U+1") "]");
}

Test(depth, counts_each_state)
{
    RUN("depth", "0", "[U 0 0 0 0 0 '']");
    five();
    char *before = dumps();
    /* a lease that is over is over; the sweep will say whose tries are too */
    RUN("depth", "0", "[U+20000 3 1 1 10 0 '']");
    same(__FILE__, __LINE__, "keys", dumps(), before);
    now_at(999);
    RUN("depth", "0", "[U+999000 3 1 1 989 0 '']");
    now_at(1000);
    RUN("depth", "0", "[U+1000000 4 0 1 990 0 '']");
}

Test(depth, says_for_how_long_the_oldest_due_job_waits)
{
    given("schedule", "0 a +5 0 " REC " b +7 0 " REC);
    now_at(5);
    RUN("depth", "0", "[U+5000 2 0 0 0 0 '']");
    now_at(8);
    RUN("depth", "0", "[U+8000 2 0 0 3 0 '']");
    given("claim", "0 me 4 1");
    RUN("depth", "0", "[U+8000 1 1 0 1 0 '']");
    now_at(20);
    RUN("depth", "0", "[U+20000 2 0 0 13 0 '']");
    given("claim", "0 me 5 1");
    RUN("depth", "0", "[U+20000 1 1 0 8 0 '']");
}
