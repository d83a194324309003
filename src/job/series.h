/* SPDX-License-Identifier: MIT */
/* What a series says of its moments: the attribute S of its record, and O of the jobs that it has
 * made; src/lua/README.md draws them. */
#ifndef LAPSE_SERIES_H
#define LAPSE_SERIES_H
#include "base/span.h"
#include <lapse.h>

enum {
    SERIES_STAGES_MAX = 32,
    SERIES_EVERY_MIN_MS = 100,
    SERIES_TEXT_MAX = 512,
    SERIES_ID_MAX = 238, /* with ~ and a token it is an id */
    SERIES_OF_MAX = SERIES_ID_MAX + 17
};

/* Does a rule say what a schedule may say? */
bool series_ok(const struct lapse_series *s);

/* Returns the length. s: one that is ok. */
size_t series_put(char out[SERIES_TEXT_MAX], const struct lapse_series *s);

/* Takes the text apart. false: this version cannot read it, and *out is not to be used. stages: the
 * room for those of *out; NULL: *out has none. */
bool series_read(struct span text, struct lapse_series *out, int64_t stages[SERIES_STAGES_MAX]);

/* SERIES N. false: it is none. */
bool series_of_read(struct span text, struct span *id, int64_t *n);

#endif
