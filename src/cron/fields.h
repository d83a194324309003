/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_FIELDS_H
#define LAPSE_FIELDS_H
#include "base/span.h"

/* The five fields of a cron line: bit N is set where N is meant. */
struct fields {
    uint64_t minutes;
    uint32_t hours, days, months; /* days and months from 1 */
    uint32_t weekdays;            /* 0 is Sunday; 7 is not used */
    bool any_hour;                /* the field begins with *; any_day: one of the two does */
    bool any_day;
};

/* What is wrong with a rule, and where. */
struct fault {
    size_t column; /* from 1 */
    char text[96];
};

/* Reads five fields from the beginning of the line, and drops them from rest, which is its rest.
 * false: *fault says why. */
bool fields_read(struct fields *f, const char *line, struct span *rest, struct fault *fault);
/* Drops blanks, and the word behind them, which may be empty. */
struct span fields_word(struct span *rest);
/* Says what is wrong at a place of the line; false. */
bool fields_fail(struct fault *fault, const char *line, const char *at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The first minute at or after this reading of a clock; readings are seconds, counted as if the
 * clock were UTC's. INT64_MAX: there is none before the end. */
int64_t fields_next(const struct fields *f, int64_t reading, int64_t end);

#endif
