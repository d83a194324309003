/* SPDX-License-Identifier: MIT */
#include "api/spec.h"
#include "base/mem.h"
#include "job/job.h"
#include "job/keys.h"
#include "job/series.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { BACKOFF_LIST_MAX = 16 };

static bool wait_is_valid(int64_t wait_ms)
{
    return wait_ms > 0 && wait_ms <= JOB_TEN_YEARS_MS;
}

/* How long a debounced job is put off at most: not less than this call asks for. */
static bool max_wait_is_valid(const struct lapse_spec *s)
{
    if (s->max_wait_ms == 0) {
        return true;
    }
    return s->on_conflict == LAPSE_DEBOUNCE && wait_is_valid(s->max_wait_ms) &&
           s->max_wait_ms >= s->due.delay_ms;
}

/* A part names its group, and when that is due follows from its limits. */
static bool gather_is_valid(const struct lapse_spec *s)
{
    bool gathers = s->on_conflict == LAPSE_GATHER;
    bool has_due = s->due.delay_ms || s->due.at_ms;

    if (!gathers || !s->gather) {
        return !gathers && !s->gather;
    }
    return s->id && strlen(s->id) <= SERIES_ID_MAX && !has_due && !s->unique && !s->series &&
           s->body_len <= GROUP_PART_MAX;
}

static bool spec_is_valid(const struct lapse_spec *s)
{
    bool has_queue = s->queue && keys_queue_ok(span_of(s->queue));
    bool has_id = !s->id || keys_id_ok(span_of(s->id));
    bool has_body = s->body_len <= JOB_BODY_MAX && (s->body || s->body_len == 0);

    bool waits = wait_is_valid(s->backoff_ms) && wait_is_valid(s->backoff_max_ms);
    unsigned flags = LAPSE_FSYNC | LAPSE_UNIQUE_UNTIL_START | LAPSE_KEEP_BODY | LAPSE_CREATED |
                     LAPSE_KEEP_ERRORS;
    bool choices = (unsigned)s->on_conflict <= LAPSE_GATHER && (s->flags & ~flags) == 0;

    return has_queue && has_id && has_body && waits && choices && max_wait_is_valid(s) &&
           gather_is_valid(s);
}

bool spec_read(struct lapse_spec *out, const struct lapse_spec *in)
{
    if (!in || in->size < offsetof(struct lapse_spec, tries) ||
        !mem_read_sized(out, sizeof *out, in)) {
        return false;
    }

    out->tries = out->tries ? out->tries : JOB_TRIES;
    out->backoff_ms = out->backoff_ms ? out->backoff_ms : JOB_BACKOFF_MS;
    out->backoff_max_ms = out->backoff_max_ms ? out->backoff_max_ms : JOB_BACKOFF_MAX_MS;

    return spec_is_valid(out);
}

/* ---- attributes ---- */
static bool put_ms(struct attributes *out, char letter, const char *way, int64_t ms)
{
    char text[32];
    int len = snprintf(text, sizeof text, "%s%" PRId64, way, ms);

    return wait_is_valid(ms) && attributes_add(out, letter, (struct span){text, (size_t)len});
}

static bool guard_is_valid(const struct lapse_guard *g, struct span queue)
{
    bool has_value = g->op == LAPSE_EQUALS || g->op == LAPSE_DIFFERS;
    size_t most = has_value ? GUARD_VALUE_MAX : 0;

    return g->op >= LAPSE_EQUALS && g->op <= LAPSE_MISSING && g->key &&
           keys_guard_ok(span_of(g->key), queue) &&
           (!g->field || keys_field_ok(span_of(g->field))) && g->value_len <= most &&
           (g->value || g->value_len == 0);
}

/* G: what must be so for the job to run. */
static bool put_guard(struct attributes *out, const struct lapse_spec *s)
{
    char text[2 + KEYS_GUARD_MAX + 1 + KEYS_GUARD_MAX + 1 + GUARD_VALUE_MAX + 1];
    struct lapse_guard g;

    if (!s->guard) {
        return true;
    }
    if (s->guard->size < sizeof g || !mem_read_sized(&g, sizeof g, s->guard) ||
        !guard_is_valid(&g, span_of(s->queue))) {
        return false;
    }

    int len = snprintf(text, sizeof text, "%c %s %s ", "=!+-"[g.op - LAPSE_EQUALS], g.key,
                       g.field ? g.field : "");
    if (g.value_len) {
        memcpy(text + len, g.value, g.value_len);
    }
    return attributes_add(out, 'G', (struct span){text, (size_t)len + g.value_len});
}

