/* SPDX-License-Identifier: MIT */
/* Calendars, whose moments wait in the series; and the pause of series. */
#include "script.h"

SCRIPTS(calendar);

#define SAME(what, got, expected) same(__FILE__, __LINE__, what, got, expected)

/* ---- records ---- */
/* The moments T+FIRST, T+FIRST+10..., and behind them 0 if they are all. */
static const char *each_10(int first, int n, bool is_whole)
{
    const char *out = "";

    for (int i = 0; i < n; i++) {
        out = text("%s%s%" PRId64, out, i ? "," : "", T + first + 10 * (int64_t)i);
    }
    return is_whole ? text("%s,0", out) : out;
}

/* S of such a series. */
static const char *says(const char *policy, const char *its_moments)
{
    return text("%s c %s", policy, its_moments);
}

static const char *attribute(char letter, const char *value)
{
    size_t len = strlen(value);

    if (len < 128) {
        return text("%c\\%02x%s", letter, (unsigned)len, value);
    }
    return text("%c\\%02x\\%02x%s", letter, (unsigned)(len % 128 + 128), (unsigned)(len / 128),
                value);
}

static const char *record(const char *series)
{
    size_t len = 5 + 2 + strlen(series) + (strlen(series) < 128 ? 0 : 1);
    const char *all = text("%s%s", attribute('C', "n r"), attribute('S', series));

    if (len < 128) {
        return text("\\02\\00\\%02x%s", (unsigned)len, all);
    }
    return text("\\02\\00\\%02x\\%02x%s", (unsigned)(len % 128 + 128), (unsigned)(len / 128), all);
}

static void schedule(const char *series)
{
    given("schedule", text("0 a first 2 '%sbody'", record(series)));
}

static void refill(const char *series, const char *its_moments, const char *expected)
{
    RUN("refill", text("0 a '%s' 'n r' %s", series, its_moments), expected);
}

static void series_is(const char *expected)
{
    const redisReply *r = ask("HGET s:{q}:jobs a");
    const char *series = memchr(r->str, 'S', (size_t)r->len);

    series += (unsigned char)series[1] < 128 ? 2 : 3;
    cr_expect(strncmp(series, expected, strlen(expected)) == 0 &&
                  strcmp(series + strlen(expected), "body") == 0,
              "%s, not %s", series, expected);
}

static void attempt_is(const char *expected)
{
    SAME("attempt", show(ask("HGET s:{q}:attempts a")), expected);
}

static void score_is(const char *expected)
{
    SAME("score", show(ask("ZSCORE s:{q}:due a")), expected);
}

/* A claim at this moment: the numbers of the moments that it makes a job of; and 'few' if it says
 * that few are left. */
static const char *made_at(int64_t after_ms)
{
    const char *out = "";

    now_at(after_ms);
    const redisReply *r = run("claim", "0 me 100000 100");
    for (size_t i = 7; i < r->elements; i++) {
        const redisReply *row = r->element[i];
        const char *more = text("few %s", show(row->element[2]));

        if (row->element[1]->integer == 2) {
            const char *n = strchr(memchr(row->element[4]->str, 'O', row->element[4]->len), ' ');
            more = text("%.*s", (int)strspn(n + 1, "0123456789"), n + 1);
        }
        out = text("%s%s%s", out, *out ? " " : "", more);
    }
    return out;
}

static void end(void)
{
    ask("FLUSHALL");
    now_at(0);
}

/* ---- moments ---- */
Test(calendar, is_due_at_the_first_of_its_moments_that_is_to_come)
{
    now_at(15);
    RUN("schedule", text("0 a first 0 '%s'", record(says("l 0 0", each_10(5, 16, false)))),
        "[U+15000 T+25]");
    score_is("'T+25'");
    SAME("attempt", show(ask("EXISTS s:{q}:attempts")), "0");
    end();
}

Test(calendar, has_a_job_at_each_of_its_moments_and_shows_that_few_are_left)
{
    const char *series = says("l 0 0", each_10(5, 10, false));

    schedule(series);
    SAME("first", made_at(5), "1");
    SAME("second", made_at(15), "2");
    SAME("third", made_at(25), "3 few T+35");
    RUN("claim", "0 me 1000 1", "[U+25000 0 T+35 0 0 0 0]");
    SAME("fourth", made_at(35), "4 few T+45");
    attempt_is("'2 U+35001 - 4 10 U+35000 T+35 n=4 '");
    end();
}

