/* SPDX-License-Identifier: MIT */
/* Tags: which entries the index has of a job while it lives, and who is found by them. */
#include "script.h"

SCRIPTS(index);
SCRIPTS(list_tag);

#define TAGS_AB "\\02\\00\\06T\\01aT\\01b"
#define TAGS_BC "\\02\\00\\06T\\01bT\\01c"
#define UNREADABLE "\\02\\00\\06T\\01aV\\01b"

static void index_is(const char *expected)
{
    same(__FILE__, __LINE__, "index", show(ask("ZRANGE s:{q}:index 0 -1")), expected);
}

/* ---- entering and leaving ---- */
Test(index, has_each_tag_of_a_job_until_it_is_done)
{
    given("schedule", "0 x +0 0 " TAGS_AB "body p +0 0 " REC);
    KEYS("due p:T x:T | jobs p=" REC " x=" TAGS_AB "body | index 't a x' 't b x'");
    given("claim", "0 me 1000 2");
    KEYS("run p:T+1000 x:T+1000 | jobs p=" REC " x=" TAGS_AB "body | attempts p=1 U+1 me 1 10 U T  "
         "x=2 U+2 me 1 10 U T x=1  | index 't a x' 't b x' | seq U+2");
    RUN("done", "0 me p U+1 x U+2", "[U 1 1]");
    KEYS("seq U+2");
}

Test(index, has_a_job_that_was_retried_given_back_taken_back_or_is_dead)
{
    given("schedule", "0 x +0 0 " TAGS_AB);
    given("claim", "0 me 1000 1");
    given("retry", "0 me x U+1 0 why");
    KEYS("due x:T | jobs x=" TAGS_AB " | attempts x=2 U+1 me 1 10 U T x=1 why | index 't a x' 't b "
         "x' | seq U+1");
    given("claim", "0 me 1000 1");
    given("release", "0 me x U+2");
    given("claim", "0 me 10 1");
    now_at(10);
    given("sweep", "0");
    KEYS("due x:T+10 | jobs x=" TAGS_AB " | attempts x=2 U+3 me 2 10 U T+10 x=1 the lease ended | "
         "index 't a x' 't b x' | seq U+3");
    given("claim", "0 me 1000 1");
    given("fail", "0 me x U+10001 bad");
    KEYS("dead x:T+10 | jobs x=" TAGS_AB " | attempts x=2 U+10001 me 3 10 U+10000 T+10 x=1 bad | "
         "index 't a x' 't b x' | seq U+10001");
    given("reschedule", "0 x +0 0");
    index_is("['t a x' 't b x']");
    given("claim", "0 me 1000 1");
    given("done", "0 me x U+10002");
    KEYS("seq U+10002");
}

Test(index, loses_what_is_cancelled_in_each_state)
{
    given("schedule", "0 x +0 0 " TAGS_AB " y +0 0 " TAGS_AB " z +5 0 " TAGS_AB);
    given("claim", "0 me 10 2");
    given("fail", "0 me y U+2 bad");
    now_at(10);
    given("cancel", "0 x 0 y 0 z 0");
    KEYS("seq U+2");
}

Test(index, follows_the_record_of_a_job_that_is_replaced)
{
    given("schedule", "0 x +5 0 " TAGS_AB);
    given("schedule", "0 x +5 2 " TAGS_BC);
    index_is("['t b x' 't c x']");
    RUN("schedule", "0 x +5 0 " TAGS_AB, "[U 'EEXIST']");
    given("schedule", "0 x +5 1 " TAGS_AB);
    index_is("['t b x' 't c x']");
    given("schedule", "0 x +5 2 " REC);
    index_is("[]");
    given("schedule", "0 x +5 2 " TAGS_BC " y +5 2 " TAGS_AB);
    index_is("['t a y' 't b x' 't b y' 't c x']");
    RUN("schedule", "0 z +400000000000 0 " TAGS_AB, "[U 'EINVAL']");
    index_is("['t a y' 't b x' 't b y' 't c x']");
    given("cancel", "0 x 0 y 0");
}

Test(index, loses_what_is_forwarded)
{
    given("schedule", "0 x +0 0 " TAGS_AB " y +5 0 " TAGS_AB);
    given("configure", "0 forward=list");
    given("claim", "0 me 1000 9");
    index_is("['t a y' 't b y']");
    ask("FLUSHALL");
}

/* What of it belongs to the index, nobody can say: the doctor removes it later. */
Test(index, of_a_record_that_cannot_be_read_has_nothing)
{
    given("schedule", "0 x +0 0 " UNREADABLE);
    index_is("[]");
    given("claim", "0 me 1000 1");
    KEYS("dead x:T | jobs x=" UNREADABLE " | attempts x=1 0 me 0 0 U T stored data is in a format "
         "this version cannot read");
    given("cancel", "0 x 0");
}

