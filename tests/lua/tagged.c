/* SPDX-License-Identifier: MIT */
/* cancel_all and reschedule_all by a tag. */
#include "script.h"

SCRIPTS(tagged);

#define TAG_B "\\02\\00\\03T\\01b"

/* With the tag a: w waits, r runs, the lease of e ended, d is dead; x has none, y the tag b. */
static void four(void)
{
    given("schedule", "0 d +0 0 " TAG_A " e +0 0 " TAG_A " r +0 0 " TAG_A);
    given("claim", "0 me 10 0 d e");
    given("claim", "0 me 1000 0 r");
    given("fail", "0 me d U+1 'HTTP 500'");
    given("schedule", "0 w +500 0 " TAG_A " x +500 0 " REC " y +500 0 " TAG_B);
    now_at(20);
    heard();
}

static const char *waiting(void)
{
    return show(ask("ZRANGE s:{q}:due 0 -1 WITHSCORES"));
}

Test(tagged, cancel_all_removes_them_in_each_state_and_counts_those_that_run)
{
    four();
    RUN("cancel_all", "0 0 a '' 0 100 '' 0", "[U+20000 3 1 '']");
    KEYS("due x:T+500 y:T+500 | run r:T+1000 | jobs r=" TAG_A " x=" REC " y=" TAG_B
         " | attempts r=2 U+3 me 1 10 U T x=1  | index 't a r' 't b y' | seq U+3 | t x:T+499 "
         "y:T+499");
    HEARD("");
}

Test(tagged, cancel_all_asks_those_that_run_once)
{
    four();
    RUN("cancel_all", "0 0 a '' 0 100 '' 1", "[U+20000 3 1 '']");
    HEARD("0 'stop r U+3'");
    RUN("cancel_all", "0 0 a '' 0 100 '' 1", "[U+20000 0 0 '']");
    HEARD("");
    given("retry", "0 me r U+3 0 x");
    KEYS("due x:T+500 y:T+500 | jobs x=" REC " y=" TAG_B " | index 't b y' | seq U+3 | t x:T+499 "
         "y:T+499");
}

Test(tagged, cancel_all_deletes_as_many_as_was_asked_for_beside_those_that_run)
{
    given("schedule", "0 a +0 0 " TAG_A " b +5 0 " TAG_A " c +5 0 " TAG_A);
    given("claim", "0 me 1000 1");
    RUN("cancel_all", "0 0 a '' 0 1 '' 0", "[U 1 1 '0 U+1 c T+5 b']");
    ask("FLUSHALL");
}

Test(tagged, cancel_all_takes_those_of_a_state_alone)
{
    four();
    RUN("cancel_all", "0 3 a '' 0 100 '' 0", "[U+20000 1 0 '']");
    RUN("cancel_all", "0 2 a '' 0 100 '' 0", "[U+20000 0 1 '']");
    RUN("cancel_all", "0 1 a '' 0 1 '' 0", "[U+20000 1 0 '0 U+20000 w T+10 e']");
    RUN("cancel_all", "0 1 b '' 0 100 '' 0", "[U+20000 1 0 '']");
    KEYS("due w:T+500 x:T+500 | run r:T+1000 | jobs r=" TAG_A " w=" TAG_A " x=" REC
         " | attempts r=2 U+3 me 1 10 U T x=1  | index 't a r' 't a w' | seq U+3 | t w:T+499 "
         "x:T+499");
}

Test(tagged, cancel_all_takes_those_of_a_reason_and_before_a_moment)
{
    four();
    RUN("cancel_all", "0 0 a HTTP. 0 100 '' 0", "[U+20000 0 0 '']");
    RUN("cancel_all", "0 0 a HTTP T 100 '' 0", "[U+20000 0 0 '']");
    RUN("cancel_all", "0 0 a HTTP T+1 100 '' 0", "[U+20000 1 0 '']");
    RUN("cancel_all", "0 0 a '' T+10 100 '' 0", "[U+20000 0 0 '']");
    RUN("cancel_all", "0 0 a '' T+500 100 '' 0", "[U+20000 1 0 '']");
    RUN("cancel_all", "0 0 a '' T+1000 100 '' 0", "[U+20000 1 0 '']");
    RUN("cancel_all", "0 0 a '' T+1001 100 '' 0", "[U+20000 0 1 '']");
}

