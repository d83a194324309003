/* SPDX-License-Identifier: MIT */
/* Years are counted from 1 March here, so that the day that comes every fourth year is the last of
 * its year, and in eras of 400 years, which all have the same number of days. */
#include "cron/calendar.h"

enum {
    ERA_YEARS = 400,
    ERA_DAYS = 146097,
    EPOCH_DAY = 719468, /* 1970-01-01, from 0000-03-01 */
    MONTHS = 12,
    WEEK = 7,
    FIRST_WEEKDAY = 4, /* of 1970-01-01 */
};

int64_t calendar_floor(int64_t a, int64_t b)
{
    int64_t whole = a / b;
    return a % b < 0 ? whole - 1 : whole;
}

/* The days of a year before its month, where March is 0. */
static int days_before_month(int month)
{
    return (153 * month + 2) / 5;
}

struct date calendar_date(int64_t day)
{
    int64_t since = day + EPOCH_DAY;
    int64_t era = calendar_floor(since, ERA_DAYS);
    int64_t of_era = since - era * ERA_DAYS;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int of_year = (int)(of_era - (365 * year + year / 4 - year / 100));
    int month = (5 * of_year + 2) / 153;
    struct date date = {era * ERA_YEARS + year, month + 3, of_year - days_before_month(month) + 1};

    if (date.month > MONTHS) {
        date.month -= MONTHS;
        date.year++;
    }
    return date;
}

int64_t calendar_day(struct date date)
{
    int64_t year = date.month > 2 ? date.year : date.year - 1;
    int month = date.month > 2 ? date.month - 3 : date.month + 9;
    int64_t era = calendar_floor(year, ERA_YEARS);
    int64_t of_era = year - era * ERA_YEARS;
    int64_t before = 365 * of_era + of_era / 4 - of_era / 100;

    return era * ERA_DAYS + before + days_before_month(month) + date.day - 1 - EPOCH_DAY;
}

int calendar_month_days(int64_t year, int month)
{
    struct date first = {year, month, 1};
    struct date next = {year, month + 1, 1};

    if (month == MONTHS) {
        next = (struct date){year + 1, 1, 1};
    }
    return (int)(calendar_day(next) - calendar_day(first));
}

int calendar_weekday(int64_t day)
{
    int64_t since = day + FIRST_WEEKDAY;
    return (int)(since - calendar_floor(since, WEEK) * WEEK);
}
