/* SPDX-License-Identifier: MIT */
#include "script.h"

SCRIPTS(reschedule_all);

Test(reschedule_all, of_the_dead_makes_them_wait_with_all_their_tries)
{
    five();
    RUN("reschedule_all", "0 3 '' '' 0 100 '' 0 +30 0", "[U+20000 2 0 '' T+50]");
    KEYS("due d:T+50 u:T+50 w:T+500 | run e:T+10 r:T+1000 | " FIVE_JOBS " | attempts " ATTEMPT_E
         " " ATTEMPT_R " | seq U+4 | t d:T+49 u:T+49 w:T+499");
    HEARD("0 'T+50 u T+50 d'");
}

Test(reschedule_all, of_the_waiting_moves_them_and_keeps_their_tries)
{
    five();
    given("schedule", "0 x +0 0 " REC);
    RUN("reschedule_all", "0 1 '' '' 0 100 '' 0 T+2000 0", "[U+20000 3 0 '' T+2000]");
    KEYS("due e:T+2000 w:T+2000 x:T+2000 | run u:T+10 r:T+1000 | dead d:T | jobs d=" REC "d e=" REC
         "e r=" REC "r u=\\01\\01\\01u w=" REC "w x=" REC " | attempts " ATTEMPT_D " " ATTEMPT_E
         " " ATTEMPT_R " " ATTEMPT_U " | seq U+4 | t e:T+1999 w:T+1999 x:T+1999");
    HEARD(""); /* w was to come before them */
}

Test(reschedule_all, to_now_tells_of_each)
{
    given("schedule", "0 a +50 0 " REC " b +60 0 " REC);
    RUN("reschedule_all", "0 1 '' '' 0 100 '' 0 +0 0", "[U 2 0 '' T]");
    KEYS("due a:T b:T | jobs a=" REC " b=" REC);
    HEARD("0 '0 a 0 b'");
    RUN("reschedule_all", "0 1 '' '' 0 100 '' 0 T-9 0", "[U 0 0 '' T]");
}

Test(reschedule_all, of_the_running_counts_them_and_leaves_them)
{
    five();
    RUN("reschedule_all", "0 2 '' '' 0 100 '' 0 +5 0", "[U+20000 0 1 '' T+25]");
    KEYS(FIVE);
    HEARD("");
}

Test(reschedule_all, takes_those_of_a_reason_and_of_a_time)
{
    five();
    given("kill", "0 w 'bad too'");
    RUN("reschedule_all", "0 3 '' bad T+20 100 '' 0 +0 0", "[U+20000 1 0 '' T+20]");
    KEYS("due d:T+20 | run e:T+10 u:T+10 r:T+1000 | dead w:T+20 | " FIVE_JOBS
         " | attempts " ATTEMPT_E " " ATTEMPT_R " " ATTEMPT_U
         " w=1 0 - 0 10 0 T+500 bad too | seq U+4");
}

/* The first 32 bits of the SHA1 of a are 86f7e437, of b e9d71f5e, of c 84a51684. */
Test(reschedule_all, spreads_by_the_hash_of_each_id_which_a_repeat_does_not_change)
{
    given("schedule", "0 a +5 0 " REC " b +6 0 " REC " c +7 0 " REC);
    RUN("reschedule_all", "0 1 '' '' 0 100 '' 0 T+2000 1000", "[U 3 0 '' T+2000]");
    KEYS("due c:T+2518 a:T+2527 b:T+2913 | jobs a=" REC " b=" REC " c=" REC
         " | t a:T+2526 b:T+2912 c:T+2517");
    char *before = dumps();
    RUN("reschedule_all", "0 1 '' '' 0 100 '' 0 T+2000 1000", "[U 0 0 '' T+2000]");
    cr_assert_str_eq(dumps(), before);
}

