/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_ORDER_H
#define LAPSE_ORDER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One request of an id at a time: those that come later wait in line behind it. */

/* A place in the line of an id; embedded in the request. */
struct place {
    struct place *next_line; /* of a first one: the first of the next line in the same bucket */
    struct place *last;      /* of a first one: the last of its line */
    struct place *behind;
    uint32_t hash; /* of the id; ids with the same hash share a line, which costs a round trip */
    bool first;
};

struct order {
    struct place **buckets;
    size_t n_buckets; /* a power of two */
    size_t n_lines;
};

/* ENOMEM */
int order_init(struct order *o);
/* All lines must be empty. */
void order_free(struct order *o);

/* Enters the line of a hash at its end. true: it is the first, and may go. It cannot fail: without
 * memory for more buckets it only takes longer to find a line. */
bool order_enter(struct order *o, struct place *p, uint32_t hash);

/* The first one in the line of p. */
struct place *order_first(const struct order *o, const struct place *p);

/* Leaves the line. Returns the place that becomes the first one by that, or NULL. */
struct place *order_leave(struct order *o, struct place *p);

#endif
