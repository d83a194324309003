/* SPDX-License-Identifier: MIT */
#include "script.h"

SCRIPTS(schedule);

Test(schedule, keeps_record_due_time_and_trigger)
{
    RUN("schedule", "0 a +5 0 " REC "x", "[U T+5]");
    KEYS("due a:T+5 | jobs a=" REC "x | t a:T+4");
    HEARD("0 'T+5 a'");
}

Test(schedule, takes_a_moment_too)
{
    RUN("schedule", "0 a T+5 0 " REC "x", "[U T+5]");
    KEYS("due a:T+5 | jobs a=" REC "x | t a:T+4");
    HEARD("0 'T+5 a'");
}

Test(schedule, of_now_or_the_past_is_due_now_and_has_no_trigger)
{
    RUN("schedule", "0 a +0 0 " REC " b T 0 " REC " c T-1 0 " REC " d 0 0 " REC, "[U T T T T]");
    KEYS("due a:T b:T c:T d:T | jobs a=" REC " b=" REC " c=" REC " d=" REC);
    HEARD("0 '0 a 0 b 0 c 0 d'");
}

Test(schedule, makes_no_trigger_that_is_over_when_it_is_set)
{
    RUN("schedule", "0 a +1 0 " REC " b +2 0 " REC " c +3 0 " REC, "[U T+1 T+2 T+3]");
    KEYS("due a:T+1 b:T+2 c:T+3 | jobs a=" REC " b=" REC " c=" REC " | t a:T+1 b:T+1 c:T+2");
}

Test(schedule, reaches_ten_years_and_no_further)
{
    RUN("schedule", "0 a +315576000000 0 " REC " b T+315576000000 0 " REC,
        "[U T+315576000000 T+315576000000]");
    heard();
    RUN("schedule", "0 c +315576000001 0 " REC " d T+315576000001 0 " REC, "[U 'EINVAL' 'EINVAL']");
    KEYS("due a:T+315576000000 b:T+315576000000 | jobs a=" REC " b=" REC
         " | t a:T+315575999999 b:T+315575999999");
    HEARD("");
}

Test(schedule, asks_once_when_the_next_job_is_due)
{
    static const char *const args[] = {"0 a +500 0 " REC, "0 b +600 0 " REC};

    for (size_t i = 0; i < sizeof args / sizeof *args; i++) {
        ask("CONFIG RESETSTAT");
        given("schedule", args[i]);
        cr_assert_eq(calls("zrange"), 1);
        cr_assert_eq(calls("zrangebyscore"), 0);
    }

    heard();
    ask("FLUSHALL");
}

Test(schedule, too_far_ahead_replaces_nothing)
{
    five();
    RUN("schedule", "0 w +315576000001 2 " REC " d +315576000001 2 " REC,
        "[U+20000 'EINVAL' 'EINVAL']");
    KEYS(FIVE);
}

Test(schedule, of_many_answers_in_order_and_notifies_once)
{
    RUN("schedule", "7 a +9 0 " REC " b +0 0 " REC " c +5 0 " REC " d +0 0 " REC " e +5 0 " REC,
        "[U T+9 T T+5 T T+5]");
    KEYS("due b:T d:T c:T+5 e:T+5 a:T+9 | jobs a=" REC " b=" REC " c=" REC " d=" REC " e=" REC
         " | t a:T+8 c:T+4 e:T+4");
    HEARD("7 'T+9 a 0 b T+5 c 0 d T+5 e'");
}

Test(schedule, tells_of_each_job_that_is_due_within_a_second)
{
    RUN("schedule", "0 a +10 0 " REC, "[U T+10]");
    HEARD("0 'T+10 a'");
    RUN("schedule", "0 b +20 0 " REC " c +10 0 " REC, "[U T+20 T+10]");
    HEARD("0 'T+20 b T+10 c'");
    RUN("schedule", "0 d +999 0 " REC " e +1000 0 " REC, "[U T+999 T+1000]");
    HEARD("0 'T+999 d'");
    now_at(20);
    RUN("schedule", "0 f +0 0 " REC " g +999 0 " REC, "[U+20000 T+20 T+1019]");
    HEARD("0 '0 f T+1019 g'");
}

