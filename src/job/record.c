/* SPDX-License-Identifier: MIT */
#include "job/record.h"
#include <lapse.h>

enum { PLAIN = 1, WITH_ATTRIBUTES = 2 }; /* versions of a record */
enum { HAS_TRIES = 1, HAS_BACKOFF = 2, HAS_BACKOFF_MAX = 4, ALL_FLAGS = 7 };
enum { ATTEMPT_PLAIN = 1, ATTEMPT_WITH_MORE = 2 }; /* versions of an attempt */

/* ---- the record ---- */
static size_t put_varint(unsigned char *out, uint64_t value)
{
    size_t n = 0;

    for (; value >= 128; value >>= 7) {
        out[n++] = (unsigned char)(value | 128);
    }
    out[n++] = (unsigned char)value;
    return n;
}

size_t record_encode(unsigned char out[RECORD_HEADER_MAX], const struct record *r)
{
    size_t n = 2;

    out[0] = r->attributes.len ? WITH_ATTRIBUTES : PLAIN;
    out[1] = 0;

    if (r->tries != JOB_TRIES) {
        out[1] |= HAS_TRIES;
        n += put_varint(out + n, r->tries);
    }
    if (r->backoff_ms != JOB_BACKOFF_MS) {
        out[1] |= HAS_BACKOFF;
        n += put_varint(out + n, (uint64_t)r->backoff_ms);
    }
    if (r->backoff_max_ms != JOB_BACKOFF_MAX_MS) {
        out[1] |= HAS_BACKOFF_MAX;
        n += put_varint(out + n, (uint64_t)r->backoff_max_ms);
    }
    if (r->attributes.len) {
        n += put_varint(out + n, r->attributes.len);
    }

    return n;
}

static bool get_varint(struct span *s, int64_t *value)
{
    int64_t sum = 0;

    for (unsigned shift = 0; s->len > 0 && shift < 49; shift += 7) {
        unsigned char byte = (unsigned char)*s->at;
        *s = (struct span){s->at + 1, s->len - 1};
        sum |= (int64_t)(byte & 127) << shift;
        if (byte < 128) {
            *value = sum;
            return true;
        }
    }

    return false;
}

/* The attributes, and their length before them. */
static bool get_attributes(struct span *s, struct span *attributes)
{
    int64_t len;

    if (!get_varint(s, &len) || len > (int64_t)s->len) {
        return false;
    }

    *attributes = (struct span){s->at, (size_t)len};
    *s = (struct span){s->at + len, s->len - (size_t)len};
    return attributes_ok(*attributes);
}

bool record_decode(struct record *r, struct span text)
{
    int64_t tries = JOB_TRIES;
    struct record found = {.backoff_ms = JOB_BACKOFF_MS, .backoff_max_ms = JOB_BACKOFF_MAX_MS};

    if (text.len < 2 || (text.at[0] != PLAIN && text.at[0] != WITH_ATTRIBUTES)) {
        return false;
    }

    unsigned flags = (unsigned char)text.at[1];
    found.body = (struct span){text.at + 2, text.len - 2};

    if (flags > ALL_FLAGS || (flags & HAS_TRIES && !get_varint(&found.body, &tries)) ||
        (flags & HAS_BACKOFF && !get_varint(&found.body, &found.backoff_ms)) ||
        (flags & HAS_BACKOFF_MAX && !get_varint(&found.body, &found.backoff_max_ms))) {
        return false;
    }
    if (text.at[0] == WITH_ATTRIBUTES && !get_attributes(&found.body, &found.attributes)) {
        return false;
    }

    if (tries < 1 || tries > (int64_t)LAPSE_FOREVER || found.body.len > JOB_BODY_MAX) {
        return false;
    }

    found.tries = (unsigned)tries;
    *r = found;
    return true;
}

/* ---- the attempt ---- */

/* A number and the space after it. */
static bool attempt_number(struct span *s, int64_t *out)
{
    struct span digits;
    return span_cut(s, ' ', &digits) && span_decimal(digits, EXACT_MAX, out);
}

/* A word of at least one byte, and the space after it: (%S+) and a space to Lua. */
static bool attempt_word(struct span *s, struct span *word)
{
    if (!span_cut(s, ' ', word)) {
        return false;
    }

    for (size_t i = 0; i < word->len; i++) {
        if (word->at[i] >= '\t' && word->at[i] <= '\r') {
            return false;
        }
    }
    return word->len > 0;
}

/* name=value,name=value: the value behind this, which is a name and =. false: there is none. */
static bool attempt_more(struct span more, const char *name, struct span *value)
{
    struct span word = more;

    for (bool any = true; any;) {
        any = span_cut(&more, ',', &word);
        *value = any ? word : more;
        if (span_skip(value, name)) {
            return true;
        }
    }
    return false;
}

static int attempt_end(struct span more)
{
    struct span value;
    int64_t ended;

    if (!attempt_more(more, "e=", &value) || !span_decimal(value, LAPSE_ENDED_FORWARDED, &ended)) {
        return 0;
    }
    return (int)ended;
}

static unsigned attempt_moments(struct span more)
{
    struct span value;
    int64_t n;

    return attempt_more(more, "n=", &value) && span_decimal(value, UINT32_MAX, &n) ? (unsigned)n
                                                                                   : 0;
}

/* PARTS:BYTES */
static unsigned attempt_parts(struct span more)
{
    struct span value;
    struct span parts;
    int64_t n;

    return attempt_more(more, "g=", &value) && span_cut(&value, ':', &parts) &&
                   span_decimal(parts, UINT32_MAX, &n)
               ? (unsigned)n
               : 0;
}

bool attempt_decode(struct attempt *a, struct span text)
{
    struct attempt found;
    struct span holder;
    struct span more = {"", 0};
    struct span value;
    int64_t version;
    int64_t try_no;
    int64_t tries;
    int64_t token;

    if (!attempt_number(&text, &version) || version < ATTEMPT_PLAIN ||
        version > ATTEMPT_WITH_MORE || !attempt_number(&text, &token) ||
        !attempt_word(&text, &holder) || !attempt_number(&text, &try_no) || try_no > UINT32_MAX ||
        !attempt_number(&text, &tries) || !attempt_number(&text, &found.claimed_us) ||
        !attempt_number(&text, &found.due_ms)) {
        return false;
    }
    if (version == ATTEMPT_WITH_MORE && !attempt_word(&text, &more)) {
        return false;
    }

    found.try_no = (unsigned)try_no;
    found.token = (uint64_t)token;
    found.cancelled = attempt_more(more, "c=", &value) && span_is(value, "1");
    found.moments = attempt_moments(more);
    found.parts = attempt_parts(more);
    found.is_paused = attempt_more(more, "z=", &value);
    found.is_dry = attempt_more(more, "a=", &value);
    found.awaits = attempt_more(more, "b=", &value);
    found.ended = attempt_end(more);
    found.reason = text;
    *a = found;
    return true;
}
