/* SPDX-License-Identifier: MIT */
#include "script.h"

SCRIPTS(claim);

#define ABC "0 a T+1 0 " REC "a b T+2 0 " REC "b c T+3 0 " REC "c"

Test(claim, takes_what_is_due_the_oldest_first)
{
    given("schedule", ABC);
    now_at(2);
    RUN("claim", "0 me 1000 10",
        "[U+2000 0 T+3 0 0 0 0 ['a' 2 T+1002 '1 U+2001 me 1 10 U+2000 T+1 ' '" REC
        "a' 0] ['b' 2 T+1002 '1 U+2002 me 1 10 U+2000 T+2 ' '" REC "b' 0]]");
    KEYS("due c:T+3 | run a:T+1002 b:T+1002 | jobs a=" REC "a b=" REC "b c=" REC
         "c | attempts a=1 U+2001 me 1 10 U+2000 T+1  b=1 U+2002 me 1 10 U+2000 T+2  | seq U+2002 "
         "| t "
         "c:T+2");
    HEARD("");
}

Test(claim, is_never_early)
{
    given("schedule", ABC);

    char *before = dumps();
    RUN("claim", "0 me 1000 10", "[U 0 T+1 0 0 0 0]");
    RUN("claim", "0 me 1000 0 a b c", "[U 0 T+1 0 0 0 0]");
    same(__FILE__, __LINE__, "keys", dumps(), before);
    now_at(1);
    RUN("claim", "0 me 1000 0 b a c",
        "[U+1000 0 T+2 0 0 0 0 ['a' 2 T+1001 '1 U+1001 me 1 10 U+1000 T+1 ' '" REC "a' 2]]");
    now_at(2);
    RUN("claim", "0 me 1000 10",
        "[U+2000 0 T+3 0 0 0 0 ['b' 2 T+1002 '1 U+2001 me 1 10 U+2000 T+2 ' '" REC "b' 0]]");
    ask("DEL s:{q}:t:a"); /* Redis would have, by now */
}

/* Redis 8 expires a key in the millisecond of its time already. */
Test(claim, of_an_event_that_came_a_millisecond_early_makes_another_one_come)
{
    given("schedule", ABC);
    ask("DEL s:{q}:t:a s:{q}:t:b");
    RUN("claim", "0 me 1000 0 a b c", "[U 0 T+1 0 0 0 0]");
    KEYS("due a:T+1 b:T+2 c:T+3 | jobs a=" REC "a b=" REC "b c=" REC "c | t a:T+1 c:T+2");
    HEARD("");
}

Test(claim, by_ids_says_which_of_them_it_took)
{
    given("schedule", ABC);
    now_at(2);
    RUN("claim", "0 me 1000 0 none c b none a",
        "[U+2000 0 T+3 0 0 0 0 ['b' 2 T+1002 '1 U+2001 me 1 10 U+2000 T+2 ' '" REC
        "b' 3] ['a' 2 T+1002 '1 U+2002 me 1 10 U+2000 T+1 ' '" REC "a' 5]]");

    /* their triggers are over, or the ids would not be known */
    KEYS("due c:T+3 | run a:T+1002 b:T+1002 | jobs a=" REC "a b=" REC "b c=" REC
         "c | attempts a=1 U+2002 me 1 10 U+2000 T+1  b=1 U+2001 me 1 10 U+2000 T+2  | seq U+2002 "
         "| t "
         "a:T+1 b:T+1 c:T+2");
    ask("DEL s:{q}:t:a s:{q}:t:b");
}

Test(claim, of_an_id_named_twice_takes_it_once)
{
    given("schedule", "0 a +0 0 " REC " b +0 0 " REC);
    RUN("claim", "0 me 1000 0 a b a a",
        "[U 0 0 0 0 0 0 ['a' 2 T+1000 '1 U+1 me 1 10 U T ' '" REC
        "' 1] ['b' 2 T+1000 '1 U+2 me 1 10 U T ' '" REC "' 2]]");
    KEYS("run a:T+1000 b:T+1000 | jobs a=" REC " b=" REC
         " | attempts a=1 U+1 me 1 10 U T  b=1 U+2 me 1 10 U T  | seq U+2");
}

