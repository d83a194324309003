/* SPDX-License-Identifier: MIT */
/* What a table of moments does not show: the limits, wrong rules, and bugs of others. */
#include <criterion/criterion.h>
#include <lapse_cron.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAY_MS INT64_C(86400000)
#define BERLIN_GAP INT64_C(1774746000000) /* 2026-03-29T03:00+02:00; 02:00 to 02:59 are missing */

/* 2900-01-01 */
#define END_MS INT64_C(29348006400000)

Test(next, in_a_gap_is_not_an_hour_late_as_with_cron_parser)
{
    int64_t ms = lapse_cron_next("30 2 * * * Europe/Berlin", BERLIN_GAP - DAY_MS / 2);

    cr_expect_eq(ms, BERLIN_GAP, "at 03:00; cron-parser 5.10 says 03:30");
}

Test(next, in_a_gap_is_one_run_and_not_two_as_with_croniter)
{
    int64_t ms = lapse_cron_next("30 2 * * * Europe/Berlin", BERLIN_GAP);

    cr_expect_eq(ms, BERLIN_GAP + DAY_MS - 1800 * INT64_C(1000), "02:30 of the next day");
}

Test(next, is_later_than_the_moment_given_to_the_millisecond)
{
    static const char rule[] = "0 0 * * *";

    cr_expect_eq(lapse_cron_next(rule, DAY_MS - 1), DAY_MS);
    cr_expect_eq(lapse_cron_next(rule, DAY_MS), 2 * DAY_MS);
    cr_expect_eq(lapse_cron_next(rule, DAY_MS + 1), 2 * DAY_MS);
    cr_expect_eq(lapse_cron_next(rule, 2 * DAY_MS - 1), 2 * DAY_MS);
}

Test(next, of_what_is_before_1970_is_the_first_after_its_beginning)
{
    static const int64_t early[] = {0, -1, -1000, -DAY_MS, INT64_MIN};

    for (size_t i = 0; i < sizeof early / sizeof *early; i++) {
        cr_expect_eq(lapse_cron_next("* * * * *", early[i]), 60000);
        cr_expect_eq(lapse_cron_next("0 0 1 1 *", early[i]), 365 * DAY_MS);
        cr_expect_eq(lapse_cron_next("0 * * * * Asia/Kolkata", early[i]), 1800000);
        cr_expect_eq(lapse_cron_next("0 22 * * * America/New_York", early[i]), 3 * 3600000);
    }
}

Test(next, ends_with_the_year_2899)
{
    static const int64_t late[] = {END_MS - 60000, END_MS - 1, END_MS, END_MS + DAY_MS, INT64_MAX};

    cr_expect_eq(lapse_cron_next("* * * * *", END_MS - 60001), END_MS - 60000);
    cr_expect_eq(lapse_cron_next("59 23 * * *", END_MS - DAY_MS), END_MS - 60000);

    for (size_t i = 0; i < sizeof late / sizeof *late; i++) {
        cr_expect_eq(lapse_cron_next("* * * * *", late[i]), 0);
        cr_expect_eq(lapse_cron_next("59 23 * * *", late[i]), 0);
        cr_expect_eq(lapse_cron_next("59 23 * * * Europe/Dublin", late[i]), 0);
        cr_expect_eq(lapse_cron_next("59 * * * * Pacific/Apia", late[i]), 0);
    }
}

Test(next, of_a_wrong_rule_is_minus_one_whatever_the_moment)
{
    static const char *const wrong[] = {NULL, "", "* * * *", "60 * * * *", "* * * * * Not/There"};
    static const int64_t moments[] = {INT64_MIN, -1, 0, DAY_MS, INT64_MAX};

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        for (size_t m = 0; m < sizeof moments / sizeof *moments; m++) {
            cr_expect_eq(lapse_cron_next(wrong[i], moments[m]), -1, "%s", wrong[i]);
        }
    }
}

Test(next, does_not_ask_for_the_zone_of_the_process)
{
    cr_assert_eq(setenv("TZ", "Asia/Tokyo", 1), 0);
    cr_expect_eq(lapse_cron_next("0 0 * * *", DAY_MS), 2 * DAY_MS);
    cr_expect_eq(lapse_cron_next("0 0 * * * UTC", DAY_MS), 2 * DAY_MS);
    cr_expect_eq(lapse_cron_next("0 0 * * * Etc/UTC", DAY_MS), 2 * DAY_MS);
    cr_expect_str_eq(getenv("TZ"), "Asia/Tokyo");
}

/* ---- threads ---- */
enum { THREADS = 8, ROUNDS = 200 };

static void *ask(void *arg)
{
    int *wrong = arg;

    for (int i = 0; i < ROUNDS; i++) {
        *wrong += lapse_cron_next("30 2 * * * Europe/Berlin", BERLIN_GAP - 1) != BERLIN_GAP;
        *wrong += lapse_cron_check("30 2 * * * Not/There", NULL, 0) != LAPSE_EINVAL;
    }
    return NULL;
}

Test(next, is_for_many_threads_at_once)
{
    pthread_t threads[THREADS];
    int wrong[THREADS] = {0};

    for (int i = 0; i < THREADS; i++) {
        cr_assert_eq(pthread_create(&threads[i], NULL, ask, &wrong[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        cr_expect_eq(wrong[i], 0);
    }
}
