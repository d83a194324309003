/* SPDX-License-Identifier: MIT */
#include "base/table.h"
#include "base/mem.h"

enum { FEW = sizeof((struct table *)0)->few / sizeof(struct table_node *) };

static struct table_node **table_slot(struct table_node **slots, size_t n_slots, struct span name)
{
    return &slots[span_hash(name) & (n_slots - 1)];
}

static void table_push(struct table_node **slots, size_t n_slots, struct table_node *n)
{
    struct table_node **slot = table_slot(slots, n_slots, n->name);
    n->next = *slot;
    *slot = n;
}

static void table_grow(struct table *t)
{
    size_t n_slots = 2 * t->n_slots;
    struct table_node **slots = mem_new(n_slots * sizeof *slots, 0);

    if (!slots) {
        return; /* the chains get longer */
    }

    struct table_node **old = t->slots ? t->slots : t->few;
    for (size_t i = 0; i < t->n_slots; i++) {
        for (struct table_node *n = old[i], *next; n; n = next) {
            next = n->next;
            table_push(slots, n_slots, n);
        }
    }

    mem_free(t->slots);
    t->slots = slots;
    t->n_slots = n_slots;
}

void table_init(struct table *t)
{
    *t = (struct table){.n_slots = FEW};
}

void table_add(struct table *t, struct table_node *n, struct span name)
{
    if (t->n >= t->n_slots) {
        table_grow(t);
    }
    n->name = name;
    table_push(t->slots ? t->slots : t->few, t->n_slots, n);
    t->n++;
}

void table_remove(struct table *t, struct table_node *n)
{
    struct table_node **at = table_slot(t->slots ? t->slots : t->few, t->n_slots, n->name);

    while (*at != n) {
        at = &(*at)->next;
    }
    *at = n->next;
    t->n--;
}

static struct table_node *chain_find(struct table_node *n, struct span name)
{
    while (n && !span_eq(name, n->name)) {
        n = n->next;
    }
    return n;
}

struct table_node *table_find(const struct table *t, struct span name)
{
    struct table_node *const *slots = t->slots ? t->slots : t->few;

    return chain_find(slots[span_hash(name) & (t->n_slots - 1)], name);
}

struct table_node *table_next(const struct table_node *n)
{
    return chain_find(n->next, n->name);
}

void table_free(struct table *t)
{
    mem_free(t->slots);
    table_init(t);
}
