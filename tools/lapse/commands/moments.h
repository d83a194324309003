/* SPDX-License-Identifier: MIT */
/* The moments of a series, as the options of lapse schedule say them. */
#ifndef MOMENTS_H
#define MOMENTS_H
#include "command.h"
#include "job/series.h"

struct moment_options {
    struct lapse_series series; /* from lapse_series_init() */
    int64_t stages_ms[SERIES_STAGES_MAX];
    const char *until, *stage, *every, *cron, *zone; /* as given; NULL: it was not */
    char rule[CALENDAR_RULE_MAX + 1];
    const char *other; /* an option that only a series has */
};

/* For struct opt; the field is a struct moment_options. */
int set_stages(const struct opt *o, char *value, void *field);
int set_every(const struct opt *o, char *value, void *field);
int set_cron(const struct opt *o, char *value, void *field);
int set_zone(const struct opt *o, char *value, void *field);
int set_until(const struct opt *o, char *value, void *field);
int set_times(const struct opt *o, char *value, void *field);
int set_catch_up(const struct opt *o, char *value, void *field);
int set_no_overlap(const struct opt *o, char *value, void *field);

/* Completes the spec: series is NULL if no moments were given. 0, or USAGE after it has printed
 * why. */
int moments_read(struct moment_options *m, struct lapse_spec *spec);

/* What the record says of it, and what that of one of its jobs says more. */
size_t moments_bytes(const struct lapse_spec *spec);
#endif
