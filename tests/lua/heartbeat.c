/* SPDX-License-Identifier: MIT */
#include "script.h"
#include "process.h"

SCRIPTS(heartbeat);

#define NAME(host, first) host "/" first "23456789abcdef"

Test(heartbeat, ranks_the_live_names_by_their_last_sixteen_bytes)
{
    RUN("heartbeat", "0 " NAME("m", "50") " 100", "[U 0 1]");
    HEARD("0 'members'");
    RUN("heartbeat", "0 " NAME("a", "51") " 50", "[U 1 2]");
    /* its last sixteen begin with the slash */
    RUN("heartbeat", "0 " NAME("a", "5") " 60", "[U 0 3]");
    RUN("heartbeat", "0 " NAME("z", "0a") " 70", "[U 1 4]");
    RUN("heartbeat", "0 " NAME("b", "f0") " 80", "[U 4 5]");
    HEARD("0 'members' 0 'members' 0 'members' 0 'members'");
    RUN("heartbeat", "0 " NAME("m", "50") " 90", "[U 2 5]");
    RUN("heartbeat", "0 " NAME("a", "51") " 90", "[U 3 5]");
    HEARD("");
}

/* None of ours do; all the same no two have one place. */
Test(heartbeat, ranks_names_that_end_alike_by_all_their_bytes)
{
    given("heartbeat", "0 " NAME("a", "50") " 100");
    given("heartbeat", "0 " NAME("a-", "50") " 100");
    given("heartbeat", "0 " NAME("B", "50") " 100");
    RUN("heartbeat", "0 " NAME("a", "50") " 100", "[U 2 3]");
    RUN("heartbeat", "0 " NAME("a-", "50") " 100", "[U 1 3]");
    RUN("heartbeat", "0 " NAME("B", "50") " 100", "[U 0 3]");
}

Test(heartbeat, again_only_makes_it_last_longer)
{
    RUN("heartbeat", "4 a 100", "[U 0 1]");
    HEARD("4 'members'");
    now_at(99);
    RUN("heartbeat", "4 a 100", "[U+99000 0 1]");
    KEYS("listeners a:T+199");
    HEARD("");
}

Test(heartbeat, forgets_whose_heartbeat_ended)
{
    given("heartbeat", "0 a 100");
    given("heartbeat", "0 b 101");
    now_at(99);
    RUN("heartbeat", "0 c 100", "[U+99000 2 3]");
    HEARD("0 'members'");
    now_at(100);
    RUN("heartbeat", "0 c 100", "[U+100000 1 2]");
    KEYS("listeners b:T+101 c:T+200");
    HEARD("0 'members'");
    now_at(300);
    RUN("heartbeat", "0 c 100", "[U+300000 0 1]");
    KEYS("listeners c:T+400");
    HEARD("0 'members'");
}

/* By a failover, or by hand. The dead would own events for an hour. */
Test(heartbeat, believes_no_heartbeat_that_is_good_for_longer_than_any)
{
    now_at(3600000);
    given("heartbeat", "0 dead 15000");
    given("heartbeat", "0 alive 15000");
    now_at(0);
    RUN("heartbeat", "0 alive 15000", "[U 0 2]");
    KEYS("listeners alive:T+15000 dead:T+15000");
    now_at(14999);
    RUN("heartbeat", "0 alive 15000", "[U+14999000 0 2]");
    now_at(15000);
    RUN("heartbeat", "0 alive 15000", "[U+15000000 0 1]");
    KEYS("listeners alive:T+30000");
}

Test(heartbeat, believes_what_a_longer_heartbeat_of_its_own_says)
{
    RUN("heartbeat", "0 a 60000", "[U 0 1]");
    KEYS("listeners a:T+60000");
    RUN("heartbeat", "0 b 0", "[U -1 1]");
    KEYS("listeners a:T+15000");
}

Test(heartbeat, for_0_ms_leaves)
{
    given("heartbeat", "0 a 100");
    given("heartbeat", "0 b 100");
    RUN("heartbeat", "0 a 0", "[U -1 1]");
    KEYS("listeners b:T+100");
    HEARD("0 'members'");
    RUN("heartbeat", "0 a 0", "[U -1 1]");
    HEARD("");
    now_at(100);
    RUN("heartbeat", "0 a 0", "[U+100000 -1 0]");
    KEYS("");
    HEARD("0 'members'");
    RUN("heartbeat", "0 a 1", "[U+100000 0 1]");
    KEYS("listeners a:T+101");
}

/* Redis compares texts by its own locale inside scripts, and so not always by bytes. */
static void in_english(void)
{
    char dir[64];

    test_dir(dir, sizeof dir);

    struct proc *p = proc_run(NULL, "localedef", "-i", "en_US", "-f", "UTF-8",
                              text("%s/en_US.UTF-8", dir), NULL);
    if (p->status) {
        test_dir_remove(dir);
        cr_skip_test("no locale but C can be made here");
    }

    proc_free(p);
    setenv("LOCPATH", dir, 1);
    setenv("LC_ALL", "en_US.UTF-8", 1);
    script_init();
    test_dir_remove(dir);
    cr_assert_eq(ask("EVAL %s 0", "return 'a' < 'B'")->integer, 1);
}

Test(english, listeners_are_ranked_by_their_digits, .init = in_english, .fini = script_fini)
{
    RUN("heartbeat", "0 " NAME("a-b", "aa") " 100", "[U 0 1]");
    RUN("heartbeat", "0 " NAME("B", "a0") " 100", "[U 0 2]");
    RUN("heartbeat", "0 " NAME("C", "9f") " 100", "[U 0 3]");
    RUN("heartbeat", "0 " NAME("aa", "f0") " 100", "[U 3 4]");
    RUN("heartbeat", "0 " NAME("b", "00") " 100", "[U 0 5]");
}

Test(english, lists_go_on_where_a_removed_one_was, .init = in_english, .fini = script_fini)
{
    given("schedule", "0 B +5 0 " REC " C +5 0 " REC " D +5 0 " REC " b +5 0 " REC " c +5 0 " REC
                      " d +5 0 " REC);
    RUN("list", "0 1 1 T+5 a", "[U 1 ['b' 1 T+5 '' '" REC "']]");
    RUN("list", "0 1 1 T+5 CC", "[U 1 ['D' 1 T+5 '' '" REC "']]");
    RUN("list", "0 1 1 T+5 cc", "[U 0 ['d' 1 T+5 '' '" REC "']]");
}