Test(tagged, reschedule_all_makes_them_wait_and_leaves_those_that_run)
{
    four();
    RUN("reschedule_all", "0 0 a '' 0 100 '' 0 T+600 0", "[U+20000 3 1 '' T+600]");
    KEYS("due x:T+500 y:T+500 d:T+600 e:T+600 w:T+600 | run r:T+1000 | jobs d=" TAG_A " e=" TAG_A
         " r=" TAG_A " w=" TAG_A " x=" REC " y=" TAG_B
         " | attempts e=2 U+2 me 1 10 U T x=1  r=2 U+3 me 1 10 U T x=1  | index 't a d' 't a e' 't "
         "a r' 't a w' 't b y' | seq U+3 | t d:T+599 e:T+599 w:T+599 x:T+499 y:T+499");
    HEARD("0 'T+600 d T+600 e T+600 w'");
    char *before = dumps();
    RUN("reschedule_all", "0 0 a '' 0 100 '' 0 T+600 0", "[U+20000 0 1 '' T+600]");
    cr_assert_str_eq(dumps(), before);
    heard();
    RUN("reschedule_all", "0 2 a '' 0 100 '' 1 T+600 0", "[U+20000 0 1 '' T+600]");
    HEARD("");
    RUN("reschedule_all", "0 2 a '' 0 100 '' 1 T+600 0", "[U+20000 0 0 '' T+600]");
    given("done", "0 me r U+3");
    cr_assert_eq(
        redis_int(redis, "ZCOUNT s:{q}:due %lld %lld", (long long)T + 600, (long long)T + 600), 4);
}

/* As in reschedule_all: a and b have the hashes 86f7e437 and e9d71f5e. */
Test(tagged, reschedule_all_spreads_them_and_a_delay_counts_from_the_first_call)
{
    given("schedule", "0 a +5 0 " TAG_A " b +6 0 " TAG_A);
    RUN("reschedule_all", "0 0 a '' 0 1 '' 0 +50 1000", "[U 1 0 'T+50 0 U b T+5 a' T+50]");
    now_at(3);
    RUN("reschedule_all", text("0 0 a '' 0 1 '%s' 0 +50 1000", moments("T+50 0 U b T+5 a")),
        "[U+3000 1 0 '' T+50]");
    KEYS("due a:T+577 b:T+963 | jobs a=" TAG_A " b=" TAG_A " | index 't a a' 't a b' | t a:T+576 "
         "b:T+962");
}

/* Other programs, and lost writes of Redis, may have left entries. */
Test(tagged, an_entry_counts_only_where_the_record_says_the_same)
{
    static const char *const left[] = {"y", "x", "lost", "", "a b", "no job"};

    four();
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        ask("ZADD s:{q}:index 0 %s", text("t a %s", left[i]));
    }
    ask("ZADD s:{q}:index 0 %s", text("t a %0*d", 400, 7));
    ask("ZADD s:{q}:due 5 %s", text("%0*d", 400, 7));
    ask("HSET s:{q}:jobs lost %b", "\2\0\3T\1a", (size_t)6);
    RUN("reschedule_all", "0 0 a '' 0 100 '' 0 T+700 0", "[U+20000 3 1 '' T+700]");
    RUN("cancel_all", "0 0 a '' 0 100 '' 0", "[U+20000 3 1 '']");
    RUN("cancel_all", "0 0 b '' 0 100 '' 0", "[U+20000 1 0 '']");
    cr_assert_eq(redis_int(redis, "HEXISTS s:{q}:jobs x"), 1);
    ask("FLUSHALL");
}