/* K: how long it is known after its end, and whether with its body. */
static bool put_keep(struct attributes *out, const struct lapse_spec *s)
{
    char text[32];
    bool with_body = (s->flags & LAPSE_KEEP_BODY) != 0;

    if (s->keep_ms == 0) {
        return !with_body;
    }

    int len = snprintf(text, sizeof text, "%" PRId64 "%s", s->keep_ms, with_body ? "b" : "");
    return wait_is_valid(s->keep_ms) && attributes_add(out, 'K', (struct span){text, (size_t)len});
}

/* L: how late it may be claimed, and what becomes of it otherwise. */
static bool put_late(struct attributes *out, const struct lapse_spec *s)
{
    if (s->max_late_ms == 0) {
        return s->late == LAPSE_LATE_SKIP;
    }
    if ((unsigned)s->late > LAPSE_LATE_DEAD) {
        return false;
    }

    return put_ms(out, 'L', s->late == LAPSE_LATE_SKIP ? "s" : "d", s->max_late_ms);
}

/* R: for how long it may be tried. */
static bool put_retry_for(struct attributes *out, const struct lapse_spec *s)
{
    return s->retry_for_ms == 0 || put_ms(out, 'R', "", s->retry_for_ms);
}

/* P: when the group is due. */
static bool put_gather(struct attributes *out, const struct lapse_spec *s)
{
    char text[GROUP_TEXT_MAX];
    struct lapse_gather g;

    if (!s->gather) {
        return true;
    }
    if (s->gather->size < sizeof g || !mem_read_sized(&g, sizeof g, s->gather) || !group_ok(&g)) {
        return false;
    }

    size_t len = group_put(text, &g);
    return attributes_add(out, 'P', (struct span){text, len});
}

static bool put_priority(struct attributes *out, const struct lapse_spec *s)
{
    char value = (char)s->priority;

    if (s->priority > PRIORITY_MAX) {
        return false;
    }
    return s->priority == 0 || attributes_add(out, 'Q', (struct span){&value, 1});
}

static bool tag_is_new(const struct lapse_spec *s, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (strcmp(s->tags[i], s->tags[n]) == 0) {
            return false;
        }
    }
    return true;
}

bool spec_series_read(struct spec_series *out, const struct lapse_spec *s)
{
    bool is_one_due = s->on_conflict >= LAPSE_EARLIER;
    bool is_long = s->id && strlen(s->id) > SERIES_ID_MAX;

    *out = (struct spec_series){.is_one = s->series != NULL};
    if (!s->series) {
        return true;
    }
    return s->series->size >= sizeof out->says && !is_one_due && !is_long &&
           mem_read_sized(&out->says, sizeof out->says, s->series) && series_ok(&out->says);
}

/* B: its batch, which is not the one whose own job it is. */
static bool put_batch(struct attributes *out, const struct lapse_spec *s)
{
    if (!s->batch) {
        return true;
    }
    return keys_id_ok(span_of(s->batch)) && (!s->id || strcmp(s->batch, s->id) != 0) &&
           attributes_add(out, 'B', span_of(s->batch));
}

/* C: by which calendar it goes, and by which rule. */
static bool put_calendar(struct attributes *out, const struct spec_series *series)
{
    char text[CALENDAR_TEXT_MAX];

    if (!series->says.calendar) {
        return true;
    }

    size_t len = calendar_put(text, &series->says);
    return attributes_add(out, 'C', (struct span){text, len});
}

/* S: its moments. */
static bool put_series(struct attributes *out, const struct spec_series *series)
{
    char text[SERIES_TEXT_MAX];

    if (!series->is_one) {
        return true;
    }

    size_t len = series_put(text, &series->says, &series->moments);
    return attributes_add(out, 'S', (struct span){text, len});
}

static bool put_tags(struct attributes *out, const struct lapse_spec *s)
{
    if (s->n_tags > TAGS_MAX || (s->n_tags && !s->tags)) {
        return false;
    }

    for (unsigned i = 0; i < s->n_tags; i++) {
        if (!s->tags[i] || !keys_tag_ok(span_of(s->tags[i])) || !tag_is_new(s, i) ||
            !attributes_add(out, 'T', span_of(s->tags[i]))) {
            return false;
        }
    }
    return true;
}

/* U: until when the job holds its key, then the key. */
static bool put_unique(struct attributes *out, const struct lapse_spec *s)
{
    char text[1 + KEYS_ID_MAX + 1]; /* and its end */
    bool until_start = (s->flags & LAPSE_UNIQUE_UNTIL_START) != 0;

    if (!s->unique) {
        return !until_start;
    }
    if (!keys_id_ok(span_of(s->unique))) {
        return false;
    }

    int len = snprintf(text, sizeof text, "%c%s", until_start ? 's' : 'e', s->unique);
    return attributes_add(out, 'U', (struct span){text, (size_t)len});
}

