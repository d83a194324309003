/* SPDX-License-Identifier: MIT */
/* Entries that a group has given out and nobody has acknowledged, and consumers that are gone. */
#include "script.h"

SCRIPTS(adopt);

#define STREAM "s:{q}:stream"
#define ENTRY "XADD " STREAM " %d-1 id j%d due_ms 5 try 1 token 7 body %s"

/* A stream with n entries, all of them given to a consumer of the group g. */
static void given_out(int n)
{
    given("configure", "0 'forward=stream forward_groups=g'");
    for (int i = 1; i <= n; i++) {
        ask(ENTRY, i, i, "text");
    }
    if (n > 0) {
        ask("XREADGROUP GROUP g lost COUNT %d STREAMS " STREAM " >", n);
    }
}

/* The entry was given out so long ago, and so often. */
static void idle_since(int entry, const char *consumer, int64_t ms, int deliveries)
{
    ask("XCLAIM " STREAM " g %s 0 %d-1 IDLE %lld RETRYCOUNT %d JUSTID", consumer, entry,
        (long long)ms, deliveries);
}

/* "CONSUMER: entries" of all consumers of g, by their names. */
static const char *consumers(void)
{
    redisReply *all = ask("XINFO CONSUMERS " STREAM " g");
    const char *out = "";

    for (size_t i = 0; i < all->elements; i++) {
        redisReply *c = all->element[i];
        out = text("%s%s%s: %lld", out, i ? ", " : "", c->element[1]->str, c->element[3]->integer);
    }
    return out;
}

#define SAME_CONSUMERS(expected) same(__FILE__, __LINE__, "consumers", consumers(), expected)

static void end(void)
{
    ask("FLUSHALL");
}

/* ---- entries ---- */
Test(adopt, moves_what_is_idle_for_so_long_and_shows_it_with_its_deliveries)
{
    given_out(4);
    idle_since(1, "lost", 60000, 1);
    idle_since(2, "lost", 59000, 1);
    idle_since(3, "other", 3600000, 6);
    RUN("adopt", "0 g me 60000 100 - 86400000",
        "[U 1 '0-0' 0 ['1-1' 2 'j1' '5' '1' '7' 'text'] ['3-1' 7 'j3' '5' '1' '7' 'text']]");
    SAME_CONSUMERS("lost: 2, me: 2, other: 0");
    RUN("adopt", "0 g me 60000 100 - 86400000", "[U 1 '0-0' 0]"); /* a repeat moves nothing */
    SAME_CONSUMERS("lost: 2, me: 2, other: 0");
    end();
}

Test(adopt, goes_on_where_the_call_before_says_and_behind_an_entry)
{
    given_out(5);
    RUN("adopt", "0 g me 0 2 - 86400000",
        "[U 1 '3-1' 0 ['1-1' 2 'j1' '5' '1' '7' 'text'] ['2-1' 2 'j2' '5' '1' '7' 'text']]");
    RUN("adopt", "0 g me 0 1 3-1 86400000", "[U 1 '4-1' 0 ['3-1' 2 'j3' '5' '1' '7' 'text']]");
    RUN("adopt", "0 g me 0 1 (4-1 86400000", "[U 1 '0-0' 0 ['5-1' 2 'j5' '5' '1' '7' 'text']]");
    RUN("adopt", "0 g me 0 9 (5-1 86400000", "[U 1 '0-0' 0]");
    RUN("adopt", "0 g me 0 9 0-0 86400000", "[U 1 '0-0' 0]");
    RUN("adopt", "0 g me 0 0 - 86400000", "[U 1 '-' 0]");
    SAME_CONSUMERS("lost: 1, me: 4");
    end();
}

Test(adopt, moves_a_hundred_at_most)
{
    given_out(150);
    ask("CONFIG RESETSTAT");
    redisReply *r = run("adopt", "0 g me 0 1000 - 0");
    cr_assert_eq(r->elements, 4 + 100);
    cr_assert_str_eq(r->element[2]->str, "101-1");
    cr_assert_eq(calls("xautoclaim"), 7); /* 1 2 4 8 16 32 37 */
    cr_assert_eq(calls("xpending"), 100);
    SAME_CONSUMERS("lost: 50, me: 100");
    r = run("adopt", "0 g me 0 1000 101-1 0");
    cr_assert_eq(r->elements, 4 + 50);
    SAME_CONSUMERS("me: 150");
    end();
}

