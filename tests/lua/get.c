/* SPDX-License-Identifier: MIT */
/* get and list: looking changes nothing. */
#include "script.h"

SCRIPTS(get);
SCRIPTS(list);

Test(get, shows_a_job_in_any_state_with_its_body)
{
    five();
    char *before = dumps();
    RUN("get", "0 none w r e u d",
        "[U+20000 'ENOENT' ['w' 1 T+500 '' '" REC "w'] ['r' 2 T+1000 '1 U+3 me 1 10 U T ' '" REC
        "r'] ['e' 1 T+10 '1 U+1 me 1 10 U T ' '" REC
        "e'] ['u' 3 T+10 '1 U+2 me 1 1 U T ' '\\01\\01\\01u'] ['d' 3 T '1 U+4 me 1 10 U T bad' "
        "'" REC "d']]");
    same(__FILE__, __LINE__, "keys", dumps(), before);
}

Test(get, says_running_until_the_very_end_of_the_lease)
{
    five();
    now_at(999);
    RUN("get", "0 r", "[U+999000 ['r' 2 T+1000 '1 U+3 me 1 10 U T ' '" REC "r']]");
    now_at(1000);
    RUN("get", "0 r", "[U+1000000 ['r' 1 T+1000 '1 U+3 me 1 10 U T ' '" REC "r']]");
}

/* An ended lease is as the sweep would leave it. */
Test(get, counts_the_tries_of_an_ended_lease)
{
    given("schedule", "0 two +0 0 \\01\\01\\02 ever +0 0 \\01\\01\\ff\\ff\\ff\\ff\\0f");

    for (int i = 0; i < 2; i++) {
        now_at(i * 10);
        given("sweep", "0");
        given("claim", "0 me 10 0 two ever");
    }

    now_at(10);
    RUN("get", "0 two",
        "[U+10000 ['two' 2 T+20 '1 U+10001 me 2 2 U+10000 T+10 the lease ended' '\\01\\01\\02']]");
    now_at(20);
    RUN("get", "0 two",
        "[U+20000 ['two' 3 T+20 '1 U+10001 me 2 2 U+10000 T+10 the lease ended' '\\01\\01\\02']]");
    /* forever is forever */
    ask("HSET s:{q}:attempts ever %s", "1 9 me 4294967295 4294967295 8 7 ");
    RUN("get", "0 ever",
        "[U+20000 ['ever' 1 T+20 '1 9 me 4294967295 4294967295 8 7 ' "
        "'\\01\\01\\ff\\ff\\ff\\ff\\0f']]");
    ask("HSET s:{q}:attempts two %s", "2 who knows");
    RUN("get", "0 two", "[U+20000 ['two' 1 T+20 '2 who knows' '\\01\\01\\02']]");
}

Test(get, of_what_it_cannot_read_is_edata)
{
    static const char *const record[] = {
        "''",
        "\\01",
        "\\00\\00x",
        "\\02\\00x",
        "\\01\\08\\05\\05\\05x",
        "\\01\\ff\\05\\05\\05x",
        "\\01\\01",
        "\\01\\01\\80",
        "\\01\\03\\05",
        "\\01\\07\\05\\05",
        "\\01\\02\\ff\\ff\\ff\\ff\\ff\\ff\\ff\\01x",
        "\\01\\01\\80\\80\\80\\80\\10x", /* 2^32 tries: one more than LAPSE_FOREVER */
    };

    for (size_t i = 0; i < sizeof record / sizeof *record; i++) {
        given("schedule", text("0 a +5 2 %s", record[i]));
        RUN("get", "0 a", "[U 'EDATA']");
    }
}

Test(get, of_half_a_job_is_enoent)
{
    ask("HSET s:{q}:jobs half x");
    ask("ZADD s:{q}:due 5 member");
    RUN("get", "0 half member", "[U 'ENOENT' 'ENOENT']");
    ask("FLUSHALL");
}

