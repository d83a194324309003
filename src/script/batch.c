/* SPDX-License-Identifier: MIT */
/* What may travel together.
 *
 * A call carries requests of one script and one queue, in the order in which they were submitted.
 * It does so only for scripts whose answers do not depend on each other's writes (KIND batch), and
 * names an id twice only where each answers as if it were alone (ids may repeat). */
#include "script/batch.h"
#include "base/mem.h"

enum {
    KEPT_MAX = 16,
    LOOK_AHEAD = 512 /* requests that are looked at, so that others do not wait for the search */
};

/* ---- batches to use again ---- */
void batch_pool_init(struct batch_pool *pool)
{
    list_init(&pool->kept);
    pool->n_kept = 0;
}

void batch_pool_free(struct batch_pool *pool)
{
    for (struct list *i; (i = list_pop(&pool->kept));) {
        mem_free(CONTAINER(i, struct batch, node));
    }
    pool->n_kept = 0;
}

static struct batch *batch_pool_take(struct batch_pool *pool)
{
    struct list *node = list_pop(&pool->kept);

    if (!node) {
        return mem_new(sizeof(struct batch), 0);
    }

    pool->n_kept--;
    return CONTAINER(node, struct batch, node);
}

struct batch *batch_new(struct batch_pool *pool)
{
    struct batch *b = batch_pool_take(pool);

    if (b) {
        *b = (struct batch){0};
        list_init(&b->node);
        list_init(&b->requests);
    }
    return b;
}

void batch_free(struct batch_pool *pool, struct batch *b)
{
    if (pool->n_kept == KEPT_MAX) {
        mem_free(b);
        return;
    }

    list_insert(&pool->kept, &b->node);
    pool->n_kept++;
}

/* ---- filling ---- */
static bool batch_is_full(const struct batch *b)
{
    return b->n_requests == SCRIPT_BATCH || b->n_bytes >= SCRIPT_BATCH_BYTES ||
           !script_facts[b->script].batch;
}

static void batch_add(struct batch *b, struct script_request *r)
{
    list_remove(&r->node);
    list_insert(&b->requests, &r->node);

    b->n_requests++;
    b->n_args += r->n_args;
    for (unsigned i = 0; i < r->n_args; i++) {
        b->n_bytes += r->args[i].len;
    }
}

static bool batch_fits(const struct batch *b, const struct script_request *r, struct span key)
{
    return r->script == b->script && r->any_holder == b->any_holder && span_eq(r->key, key);
}

/* The requests that wait behind this one, because they have the same id. */
static void batch_add_those_behind(struct batch *b, struct script_request *r)
{
    for (struct place *p = r->place.behind; p && !batch_is_full(b); p = p->behind) {
        struct script_request *next = CONTAINER(p, struct script_request, place);
        if (!batch_fits(b, next, r->key)) {
            return;
        }
        batch_add(b, next);
    }
}

void batch_fill(struct batch *b, struct list *unsent, struct script_request *first)
{
    struct span key = first->key;
    unsigned n_looked = 0;

    b->script = first->script;
    b->any_holder = first->any_holder;

    for (struct list *i = &first->node, *next = i->next; i != unsent; i = next, next = i->next) {
        struct script_request *r = script_request_of(i);
        if (batch_fits(b, r, key)) {
            batch_add(b, r);
            if (script_facts[b->script].ids_may_repeat) {
                batch_add_those_behind(b, r);
            }
        }
        if (batch_is_full(b) || ++n_looked == LOOK_AHEAD) {
            return;
        }
    }
}
