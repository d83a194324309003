/* SPDX-License-Identifier: MIT */
#include "script.h"
#include "process.h"

SCRIPTS(heartbeat);
SCRIPTS(version);

Test(heartbeat, says_who_is_alive)
{
    RUN("heartbeat", "4 b 100 0 0", "[U 0 U+1 T+100 'b' 'T+100']");
    RUN("heartbeat", "4 a 50 0 0", "[U 0 U+2 T+50 'a' 'T+50' 'b' 'T+100']");
    KEYS("alive :-U+2 a:T+50 b:T+100");
    HEARD("");
}

Test(heartbeat, again_only_makes_it_last_longer)
{
    RUN("heartbeat", "4 a 100 0 0", "[U 0 U+1 T+100 'a' 'T+100']");
    now_at(99);
    RUN("heartbeat", "4 a 100 0 0", "[U+99000 1 U+1 T+199 'a' 'T+199']");
    KEYS("alive :-U+1 a:T+199");
}

Test(heartbeat, forgets_whose_heartbeat_ended)
{
    given("heartbeat", "0 a 100 0 0");
    given("heartbeat", "0 b 101 0 0");
    now_at(99);
    RUN("heartbeat", "0 c 100 0 0",
        "[U+99000 0 U+99001 T+100 'a' 'T+100' 'b' 'T+101' 'c' 'T+199']");
    now_at(100);
    RUN("heartbeat", "0 c 100 0 0", "[U+100000 1 U+100001 T+101 'b' 'T+101' 'c' 'T+200']");
    KEYS("alive :-U+100001 b:T+101 c:T+200");
    now_at(300);
    RUN("heartbeat", "0 b 100 0 0", "[U+300000 0 U+300001 T+400 'b' 'T+400']");
}

/* So that it enters its queues again, which may have forgotten it too. */
Test(heartbeat, says_whether_the_listener_was_forgotten)
{
    RUN("heartbeat", "0 a 100 0 0", "[U 0 U+1 T+100 'a' 'T+100']");
    RUN("heartbeat", "0 a 100 0 0", "[U 1 U+1 T+100 'a' 'T+100']");
    now_at(100);
    RUN("heartbeat", "0 a 100 0 0", "[U+100000 0 U+100001 T+200 'a' 'T+200']");
    ask("DEL " ALIVE);
    RUN("heartbeat", "0 a 100 0 0", "[U+100000 0 U+100001 T+200 'a' 'T+200']");
}

/* By a failover, or by hand. The dead would own events for an hour. */
Test(heartbeat, believes_no_heartbeat_that_is_good_for_longer_than_any)
{
    now_at(3600000);
    given("heartbeat", "0 dead 15000 0 0");
    given("heartbeat", "0 alive 15000 0 0");
    now_at(0);
    RUN("heartbeat", "0 alive 15000 0 0",
        "[U 1 U+3600000002 T+15000 'alive' 'T+15000' 'dead' 'T+15000']");
    KEYS("alive :-U+3600000002 alive:T+15000 dead:T+15000");
    now_at(14999);
    RUN("heartbeat", "0 alive 15000 0 0",
        "[U+14999000 1 U+3600000002 T+15000 'dead' 'T+15000' 'alive' 'T+29999']");
    now_at(15000);
    RUN("heartbeat", "0 alive 15000 0 0", "[U+15000000 1 U+3600000003 T+30000 'alive' 'T+30000']");
}

Test(heartbeat, believes_what_a_longer_heartbeat_of_its_own_says)
{
    RUN("heartbeat", "0 a 60000 0 0", "[U 0 U+1 T+60000 'a' 'T+60000']");
    RUN("heartbeat", "0 b 0 0 0", "[U 0 U+1 T+15000 'a' 'T+15000']");
}

Test(heartbeat, for_0_ms_ends)
{
    given("heartbeat", "0 a 100 0 0");
    given("heartbeat", "0 b 100 0 0");
    RUN("heartbeat", "0 a 0 0 0", "[U 1 U+3 T+100 'b' 'T+100']");
    RUN("heartbeat", "0 a 0 0 0", "[U 0 U+3 T+100 'b' 'T+100']");
    KEYS("alive :-U+3 b:T+100");
    now_at(100);
    RUN("heartbeat", "0 a 0 0 0", "[U+100000 0 0 0]");
    KEYS("");
    given("heartbeat", "0 a 100 0 0");
    RUN("heartbeat", "0 a 0 0 0", "[U+100000 1 0 0]");
    KEYS("");
}