/* The row of a series is no job: it has no place among the ids, and its record no body. */
Test(calendar, is_shown_by_each_script_that_claims)
{
    static const char *const claims[][2] = {
        {"claim", "0 me 1000 9"}, {"claim", "0 me 1000 0 x a"}, {"touch", "0 me 1000 9 0 0 1 1 9"}};
    const char *series = says("l 0 0", each_10(0, 3, false));

    for (size_t i = 0; i < sizeof claims / sizeof *claims; i++) {
        now_at(-1);
        schedule(series);
        now_at(0);
        const redisReply *r = run(claims[i][0], claims[i][1]);
        const redisReply *row = r->element[r->elements - 1];
        SAME(claims[i][1], show(row->element[3]), "'2 U+1 - 1 10 U T n=1 '");
        SAME(claims[i][1], show(row->element[0]), "'a'");
        cr_assert_eq(row->element[1]->integer, 1);
        cr_assert_eq(row->element[2]->integer, T + 10);
        cr_assert_eq(row->element[4]->len, strlen(series) + 10);
        cr_assert_eq(row->element[5]->integer, 0);
        cr_assert_eq(r->element[r->elements - 2]->element[1]->integer, 2);
        end();
    }
}

Test(calendar, is_shown_to_who_forwards)
{
    given("configure", "0 forward=list");
    schedule(says("l 0 0", each_10(5, 3, false)));
    now_at(5);
    const redisReply *r = run("claim", "0 - 1000 9");
    cr_assert_eq(r->element[6]->integer, 1);
    cr_assert_eq(r->elements, 8);
    SAME("series", show(r->element[7]->element[0]), "'a'");
    cr_assert_eq(r->element[7]->element[1]->integer, 1);
    end();
}

Test(calendar, of_moments_that_passed_unseen_makes_the_last_each_or_none)
{
    schedule(says("l 0 0", each_10(5, 16, false)));
    SAME("the last", made_at(39), "4");
    score_is("'T+45'");
    end();
    schedule(says("a 0 0", each_10(5, 16, false)));
    SAME("the first", made_at(39), "1");
    SAME("the second", made_at(39), "2");
    score_is("'T+25'");
    end();
    schedule(says("l 0 3", each_10(5, 16, false)));
    SAME("the third and last", made_at(39), "3");
    SAME("it is over", show(ask("EXISTS s:{q}:due s:{q}:jobs")), "1");
    end();
    schedule(says(text("l %" PRId64 " 0", T + 29), each_10(5, 16, false)));
    SAME("the last before until", made_at(39), "3");
    end();
    schedule(says("n 0 0", each_10(5, 2, true)));
    SAME("too old", made_at(60016), "");
    SAME("it is over", show(ask("EXISTS s:{q}:due s:{q}:jobs")), "0");
    end();
}

Test(calendar, ends_with_the_last_of_all_its_moments)
{
    schedule(says("l 0 0", each_10(5, 2, true)));
    SAME("first", made_at(5), "1");
    SAME("last", made_at(15), "2");
    SAME("it is over", show(ask("EXISTS s:{q}:due")), "0");
    end();
}

/* ---- none left ---- */
Test(calendar, without_moments_looks_for_some_each_minute)
{
    schedule(says("l 0 0", each_10(5, 1, false)));
    SAME("the last that is known", made_at(5), "1 few T+60005");
    attempt_is("'2 U+5001 - 1 10 U+5000 T+5 n=1,a=0 '");
    SAME("none", made_at(60005), "few T+120005");
    SAME("none", made_at(120010), "few T+180010");
    attempt_is("'2 U+5001 - 1 10 U+5000 T+5 n=1,a=0 '");
    cr_assert_eq(ask("PEXPIRETIME s:{q}:t:a")->integer, T + 180009);
    end();
}

Test(calendar, that_is_scheduled_without_a_moment_to_come_looks_for_some)
{
    now_at(100);
    RUN("schedule", text("0 a first 0 '%s'", record(says("l 0 0", each_10(5, 2, false)))),
        "[U+100000 T+60100]");
    attempt_is("'2 0 - 0 10 0 T+100 n=0,a=0 '");
    now_at(105);
    refill(says("l 0 0", each_10(5, 2, false)), each_10(105, 2, false), "[U+105000 T+105]");
    attempt_is("'2 0 - 0 10 0 T+100 n=0 '");
    SAME("its first", made_at(105), "1 few T+115");
    end();
}

Test(calendar, goes_on_when_it_has_moments_again)
{
    const char *series = says("a 0 0", each_10(5, 1, false));

    schedule(series);
    SAME("the last that is known", made_at(5), "1 few T+60005");
    now_at(30);
    heard();
    refill(series, each_10(15, 3, true), "[U+30000 T+15]");
    HEARD("0 '0 a'");
    attempt_is("'2 U+5001 - 1 10 U+5000 T+5 n=1 '");
    SAME("what has passed", made_at(30), "2");
    SAME("what has passed", made_at(30), "3");
    SAME("what was to come", made_at(35), "4");
    SAME("it is over", show(ask("EXISTS s:{q}:due")), "0");
    end();
}

