/* SPDX-License-Identifier: MIT */
/* The history: count adds to it, and makes coarser rows of old ones; history shows it. */
#include "script.h"
#include <stdlib.h>

SCRIPTS(past);

enum { MINUTE = 60000, TEN = 600000, HOUR = 3600000, DAY = 86400000, PAST_MAX = 256 * 1024 };

static int64_t start_ms; /* of a day: the tests count from it */

/* The clock stands so long after the start of that day. */
static void at(int64_t after_ms)
{
    start_ms = (T / DAY + 1) * DAY;
    now_at(start_ms + after_ms - T);
}

/* What was counted then is added. */
static void count_at(int64_t after_ms, const char *counts)
{
    at(after_ms);
    given("count", text("0 '' 0 %s", counts));
}

/* A queue of which there is something, which is needed for the first counts. */
static void queue_is_there(void)
{
    ask("SET s:{q}:seq 1");
}

static const char *row(char kind, int64_t after_ms)
{
    static const int length_ms[] = {['m'] = MINUTE, ['t'] = TEN, ['h'] = HOUR, ['d'] = DAY};
    int64_t ms = length_ms[(unsigned char)kind];
    const char *name = text("%c%lld", kind, (long long)((start_ms + after_ms) / ms));
    redisReply *r = ask("HGET s:{q}:past %s", name);
    return r->type == REDIS_REPLY_NIL ? "" : r->str;
}

static const char *field(const char *name)
{
    redisReply *r = ask("HGET s:{q}:past %s", name);
    return r->type == REDIS_REPLY_NIL ? "" : r->str;
}

#define IS(got, want) cr_assert_str_eq(got, want)

static int n_rows(char kind)
{
    redisReply *r = ask("HKEYS s:{q}:past");
    int n = 0;

    for (size_t i = 0; i < r->elements; i++) {
        n += r->element[i]->str[0] == kind && r->element[i]->str[1] <= '9';
    }
    return n;
}

/* ---- adding ---- */
Test(past, counts_are_added_to_those_of_the_minute_and_of_all_time)
{
    queue_is_there();
    count_at(0, "s5d3Ta3Ts900Tz400");
    count_at(30000, "d4x1Ta1Tc2Ts700Tz300");
    IS(row('m', 0), "s5d7Ta4Ts1600Tz400x1Tc2");
    count_at(60000, "s1Tz401");
    IS(row('m', 0), "s5d7Ta4Ts1600Tz400x1Tc2");
    IS(row('m', MINUTE), "s1Tz401");
    IS(field("all"), "s6d7Ta4Ts1600Tz401x1Tc2");
    IS(field("at"), text("%lld %lld", (long long)(start_ms / TEN), (long long)start_ms));
    ask("DEL s:{q}:seq");
}

Test(past, counts_of_a_number_that_was_added_are_not_added_again)
{
    queue_is_there();
    at(0);
    given("count", "0 a 7 s1");
    given("count", "0 a 7 s1");
    given("count", "0 a 6 s1");
    IS(field("all"), "s1");
    given("count", "0 b 7 s1"); /* of another sender */
    given("count", "0 aa 7 s1");
    given("count", "0 a 8 s1");
    IS(field("all"), "s4");
    IS(field("seen"), " a=8 aa=7 b=7");
    given("count", "0 '' 0 s1"); /* of one that never asks again */
    given("count", "0 '' 0 s1");
    IS(field("all"), "s6");
    ask("DEL s:{q}:seq");
}

Test(past, the_last_number_of_hundreds_of_senders_is_known)
{
    queue_is_there();
    at(0);
    for (int i = 0; i < 1000; i++) {
        given("count", text("0 abcdef%010d %d s1", i, 1000 + i));
    }
    cr_assert_leq(strlen(field("seen")), 8192);
    cr_assert_eq(field("seen")[strlen(field("seen")) - 5], '=', "it is cut behind a number");
    for (int i = 700; i < 1000; i++) {
        given("count", text("0 abcdef%010d %d s1", i, 1000 + i));
    }
    IS(field("all"), "s1000");
    ask("DEL s:{q}:seq");
}

Test(past, a_number_does_not_pass_2_53)
{
    queue_is_there();
    count_at(0, "s9007199254740991Ts99999999999999999999Tz5");
    count_at(0, "s9Ts1Tz99999999999999999999");
    IS(field("all"), "s9007199254740992Ts9007199254740992Tz9007199254740992");
    ask("DEL s:{q}:seq");
}

