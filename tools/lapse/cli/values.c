/* SPDX-License-Identifier: MIT */
/* Arguments into values: durations, times, counts and names, each with the rule that is printed
 * when it is broken. Numbers, durations and names are read by the library's own parsers, since
 * strtol() and strptime() take blanks, signs and half a word. */
#include "cli/values.h"
#include "base/quantity.h"
#include "base/span.h"
#include "cli/message.h"
#include "cli/print.h"
#include "job/keys.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

#define DURATION_RULE                                                                        \
    "must be a duration such as 250ms or 1h30m: numbers with d, h, m, s or ms, the largest " \
    "unit first; at most ten years"
#define TIME_RULE                                                                            \
    "must be a time such as 2026-12-24T18:00Z or 2026-12-24T18:00:30.5+02:00, with Z or an " \
    "offset, or @MS, milliseconds of Unix time"
#define UNIX_MAX_MS INT64_C(999999999999999) /* in the year 33658 */

int parse_duration(const char *text, int64_t *ms)
{
    int64_t n;

    if (!quantity_ms(text, &n) || n > TEN_YEARS_MS) {
        return -1;
    }
    *ms = n;
    return 0;
}

/* Takes exactly n digits, a number from min to max. */
static int take_digits(const char **text, size_t n, int min, int max, int *out)
{
    struct span digits = {*text, strnlen(*text, n)};
    int64_t value;

    if (digits.len < n || !span_decimal(digits, max, &value) || value < min) {
        return -1;
    }
    *text += n;
    *out = (int)value;
    return 0;
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
        return span_decimal(span_of(text + 1), UNIX_MAX_MS, ms) ? 0 : -1;
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
    int64_t n;

    if (!span_decimal(span_of(text), max, &n) || n == 0) {
        return -1;
    }
    *out = (unsigned)n;
    return 0;
}

int check_queue(const char *queue)
{
    if (!keys_queue_ok(span_of(queue))) {
        return usage_error("queue", queue, "must be 1 to 64 of A-Z a-z 0-9 . _ -");
    }
    return 0;
}

int check_queues(const char *pattern)
{
    struct span beginning;

    if (!keys_queue_ok(span_of(pattern)) && !keys_queues_of(span_of(pattern), &beginning)) {
        return usage_error("queue", pattern,
                           "must be 1 to 64 of A-Z a-z 0-9 . _ -, or the beginning of such names "
                           "and a star, which is the last character");
    }
    return 0;
}

bool is_pattern(const char *queue)
{
    return strchr(queue, '*');
}

int check_listener(const char *name)
{
    enum { DIGITS = 17 };
    struct span option = span_of(name);

    if (option.len > DIGITS && name[option.len - DIGITS] == '/') {
        option.len -= DIGITS;
    }
    if (!keys_name_ok(option)) {
        return usage_error("name", name,
                           "must be as lapse listeners shows it, or without its slash and digits: "
                           "1 to 64 printable ASCII characters, without space, { and }");
    }
    return 0;
}

int check_id(const char *id)
{
    if (!keys_id_ok(span_of(id))) {
        return usage_error("id", id,
                           "must be 1 to 255 printable ASCII characters, without space, { and }");
    }
    return 0;
}

int check_tag(const char *tag)
{
    if (!keys_tag_ok(span_of(tag))) {
        return usage_error("--tag", tag,
                           "must be 1 to 64 printable ASCII characters, without space, { and }");
    }
    return 0;
}

int check_batch(const char *name)
{
    if (!keys_id_ok(span_of(name))) {
        return usage_error("--batch", name,
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

int set_tag(const struct opt *o, char *value, void *field)
{
    (void)o;
    *(const char **)field = value;
    return check_tag(value);
}

int set_batch(const struct opt *o, char *value, void *field)
{
    (void)o;
    *(const char **)field = value;
    return check_batch(value);
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

int set_moment(const struct opt *o, char *value, void *field)
{
    if (parse_time(value, field)) {
        return option_error(o, value, TIME_RULE);
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

int set_state(const struct opt *o, char *value, void *field)
{
    (void)o;
    for (enum lapse_state s = LAPSE_WAITING; s <= LAPSE_KEPT; s++) {
        if (strcmp(value, state_name(s)) == 0) {
            *(int *)field = (int)s;
            return 0;
        }
    }

    return usage_error("--state", value, "must be waiting, running, dead or kept");
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