Test(claim, takes_nothing_that_runs_or_is_dead)
{
    five();
    RUN("claim", "0 me 1000 0 w r e u d", "[U+20000 0 T+500 0 0 0 0]");
    RUN("claim", "0 me 1000 100", "[U+20000 0 T+500 0 0 0 0]");
    KEYS(FIVE);
}

Test(claim, says_when_to_look_next)
{
    RUN("claim", "0 me 1000 10", "[U 0 0 0 0 0 0]");
    RUN("claim", "0 me 1000 0", "[U 0 0 0 0 0 0]");
    KEYS("");
    given("schedule", "0 a T+1 0 " REC " b T+2 0 " REC " c T+5 0 " REC " d T+7 0 " REC);
    RUN("claim", "0 me 1000 0", "[U 0 T+1 0 0 0 0]");
    now_at(2);
    RUN("claim", "0 me 1000 0", "[U+2000 T+1 T+5 0 0 0 0]");
    RUN("claim", "0 me 1000 1",
        "[U+2000 T+2 T+5 0 0 0 0 ['a' 2 T+1002 '1 U+2001 me 1 10 U+2000 T+1 ' '" REC "' 0]]");
    now_at(7);
    RUN("claim", "0 me 1000 2",
        "[U+7000 T+7 0 0 0 0 0 ['b' 2 T+1007 '1 U+7001 me 1 10 U+7000 T+2 ' '" REC
        "' 0] ['c' 2 T+1007 '1 U+7002 me 1 10 U+7000 T+5 ' '" REC "' 0]]");
    RUN("claim", "0 me 1000 0", "[U+7000 T+7 0 0 0 0 0]");
}

Test(claim, tokens_grow_over_all_lives_and_each_queue_has_its_own)
{
    for (int life = 1; life <= 3; life++) {
        given("schedule", "0 a +0 0 " REC);
        RUN("claim", "0 me 1000 1",
            text("[U 0 0 0 0 0 0 ['a' 2 T+1000 '1 U+%d me 1 10 U T ' '" REC "' 0]]", life));
        RUN("done", text("0 me a U+%d", life), "[U 1]");
    }

    run_on("s:{p}:due", "schedule", "0 a +0 0 " REC);
    same(__FILE__, __LINE__, "claim", show(run_on("s:{p}:due", "claim", "0 me 1000 1")),
         "[U 0 0 0 0 0 0 ['a' 2 T+1000 '1 U+1 me 1 10 U T ' '" REC "' 0]]");
    KEYS("seq U+3");
}

Test(claim, tokens_are_the_time_where_the_last_one_was_lost)
{
    given("schedule", "0 a +0 0 " REC " b +0 0 " REC);
    RUN("claim", "0 me 1000 0 a",
        "[U T 0 0 0 0 0 ['a' 2 T+1000 '1 U+1 me 1 10 U T ' '" REC "' 1]]");
    ask("DEL s:{q}:seq"); /* a failover, a backup, an AOF that was cut */
    now_at(1);
    RUN("claim", "0 me 1000 0 b",
        "[U+1000 0 0 0 0 0 0 ['b' 2 T+1001 '1 U+1001 me 1 10 U+1000 T ' '" REC "' 1]]");
}

Test(claim, tokens_grow_where_the_clock_was_set_back)
{
    given("schedule", "0 a +0 0 " REC " b +0 0 " REC);
    now_at(5000);
    given("claim", "0 me 1000 0 a");
    now_at(0);
    given("claim", "0 me 1000 0 b");
    KEYS("run b:T+1000 a:T+6000 | jobs a=" REC " b=" REC
         " | attempts a=1 U+5000001 me 1 10 U+5000000 T  b=1 U+5000002 me 1 10 U T  | seq "
         "U+5000002");
}

