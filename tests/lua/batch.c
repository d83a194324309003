/* SPDX-License-Identifier: MIT */
/* Batches: the attribute B, the scripts batch_close and batch_get, and who ends a batch. */
#include "script.h"

SCRIPTS(batch);

#define OF_N "\\02\\00\\03B\\01n" /* a job of the batch n */
#define OF_M "\\02\\00\\03B\\01m" /* of the batch m */
#define KEPT_OF_N "\\02\\00\\0aB\\01nK\\0560000"
#define SKIP_OF_N "\\02\\00\\07B\\01nL\\02s1" /* skipped if it is 1 ms late */
#define ONE_TRY_OF_N "\\02\\01\\01\\03B\\01n"
#define CLOSED 1000000000000

/* How many have left the batch n, and CLOSED if it is closed; "nil": none is counted. */
static const char *count(void)
{
    return show(ask("HGET s:{q}:batches n"));
}

/* The jobs a and b are of the batch n, whose own job is due in an hour; it is closed. */
static void two(void)
{
    given("schedule", "0 a +500 0 " OF_N " b +500 0 " OF_N " n +3600000 0 " REC);
    given("batch_close", "0 n");
    heard();
}

/* Its own job is due now, as any other job is, and nothing is left of the batch. */
static void ended(const char *file, int line)
{
    same(file, line, "own job", show(ask("ZSCORE s:{q}:due n")), "'T'");
    same(file, line, "its attempt", show(ask("HGET s:{q}:attempts n")), "nil");
    same(file, line, "the count", count(), "nil");
    cr_assert_eq(redis_int(redis, "EXISTS s:{q}:t:n"), 0, "%s:%d", file, line);
    cr_assert_eq(redis_int(redis, "ZCOUNT s:{q}:index -inf +inf"), 0, "%s:%d", file, line);
}
#define ENDED() ended(__FILE__, __LINE__)

static void is_open(const char *file, int line)
{
    cr_assert_eq(redis_int(redis, "HEXISTS s:{q}:attempts n"), 1, "%s:%d: it has ended", file,
                 line);
}
#define OPEN() is_open(__FILE__, __LINE__)

Test(batch, a_job_of_it_is_in_the_index_until_its_end_and_is_counted_then)
{
    given("schedule", "0 a +0 0 " OF_N " b +500 0 " OF_N);
    KEYS("due a:T b:T+500 | jobs a=" OF_N " b=" OF_N " | index 'b n a' 'b n b' | t b:T+499");
    given("claim", "0 me 1000 0 a");
    given("done", "0 me a U+1");
    KEYS("due b:T+500 | jobs b=" OF_N " | index 'b n b' | batches n=1 | seq U+1 | t b:T+499");
    given("cancel", "0 b 0");
    KEYS("batches n=2 | seq U+1");
}

Test(batch, close_lets_its_own_job_wait_and_a_second_one_changes_nothing)
{
    given("schedule", "0 a +500 0 " OF_N " n +900 0 " REC);
    heard();
    RUN("batch_close", "0 n", "[U ['n' 1 T+900 '2 0 - 0 10 0 T+900 b=1 ' '" REC "']]");
    KEYS("due a:T+500 n:T+900 | jobs a=" OF_N " n=" REC " | attempts n=2 0 - 0 10 0 T+900 b=1  | "
         "index 'b n a' | batches n=1000000000000 | t a:T+499 n:T+899");
    HEARD("");
    char *before = dumps();
    RUN("batch_close", "0 n n",
        "[U ['n' 1 T+900 '2 0 - 0 10 0 T+900 b=1 ' '" REC
        "'] ['n' 1 T+900 '2 0 - 0 10 0 T+900 b=1 ' '" REC "']]");
    cr_assert_str_eq(dumps(), before);
}

Test(batch, the_end_of_its_last_job_makes_its_own_job_due_and_says_so)
{
    two();
    given("cancel", "0 a 0");
    OPEN();
    cr_assert_str_eq(count(), "'1000000000001'");
    HEARD("");
    RUN("cancel", "0 b 0", "[U ['b' 1 T+500 '' '" OF_N "']]");
    HEARD("0 '0 n'");
    ENDED();
}

Test(batch, its_own_job_runs_once)
{
    two();
    given("cancel", "0 a 0 b 0");
    given("claim", "0 me 1000 10");
    given("done", "0 me n U+1");
    KEYS("seq U+1");
    RUN("batch_close", "0 n", "[U 'ENOENT']");
}

