/* SPDX-License-Identifier: MIT */
/* A pairing heap: a tree in which no node is later than its children. Moving one costs O(log n),
 * amortised. */
#include "base/heap.h"
#include <stdbool.h>
#include <stddef.h>

static bool heap_is_before(const struct heap_node *a, const struct heap_node *b)
{
    return a->at < b->at || (a->at == b->at && a->order < b->order);
}

/* Makes one tree of two: the later root becomes a child of the other. */
static struct heap_node *heap_meld(struct heap_node *a, struct heap_node *b)
{
    if (!a || !b) {
        return a ? a : b;
    }

    struct heap_node *first = heap_is_before(b, a) ? b : a;
    struct heap_node *later = first == a ? b : a;
    later->prev = first;
    later->next = first->child;
    if (first->child) {
        first->child->prev = later;
    }

    first->child = later;

    return first;
}

static struct heap_node *heap_detach(struct heap_node *n)
{
    if (n) {
        n->next = n->prev = NULL;
    }
    return n;
}

/* Makes one tree of a list of siblings: first two by two, then all from the last to the first. */
static struct heap_node *heap_meld_all(struct heap_node *n)
{
    struct heap_node *pairs = NULL;
    struct heap_node *all = NULL;

    while (n) {
        struct heap_node *second = n->next;
        struct heap_node *third = second ? second->next : NULL;
        struct heap_node *pair = heap_meld(heap_detach(n), heap_detach(second));
        pair->next = pairs;
        pairs = pair;
        n = third;
    }

    while (pairs) {
        struct heap_node *pair = pairs;
        pairs = pair->next;
        all = heap_meld(all, heap_detach(pair));
    }

    return all;
}

static void heap_take_out(struct heap *h, struct heap_node *n)
{
    struct heap_node *children = heap_meld_all(n->child);

    if (n == h->first) {
        h->first = NULL;
    } else if (n->prev->child == n) {
        n->prev->child = n->next;
    } else {
        n->prev->next = n->next;
    }

    if (n->next) {
        n->next->prev = n->prev;
    }

    n->child = NULL;
    heap_detach(n);
    h->first = heap_meld(h->first, children);
}

void heap_set(struct heap *h, struct heap_node *n, int64_t at)
{
    if (at == n->at) {
        return;
    }

    if (n->at) {
        heap_take_out(h, n);
    }

    n->at = at;
    n->order = h->n_set++;
    if (at) {
        h->first = heap_meld(h->first, n);
    }
}
