/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_PAST_TEXT_H
#define LAPSE_PAST_TEXT_H
#include "base/histogram.h"
#include "base/span.h"

/* What is counted, but for the histograms: the fields of struct lapse_past. */
enum past_count {
    PAST_SCHEDULED,
    PAST_DONE,
    PAST_RETRIED,
    PAST_DEAD,
    PAST_CANCELLED,
    PAST_SKIPPED,
    PAST_FORWARDED,
    PAST_GONE,
    PAST_RECOVERED,
    PAST_COUNTS
};

/* Bytes of a name and its number, and of the longest text, each with its end. */
enum {
    PAST_ENTRY_MAX = 24,
    PAST_TEXT_MAX = PAST_ENTRY_MAX * (PAST_COUNTS + VIAS * (LAPSE_BUCKETS + 2))
};

void past_count(struct lapse_past *p, enum past_count what, uint64_t n);
/* As Redis keeps it: letters and how many, without what is 0. Returns the length. */
size_t past_text(char out[PAST_TEXT_MAX], const struct lapse_past *p);
/* Adds what a text says; letters that it does not know count for nothing. false: it is no such
 * text. */
bool past_add(struct lapse_past *p, struct span text);

#endif