/* The moved ones come into the way of the walk again, at the end of it. */
Test(reschedule_all, of_the_waiting_moves_each_once_though_it_meets_them_again)
{
    long long n = 0;
    const char *cursor = "";
    int runs = 0;

    many(0, 250, "+5");
    given("schedule", "0 last +5000 0 " REC);
    do {
        redisReply *r = run("reschedule_all", text("0 1 '' '' 0 100 '%s' 0 +1000 1000", cursor));
        n += r->element[1]->integer;
        cursor = r->element[3]->str;
        now_at(++runs); /* the delay counts from the first call */
    } while (*cursor && runs < 20);

    cr_assert_eq(runs, 5, "%d", runs);
    cr_assert_eq(n, 251);
    cr_assert_eq(
        redis_int(redis, "ZCOUNT s:{q}:due %lld %lld", (long long)T + 1000, (long long)T + 1999),
        251);
}

Test(reschedule_all, takes_a_delay_from_its_first_call)
{
    given("schedule", "0 a +5 0 " REC " b +6 0 " REC);
    RUN("reschedule_all", "0 1 '' '' 0 1 '' 0 +50 0", "[U 1 0 'T+50 1 U T+6 T+5 a' T+50]");
    now_at(3);
    RUN("reschedule_all", text("0 1 '' '' 0 1 '%s' 0 +50 0", moments("T+50 1 U T+6 T+5 a")),
        "[U+3000 1 0 '' T+50]");
    now_at(70);
    RUN("reschedule_all", text("0 1 '' '' 0 1 '%s' 0 +50 0", moments("T+50 1 U T+6 T+6 b")),
        "[U+70000 0 0 '' T+50]");
    KEYS("due a:T+50 b:T+50 | jobs a=" REC " b=" REC " | t a:T+49 b:T+49");
}

/* A job that fails at once would be put back for as long as it does. */
Test(reschedule_all, of_the_dead_leaves_what_died_of_a_run_since_it_began)
{
    given("schedule", "0 a +5 0 " REC " b +5 0 " REC " c +5 0 " REC);
    given("kill", "0 a x b x c x");
    RUN("reschedule_all", "0 3 '' '' 0 1 '' 0 +0 0", "[U 1 0 'T 3 U T T a' T]");
    given("claim", "0 me 1000 1");
    given("fail", "0 me a U+1 again");
    ask("ZADD s:{q}:dead %lld bb", (long long)T); /* behind the cursor */
    ask("HSET s:{q}:jobs bb %b", "\1\0", (size_t)2);
    ask("HSET s:{q}:attempts bb %s", text("1 %lld me 1 10 0 0 again", (long long)T * 1000 + 124));
    RUN("reschedule_all", text("0 3 '' '' 0 100 '%s' 0 +0 0", moments("T 3 U T T a")),
        "[U 2 0 '' T]");
    cr_assert_eq(redis_int(redis, "ZCARD s:{q}:dead"), 2);
    RUN("reschedule_all", "0 3 '' '' 0 100 '' 0 +0 0", "[U 2 0 '' T]");
}

Test(reschedule_all, reaches_ten_years_with_its_spread_and_no_further)
{
    five();
    RUN("reschedule_all", "0 3 '' '' 0 100 '' 0 +315576000001 0", "[U+20000 0 0 '' 0]");
    RUN("reschedule_all", "0 3 '' '' 0 100 '' 0 +315575999001 1000", "[U+20000 0 0 '' 0]");
    RUN("reschedule_all", "0 3 '' '' 0 100 '' 0 T+315576000021 0", "[U+20000 0 0 '' 0]");
    KEYS(FIVE);
    HEARD("");
    RUN("reschedule_all", "0 3 '' '' 0 100 '' 0 +315576000000 0",
        "[U+20000 2 0 '' T+315576000020]");
    RUN("reschedule_all", "0 1 '' '' 0 100 '' 0 T 315576000000", "[U+20000 4 0 '' T+20]");
    cr_assert_eq(redis_int(redis, "ZCOUNT s:{q}:due %lld %lld", (long long)T + 21,
                           (long long)T + 315576000020),
                 4);
}

