/* SPDX-License-Identifier: MIT */
/* Arguments into values: durations, times, counts and names, each with the rule that is printed
 * when it is broken. All is checked by hand, because strtol() and strptime() take blanks, signs and
 * half a word. */
#include "cli/values.h"
#include "cli/message.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

#define DURATION_RULE                                                                        \
    "must be a duration such as 250ms or 1h30m: numbers with d, h, m, s or ms, the largest " \
    "unit first; at most ten years"
#define TIME_RULE                                                                            \
    "must be a time such as 2026-12-24T18:00Z or 2026-12-24T18:00:30.5+02:00, with Z or an " \
    "offset, or @MS, milliseconds of Unix time"
enum { DAY_MS = 24 * 3600 * 1000 };

int parse_duration(const char *text, int64_t *ms)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {
        {"d", DAY_MS}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1},
    };
    size_t unit = 0;
    int64_t sum = 0;

    if (!*text) {
        return -1;
    }

    while (*text) {
        size_t digits = strspn(text, "0123456789");
        size_t letters;
        int64_t n = 0;
        if (!digits || digits > 12) {
            return -1;
        }
        for (; digits; digits--) {
            n = n * 10 + (*text++ - '0');
        }
        letters = strspn(text, "dhms");
        while (unit < sizeof units / sizeof *units &&
               (strlen(units[unit].name) != letters || strncmp(units[unit].name, text, letters))) {
            unit++;
        }
        if (unit == sizeof units / sizeof *units || n > TEN_YEARS_MS / units[unit].ms) {
            return -1;
        }
        sum += n * units[unit++].ms;
        text += letters;
    }

    if (sum > TEN_YEARS_MS) {
        return -1;
    }

    *ms = sum;

    return 0;
}

/* Takes exactly n digits, a number from min to max. */
static int take_digits(const char **text, int n, int min, int max, int *out)
{
    int value = 0;

    for (; n; n--, ++*text) {
        if (**text < '0' || **text > '9') {
            return -1;
        }
        value = value * 10 + (**text - '0');
    }

    *out = value;
    return value < min || value > max ? -1 : 0;
}

static int take_letter(const char **text, char want)
{
    return *(*text)++ == want ? 0 : -1;
}

static int parse_date(const char **text, int64_t *ms)
{
    int year;
    int month;
    int day;

    if (take_digits(text, 4, 1970, 9999, &year) || take_letter(text, '-') ||
        take_digits(text, 2, 1, 12, &month) || take_letter(text, '-') ||
        take_digits(text, 2, 1, 31, &day)) {
        return -1;
    }

    struct tm tm = {.tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day};
    *ms = (int64_t)timegm(&tm) * 1000;

    return tm.tm_mday == day ? 0 : -1; /* it makes 1 March of 30 February */
}

/* :SS and .fraction may be missing; a fraction of a millisecond counts as a whole one, so that
 * nothing is due early. */
static int parse_clock(const char **text, int64_t *ms)
{
    int h;
    int m;
    int s = 0;
    int scale = 100;
    int fraction = 0;
    bool is_finer = false;

    if (take_digits(text, 2, 0, 23, &h) || take_letter(text, ':') ||
        take_digits(text, 2, 0, 59, &m)) {
        return -1;
    }
    if (**text == ':') {
        ++*text;
        if (take_digits(text, 2, 0, 59, &s)) {
            return -1;
        }
    }

    if (**text == '.') {
        size_t n = strspn(++*text, "0123456789");
        if (!n) {
            return -1;
        }
        for (; n; n--, scale /= 10, ++*text) {
            fraction += (**text - '0') * scale;
            is_finer = is_finer || (!scale && **text != '0');
        }
    }

    *ms = ((h * 60 + m) * 60 + s) * INT64_C(1000) + fraction;
    if (is_finer) {
        ++*ms;
    }

    return 0;
}

static int parse_offset(const char *text, int64_t *ms)
{
    int h;
    int m;
    int sign = *text == '-' ? -1 : 1;

    *ms = 0;
    if (strcmp(text, "Z") == 0) {
        return 0;
    }
    if (*text != '+' && *text != '-') {
        return -1;
    }

    text++;
    if (take_digits(&text, 2, 0, 23, &h) || take_letter(&text, ':') ||
        take_digits(&text, 2, 0, 59, &m) || *text) {
        return -1;
    }

    *ms = INT64_C(60000) * sign * (h * 60 + m);

    return 0;
}

