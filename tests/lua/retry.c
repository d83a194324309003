/* SPDX-License-Identifier: MIT */
#include "script.h"

SCRIPTS(retry);

Test(retry, puts_a_job_back_for_later_and_keeps_why)
{
    five();
    RUN("retry", "0 me r U+3 50 'so it\\0ago%s'", "[U+20000 T+70]");
    KEYS("due r:T+70 w:T+500 | run e:T+10 u:T+10 | dead d:T | " FIVE_JOBS " | attempts " ATTEMPT_D
         " " ATTEMPT_E " r=1 U+3 me 1 10 U T+70 so it\\0ago%s " ATTEMPT_U
         " | seq U+4 | t r:T+69 w:T+499");
    HEARD("0 'T+70 r'");
    /* its token is the one held still, but it waits */
    RUN("retry", "0 me r U+3 50 again", "[U+20000 'EGONE']");
}

Test(retry, at_once_has_no_trigger_and_its_id_is_in_the_notice)
{
    five();
    ask("CONFIG RESETSTAT");
    RUN("retry", "9 me r U+3 0 ''", "[U+20000 T+20]");
    cr_assert_eq(calls("del"), 0);
    KEYS("due r:T+20 w:T+500 | run e:T+10 u:T+10 | dead d:T | " FIVE_JOBS " | attempts " ATTEMPT_D
         " " ATTEMPT_E " r=1 U+3 me 1 10 U T+20  " ATTEMPT_U " | seq U+4 | t w:T+499");
    HEARD("9 '0 r'");
    given("claim", "0 me 1000 0 r");
    RUN("retry", "0 me r U+20001 1 ''", "[U+20000 T+21]");
    cr_assert_eq(redis_int(redis, "PEXPIRETIME s:{q}:t:r"), T + 21);
}

Test(retry, with_its_tries_used_up_is_death)
{
    given("schedule", "0 a +0 0 \\01\\01\\02 b +0 0 " REC);
    given("claim", "0 me 1000 0 a b");
    RUN("retry", "0 me a U+1 0 one", "[U T]");
    HEARD("0 '0 a'");
    given("claim", "0 me 1000 0 a");
    now_at(7);
    RUN("retry", "0 me a U+3 50 two", "[U+7000 0]");
    KEYS("run b:T+1000 | dead a:T+7 | jobs a=\\01\\01\\02 b=" REC
         " | attempts a=1 U+3 me 2 2 U T two b=1 U+2 me 1 10 U T  | seq U+3");
    HEARD("");
    RUN("retry", "0 me a U+3 50 three", "[U+7000 'EGONE']");
    /* tries may have been more in another version's time */
    ask("HSET s:{q}:attempts b %s", "1 2 me 11 10 5 5 ");
    RUN("retry", "0 me b 2 0 ''", "[U+7000 0]");
}

Test(retry, with_unlimited_tries_never_dies)
{
    given("schedule", "0 a +0 0 \\01\\01\\ff\\ff\\ff\\ff\\0f b +0 0 \\01\\01\\fe\\ff\\ff\\ff\\0f");
    given("claim", "0 me 1000 0 a b");
    ask("HSET s:{q}:attempts a %s b %s", "1 1 me 4294967295 4294967295 5 5 ",
        "1 2 me 4294967294 4294967294 5 5 ");
    RUN("retry", "0 me a 1 0 '' b 2 0 ''", "[U T 0]");
}

Test(retry, of_many_answers_each_and_notifies_once)
{
    five();
    RUN("retry", "0 me none U+1 5 x r U+3 60 later u U+2 5 over e U+1 0 now w U+1 5 x d U+4 5 x",
        "[U+20000 'EGONE' T+80 0 T+20 'EGONE' 'EGONE']");
    KEYS("due e:T+20 r:T+80 w:T+500 | dead d:T u:T+20 | " FIVE_JOBS " | attempts " ATTEMPT_D
         " e=1 U+1 me 1 10 U T+20 now r=1 U+3 me 1 10 U T+80 later u=1 U+2 me 1 1 U T over | seq "
         "U+4 | t r:T+79 w:T+499");
    HEARD("0 'T+80 r 0 e'");
}

Test(retry, tells_of_a_job_due_later_than_in_a_second_only_if_it_is_the_new_head)
{
    five();
    given("reschedule", "0 w T+2000");
    RUN("retry", "0 me r U+3 1980 ''", "[U+20000 T+2000]");
    HEARD("");
    RUN("retry", "0 me e U+1 1979 ''", "[U+20000 T+1999]");
    HEARD("0 'T+1999 e'");
}

Test(retry, tells_of_each_job_that_is_due_within_a_second)
{
    five();
    RUN("retry", "0 me r U+3 1000 ''", "[U+20000 T+1020]");
    HEARD("");
    RUN("retry", "0 me e U+1 999 ''", "[U+20000 T+1019]");
    HEARD("0 'T+1019 e'");
}

Test(retry, by_another_token_changes_nothing)
{
    five();
    RUN("retry", "0 me r U+4 5 x r '' 5 x w U+3 5 x", "[U+20000 'EGONE' 'EGONE' 'EGONE']");
    KEYS(FIVE);
    HEARD("");
}
