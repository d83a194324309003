/* SPDX-License-Identifier: MIT */
#include "job/attributes.h"
#include "job/group.h"
#include "job/keys.h"
#include "job/series.h"
#include <string.h>

static bool is_priority(struct span value)
{
    return value.len == 1 && value.at[0] != '\0';
}

/* Digits, the first of them not 0, up to as many as ten years have. */
static bool is_ms(struct span value)
{
    enum { DIGITS = 12 };
    int64_t ms;

    return value.len <= DIGITS && span_decimal(value, EXACT_MAX, &ms) && value.at[0] != '0';
}

static bool is_late(struct span value)
{
    bool has_way = value.len > 0 && (value.at[0] == 's' || value.at[0] == 'd');

    return has_way && is_ms((struct span){value.at + 1, value.len - 1});
}

static bool is_guard(struct span value)
{
    struct guard guard;

    return guard_read(value, &guard);
}

/* How long, and whether with the body. */
static bool is_keep(struct span value)
{
    bool with_body = value.len > 0 && value.at[value.len - 1] == 'b';

    return is_ms((struct span){value.at, value.len - with_body});
}

/* Until when the job holds its key, then the key. */
static bool is_unique(struct span value)
{
    return value.len > 1 && (value.at[0] == 'e' || value.at[0] == 's') &&
           keys_id_ok((struct span){value.at + 1, value.len - 1});
}

static bool is_series(struct span value)
{
    struct lapse_series series;

    return value.len <= SERIES_TEXT_MAX && series_read(value, &series, NULL);
}

static bool is_calendar(struct span value)
{
    struct span name;
    struct span rule;

    return calendar_read(value, &name, &rule);
}

static bool is_of_series(struct span value)
{
    struct span id;
    int64_t n;

    return series_of_read(value, &id, &n);
}

static bool is_group(struct span value)
{
    struct lapse_gather gather;

    return group_read(value, &gather);
}

/* The capital letters that this version knows. */
static const struct capital {
    char letter;
    unsigned most; /* may come so often */
    bool (*is_value)(struct span value);
} capitals[] = {
    {'B', 1, keys_id_ok},
    {'C', 1, is_calendar},
    {'G', 1, is_guard},
    {'K', 1, is_keep},
    {'L', 1, is_late},
    {'O', 1, is_of_series},
    {'P', 1, is_group},
    {'Q', 1, is_priority},
    {'R', 1, is_ms},
    {'S', 1, is_series},
    {'T', TAGS_MAX, keys_tag_ok},
    {'U', 1, is_unique},
};

bool attributes_add(struct attributes *a, char letter, struct span value)
{
    size_t begin = value.len < 128 ? 2 : 3;
    size_t len = begin + value.len;

    if (value.len >= ATTRIBUTES_MAX || len > ATTRIBUTES_MAX - a->len) {
        return false;
    }

    unsigned char *out = a->bytes + a->len;
    *out++ = (unsigned char)letter;
    if (value.len >= 128) {
        *out++ = (unsigned char)(value.len | 128);
        *out++ = (unsigned char)(value.len >> 7);
    } else {
        *out++ = (unsigned char)value.len;
    }

    memcpy(out, value.at, value.len);
    a->len += len;
    return true;
}

static bool is_small(char letter)
{
    return letter >= 'a' && letter <= 'z';
}

bool attributes_take(struct span *text, struct attribute *out)
{
    const unsigned char *at = (const unsigned char *)text->at;
    size_t begin = 2;

    if (text->len < begin) {
        return false;
    }

    size_t len = at[1];
    if (len >= 128) {
        begin = 3;
        len = text->len < begin ? ATTRIBUTES_MAX : len - 128 + 128 * (size_t)at[2];
    }
    if (len >= ATTRIBUTES_MAX || len > text->len - begin) {
        return false;
    }

    out->letter = text->at[0];
    out->value = (struct span){text->at + begin, len};
    *text = (struct span){text->at + begin + len, text->len - begin - len};
    return true;
}

/* n: it is the nth of its letter. */
static bool capital_ok(const struct attribute *a, unsigned n)
{
    for (size_t i = 0; i < sizeof capitals / sizeof *capitals; i++) {
        if (capitals[i].letter == a->letter) {
            return n <= capitals[i].most && capitals[i].is_value(a->value);
        }
    }
    return false;
}

bool attributes_ok(struct span text)
{
    struct attribute a;
    char last = '\0';
    unsigned n = 0;

    if (text.len > ATTRIBUTES_MAX) {
        return false;
    }

    while (text.len) {
        if (!attributes_take(&text, &a) || a.letter < last) {
            return false;
        }
        n = a.letter == last ? n + 1 : 1;
        last = a.letter;
        if (!is_small(a.letter) && !capital_ok(&a, n)) {
            return false;
        }
    }
    return true;
}

bool attributes_find(struct span text, char letter, struct span *value)
{
    struct attribute a;

    while (attributes_take(&text, &a)) {
        if (a.letter == letter) {
            *value = a.value;
            return true;
        }
    }
    return false;
}

/* ---- headers ---- */
bool header_read(struct span text, struct span *name, struct span *value)
{
    *value = text;
    return span_cut(value, '=', name) && keys_header_ok(*name) && value->len <= HEADER_VALUE_MAX &&
           !memchr(value->at, '\0', value->len);
}

/* ---- guard ---- */
bool guard_read(struct span text, struct guard *out)
{
    struct span op;

    if (!span_cut(&text, ' ', &op) || op.len != 1 || op.at[0] == '\0' ||
        !strchr("=!+-", op.at[0])) {
        return false;
    }

    out->op = op.at[0];
    out->value = text;
    return span_cut(&out->value, ' ', &out->key) && out->key.len > 0 &&
           span_cut(&out->value, ' ', &out->field);
}