Test(adopt, looks_at_a_thousand_at_most)
{
    given_out(1500);
    idle_since(1005, "lost", 60000, 1);
    RUN("adopt", "0 g me 60000 100 - 0", "[U 1 '1001-1' 0]");
    RUN("adopt", "0 g me 60000 1 1001-1 0",
        "[U 1 '1006-1' 0 ['1005-1' 2 'j1005' '5' '1' '7' 'text']]");
    RUN("adopt", "0 g me 60000 1 1006-1 0", "[U 1 '0-0' 0]");
    end();
}

Test(adopt, moves_few_after_256_KiB)
{
    char *body = text("%0262145d", 0);

    given_out(0);
    for (int i = 1; i <= 6; i++) {
        ask(ENTRY, i, i, i == 2 ? body : "");
    }
    ask("XREADGROUP GROUP g lost STREAMS " STREAM " >");
    redisReply *r = run("adopt", "0 g me 0 100 - 0");
    cr_assert_eq(r->elements, 4 + 3);
    cr_assert_str_eq(r->element[2]->str, "4-1");
    SAME_CONSUMERS("lost: 3, me: 3");
    end();
}

Test(adopt,
     shows_any_bytes_of_a_body_the_headers_and_no_job_of_an_entry_that_another_program_has_added)
{
    static const char body[] = "\0\xff\r\n{}";

    given_out(0);
    ask("XADD " STREAM " 1-1 id a due_ms 5 try 1 token 7 body %b", body, sizeof body);
    ask("XADD " STREAM " 2-1 id a due_ms 5 try 1 token 7");
    ask("XADD " STREAM " 3-1 id a due_ms 5 try 1 token 7 text x");
    ask("XADD " STREAM " 4-1 due_ms 5 id a try 1 token 7 body x");
    ask("XADD " STREAM " 5-1 id a due_ms 5 try 1 token 7 body x more y header:b c header:d %s", "");
    ask("XADD " STREAM " 6-1 header:b c id a due_ms 5 try 1 token 7 body x");
    ask("XREADGROUP GROUP g lost STREAMS " STREAM " >");
    RUN("adopt", "0 g me 0 100 - 86400000",
        "[U 1 '0-0' 0 ['1-1' 2 'a' '5' '1' '7' '\\00\\ff\\0d\\0a{}\\00'] ['2-1' 2] ['3-1' 2] "
        "['4-1' 2] ['5-1' 2 'a' '5' '1' '7' 'x' 'b=c' 'd='] ['6-1' 2]]");
    end();
}

Test(adopt, leaves_out_entries_that_are_not_in_the_stream_any_more)
{
    given_out(3);
    ask("XDEL " STREAM " 1-1 3-1");
    RUN("adopt", "0 g me 0 100 - 86400000", "[U 1 '0-0' 0 ['2-1' 2 'j2' '5' '1' '7' 'text']]");
    SAME_CONSUMERS("lost: 0, me: 1");
    end();
}

Test(adopt, works_on_the_key_that_the_settings_name)
{
    given("configure", "0 'forward=stream:{q}x forward_groups=g'");
    ask("XADD {q}x 1-1 id a due_ms 5 try 1 token 7 body x");
    ask("XREADGROUP GROUP g lost STREAMS {q}x >");
    RUN("adopt", "0 g me 0 100 - 0", "[U 1 '0-0' 1 ['1-1' 2 'a' '5' '1' '7' 'x']]");
    end();
}

Test(adopt, of_a_queue_without_such_a_stream_or_group_changes_nothing)
{
    static const char *const settings[] = {"paused=+5", "forward=list", "forward=stream"};

    for (int i = 0; i < 3; i++) {
        given("configure", text("0 %s", settings[i]));
        char *before = dumps();
        RUN("adopt", "0 g me 0 100 - 0", "[U 0 '0-0' 0]");
        same(__FILE__, __LINE__, "keys", dumps(), before);
    }
    given_out(2);
    char *before = dumps();
    RUN("adopt", "0 h me 0 100 - 0", "[U 0 '0-0' 0]");
    RUN("adopt", "0 '' me 0 100 - 0", "[U 0 '0-0' 0]");
    same(__FILE__, __LINE__, "keys", dumps(), before);
    end();
}

