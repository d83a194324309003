/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_TABLE_H
#define LAPSE_TABLE_H
#include "base/span.h"

/* Finds by name: a hash table of embedded nodes. It cannot fail: where memory is short it becomes
 * slow instead. */
struct table_node {
    struct table_node *next;
    struct span name; /* its owner's */
};

struct table {
    struct table_node **slots; /* NULL: those in few are enough */
    struct table_node *few[8];
    size_t n_slots; /* a power of two */
    size_t n;
};

void table_init(struct table *t);
void table_add(struct table *t, struct table_node *n, struct span name);
/* n is in the table. */
void table_remove(struct table *t, struct table_node *n);
/* NULL: no node has that name. */
struct table_node *table_find(const struct table *t, struct span name);
/* Another node of the same name. NULL: there is none. */
struct table_node *table_next(const struct table_node *n);
/* The table is empty, and can be used again. */
void table_free(struct table *t);

#endif
