/* SPDX-License-Identifier: MIT */
/* Finds by name. Intrusive; where memory is short it grows slow rather than fail. */
#ifndef LAPSE_TABLE_H
#define LAPSE_TABLE_H
#include "base/span.h"

struct table_node {
    struct table_node *next;
    struct span name; /* its owner's */
};
struct table {
    struct table_node **slots; /* NULL: few is all there is */
    struct table_node *few[8];
    size_t n_slots, n; /* n_slots: a power of two */
};
void table_init(struct table *t);
void table_add(struct table *t, struct table_node *n, struct span name);
void table_remove(struct table *t, struct table_node *n); /* that is in it */
struct table_node *table_find(const struct table *t, struct span name);
void table_free(struct table *t); /* it is empty then, and may be used again */

#endif