/* An older version does not look at what was asked of a run that it ends. */
Test(reschedule_all, that_began_within_ten_years_goes_on_where_the_clock_is_set_back)
{
    const char *cursor = "T+315576000000 1 U T+6 T+5 a";

    given("schedule", "0 a +5 0 " REC " b +6 0 " REC);
    RUN("reschedule_all", "0 1 '' '' 0 1 '' 0 +315576000000 0",
        text("[U 1 0 '%s' T+315576000000]", cursor));
    now_at(-3);
    RUN("reschedule_all", text("0 1 '' '' 0 1 '%s' 0 +315576000000 0", moments(cursor)),
        "[U-3000 1 0 '' T+315576000000]");
}

Test(reschedule_all, of_one_that_waits_and_was_asked_to_stop_lets_it_run)
{
    given("schedule", "0 a +5 0 " REC);
    ask("HSET s:{q}:attempts a %s", "2 1 me 3 10 5 5 c=1 ");
    RUN("reschedule_all", "0 1 '' '' 0 100 '' 0 +9 0", "[U 1 0 '' T+9]");
    KEYS("due a:T+9 | jobs a=" REC " | t a:T+8");
}

/* It waits again after its run, and another job has the key that it had until its start. */
Test(reschedule_all, of_the_waiting_takes_no_key_that_was_held_until_a_start)
{
    const char *until_start = "\\02\\00\\04U\\02sk";

    given("schedule", text("0 a +0 0 %s", until_start));
    given("claim", "0 me 1000 1");
    given("schedule", text("0 b +50 0 %s", until_start));
    given("retry", "0 me a U+1 100 why");
    RUN("reschedule_all", "0 1 '' '' 0 100 '' 0 T+2000 0", "[U 2 0 '' T+2000]");
}

Test(reschedule_all, leaves_a_member_without_a_record)
{
    ask("ZADD s:{q}:due 5 member");
    ask("ZADD s:{q}:dead 5 corpse");
    RUN("reschedule_all", "0 1 '' '' 0 100 '' 0 +9 0", "[U 0 0 '' T+9]");
    RUN("reschedule_all", "0 3 '' '' 0 100 '' 0 +9 0", "[U 0 0 '' T+9]");
    KEYS("due member:5 | dead corpse:5");
    ask("FLUSHALL");
}

Test(reschedule_all, of_what_it_cannot_read_works)
{
    given("schedule", "0 a +5 0 \\02\\00x");
    RUN("reschedule_all", "0 1 '' '' 0 100 '' 0 +9 0", "[U 1 0 '' T+9]");
    KEYS("due a:T+9 | jobs a=\\02\\00x | t a:T+8");
}

Test(reschedule_all, sets_the_triggers_that_are_near_alone)
{
    given("schedule", "0 a +5 0 " REC " b +6 0 " REC);
    RUN("reschedule_all", "'0 50' 1 '' '' 0 1 '' 0 +51 0", "[U 1 0 'T+51 1 U T+6 T+5 a' T+51]");
    RUN("reschedule_all", text("'0 50' 1 '' '' 0 100 '%s' 0 +0 0", moments("T+50 1 U T+6 T+5 a")),
        "[U 1 0 '' T+50]");
    KEYS("due b:T+50 a:T+51 | jobs a=" REC " b=" REC " | t b:T+49");
}

Test(reschedule_all, refuses_what_is_no_cursor)
{
    static const char *const cursors[] = {"x", "5", "5 x", "1 2 3 4 a", "5 5 1 1 1 a"};

    given("schedule", "0 a +5 0 " REC);
    for (size_t i = 0; i < sizeof cursors / sizeof *cursors; i++) {
        redisReply *r = run("reschedule_all", text("0 1 '' '' 0 100 '%s' 0 +0 0", cursors[i]));
        cr_assert(r->type == REDIS_REPLY_ERROR && strstr(r->str, "no cursor"), "%s", show(r));
    }
    KEYS("due a:T+5 | jobs a=" REC " | t a:T+4");
}
