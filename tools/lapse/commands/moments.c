/* SPDX-License-Identifier: MIT */
#include "commands/moments.h"
#include "cli/message.h"
#include "cli/print.h"
#include "cli/values.h"
#include "base/clock.h"
#include <lapse_cron.h>
#include <stdio.h>
#include <string.h>

enum { REASON_BYTES = 128 };

/* ---- options ---- */
static int add_stage(const struct opt *o, struct moment_options *m, char *value)
{
    struct lapse_series *s = &m->series;
    int64_t before_ms = s->n_stages ? m->stages_ms[s->n_stages - 1] : 0;
    int64_t ms;

    if (s->n_stages == SERIES_STAGES_MAX) {
        return usage_error("--stage", value, "is one too many: at most 32 are allowed");
    }
    if (set_duration(o, value, &ms)) {
        return USAGE;
    }
    if (ms <= before_ms) {
        return usage_error("--stage", value,
                           "must be later than the one before, and than the due time");
    }

    m->stages_ms[s->n_stages++] = ms;
    return 0;
}

int set_stages(const struct opt *o, char *value, void *field)
{
    struct moment_options *m = field;

    m->stage = value;
    m->series.stages_ms = m->stages_ms;
    for (char *at = value; at;) {
        char *comma = strchr(at, ',');

        if (comma) {
            *comma++ = '\0';
        }
        if (add_stage(o, m, at)) {
            return USAGE;
        }
        at = comma;
    }
    return 0;
}

int set_every(const struct opt *o, char *value, void *field)
{
    struct moment_options *m = field;
    int rc = set_duration(o, value, &m->series.every_ms);

    m->every = value;
    if (!rc && m->series.every_ms < SERIES_EVERY_MIN_MS) {
        return usage_error("--every", value, "must be at least 100ms");
    }
    return rc;
}

int set_cron(const struct opt *o, char *value, void *field)
{
    struct moment_options *m = field;

    (void)o;
    m->cron = value;
    return 0;
}

int set_zone(const struct opt *o, char *value, void *field)
{
    struct moment_options *m = field;

    (void)o;
    m->zone = value;
    return 0;
}

int set_until(const struct opt *o, char *value, void *field)
{
    struct moment_options *m = field;
    int rc = set_moment(o, value, &m->series.until_ms);

    m->until = m->other = value;
    if (!rc && m->series.until_ms <= 0) {
        return usage_error("--until", value, "must be after 1970");
    }
    return rc;
}

int set_times(const struct opt *o, char *value, void *field)
{
    struct moment_options *m = field;

    m->other = value;
    return set_count(o, value, &m->series.times);
}

int set_catch_up(const struct opt *o, char *value, void *field)
{
    struct moment_options *m = field;

    (void)o;
    m->other = value;
    for (enum lapse_catch_up i = LAPSE_CATCH_UP_LATEST; i <= LAPSE_CATCH_UP_NONE; i++) {
        if (strcmp(value, catch_up_name(i)) == 0) {
            m->series.catch_up = i;
            return 0;
        }
    }
    return usage_error("--catch-up", value, "must be latest, all or none");
}

int set_no_overlap(const struct opt *o, char *value, void *field)
{
    struct moment_options *m = field;

    (void)o;
    (void)value;
    m->other = "";
    m->series.no_overlap = 1;
    return 0;
}

/* ---- what they come to ---- */
#ifdef LAPSE_WITH_CRON

static int check_cron(const struct moment_options *m, struct lapse_due due)
{
    char reason[REASON_BYTES];
    int64_t now_ms = clock_wall_us() / 1000;
    int64_t from_ms = due.at_ms ? due.at_ms - 1 : now_ms + due.delay_ms;

    if (lapse_cron_check(m->rule, reason, sizeof reason)) {
        return usage_error("--cron", m->rule, reason);
    }

    int64_t first_ms = lapse_cron_next(m->rule, from_ms > now_ms ? from_ms : now_ms);
    if (first_ms == 0) {
        return usage_error("--cron", m->rule, "has no moment that is to come");
    }
    if (m->until && first_ms > m->series.until_ms) {
        return usage_error("--until", m->until, "is before the first moment of --cron");
    }
    return 0;
}

#else

static int check_cron(const struct moment_options *m, struct lapse_due due)
{
    (void)due;
    return usage_error("--cron", m->rule,
                       "needs GLib, without which this lapse was built; it knows no cron lines");
}

#endif

static int read_cron(struct moment_options *m, struct lapse_due due)
{
    const char *space = m->zone ? " " : "";
    const char *zone = m->zone ? m->zone : "";
    int len = snprintf(m->rule, sizeof m->rule, "%s%s%s", m->cron, space, zone);

    if (len >= (int)sizeof m->rule) {
        return usage_error("--cron", m->cron, "is too long: with its zone it may have 200 bytes");
    }

    m->series.calendar = "cron";
    m->series.rule = m->rule;
    return check_cron(m, due);
}

static int check_moments(const struct moment_options *m, const struct lapse_spec *spec)
{
    if (!!m->stage + !!m->every + !!m->cron > 1) {
        return usage_errorf("--stage, --every and --cron: a series has only one of them");
    }
    if (spec->on_conflict >= LAPSE_EARLIER) {
        return usage_errorf("--on-conflict earlier, later and debounce only move a due time, and "
                            "a series has several: use replace");
    }
    if (spec->id && strlen(spec->id) > SERIES_ID_MAX) {
        return usage_errorf("the id of a series may have at most 238 characters, and this one has "
                            "%zu: those of its jobs are longer",
                            strlen(spec->id));
    }
    if (m->until && spec->due.at_ms > m->series.until_ms) {
        return usage_errorf("--until %s is before the first moment, --at: there would be none",
                            printable(m->until));
    }
    return 0;
}

int moments_read(struct moment_options *m, struct lapse_spec *spec)
{
    if (m->zone && !m->cron) {
        return usage_errorf("--tz is the zone of a cron line: give --cron, too");
    }
    if (!m->stage && !m->every && !m->cron) {
        return m->other ? usage_errorf("--until, --times, --catch-up and --no-overlap are of a "
                                       "series: give --stage, --every or --cron, too")
                        : 0;
    }

    spec->series = &m->series;
    int rc = check_moments(m, spec);
    return !rc && m->cron ? read_cron(m, spec->due) : rc;
}

size_t moments_bytes(const struct lapse_spec *spec)
{
    char text[SERIES_TEXT_MAX];
    struct moments longest = {.n = MOMENTS_MAX, .is_whole = true};
    size_t calendar = 0;

    if (!spec->series) {
        return 0;
    }
    if (spec->series->calendar) {
        calendar = 3 + strlen(spec->series->calendar) + 1 + strlen(spec->series->rule);
    }
    for (unsigned i = 0; i < longest.n; i++) {
        longest.ms[i] = 99999999999999;
    }
    return 3 + series_put(text, spec->series, &longest) + calendar + 3 + SERIES_OF_MAX;
}