/* Only of a job that runs, and whose attempt says that it does, a record follows. */
Test(tagged, a_record_that_follows_no_run_says_nothing)
{
    static const char *const left[] = {"w", "r", "n"};

    four();
    given("schedule", "0 n +0 0 " REC);
    given("claim", "0 me 1000 0 n");
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) {
        ask("ZADD s:{q}:index 0 %s", text("t b %s", left[i]));
        ask("HSET s:{q}:next %s %b", left[i], "\2\0\3T\1b", (size_t)6);
    }
    ask("HSET s:{q}:attempts w %s", "2 0 - 0 10 0 5 d=9,j=1 ");
    ask("HSET s:{q}:attempts n rubbish");
    RUN("cancel_all", "0 0 b '' 0 100 '' 0", "[U+20000 1 0 '']");
    cr_assert_eq(redis_int(redis, "HEXISTS s:{q}:jobs y"), 0);
    ask("FLUSHALL");
}

/* What stands behind a character that is in no id may be cut off, but not the ids before it. */
Test(tagged, a_walk_that_ends_at_no_id_meets_all_ids_before_it)
{
    given("schedule", "0 a +5 0 " TAG_A " ab +5 0 " TAG_A);
    ask("ZADD s:{q}:index 0 %s", "t a a{");
    RUN("cancel_all", "0 0 a '' 0 100 '' 0", "[U 2 0 '']");
    ask("FLUSHALL");
}

/* An id of more than 255 bytes is none: its beginning suffices to pass by it, and to end at it. */
Test(tagged, a_walk_passes_by_entries_of_any_length)
{
    const char *cursor = "";
    int runs = 0;

    for (int i = 0; i < 150; i++) {
        ask("ZADD s:{q}:index 0 %s", text("t a %0*d%d", 400, 0, i));
        ask("ZADD s:{q}:index 0 %s", text("t a 1 %d", i));
    }
    given("schedule", "0 1x +5 0 " TAG_A);
    do {
        redisReply *r = run("cancel_all", text("0 0 a '' 0 100 '%s' 0", cursor));
        cr_assert_eq(r->type, REDIS_REPLY_ARRAY, "%s", r->str);
        cursor = r->element[3]->str;
        cr_assert_leq(r->element[3]->len, 640);
        runs++;
    } while (*cursor && runs < 9);
    cr_assert_lt(runs, 9);
    cr_assert_eq(redis_int(redis, "HLEN s:{q}:jobs"), 0);
    ask("FLUSHALL");
}

Test(tagged, a_name_that_begins_with_the_tag_is_another)
{
    given("schedule", "0 p +5 0 \\02\\00\\04T\\02aa q +5 0 \\02\\00\\04T\\02a! b +5 0 " TAG_A
                      " ~ +5 0 " TAG_A " ! +5 0 " TAG_A);
    RUN("cancel_all", "0 0 a '' 0 100 '' 0", "[U 3 0 '']");
    KEYS("due p:T+5 q:T+5 | jobs p=\\02\\00\\04T\\02aa q=\\02\\00\\04T\\02a! | index 't a! q' 't "
         "aa p' | t p:T+4 q:T+4");
}

/* Looks at a hundred; the others of the queue are not read, however many there are. */
Test(tagged, a_call_takes_a_hundred_and_reads_no_job_beside_them)
{
    const char *cursor = "";
    long long n = 0;
    int runs = 0;

    many(0, 300, "+5");
    for (int at = 0; at < 250; at += 50) {
        char *args = text("0");
        for (int i = at; i < at + 50; i++) {
            args = text("%s t%03d +5 0 " TAG_A, args, i);
        }
        given("schedule", args);
    }
    ask("CONFIG RESETSTAT");
    do {
        redisReply *r = run("cancel_all", text("0 0 a '' 0 100 '%s' 0", cursor));
        n += r->element[1]->integer;
        cursor = r->element[3]->str;
        runs++;
    } while (*cursor && runs < 9);

    cr_assert_eq(runs, 3);
    cr_assert_eq(n, 250);
    cr_assert_eq(calls("zrangebylex"), 3);
    cr_assert_eq(calls("hget"), 250);
    cr_assert_eq(calls("zmscore"), 9);
    cr_assert_eq(calls("zrange") + calls("zcount") + calls("zscan") + calls("hscan"), 0);
    cr_assert_eq(redis_int(redis, "HLEN s:{q}:jobs"), 300);
    cr_assert_eq(redis_int(redis, "ZCARD s:{q}:index"), 0);
}

