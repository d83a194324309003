/* SPDX-License-Identifier: MIT */
/* Days of the Gregorian calendar, counted from 1970-01-01. */
#ifndef LAPSE_CALENDAR_H
#define LAPSE_CALENDAR_H
#include <stdint.h>

enum { MINUTE_S = 60, HOUR_S = 3600, DAY_S = 86400 };

struct date {
    int64_t year;
    int month, day; /* from 1 */
};

struct date calendar_date(int64_t day);
int64_t calendar_day(struct date date);
int calendar_month_days(int64_t year, int month);
/* 0 is Sunday. */
int calendar_weekday(int64_t day);

/* How often b is in a, rounded down, also below 0. */
int64_t calendar_floor(int64_t a, int64_t b);

#endif
