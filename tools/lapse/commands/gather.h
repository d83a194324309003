/* SPDX-License-Identifier: MIT */
/* The limits of a group, as lapse schedule --gather says them. */
#ifndef GATHER_H
#define GATHER_H
#include "command.h"
#include "cli/values.h"

struct gather_option {
    struct lapse_gather limits; /* from lapse_gather_init() */
    const char *given;          /* NULL: it was not */
};

/* For struct opt; the field is a struct gather_option. */
int set_gather(const struct opt *o, char *value, void *field);

/* Completes the spec, but for its body. 0, or USAGE after it has printed why. */
int gather_read(struct gather_option *g, struct lapse_spec *spec, const struct when *when);

/* Of the body of a part. Likewise. */
int check_part(const struct lapse_spec *spec);

/* What the record says of it, and what that of its job says more. */
size_t gather_bytes(const struct lapse_spec *spec);
#endif