Test(claim, keeps_the_last_token_until_the_clock_is_an_hour_past_it)
{
    given("schedule", "0 a +0 0 " REC);
    given("claim", "0 me 1000 1");
    cr_assert_eq(redis_int(redis, "PEXPIRETIME s:{q}:seq"), T + 3600000);
}

Test(claim, counts_tries_and_keeps_the_reason)
{
    given("schedule", "0 a +0 0 \\01\\01\\83\\01");
    given("claim", "0 me 1000 1");
    given("retry", "0 me a U+1 7 'so so'");
    now_at(7);
    RUN("claim", "0 you 500 1",
        "[U+7000 0 0 0 0 0 0 ['a' 2 T+507 '1 U+7001 you 2 131 U+7000 T+7 so so' '\\01\\01\\83\\01' "
        "0]]");
    KEYS("run a:T+507 | jobs a=\\01\\01\\83\\01 | attempts a=1 U+7001 you 2 131 U+7000 T+7 so so | "
         "seq "
         "U+7001");
}

Test(claim, begins_with_try_1_if_the_attempt_cannot_be_read)
{
    given("schedule", "0 a +0 0 " REC);
    ask("HSET s:{q}:attempts a %s", "2 7 10 8 9 10 me");
    RUN("claim", "0 me 1000 1", "[U 0 0 0 0 0 0 ['a' 2 T+1000 '1 U+1 me 1 10 U T ' '" REC "' 0]]");
    KEYS("run a:T+1000 | jobs a=" REC " | attempts a=1 U+1 me 1 10 U T  | seq U+1");
}

#define NOT_READ "stored data is in a format this version cannot read"

Test(claim, moves_what_it_cannot_read_to_dead_and_goes_on)
{
    given("schedule", "0 a +0 0 " REC
                      "a b +0 0 \\02\\00b c +0 0 \\01\\08c d +0 0 \\01\\01\\80 e +0 0 " REC "e");
    now_at(3);
    RUN("claim", "0 me 1000 10",
        "[U+3000 0 0 3 0 0 0 ['a' 2 T+1003 '1 U+3001 me 1 10 U+3000 T ' '" REC
        "a' 0] ['b' 3 T+3 '1 0 me 0 0 U+3000 T " NOT_READ
        "' '' 0] ['c' 3 T+3 '1 0 me 0 0 U+3000 T " NOT_READ
        "' '' 0] ['d' 3 T+3 '1 0 me 0 0 U+3000 T " NOT_READ
        "' '' 0] ['e' 2 T+1003 '1 U+3002 me 1 10 U+3000 T ' '" REC "e' 0]]");
    KEYS("run a:T+1003 e:T+1003 | dead b:T+3 c:T+3 d:T+3 | jobs a=" REC
         "a b=\\02\\00b c=\\01\\08c d=\\01\\01\\80 e=" REC
         "e | attempts a=1 U+3001 me 1 10 U+3000 T  b=1 0 me 0 0 U+3000 T " NOT_READ
         " c=1 0 me 0 0 U+3000 T " NOT_READ " d=1 0 me 0 0 U+3000 T " NOT_READ
         " e=1 U+3002 me 1 10 U+3000 T  | seq U+3002");
}

Test(claim, of_what_it_cannot_read_any_more_keeps_try_and_token)
{
    given("schedule", "0 a +0 0 " REC);
    given("claim", "0 me 1000 1");
    given("retry", "0 me a U+1 0 'so so'");
    ask("HSET s:{q}:jobs a %s", "\3");
    RUN("claim", "0 you 1000 0 a",
        "[U 0 0 1 0 0 0 ['a' 3 T '1 U+1 you 1 0 U T " NOT_READ "' '' 1]]");
    KEYS("dead a:T | jobs a=\\03 | attempts a=1 U+1 you 1 0 U T " NOT_READ " | seq U+1");
}