Test(past, what_is_no_counts_is_refused_and_changes_nothing)
{
    static const char *const bad[] = {"'' 0 s",
                                      "'' 0 5",
                                      "'' 0 sS5",
                                      "'' 0 's 5'",
                                      "'' 0 s-5",
                                      "'' 0 's5 '",
                                      "a 0 s5x",
                                      "'a b' 0 s5",
                                      "a x s5",
                                      "a -1 s5",
                                      "abcdefghijklmnopqrstuvwxyz1234567 1 s5",
                                      "a 1234567890123456 s5"};

    queue_is_there();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        redisReply *r = run("count", text("0 %s", bad[i]));
        cr_expect(r->type == REDIS_REPLY_ERROR && strstr(r->str, "these are no counts"), "%s: %s",
                  bad[i], show(r));
    }
    cr_assert_eq(ask("EXISTS s:{q}:past")->integer, 0);
    ask("DEL s:{q}:seq");
}

Test(past, costs_three_commands_beside_the_time)
{
    queue_is_there();
    count_at(0, "s1");
    at(30000);
    ask("CONFIG RESETSTAT");
    given("count", "0 a 1 s5d3Ta3Ts900Tz400");
    cr_assert(calls("get") == 1 && calls("hmget") == 1 && calls("hset") == 1);
    cr_assert(calls("hdel") == 0 && calls("exists") == 0);
    ask("DEL s:{q}:seq");
}

/* ---- steps ---- */
Test(past, minutes_become_ten_minutes_after_an_hour)
{
    queue_is_there();
    for (int i = 0; i < 20; i++) {
        count_at(i * MINUTE, text("s%dTa1Ts10Tz%d", i + 1, i));
    }
    count_at(HOUR + TEN - 1, "d1");
    IS(row('m', 0), "s1Ta1Ts10Tz0");
    IS(row('t', 0), "");
    count_at(HOUR + TEN, "d1");
    IS(row('m', 0), "");
    IS(row('m', 9 * MINUTE), "");
    IS(row('m', TEN), "s11Ta1Ts10Tz10");
    IS(row('t', 0), "s55Ta10Ts100Tz9");
    cr_assert_eq(n_rows('m'), 12);
    IS(field("all"), "s210Ta20Ts200Tz19d2");
    ask("DEL s:{q}:seq");
}

Test(past, ten_minutes_become_hours_after_a_day_and_these_days_after_two_weeks)
{
    queue_is_there();
    for (int i = 0; i < 26; i++) {
        count_at((int64_t)i * HOUR, "s1");
        count_at((int64_t)i * HOUR + 30 * MINUTE, "s2");
    }
    IS(row('h', 0), "s3");
    IS(row('t', 0), "");
    IS(row('t', HOUR), "s1"); /* a day ago, and not a whole hour before that */
    cr_assert_eq(n_rows('h'), 1);

    count_at(15 * (int64_t)DAY - 1, "d1");
    IS(row('h', 0), "s3");
    IS(row('h', 25 * (int64_t)HOUR), "s3");
    IS(row('d', 0), "");
    count_at(15 * (int64_t)DAY, "d1");
    IS(row('h', 0), "");
    IS(row('d', 0), "s72");
    IS(row('h', 25 * (int64_t)HOUR), "s3");
    IS(field("all"), "s78d2");
    ask("DEL s:{q}:seq");
}

Test(past, what_nobody_has_touched_for_weeks_goes_all_the_way_at_once)
{
    queue_is_there();
    for (int i = 0; i < 30; i++) {
        count_at(i * MINUTE, "s1");
    }
    count_at(20 * (int64_t)DAY, "d1");
    IS(row('d', 0), "s30");
    cr_assert(n_rows('m') == 1 && n_rows('t') == 0 && n_rows('h') == 0 && n_rows('d') == 1);
    ask("DEL s:{q}:seq");
}

Test(past, days_go_after_history_days)
{
    queue_is_there();
    count_at(0, "s1");
    count_at(91 * (int64_t)DAY - 1, "s2");
    IS(row('d', 0), "s1");
    count_at(91 * (int64_t)DAY, "s4");
    IS(row('d', 0), "");
    IS(field("all"), "s7");

    given("configure", "0 history_days=2");
    count_at(106 * (int64_t)DAY + TEN, "s1");
    cr_assert_eq(n_rows('d'), 0);
    IS(field("all"), "s8");
    ask("DEL s:{q}:seq s:{q}:conf");
    heard();
}

Test(past, a_clock_that_is_set_back_loses_nothing)
{
    queue_is_there();
    count_at(10 * (int64_t)DAY, "s1");
    count_at(0, "s2");
    count_at(TEN, "s4");
    count_at(HOUR + TEN, "s8");
    IS(row('t', 0), "s2");
    IS(row('m', 10 * (int64_t)DAY), "s1");
    count_at(20 * (int64_t)DAY, "s16");
    IS(row('h', 10 * (int64_t)DAY), "s1");
    IS(field("all"), "s31");
    ask("DEL s:{q}:seq");
}

