/* SPDX-License-Identifier: MIT */
/* Who listens: alive and listeners, which read it, and tell. */
#include "script.h"

SCRIPTS(listeners);
SCRIPTS(tell);

Test(listeners, alive_names_those_whose_heartbeat_has_not_ended)
{
    RUN("alive", "0", "[U]");
    given("heartbeat", "0 b 100 0 0");
    given("heartbeat", "0 a 200 0 0");
    RUN("alive", "0", "[U 'b' 'T+100' 'a' 'T+200']");
    now_at(100);
    RUN("alive", "0", "[U+100000 'a' 'T+200']");
    KEYS("alive :-U+2 b:T+100 a:T+200");
}

Test(listeners, are_members_that_are_alive_and_since_when)
{
    given("join", "0 a 1");
    now_at(5);
    given("join", "0 b 1");
    RUN("listeners", "0 b a c", "[U+5000 'b' T+5 0 'a' T 0]");
    RUN("listeners", "0 b", "[U+5000 'b' T+5 0]");
    RUN("listeners", "0", "[U+5000]");
}

Test(listeners, hold_jobs_whose_leases_are_not_over)
{
    five();
    given("schedule", "0 x +0 0 " REC " y +0 0 " REC);
    given("claim", "0 you 1000 0 x y");
    given("join", "0 you 1");
    RUN("listeners", "0 you me", "[U+20000 'you' T+20 2 'me' 0 1]");
    now_at(1020);
    RUN("listeners", "0 you me", "[U+1020000 'you' T+20 0]");
}

Test(listeners, that_hold_hundreds_of_jobs_are_counted_to_the_last)
{
    for (int i = 0; i < 250; i++) {
        ask("ZADD s:{q}:run %lld j%d", (long long)T + 1000, i);
        ask("HSET s:{q}:attempts j%d %s", i, i < 240 ? "1 7 me 1 1 5 5 " : "1 7 you 1 1 5 5 ");
    }
    ask("HSET s:{q}:attempts j249 unreadable");
    RUN("listeners", "0", "[U 'me' 0 240 'you' 0 9]");
    ask("FLUSHALL");
}

/* ---- tell ---- */
#define DIGITS "/0123456789abcdef"

Test(tell, marks_a_listener_that_is_alive_and_says_which)
{
    given("heartbeat", "0 a" DIGITS " 100 0 0");
    given("heartbeat", "0 b 100 0 0");
    RUN("tell", "4 b 1", "[U 'b']");
    HEARD("4 'told b'");
    RUN("alive", "0", "[U 'b' 'T+99.75' 'a" DIGITS "' 'T+100']");
    RUN("tell", "0 a" DIGITS " 2", "[U 'a" DIGITS "']");
    HEARD("0 'told a" DIGITS "'");
    RUN("alive", "0", "[U 'a" DIGITS "' 'T+99.5' 'b' 'T+99.75']");
    RUN("tell", "0 b 0", "[U 'b']");
    RUN("alive", "0", "[U 'a" DIGITS "' 'T+99.5' 'b' 'T+100']");
    RUN("tell", "0 b 2", "[U 'b']");
    RUN("tell", "0 b 1", "[U 'b']");
    KEYS("alive :-U+7 a" DIGITS ":T+99.5 b:T+99.75");
}

Test(tell, finds_each_listener_of_a_name_without_its_digits)
{
    given("heartbeat", "0 a" DIGITS " 100 0 0");
    given("heartbeat", "0 a/fedcba9876543210 100 0 0");
    given("heartbeat", "0 aa" DIGITS " 100 0 0");
    RUN("tell", "0 a 1", "[U 'a" DIGITS "' 'a/fedcba9876543210']");
    HEARD("0 'told a" DIGITS "' 0 'told a/fedcba9876543210'");
    RUN("tell", "0 aa" DIGITS "x 1", "[U]");
    RUN("tell", "0 /0123456789abcdef 1", "[U]");
    HEARD("");
}

Test(tell, changes_nothing_where_no_listener_of_the_name_is_alive)
{
    given("heartbeat", "0 a 100 0 0");
    RUN("tell", "0 b 1", "[U]");
    now_at(100);
    RUN("tell", "0 a 1", "[U+100000]");
    HEARD("");
    KEYS("alive :-U+1 a:T+100");
}

Test(tell, is_in_force_until_the_listener_ends_or_has_died)
{
    given("heartbeat", "0 a 100 0 0");
    given("tell", "0 a 1");
    now_at(99);
    RUN("heartbeat", "0 a 100 0 0", "[U+99000 1 U+2 T+199 'a' 'T+198.75']");
    now_at(198);
    RUN("heartbeat", "0 b 100 0 0", "[U+198000 0 U+198001 T+199 'a' 'T+198.75' 'b' 'T+298']");
    RUN("heartbeat", "0 a 0 0 0", "[U+198000 1 U+198002 T+298 'b' 'T+298']");
    RUN("heartbeat", "0 a 50 0 0", "[U+198000 0 U+198003 T+248 'a' 'T+248' 'b' 'T+298']");
    given("tell", "0 a 2");
    now_at(248);
    RUN("heartbeat", "0 b 100 0 0", "[U+248000 1 U+248001 T+348 'b' 'T+348']");
    KEYS("alive :-U+248001 b:T+348");
}

/* Redis has forgotten it: it was flushed, or the listener stood still. */
Test(tell, is_kept_by_the_listener_that_obeys_it)
{
    RUN("heartbeat", "0 a 100 1 0", "[U 0 U+1 T+100 'a' 'T+99.75']");
    RUN("heartbeat", "0 a 100 0 0", "[U 1 U+1 T+100 'a' 'T+99.75']");
    given("tell", "0 a 0");
    RUN("heartbeat", "0 a 100 1 0", "[U 1 U+2 T+100 'a' 'T+100']");
    now_at(100);
    RUN("heartbeat", "0 a 100 2 0", "[U+100000 0 U+100001 T+200 'a' 'T+199.5']");
}

Test(tell, stays_where_a_life_is_shortened)
{
    now_at(3600000);
    given("heartbeat", "0 a 15000 1 0");
    now_at(0);
    RUN("heartbeat", "0 b 15000 0 0", "[U 0 U+3600000002 T+15000 'a' 'T+14999.75' 'b' 'T+15000']");
}

Test(tell, reaches_more_listeners_than_lua_unpacks)
{
    ask("EVAL %s 0", text("for i = 1, 9000 do redis.call('ZADD', '" ALIVE "', %" PRId64
                          ", string.format('l/%%016x', i)) end",
                          T + 5));
    cr_assert_eq(run("tell", "0 l 1")->elements, 1 + 9000);
    cr_assert_eq(ask("ZCOUNT " ALIVE " 0 (%lld", (long long)T + 5)->integer, 9000);
    ask("DEL " ALIVE);
}
