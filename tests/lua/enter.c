/* SPDX-License-Identifier: MIT */
/* The registry: enter writes it, names reads it. */
#include "script.h"

SCRIPTS(enter);

Test(enter, names_each_queue_once_and_tells_which_are_new)
{
    RUN("enter", "0 b", "[U 1]");
    KEYS("queues b:0");
    HEARD("0 'b'");
    RUN("enter", "0 b", "[U 0]");
    HEARD("");
    RUN("enter", "0 c b a", "[U 2]");
    KEYS("queues a:0 b:0 c:0");
    HEARD("0 'c' 0 'a'");
}

Test(enter, tells_of_it_in_the_database_that_it_is_in)
{
    RUN("enter", "'3 600' a", "[U 1]");
    HEARD("3 'a'");
}

Test(enter, writes_nothing_for_a_queue_that_is_known)
{
    given("enter", "0 a b");
    ask("CONFIG RESETSTAT");
    RUN("enter", "0 a b", "[U 0]");
    cr_assert_eq(calls("zadd"), 0);
    cr_assert_eq(calls("publish"), 0);
    cr_assert_eq(calls("zmscore"), 1);
}

Test(enter, takes_a_hundred_names_with_one_write)
{
    char args[1000] = "0";
    size_t len = 1;

    for (int i = 0; i < 100; i++) {
        len += (size_t)snprintf(args + len, sizeof args - len, " q%d", i);
    }
    ask("CONFIG RESETSTAT");
    RUN("enter", args, "[U 100]");
    cr_assert_eq(calls("zadd"), 1);
    cr_assert_eq(calls("publish"), 100);
    heard();
}

Test(enter, needs_no_right_to_publish)
{
    redis_do(redis, "ACL SETUSER u reset on nopass ~* +@all resetchannels");
    redis_do(redis, "AUTH u x");
    redisReply *r = run("enter", "0 a");
    redis_do(redis, "AUTH default x");
    cr_assert_str_eq(show(r), moments("[U 1]"));
    KEYS("queues a:0");
    HEARD("");
}

Test(enter, names_come_in_pages_by_their_bytes)
{
    RUN("names", "0 - + 10", "[U]");
    given("enter", "0 sms email.b email.a log");
    RUN("names", "0 - + 10", "[U 'email.a' 'email.b' 'log' 'sms']");
    RUN("names", "0 - + 2", "[U 'email.a' 'email.b']");
    RUN("names", "0 (email.b + 2", "[U 'log' 'sms']");
    RUN("names", "0 [email. (email.~ 10", "[U 'email.a' 'email.b']");
    RUN("names", "0 [log [log 10", "[U 'log']");
}
