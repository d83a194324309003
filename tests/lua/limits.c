/* SPDX-License-Identifier: MIT */
/* The limits that all listeners of a queue keep together: max_running and rate. */
#include "script.h"

SCRIPTS(limits);

#define CLAIM(limit, expected) RUN("claim", "0 me 1000 " limit, expected)
#define ROW(id, token, until) "['" id "' 2 " until " '1 " token " me 1 10 U T ' '" REC "' 0]"
#define ROW_T(id, token) ROW(id, token, "T+1000")
#define MET "{max_running}"

static bool is_met(void)
{
    return redis_int(redis, "HEXISTS s:{q}:attempts " MET);
}

static void jobs(int n)
{
    many(0, n, "+0");
}

/* How many jobs a claim was given. */
static size_t n_claimed(const redisReply *r)
{
    return r->elements - 7;
}

static long long gate_of(const redisReply *r)
{
    return r->element[5]->integer;
}

static long long now_of(const redisReply *r)
{
    return r->element[0]->integer / 1000;
}

static void end(void)
{
    ask("FLUSHALL");
}

/* ---- max_running ---- */
Test(limits, max_running_lets_so_many_jobs_run_and_says_until_when)
{
    given("schedule", "0 a +0 0 " REC " b +0 0 " REC " c +0 0 " REC);
    given("configure", "0 max_running=2");
    CLAIM("3", "[U 0 0 0 0 T+1000 0 " ROW_T("a", "U+1") " " ROW_T("b", "U+2") "]");
    KEYS("due c:T | run a:T+1000 b:T+1000 | jobs a=" REC " b=" REC " c=" REC
         " | attempts a=1 U+1 me 1 10 U T  b=1 U+2 me 1 10 U T  " MET "=1 | seq U+2 | conf 1 "
         "max_running=2 ");
    HEARD("");
    CLAIM("1", "[U 0 0 0 0 T+1000 0]");
    CLAIM("0 c", "[U 0 0 0 0 T+1000 0]");
    end();
}

Test(limits, max_running_that_is_not_passed_keeps_nothing_back)
{
    given("schedule", "0 a +0 0 " REC " b +0 0 " REC " c +0 0 " REC);
    given("configure", "0 max_running=2");
    CLAIM("2", "[U T 0 0 0 0 0 " ROW_T("a", "U+1") " " ROW_T("b", "U+2") "]");
    cr_assert(!is_met());
    end();
}

Test(limits, max_running_of_a_queue_with_nothing_due_closes_no_gate)
{
    given("schedule", "0 a +0 0 " REC " b +5 0 " REC);
    given("configure", "0 max_running=1");
    CLAIM("1", "[U 0 T+5 0 0 0 0 " ROW_T("a", "U+1") "]");
    CLAIM("1", "[U 0 T+5 0 0 0 0]");
    RUN("touch", "0 me 1000 1 0 0 1 1 24", "[U 0 T+5 0 0 0 0 0 0 0 0 0 T+999 '+T+5']");
    cr_assert(!is_met());
    end();
}

Test(limits, max_running_does_not_count_leases_that_are_over)
{
    jobs(4);
    given("configure", "0 max_running=2");
    given("claim", "0 me 500 2");
    now_at(499);
    CLAIM("2", "[U+499000 0 0 0 0 T+500 0]");
    now_at(500);
    cr_assert_eq(n_claimed(run("claim", "0 me 1000 3")), 2);
    cr_assert_eq(redis_int(redis, "ZCARD s:{q}:run"), 4); /* no sweep has passed */
    end();
}

/* A holder that has died does not end its jobs. */
Test(limits, max_running_opens_at_the_end_of_the_first_lease)
{
    jobs(4);
    given("configure", "0 max_running=3");
    given("claim", "0 me 900 1");
    given("claim", "0 me 300 1");
    given("claim", "0 me 600 1");
    CLAIM("1", "[U 0 0 0 0 T+300 0]");
    given("renew", "0 me j001 U+2 1000");
    CLAIM("1", "[U 0 0 0 0 T+600 0]");
    end();
}

