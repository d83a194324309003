/* SPDX-License-Identifier: MIT */
/* What a group says of its limits, the attribute P of its record; and the parts that the job has
 * which is made of it. src/lua/README.md draws both. */
#ifndef LAPSE_GROUP_H
#define LAPSE_GROUP_H
#include "base/span.h"
#include <lapse.h>

enum {
    GROUP_MOST_MAX = 1000,
    GROUP_PARTS_DIGITS = 4,         /* of a number of parts */
    GROUP_PART_MAX = (1 << 20) - 8, /* bytes; with its length it is a body */
    GROUP_TEXT_MAX = 48
};

/* Do limits say what a schedule may say? */
bool group_ok(const struct lapse_gather *g);

/* P. Returns the length. g: limits that are ok. */
size_t group_put(char out[GROUP_TEXT_MAX], const struct lapse_gather *g);

/* Takes P apart. false: this version cannot read it. */
bool group_read(struct span text, struct lapse_gather *out);

/* Takes the next part from a body. false: there are no more, or it is none of parts. */
bool group_take_part(struct span *body, struct span *part);

#endif