Test(heartbeat, has_room_for_more_listeners_than_lua_unpacks)
{
    ask("EVAL %s 0",
        text("for i = 1, 9000 do redis.call('ZADD', '" ALIVE "', %" PRId64 ", 'l' .. i) end",
             T + 5));
    cr_assert_eq(run("heartbeat", "0 a 100 0 0")->elements, 4 + 2 * 9001);
    ask("DEL " ALIVE);
}

/* ---- who knows the names gets none ---- */
Test(version, of_the_names_that_are_known_is_answered_without_them)
{
    given("heartbeat", "0 a 100 0 0");
    given("heartbeat", "0 b 200 0 U+1");
    RUN("heartbeat", "0 a 100 0 U+2", "[U 1 U+2 T+100]");
    now_at(50);
    RUN("heartbeat", "0 b 15 0 U+2", "[U+50000 1 U+2 T+65]");
    RUN("heartbeat", "0 b 200 0 U+1", "[U+50000 1 U+2 T+100 'a' 'T+100' 'b' 'T+250']");
    RUN("heartbeat", "0 b 200 0 U+3", "[U+50000 1 U+2 T+100 'a' 'T+100' 'b' 'T+250']");
}

Test(version, changes_when_a_name_comes_ends_or_dies)
{
    given("heartbeat", "0 a 1000 0 0");
    RUN("heartbeat", "0 b 100 0 U+1", "[U 0 U+2 T+100 'b' 'T+100' 'a' 'T+1000']");
    RUN("heartbeat", "0 b 0 0 U+2", "[U 1 U+3 T+1000 'a' 'T+1000']");
    RUN("heartbeat", "0 c 100 0 U+3", "[U 0 U+4 T+100 'c' 'T+100' 'a' 'T+1000']");
    now_at(100);
    RUN("heartbeat", "0 a 1000 0 U+4", "[U+100000 1 U+100001 T+1100 'a' 'T+1100']");
}

Test(version, changes_with_a_tell)
{
    given("heartbeat", "0 a 100 0 0");
    given("heartbeat", "0 b 100 0 0");
    given("tell", "0 b 1");
    KEYS("alive :-U+3 b:T+99.75 a:T+100");
    RUN("heartbeat", "0 a 100 0 U+2", "[U 1 U+3 T+100 'b' 'T+99.75' 'a' 'T+100']");
    RUN("heartbeat", "0 b 100 0 U+3", "[U 1 U+3 T+100]");
    given("tell", "0 c 1");
    RUN("heartbeat", "0 b 100 0 U+3", "[U 1 U+3 T+100]");
}

/* It died before the end that others wait for; it is a life that is cut, and no name. */
Test(version, stays_where_a_life_is_shortened)
{
    now_at(3600000);
    given("heartbeat", "0 dead 15000 0 0");
    given("heartbeat", "0 a 15000 0 0");
    now_at(0);
    RUN("heartbeat", "0 a 15000 0 U+3600000002", "[U 1 U+3600000002 T+15000]");
    KEYS("alive :-U+3600000002 a:T+15000 dead:T+15000");
}

/* That of before is as good as another one: it is not the one that anybody knows. */
Test(version, that_was_lost_is_made_again)
{
    given("heartbeat", "0 a 100 0 0");
    ask("ZREM " ALIVE " %b", "", (size_t)0);
    now_at(1);
    RUN("heartbeat", "0 a 100 0 U+1", "[U+1000 1 U+1001 T+101 'a' 'T+101']");
    ask("DEL " ALIVE);
    now_at(2);
    RUN("heartbeat", "0 a 100 0 U+1001", "[U+2000 0 U+2001 T+102 'a' 'T+102']");
}

/* Anybody may write there. */
Test(version, that_is_none_is_replaced)
{
    static const char *const none[] = {"-inf", "-9007199254740992", "0", "T+100"};

    given("heartbeat", "0 a 100 0 0");
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        ask("ZADD " ALIVE " %s %b", moments(none[i]), "", (size_t)0);
        RUN("heartbeat", "0 a 100 0 0", "[U 1 U+1 T+100 'a' 'T+100']");
        KEYS("alive :-U+1 a:T+100");
    }
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