Test(limits, max_running_that_has_come_down_lets_nothing_start_until_fewer_run)
{
    jobs(6);
    given("claim", "0 me 1000 4");
    given("configure", "0 max_running=2");
    CLAIM("5", "[U 0 0 0 0 T+1000 0]");
    given("done", "0 me j000 U+1 j001 U+2");
    CLAIM("5", "[U 0 0 0 0 T+1000 0]");
    given("done", "0 me j002 U+3");
    cr_assert_eq(n_claimed(run("claim", "0 me 1000 5")), 1);
    end();
}

Test(limits, max_running_that_was_met_makes_each_way_to_settle_tell_of_it_once)
{
    static const struct {
        const char *script, *of_one, *of_next, *heard;
    } ends[] = {
        {"done", "0 me a U+1", "0 me b U+2", "0 'queue'"},
        {"fail", "0 me a U+1 why", "0 me b U+2 why", "0 'queue'"},
        {"release", "0 me a U+1", "0 me b U+2", "0 '0 a' 0 'queue'"},
        {"retry", "0 me a U+1 9000 why", "0 me b U+2 9000 why", "0 'queue'"},
        {"retry", "0 me a U+1 ~9000 why", "0 me b U+2 ~9000 why", "0 'queue'"},
    };

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        given("schedule", "0 a +0 0 " REC " b +0 0 " REC " c +0 0 " REC);
        given("configure", "0 max_running=2");
        given("claim", "0 me 1000 3");
        cr_assert(is_met(), "%s", ends[i].script);
        given("schedule", "0 d +5000 0 " REC);
        heard();
        run(ends[i].script, ends[i].of_one);
        same(__FILE__, __LINE__, ends[i].script, heard(), ends[i].heard);
        cr_assert(!is_met(), "%s", ends[i].script);
        run(ends[i].script, ends[i].of_next);
        cr_assert(!strstr(heard(), "queue"), "%s", ends[i].script);
        end();
    }
}

Test(limits, max_running_that_was_met_makes_a_sweep_tell_of_it_too)
{
    jobs(3);
    given("configure", "0 max_running=2");
    given("claim", "0 me 500 3");
    RUN("sweep", "0", "[U 0 0 0 0]");
    HEARD("");
    cr_assert(is_met());
    now_at(500);
    RUN("sweep", "0", "[U+500000 2 0 0 0]");
    cr_assert(strstr(heard(), "'queue'"));
    cr_assert(!is_met());
    end();
}

Test(limits, max_running_that_was_not_met_makes_no_sweep_tell_of_it)
{
    jobs(3);
    given("configure", "0 max_running=3");
    given("claim", "0 me 500 3");
    now_at(500);
    RUN("sweep", "0", "[U+500000 3 0 0 0]");
    cr_assert(!strstr(heard(), "'queue'"));
    end();
}

Test(limits, max_running_that_was_met_is_no_matter_to_a_settle_that_ends_nothing)
{
    jobs(3);
    given("configure", "0 max_running=2");
    given("claim", "0 me 1000 3");
    RUN("done", "0 me j000 U+9 j002 U+1", "[U 'EGONE' 'EGONE']");
    RUN("fail", "0 me j000 U+9 why", "[U 'EGONE']");
    RUN("release", "0 me j000 U+9", "[U 'EGONE']");
    RUN("retry", "0 me j000 U+9 5 why", "[U 'EGONE']");
    HEARD("");
    cr_assert(is_met());
    end();
}

/* They wait for the end of the first lease. */
Test(limits, max_running_that_was_met_makes_a_renewal_tell_of_a_shorter_lease)
{
    jobs(3);
    given("configure", "0 max_running=2");
    given("renew", "0 me j000 U+1 10");
    given("claim", "0 me 1000 3");
    RUN("renew", "0 me j000 U+1 1000 j001 U+2 2000", "[U T+1000 T+2000]");
    HEARD("");
    RUN("renew", "0 me j000 U+1 2000 j001 U+2 300", "[U T+2000 T+300]");
    HEARD("0 'queue'");
    CLAIM("3", "[U 0 0 0 0 T+300 0]");
    given("done", "0 me j000 U+1");
    RUN("renew", "0 me j001 U+2 100", "[U T+100]"); /* nobody has met it since */
    HEARD("");
    end();
}

