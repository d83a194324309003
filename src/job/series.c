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

bool series_ok(const struct lapse_series *s)
{
    bool has_stages = s->stages_ms || s->n_stages;
    bool has_bounds = s->until_ms >= 0 && s->until_ms <= EXACT_MAX;
    bool has_choices = (unsigned)s->catch_up <= LAPSE_CATCH_UP_NONE && (unsigned)s->no_overlap <= 1;

    if (!has_bounds || !has_choices) {
        return false;
    }
    return has_stages ? stages_ok(s) && s->every_ms == 0 : every_ok(s);
}

size_t series_put(char out[SERIES_TEXT_MAX], const struct lapse_series *s)
{
    const char *overlap = s->no_overlap ? "o" : "";
    char kind = s->n_stages ? 's' : 'e';
    int len = snprintf(out, SERIES_TEXT_MAX, "%c%s %" PRId64 " %u %c ",
                       catch_up_letters[s->catch_up], overlap, s->until_ms, s->times, kind);
    size_t n = (size_t)len;

    if (s->n_stages == 0) {
        return n + (size_t)snprintf(out + n, SERIES_TEXT_MAX - n, "%" PRId64, s->every_ms);
    }
    for (unsigned i = 0; i < s->n_stages; i++) {
        n += (size_t)snprintf(out + n, SERIES_TEXT_MAX - n, i ? ",%" PRId64 : "%" PRId64,
                              s->stages_ms[i]);
    }
    return n;
}

/* ---- what a record says ---- */
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
    bool is_read = kind.at[0] == 'e'
                       ? span_decimal(text, EXACT_MAX, &found.every_ms) && found.every_ms > 0
                       : kind.at[0] == 's' && read_stages(text, &found, stages);
    *out = found;
    return is_read;
}

bool series_of_read(struct span text, struct span *id, int64_t *n)
{
    return span_cut(&text, ' ', id) && keys_id_ok(*id) && span_decimal(text, EXACT_MAX, n) &&
           *n > 0;
}
