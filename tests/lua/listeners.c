/* SPDX-License-Identifier: MIT */
/* Who listens: alive and listeners, which read it. */
#include "script.h"

SCRIPTS(listeners);

Test(listeners, alive_names_those_whose_heartbeat_has_not_ended)
{
    RUN("alive", "0", "[U]");
    given("heartbeat", "0 b 100");
    given("heartbeat", "0 a 200");
    RUN("alive", "0", "[U 'b' 'a']");
    now_at(100);
    RUN("alive", "0", "[U+100000 'a']");
    KEYS("alive b:T+100 a:T+200");
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
