/* SPDX-License-Identifier: MIT */
/* The calls of lapse_cron.h: a rule is five fields and a zone.
 *
 * Two ways lead to its next moment. Where the hour begins with * the minutes that pass are looked
 * at, stretch by stretch between the shifts of the zone. Otherwise the clock's readings are: the
 * first one that is meant and was not reached yet is due when the clock reaches it. That by itself
 * makes one moment of all minutes that a shift leaps over, and takes the first of two. */
#include "cron/calendar.h"
#include "cron/fields.h"
#include "cron/zone.h"
#include <lapse_cron.h>
#include <stdio.h>

struct rule {
    struct fields fields;
    struct zone zone;
};

enum { SECOND_MS = 1000 };

/* ---- reading ---- */
static const struct {
    const char *name, *fields;
} shorthands[] = {
    {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"},
    {"@weekly", "0 0 * * 0"}, {"@daily", "0 0 * * *"},    {"@midnight", "0 0 * * *"},
    {"@hourly", "0 * * * *"},
};

static bool rule_shorthand(struct fields *f, const char *text, struct span *rest,
                           struct fault *fault)
{
    struct span word = fields_word(rest);

    for (size_t i = 0; i < sizeof shorthands / sizeof *shorthands; i++) {
        if (span_is(word, shorthands[i].name)) {
            struct span fields = span_of(shorthands[i].fields);
            return fields_read(f, shorthands[i].fields, &fields, fault);
        }
    }
    return fields_fail(
        fault, text, word.at,
        "must be @hourly, @daily, @midnight, @weekly, @monthly, @yearly or @annually");
}

static bool rule_zone(struct zone *z, const char *text, struct span *rest, struct fault *fault)
{
    struct span name = fields_word(rest);
    struct span more = *rest;
    struct span word = fields_word(&more);

    if (word.len) {
        return fields_fail(fault, text, word.at, "nothing may follow the zone");
    }

    switch (zone_open(z, name)) {
    case ZONE_OK: return true;
    case ZONE_NO_NAME:
        return fields_fail(fault, text, name.at,
                           "a zone is a letter and up to 63 letters, digits, _ + - /");
    default: return fields_fail(fault, text, name.at, "this machine knows no such zone");
    }
}

/* Only after true it is to be closed. */
static bool rule_open(struct rule *r, const char *text, struct fault *fault)
{
    struct span rest = span_of(text);
    struct span ahead = rest;
    struct span word = fields_word(&ahead);

    if (span_starts(word, "@")) {
        return rule_shorthand(&r->fields, text, &rest, fault) &&
               rule_zone(&r->zone, text, &rest, fault);
    }
    return fields_read(&r->fields, text, &rest, fault) && rule_zone(&r->zone, text, &rest, fault);
}

static void rule_close(struct rule *r)
{
    zone_close(&r->zone);
}

/* ---- searching, in seconds ---- */
static int64_t rule_next_reading(const struct rule *r, int64_t reading)
{
    return fields_next(&r->fields, reading, ZONE_END_S);
}

/* The clock's readings. */
static int64_t rule_next_by_clock(const struct rule *r, int64_t after_s)
{
    int64_t reading = rule_next_reading(r, zone_highest(&r->zone, after_s) + 1);
    return reading == INT64_MAX ? INT64_MAX : zone_reaches(&r->zone, reading);
}

/* The minutes that pass. A stretch without any is left for the next one, or for one where the clock
 * may show a minute that is meant. */
static int64_t rule_next_by_time(const struct rule *r, int64_t after_s)
{
    int64_t t = after_s + 1;

    while (t < ZONE_END_S) {
        struct stretch s = zone_stretch(&r->zone, t);
        int64_t reading = rule_next_reading(r, t + s.offset_s);
        int64_t ahead;

        if (reading == INT64_MAX || reading - s.offset_s < s.until_s) {
            return reading == INT64_MAX ? INT64_MAX : reading - s.offset_s;
        }

        t = s.until_s;
        ahead = rule_next_reading(r, t - ZONE_FARTHEST_S);
        if (ahead == INT64_MAX || ahead - ZONE_FARTHEST_S > t) {
            t = ahead == INT64_MAX ? INT64_MAX : ahead - ZONE_FARTHEST_S;
        }
    }
    return INT64_MAX;
}

static int64_t rule_next(const struct rule *r, int64_t after_s)
{
    return r->fields.any_hour ? rule_next_by_time(r, after_s) : rule_next_by_clock(r, after_s);
}

/* ---- the calls ---- */
int64_t lapse_cron_next(const char *rule, int64_t after_ms)
{
    int64_t after_s = after_ms < 0 ? 0 : after_ms / SECOND_MS;
    int64_t next_s = INT64_MAX;
    struct fault fault;
    struct rule r;

    if (!rule || !rule_open(&r, rule, &fault)) {
        return -1;
    }

    if (after_s < ZONE_END_S) {
        next_s = rule_next(&r, after_s);
    }
    rule_close(&r);

    return next_s < ZONE_END_S ? next_s * SECOND_MS : 0;
}

int64_t lapse_cron_calendar(const char *rule, int64_t after_ms, void *unused)
{
    (void)unused;
    return lapse_cron_next(rule, after_ms);
}

int lapse_cron_check(const char *rule, char *reason, size_t size)
{
    struct fault fault = {1, "there is no rule"};
    struct rule r;

    if (rule && rule_open(&r, rule, &fault)) {
        rule_close(&r);
        return 0;
    }

    if (size) {
        snprintf(reason, size, "column %zu: %s", fault.column, fault.text);
    }
    return LAPSE_EINVAL;
}