Test(batch, a_close_when_all_have_ended_or_before_there_are_any_makes_its_own_job_due)
{
    given("schedule", "0 a +500 0 " OF_N " n +900 0 " REC " m +900 0 " REC);
    given("cancel", "0 a 0");
    heard();
    RUN("batch_close", "0 n m", "[U ['n' 1 T '' '" REC "'] ['m' 1 T '' '" REC "']]");
    HEARD("0 '0 n 0 m'");
    KEYS("due m:T n:T | jobs m=" REC " n=" REC);
}

Test(batch, without_a_job_of_its_own_it_is_not_closed)
{
    given("schedule", "0 a +500 0 " OF_N);
    RUN("batch_close", "0 n", "[U 'ENOENT']");
    given("schedule", "0 n +0 0 " KEEP);
    given("claim", "0 me 1000 0 n");
    RUN("batch_close", "0 n", "[U 'EBUSY']");
    given("retry", "0 me n U+1 500 x");
    RUN("batch_close", "0 n", "[U 'EBUSY']");
    given("kill", "0 n x");
    RUN("batch_close", "0 n", "[U 'EBUSY']");
    given("cancel", "0 n 0");
    RUN("batch_close", "0 n", "[U 'EENDED']");
    given("schedule", "0 n +900 2 '\\02\\00\\0cS\\0al 0 0 e 90'");
    RUN("batch_close", "0 n", "[U 'EINVAL']");
    given("cancel", "0 n 0");
    given("gather", "0 n " GROUP " part");
    RUN("batch_close", "0 n", "[U 'EINVAL']");
    given("schedule", "0 n +900 2 \\03");
    RUN("batch_close", "0 n", "[U 'EDATA']");
    ask("FLUSHALL");
}

Test(batch, jobs_of_one_call_are_counted_each_and_end_it_once)
{
    given("schedule",
          "0 a +0 0 " OF_N " b +0 0 " OF_N " c +0 0 " OF_N " x +0 0 " OF_M " n +900 0 " REC);
    given("batch_close", "0 n");
    given("claim", "0 me 1000 0 a b c x");
    heard();
    given("done", "0 me a U+1 b U+2 x U+4");
    cr_assert_str_eq(count(), "'1000000000002'");
    RUN("done", "0 me c U+3", "[U 1]");
    HEARD("0 '0 n'");
    KEYS("due n:T | jobs n=" REC " | batches m=1 | seq U+4");
}

/* A dead job may run again, so it has not ended. */
Test(batch, a_dead_job_keeps_it_open_until_it_is_gone_or_done)
{
    two();
    given("cancel", "0 b 0");
    given("kill", "0 a x");
    OPEN();
    RUN("batch_get", "0 n ''", "[U 0 1 1 1 '']");
    given("reschedule", "0 a +0 0");
    RUN("batch_get", "0 n ''", "[U 1 0 1 1 '']");
    given("claim", "0 me 1000 0 a");
    given("fail", "0 me a U+1 bad");
    OPEN();
    ask("SET s:{q}:conf %s", "1 dead_max=0 ");
    given("sweep", "0");
    ask("DEL s:{q}:conf");
    ENDED();
}

Test(batch, a_job_that_waits_again_is_still_in_it)
{
    two();
    given("cancel", "0 b 0");
    given("reschedule", "0 a +0 0");
    given("claim", "0 me 1000 0 a");
    given("retry", "0 me a U+1 0 x");
    given("claim", "0 me 1000 0 a");
    given("release", "0 me a U+2");
    given("claim", "0 me 10 0 a");
    now_at(10);
    given("sweep", "0");
    now_at(0);
    OPEN();
    given("cancel_all", "0 1 '' '' T+20 100 '' 0");
    ENDED();
}

Test(batch, a_job_that_is_skipped_has_ended)
{
    given("schedule", "0 a T 0 " SKIP_OF_N " n +900 0 " REC);
    given("batch_close", "0 n");
    now_at(5);
    given("claim", "0 me 1000 10");
    KEYS("due n:T+5 | jobs n=" REC "");
}

Test(batch, a_claim_that_ends_it_says_that_its_own_job_is_due)
{
    given("schedule", "0 a T 0 " SKIP_OF_N " n +900 0 " REC);
    given("batch_close", "0 n");
    now_at(5);
    heard();
    RUN("claim", "0 me 1000 10", "[U+5000 T+5 0 0 0 0 0 ['a' 0 T '' '" SKIP_OF_N "' 0]]");
    HEARD("0 '0 n'");
}

