/* SPDX-License-Identifier: MIT */
/* done and fail, and whose a job is. */
#include "script.h"

SCRIPTS(done);
SCRIPTS(fail);

Test(done, ends_jobs_held_by_their_tokens)
{
    five();
    RUN("done", "0 me none U+1 r U+3 w U+4 d U+4", "[U+20000 'EGONE' 1 'EGONE' 'EGONE']");
    KEYS("due w:T+500 | run e:T+10 u:T+10 | dead d:T | jobs d=" REC "d e=" REC
         "e u=\\01\\01\\01u w=" REC "w | attempts " ATTEMPT_D " " ATTEMPT_E " " ATTEMPT_U
         " | seq U+4 | t w:T+499");
    HEARD("");
    RUN("done", "0 me r U+3", "[U+20000 'EGONE']");
}

Test(done, by_another_token_changes_nothing)
{
    five();
    RUN("done", "0 me r U+4 r 03 r '' r 3. r '3 '",
        "[U+20000 'EGONE' 'EGONE' 'EGONE' 'EGONE' 'EGONE']");
    KEYS(FIVE);
}

/* A token alone proves nothing where Redis has lost the last one and gave it twice. */
Test(done, by_another_holder_changes_nothing)
{
    static const char *const settle[][2] = {
        {"done", "0 you r U+3"},    {"fail", "0 you r U+3 x"},    {"retry", "0 you r U+3 5 x"},
        {"release", "0 you r U+3"}, {"renew", "0 you r U+3 500"}, {"done", "0 m r U+3"},
        {"done", "0 '' r U+3"},     {"done", "0 * r U+4"},        {"release", "0 * none U+3"},
        {"done", "0 * w"}};

    five();
    for (size_t i = 0; i < sizeof settle / sizeof *settle; i++) {
        RUN(settle[i][0], settle[i][1], "[U+20000 'EGONE']");
    }

    KEYS(FIVE);
}

Test(done, by_any_holder_goes_by_the_token_alone)
{
    five();
    RUN("renew", "0 * r U+3 1000", "[U+20000 T+1020]");
    RUN("done", "0 * r U+3", "[U+20000 1]");
    RUN("fail", "0 * e U+1 x", "[U+20000 1]");
}

Test(done, is_in_time_until_another_has_the_job)
{
    five();
    RUN("done", "0 me e U+1 u U+2", "[U+20000 1 1]"); /* these leases ended, and no sweep has run */
    now_at(1000);
    given("sweep", "0");
    RUN("done", "0 me r U+3", "[U+1000000 'EGONE']"); /* it waits again */
    given("claim", "0 you 1000 0 r");
    RUN("done", "0 you r U+3 r U+1000001", "[U+1000000 'EGONE' 1]");
    KEYS("due w:T+500 | dead d:T | jobs d=" REC "d w=" REC "w | attempts " ATTEMPT_D
         " | seq U+1000001 | t w:T+499");
    now_at(0);
}

Test(done, of_a_job_without_a_holder_is_egone)
{
    given("schedule", "0 a +0 0 " REC " b +0 0 " REC);
    given("claim", "0 me 1000 2");
    ask("HSET s:{q}:attempts a %s", "1 1 me 1 10 2");
    ask("HDEL s:{q}:attempts b");
    char *before = dumps();
    RUN("done", "0 me a U+1 b U+2", "[U 'EGONE' 'EGONE']");
    same(__FILE__, __LINE__, "keys", dumps(), before);
    ask("FLUSHALL");
}

Test(done, of_nothing_of_ours_writes_nothing)
{
    ask("CONFIG RESETSTAT");
    RUN("done", "0 me a U+1 b U+2", "[U 'EGONE' 'EGONE']");
    cr_assert_eq(calls("zrem") + calls("hdel"), 0);
}

Test(done, of_a_hundred_asks_for_each_thing_once)
{
    many(0, 100, "+0");
    given("claim", "0 me 1000 100");

    char *args = text("0 me");
    for (int i = 0; i < 100; i++) {
        args = text("%s j%03d U+%d", args, i, i + 1);
    }

    ask("CONFIG RESETSTAT");
    run("done", args);
    cr_assert_eq(calls("hmget"), 1);
    cr_assert_eq(calls("zmscore"), 1);
    cr_assert_eq(calls("zrem"), 1);
    cr_assert_eq(calls("hdel"), 2);
    KEYS("seq U+100");
}

Test(fail, makes_a_job_dead_at_once_and_keeps_why)
{
    five();
    RUN("fail", "0 me r U+3 'so it\\0ago%s' none U+1 x w U+4 x e U+1 ''",
        "[U+20000 1 'EGONE' 'EGONE' 1]");
    KEYS("due w:T+500 | run u:T+10 | dead d:T e:T+20 r:T+20 | " FIVE_JOBS " | attempts " ATTEMPT_D
         " " ATTEMPT_E " r=1 U+3 me 1 10 U T so it\\0ago%s " ATTEMPT_U " | seq U+4 | t w:T+499");
    HEARD("");
    RUN("fail", "0 me r U+3 again", "[U+20000 'EGONE']");
}

Test(fail, by_another_token_changes_nothing)
{
    five();
    RUN("fail", "0 me r U+4 x r '' x d U+4 x", "[U+20000 'EGONE' 'EGONE' 'EGONE']");
    KEYS(FIVE);
}

Test(fail, keeps_a_long_why_whole)
{
    five();
    char *why = text("%0200d", 7);
    RUN("fail", text("0 me r U+3 %s", why), "[U+20000 1]");
    char *held = ask("HGET s:{q}:attempts r")->str;
    cr_assert_str_eq(held + strlen(held) - 200, why);
}