Test(tagged, a_call_stops_after_256_KiB_of_records)
{
    static char body[131073] = {2, 0, 3, 'T', 1, 'a'};
    const char *argv[] = {"0", "a", "+5", "0", body, "b", "+5", "0", body, "c", "+5", "0", body};
    size_t len[] = {1, 1, 2, 1, 131072, 1, 2, 1, 131073, 1, 2, 1, 6};

    run_bytes("schedule", 13, argv, len);
    RUN("cancel_all", "0 0 a '' 0 100 '' 0", "[U 2 0 '0 U c T+5 b']");
    KEYS("due c:T+5 | jobs c=" TAG_A " | index 't a c' | t c:T+4");
    RUN("cancel_all", text("0 0 a '' 0 100 '%s' 0", moments("0 U c T+5 b")), "[U 1 0 '']");
}

/* Neither producers, nor a job that is cancelled and made again, keep the walk going. */
Test(tagged, a_walk_meets_each_id_once_and_ends_at_the_last_one_of_its_beginning)
{
    given("schedule", "0 a +5 0 " TAG_A " b +5 0 " TAG_A " c +5 0 " TAG_A);
    RUN("cancel_all", "0 0 a '' 0 2 '' 0", "[U 2 0 '0 U c T+5 b']");
    given("schedule", "0 a +5 0 " TAG_A " b +5 0 " TAG_A " d +5 0 " TAG_A);
    RUN("cancel_all", text("0 0 a '' 0 100 '%s' 0", moments("0 U c T+5 b")), "[U 1 0 '']");
    same(__FILE__, __LINE__, "due", waiting(), "['a' 'T+5' 'b' 'T+5' 'd' 'T+5']");
}

/* What it has put back runs at once and dies again: it is not put back twice, even by a repeat. */
Test(tagged, reschedule_all_leaves_what_was_claimed_since_it_began_and_cancel_all_takes_it)
{
    given("schedule", "0 a +5 0 " TAG_A " b +5 0 " TAG_A " c +5 0 " TAG_A);
    given("kill", "0 a x b x c x");
    RUN("reschedule_all", "0 0 a '' 0 1 '' 0 +0 0", "[U 1 0 'T 0 U c T a' T]");
    given("claim", "0 me 1000 1");
    given("fail", "0 me a U+1 again");
    RUN("reschedule_all", text("0 3 a again 0 100 '%s' 0 +0 0", moments("T 0 U c T 0")),
        "[U 0 0 '' T]");

    RUN("cancel_all", "0 0 a '' 0 1 '' 0", "[U 1 0 '0 U+1 c T a']");
    given("reschedule", "0 b +0 0 c +0 0");
    given("claim", "0 me 1000 0 b c");
    given("fail", "0 me b U+2 again");
    RUN("cancel_all", text("0 0 a '' 0 100 '%s' 1", moments("0 U+1 c T a")), "[U 1 1 '']");
}

Test(tagged, a_walk_refuses_the_cursor_of_the_other_kind_and_neither_state_nor_tag)
{
    given("schedule", "0 a +5 0 " TAG_A);
    char *before = dumps();
    static const char *const args[] = {
        "0 0 '' '' 0 100 '' 0",         "0 1 '' '' 0 100 '0 1 b 1 a' 0",
        "0 0 a '' 0 100 '1 1 1 1 a' 0", "0 1 a '' 0 100 '3 1 1 1 a' 0",
        "0 0 a '' 0 100 '0 x b 1 a' 0",
    };
    for (size_t i = 0; i < sizeof args / sizeof *args; i++) {
        redisReply *r = run("cancel_all", args[i]);
        const char *why = i == 0 ? "neither a state nor a tag" : "no cursor";
        cr_assert(r->type == REDIS_REPLY_ERROR && strstr(r->str, why), "%s", show(r));
    }
    cr_assert_str_eq(dumps(), before);
}