Test(claim, moves_what_cannot_be_an_id_to_dead_and_goes_on)
{
    static char big[1 << 20];
    static const struct {
        const char *id;
        size_t len;
    } bad[] = {{"a b", 3}, {"{", 1}, {"}", 1},   {"\xff", 1},      {"a\0", 2},
               {"\n", 1},  {"", 0},  {big, 256}, {big, sizeof big}};
    enum { N = sizeof bad / sizeof *bad };

    memset(big, 'x', sizeof big);
    for (size_t i = 0; i < N; i++) {
        ask("ZADD s:{q}:due 5 %b", bad[i].id, bad[i].len);
        ask("HSET s:{q}:jobs %b %b", bad[i].id, bad[i].len, "\1\0", (size_t)2);
    }

    given("schedule", text("0 a +0 0 " REC " %0255d +0 0 " REC, 0));

    redisReply *r = run("claim", "0 me 1000 100");
    cr_assert_eq(r->elements, 7 + 2);
    same(__FILE__, __LINE__, "dead", show(r->element[3]), text("%d", N));

    for (size_t i = 0; i < N; i++) {
        cr_assert_not_null(ask("ZSCORE s:{q}:dead %b", bad[i].id, bad[i].len)->str);
        cr_assert_not_null(ask("HGET s:{q}:jobs %b", bad[i].id, bad[i].len)->str);
        same(__FILE__, __LINE__, "held", show(ask("HGET s:{q}:attempts %b", bad[i].id, bad[i].len)),
             "'1 0 me 0 0 U 5 " NOT_READ "'");
    }

    ask("FLUSHALL");
}

Test(claim, with_a_last_token_that_is_none_is_refused_before_the_first_write)
{
    static const char *const bad[] = {
        "",
        "one",
        "1.5",
        "-1",
        "+1",
        " 1",
        "1 ",
        "0x10",
        "1e3",
        "007",
        "1\n",
        "9007199253692417", /* too near to 2^53, up to which Lua counts exactly */
        "9223372036854775807",
        "99999999999999999999"};

    given("schedule", "0 a +0 0 " REC " b +0 0 \\02");

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ask("SET s:{q}:seq %s", bad[i]);
        char *before = dumps();
        RUN("claim", "0 me 1000 10", "-ERR s:{q}:seq is no token");
        RUN("claim", "0 me 1000 0 a", "-ERR s:{q}:seq is no token");
        same(__FILE__, __LINE__, bad[i], dumps(), before);
    }

    HEARD("");
}

Test(claim, that_leaves_no_job_asks_for_none_to_come)
{
    given("schedule", "0 a +0 0 " REC);
    heard();
    ask("CONFIG RESETSTAT");
    given("claim", "0 me 1000 0 a");
    cr_assert_eq(calls("zrange"), 1);
    cr_assert_eq(calls("zrangebyscore"), 0);
    ask("FLUSHALL");
}

Test(claim, removes_members_without_a_record_and_goes_on)
{
    given("schedule", "0 a +0 0 " REC " z +0 0 " REC);
    ask("ZADD s:{q}:due %lld m %lld n", (long long)T, (long long)T);
    ask("HSET s:{q}:attempts m %s n %s", "1 1 me 1 10 2 3 ", "?");
    RUN("claim", "0 me 1000 10",
        "[U 0 0 0 2 0 0 ['a' 2 T+1000 '1 U+1 me 1 10 U T ' '" REC
        "' 0] ['z' 2 T+1000 '1 U+2 me 1 10 U T ' '" REC "' 0]]");
    KEYS("run a:T+1000 z:T+1000 | jobs a=" REC " z=" REC
         " | attempts a=1 U+1 me 1 10 U T  z=1 U+2 me 1 10 U T  | seq U+2");
    ask("ZADD s:{q}:due 5 m");
    ask("CONFIG RESETSTAT");
    RUN("claim", "0 me 1000 0 m", "[U 0 0 0 1 0 0]");
    cr_assert_eq(calls("hset"), 0); /* it is not held, not even for a moment */
    KEYS("run a:T+1000 z:T+1000 | jobs a=" REC " z=" REC
         " | attempts a=1 U+1 me 1 10 U T  z=1 U+2 me 1 10 U T  | seq U+2");
}

