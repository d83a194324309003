/* SPDX-License-Identifier: MIT */
/* A hash table of lines. A bucket is a list of lines, each of which is known by its first place. */
#include "script/order.h"
#include "base/error.h"
#include "base/mem.h"

enum { BUCKETS_MIN = 256 };

int order_init(struct order *o)
{
    *o = (struct order){.n_buckets = BUCKETS_MIN};
    o->buckets = mem_new(BUCKETS_MIN * sizeof *o->buckets, 0);
    return o->buckets ? 0 : LAPSE_ENOMEM;
}

void order_free(struct order *o)
{
    ASSERT(o->n_lines == 0);
    mem_free(o->buckets);
    o->buckets = NULL;
}

static struct place **order_bucket(const struct order *o, uint32_t hash)
{
    return &o->buckets[(hash ^ hash >> 16) & (o->n_buckets - 1)];
}

/* Where the first place of a hash is noted; NULL is noted there if it has no line. */
static struct place **order_find(const struct order *o, uint32_t hash)
{
    struct place **at = order_bucket(o, hash);

    while (*at && (*at)->hash != hash) {
        at = &(*at)->next_line;
    }
    return at;
}

/* Doubles the buckets, if there is memory for that. */
static void order_grow(struct order *o)
{
    struct order bigger = {.n_buckets = 2 * o->n_buckets};

    bigger.buckets = mem_new(bigger.n_buckets * sizeof *bigger.buckets, 0);
    if (!bigger.buckets) {
        return;
    }

    for (size_t i = 0; i < o->n_buckets; i++) {
        while (o->buckets[i]) {
            struct place *first = o->buckets[i];
            struct place **at = order_bucket(&bigger, first->hash);
            o->buckets[i] = first->next_line;
            first->next_line = *at;
            *at = first;
        }
    }

    mem_free(o->buckets);
    o->buckets = bigger.buckets;
    o->n_buckets = bigger.n_buckets;
}

bool order_enter(struct order *o, struct place *p, uint32_t hash)
{
    struct place **at = order_find(o, hash);
    struct place *first = *at;

    *p = (struct place){.hash = hash, .last = p, .first = !first};

    if (first) {
        first->last->behind = p;
        first->last = p;
        return false;
    }

    *at = p;
    if (++o->n_lines > o->n_buckets) {
        order_grow(o);
    }

    return true;
}

struct place *order_first(const struct order *o, const struct place *p)
{
    return *order_find(o, p->hash);
}

static void order_leave_middle(struct place *first, struct place *p)
{
    struct place *before = first;

    while (before->behind != p) {
        before = before->behind;
    }

    before->behind = p->behind;
    if (first->last == p) {
        first->last = before;
    }
}

struct place *order_leave(struct order *o, struct place *p)
{
    struct place **at = order_find(o, p->hash);
    struct place *next = p->behind;

    ASSERT(*at);
    if (!p->first) {
        order_leave_middle(*at, p);
        return NULL;
    }

    ASSERT(*at == p);

    if (!next) {
        *at = p->next_line;
        o->n_lines--;
        return NULL;
    }

    next->first = true;
    next->last = p->last;
    next->next_line = p->next_line;
    *at = next;

    return next;
}
