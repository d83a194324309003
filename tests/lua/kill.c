/* SPDX-License-Identifier: MIT */
#include "script.h"

SCRIPTS(kill);

Test(kill, of_a_waiting_job_makes_it_dead_with_the_reason)
{
    given("schedule", "0 a +5 0 " REC "x b +6 0 " REC);
    RUN("kill", "0 a 'no customer'", "[U ['a' 3 T '1 0 - 0 10 0 T+5 no customer' '" REC "']]");
    KEYS("due b:T+6 | dead a:T | jobs a=" REC "x b=" REC
         " | attempts a=1 0 - 0 10 0 T+5 no customer | t b:T+5");
    HEARD("");
}

Test(kill, of_any_state_but_running_leaves_it_dead)
{
    five();
    RUN("kill", "0 w 1 r 2 e 3 u 4 d 5 none 6",
        "[U+20000 ['w' 3 T+20 '1 0 - 0 10 0 T+500 1' '" REC "'] 'EBUSY' ['e' 3 T+20 "
        "'1 U+1 me 1 10 U T 3' '" REC "'] ['u' 3 T+20 '1 U+2 me 1 1 U T 4' '\\01\\01\\01'] "
        "['d' 3 T '1 U+4 me 1 10 U T bad' '" REC "'] 'ENOENT']");
    KEYS("run r:T+1000 | dead d:T e:T+20 u:T+20 w:T+20 | " FIVE_JOBS " | attempts " ATTEMPT_D
         " e=1 U+1 me 1 10 U T 3 " ATTEMPT_R " u=1 U+2 me 1 1 U T 4 w=1 0 - 0 10 0 T+500 1 | "
         "seq U+4");
    HEARD("");
}

Test(kill, that_is_repeated_says_the_same_and_changes_nothing)
{
    given("schedule", "0 a +5 0 " REC);
    char *first = show(run("kill", "0 a one"));
    char *after = keys();
    now_at(7);
    RUN("kill", "0 a two", text("[U+7000 %s", strchr(first, '[') + strlen("[U ")));
    KEYS(after);
}

Test(kill, is_ebusy_until_the_very_end_of_the_lease)
{
    five();
    now_at(999);
    RUN("kill", "0 r x", "[U+999000 'EBUSY']");
    KEYS(FIVE);
    now_at(1000);
    RUN("kill", "0 r x", "[U+1000000 ['r' 3 T+1000 '1 U+3 me 1 10 U T x' '" REC "']]");
}

Test(kill, of_a_job_put_back_keeps_its_try_and_its_token)
{
    given("schedule", "0 a +0 0 " REC);
    given("claim", "0 me 1000 1");
    given("retry", "0 me a U+1 50 later");
    RUN("kill", "0 a ''", "[U ['a' 3 T '1 U+1 me 1 10 U T+50 ' '" REC "']]");
    KEYS("dead a:T | jobs a=" REC " | attempts a=1 U+1 me 1 10 U T+50  | seq U+1");
}

Test(kill, takes_the_job_from_a_holder_whose_lease_is_over)
{
    five();
    RUN("kill", "0 e x", "[U+20000 ['e' 3 T+20 '1 U+1 me 1 10 U T x' '" REC "']]");
    RUN("done", "0 me e U+1", "[U+20000 'EGONE']");
    RUN("retry", "0 me e U+1 5 y", "[U+20000 'EGONE']");
}

Test(kill, is_undone_by_a_reschedule_which_gives_all_tries_again)
{
    given("schedule", "0 a +5 0 \\01\\01\\03");
    given("kill", "0 a x");
    RUN("reschedule", "0 a +0 0", "[U ['a' 1 T '' '\\01\\01\\03']]");
    RUN("claim", "0 me 1000 1",
        "[U 0 0 0 0 0 0 ['a' 2 T+1000 '1 U+1 me 1 3 U T ' '\\01\\01\\03' 0]]");
}

Test(kill, of_what_it_cannot_read_works)
{
    given("schedule", "0 a +5 0 \\02\\00x b +5 0 " REC);
    ask("HSET s:{q}:attempts b %s", "9 of a newer version");
    RUN("kill", "0 a x b y",
        "[U ['a' 3 T '1 0 - 0 10 0 T+5 x' ''] ['b' 3 T '9 of a newer version' '" REC "']]");
    KEYS("dead a:T b:T | jobs a=\\02\\00x b=" REC
         " | attempts a=1 0 - 0 10 0 T+5 x b=9 of a newer version");
}

Test(kill, of_half_a_job_is_enoent)
{
    ask("HSET s:{q}:jobs half x");
    ask("ZADD s:{q}:due 5 member");
    RUN("kill", "0 half x member y", "[U 'ENOENT' 'ENOENT']");
    KEYS("due member:5 | jobs half=x");
    ask("FLUSHALL");
}

Test(kill, stops_after_256_KiB_of_records)
{
    static char body[131073] = {1, 0};
    const char *argv[] = {"0", "a", "+5", "0", body, "b", "+5", "0", body, "c", "+5", "0", body};
    size_t len[] = {1, 1, 2, 1, 131073, 1, 2, 1, 131072, 1, 2, 1, 2};

    run_bytes("schedule", 13, argv, len);
    RUN("kill", "0 a 1 b 2 c 3",
        "[U ['a' 3 T '1 0 - 0 10 0 T+5 1' '" REC "'] ['b' 3 T '1 0 - 0 10 0 T+5 2' '" REC "']]");
    cr_assert_eq(redis_int(redis, "ZSCORE s:{q}:due c"), T + 5);
}
