/* SPDX-License-Identifier: MIT */
/* What a series says of its moments: the attributes S and C of its record, and O of the jobs that
 * it has made; src/lua/README.md draws them. */
#ifndef LAPSE_SERIES_H
#define LAPSE_SERIES_H
#include "base/span.h"
#include <lapse.h>

enum {
    SERIES_STAGES_MAX = 32,
    SERIES_EVERY_MIN_MS = 100,
    SERIES_TEXT_MAX = 512,
    SERIES_ID_MAX = 238, /* with ~ and a token it is an id */
    SERIES_OF_MAX = SERIES_ID_MAX + 17,
    CALENDAR_NAME_MAX = 32,
    CALENDAR_RULE_MAX = 200,
    CALENDAR_TEXT_MAX = CALENDAR_NAME_MAX + 1 + CALENDAR_RULE_MAX + 1, /* and its end */
    MOMENTS_MAX = 16,
    MOMENTS_TEXT_MAX = 256
};

/* The next moments of a calendar, as they wait in Redis. */
struct moments {
    int64_t ms[MOMENTS_MAX];
    unsigned n;
    bool is_whole; /* there are none behind them */
};

/* Does a rule say what a schedule may say? */
bool series_ok(const struct lapse_series *s);

/* S. Returns the length. s: one that is ok. m: of a calendar. */
size_t series_put(char out[SERIES_TEXT_MAX], const struct lapse_series *s, const struct moments *m);

/* Takes S apart. false: this version cannot read it, and *out is not to be used. stages: the room
 * for those of *out; NULL: *out has none. Of a calendar *out lacks name and rule. */
bool series_read(struct span text, struct lapse_series *out, int64_t stages[SERIES_STAGES_MAX]);

/* Those that S has of a calendar. false: it is of none. */
bool series_moments(struct span text, struct moments *out);
/* As they stand in S. Returns the length. */
size_t moments_put(char out[MOMENTS_TEXT_MAX], const struct moments *m);

/* C: NAME RULE. */
bool calendar_name_ok(struct span name);
size_t calendar_put(char out[CALENDAR_TEXT_MAX], const struct lapse_series *s);
bool calendar_read(struct span text, struct span *name, struct span *rule);

/* O: SERIES N. false: it is none. */
bool series_of_read(struct span text, struct span *id, int64_t *n);

#endif