int parse_time(const char *text, int64_t *ms)
{
    int64_t date;
    int64_t clock;
    int64_t offset;

    if (*text == '@') {
        size_t n = strspn(++text, "0123456789");
        if (!n || n > 15 || text[n]) {
            return -1;
        }
        for (*ms = 0; *text; text++) {
            *ms = *ms * 10 + (*text - '0');
        }
        return 0;
    }

    if (parse_date(&text, &date) || take_letter(&text, 'T') || parse_clock(&text, &clock) ||
        parse_offset(text, &offset)) {
        return -1;
    }

    *ms = date + clock - offset;

    return 0;
}

int parse_count(const char *text, unsigned max, unsigned *out)
{
    size_t n = strspn(text, "0123456789");
    uint64_t value = 0;

    if (!n || n > 10 || text[n]) {
        return -1;
    }

    for (; *text; text++) {
        value = value * 10 + (uint64_t)(*text - '0');
    }

    if (!value || value > max) {
        return -1;
    }

    *out = (unsigned)value;

    return 0;
}

int check_queue(const char *queue)
{
    size_t n = strspn(queue, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");

    if (n < 1 || n > 64 || queue[n]) {
        return usage_error("queue", queue, "must be 1 to 64 of A-Z a-z 0-9 . _ -");
    }
    return 0;
}

int check_id(const char *id)
{
    size_t n = 0;

    while (id[n] > ' ' && id[n] <= '~' && id[n] != '{' && id[n] != '}') {
        n++;
    }

    if (n < 1 || n > 255 || id[n]) {
        return usage_error("id", id,
                           "must be 1 to 255 printable ASCII characters, without space, { and }");
    }
    return 0;
}

/* ---- setters ---- */
static int option_error(const struct opt *o, const char *value, const char *rule)
{
    char what[40];

    snprintf(what, sizeof what, "--%s", o->name);
    return usage_error(what, value, rule);
}

int set_text(const struct opt *o, char *value, void *field)
{
    (void)o;
    *(const char **)field = value;
    return 0;
}

int set_switch(const struct opt *o, char *value, void *field)
{
    (void)o;
    (void)value;
    *(bool *)field = true;
    return 0;
}

int set_count(const struct opt *o, char *value, void *field)
{
    if (parse_count(value, 1000000000, field)) {
        return option_error(o, value, "must be a whole number from 1 to 1000000000");
    }
    return 0;
}

int set_duration(const struct opt *o, char *value, void *field)
{
    if (parse_duration(value, field)) {
        return option_error(o, value, DURATION_RULE);
    }
    return 0;
}

int set_in(const struct opt *o, char *value, void *field)
{
    struct when *when = field;
    int64_t ms;

    if (parse_duration(value, &ms)) {
        return option_error(o, value, DURATION_RULE);
    }

    when->in = value;
    when->due = lapse_in(ms);
    return 0;
}

int set_at(const struct opt *o, char *value, void *field)
{
    struct when *when = field;
    struct timespec now;
    int64_t ms;
    int64_t ahead;

    if (parse_time(value, &ms)) {
        return option_error(o, value, TIME_RULE);
    }

    /* only to catch slips such as @SECONDS: Redis's clock decides when a job is due */
    clock_gettime(CLOCK_REALTIME, &now);
    ahead = ms - (int64_t)now.tv_sec * 1000;
    if (ahead > TEN_YEARS_MS || ahead < -TEN_YEARS_MS) {
        return option_error(o, value, "must be within ten years from now (@MS is in milliseconds)");
    }

    when->at = value;
    when->due = lapse_at(ms);

    return 0;
}

int64_t monotonic_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int check_when(const struct when *when)
{
    if (when->in && when->at) {
        return usage_errorf("--in '%s' and --at '%s': use only one of them", printable(when->in),
                            printable(when->at));
    }

    if (!when->in && !when->at) {
        return usage_errorf("missing option --in or --at, such as --in 30m or --at "
                            "2026-12-24T18:00Z");
    }

    return 0;
}
