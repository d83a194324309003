/* SPDX-License-Identifier: MIT */
/* The calendars that a handle knows, and the moments of series by them. A series waits in Redis
 * with its next moments. The reply to a claim of one of them shows when few are left, and who knows
 * the calendar puts in more: so nobody else has to know it. */
#ifndef LAPSE_CALENDARS_H
#define LAPSE_CALENDARS_H
#include "job/series.h"
#include "script/job_verbs.h"

enum { CALENDARS_MAX = 16 };

struct calendars {
    struct script *script;
    unsigned n;
    struct calendar {
        char name[CALENDAR_NAME_MAX + 1];
        lapse_next_fn *next;
        void *arg;
    } of[CALENDARS_MAX];
};

void calendars_init(struct calendars *cs, struct script *script);

/* EINVAL: that is no name. EEXIST, EFULL. */
int calendars_add(struct calendars *cs, const char *name, lapse_next_fn *next, void *arg);

/* Is Redis's clock known, by which moments are worked out? */
bool calendars_know_time(const struct calendars *cs);

/* The first moments of a series that is ok and has a calendar, after now and not before due. false:
 * the calendar is not known, its rule is wrong, or there is none. */
bool calendars_first(const struct calendars *cs, const struct lapse_series *s, struct lapse_due due,
                     struct moments *out);

/* A series that has few moments left. */
struct calendar_series {
    const char *queue;
    struct span key; /* KEYS[1] of the queue */
    struct span id;
    struct span attributes; /* of its record */
    int64_t next_ms;        /* those that it has from then on are kept */
    int64_t after_ms;       /* the others are later than this */
    bool is_dry;            /* it has none */
};

/* Of a series that was scheduled with moments by our clock, before Redis's was known: if it begins
 * earlier by that, asks Redis for it. Returns when it begins. */
int64_t calendars_correct(struct calendars *cs, const struct calendar_series *s,
                          struct lapse_due due);

/* Asks Redis to give it more. Nothing that fails is repeated: the next claim shows it again. */
void calendars_refill(struct calendars *cs, const struct calendar_series *s);

#endif