Test(schedule, tells_of_a_job_due_later_than_in_a_second_only_if_it_is_the_new_head)
{
    RUN("schedule", "0 a +3000 0 " REC, "[U T+3000]");
    HEARD("0 'T+3000 a'");
    RUN("schedule", "0 b +4000 0 " REC " c +3000 0 " REC, "[U T+4000 T+3000]");
    HEARD("");
    RUN("schedule", "0 d +2999 0 " REC, "[U T+2999]");
    HEARD("0 'T+2999 d'");
    now_at(2999); /* d and what was due before it are no head any more: the alarm has them */
    RUN("schedule", "0 e +1001 0 " REC, "[U+2999000 T+4000]");
    HEARD("");
    now_at(3000);
    RUN("schedule", "0 f +1001 0 " REC, "[U+3000000 T+4001]");
    HEARD("");
    now_at(5000);
    RUN("schedule", "0 g +2000 0 " REC, "[U+5000000 T+7000]");
    HEARD("0 'T+7000 g'");
    RUN("schedule", "0 h +1999 0 " REC " i +0 0 " REC, "[U+5000000 T+6999 T+5000]");
    HEARD("0 '0 i T+6999 h'");
}

Test(schedule, of_many_that_are_due_later_than_in_a_second_tells_of_the_new_head_alone)
{
    RUN("schedule", "0 a +3000 0 " REC " b +2000 0 " REC " c +2500 0 " REC " d +2000 0 " REC,
        "[U T+3000 T+2000 T+2500 T+2000]");
    HEARD("0 'T+2000 b'");
    RUN("schedule", "0 e +5 0 " REC " f +1900 0 " REC, "[U T+5 T+1900]");
    HEARD("0 'T+5 e'");
}

/* In any order. */
Test(schedule, tells_of_no_job_due_later_than_in_a_second_beside_one_due_sooner)
{
    RUN("schedule", "0 a +1900 0 " REC " b +5 0 " REC, "[U T+1900 T+5]");
    HEARD("0 'T+5 b'");
}

Test(schedule, with_reject_refuses_an_id_in_any_state)
{
    five();
    RUN("schedule", "0 w +1 0 " REC " r +1 0 " REC " e +1 0 " REC " u +1 0 " REC " d +1 0 " REC,
        "[U+20000 'EEXIST' 'EEXIST' 'EEXIST' 'EEXIST' 'EEXIST']");
    KEYS(FIVE);
    HEARD("");
}

Test(schedule, with_keep_shows_the_one_there_without_its_body)
{
    five();
    RUN("schedule", "0 w +1 1 " REC " r +1 1 " REC " e +1 1 " REC " u +1 1 " REC " d +1 1 " REC,
        "[U+20000 ['w' 1 T+500 '' '" REC "'] ['r' 2 T+1000 '1 U+3 me 1 10 U T ' '" REC
        "'] ['e' 1 T+10 '1 U+1 me 1 10 U T ' '" REC
        "'] ['u' 3 T+10 '1 U+2 me 1 1 U T ' '\\01\\01\\01'] ['d' 3 T '1 U+4 me 1 10 U T bad' '" REC
        "']]");
    KEYS(FIVE);
    HEARD("");
    RUN("schedule", "0 new +1 1 " REC, "[U+20000 T+21]");
    HEARD("0 'T+21 new'");
}

Test(schedule, with_keep_of_what_it_cannot_read_is_edata)
{
    given("schedule", "0 a +5 0 \\02\\00x");
    RUN("schedule", "0 a +9 1 " REC " b +9 1 " REC, "[U 'EDATA' T+9]");
    KEYS("due a:T+5 b:T+9 | jobs a=\\02\\00x b=" REC " | t a:T+4 b:T+8");
}

Test(schedule, with_replace_begins_a_new_life_unless_it_runs)
{
    five();
    RUN("schedule",
        "0 w +1 2 " REC "1 r +1 2 " REC "2 e +2 2 " REC "3 u +3 2 " REC "4 d +4 2 " REC "5",
        "[U+20000 T+21 'EBUSY' T+22 T+23 T+24]");
    KEYS("due w:T+21 e:T+22 u:T+23 d:T+24 | run r:T+1000 | jobs d=" REC "5 e=" REC "3 r=" REC
         "r u=" REC "4 w=" REC "1 | attempts " ATTEMPT_R
         " | seq U+4 | t d:T+23 e:T+21 u:T+22 w:T+21");
    HEARD("0 'T+21 w T+22 e T+23 u T+24 d'");
}

Test(schedule, with_replace_is_ebusy_until_the_very_end_of_the_lease)
{
    five();
    now_at(999);
    RUN("schedule", "0 r +1 2 " REC, "[U+999000 'EBUSY']");
    HEARD("");
    now_at(1000);
    RUN("schedule", "0 r +1 2 " REC, "[U+1000000 T+1001]");
    HEARD("0 'T+1001 r'");
}

Test(schedule, with_replace_by_one_due_now_takes_the_trigger_away)
{
    given("schedule", "0 a +5 0 " REC "old");
    RUN("schedule", "0 a +0 2 " REC "new b +0 0 " REC, "[U T T]");
    KEYS("due a:T b:T | jobs a=" REC "new b=" REC);
    HEARD("0 '0 a 0 b'");
}

