/* SPDX-License-Identifier: MIT */
/* Every queue that we schedule or listen to is entered once on each connection, many with one
 * call. Nothing waits for that, and a call that fails is not repeated: the next connection, or
 * the next process, enters the queue.
 *
 * A queue that was removed meanwhile is not in the registry any more, and who listens to a pattern
 * would never hear of our next job. So with a use that comes a while after the last entry the queue
 * is entered again. */
#include "script/registry.h"
#include "base/context.h"
#include "base/mem.h"
#include <string.h>

struct used_queue {
    struct list node;
    struct table_node by_name;
    int64_t told_us; /* by clock_us(): when Redis was told last */
    char name[KEYS_QUEUE_MAX + 1];
};

static void on_entered(struct enter_request *enter, int err, const struct enter_reply *reply)
{
    struct registry *r = CONTAINER(enter, struct registry, enter);

    (void)reply;
    if (err == LAPSE_EDENIED) {
        r->denied = true;
    }
}

void registry_init(struct registry *r, struct script *script)
{
    *r = (struct registry){.script = script};
    keys_queues(r->key, script->context->options.space);
    table_init(&r->names);
    list_init(&r->all);
    list_init(&r->untold);
    r->enter.end = on_entered;
}

static struct used_queue *registry_find(const struct registry *r, const char *queue)
{
    struct table_node *found = table_find(&r->names, span_of(queue));

    return found ? CONTAINER(found, struct used_queue, by_name) : NULL;
}

static void registry_tell(struct registry *r, struct used_queue *q)
{
    list_remove(&q->node);
    list_insert(&r->untold, &q->node);
}

static void registry_add(struct registry *r, const char *queue)
{
    struct used_queue *q = mem_new(sizeof *q, 0);
    if (!q) {
        return;
    }

    memcpy(q->name, queue, strlen(queue) + 1);
    table_add(&r->names, &q->by_name, span_of(q->name));
    list_insert(&r->untold, &q->node);
}

void registry_use(struct registry *r, const char *queue)
{
    struct used_queue *q = registry_find(r, queue);
    int64_t rarely_us = context_rarely_ms(r->script->context) * 1000;

    if (!q) {
        registry_add(r, queue);
    } else if (clock_us() - q->told_us >= rarely_us) {
        registry_tell(r, q);
    }
}

void registry_enter(struct registry *r, const char *queue)
{
    struct used_queue *q = registry_find(r, queue);

    if (q) {
        registry_tell(r, q);
    } else {
        registry_add(r, queue);
    }
}

bool registry_is_at(const struct registry *r, const struct node *node)
{
    return node == topo_first(r->script->topo) || node == r->told;
}

void registry_up(struct registry *r)
{
    r->denied = false;
    for (struct list *i; (i = list_pop(&r->all));) {
        list_insert(&r->untold, i);
    }
}

/* In a cluster another one may have the registry now. */
static void registry_follow(struct registry *r)
{
    struct node *node = node_of(r->script, span_of(r->key));

    if (r->told && r->told != node) {
        registry_up(r);
    }
    r->told = node;
}

void registry_turn(struct registry *r)
{
    unsigned n = 0;

    if (r->denied || r->enter.request.pending || list_empty(&r->untold)) {
        return;
    }

    registry_follow(r);
    if (!node_up(r->told)) {
        return;
    }

    for (struct list *i; n < SCRIPT_BATCH && (i = list_pop(&r->untold));) {
        struct used_queue *q = CONTAINER(i, struct used_queue, node);
        q->told_us = clock_us();
        r->args[n++] = span_of(q->name);
        list_insert(&r->all, i);
    }

    r->enter.request.until_us = clock_us() + r->script->context->options.reply_ms * 1000;
    script_enter(r->script, &r->enter, span_of(r->key), r->args, n);
}

static void used_queues_free(struct list *queues)
{
    for (struct list *i; (i = list_pop(queues));) {
        mem_free(CONTAINER(i, struct used_queue, node));
    }
}

void registry_close(struct registry *r)
{
    used_queues_free(&r->all);
    used_queues_free(&r->untold);
    table_free(&r->names);
}