/* Who is kept back hears of the next settle, whatever the others heard before. */
Test(limits, max_running_that_is_met_again_makes_the_next_settle_tell_again)
{
    jobs(9);
    given("configure", "0 max_running=1");
    given("claim", "0 me 1000 2");

    for (int i = 0; i < 4; i++) {
        given("done", text("0 * j%03d %s", i, moments(text("U+%d", i + 1))));
        cr_assert_eq(n_claimed(run("claim", "0 me 1000 2")), 1);
        cr_assert_eq(n_claimed(run("claim", "0 you 1000 2")), 0);
    }
    end();
}

Test(limits, max_running_that_is_met_again_is_written_down_once)
{
    jobs(3);
    given("configure", "0 max_running=1");
    given("claim", "0 me 1000 2");
    ask("CONFIG RESETSTAT");
    cr_assert_eq(n_claimed(run("claim", "0 you 1000 2")), 0);
    cr_assert_eq(calls("hset") + calls("hdel"), 0);
    end();
}

Test(limits, a_sign_that_max_running_was_met_is_no_job)
{
    jobs(2);
    given("configure", "0 max_running=1");
    given("claim", "0 me 1000 2");
    RUN("check", "0 attempts 0 100", "[U 0 2 76 0]");
    RUN("mend", "0 " MET, "[U '']");
    end();
}

Test(limits, settles_of_a_queue_without_max_running_ask_no_more_than_before)
{
    jobs(3);
    given("claim", "0 me 1000 3");
    ask("CONFIG RESETSTAT");
    given("sweep", "0");
    cr_assert_eq(calls("hexists"), 0);
    ask("CONFIG RESETSTAT");
    given("done", "0 me j000 U+1");
    cr_assert_eq(calls("hmget"), 1);
    cr_assert_eq(calls("hexists"), 0);
    cr_assert_eq(calls("get"), 0);
    cr_assert_eq(calls("mget"), 0);
    end();
}

/* ---- rate ---- */
Test(limits, rate_lets_so_many_jobs_start_in_a_window_and_says_until_when)
{
    given("schedule", "0 a +0 0 " REC " b +0 0 " REC " c +0 0 " REC);
    given("configure", "0 rate=2/200ms");
    CLAIM("3", "[U 0 0 0 0 T+201 0 " ROW_T("a", "U+1") " " ROW_T("b", "U+2") "]");
    KEYS("due c:T | run a:T+1000 b:T+1000 | jobs a=" REC " b=" REC " c=" REC
         " | attempts a=1 U+1 me 1 10 U T  b=1 U+2 me 1 10 U T  | seq U+2 | rate U U | conf 1 "
         "rate=2/200ms ");
    now_at(199);
    CLAIM("1", "[U+199000 0 0 0 0 T+201 0]");
    now_at(200);
    cr_assert_eq(n_claimed(run("claim", "0 me 1000 3")), 1);
    cr_assert_eq(redis_int(redis, "LLEN s:{q}:rate"), 2);
    end();
}

Test(limits, rate_counts_back_from_each_moment)
{
    jobs(20);
    given("configure", "0 rate=5/200ms");
    cr_assert_eq(n_claimed(run("claim", "0 me 1000 2")), 2);
    now_at(100);
    CLAIM("0 j010",
          "[U+100000 T 0 0 0 0 0 ['j010' 2 T+1100 '1 U+100001 me 1 10 U+100000 T ' '" REC "' 1]]");
    redisReply *r = run("claim", "0 me 1000 10");
    cr_assert_eq(n_claimed(r), 2);
    cr_assert_eq(gate_of(r), T + 201);
    now_at(200);
    r = run("claim", "0 me 1000 10");
    cr_assert_eq(n_claimed(r), 2);
    cr_assert_eq(gate_of(r), T + 301);
    now_at(300);
    r = run("claim", "0 me 1000 10");
    cr_assert_eq(n_claimed(r), 3);
    cr_assert_eq(gate_of(r), T + 401);
    end();
}

/* What it must be, job by job. */
struct model {
    long long start[4000];
    int n;
};

static int model_room(const struct model *m, int n_starts, int window_ms, long long now_ms)
{
    int n = 0;

    for (int i = 0; i < m->n; i++) {
        n += now_ms - m->start[i] < window_ms;
    }
    return n_starts - n;
}

