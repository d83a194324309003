/* SPDX-License-Identifier: MIT */
#include "script.h"

SCRIPTS(kill_all);

/* e waits, as its lease is over; u has used its only try, and is the sweep's. */
Test(kill_all, of_the_waiting_kills_all_of_them_and_no_other)
{
    five();
    RUN("kill_all", "0 1 '' '' 0 100 '' 0 gone", "[U+20000 2 0 '']");
    KEYS("run u:T+10 r:T+1000 | dead d:T e:T+20 w:T+20 | " FIVE_JOBS " | attempts " ATTEMPT_D
         " e=1 U+1 me 1 10 U T gone " ATTEMPT_R " " ATTEMPT_U " w=1 0 - 0 10 0 T+500 gone | "
         "seq U+4");
    HEARD("");
    RUN("kill_all", "0 1 '' '' 0 100 '' 0 again", "[U+20000 0 0 '']");
}

Test(kill_all, of_nothing_writes_nothing)
{
    ask("CONFIG RESETSTAT");
    RUN("kill_all", "0 1 '' '' 0 100 '' 0 ''", "[U 0 0 '']");
    RUN("kill_all", "0 0 a '' 0 100 '' 0 ''", "[U 0 0 '']");
    cr_assert_eq(calls("zrem") + calls("zadd") + calls("hset") + calls("del"), 0);
}

Test(kill_all, takes_what_is_due_before_a_moment)
{
    given("schedule", "0 a +5 0 " REC " b +6 0 " REC " c +7 0 " REC);
    RUN("kill_all", "0 1 '' '' T+7 100 '' 0 x", "[U 2 0 '']");
    KEYS("due c:T+7 | dead a:T b:T | jobs a=" REC " b=" REC " c=" REC
         " | attempts a=1 0 - 0 10 0 T+5 x b=1 0 - 0 10 0 T+6 x | t c:T+6");
}

Test(kill_all, takes_those_whose_reason_so_far_has_a_part)
{
    given("schedule", "0 a +0 0 " REC " b +0 0 " REC);
    given("claim", "0 me 1000 0 a b");
    given("retry", "0 me a U+1 500 'HTTP 410' b U+2 500 'HTTP 500'");
    RUN("kill_all", "0 1 '' ' 410' 0 100 '' 0 ''", "[U 1 0 '']");
    KEYS("due b:T+500 | dead a:T | jobs a=" REC " b=" REC
         " | attempts a=1 U+1 me 1 10 U T+500  b=1 U+2 me 1 10 U T+500 HTTP 500 | seq U+2 | "
         "t b:T+499");
}

/* Of a tag those that run are counted, and those that are dead are not. */
Test(kill_all, with_a_tag_or_of_a_batch_takes_those_of_it_that_wait)
{
    static const char *const record[] = {"\\02\\00\\03T\\01x", "\\02\\00\\03B\\01x"};
    static const char *const tag[] = {"x", "'b x'"};

    for (int i = 0; i < 2; i++) {
        given("schedule", text("0 a +500 0 %s b +0 0 %s c +500 0 %s d +500 0 " REC, record[i],
                               record[i], record[i]));
        given("claim", "0 me 1000 0 b");
        given("kill", "0 c before");
        RUN("kill_all", text("0 0 %s '' 0 100 '' 0 now", tag[i]), "[U 1 1 '']");
        same(__FILE__, __LINE__, "dead", show(ask("ZRANGE s:{q}:dead 0 -1")), "['a' 'c']");
        same(__FILE__, __LINE__, "waits", show(ask("ZRANGE s:{q}:due 0 -1")), "['d']");
        RUN("kill_all", text("0 1 %s '' 0 100 '' 0 now", tag[i]), "[U 0 0 '']");
        ask("FLUSHALL");
    }
}

Test(kill_all, goes_on_behind_its_cursor_until_all_are_dead)
{
    long long n = 0;
    int calls = 0;
    char cursor[700] = "";

    for (int i = 0; i < 250; i++) {
        given("schedule", text("0 j%d +%d 0 " REC, i, 1000 + i));
    }
    do {
        const redisReply *r = run("kill_all", text("0 1 '' '' 0 100 '%s' 0 x", cursor));
        n += r->element[1]->integer;
        snprintf(cursor, sizeof cursor, "%s", r->element[3]->str);
        calls++;
    } while (*cursor);
    cr_assert_eq(n, 250);
    cr_assert_leq(calls, 4);
    cr_assert_eq(redis_int(redis, "ZCARD s:{q}:dead"), 250);
    cr_assert_eq(redis_int(redis, "ZCARD s:{q}:due"), 0);
}

/* Its key is free, its batch stays open and closed, and the moments of a series make no job. */
Test(kill_all, leaves_what_a_kill_leaves)
{
    static const struct {
        const char *schedule, *closes, *kill, *left;
    } rows[] = {
        {"k +500 0 \\02\\00\\04U\\02ek", NULL, "k x",
         "dead k:T | jobs k=\\02\\00\\04U\\02ek | attempts k=1 0 - 0 10 0 T+500 x"},
        {"a +500 0 \\02\\00\\03B\\01n n +900 0 " REC, "0 n", "a x n x",
         "dead a:T n:T | jobs a=\\02\\00\\03B\\01n n=" REC " | attempts a=1 0 - 0 10 0 T+500 x "
         "n=2 0 - 0 10 0 T+900 b=1 x | index 'b n a' | batches n=1000000000000"},
        {"s +500 0 '\\02\\00\\0cS\\0al 0 0 e 10'", NULL, "s x",
         "dead s:T | jobs s=\\02\\00\\0cS\\0al 0 0 e 10 | attempts s=1 0 - 0 10 0 T+500 x | "
         "index 'r s'"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int all = 0; all < 2; all++) {
            given("schedule", text("0 %s", rows[i].schedule));
            if (rows[i].closes) {
                given("batch_close", rows[i].closes);
            }
            if (all) {
                given("kill_all", "0 1 '' '' 0 100 '' 0 x");
            } else {
                given("kill", text("0 %s", rows[i].kill));
            }
            KEYS(rows[i].left);
            ask("FLUSHALL");
        }
    }
}

/* By a tag, and by the state. */
Test(kill_all, leaves_what_was_claimed_since_it_began_and_waits_again)
{
    static const char *const selections[] = {"0 a", "1 ''"};

    for (int i = 0; i < 2; i++) {
        given("schedule", "0 a +5 0 " TAG_A " b +6 0 " TAG_A " c +7 0 " TAG_A);
        const redisReply *r = run("kill_all", text("0 %s '' 0 1 '' 0 x", selections[i]));
        cr_assert_eq(r->element[1]->integer, 1, "%s", show(r));
        given("reschedule", "0 b +0 0");
        given("claim", "0 me 1000 0 b");
        given("retry", text("0 me b %s 6 later", moments("U+1")));
        RUN("kill_all", text("0 %s '' 0 100 '%s' 0 x", selections[i], r->element[3]->str),
            "[U 1 0 '']");
        same(__FILE__, __LINE__, "waits", show(ask("ZRANGE s:{q}:due 0 -1")), "['b']");
        ask("FLUSHALL");
    }
}

Test(kill_all, of_another_state_is_refused)
{
    static const char *const states[] = {"2", "3", "4", "x", "''"};

    given("schedule", "0 a +5 0 " REC);
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        RUN("kill_all", text("0 %s '' '' 0 100 '' 0 x", states[i]),
            "-ERR only jobs that wait are killed");
    }
    KEYS("due a:T+5 | jobs a=" REC " | t a:T+4");
}
