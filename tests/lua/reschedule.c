/* SPDX-License-Identifier: MIT */
#include "script.h"

SCRIPTS(reschedule);

Test(reschedule, of_a_waiting_job_moves_its_due_time_and_trigger)
{
    given("schedule", "0 a +50 0 " REC "x b +60 0 " REC);
    RUN("reschedule", "0 a +70 0 b T+65 0",
        "[U ['a' 1 T+70 '' '" REC "'] ['b' 1 T+65 '' '" REC "']]");
    KEYS("due b:T+65 a:T+70 | jobs a=" REC "x b=" REC " | t a:T+69 b:T+64");
    HEARD("0 'T+70 a T+65 b'");
}

Test(reschedule, tells_of_a_job_due_later_than_in_a_second_only_if_it_is_the_new_head)
{
    given("schedule", "0 a +2050 0 " REC " b +2060 0 " REC);
    RUN("reschedule", "0 b +2050 0", "[U ['b' 1 T+2050 '' '" REC "']]");
    HEARD("");
    RUN("reschedule", "0 b +2049 0", "[U ['b' 1 T+2049 '' '" REC "']]");
    HEARD("0 'T+2049 b'");
    RUN("reschedule", "3 b +2040 0 a +1001 0",
        "[U ['b' 1 T+2040 '' '" REC "'] ['a' 1 T+1001 '' '" REC "']]");
    HEARD("3 'T+1001 a'");
}

Test(reschedule, tells_of_each_job_that_is_due_within_a_second)
{
    given("schedule", "0 a +50 0 " REC " b +60 0 " REC);
    RUN("reschedule", "0 b +999 0", "[U ['b' 1 T+999 '' '" REC "']]");
    HEARD("0 'T+999 b'");
    RUN("reschedule", "0 a +999 0 b +1000 0",
        "[U ['a' 1 T+999 '' '" REC "'] ['b' 1 T+1000 '' '" REC "']]");
    HEARD("0 'T+999 a'");
}

Test(reschedule, to_now_or_the_past_takes_the_trigger_away_and_tells)
{
    given("schedule", "0 a +50 0 " REC " b +60 0 " REC " c +70 0 " REC);
    RUN("reschedule", "0 a +0 0 b T-9 0 c T+1 0",
        "[U ['a' 1 T '' '" REC "'] ['b' 1 T '' '" REC "'] ['c' 1 T+1 '' '" REC "']]");
    KEYS("due a:T b:T c:T+1 | jobs a=" REC " b=" REC " c=" REC " | t c:T+1");
    HEARD("0 '0 a 0 b T+1 c'");
}

Test(reschedule, of_any_state_but_running_makes_it_wait)
{
    five();
    RUN("reschedule", "0 w +1 0 r +1 0 e +2 0 u +3 0 d +4 0 none +5 0",
        "[U+20000 ['w' 1 T+21 '' '" REC "'] 'EBUSY' ['e' 1 T+22 '1 U+1 me 1 10 U T ' '" REC
        "'] ['u' 1 T+23 '' '\\01\\01\\01'] ['d' 1 T+24 '' '" REC "'] 'ENOENT']");
    KEYS("due w:T+21 e:T+22 u:T+23 d:T+24 | run r:T+1000 | " FIVE_JOBS " | attempts " ATTEMPT_E
         " " ATTEMPT_R " | seq U+4 | t d:T+23 e:T+21 u:T+22 w:T+21");
    HEARD("0 'T+21 w T+22 e T+23 u T+24 d'");
}

Test(reschedule, gives_a_dead_job_all_its_tries_again)
{
    given("schedule", "0 a +0 0 \\01\\01\\01");
    given("claim", "0 me 1000 1");
    given("retry", "0 me a U+1 0 oops");
    RUN("reschedule", "0 a +0 0", "[U ['a' 1 T '' '\\01\\01\\01']]");
    RUN("claim", "0 me 1000 1",
        "[U 0 0 0 0 0 0 ['a' 2 T+1000 '1 U+2 me 1 1 U T ' '\\01\\01\\01' 0]]");
}

Test(reschedule, of_a_job_put_back_keeps_its_tries)
{
    given("schedule", "0 a +0 0 " REC);
    given("claim", "0 me 1000 1");
    given("retry", "0 me a U+1 50 oops");
    RUN("reschedule", "0 a +9 0", "[U ['a' 1 T+9 '1 U+1 me 1 10 U T+50 oops' '" REC "']]");
    KEYS("due a:T+9 | jobs a=" REC " | attempts a=1 U+1 me 1 10 U T+50 oops | seq U+1 | t a:T+8");
}

Test(reschedule, is_ebusy_until_the_very_end_of_the_lease)
{
    five();
    now_at(999);
    RUN("reschedule", "0 r +1 0", "[U+999000 'EBUSY']");
    KEYS(FIVE);
    now_at(1000);
    RUN("reschedule", "0 r +1 0", "[U+1000000 ['r' 1 T+1001 '1 U+3 me 1 10 U T ' '" REC "']]");
}

Test(reschedule, reaches_ten_years_and_no_further)
{
    five();
    RUN("reschedule",
        "0 w +315576000001 0 w T+315576000021 0 r +315576000001 0 none +315576000001 0 d "
        "+315576000001 0",
        "[U+20000 'EINVAL' 'EINVAL' 'EBUSY' 'ENOENT' 'EINVAL']");
    KEYS(FIVE);
    HEARD("");
    RUN("reschedule", "0 w +315576000000 0 d T+315576000020 0",
        "[U+20000 ['w' 1 T+315576000020 '' '" REC "'] ['d' 1 T+315576000020 '' '" REC "']]");
    HEARD(""); /* w was the head, and listeners will look when it was due */
}

Test(reschedule, of_half_a_job_is_enoent)
{
    ask("HSET s:{q}:jobs half x");
    ask("ZADD s:{q}:due 5 member");
    RUN("reschedule", "0 half +9 0 member +9 0", "[U 'ENOENT' 'ENOENT']");
    KEYS("due member:5 | jobs half=x");
    HEARD("");
    ask("FLUSHALL");
}

Test(reschedule, of_what_it_cannot_read_works)
{
    given("schedule", "0 a +5 0 \\02\\00x");
    RUN("reschedule", "0 a +9 0", "[U ['a' 1 T+9 '' '']]");
    KEYS("due a:T+9 | jobs a=\\02\\00x | t a:T+8");
}

Test(reschedule, stops_after_256_KiB_of_records)
{
    static char body[131073] = {1, 0};
    const char *argv[] = {"0", "a", "+5", "0", body, "b", "+5", "0", body, "c", "+5", "0", body};
    size_t len[] = {1, 1, 2, 1, 131072, 1, 2, 1, 131072, 1, 2, 1, 2};

    run_bytes("schedule", 13, argv, len);
    RUN("reschedule", "0 a +9 0 b +9 0 c +9 0",
        "[U ['a' 1 T+9 '' '" REC "'] ['b' 1 T+9 '' '" REC "'] ['c' 1 T+9 '' '" REC "']]");
    argv[7] = "2", len[8]++;
    run_bytes("schedule", 13, argv, len);
    RUN("reschedule", "0 a +7 0 b +7 0 c +7 0",
        "[U ['a' 1 T+7 '' '" REC "'] ['b' 1 T+7 '' '" REC "']]");
    cr_assert_eq(redis_int(redis, "ZSCORE s:{q}:due c"), T + 9);
}