Test(get, stops_after_256_KiB_of_records)
{
    static char body[131073] = {1, 0};
    const char *argv[] = {"0", "a", "+5", "0", body, "b", "+5", "0", body, "c", "+5", "0", body};
    size_t len[] = {1, 1, 2, 1, 131072, 1, 2, 1, 131072, 1, 2, 1, 2};

    run_bytes("schedule", 13, argv, len);
    cr_assert_eq(run("get", "0 a b c")->elements, 4);
    argv[7] = "2", len[8]++;
    run_bytes("schedule", 13, argv, len);
    cr_assert_eq(run("get", "0 a b c")->elements, 3);
    cr_assert_eq(run("get", "0 c")->elements, 2);
}

Test(list, shows_each_state_in_its_order)
{
    five();

    char *before = dumps();
    given("schedule", "0 v +600 0 " REC "v");
    RUN("list", "0 1 10 '' ''",
        "[U+20000 0 ['w' 1 T+500 '' '" REC "w'] ['v' 1 T+620 '' '" REC "v']]");
    RUN("list", "0 2 10 '' ''",
        "[U+20000 0 ['e' 1 T+10 '1 U+1 me 1 10 U T ' '" REC
        "e'] ['u' 3 T+10 '1 U+2 me 1 1 U T ' '\\01\\01\\01u'] ['r' 2 T+1000 '1 U+3 me 1 10 U T ' "
        "'" REC "r']]");
    RUN("list", "0 3 10 '' ''", "[U+20000 0 ['d' 3 T '1 U+4 me 1 10 U T bad' '" REC "d']]");
    given("cancel", "0 v 0");
    same(__FILE__, __LINE__, "keys", dumps(), before);
}

Test(list, of_an_empty_queue_is_empty)
{
    for (int state = 1; state <= 3; state++) {
        RUN("list", text("0 %d 10 '' ''", state), "[U 0]");
    }
}

#define ROW(id, due) "['" id "' 1 T+" due " '' '" REC "']"

Test(list, goes_on_after_the_last_one_also_among_equals)
{
    given("schedule", "0 a +5 0 " REC " b +5 0 " REC " c +5 0 " REC " d +6 0 " REC);
    RUN("list", "0 1 2 '' ''", "[U 1 " ROW("a", "5") " " ROW("b", "5") "]");
    RUN("list", "0 1 2 T+5 b", "[U 0 " ROW("c", "5") " " ROW("d", "6") "]");
    RUN("list", "0 1 1 T+5 b", "[U 1 " ROW("c", "5") "]");
    RUN("list", "0 1 2 T+6 d", "[U 0]");
}

Test(list, goes_on_where_a_removed_one_was)
{
    given("schedule", "0 a +5 0 " REC " c +5 0 " REC " e +5 0 " REC " g +5 0 " REC " b +6 0 " REC);
    RUN("list", "0 1 1 T+4 z", "[U 1 " ROW("a", "5") "]");
    RUN("list", "0 1 1 T+5 Z", "[U 1 " ROW("a", "5") "]");
    RUN("list", "0 1 1 T+5 b", "[U 1 " ROW("c", "5") "]"); /* b is there, but at another time */
    RUN("list", "0 1 1 T+5 cc", "[U 1 " ROW("e", "5") "]");
    RUN("list", "0 1 1 T+5 f", "[U 1 " ROW("g", "5") "]");
    RUN("list", "0 1 1 T+5 h", "[U 0 " ROW("b", "6") "]");
    RUN("list", "0 1 1 T+6 a", "[U 0 " ROW("b", "6") "]");
    RUN("list", "0 1 1 T+6 c", "[U 0]");
    RUN("list", "0 1 1 T+7 a", "[U 0]");
}

/* All below 1 is shown as 1, and is in the order of what it is. */
Test(list, goes_on_among_scores_that_are_no_times)
{
    given("schedule", "0 a +5 0 " REC " b +5 0 " REC " c +5 0 " REC);
    ask("ZADD s:{q}:due -7 b -5 a");
    RUN("list", "0 1 1 '' ''", "[U 1 ['b' 1 1 '' '" REC "']]");
    RUN("list", "0 1 1 1 b", "[U 1 ['a' 1 1 '' '" REC "']]");
    RUN("list", "0 1 1 1 a", "[U 0 " ROW("c", "5") "]");
}

