/* SPDX-License-Identifier: MIT */
/* Which of many moments is the first. Intrusive: it allocates nothing and cannot fail. */
#ifndef LAPSE_HEAP_H
#define LAPSE_HEAP_H
#include <stdint.h>

struct heap_node {
    struct heap_node *child, *next, *prev; /* prev: the one before it, or its parent */
    int64_t at;                            /* 0: in no heap */
};
struct heap {
    struct heap_node *first; /* NULL: it is empty */
};
/* puts it in, moves it, or takes it out (0) */
void heap_set(struct heap *h, struct heap_node *n, int64_t at);

#endif
