/* SPDX-License-Identifier: MIT */
/* release and renew: what a process does with jobs that it has claimed and not begun, or not
 * ended. */
#include "script.h"

SCRIPTS(release);
SCRIPTS(renew);

Test(release, gives_jobs_back_due_as_before_and_uncounted)
{
    five();
    RUN("release", "0 me none U+1 r U+3 w U+4 e U+1 r2 U+3",
        "[U+20000 'EGONE' 1 'EGONE' 1 'EGONE']");
    KEYS("due e:T r:T w:T+500 | run u:T+10 | dead d:T | " FIVE_JOBS " | attempts " ATTEMPT_D
         " e=1 U+1 me 0 10 U T  r=1 U+3 me 0 10 U T  " ATTEMPT_U " | seq U+4 | t w:T+499");
    HEARD("0 '0 r 0 e'");
    RUN("claim", "0 you 1000 0 r",
        "[U+20000 T T+500 0 0 0 0 ['r' 2 T+1020 '1 U+20001 you 1 10 U+20000 T ' '" REC "r' 1]]");
}

Test(release, leaves_the_tries_of_real_runs_counted)
{
    given("schedule", "0 a +0 0 \\01\\01\\02");
    given("claim", "0 me 1000 1");
    given("retry", "0 me a U+1 0 first");
    for (int token = 2; token < 5; token++) {
        given("claim", "0 me 1000 1");
        RUN("release", text("0 me a U+%d", token), "[U 1]");
        KEYS(text("due a:T | jobs a=\\01\\01\\02 | attempts a=1 U+%d me 1 2 U T first | seq U+%d",
                  token, token));
    }

    given("claim", "0 me 1000 1");
    RUN("retry", "0 me a U+5 0 second", "[U 0]");
}

Test(release, by_another_token_changes_nothing)
{
    five();
    RUN("release", "0 me r U+4 r '' d U+4", "[U+20000 'EGONE' 'EGONE' 'EGONE']");
    KEYS(FIVE);
    HEARD("");
    RUN("release", "0 me r U+3", "[U+20000 1]");
    heard();
    RUN("release", "0 me r U+3", "[U+20000 'EGONE']");
}

Test(release, of_a_job_that_is_not_due_any_more_tells_when_it_will_be)
{
    given("schedule", "0 a +0 0 " REC);
    given("claim", "0 me 1000 1");
    now_at(-5); /* the server's clock was set back */
    RUN("release", "0 me a U+1", "[U-5000 1]");
    KEYS("due a:T | jobs a=" REC " | attempts a=1 U+1 me 0 10 U T  | seq U+1");
    HEARD("0 'T a'");
}

Test(renew, makes_each_lease_as_long_as_asked)
{
    five();
    RUN("renew", "0 me r U+3 500 none U+1 5 e U+1 7 w U+4 5 d U+4 5",
        "[U+20000 T+520 'EGONE' T+27 'EGONE' 'EGONE']");
    KEYS("due w:T+500 | run u:T+10 e:T+27 r:T+520 | dead d:T | " FIVE_JOBS " | attempts " ATTEMPT_D
         " " ATTEMPT_E " " ATTEMPT_R " " ATTEMPT_U " | seq U+4 | t w:T+499");
    HEARD("");
}

Test(renew, by_another_token_changes_nothing)
{
    five();
    RUN("renew", "0 me r U+1 500 r '' 500 u U+1 5", "[U+20000 'EGONE' 'EGONE' 'EGONE']");
    KEYS(FIVE);
}

Test(renew, of_nothing_of_ours_writes_nothing)
{
    ask("CONFIG RESETSTAT");
    RUN("renew", "0 me a U+1 5", "[U 'EGONE']");
    RUN("release", "0 me a U+1", "[U 'EGONE']");
    RUN("retry", "0 me a U+1 5 x", "[U 'EGONE']");
    RUN("fail", "0 me a U+1 x", "[U 'EGONE']");
    cr_assert_eq(calls("zrem") + calls("zadd") + calls("hset") + calls("set") + calls("publish"),
                 0);
}
