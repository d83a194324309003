/* SPDX-License-Identifier: MIT */
#include "script.h"

SCRIPTS(join);

Test(join, enters_a_listener_and_says_which_there_are)
{
    RUN("join", "4 b/1 1", "[U 'b/1']");
    HEARD("4 'members'");
    now_at(5);
    RUN("join", "4 a/1 1", "[U+5000 'b/1' 'a/1']");
    HEARD("4 'members'");
    KEYS("listeners b/1:T a/1:T+5");
}

Test(join, again_changes_nothing_and_tells_nobody)
{
    given("join", "0 a 1");
    now_at(5);
    RUN("join", "0 a 1", "[U+5000 'a']");
    KEYS("listeners a:T");
    HEARD("");
}

Test(join, for_0_leaves)
{
    given("join", "0 a 1");
    given("join", "0 b 1");
    RUN("join", "0 a 0", "[U 'b']");
    HEARD("0 'members'");
    RUN("join", "0 a 0", "[U 'b']");
    HEARD("");
    RUN("join", "0 b 0", "[U]");
    KEYS("");
    HEARD("0 'members'");
}

Test(join, removes_those_that_are_gone)
{
    given("join", "0 a 1");
    given("join", "0 b 1");
    given("join", "0 c 1");
    RUN("join", "0 c 1 a x", "[U 'b' 'c']");
    HEARD("0 'members'");
    RUN("join", "0 c 1 a x", "[U 'b' 'c']");
    HEARD("");
    RUN("join", "0 c 0 b", "[U]");
    HEARD("0 'members'");
}