Test(batch, a_job_that_is_forwarded_has_ended)
{
    two();
    given("cancel", "0 b 0");
    given("reschedule", "0 a +0 0");
    ask("SET s:{q}:conf %s", "1 forward=list:s:{q}:list ");
    given("claim", "0 - 1000 10");
    ask("DEL s:{q}:conf s:{q}:list");
    ENDED();
}

Test(batch, a_job_that_is_kept_has_ended_and_is_counted_once)
{
    given("schedule", "0 a +0 0 " KEPT_OF_N " b +500 0 " OF_N " n +3600000 0 " REC);
    given("batch_close", "0 n");
    given("claim", "0 me 1000 0 a");
    given("done", "0 me a U+1");
    cr_assert_str_eq(count(), "'1000000000001'");
    given("schedule", "0 a +500 2 " REC);
    given("cancel", "0 a 0");
    cr_assert_str_eq(count(), "'1000000000001'");
    given("cancel", "0 b 0");
    ENDED();
}

Test(batch, a_job_that_is_replaced_leaves_it_for_the_other_one)
{
    given("schedule", "0 a +500 0 " OF_N " n +3600000 0 " REC);
    given("batch_close", "0 n");
    given("schedule", "0 a +400 2 " OF_N);
    OPEN();
    cr_assert_str_eq(count(), "'1000000000000'");
    given("schedule", "0 a +500 2 " OF_M);
    same(__FILE__, __LINE__, "index", show(ask("ZRANGE s:{q}:index 0 -1")), "['b m a']");
    given("cancel", "0 a 0");
    ENDED();
}

Test(batch, a_record_that_follows_the_run_is_in_its_batch_at_once)
{
    given("schedule", "0 a +0 0 " OF_N " n +900 0 " REC " m +900 0 " REC);
    given("claim", "0 me 1000 0 a");
    given("batch_close", "0 n");
    given("schedule", "0 a +50 5 " OF_M);
    given("batch_close", "0 m");
    heard();
    RUN("done", "0 me a U+1", "[U T+50]");
    HEARD("0 '0 n' 0 'T+50 a'");
    KEYS(
        "due n:T a:T+50 m:T+900 | jobs a=" OF_M " m=" REC " n=" REC
        " | attempts m=2 0 - 0 10 0 T+900 b=1  | index 'b m a' | batches m=1000000000000 | seq U+1 "
        "| t a:T+49 m:T+899");
    given("cancel", "0 a 0");
    cr_assert_eq(redis_int(redis, "EXISTS s:{q}:t:m s:{q}:batches"), 0);
}

Test(batch, a_cancel_while_it_runs_ends_it_with_the_run)
{
    given("schedule", "0 a +0 0 " OF_N " n +3600000 0 " REC);
    given("batch_close", "0 n");
    given("claim", "0 me 1000 0 a");
    given("cancel", "0 a 1");
    OPEN();
    given("retry", "0 me a U+1 5 x");
    ENDED();
}

/* A group is a job of it, and so is the one that it makes. */
Test(batch, of_a_group_ends_with_its_job)
{
    given("gather", "0 g '\\02\\00\\0cB\\01nP\\07500 2 0' one");
    given("schedule", "0 n +3600000 0 " REC);
    given("batch_close", "0 n");
    given("reschedule", "0 g +0 0");
    given("claim", "0 me 1000 10");
    OPEN();
    given("done", text("0 me %s U+1", ask("ZRANGE s:{q}:run 0 -1")->element[0]->str));
    ENDED();
}

/* A series is a job of it, and so is each that it makes. */
Test(batch, of_a_series_ends_with_the_last_of_its_jobs)
{
    given("schedule", "0 s +0 0 '\\02\\00\\0fB\\01nS\\0al 0 1 e 90' n +3600000 0 " REC);
    given("batch_close", "0 n");
    given("claim", "0 me 1000 10");
    OPEN();
    cr_assert_str_eq(count(), "'1000000000001'");
    given("done", text("0 me %s U+1", ask("ZRANGE s:{q}:run 0 -1")->element[0]->str));
    ENDED();
}