Test(index, of_a_hundred_jobs_is_written_once_and_read_job_by_job)
{
    char *args = text("0");
    char *ends = text("0 me");

    for (int i = 0; i < 100; i++) {
        args = text("%s j%03d +0 0 " TAGS_AB, args, i);
        ends = text("%s j%03d U+%d", ends, i, i + 1);
    }

    ask("CONFIG RESETSTAT");
    given("schedule", args);
    cr_assert_eq(calls("zadd"), 2);
    given("claim", "0 me 1000 100");
    ask("CONFIG RESETSTAT");
    given("done", ends);
    cr_assert_eq(calls("hmget"), 1);
    cr_assert_eq(calls("hget"), 100);
    cr_assert_eq(calls("zrem"), 2);
    KEYS("seq U+100");
}

Test(index, of_eight_tags_of_a_hundred_jobs_is_one_call)
{
    static const char tags[] = "\\02\\00\\18T\\01aT\\01bT\\01cT\\01dT\\01eT\\01fT\\01gT\\01h";
    char *args = text("0");
    char *ids = text("0");

    for (int i = 0; i < 100; i++) {
        args = text("%s j%03d +5 0 %s", args, i, tags);
        ids = text("%s j%03d 0", ids, i);
    }

    given("schedule", args);
    cr_assert_eq(ask("ZCARD s:{q}:index")->integer, 800);
    given("cancel", ids);
    KEYS("");

    given("schedule",
          "0 a +5 0 \\02\\00\\1bT\\01aT\\01bT\\01cT\\01dT\\01eT\\01fT\\01gT\\01hT\\01i");
    RUN("get", "0 a", "[U 'EDATA']");
    index_is("[]");
    given("cancel", "0 a 0");
}

/* ---- finding ---- */
#define ROW(id, state, at, attempt, rest) "['" id "' " state " " at " '" attempt "' '" rest "']"

Test(list_tag, shows_the_jobs_of_a_tag_in_any_state_by_their_ids)
{
    given("schedule", "0 r +0 0 " TAGS_AB "r e +0 0 " TAGS_AB "e d +0 0 " TAGS_AB
                      "d w +5 0 " TAGS_AB "w n +5 0 " TAGS_BC "n p +5 0 " REC "p");
    given("claim", "0 me 10 0 e");
    given("claim", "0 me 1000 0 r d");
    given("fail", "0 me d U+3 bad");
    now_at(10);

    char *before = dumps();
    RUN("list_tag", "0 a 10 ''",
        "[U+10000 0 " ROW("d", "3", "T", "2 U+3 me 1 10 U T x=1 bad", TAGS_AB "d") " " ROW(
            "e", "1", "T+10", "2 U+1 me 1 10 U T x=1 ",
            TAGS_AB "e") " " ROW("r", "2", "T+1000", "2 U+2 me 1 10 U T x=1 ",
                                 TAGS_AB "r") " " ROW("w", "1", "T+5", "", TAGS_AB "w") "]");
    RUN("list_tag", "0 c 10 ''", "[U+10000 0 " ROW("n", "1", "T+5", "", TAGS_BC "n") "]");
    RUN("list_tag", "0 A 10 ''", "[U+10000 0]");
    same(__FILE__, __LINE__, "keys", dumps(), before);
    given("cancel", "0 e 0 d 0 w 0 n 0 p 0");
    given("done", "0 me r U+2");
}

Test(list_tag, goes_on_behind_an_id_that_may_be_gone)
{
    given("schedule", "0 a +5 0 " TAG_A " b +5 0 " TAG_A " c +5 0 " TAG_A);
    RUN("list_tag", "0 a 2 ''",
        "[U 1 " ROW("a", "1", "T+5", "", TAG_A) " " ROW("b", "1", "T+5", "", TAG_A) "]");
    RUN("list_tag", "0 a 2 b", "[U 0 " ROW("c", "1", "T+5", "", TAG_A) "]");
    RUN("list_tag", "0 a 1 bb", "[U 0 " ROW("c", "1", "T+5", "", TAG_A) "]");
    RUN("list_tag", "0 a 1 A", "[U 1 " ROW("a", "1", "T+5", "", TAG_A) "]");
    RUN("list_tag", "0 a 1 c", "[U 0]");
    given("cancel", "0 a 0 b 0 c 0");
}