/* ---- consumers ---- */
Test(adopt, removes_consumers_that_have_no_entries_and_were_not_heard_of_for_so_long)
{
    given_out(1);
    for (int i = 0; i < 3; i++) {
        ask("XGROUP CREATECONSUMER " STREAM " g c%d", i);
    }
    RUN("adopt", "0 g c1 60000 100 - 86400000", "[U 1 '0-0' 0]");
    SAME_CONSUMERS("c0: 0, c1: 0, c2: 0, lost: 1");
    RUN("adopt", "0 g c1 60000 100 - 0", "[U 1 '0-0' 2]"); /* not itself */
    SAME_CONSUMERS("c1: 0, lost: 1");
    RUN("adopt", "0 g c1 0 1 - 0", "[U 1 '0-0' 1 ['1-1' 2 'j1' '5' '1' '7' 'text']]");
    SAME_CONSUMERS("c1: 1");
    end();
}

Test(adopt, removes_consumers_at_the_end_and_a_hundred_at_most)
{
    given_out(150);
    for (int i = 0; i < 150; i++) {
        ask("XGROUP CREATECONSUMER " STREAM " g c%d", i);
    }
    redisReply *r = run("adopt", "0 g me 86400000 100 - 0");
    cr_assert_eq(r->element[3]->integer, 100);
    RUN("adopt", "0 g me 86400000 0 - 0", "[U 1 '-' 50]");
    RUN("adopt", "0 g me 86400000 0 - 0", "[U 1 '-' 0]");
    cr_assert(strncmp(consumers(), "lost: 150", 9) == 0, "%s", consumers());

    ask("XGROUP CREATECONSUMER " STREAM " g c");
    for (int i = 151; i <= 1500; i++) {
        ask(ENTRY, i, i, "");
    }
    ask("XREADGROUP GROUP g lost STREAMS " STREAM " >");
    RUN("adopt", "0 g me 86400000 100 - 0", "[U 1 '1001-1' 0]"); /* that is not the end */
    RUN("adopt", "0 g me 86400000 100 1001-1 0", "[U 1 '0-0' 1]");
    end();
}

/* It is no more than a name: who waits in XREADGROUP comes back under it. */
Test(adopt, of_a_consumer_that_waits_for_an_entry_takes_none_away)
{
    redisContext *reader = redis_connect(redis);
    redisReply *r;

    given_out(0);
    ask("XGROUP CREATECONSUMER " STREAM " g waits");
    redis_send(reader, "XREADGROUP GROUP g waits BLOCK 0 STREAMS " STREAM " >");
    while (redis_int(redis, "EVAL %s 0",
                     "return tonumber(redis.call('INFO', 'clients'):match('blocked_clients:(%d+)'"
                     "))") == 0) {
        wait_until(0);
    }
    RUN("adopt", "0 g me 0 100 - 0", "[U 1 '0-0' 1]");
    ask(ENTRY, 1, 1, "x");
    cr_assert_eq(redisGetReply(reader, (void **)&r), REDIS_OK);
    cr_assert(r->type == REDIS_REPLY_ARRAY, "%s", r->str);
    cr_assert(strstr(consumers(), "waits: 1"), "%s", consumers());
    freeReplyObject(r);
    redisFree(reader);
    end();
}

/* ---- refusals ---- */
Test(adopt, of_a_key_of_another_type_is_refused)
{
    given("configure", "0 forward=stream");
    ask("LPUSH " STREAM " x");
    char *before = dumps();
    redisReply *r = run("adopt", "0 g me 0 100 - 0");
    cr_assert(r->type == REDIS_REPLY_ERROR && strncmp(r->str, "WRONGTYPE ", 10) == 0, "%s",
              show(r));
    same(__FILE__, __LINE__, "keys", dumps(), before);
    end();
}
