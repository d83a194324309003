/* SPDX-License-Identifier: MIT */
/* The fields of a cron line: from text, and to the next minute that they mean. A month is looked at
 * as a whole, by a bit for each day, so that even a rule without any moment is known as such in a
 * tenth of a millisecond. */
#include "cron/fields.h"
#include "cron/calendar.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct kind {
    const char *name;
    int min, max;
    int last;          /* of * */
    const char *rule;  /* what a value must be */
    const char *names; /* of min and those after it, three letters each; NULL: none */
};

enum { MINUTE, HOUR, DAY, MONTH, WEEKDAY, N_FIELDS };

enum { NAME_LETTERS = 3, WEEK = 7, HOUR_MINUTES = 60, DAY_MINUTES = 1440 };

static const struct kind kinds[N_FIELDS] = {
    [MINUTE] = {"minute", 0, 59, 59, "0 to 59", NULL},
    [HOUR] = {"hour", 0, 23, 23, "0 to 23", NULL},
    [DAY] = {"day of month", 1, 31, 31, "1 to 31", NULL},
    [MONTH] = {"month", 1, 12, 12, "1 to 12 or jan to dec", "janfebmaraprmayjunjulaugsepoctnovdec"},
    [WEEKDAY] = {"day of week", 0, 7, 6, "0 to 7 or sun to sat", "sunmontuewedthufrisat"},
};

/* A field that is being read. */
struct reader {
    const struct kind *kind;
    struct span rest;
    const char *line;
    struct fault *fault;
};

bool fields_fail(struct fault *fault, const char *line, const char *at, const char *format, ...)
{
    va_list args;

    fault->column = (size_t)(at - line) + 1;
    va_start(args, format);
    vsnprintf(fault->text, sizeof fault->text, format, args);
    va_end(args);
    return false;
}

