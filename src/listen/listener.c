/* SPDX-License-Identifier: MIT */
/* The queues' life: begun by a handler, stopped by its end or the handle's, freed when nothing of
 * them is on its way.
 */
#include "listen/listener.h"
#include "base/mem.h"

static void free_queue(struct queue *q)
{
    list_remove(&q->node);
    reclaim_free(&q->reclaim);
    mem_free(q);
}

static void reap(struct work *w)
{
    LIST_EACH (i, &w->stopped) {
        struct queue *q = CONTAINER(i, struct queue, node);
        if (!q->n_held && !q->n_asked && !reclaim_on(&q->reclaim) && wake_free_to_go(&q->watch)) {
            free_queue(q);
        }
    }
}

void work_turn(struct work *w)
{
    w->turn_due_us = 0;
    queue_owing(w);
    reap(w);
}

static void on_pause(void *arg)
{
    struct work *w = arg;

    LIST_EACH (i, &w->queues) {
        struct queue *q = CONTAINER(i, struct queue, node);
        if (q->again) {
            queue_reclaim(q);
        }
    }
    work_want_turn(w);
}

/* What has not begun goes back uncounted, before the sweep finds it and counts a try. */
static void on_sweeping(void *arg)
{
    leases_check(&((struct work *)arg)->leases);
}

/* A queue that stopped may be free to go now. */
static void on_ended(void *arg)
{
    work_want_turn(arg);
}

static void on_claims_allowed(void *arg)
{
    work_want_turn(arg);
}

/* ---- from above ---- */
static struct queue *find(struct work *w, const char *name)
{
    struct table_node *n = table_find(&w->names, (struct span){name, strlen(name)});
    return n ? CONTAINER(n, struct queue, named) : NULL;
}

void work_init(struct work *w, struct context *context, struct script *script,
               struct task_queue *tasks)
{
    static const struct wake_events events = {queue_named, queue_oldest, on_sweeping, on_ended};
    static const struct lease_events lease_events = {queue_freed, queue_told};

    w->context = context;
    w->script = script;
    list_init(&w->queues);
    table_init(&w->names);
    list_init(&w->stopped);
    list_init(&w->owing);
    list_init(&w->pool);
    timer_init(&w->pause, context->loop, on_pause, w);
    wake_init(&w->wake, context, script, &events, w);
    script->holder = (struct span){w->wake.name, strlen(w->wake.name)};
    eviction_init(&w->eviction, script, on_claims_allowed, w);
    leases_init(&w->leases, script, tasks, &lease_events, w);
}

int work_handle(struct work *w, const char *queue, unsigned max_running, lapse_handler *fn,
                void *arg)
{
    if (find(w, queue)) {
        return LAPSE_EEXIST;
    }

    struct queue *q = mem_new(sizeof *q, 0);
    if (!q) {
        return LAPSE_ENOMEM;
    }

    q->work = w;
    q->fn = fn;
    q->arg = arg;
    q->max = max_running;
    memcpy(q->name, queue, strlen(queue) + 1);

    struct span key = {q->key, keys_due(q->key, w->context->settings.space, queue)};
    struct reclaim_spec spec = {.script = w->script,
                                .leases = &w->leases,
                                .key = key,
                                .holder = span_of(w->wake.name),
                                .done = queue_reclaimed,
                                .arg = q};
    reclaim_init(&q->reclaim, &spec);
    list_init(&q->owes);
    list_insert(&w->queues, &q->node);
    table_add(&w->names, &q->named, (struct span){q->name, strlen(q->name)});
    wake_watch(&w->wake, &q->watch, q->name, key);
    if (!eviction_known(&w->eviction)) {
        eviction_check(&w->eviction, key);
    }

    return 0;
}

static void stop(struct queue *q)
{
    struct work *w = q->work;

    q->stopped = true;
    reclaim_stop(&q->reclaim);
    list_remove(&q->node);
    list_insert(&w->stopped, &q->node);
    table_remove(&w->names, &q->named);
    queue_forgive(q);
    queue_withdraw(q);
    wake_unwatch(&q->watch);
    leases_release_queued(&w->leases, q);
    work_want_turn(w);
}

int work_stop(struct work *w, const char *queue)
{
    struct queue *q = find(w, queue);

    if (!q) {
        return LAPSE_ENOENT;
    }
    stop(q);
    return 0;
}

void work_told(struct work *w, const char *queue, int64_t due_ms)
{
    struct queue *q = list_empty(&w->queues) ? NULL : find(w, queue);
    if (q) {
        queue_told(w, q, due_ms);
    }
}

void work_up(struct work *w)
{
    leases_renew(
        &w->leases); /* before any sweep: Redis may have been away for longer than the leases */
    if (!list_empty(&w->queues)) {
        struct queue *any = CONTAINER(w->queues.next, struct queue, node);
        eviction_check(&w->eviction, span_of(any->key));
    }

    LIST_EACH (i, &w->queues) {
        struct queue *q = CONTAINER(i, struct queue, node);
        if (w->met) {
            queue_reclaim(q);
        } else {
            queue_claim(q, LAPSE_VIA_SWEEP);
        }
    }

    w->met = true;
    wake_up(&w->wake);
}

void work_drain(struct work *w)
{
    w->closing = true;
    pubsub_ending(&w->script->node->pubsub);
    LIST_EACH (i, &w->queues) {
        stop(CONTAINER(i, struct queue, node));
    }
}

bool work_give_back(struct work *w)
{
    return leases_give_back(&w->leases);
}

bool work_idle(const struct work *w)
{
    return w->n_held == 0 && w->n_asked == 0;
}

void work_end(struct work *w)
{
    w->closing = true;
    timer_stop(&w->pause);
    eviction_close(&w->eviction);
    leases_stop(&w->leases);
    wake_close(&w->wake);
}

void work_close(struct work *w)
{
    leases_close(&w->leases);
    list_move(&w->stopped, &w->queues);
    while (!list_empty(&w->stopped)) {
        free_queue(CONTAINER(w->stopped.next, struct queue, node));
    }
    table_free(&w->names);
    queue_close(w);
}