Test(limits, rate_is_exact_in_every_window_and_late_in_none)
{
    static const int rates[][2] = {{1, 1}, {1, 50}, {3, 7}, {5, 100}, {120, 60}, {250, 100}};

    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        struct model m = {.n = 0};
        int n_starts = rates[i][0];
        int window_ms = rates[i][1];
        int at = 0;
        unsigned dice = 7;

        now_at(0);
        for (int k = 0; k < 8; k++) {
            many(k * 100, 100, "+0");
        }
        given("configure", text("0 rate=%d/%dms", n_starts, window_ms));
        for (int step = 0; step < 60; step++) {
            dice = dice * 1103515245 + 12345;
            int wanted = 1 + (int)(dice >> 16) % 40;
            at += (int)(dice >> 8) % (window_ms / 3 + 2);
            now_at(at);
            int room = model_room(&m, n_starts, window_ms, T + at);
            redisReply *r = run("claim", text("0 me 100000 %d", wanted));
            int n = (int)n_claimed(r);
            if (redis_int(redis, "ZCARD s:{q}:due") > 0) {
                cr_assert_eq(n, wanted < room ? wanted : room, "%d/%d: %d of %d, wanted %d",
                             n_starts, window_ms, n, room, wanted);
            }
            for (int j = 0; j < n; j++) {
                m.start[m.n++] = T + at;
            }
            if (gate_of(r)) {
                long long gate = gate_of(r);
                cr_assert_eq(model_room(&m, n_starts, window_ms, now_of(r)), 0);
                cr_assert_leq(model_room(&m, n_starts, window_ms, gate - 2), 0);
                cr_assert_gt(model_room(&m, n_starts, window_ms, gate), 0);
            }
        }
        end();
    }
}

Test(limits, rate_counts_starts_alone)
{
    given("schedule",
          "0 late +0 0 \\02\\00\\05L\\03s10 later +0 0 \\02\\00\\05L\\03s10 a +50 0 " REC
          " b +50 0 " REC " c +50 0 " REC);
    given("configure", "0 rate=2/1s");
    now_at(50);
    redisReply *r = run("claim", "0 me 1000 4"); /* two are skipped */
    cr_assert_eq(n_claimed(r), 2);
    cr_assert_eq(gate_of(r), 0);
    cr_assert_eq(redis_int(redis, "LLEN s:{q}:rate"), 0);
    r = run("claim", "0 me 1000 4");
    cr_assert_eq(n_claimed(r), 2);
    cr_assert_eq(gate_of(r), T + 1051);
    end();
}

Test(limits, rate_of_a_clock_that_was_set_back_does_not_close_the_queue_for_good)
{
    jobs(20);
    given("configure", "0 rate=2/200ms");
    now_at(86400000);
    given("claim", "0 me 1000 2");
    now_at(86400000 - 50);
    redisReply *r = run("claim", "0 me 1000 2");
    cr_assert_eq(n_claimed(r), 0);
    cr_assert_eq(gate_of(r), T + 86400000 + 201);
    now_at(86400000 - 200);
    cr_assert_eq(n_claimed(run("claim", "0 me 1000 2")), 2);
    now_at(0);
    cr_assert_eq(n_claimed(run("claim", "0 me 1000 2")), 2);
    CLAIM("2", "[U 0 0 0 0 T+201 0]");
    end();
}

Test(limits, rate_counts_what_is_forwarded)
{
    jobs(9);
    given("configure", "0 'forward=list rate=4/1s'");
    RUN("claim", "0 - 1000 100", "[U T 0 0 0 0 4]");
    RUN("claim", "0 - 1000 100", "[U 0 0 0 0 T+1001 0]");
    RUN("touch", "0 - 1000 100 0 0 1 1 24", "[U 0 0 0 0 T+1001 0 0 0 0 0 0 0 '']");
    now_at(1000);
    RUN("touch", "0 - 1000 100 0 0 1 1 0", "[U+1000000 T 0 0 0 0 4 4 0 0 0 1 0 '']");
    now_at(2000);
    RUN("claim", "0 - 1000 100", "[U+2000000 0 0 0 0 0 1]");
    cr_assert_eq(redis_int(redis, "LLEN s:{q}:list"), 9);
    end();
}

