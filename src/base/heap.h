/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_HEAP_H
#define LAPSE_HEAP_H
#include <stdint.h>

/* Finds the earliest of many moments. Nodes are embedded, so nothing allocates or fails. */
struct heap_node {
    struct heap_node *child;
    struct heap_node *next;
    struct heap_node *prev; /* its sibling, or of the first child the parent */
    int64_t at;             /* 0: it is in no heap */
    uint64_t order;         /* of two with the same moment, the one that was set before is first */
};

struct heap {
    struct heap_node *first; /* NULL: the heap is empty */
    uint64_t n_set;
};

/* Puts a node in, or moves it; at 0 takes it out. One that is there already keeps its order. */
void heap_set(struct heap *h, struct heap_node *n, int64_t at);

#endif
