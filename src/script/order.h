/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_ORDER_H
#define LAPSE_ORDER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Lets one request of an id go at a time: the others stand in line behind it, in the order in which
 * they came. */
struct place {
    struct place *bucket; /* the next first of a line whose hash falls there too */
    struct place *behind; /* the next in the same line */
    struct place *last;   /* of the line; known to its first only */
    /* of the id; two ids of one hash share a line, which costs them a round trip */
    uint32_t hash;
    bool first;
};

struct order {
    struct place **buckets;
    size_t n_buckets; /* a power of two */
    size_t n_lines;
};
int order_init(struct order *o); /* ENOMEM */
void order_free(struct order *o);

/* Takes a place in the line of hash; true: it is the first, and may go. Allocation may fail:
 * lookups are slower then.
 */
bool order_enter(struct order *o, struct place *p, uint32_t hash);
/* Who is first in the line of p. */
struct place *order_first(const struct order *o, const struct place *p);
/* Gives the place up. Returns who becomes first by that, or NULL. */
struct place *order_leave(struct order *o, struct place *p);

#endif
