/* SPDX-License-Identifier: MIT */
#include "script.h"
#include "process.h"

SCRIPTS(heartbeat);

Test(heartbeat, says_who_is_alive)
{
    RUN("heartbeat", "4 b 100 0", "[U 0 'b' 'T+100']");
    RUN("heartbeat", "4 a 50 0", "[U 0 'a' 'T+50' 'b' 'T+100']");
    KEYS("alive a:T+50 b:T+100");
    HEARD("");
}

Test(heartbeat, again_only_makes_it_last_longer)
{
    RUN("heartbeat", "4 a 100 0", "[U 0 'a' 'T+100']");
    now_at(99);
    RUN("heartbeat", "4 a 100 0", "[U+99000 1 'a' 'T+199']");
    KEYS("alive a:T+199");
}

Test(heartbeat, forgets_whose_heartbeat_ended)
{
    given("heartbeat", "0 a 100 0");
    given("heartbeat", "0 b 101 0");
    now_at(99);
    RUN("heartbeat", "0 c 100 0", "[U+99000 0 'a' 'T+100' 'b' 'T+101' 'c' 'T+199']");
    now_at(100);
    RUN("heartbeat", "0 c 100 0", "[U+100000 1 'b' 'T+101' 'c' 'T+200']");
    KEYS("alive b:T+101 c:T+200");
    now_at(300);
    RUN("heartbeat", "0 b 100 0", "[U+300000 0 'b' 'T+400']");
}

/* So that it enters its queues again, which may have forgotten it too. */
Test(heartbeat, says_whether_the_listener_was_forgotten)
{
    RUN("heartbeat", "0 a 100 0", "[U 0 'a' 'T+100']");
    RUN("heartbeat", "0 a 100 0", "[U 1 'a' 'T+100']");
    now_at(100);
    RUN("heartbeat", "0 a 100 0", "[U+100000 0 'a' 'T+200']");
    ask("DEL " ALIVE);
    RUN("heartbeat", "0 a 100 0", "[U+100000 0 'a' 'T+200']");
}

/* By a failover, or by hand. The dead would own events for an hour. */
Test(heartbeat, believes_no_heartbeat_that_is_good_for_longer_than_any)
{
    now_at(3600000);
    given("heartbeat", "0 dead 15000 0");
    given("heartbeat", "0 alive 15000 0");
    now_at(0);
    RUN("heartbeat", "0 alive 15000 0", "[U 1 'alive' 'T+15000' 'dead' 'T+15000']");
    KEYS("alive alive:T+15000 dead:T+15000");
    now_at(14999);
    RUN("heartbeat", "0 alive 15000 0", "[U+14999000 1 'dead' 'T+15000' 'alive' 'T+29999']");
    now_at(15000);
    RUN("heartbeat", "0 alive 15000 0", "[U+15000000 1 'alive' 'T+30000']");
}

Test(heartbeat, believes_what_a_longer_heartbeat_of_its_own_says)
{
    RUN("heartbeat", "0 a 60000 0", "[U 0 'a' 'T+60000']");
    RUN("heartbeat", "0 b 0 0", "[U 0 'a' 'T+15000']");
}

Test(heartbeat, for_0_ms_ends)
{
    given("heartbeat", "0 a 100 0");
    given("heartbeat", "0 b 100 0");
    RUN("heartbeat", "0 a 0 0", "[U 1 'b' 'T+100']");
    RUN("heartbeat", "0 a 0 0", "[U 0 'b' 'T+100']");
    KEYS("alive b:T+100");
    now_at(100);
    RUN("heartbeat", "0 a 0 0", "[U+100000 0]");
    KEYS("");
}

Test(heartbeat, has_room_for_more_listeners_than_lua_unpacks)
{
    ask("EVAL %s 0",
        text("for i = 1, 9000 do redis.call('ZADD', '" ALIVE "', %" PRId64 ", 'l' .. i) end",
             T + 5));
    cr_assert_eq(run("heartbeat", "0 a 100 0")->elements, 2 + 2 * 9001);
    ask("DEL " ALIVE);
}

/* Redis compares texts by its own locale inside scripts, and so not always by bytes. */
static void in_english(void)
{
    char dir[64];

    test_dir(dir, sizeof dir);

    /* of few characters: with those of UTF-8 it is made in two seconds */
    struct proc *p =
        proc_run(NULL, "localedef", "-i", "en_US", "-f", "ISO-8859-1", text("%s/en_US", dir), NULL);
    if (p->status) {
        test_dir_remove(dir);
        cr_skip_test("no locale but C can be made here");
    }

    proc_free(p);
    setenv("LOCPATH", dir, 1);
    setenv("LC_ALL", "en_US", 1);
    script_init();
    test_dir_remove(dir);
    cr_assert_eq(ask("EVAL %s 0", "return 'a' < 'B'")->integer, 1);
}

Test(english, lists_go_on_where_a_removed_one_was, .init = in_english, .fini = script_fini)
{
    given("schedule", "0 B +5 0 " REC " C +5 0 " REC " D +5 0 " REC " b +5 0 " REC " c +5 0 " REC
                      " d +5 0 " REC);
    RUN("list", "0 1 1 T+5 a", "[U 1 ['b' 1 T+5 '' '" REC "']]");
    RUN("list", "0 1 1 T+5 CC", "[U 1 ['D' 1 T+5 '' '" REC "']]");
    RUN("list", "0 1 1 T+5 cc", "[U 0 ['d' 1 T+5 '' '" REC "']]");
}