Test(batch, its_own_job_may_be_of_another_one)
{
    given("schedule", "0 a +500 0 " OF_M " m +900 0 " OF_N " n +3600000 0 " REC);
    given("batch_close", "0 n m");
    given("cancel", "0 a 0");
    OPEN();
    given("cancel", "0 m 0");
    ENDED();
}

Test(batch, jobs_that_come_when_it_is_closed_are_waited_for_too)
{
    two();
    given("cancel", "0 a 0");
    given("schedule", "0 c +500 0 " OF_N);
    given("cancel", "0 b 0");
    OPEN();
    given("cancel", "0 c 0");
    ENDED();
}

Test(batch, its_own_job_runs_without_waiting_when_it_is_due)
{
    two();
    given("reschedule", "0 n +0 0");
    OPEN();
    given("claim", "0 me 1000 0 n");
    given("retry", "0 me n U+1 500 x");
    given("cancel", "0 a 0 b 0");
    KEYS("due n:T+500 | jobs n=" REC " | attempts n=1 U+1 me 1 10 U T+500 x | seq U+1 | t n:T+499");
}

Test(batch, its_own_job_that_is_replaced_or_dead_waits_for_it_no_more)
{
    two();
    given("schedule", "0 n +900 2 " REC);
    given("cancel", "0 a 0 b 0");
    KEYS("due n:T+900 | jobs n=" REC " | t n:T+899");

    given("schedule", "0 a +500 0 " OF_N);
    given("batch_close", "0 n");
    given("kill", "0 n bad");
    given("cancel", "0 a 0");
    KEYS("dead n:T | jobs n=" REC " | attempts n=2 0 - 0 10 0 T+900 b=1 bad");
    given("reschedule", "0 n +900 0");
    KEYS("due n:T+900 | jobs n=" REC " | t n:T+899");
}

Test(batch, its_own_job_has_no_trigger_when_it_is_put_off_by_the_call_that_ends_it)
{
    given("schedule", "0 a +500 0 " OF_N " n +3600000 0 " REC);
    given("batch_close", "0 n");
    given("schedule", "0 a +500 2 " REC " n +9000 3 " REC);
    ENDED();

    ask("FLUSHALL");
    given("schedule", "0 a +0 0 " OF_N " n +3600000 0 " REC);
    given("batch_close", "0 n");
    given("claim", "0 me 100 0 a");
    given("schedule", "0 a +500 5 " REC);
    now_at(200);
    given("reschedule", "0 a +900 0 n +9000 0");
    same(__FILE__, __LINE__, "own job", show(ask("ZSCORE s:{q}:due n")), "'T+200'");
    cr_assert_eq(redis_int(redis, "EXISTS s:{q}:t:n"), 0);
}

Test(batch, its_own_job_keeps_its_priority)
{
    given("schedule", "0 a +500 0 " OF_N " n +3600000 0 \\02\\00\\03Q\\01\\80");
    given("batch_close", "0 n");
    given("cancel", "0 a 0");
    cr_assert_str_eq(show(ask("EVAL %s 1 s:{q}:due",
                              "return tostring(tonumber(redis.call('ZSCORE', KEYS[1], 'n')) % 1)")),
                     "'0.875'");
    ask("FLUSHALL");
}

Test(batch, get_counts_those_that_are_left_dead_and_gone)
{
    given("schedule", "0 a +0 0 " OF_N " b +500 0 " OF_N " c +500 0 " OF_N " d +500 0 " OF_N);
    given("claim", "0 me 1000 0 a");
    given("kill", "0 b x");
    given("cancel", "0 d 0");
    RUN("batch_get", "0 n ''", "[U 2 1 1 0 '']");
    RUN("batch_get", "0 m ''", "[U 0 0 0 0 '']");
}

/* 1,000 a call. */
Test(batch, get_goes_on_where_it_has_stopped)
{
    ask("EVAL %s 0", "for i = 1000, 2500 do redis.call('ZADD', 's:{q}:index', 0, 'b n ' .. i) "
                     "redis.call('ZADD', 's:{q}:due', 1, i) redis.call('HSET', 's:{q}:jobs', i, "
                     "'\\2\\0\\3B\\1n') end");
    RUN("batch_get", "0 n ''", "[U 1000 0 0 0 '1999']");
    RUN("batch_get", "0 n 1999", "[U 501 0 0 0 '']");
    ask("ZADD s:{q}:index 0 %s", text("b n 19990%0*d", 400, 7));
    ask("FLUSHALL");
}

