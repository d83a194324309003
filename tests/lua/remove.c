/* SPDX-License-Identifier: MIT */
/* A queue is removed: remove, and forget, which takes its name. */
#include "script.h"

SCRIPTS(remove);

static long long count(const char *key)
{
    return ask("EXISTS s:{q}:%s", key)->integer;
}

Test(remove, takes_all_jobs_in_every_state_and_all_keys)
{
    everything();
    given("enter", "0 q");
    ask("XADD s:{q}:stream * a b");
    ask("LPUSH s:{q}:list a");
    ask("ZADD s:{q}:index 0 %s", "t a x");
    ask("HSET s:{q}:next r x");
    ask("HSET s:{q}:report r x");
    ask("HSET s:{q}:errors r x");
    RUN("remove", "0 1", "[U+20000 0 1 9 0]");
    HEARD("0 'queue'");
    ask("DEL " ALIVE);
    KEYS("queues q:0");
    RUN("forget", "0 q", "[U+20000]");
    KEYS("");
}

Test(remove, of_nothing_changes_nothing)
{
    RUN("remove", "0 0 a", "[U 0 0 0 0]");
    RUN("forget", "0 q", "[U]");
    KEYS("");
}

Test(remove, leaves_all_as_it_is_while_a_listener_is_alive_or_a_job_runs)
{
    five();
    char *before = dumps();
    RUN("remove", "0 0", "[U+20000 0 1 0 0]");
    same(__FILE__, __LINE__, "keys", dumps(), before);

    now_at(1000);
    given("join", "0 a 1");
    before = dumps();
    RUN("remove", "0 0 b a", "[U+1000000 1 0 0 0]");
    same(__FILE__, __LINE__, "keys", dumps(), before);
    RUN("remove", "0 0 b", "[U+1000000 0 0 5 0]");
    KEYS("");
}

Test(remove, by_force_leaves_the_members_that_are_alive)
{
    five();
    given("join", "0 a 1");
    given("join", "0 b 1");
    RUN("remove", "0 1 b", "[U+20000 1 1 5 0]");
    KEYS("listeners b:T+20");
}

Test(remove, takes_a_hundred_jobs_a_call_and_goes_on_where_it_was_cut_off)
{
    static const char *const sets[] = {"due", "dead", "kept"};

    for (int i = 0; i < 250; i++) {
        ask("ZADD s:{q}:%s %lld j%d", sets[i % 3], (long long)T + i, i);
        ask("HSET s:{q}:jobs j%d %b", i, "\1\0", (size_t)2);
    }
    ask("SET s:{q}:t:j0 1 PXAT %lld", (long long)T + 5000);
    ask("SET s:{q}:conf %s", "1 rate=1/1s ");

    RUN("remove", "0 0", "[U 0 0 100 1]");
    cr_assert_eq(ask("HLEN s:{q}:jobs")->integer, 150);
    cr_assert_eq(count("t:j0"), 0);
    cr_assert_eq(count("conf"), 1, "the settings go last");
    HEARD("");
    RUN("remove", "0 0", "[U 0 0 100 1]");
    RUN("remove", "0 0", "[U 0 0 50 0]");
    KEYS("");
}

Test(remove, reads_no_record)
{
    five();
    ask("CONFIG RESETSTAT");
    given("remove", "0 1");
    cr_assert_eq(calls("hget") + calls("hmget") + calls("hgetall"), 0);
}
