/* SPDX-License-Identifier: MIT */
#include "job/series.h"
#include "job/keys.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const int64_t TEN_YEARS_MS = 315576000000;

/* In the order of enum lapse_catch_up. */
static const char catch_up_letters[] = "lan";

/* ---- what a schedule says ---- */
static bool stages_ok(const struct lapse_series *s)
{
    if (!s->stages_ms || s->n_stages == 0 || s->n_stages > SERIES_STAGES_MAX) {
        return false;
    }

    for (unsigned i = 0; i < s->n_stages; i++) {
        int64_t before_ms = i ? s->stages_ms[i - 1] : 0;
        if (s->stages_ms[i] <= before_ms || s->stages_ms[i] > TEN_YEARS_MS) {
            return false;
        }
    }
    return true;
}

static bool every_ok(const struct lapse_series *s)
{
    return s->every_ms >= SERIES_EVERY_MIN_MS && s->every_ms <= TEN_YEARS_MS;
}

bool calendar_name_ok(struct span name)
{
    if (name.len == 0 || name.len > CALENDAR_NAME_MAX || name.at[0] < 'a' || name.at[0] > 'z') {
        return false;
    }

    for (size_t i = 1; i < name.len; i++) {
        if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789_-", name.at[i])) {
            return false;
        }
    }
    return true;
}

static bool rule_ok(struct span rule)
{
    for (size_t i = 0; i < rule.len; i++) {
        if (rule.at[i] < 0x20 || rule.at[i] > 0x7e) {
            return false;
        }
    }
    return rule.len > 0 && rule.len <= CALENDAR_RULE_MAX;
}

static bool calendar_ok(const struct lapse_series *s)
{
    return s->calendar && s->rule && s->every_ms == 0 && calendar_name_ok(span_of(s->calendar)) &&
           rule_ok(span_of(s->rule));
}

bool series_ok(const struct lapse_series *s)
{
    bool has_stages = s->stages_ms || s->n_stages;
    bool has_calendar = s->calendar || s->rule;
    bool has_bounds = s->until_ms >= 0 && s->until_ms <= EXACT_MAX;
    bool has_choices = (unsigned)s->catch_up <= LAPSE_CATCH_UP_NONE && (unsigned)s->no_overlap <= 1;

    if (!has_bounds || !has_choices) {
        return false;
    }
    if (has_stages) {
        return stages_ok(s) && s->every_ms == 0 && !has_calendar;
    }
    return has_calendar ? calendar_ok(s) : every_ok(s);
}

size_t moments_put(char out[MOMENTS_TEXT_MAX], const struct moments *m)
{
    size_t n = 0;

    for (unsigned i = 0; i < m->n; i++) {
        n += (size_t)snprintf(out + n, MOMENTS_TEXT_MAX - n, "%s%" PRId64, i ? "," : "", m->ms[i]);
    }
    if (m->is_whole) {
        n += (size_t)snprintf(out + n, MOMENTS_TEXT_MAX - n, "%s0", m->n ? "," : "");
    }
    return n;
}

size_t series_put(char out[SERIES_TEXT_MAX], const struct lapse_series *s, const struct moments *m)
{
    const char *overlap = s->no_overlap ? "o" : "";
    char kind = s->n_stages ? 's' : 'e';

    if (s->calendar) {
        kind = 'c';
    }
    int len = snprintf(out, SERIES_TEXT_MAX, "%c%s %" PRId64 " %u %c ",
                       catch_up_letters[s->catch_up], overlap, s->until_ms, s->times, kind);
    size_t n = (size_t)len;

    if (s->calendar) {
        return n + moments_put(out + n, m);
    }
    if (s->n_stages == 0) {
        return n + (size_t)snprintf(out + n, SERIES_TEXT_MAX - n, "%" PRId64, s->every_ms);
    }
    for (unsigned i = 0; i < s->n_stages; i++) {
        n += (size_t)snprintf(out + n, SERIES_TEXT_MAX - n, i ? ",%" PRId64 : "%" PRId64,
                              s->stages_ms[i]);
    }
    return n;
}