Test(batch, of_10000_ends_with_the_last_one)
{
    given("schedule", "0 n +3600000 0 " REC);
    ask("EVAL %s 0", "for i = 1, 10000 do redis.call('ZADD', 's:{q}:index', 0, 'b n ' .. i) "
                     "redis.call('ZADD', 's:{q}:due', 1, i) redis.call('HSET', 's:{q}:jobs', i, "
                     "'\\2\\0\\3B\\1n') end");
    given("batch_close", "0 n");
    for (int i = 0; i < 99; i++) {
        given("cancel_all", "0 1 '' '' 2 100 '' 0");
    }
    given("cancel_all", "0 1 '' '' 2 99 '' 0");
    cr_assert_str_eq(count(), "'1000000009999'");
    OPEN();
    given("cancel_all", "0 1 '' '' 2 100 '' 0");
    ENDED();
}

/* What a version that does not know batches has left, or a crash of Redis. */
Test(batch, that_is_closed_and_empty_is_found_and_ended)
{
    two();
    ask("ZREM s:{q}:index %s %s", "b n a", "b n b");
    ask("HDEL s:{q}:jobs a b");
    ask("ZREM s:{q}:due a b");
    ask("DEL s:{q}:t:a s:{q}:t:b");
    RUN("check", "0 batches 0 100", "[U 0 1 14 0 ['n' 'batch']]");
    RUN("mend", "0 n", "[U 'batch']");
    HEARD("0 '0 n'");
    ENDED();
    RUN("check", "0 batches 0 100", "[U 0 0 0 0]");
}

Test(batch, whose_last_entry_is_of_no_job_ends_when_that_is_found)
{
    two();
    given("cancel", "0 a 0");
    ask("HDEL s:{q}:jobs b");
    ask("ZREM s:{q}:due b");
    ask("DEL s:{q}:t:b");
    RUN("check", "0 index 0 100", "[U 0 1 6 0 ['b n b' 'entry']]");
    RUN("mend", "0 'b n b'", "[U 'entry']");
    ENDED();
}

Test(batch, whose_number_is_none_is_found_and_costs_no_settle)
{
    two();
    ask("HSET s:{q}:batches n x");
    RUN("check", "0 batches 0 100", "[U 0 1 2 0 ['n' 'batch']]");
    given("cancel", "0 a 0");
    cr_assert_str_eq(count(), "'1'");
    given("cancel", "0 b 0");
    given("batch_close", "0 n");
    ask("FLUSHALL");
}

Test(batch, an_entry_that_is_missing_is_found_and_made)
{
    two();
    ask("ZREM s:{q}:index %s", "b n b");
    RUN("check", "0 jobs 0 100", "[U 0 3 17 0 ['b' 'tag']]");
    RUN("mend", "0 b", "[U 'tag']");
    given("cancel", "0 a 0");
    OPEN();
    given("cancel", "0 b 0");
    ENDED();
}

Test(batch, goes_with_its_queue)
{
    two();
    given("remove", "0 1");
    KEYS("");
}

/* The commands that the end of a job of no batch does not pay. */
Test(batch, costs_three_commands_more_at_the_end_of_a_job_than_a_tag)
{
    given("schedule", "0 a +500 0 " TAG_A " b +500 0 " OF_N " c +500 0 " OF_N);
    ask("CONFIG RESETSTAT");
    given("cancel", "0 a 0");
    cr_assert_eq(calls("hget") + calls("hset") + calls("hlen"), 2);
    cr_assert_eq(calls("zrem"), 2);
    ask("CONFIG RESETSTAT");
    given("cancel", "0 b 0");
    cr_assert_eq(calls("hget") + calls("hset") + calls("hlen"), 5);
    cr_assert_eq(calls("zrem"), 3);
    cr_assert_eq(calls("zrangebylex"), 0);
}

Test(batch, is_a_selection_by_its_name_behind_a_b)
{
    two();
    given("schedule", "0 c +500 0 " OF_M " d +500 0 " TAG_A);
    RUN("cancel_all", "0 0 'b n' '' 0 100 '' 0", "[U 2 0 '']");
    same(__FILE__, __LINE__, "index", show(ask("ZRANGE s:{q}:index 0 -1")), "['b m c' 't a d']");
    same(__FILE__, __LINE__, "own job", show(ask("ZSCORE s:{q}:due n")), "'T'");
    ask("FLUSHALL");
}
