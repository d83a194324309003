/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_SPEC_H
#define LAPSE_SPEC_H
#include "job/group.h"
#include "job/record.h"
#include "job/series.h"

/* Copies a spec, with the defaults for what is 0. false: it breaks a rule. Whether its due time is
 * valid is for the caller. */
bool spec_read(struct lapse_spec *out, const struct lapse_spec *in);

/* The series of a spec, with the defaults for what is 0. */
struct spec_series {
    bool is_one; /* else the spec has none */
    struct lapse_series says;
    struct moments moments; /* the first ones of its calendar; n 0: it has none */
};

/* Reads all but the moments. false: it breaks a rule. */
bool spec_series_read(struct spec_series *out, const struct lapse_spec *s);

/* Adds what it asks for to the attributes of a record. false: it breaks a rule. */
bool spec_attributes(struct attributes *out, const struct lapse_spec *s,
                     const struct spec_series *series);

#endif