Test(schedule, with_replace_forgets_the_tries_but_not_the_tokens)
{
    given("schedule", "0 a +0 0 " REC);
    given("claim", "0 me 1000 1");
    given("retry", "0 me a U+1 50 later");
    RUN("schedule", "0 a +0 2 " REC, "[U T]");
    KEYS("due a:T | jobs a=" REC " | seq U+1");
    RUN("claim", "0 me 1000 1", "[U 0 0 0 0 0 0 ['a' 2 T+1000 '1 U+2 me 1 10 U T ' '" REC "' 0]]");
}

Test(schedule, replacing_the_head_by_one_later_than_in_a_second_is_silent)
{
    given("schedule", "0 a +10 0 " REC);
    RUN("schedule", "0 a +1000 2 " REC, "[U T+1000]");
    KEYS("due a:T+1000 | jobs a=" REC " | t a:T+999");
    HEARD("");
    given("schedule", "0 a +10 2 " REC);
    RUN("schedule", "0 a +999 2 " REC, "[U T+999]");
    HEARD("0 'T+999 a'");
}

Test(schedule, does_the_others_of_a_call_when_it_refuses_one)
{
    given("schedule", "0 a +50 0 " REC);
    RUN("schedule", "0 a +9 0 " REC " b +9 0 " REC " c +315576000001 0 " REC " d +8 0 " REC,
        "[U 'EEXIST' T+9 'EINVAL' T+8]");
    KEYS("due d:T+8 b:T+9 a:T+50 | jobs a=" REC " b=" REC " d=" REC " | t a:T+49 b:T+8 d:T+7");
    HEARD("0 'T+9 b T+8 d'");
}

Test(schedule, refused_whole_writes_nothing)
{
    given("schedule", "0 a +50 0 " REC);
    ask("CONFIG RESETSTAT");
    RUN("schedule", "0 a +9 0 " REC, "[U 'EEXIST']");
    cr_assert_eq(calls("zadd") + calls("hset") + calls("publish") + calls("hdel") + calls("zrem"),
                 0);
}

Test(schedule, is_not_stopped_by_half_a_job)
{
    /* a record in no set, a member without a record: the rest was deleted */
    ask("HSET s:{q}:jobs half x");
    ask("ZADD s:{q}:due 5 member");
    RUN("schedule", "0 half +9 0 " REC " member +9 0 " REC, "[U T+9 T+9]");
    KEYS("due half:T+9 member:T+9 | jobs half=" REC " member=" REC " | t half:T+8 member:T+8");
}

Test(schedule, of_one_reads_one_record)
{
    ask("CONFIG RESETSTAT");
    given("schedule", "0 a +500 0 " REC);
    cr_assert_eq(calls("hget"), 1);
    cr_assert_eq(calls("hmget"), 0);
}

Test(schedule, of_several_stored_ids_looks_for_the_set_of_each_once)
{
    given("schedule", "0 a +50 0 " REC " b +50 0 " REC " c +50 0 " REC);
    ask("CONFIG RESETSTAT");
    RUN("schedule", "0 a +9 0 " REC " b +9 0 " REC " c +9 0 " REC,
        "[U 'EEXIST' 'EEXIST' 'EEXIST']");
    cr_assert_eq(calls("zscore"), 3);
}

Test(schedule, of_a_hundred_asks_for_each_thing_once)
{
    ask("CONFIG RESETSTAT");
    many(0, 100, "+50");
    static const char *const once[] = {"hmget", "zrange", "zadd", "hset", "publish"};
    for (size_t i = 0; i < sizeof once / sizeof *once; i++) {
        cr_assert_eq(calls(once[i]), 1, "%s: %lld", once[i], calls(once[i]));
    }

    cr_assert_eq(calls("set"), 100);
    cr_assert_eq(calls("zscore") + calls("hlen") + calls("zrangebyscore") + calls("del"), 0);
    many(100, 100, "+0"); /* nor is a trigger deleted that cannot be there */
    cr_assert_eq(calls("set"), 100);
    cr_assert_eq(calls("del"), 0);
}

Test(schedule, keeps_queues_apart)
{
    given("schedule", "0 a +50 0 " REC);
    char *before = keys();
    same(__FILE__, __LINE__, "schedule", show(run_on("s:{p}:due", "schedule", "0 a +5 0 " REC)),
         "[U T+5]");
    KEYS(before);
    HEARD("");
    cr_assert_eq(redis_int(redis, "ZCARD s:{p}:due"), 1);
}
