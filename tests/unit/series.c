/* SPDX-License-Identifier: MIT */
#include "job/series.h"
#include <criterion/criterion.h>

static bool reads(const char *text)
{
    struct lapse_series s;
    int64_t stages[SERIES_STAGES_MAX];

    return series_read(span_of(text), &s, stages);
}

Test(series, says_its_moments_in_one_of_three_ways)
{
    static const char *const good[] = {"l 0 0 e 100",    "ao 5 6 s 1,2", "n 0 0 c 1,2,3",
                                       "no 0 0 c 1,2,0", "l 0 0 c 0",    "l 0 0 s 1"};
    static const char *const bad[] = {
        "",           "l",          "l 0",
        "l 0 0",      "l 0 0 e",    "l 0 0 e ",
        "x 0 0 e 1",  "lx 0 0 e 1", "loo 0 0 e 1",
        " 0 0 e 1",   "l x 0 e 1",  "l 0 x e 1",
        "l 0 0 e 0",  "l 0 0 e x",  "l 0 0 ee 1",
        "l 0 0 z 1",  "l 0 0 s x",  "l 0 0 s 1,",
        "l 0 0 c x",  "l 0 0 c 1,", "l 0 0 c 0,1",
        "l 0 0 c ,1", "l 0 0  1",   "l 0 0 c 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17",
    };

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        cr_expect(reads(good[i]), "%s", good[i]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_expect(!reads(bad[i]), "%s", bad[i]);
    }
}

Test(series, moments_are_those_of_a_calendar_alone)
{
    struct moments m;
    char text[MOMENTS_TEXT_MAX] = "";

    cr_expect(!series_moments(span_of("l 0 0 e 100"), &m));
    cr_expect(!series_moments(span_of("l 0 0 s 1,2"), &m));
    cr_expect(!series_moments(span_of(""), &m));
    cr_expect(!series_moments(span_of("l 0 0 c x"), &m));
    cr_assert(series_moments(span_of("l 0 0 c 5,6,0"), &m));
    cr_expect_eq(m.n, 2);
    cr_expect(m.is_whole);
    cr_expect_eq(moments_put(text, &m), 5);
    cr_expect_str_eq(text, "5,6,0");
    cr_assert(series_moments(span_of("l 0 0 c 7"), &m));
    cr_expect(!m.is_whole);
    cr_expect_eq(moments_put(text, &m), 1);
    m.n = 0;
    m.is_whole = true;
    cr_expect_eq(moments_put(text, &m), 1);
    cr_expect_str_eq(text, "0");
}

Test(series, calendar_is_a_name_and_a_rule)
{
    static const char *const bad[] = {"",     "cron", "cron ", " x",       "Cron x", "1cron x",
                                      "c! x", "{ x",  "c \n",  "c \x7f x", "\x60 x"};
    struct span name;
    struct span rule;

    cr_assert(calendar_read(span_of("cron_2- 0 9 * * *"), &name, &rule));
    cr_expect(span_is(name, "cron_2-"));
    cr_expect(span_is(rule, "0 9 * * *"));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_expect(!calendar_read(span_of(bad[i]), &name, &rule), "%s", bad[i]);
    }
}

Test(series, of_a_job_is_an_id_and_a_number)
{
    struct span id;
    int64_t n;

    cr_assert(series_of_read(span_of("daily 7"), &id, &n));
    cr_expect_eq(n, 7);
    cr_expect(!series_of_read(span_of("daily"), &id, &n));
    cr_expect(!series_of_read(span_of("daily 0"), &id, &n));
    cr_expect(!series_of_read(span_of("daily x"), &id, &n));
    cr_expect(!series_of_read(span_of("{} 1"), &id, &n));
}