/* b: how long the job waits between its runs, where that is not doubled each time. */
static bool put_backoff_list(struct attributes *out, const struct lapse_spec *s)
{
    char text[1 + BACKOFF_LIST_MAX * 21];
    size_t len = 1;

    if (s->n_backoff_list == 0 || s->n_backoff_list > BACKOFF_LIST_MAX || !s->backoff_list_ms) {
        return false;
    }

    text[0] = 'l';
    for (unsigned i = 0; i < s->n_backoff_list; i++) {
        int64_t wait_ms = s->backoff_list_ms[i];
        if (!wait_is_valid(wait_ms)) {
            return false;
        }
        if (i > 0) {
            text[len++] = ',';
        }
        len += (size_t)snprintf(text + len, sizeof text - len, "%" PRId64, wait_ms);
    }
    return attributes_add(out, 'b', (struct span){text, len});
}

static bool put_backoff(struct attributes *out, const struct lapse_spec *s)
{
    if (s->backoff_kind != LAPSE_BACKOFF_LIST && (s->backoff_list_ms || s->n_backoff_list)) {
        return false;
    }

    switch (s->backoff_kind) {
    case LAPSE_BACKOFF_DOUBLE: return true;
    case LAPSE_BACKOFF_FIXED: return attributes_add(out, 'b', span_of("f"));
    case LAPSE_BACKOFF_LIST: return put_backoff_list(out, s);
    case LAPSE_BACKOFF_POWER2: return attributes_add(out, 'b', span_of("2"));
    case LAPSE_BACKOFF_POWER4: return attributes_add(out, 'b', span_of("4"));
    }
    return false;
}

/* m: when the job was scheduled. Only Redis knows, so its script puts the time in here. */
static bool put_created(struct attributes *out, const struct lapse_spec *s)
{
    return !(s->flags & LAPSE_CREATED) || attributes_add(out, 'm', span_of("0000000000000"));
}

/* r: how long one run may take. */
static bool put_run(struct attributes *out, const struct lapse_spec *s)
{
    char text[24];

    if (s->run_ms == 0) {
        return true;
    }
    if (!job_run_ms_ok(s->run_ms)) {
        return false;
    }

    int len = snprintf(text, sizeof text, "%" PRId64, s->run_ms);
    return attributes_add(out, 'r', (struct span){text, (size_t)len});
}

/* e: the reasons of the last five runs that failed are kept. */
static bool put_errors(struct attributes *out, const struct lapse_spec *s)
{
    return !(s->flags & LAPSE_KEEP_ERRORS) || attributes_add(out, 'e', span_of("5"));
}

static bool header_is_new(const struct lapse_spec *s, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (strcmp(s->headers[i].name, s->headers[n].name) == 0) {
            return false;
        }
    }
    return true;
}

static bool put_header(struct attributes *out, const struct lapse_header *h)
{
    char text[KEYS_HEADER_MAX + 1 + HEADER_VALUE_MAX + 1];

    if (!h->name || !h->value || !keys_header_ok(span_of(h->name)) ||
        strlen(h->value) > HEADER_VALUE_MAX) {
        return false;
    }

    int len = snprintf(text, sizeof text, "%s=%s", h->name, h->value);
    return attributes_add(out, 'h', (struct span){text, (size_t)len});
}

static bool put_headers(struct attributes *out, const struct lapse_spec *s)
{
    if (s->n_headers > HEADERS_MAX || (s->n_headers && !s->headers)) {
        return false;
    }

    for (unsigned i = 0; i < s->n_headers; i++) {
        if (!put_header(out, &s->headers[i]) || !header_is_new(s, i)) {
            return false;
        }
    }
    return true;
}

typedef bool put_fn(struct attributes *out, const struct lapse_spec *s);

static bool put_each(struct attributes *out, const struct lapse_spec *s, put_fn *const *put,
                     size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!put[i](out, s)) {
            return false;
        }
    }
    return true;
}

bool spec_attributes(struct attributes *out, const struct lapse_spec *s,
                     const struct spec_series *series)
{
    /* in the order of their letters: B, C, these, S, and those */
    static put_fn *const before_series[] = {
        put_guard, put_keep, put_late, put_gather, put_priority, put_retry_for,
    };
    static put_fn *const after_series[] = {
        put_tags, put_unique, put_backoff, put_errors, put_headers, put_created, put_run,
    };

    if (!put_batch(out, s) || !put_calendar(out, series) ||
        !put_each(out, s, before_series, sizeof before_series / sizeof *before_series) ||
        !put_series(out, series) ||
        !put_each(out, s, after_series, sizeof after_series / sizeof *after_series)) {
        return false;
    }
    /* each job of a series or a group says of which it is, and of how many parts */
    size_t more = 3 + SERIES_OF_MAX + 2 + GROUP_PARTS_DIGITS;
    return (!series->is_one && !s->gather) || out->len + more <= ATTRIBUTES_MAX;
}