Test(list, gives_a_hundred_at_most)
{
    many(0, 101, "+5");
    redisReply *r = run("list", "0 1 500 '' ''");
    cr_assert_eq(r->elements, 2 + 100);
    cr_assert_eq(r->element[1]->integer, 1);
    RUN("list", "0 1 500 T+5 j099", "[U 0 " ROW("j100", "5") "]");
    r = run("list", "0 1 100 T+5 j000");
    cr_assert_eq(r->elements, 2 + 100);
    cr_assert_eq(r->element[1]->integer, 0);
}

Test(list, stops_after_256_KiB_of_records)
{
    static char body[131073] = {1, 0};
    const char *argv[] = {"0", "a", "+5", "0", body, "b", "+5", "0", body, "c", "+5", "0", body};
    size_t len[] = {1, 1, 2, 1, 131072, 1, 2, 1, 131072, 1, 2, 1, 2};

    run_bytes("schedule", 13, argv, len);

    redisReply *r = run("list", "0 1 10 '' ''");
    cr_assert_eq(r->elements, 2 + 3);
    cr_assert_eq(r->element[1]->integer, 0);
    argv[7] = "2", len[8]++;
    run_bytes("schedule", 13, argv, len);
    r = run("list", "0 1 10 '' ''");
    cr_assert_eq(r->elements, 2 + 2);
    cr_assert_eq(r->element[1]->integer, 1);
}

Test(list, shows_what_it_cannot_read_without_its_record)
{
    given("schedule", "0 a +5 0 \\02\\00x b +6 0 " REC);
    ask("ZADD s:{q}:due 5 member");
    RUN("list", "0 1 10 '' ''", "[U 0 ['member' 1 5 '' ''] ['a' 1 T+5 '' ''] " ROW("b", "6") "]");
    ask("ZREM s:{q}:due member");
}

/* A body is at most 1 MiB, and no job has no tries. */
Test(get, of_a_record_that_schedule_never_writes_is_edata)
{
    static char body[2 + (1 << 20) + 1] = {1, 0};

    ask("HSET s:{q}:jobs a %b b %b c %b d %b", body, sizeof body, body, sizeof body - 1, "\1\1\0x",
        (size_t)4, "\1\1\1x", (size_t)4);
    ask("ZADD s:{q}:due %s a 5 b 5 c 5 d", "5");
    RUN("get", "0 a", "[U 'EDATA']");
    RUN("get", "0 c d", "[U 'EDATA' ['d' 1 5 '' '\\01\\01\\01x']]");
    cr_assert_eq(run("get", "0 b")->element[1]->element[4]->len, sizeof body - 1);
}

Test(list, passes_over_members_that_cannot_be_ids)
{
    static char big[300];

    memset(big, 'x', sizeof big);
    for (int i = 0; i < 250; i++) {
        ask("ZADD s:{q}:due %d %b", i % 2 ? 5 : 1 << 30, text("{%03d", i), (size_t)4);
    }

    ask("ZADD s:{q}:due 5 %b 5 %b", big, sizeof big, "a\0", (size_t)2);
    given("schedule", "0 a +5 0 " REC " b +5 0 " REC " c +6 0 " REC);
    RUN("list", "0 1 2 '' ''", "[U 1 " ROW("a", "5") " " ROW("b", "5") "]");
    RUN("list", "0 1 2 T+5 b", "[U 0 " ROW("c", "6") "]");
    RUN("list", "0 1 100 '' ''", "[U 0 " ROW("a", "5") " " ROW("b", "5") " " ROW("c", "6") "]");
    ask("ZADD s:{q}:due 9007199254740992 {last");
    /* no job is left */
    RUN("list", "0 1 3 '' ''", "[U 0 " ROW("a", "5") " " ROW("b", "5") " " ROW("c", "6") "]");
    ask("ZREM s:{q}:due {last");
    ask("ZREMRANGEBYRANK s:{q}:due 0 251");
}
