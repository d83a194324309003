/* SPDX-License-Identifier: MIT */
/* What has happened in a queue as text, in the form in which Redis adds and keeps it. A small
 * letter is a count. A capital one is a histogram: behind it `a` to `w` are its buckets, `y` is the
 * sum in us and `z` the longest time, of which Redis keeps the larger one. lua/README.md draws
 * it. */
#include "base/past.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct {
    char letter;
    size_t at; /* in struct lapse_past */
} counts[PAST_COUNTS] = {
    [PAST_SCHEDULED] = {'s', offsetof(struct lapse_past, scheduled)},
    [PAST_DONE] = {'d', offsetof(struct lapse_past, done)},
    [PAST_RETRIED] = {'r', offsetof(struct lapse_past, retried)},
    [PAST_DEAD] = {'x', offsetof(struct lapse_past, dead)},
    [PAST_CANCELLED] = {'c', offsetof(struct lapse_past, cancelled)},
    [PAST_SKIPPED] = {'p', offsetof(struct lapse_past, skipped)},
    [PAST_FORWARDED] = {'f', offsetof(struct lapse_past, forwarded)},
    [PAST_GONE] = {'g', offsetof(struct lapse_past, gone)},
    [PAST_RECOVERED] = {'v', offsetof(struct lapse_past, recovered)},
};

/* By enum lapse_via; that of the runs is in the place of none. */
static const char histograms[VIAS + 1] = "RENASTQ";

enum { BUCKET = 'a', SUM = 'y', MAX = 'z' };

static uint64_t *count_of(struct lapse_past *p, unsigned i)
{
    return (uint64_t *)(void *)((char *)p + counts[i].at);
}

static struct lapse_histogram *histogram_of(struct lapse_past *p, unsigned i)
{
    return i ? &p->late[i] : &p->run;
}

void past_count(struct lapse_past *p, enum past_count what, uint64_t n)
{
    *count_of(p, what) += n;
}

/* ---- to text ---- */
static size_t put_count(char *out, const char *name, uint64_t n)
{
    return n ? (size_t)snprintf(out, PAST_ENTRY_MAX, "%s%" PRIu64, name, n) : 0;
}

static size_t put_histogram(char *out, char letter, const struct lapse_histogram *h)
{
    char name[3] = {letter, BUCKET, '\0'};
    size_t len = 0;

    for (unsigned i = 0; i < LAPSE_BUCKETS; i++) {
        name[1] = (char)(BUCKET + (int)i);
        len += put_count(out + len, name, h->counts[i]);
    }

    name[1] = SUM;
    len += put_count(out + len, name, h->sum_us);
    name[1] = MAX;
    return len + put_count(out + len, name, h->max_us);
}

size_t past_text(char out[PAST_TEXT_MAX], const struct lapse_past *p)
{
    struct lapse_past copy = *p;
    size_t len = 0;

    for (unsigned i = 0; i < PAST_COUNTS; i++) {
        const char name[2] = {counts[i].letter, '\0'};
        len += put_count(out + len, name, *count_of(&copy, i));
    }
    for (unsigned i = 0; i < VIAS; i++) {
        len += put_histogram(out + len, histograms[i], histogram_of(&copy, i));
    }

    out[len] = '\0';
    return len;
}

/* ---- from text ---- */
static void add_count(struct lapse_past *p, char letter, uint64_t n)
{
    for (unsigned i = 0; i < PAST_COUNTS; i++) {
        if (counts[i].letter == letter) {
            *count_of(p, i) += n;
        }
    }
}

static void add_part(struct lapse_histogram *h, char part, uint64_t n)
{
    if (part == SUM) {
        h->sum_us += n;
    } else if (part == MAX) {
        h->max_us = n > h->max_us ? n : h->max_us;
    } else if (part >= BUCKET && part < BUCKET + LAPSE_BUCKETS) {
        h->counts[part - BUCKET] += n;
        h->n += n;
    }
}

static void add_named(struct lapse_past *p, char histogram, char part, uint64_t n)
{
    const char *at = histogram ? strchr(histograms, histogram) : NULL;

    if (!histogram) {
        add_count(p, part, n);
    } else if (at) {
        unsigned i = (unsigned)(at - histograms);
        add_part(histogram_of(p, i), part, n);
        if (i) {
            add_part(&p->late[0], part, n);
        }
    }
}

static bool is_small(char c)
{
    return c >= 'a' && c <= 'z';
}

/* How many digits begin there. */
static size_t digits_at(struct span text)
{
    size_t n = 0;

    while (n < text.len && text.at[n] >= '0' && text.at[n] <= '9') {
        n++;
    }
    return n;
}

bool past_add(struct lapse_past *p, struct span text)
{
    while (text.len) {
        bool has_capital = text.at[0] >= 'A' && text.at[0] <= 'Z';
        size_t name_len = has_capital ? 2 : 1;
        int64_t n;

        if (text.len < name_len || !is_small(text.at[name_len - 1])) {
            return false;
        }

        struct span rest = {text.at + name_len, text.len - name_len};
        size_t n_digits = digits_at(rest);
        if (!span_decimal((struct span){rest.at, n_digits}, EXACT_MAX, &n)) {
            return false;
        }

        add_named(p, has_capital ? text.at[0] : '\0', text.at[name_len - 1], (uint64_t)n);
        text = (struct span){rest.at + n_digits, rest.len - n_digits};
    }
    return true;
}
