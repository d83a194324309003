/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_SPAN_H
#define LAPSE_SPAN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A piece of a text that belongs to another: neither copied nor terminated. */
struct span {
    const char *at;
    size_t len;
};

/* All of a terminated text. */
struct span span_of(const char *text);

/* Do both have the same bytes? */
bool span_eq(struct span a, struct span b);
/* Is it this text, no more and no less? */
bool span_is(struct span s, const char *text);
/* Does it begin with this text? */
bool span_starts(struct span s, const char *text);

/* Drops a text from the beginning. false: it does not begin with it, and nothing has changed. */
bool span_skip(struct span *s, const char *text);
/* Splits s at the first mark: *before gets what precedes it, s keeps what follows it.
 * false: there is no mark, and nothing has changed. */
bool span_cut(struct span *s, char mark, struct span *before);

/* The largest of the integers that a script's Lua counts exactly; a thousand times as much still
 * fits into an int64_t. */
#define EXACT_MAX ((int64_t)1 << 53)

/* Reads a number of decimal digits alone, at most max. false: it is none, and *out has not
 * changed. */
bool span_decimal(struct span s, int64_t max, int64_t *out);

/* 32-bit FNV-1a. */
uint32_t span_hash(struct span s);

#endif