Test(limits, rate_with_room_for_all_reads_no_starts)
{
    jobs(6);
    given("configure", "0 rate=8/1s");
    ask("CONFIG RESETSTAT");
    cr_assert_eq(n_claimed(run("claim", "0 me 1000 3")), 3);
    cr_assert_eq(n_claimed(run("claim", "0 me 1000 3")), 3);
    cr_assert_eq(calls("lrange"), 0);
    end();
}

/* What cannot be read has taken its place in the claim, and has not started. */
Test(limits, rate_is_open_where_fewer_have_started_than_it_allows)
{
    given("configure", "0 rate=2/200ms");
    given("schedule", "0 a +0 0 " REC " b +0 0 " REC);
    given("claim", "0 me 1000 2");
    given("schedule", "0 c +0 0 ? d +1 0 " REC " e +2 0 " REC);
    now_at(400);
    redisReply *r = run("claim", "0 me 1000 3");
    cr_assert_eq(n_claimed(r), 2, "%s", show(r));
    cr_assert_eq(r->element[7]->element[1]->integer, 3);
    cr_assert_eq(gate_of(r), 0);
    end();
}

Test(limits, rate_that_is_another_counts_the_starts_before_and_none_forgets_them)
{
    jobs(20);
    given("configure", "0 rate=4/1s");
    given("claim", "0 me 1000 4");
    given("configure", "0 rate=6/1s");
    cr_assert_eq(n_claimed(run("claim", "0 me 1000 9")), 2);
    given("configure", "0 rate=2/1s");
    CLAIM("9", "[U 0 0 0 0 T+1001 0]");
    now_at(1000);
    cr_assert_eq(n_claimed(run("claim", "0 me 1000 9")), 2);
    cr_assert_eq(redis_int(redis, "LLEN s:{q}:rate"), 2);
    given("configure", "0 rate=");
    cr_assert_eq(redis_int(redis, "EXISTS s:{q}:rate"), 0);
    end();
}

Test(limits, rate_holds_for_ten_thousand_starts)
{
    given("configure", "0 rate=10000/1d");
    for (int i = 0; i < 101; i++) {
        many(i * 100, 100, "+0");
        given("claim", "0 me 1000 100");
    }
    cr_assert_eq(redis_int(redis, "LLEN s:{q}:rate"), 10000);
    cr_assert_eq(redis_int(redis, "ZCARD s:{q}:due"), 100);
    redisReply *r = run("claim", "0 me 1000 100");
    cr_assert_eq(n_claimed(r), 0);
    cr_assert_eq(gate_of(r), T + 86400001);
    end();
}

Test(limits, rate_whose_log_is_of_another_type_is_refused_before_the_first_write)
{
    jobs(3);
    given("configure", "0 rate=2/1s");
    ask("SET s:{q}:rate x");
    char *before = dumps();
    cr_assert(strncmp(run("claim", "0 me 1000 3")->str, "WRONGTYPE ", 10) == 0);
    cr_assert(strncmp(run("touch", "0 me 1000 3 0 0 1 1 24")->str, "WRONGTYPE ", 10) == 0);
    same(__FILE__, __LINE__, "keys", dumps(), before);

    ask("DEL s:{q}:rate");
    ask("RPUSH s:{q}:rate x y z"); /* counts for nothing */
    cr_assert_eq(n_claimed(run("claim", "0 me 1000 3")), 2);
    end();
}

/* ---- both, and touch ---- */
Test(limits, of_both_kinds_hold_together)
{
    jobs(9);
    given("configure", "0 'max_running=3 rate=2/500ms'");
    redisReply *r = run("claim", "0 me 1000 9");
    cr_assert_eq(n_claimed(r), 2);
    cr_assert_eq(gate_of(r), T + 501);
    cr_assert(!is_met());
    now_at(500);
    r = run("claim", "0 me 1000 9");
    cr_assert_eq(n_claimed(r), 1);
    cr_assert_eq(gate_of(r), T + 1000);
    cr_assert(is_met());
    end();
}