/* As much as a process can count: each bucket of each hint. */
static char *full_counts(void)
{
    char *all = "s1000000d1000000r1000000x1000000k1000000p1000000f1000000g1000000v1000000";

    for (const char *hint = "ENASTQR"; *hint; hint++) {
        for (char bucket = 'a'; bucket <= 'w'; bucket++) {
            all = text("%s%c%c1000000", all, *hint, bucket);
        }
        all = text("%s%cy100000000000%cz1000000000", all, *hint, *hint);
    }
    return all;
}

Test(past, is_at_most_256_kib_however_much_is_counted)
{
    char *counts = full_counts();
    int64_t now = 0;
    long long most = 0;

    queue_is_there();
    for (int i = 0; i < 1200; i++) {
        now += i % 3 ? 30000 : 45 * MINUTE; /* 18 days, with minutes among them */
        count_at(now, counts);
        if (i % 20 == 0) {
            long long bytes = ask("MEMORY USAGE s:{q}:past SAMPLES 0")->integer;
            most = bytes > most ? bytes : most;
        }
    }
    cr_assert_leq(most, PAST_MAX);
    cr_assert_geq(most, 100000, "it is not thrown away: %lld", most);
    cr_assert(strstr(field("all"), "s1200000000"), "%s", field("all"));
    ask("DEL s:{q}:seq");
}

Test(past, that_is_full_has_all_minutes_ten_minutes_and_hours_of_usual_rows)
{
    char *names = "";

    queue_is_there();
    for (int i = 0; i < 16 * 24; i++) {
        at((int64_t)i * HOUR);
        long long number = (long long)((start_ms + (int64_t)i * HOUR) / HOUR);
        names = text("%s h%lld", names, number);
        ask("HSET s:{q}:past h%lld %s", number,
            "s36000d36000Ta12000Tb20000Tc3000Td900Te90Tf10Ty9000000Tz4000Ra36000Ry200Rz90");
    }
    ask("HSET s:{q}:past at %s", "1 1");
    ask("HSET s:{q}:past rows %s", names);
    at(16 * (int64_t)DAY);
    given("count", "0 '' 0 s1");
    cr_assert_eq(n_rows('h'), 14 * 24);
    cr_assert_eq(n_rows('d'), 2);
    ask("DEL s:{q}:seq");
}

/* ---- off, removed ---- */
Test(past, is_off_where_history_days_is_0)
{
    queue_is_there();
    count_at(0, "s1");
    given("configure", "0 history_days=0");
    cr_assert_eq(ask("EXISTS s:{q}:past")->integer, 0);
    at(0);
    redisReply *r = run("count", "0 '' 0 s1");
    cr_assert_eq(r->element[1]->integer, 0);
    cr_assert_eq(ask("EXISTS s:{q}:past")->integer, 0);
    given("configure", "0 history_days=");
    r = run("count", "0 '' 0 s1");
    cr_assert_eq(r->element[1]->integer, 90);
    IS(field("all"), "s1");
    ask("DEL s:{q}:seq");
    heard();
}

Test(past, a_queue_that_is_removed_gets_none_by_what_was_counted_before)
{
    queue_is_there();
    count_at(0, "s1");
    given("remove", "0 0");
    cr_assert_eq(ask("EXISTS s:{q}:past")->integer, 0);
    count_at(0, "s1");
    cr_assert_eq(ask("EXISTS s:{q}:past")->integer, 0);
    heard();
}

/* ---- history ---- */
Test(past, history_shows_the_rows_that_begin_in_a_time_and_all)
{
    RUN("history", "0 0 9007199254740992", "[U 0 '']");
    queue_is_there();
    count_at(0, "s1Tz5");
    count_at(2 * HOUR, "s2");
    long long base = (long long)start_ms;
    at(2 * HOUR + 1000);
    redisReply *r = run("history", text("0 %lld %lld", base + TEN, base + DAY));
    cr_assert_eq(r->elements, 6);
    cr_assert(r->element[1]->integer == base && strcmp(r->element[2]->str, "s3Tz5") == 0);
    cr_assert(r->element[3]->integer == base + 2 * HOUR && r->element[4]->integer == MINUTE &&
              strcmp(r->element[5]->str, "s2") == 0);
    r = run("history", text("0 %lld %lld", base, base + 2 * HOUR));
    cr_assert_eq(r->elements, 6);
    cr_assert(r->element[3]->integer == base && r->element[4]->integer == TEN &&
              strcmp(r->element[5]->str, "s1Tz5") == 0);
    ask("DEL s:{q}:seq");
}
