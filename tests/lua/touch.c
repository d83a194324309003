/* SPDX-License-Identifier: MIT */
/* touch and depth: when to look, and how much there is. */
#include "script.h"

SCRIPTS(touch);
SCRIPTS(depth);

Test(touch, reads_the_triggers_of_what_is_due_and_says_what_is_next)
{
    RUN("touch", "0 0", "[U 0 0 0 0 0 0]");
    given("schedule", "0 a +1 0 " REC " b +2 0 " REC " c +9 0 " REC);
    RUN("touch", "0 0", "[U 0 T+1 0 0 0 0]");
    RUN("touch", "0 T-5", "[U 0 T+1 0 0 T-5 0]");
    ask("DEL s:{q}:t:a s:{q}:t:b");
    now_at(1);
    RUN("touch", "0 T", "[U+1000 T+1 T+2 1 0 T+1 0]");
    now_at(2);
    RUN("touch", "0 T+1", "[U+2000 T+1 T+9 1 0 T+2 0]");
    RUN("touch", "0 T+2", "[U+2000 T+1 T+9 0 0 T+2 0]");
    RUN("touch", "0 0", "[U+2000 T+1 T+9 2 0 T+2 0]");
    given("claim", "0 me 1000 0 a b");
    RUN("touch", "0 T+2", "[U+2000 0 T+9 0 0 T+2 0]");
    now_at(9);
    ask("DEL s:{q}:t:c");
    RUN("touch", "0 T+2", "[U+9000 T+9 0 1 0 T+9 0]");
    HEARD("");
}

/* A key's clock is the script's start, which may be a moment before TIME. */
Test(touch, of_a_trigger_that_is_still_there_comes_again)
{
    given("schedule", "0 a T+1 0 " REC " b T+2 0 " REC " c T+3 0 " REC);
    now_at(2);
    RUN("touch", "0 T", "[U+2000 T+1 T+3 2 2 T 0]");
    ask("DEL s:{q}:t:a");
    RUN("touch", "0 T", "[U+2000 T+1 T+3 2 1 T 0]");
    ask("DEL s:{q}:t:b");
    RUN("touch", "0 T", "[U+2000 T+1 T+3 2 0 T+2 0]");
}

Test(touch, believes_no_cursor_from_the_future)
{
    given("schedule", "0 a +0 0 " REC);
    RUN("touch", "0 T+1", "[U T 0 0 0 T 0]");
    now_at(-1);
    RUN("touch", "0 T", "[U-1000 0 T 0 0 T-1 0]");
}

Test(touch, reads_a_hundred_and_goes_on_after_them)
{
    many(0, 100, "+0");
    now_at(1);
    many(100, 50, "+0");
    RUN("touch", "0 0", "[U+1000 T 0 100 0 T 0]");
    RUN("touch", "0 T", "[U+1000 T 0 50 0 T+1 0]");
    RUN("touch", "0 T+1", "[U+1000 T 0 0 0 T+1 0]");
    many(200, 101, "+0");
    RUN("touch", "0 T-1", "[U+1000 T 0 100 0 T 0]");
    ask("SET s:{q}:t:j299 1"); /* the 151st of this millisecond: a batch is a backlog, and claimed
                                  as such */
    RUN("touch", "0 T", "[U+1000 T 0 100 0 T+1 0]");
    ask("DEL s:{q}:t:j299");
}

Test(touch, makes_redis_say_expired)
{
    now_real();
    redis_do(redis, "DEBUG SET-ACTIVE-EXPIRE 0"); /* or Redis might be the first to look */
    given("schedule", "0 a +5 0 " REC " b +3600000 0 " REC);
    int64_t due = redis_int(redis, "ZSCORE s:{q}:due a");
    wait_until(due);
    cr_assert_str_eq(expired(), "");
    redisReply *r = run("touch", "0 0");
    cr_assert_eq(r->element[3]->integer, 1);
    cr_assert_eq(r->element[4]->integer, 0);
    cr_assert_eq(r->element[5]->integer, due);
    cr_assert_str_eq(expired(), "a");
}

Test(depth, counts_each_state)
{
    RUN("depth", "0", "[U 0 0 0 0]");
    five();
    char *before = dumps();
    RUN("depth", "0", "[U+20000 3 1 1 10]"); /* a lease that is over is over; the sweep will say
                                                whose tries are too */
    same(__FILE__, __LINE__, "keys", dumps(), before);
    now_at(999);
    RUN("depth", "0", "[U+999000 3 1 1 989]");
    now_at(1000);
    RUN("depth", "0", "[U+1000000 4 0 1 990]");
}

Test(depth, says_for_how_long_the_oldest_due_job_waits)
{
    given("schedule", "0 a +5 0 " REC " b +7 0 " REC);
    now_at(5);
    RUN("depth", "0", "[U+5000 2 0 0 0]");
    now_at(8);
    RUN("depth", "0", "[U+8000 2 0 0 3]");
    given("claim", "0 me 4 1");
    RUN("depth", "0", "[U+8000 1 1 0 1]");
    now_at(20);
    RUN("depth", "0", "[U+20000 2 0 0 13]");
    given("claim", "0 me 5 1");
    RUN("depth", "0", "[U+20000 1 1 0 8]");
}

/* The clock of the scripts stands still here, and Redis's own goes on: what the script says is due,
 * is overdue to Redis. */
Test(touch, counts_the_triggers_that_its_reading_expired)
{
    ask("DEBUG SET-ACTIVE-EXPIRE 0");
    given("schedule", "0 a +1 0 " REC " b +1 0 " REC " c +1 0 " REC);
    now_at(1);
    ask("SET s:{q}:t:a 1 PX 1");
    ask("SET s:{q}:t:b 1 PX 1");
    ask("DEL s:{q}:t:c");
    wait_until(redis_now_ms(redis) + 1);
    RUN("touch", "0 0", "[U+1000 T+1 0 3 0 T+1 2]");
}