Test(calendar, that_gets_no_moment_more_ends)
{
    const char *series = says("l 0 0", each_10(5, 1, false));

    schedule(series);
    SAME("the last that is known", made_at(5), "1 few T+60005");
    refill(series, "0", "[U+5000 T+5]");
    SAME("none", made_at(6), "");
    SAME("it is over", show(ask("EXISTS s:{q}:due")), "0");
    SAME("its record", show(ask("HEXISTS s:{q}:jobs a")), "0");
    end();
}

/* What doctor says of it. */
static void dry_is(const char *expected)
{
    const redisReply *r = run("check", "0 attempts 0 100");

    SAME("check", r->elements == 6 ? show(r->element[5]) : "", expected);
    cr_assert_leq(r->elements, 6);
}

Test(calendar, without_moments_is_found_by_check_until_it_has_some_or_has_ended)
{
    const char *series = says("l 0 0", each_10(5, 2, false));

    schedule(series);
    dry_is("");
    SAME("first", made_at(5), "1 few T+15");
    dry_is("");
    SAME("the last that is known", made_at(15), "2 few T+60015");
    dry_is("['a' 'dry' 'n']");
    RUN("mend", "0 a", "[U+15000 '']");
    refill(series, each_10(25, 2, false), "[U+15000 T+25]");
    dry_is("");

    SAME("the last that is known", made_at(35), "4 few T+60035");
    dry_is("['a' 'dry' 'n']");
    refill(says("l 0 0", each_10(25, 2, false)), "0", "[U+35000 T+35]");
    dry_is("");
    end();
}

Test(calendar, without_moments_is_not_found_by_check_where_it_does_not_wait)
{
    schedule(says("l 0 0", each_10(5, 1, false)));
    SAME("the last that is known", made_at(5), "1 few T+60005");
    given("kill", "0 a bad");
    dry_is("");
    end();
    given("schedule", "0 job +0 0 " REC);
    given("claim", "0 me 100 0 job");
    given("retry", "0 me job U+1 5 a=0");
    dry_is("");
    end();
}

/* ---- refill ---- */
Test(calendar, gets_moments_in_the_place_of_those_that_it_has)
{
    const char *series = says("lo 0 7", each_10(5, 2, false));

    schedule(series);
    refill(series, each_10(5, 16, true), "[U T+5]");
    series_is(says("lo 0 7", each_10(5, 16, true)));
    HEARD("");
    refill(says("lo 0 7", each_10(5, 16, true)), "1", "[U T+5]");
    series_is("lo 0 7 c 1");
    end();
}

/* Who scheduled it went by a clock that is ahead. */
Test(calendar, that_has_had_no_moment_yet_begins_earlier_if_it_is_given_an_earlier_one)
{
    const char *series = says("l 0 0", each_10(500, 2, false));

    schedule(series);
    score_is("'T+500'");
    heard();
    refill(series, each_10(5, 2, false), "[U T+5]");
    HEARD("0 'T+5 a'");
    score_is("'T+5'");
    cr_assert_eq(ask("PEXPIRETIME s:{q}:t:a")->integer, T + 4);
    refill(says("l 0 0", each_10(5, 2, false)), each_10(15, 2, false), "[U T+5]");
    refill(says("l 0 0", each_10(15, 2, false)), each_10(5, 9, false), "[U T+5]");
    given("pause", "0 a 1");
    refill(says("l 0 0", each_10(5, 9, false)), each_10(4, 9, false), "[U T+4]");
    given("pause", "0 a 0");
    SAME("first", made_at(4), "1");
    refill(says("l 0 0", each_10(4, 9, false)), each_10(6, 9, false), "[U+4000 T+14]");
    end();
}

Test(calendar, that_says_something_else_by_now_stays_as_it_is)
{
    const char *series = says("l 0 0", each_10(5, 2, false));

    refill(series, each_10(5, 3, false), "[U 'ENOENT']");
    KEYS("");
    schedule(series);
    refill(says("a 0 0", each_10(5, 2, false)), each_10(5, 3, false), "[U 'ENOENT']");
    RUN("refill", text("0 a '%s' 'n other' %s", series, each_10(5, 3, false)), "[U 'ENOENT']");
    series_is(series);
    given("kill", "0 a bad");
    refill(series, each_10(5, 3, false), "[U 'ENOENT']");
    end();
    given("schedule", "0 a +5 0 '\\02\\00\\0cS\\0al 0 0 e 10'");
    RUN("refill", "0 a 'l 0 0 e 10' '' 20", "[U 'ENOENT']");
    end();
}