Test(limits, are_kept_by_touch_which_reads_no_trigger_of_what_it_leaves)
{
    given("schedule", "0 a +5 0 " REC " b +5 0 " REC " c +5 0 " REC);
    given("configure", "0 rate=2/200ms");
    now_at(5);
    RUN("touch", "0 me 1000 16 0 0 1 0 24",
        "[U+5000 0 0 0 0 T+206 0 2 2 0 0 0 0 '' "
        "['a' 2 T+1005 '1 U+5001 me 1 10 U+5000 T+5 ' '" REC "' 0] "
        "['b' 2 T+1005 '1 U+5002 me 1 10 U+5000 T+5 ' '" REC "' 0]]");
    end();
}

Test(limits, are_kept_by_touch_for_the_jobs_of_its_caller_alone)
{
    jobs(10);
    given("configure", "0 max_running=1");
    given("claim", "0 me 1000 1");
    redisReply *r = run("touch", "0 me 1000 0 0 0 2 1 24"); /* it has no slot, and wants none */
    cr_assert_eq(gate_of(r), 0);
    cr_assert(!is_met());
    r = run("touch", "0 me 1000 4 0 0 2 1 24");
    cr_assert_eq(gate_of(r), T + 1000);
    cr_assert(is_met());
    end();
}

Test(limits, of_settings_are_numbers_and_starts_in_a_time)
{
#define COUNT_RULE "must be a number from 1 to 1000000000"
#define RATE_RULE "must be N/D: 1 to 10000 starts in 1ms to 1d, as 100/1s"
    static const char *const good[] = {"max_running=1", "max_running=1000000000",
                                       "rate=1/1ms",    "rate=10000/1d",
                                       "rate=100/1s",   "rate=5/24h",
                                       "rate=3/90m",    "rate=5/200ms"};
    static const char *const counts[] = {"0", "-1", "1.5", "1000000001", "many", "+5", "1e3"};
    static const char *const rates[] = {"0/1s",     "10001/1s", "5/0s",   "5/0ms",  "5/2d",
                                        "5/86401s", "5",        "5/",     "/1s",    "5/s",
                                        "-5/1s",    "5/-1s",    "5/1",    "5/1.5s", "5/1w",
                                        "5/1S",     "5/1s/2",   "1e3/1s", "5/1s2m", "0x5/1s"};

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        RUN("configure", text("0 'max_running= rate= %s'", good[i]), text("[U '' '%s']", good[i]));
    }
    given("configure", "0 'max_running=7 rate=8/9s'");
    char *before = dumps();
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        RUN("configure", text("0 max_running=%s", counts[i]),
            text("[U 'max_running=%s: " COUNT_RULE "' '']", counts[i]));
    }
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        RUN("configure", text("0 'paused=5 rate=%s'", rates[i]),
            text("[U 'rate=%s: " RATE_RULE "' '']", rates[i]));
    }
    same(__FILE__, __LINE__, "keys", dumps(), before);
    RUN("configure", "0 rate=0007/1s", "[U '' 'rate=7/1s max_running=7']");
    end();
}

/* Another program may have written them. */
Test(limits, of_none_are_no_limits)
{
    jobs(4);
    ask("SET s:{q}:conf %s", "1 rate=0/1s ");
    cr_assert_eq(n_claimed(run("claim", "0 me 1000 2")), 2);
    ask("SET s:{q}:conf %s", "1 max_running=0 ");
    cr_assert_eq(n_claimed(run("claim", "0 me 1000 2")), 2);
    end();
}

/* Another program may have written it: configure takes no window of more than a day. */
Test(limits, of_a_window_that_is_longer_than_time_itself_let_the_first_job_start)
{
    jobs(2);
    ask("SET s:{q}:conf %s", "1 rate=1/30000d ");
    cr_assert_eq(n_claimed(run("claim", "0 me 1000 2")), 1);
    end();
}

Test(limits, work_where_redis_is_out_of_memory)
{
    jobs(5);
    given("configure", "0 'max_running=2 rate=3/1s'");
    ask("CONFIG SET maxmemory 1");
    redisReply *r = run("claim", "0 me 1000 5");
    cr_assert_eq(n_claimed(r), 2);
    cr_assert(is_met());
    r = run("claim", "0 me 1000 5");
    cr_assert_eq(gate_of(r), T + 1000);
    given("done", "0 me j000 U+1");
    cr_assert(!is_met());
    r = run("claim", "0 me 1000 5");
    cr_assert_eq(n_claimed(r), 1);
    ask("CONFIG SET maxmemory 0");
    end();
}
