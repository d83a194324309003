/* SPDX-License-Identifier: MIT */
#include "api/spec.h"
#include "base/mem.h"
#include "job/keys.h"
#include <stdio.h>
#include <string.h>

static bool wait_is_valid(int64_t wait_ms)
{
    return wait_ms > 0 && wait_ms <= JOB_TEN_YEARS_MS;
}

static bool spec_is_valid(const struct lapse_spec *s)
{
    bool has_queue = s->queue && keys_queue_ok(span_of(s->queue));
    bool has_id = !s->id || keys_id_ok(span_of(s->id));
    bool has_body = s->body_len <= JOB_BODY_MAX && (s->body || s->body_len == 0);

    bool waits = wait_is_valid(s->backoff_ms) && wait_is_valid(s->backoff_max_ms);
    bool choices = (unsigned)s->on_conflict <= LAPSE_REPLACE && s->flags <= LAPSE_FSYNC;

    return has_queue && has_id && has_body && waits && choices;
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

bool spec_attributes(struct attributes *out, const struct lapse_spec *s)
{
    /* in the order of their letters */
    static bool (*const put[])(struct attributes *, const struct lapse_spec *) = {
        put_priority,
        put_tags,
        put_headers,
    };

    out->len = 0;
    for (size_t i = 0; i < sizeof put / sizeof *put; i++) {
        if (!put[i](out, s)) {
            return false;
        }
    }
    return true;
}