Test(calendar, takes_nothing_but_moments)
{
    static const char *const bad[] = {"''", "x", "1,x", ",1", "-1", "'1 2'"};
    const char *series = says("l 0 0", each_10(5, 2, false));

    schedule(series);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        refill(series, bad[i], "[U 'EINVAL']");
    }
    refill(series, text("%0256d", 1), "[U 'EINVAL']");
    refill(series, text("%0255d", 1), "[U T+5]");
    end();
}

Test(calendar, refill_answers_for_each_and_stops_behind_256_kib)
{
    const char *series = says("l 0 0", each_10(5, 2, false));
    const char *call = "0";
    const char *longer = "local record = redis.call('HGET', KEYS[1], ARGV[1]) "
                         "redis.call('HSET', KEYS[1], ARGV[1], record .. string.rep('x', 100000))";

    for (int i = 0; i < 4; i++) {
        given("schedule", text("0 %c first 0 '%s'", 'a' + i, record(series)));
        call = text("%s %c '%s' 'n r' %s", call, 'a' + i, series, each_10(5, 3, false));

        ask("EVAL %s 1 s:{q}:jobs %s", longer, text("%c", 'a' + i));
    }
    RUN("refill", call, "[U T+5 T+5 T+5]");
    end();
}

/* ---- other calls ---- */
Test(calendar, that_is_replaced_goes_on_counting_with_the_new_moments)
{
    schedule(says("l 0 0", each_10(5, 1, false)));
    SAME("first", made_at(5), "1 few T+60005");
    schedule(says("l 0 0", each_10(7, 10, false)));
    score_is("'T+7'");
    attempt_is("'2 U+5001 - 1 10 U+5000 T+5 n=1 '");
    SAME("second", made_at(7), "2");
    schedule(says("l 0 0", each_10(5, 1, false)));
    attempt_is("'2 U+7001 - 2 10 U+7000 T+7 n=2,a=0 '");
    end();
}

Test(calendar, that_is_rescheduled_has_its_next_moment_then)
{
    schedule(says("l 0 0", each_10(5, 10, false)));
    given("reschedule", "0 a +12 0");
    SAME("first", made_at(12), "1");
    score_is("'T+15'");
    end();
}

/* ---- pause ---- */
static void pause_is(const char *is_paused, const char *expected)
{
    RUN("pause", text("0 a %s", is_paused), expected);
}

Test(calendar, of_a_series_that_is_paused_the_moments_pass)
{
    given("schedule", "0 a +5 0 '\\02\\00\\0cS\\0al 0 0 e 10'");
    pause_is("1", "[U ['a' 1 T+5 '2 0 - 0 10 0 T+5 n=0,z=1 ' '\\02\\00\\0cS\\0al 0 0 e 10']]");
    SAME("first", made_at(5), "");
    attempt_is("'2 0 - 0 10 0 T+5 n=1,z=1 '");
    score_is("'T+15'");
    pause_is("1", "[U+5000 ['a' 1 T+15 '2 0 - 0 10 0 T+5 n=1,z=1 ' "
                  "'\\02\\00\\0cS\\0al 0 0 e 10']]");
    pause_is("0", "[U+5000 ['a' 1 T+15 '2 0 - 0 10 0 T+5 n=1 ' '\\02\\00\\0cS\\0al 0 0 e 10']]");
    SAME("second", made_at(15), "2");
    end();
}

Test(calendar, that_is_paused_stays_so_when_it_is_replaced_and_when_it_is_dry)
{
    schedule(says("l 0 0", each_10(5, 2, false)));
    given("pause", "0 a 1");
    schedule(says("l 0 0", each_10(5, 1, false)));
    SAME("the last that is known", made_at(5), "few T+60005");
    attempt_is("'2 0 - 0 10 0 T+5 n=1,z=1,a=0 '");
    given("pause", "0 a 0");
    attempt_is("'2 0 - 0 10 0 T+5 n=1,a=0 '");
    end();
}

Test(calendar, only_a_series_that_waits_is_paused)
{
    given("schedule", "0 job +5 0 '" REC "'");
    given("schedule", "0 a +5 0 '\\02\\00\\0cS\\0al 0 0 e 10'");
    given("kill", "0 a bad");
    RUN("pause", "0 none 1 job 1 a 1", "[U 'ENOENT' 'EINVAL' 'ENOENT']");
    end();
}

Test(calendar, that_is_paused_twice_in_a_call_is_as_the_last_says)
{
    given("schedule", "0 a +5 0 '\\02\\00\\0cS\\0al 0 0 e 10'");
    given("pause", "0 a 1 a 0");
    attempt_is("'2 0 - 0 10 0 T+5 n=0 '");
    end();
}