Test(list_tag, is_of_that_tag_and_of_none_that_begins_with_it)
{
    given("schedule", "0 x +5 0 \\02\\00\\04T\\02a! y +5 0 \\02\\00\\04T\\02aa z +5 0 " TAG_A
                      " ! +5 0 " TAG_A " ~ +5 0 " TAG_A);
    RUN("list_tag", "0 a 9 ''",
        "[U 0 " ROW("!", "1", "T+5", "", TAG_A) " " ROW("z", "1", "T+5", "", TAG_A) " " ROW(
            "~", "1", "T+5", "", TAG_A) "]");
    RUN("list_tag", "0 a! 9 ''", "[U 0 " ROW("x", "1", "T+5", "", "\\02\\00\\04T\\02a!") "]");
    given("cancel", "0 x 0 y 0 z 0 ! 0 ~ 0");
}

/* So a leak can hide no job, and show none. */
Test(list_tag, believes_an_entry_only_where_the_record_says_the_same)
{
    static const char *const leaked[] = {"a", "b", "p", "u", "lost", "{x}", ""};

    given("schedule", "0 b +5 0 " TAGS_BC " p +5 0 " REC " u +5 0 " UNREADABLE " x +5 0 " TAG_A);
    ask("HSET s:{q}:jobs lost %b {x} %b", "\2\0\3T\1a", (size_t)6, "\2\0\3T\1a", (size_t)6);
    ask("ZADD s:{q}:due 5 {x}");
    for (size_t i = 0; i < sizeof leaked / sizeof *leaked; i++) {
        ask("ZADD s:{q}:index 0 %s", text("t a %s", leaked[i]));
    }

    RUN("list_tag", "0 a 1 ''", "[U 0 " ROW("x", "1", "T+5", "", TAG_A) "]");
    ask("FLUSHALL");
}

Test(list_tag, gives_a_hundred_at_most_and_stops_after_256_KiB)
{
    static char body[131073] = {2, 0, 3, 'T', 1, 'a'};
    const char *argv[] = {"0", "a", "+5", "0", body, "b", "+5", "0", body, "c", "+5", "0", body};
    size_t len[] = {1, 1, 2, 1, 131072, 1, 2, 1, 131073, 1, 2, 1, 6};

    run_bytes("schedule", 13, argv, len);
    redisReply *r = run("list_tag", "0 a 10 ''");
    cr_assert_eq(r->elements, 2 + 2);
    cr_assert_eq(r->element[1]->integer, 1);
    given("cancel", "0 a 0 b 0 c 0");

    char *args = text("0");
    for (int i = 0; i < 99; i++) {
        args = text("%s j%03d +5 0 " TAG_A, args, i);
    }
    given("schedule", args);
    given("schedule", "0 j099 +5 0 " TAG_A " j100 +5 0 " TAG_A);
    r = run("list_tag", "0 a 500 ''");
    cr_assert_eq(r->elements, 2 + 100);
    cr_assert_eq(r->element[1]->integer, 1);
    r = run("list_tag", "0 a 100 j000");
    cr_assert_eq(r->elements, 2 + 100);
    cr_assert_eq(r->element[1]->integer, 0);
    ask("FLUSHALL");
}

/* ---- looking and mending ---- */
Test(index, is_checked_against_the_records_and_mended_by_them)
{
    given("schedule", "0 a +5 0 " TAGS_AB " b +5 0 " TAGS_BC " p +5 0 " REC);
    RUN("check", "0 jobs 0 100", "[U 0 3 23 0]");
    RUN("check", "0 index 0 100", "[U 0 4 24 0]");
    RUN("mend", "0 a b p 't a a' 't c b'", "[U '' '' '' '' '']");

    ask("ZREM s:{q}:index %s", "t b a");
    ask("ZADD s:{q}:index 0 %s 0 %s 0 %s 0 %s", "t a b", "t a gone", "t a", "v of a newer version");
    RUN("check", "0 jobs 0 100", "[U 0 3 23 0 ['a' 'tag']]");
    RUN("check", "0 index 0 100",
        "[U 0 7 58 0 ['t a' 'entry'] ['t a b' 'entry'] ['t a gone' 'entry']]");
    RUN("mend", "0 a 't a' 't a b' 't a gone' 't a a'", "[U 'tag' 'entry' 'entry' 'entry' '']");
    index_is("['t a a' 't b a' 't b b' 't c b' 'v of a newer version']");
    ask("ZREM s:{q}:index %s", "v of a newer version");
    given("cancel", "0 a 0 b 0 p 0");
}

Test(index, of_a_job_that_becomes_whole_again_is_whole_too)
{
    given("schedule", "0 a +5 0 " TAGS_AB);
    ask("ZREM s:{q}:due a");
    ask("DEL s:{q}:index");
    RUN("mend", "0 a", "[U 'none']");
    index_is("['t a a' 't b a']");

    ask("HDEL s:{q}:jobs a");
    RUN("mend", "0 a", "[U 'record']");
    RUN("check", "0 index 0 100", "[U 0 2 12 0 ['t a a' 'entry'] ['t b a' 'entry']]");
    given("mend", "0 't a a' 't b a'");
    given("cancel", "0 a 0");
}