Test(claim, takes_a_hundred_at_most)
{
    many(0, 150, "+0");
    ask("CONFIG RESETSTAT");

    redisReply *r = run("claim", "0 me 1000 1000");
    cr_assert_eq(r->elements, 7 + 100);
    same(__FILE__, __LINE__, "job", show(r->element[7]),
         "['j000' 2 T+1000 '1 U+1 me 1 10 U T ' '" REC "' 0]");
    same(__FILE__, __LINE__, "job", show(r->element[106]),
         "['j099' 2 T+1000 '1 U+100 me 1 10 U T ' '" REC "' 0]");
    same(__FILE__, __LINE__, "oldest", show(r->element[1]), "T");

    /* records are read 1, 2, 4, 8, 16, 32 and 37 at a time, each time with what is held of them */
    cr_assert_eq(calls("hmget"), 14);

    static const char *const once[] = {"zrem", "set", "zadd", "hset", "del"};
    for (size_t i = 0; i < sizeof once / sizeof *once; i++) {
        cr_assert_eq(calls(once[i]), 1, "%s: %lld", once[i], calls(once[i]));
    }

    cr_assert_eq(run("claim", "0 me 1000 1000")->elements, 7 + 50);
}

Test(claim, takes_a_hundred_of_those_named_at_most)
{
    many(0, 101, "+0");
    char *args = text("0 me 1000 0");
    for (int i = 100; i >= 0; i--) {
        args = text("%s j%03d", args, i);
    }

    redisReply *r = run("claim", args);
    cr_assert_eq(r->elements, 7 + 100);
    same(__FILE__, __LINE__, "job", show(r->element[106]),
         "['j001' 2 T+1000 '1 U+100 me 1 10 U T ' '" REC "' 100]");
    same(__FILE__, __LINE__, "oldest", show(r->element[1]), "T");
}

/* One job, then two more, then four more: as long as no more than 256 KiB were read. */
Test(claim, reads_no_batch_more_after_256_KiB)
{
    static char body[262145] = {1, 0};
    static const struct {
        size_t len[3], taken;
    } c[] = {{{262145, 2, 2}, 1},
             {{262144, 2, 2}, 3},
             {{2, 131072, 131070}, 8},
             {{2, 131072, 131071}, 3}};

    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        const char *argv[1 + 4 * 8] = {"0"};
        size_t len[1 + 4 * 8] = {1};
        for (size_t k = 0; k < 8; k++) {
            const char *job[] = {text("%zu", k), "+0", "0", body};
            memcpy(argv + 1 + 4 * k, job, sizeof job);
            memcpy(len + 1 + 4 * k, (size_t[]){1, 2, 1, k < 3 ? c[i].len[k] : 2}, 4 * sizeof *len);
        }
        /* by due, and by name */
        run_bytes("schedule", 33, argv, len);
        cr_assert_eq(run("claim", "0 me 1000 10")->elements, 7 + (c[i].taken < 8 ? c[i].taken : 7),
                     "%zu", i);
        ask("FLUSHALL");
        run_bytes("schedule", 33, argv, len);
        redisReply *r = run("claim", "0 me 1000 0 0 1 2 3 4 5 6 7");
        cr_assert_eq(r->elements, 7 + (c[i].taken < 8 ? c[i].taken : 7), "%zu", i);
        same(__FILE__, __LINE__, "oldest", show(r->element[1]), "T");
        ask("FLUSHALL");
    }
}