/* ---- reading ---- */
static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool is_alphanumeric(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

struct span fields_word(struct span *rest)
{
    struct span word;

    while (rest->len && is_blank(*rest->at)) {
        *rest = (struct span){rest->at + 1, rest->len - 1};
    }

    word = (struct span){rest->at, 0};
    while (word.len < rest->len && !is_blank(word.at[word.len])) {
        word.len++;
    }

    *rest = (struct span){rest->at + word.len, rest->len - word.len};
    return word;
}

/* -1: the field has no such name */
static int value_of_name(const struct kind *k, struct span name)
{
    int value = k->min;

    if (name.len != NAME_LETTERS || !k->names) {
        return -1;
    }

    for (const char *at = k->names; *at; at += NAME_LETTERS) {
        if (strncasecmp(name.at, at, NAME_LETTERS) == 0) {
            return value;
        }
        value++;
    }
    return -1;
}

static struct span reader_word(struct reader *r)
{
    struct span word = {r->rest.at, 0};

    while (word.len < r->rest.len && is_alphanumeric(word.at[word.len])) {
        word.len++;
    }
    r->rest = (struct span){r->rest.at + word.len, r->rest.len - word.len};
    return word;
}

static bool reader_value(struct reader *r, int *out)
{
    struct span word = reader_word(r);
    int64_t n = value_of_name(r->kind, word);

    if (n < 0 && !span_decimal(word, r->kind->max, &n)) {
        n = -1;
    }
    if (n < 0 || n < r->kind->min) {
        return fields_fail(r->fault, r->line, word.at, "%s must be %s", r->kind->name,
                           r->kind->rule);
    }

    *out = (int)n;
    return true;
}

static bool reader_step(struct reader *r, bool is_range, int *out)
{
    int most = r->kind->last - r->kind->min + 1;
    const char *slash = r->rest.at;
    struct span word;
    int64_t n = 0;

    *out = 1;
    if (!span_skip(&r->rest, "/")) {
        return true;
    }
    if (!is_range) {
        return fields_fail(r->fault, r->line, slash, "a step needs * or a range before it");
    }

    word = reader_word(r);
    if (!span_decimal(word, most, &n) || n == 0) {
        return fields_fail(r->fault, r->line, word.at, "the step of %s must be 1 to %d",
                           r->kind->name, most);
    }

    *out = (int)n;
    return true;
}

/* One of the list: *, a value or a range, and its step. */
static bool reader_element(struct reader *r, uint64_t *bits)
{
    const char *begin = r->rest.at;
    bool is_range = span_skip(&r->rest, "*");
    int first = r->kind->min;
    int last = r->kind->last;
    int step;

    if (!is_range) {
        if (!reader_value(r, &first)) {
            return false;
        }
        last = first;
        is_range = span_skip(&r->rest, "-");
        if (is_range && !reader_value(r, &last)) {
            return false;
        }
    }
    if (last < first) {
        return fields_fail(r->fault, r->line, begin, "the range ends before it begins%s",
                           r->kind == &kinds[WEEKDAY] ? "; a Sunday at its end is 7" : "");
    }
    if (!reader_step(r, is_range, &step)) {
        return false;
    }

    for (int n = first; n <= last; n += step) {
        *bits |= UINT64_C(1) << n;
    }
    return true;
}

static bool reader_list(struct reader *r, uint64_t *bits)
{
    do {
        if (!reader_element(r, bits)) {
            return false;
        }
    } while (span_skip(&r->rest, ","));

    if (r->rest.len) {
        return fields_fail(r->fault, r->line, r->rest.at, "unexpected character in %s",
                           r->kind->name);
    }
    return true;
}

bool fields_read(struct fields *f, const char *line, struct span *rest, struct fault *fault)
{
    uint64_t bits[N_FIELDS] = {0};
    bool any[N_FIELDS];

    for (int i = 0; i < N_FIELDS; i++) {
        struct span word = fields_word(rest);
        struct reader r = {&kinds[i], word, line, fault};

        if (word.len == 0) {
            return fields_fail(fault, line, word.at, "%s is missing", kinds[i].name);
        }
        if (!reader_list(&r, &bits[i])) {
            return false;
        }
        any[i] = *word.at == '*';
    }

    *f = (struct fields){
        .minutes = bits[MINUTE],
        .hours = (uint32_t)bits[HOUR],
        .days = (uint32_t)bits[DAY],
        .months = (uint32_t)bits[MONTH],
        .weekdays = (uint32_t)((bits[WEEKDAY] | bits[WEEKDAY] >> WEEK) & 0x7f),
        .any_hour = any[HOUR],
        .any_day = any[DAY] || any[WEEKDAY],
    };
    return true;
}

/* ---- searching ---- */
/* Of bits from first on, the lowest; -1: none is set */
static int lowest(uint64_t bits, int first)
{
    uint64_t rest = bits >> first << first;
    return rest ? __builtin_ctzll(rest) : -1;
}

/* The days of a month that are meant, a bit each. first is its first day. */
static uint64_t fields_month(const struct fields *f, int64_t first, int n_days)
{
    uint64_t all = (UINT64_C(1) << (n_days + 1)) - 2;
    uint64_t weekdays = 0;

    for (int week = 0; week <= 5; week++) {
        weekdays |= (uint64_t)f->weekdays << (week * WEEK);
    }
    weekdays = weekdays >> calendar_weekday(first) << 1;

    return all & (f->any_day ? f->days & weekdays : f->days | weekdays);
}

/* The first minute of a day at or after this one; -1: none */
static int fields_minute(const struct fields *f, int minute)
{
    int hour = minute / HOUR_MINUTES;
    int found = f->hours >> hour & 1 ? lowest(f->minutes, minute % HOUR_MINUTES) : -1;

    if (found >= 0) {
        return hour * HOUR_MINUTES + found;
    }

    hour = lowest(f->hours, hour + 1);
    return hour < 0 ? -1 : hour * HOUR_MINUTES + lowest(f->minutes, 0);
}

int64_t fields_next(const struct fields *f, int64_t reading, int64_t end)
{
    int64_t minute = -calendar_floor(-reading, MINUTE_S);
    int64_t today = calendar_floor(minute, DAY_MINUTES);
    int today_minute = fields_minute(f, (int)(minute - today * DAY_MINUTES));
    struct date date = calendar_date(today_minute < 0 ? today + 1 : today);
    int64_t end_day = calendar_floor(end, DAY_S);

    for (int64_t first = 0; first < end_day; date.day = 1) {
        int n_days = calendar_month_days(date.year, date.month);
        first = calendar_day((struct date){date.year, date.month, 1});

        if (f->months >> date.month & 1) {
            int day = lowest(fields_month(f, first, n_days), date.day);
            if (day >= 0) {
                int64_t at = first + day - 1;
                int of_day = at == today ? today_minute : fields_minute(f, 0);
                return (at * DAY_MINUTES + of_day) * MINUTE_S;
            }
        }

        date = calendar_date(first + n_days);
    }
    return INT64_MAX;
}
