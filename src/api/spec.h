/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_SPEC_H
#define LAPSE_SPEC_H
#include "job/record.h"
#include <lapse.h>

/* Copies a spec, with the defaults for what is 0. false: it breaks a rule. Whether its due time is
 * valid is for the caller. */
bool spec_read(struct lapse_spec *out, const struct lapse_spec *in);

/* Puts what it asks for into the attributes of a record. false: it breaks a rule. */
bool spec_attributes(struct attributes *out, const struct lapse_spec *s);

#endif