size_t calendar_put(char out[CALENDAR_TEXT_MAX], const struct lapse_series *s)
{
    return (size_t)snprintf(out, CALENDAR_TEXT_MAX, "%s %s", s->calendar, s->rule);
}

/* ---- what a record says ---- */
bool calendar_read(struct span text, struct span *name, struct span *rule)
{
    *rule = text;
    return span_cut(rule, ' ', name) && calendar_name_ok(*name) && rule_ok(*rule);
}

static bool read_policy(struct span text, struct lapse_series *out)
{
    const char *at = text.len ? strchr(catch_up_letters, text.at[0]) : NULL;

    if (!at || !*at || text.len > 2 || (text.len == 2 && text.at[1] != 'o')) {
        return false;
    }

    out->catch_up = (enum lapse_catch_up)(at - catch_up_letters);
    out->no_overlap = text.len == 2;
    return true;
}

static bool read_stages(struct span text, struct lapse_series *out, int64_t *stages)
{
    struct span one;
    int64_t ms;

    for (bool any = true; any; out->n_stages++) {
        any = span_cut(&text, ',', &one);
        one = any ? one : text;
        if (out->n_stages == SERIES_STAGES_MAX || !span_decimal(one, EXACT_MAX, &ms)) {
            return false;
        }
        if (stages) {
            stages[out->n_stages] = ms;
        }
    }

    out->stages_ms = stages;
    out->n_stages = stages ? out->n_stages : 0;
    return true;
}

static bool read_moments(struct span text, struct moments *out)
{
    struct span one;
    int64_t ms;

    *out = (struct moments){.n = 0};
    for (bool any = true; any;) {
        any = span_cut(&text, ',', &one);
        one = any ? one : text;
        if (out->is_whole || !span_decimal(one, EXACT_MAX, &ms)) {
            return false;
        }
        out->is_whole = ms == 0;
        if (ms > 0 && out->n == MOMENTS_MAX) {
            return false;
        }
        if (ms > 0) {
            out->ms[out->n++] = ms;
        }
    }
    return true;
}

static bool read_data(char kind, struct span text, struct lapse_series *out, int64_t *stages)
{
    struct moments moments;

    switch (kind) {
    case 'c': return read_moments(text, &moments);
    case 'e': return span_decimal(text, EXACT_MAX, &out->every_ms) && out->every_ms > 0;
    case 's': return read_stages(text, out, stages);
    default: return false;
    }
}

bool series_read(struct span text, struct lapse_series *out, int64_t stages[SERIES_STAGES_MAX])
{
    struct lapse_series found = lapse_series_init();
    struct span policy;
    struct span until;
    struct span times;
    struct span kind;
    int64_t n;

    if (!span_cut(&text, ' ', &policy) || !span_cut(&text, ' ', &until) ||
        !span_cut(&text, ' ', &times) || !span_cut(&text, ' ', &kind) || kind.len != 1 ||
        !read_policy(policy, &found) || !span_decimal(until, EXACT_MAX, &found.until_ms) ||
        !span_decimal(times, UINT32_MAX, &n)) {
        return false;
    }

    found.times = (unsigned)n;
    bool is_read = read_data(kind.at[0], text, &found, stages);
    *out = found;
    return is_read;
}

bool series_moments(struct span text, struct moments *out)
{
    struct span word;
    bool is_calendar = false;

    while (span_cut(&text, ' ', &word)) {
        is_calendar = span_is(word, "c");
    }
    return is_calendar && read_moments(text, out);
}

bool series_of_read(struct span text, struct span *id, int64_t *n)
{
    return span_cut(&text, ' ', id) && keys_id_ok(*id) && span_decimal(text, EXACT_MAX, n) &&
           *n > 0;
}
