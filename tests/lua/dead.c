/* SPDX-License-Identifier: MIT */
/* The bounds of dead jobs: what the settings dead_max and dead_keep let a sweep free. */
#include "script.h"

SCRIPTS(dead);

/* So many jobs, of which the first died first, 100 ms apart. */
static void dead_jobs(int n)
{
    many(0, n, "+0");
    for (int i = 0; i < n; i++) {
        now_at(100 * i);
        given("kill", text("0 j%03d why", i));
    }
}

#define SAME(what, got, expected) same(__FILE__, __LINE__, what, got, expected)
#define DEAD(expected) SAME("dead", show(ask("ZRANGE s:{q}:dead 0 -1")), expected)

Test(dead, jobs_stay_where_no_setting_bounds_them)
{
    dead_jobs(3);
    given("configure", "0 paused=+5");
    now_at(86400000);
    RUN("sweep", "0", "[U+86400000000 0 0 0 0]");
    DEAD("['j000' 'j001' 'j002']");
}

Test(dead, jobs_of_more_than_dead_max_are_freed_the_oldest_first)
{
    dead_jobs(5);
    given("configure", "0 dead_max=2");
    RUN("sweep", "0", "[U+400000 0 0 0 3]");
    DEAD("['j003' 'j004']");
    RUN("sweep", "0", "[U+400000 0 0 0 0]");
    given("configure", "0 dead_max=0");
    RUN("sweep", "0", "[U+400000 0 0 0 2]");
    KEYS("conf 1 dead_max=0 ");
}

Test(dead, jobs_are_freed_dead_keep_after_their_death)
{
    dead_jobs(3);
    given("configure", "0 dead_keep=10s");
    now_at(9999);
    RUN("sweep", "0", "[U+9999000 0 0 0 0]");
    now_at(10100);
    RUN("sweep", "0", "[U+10100000 0 0 0 2]");
    DEAD("['j002']");
}

Test(dead, jobs_are_freed_by_what_frees_more)
{
    dead_jobs(5);
    given("configure", "0 'dead_keep=10s dead_max=4'");
    now_at(10200);
    RUN("sweep", "0", "[U+10200000 0 0 0 3]");
    DEAD("['j003' 'j004']");
}

Test(dead, jobs_leave_with_all_that_they_have)
{
    given("schedule", "0 a +0 0 " TAG_A "x b +0 0 " LAST_U "kx");
    given("kill", "0 a why b why");
    given("configure", "0 dead_max=0");
    RUN("sweep", "0", "[U 0 0 0 2]");
    KEYS("conf 1 dead_max=0 ");
}

/* The sweep goes on at once then. */
Test(dead, jobs_are_freed_a_hundred_at_a_time_or_256_KiB)
{
    dead_jobs(250);
    given("configure", "0 dead_max=10");
    RUN("sweep", "0", "[U+24900000 0 0 1 100]");
    RUN("sweep", "0", "[U+24900000 0 0 1 100]");
    RUN("sweep", "0", "[U+24900000 0 0 0 40]");
    ask("FLUSHALL");

    now_at(0);
    for (int i = 0; i < 4; i++) {
        ask("HSET s:{q}:jobs j%d %b", i, text("\1%0200000d", 0), (size_t)200000);
        ask("ZADD s:{q}:dead %d j%d", i + 1, i);
    }
    given("configure", "0 dead_max=1");
    RUN("sweep", "0", "[U 0 0 1 2]");
    RUN("sweep", "0", "[U 0 0 0 1]");
    ask("FLUSHALL");
}

/* Jobs whose lease ended come back all the same. */
Test(dead, jobs_stay_where_the_settings_cannot_be_read)
{
    five();
    ask("SET s:{q}:conf %s", "2 dead_max=0 ");
    RUN("sweep", "0", "[U+20000 2 1 0 0]");
    ask("DEL s:{q}:conf");
    ask("LPUSH s:{q}:conf dead_max=0");
    RUN("sweep", "0", "[U+20000 0 0 0 0]");
    DEAD("['d' 'u']");
    ask("DEL s:{q}:conf");
}

Test(dead, jobs_are_freed_when_redis_is_out_of_memory)
{
    dead_jobs(3);
    given("configure", "0 dead_max=1");
    ask("CONFIG SET maxmemory 1");
    RUN("sweep", "0", "[U+200000 0 0 0 2]");
    ask("CONFIG SET maxmemory 0");
}

Test(dead, jobs_have_bounds_that_are_numbers_and_durations)
{
#define COUNT_RULE "must be a number from 0 to 1000000000"
#define KEEP_RULE "must be a duration from 1s to 3652d: 90s 30m 12h 7d"
    static const char *const good[] = {"dead_max=0",    "dead_max=1000000000", "dead_keep=1s",
                                       "dead_keep=7d",  "dead_keep=3652d",     "dead_keep=1500ms",
                                       "dead_keep=30m", "dead_keep=12h"};
    static const char *const counts[] = {"-1", "1.5", "1000000001", "many", "+5"};
    static const char *const durations[] = {"0s", "999ms", "3653d", "7", "d", "-7d", "7D", "1h30m"};

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        RUN("configure", text("0 %s", good[i]), text("[U '' '%s']", good[i]));
        given("configure", "0 'dead_max= dead_keep='");
    }
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        RUN("configure", text("0 dead_max=%s", counts[i]),
            text("[U 'dead_max=%s: " COUNT_RULE "' '']", counts[i]));
    }
    for (size_t i = 0; i < sizeof durations / sizeof *durations; i++) {
        RUN("configure", text("0 dead_keep=%s", durations[i]),
            text("[U 'dead_keep=%s: " KEEP_RULE "' '']", durations[i]));
    }
    KEYS("");
}
