/* SPDX-License-Identifier: MIT */
/* The queues by name, and what happens to all of them. A queue lives from lapse_listen() until it
 * was stopped, by lapse_unlisten() or the end of the handle, and nothing of it is pending. */
#include "listen/listener.h"
#include "base/error.h"

static struct queue *listener_find(const struct listener *l, const char *name)
{
    struct table_node *found = table_find(&l->names, span_of(name));

    return found ? CONTAINER(found, struct queue, named) : NULL;
}

/* ---- queues ---- */
static void listener_stop_queue(struct listener *l, struct queue *q)
{
    list_remove(&q->node);
    list_insert(&l->stopped, &q->node);
    table_remove(&l->names, &q->named);
    queue_stop(q);
}

static void on_unused(void *arg, struct queue *q)
{
    listener_stop_queue(arg, q);
}

/* NULL: out of memory. */
static struct queue *listener_new_queue(struct listener *l, struct queue_spec *spec)
{
    spec->shared = &l->shared;
    spec->unused = on_unused;
    spec->unused_arg = l;
    struct queue *q = queue_new(spec);

    if (q) {
        q->number = ++l->n_queues;
        list_insert(&l->queues, &q->node);
        table_add(&l->names, &q->named, span_of(q->name));
    }

    return q;
}

int listener_add(struct listener *l, const char *queue, const struct share_spec *share,
                 lapse_handler *fn, void *arg)
{
    struct queue_spec spec = {.name = queue, .share = *share, .handler = fn, .handler_arg = arg};
    struct queue *old = listener_find(l, queue);

    if (old && (!old->asked || !pulls_empty(&old->pulls))) {
        return LAPSE_EEXIST;
    }
    if (old) {
        listener_stop_queue(l, old);
    }

    return listener_new_queue(l, &spec) ? 0 : LAPSE_ENOMEM;
}

int listener_pull(struct listener *l, const char *queue, struct pull *p)
{
    struct queue_spec spec = {.name = queue, .share = {.weight = 1}, .asked = true};
    struct queue *q = listener_find(l, queue);

    if (q && !q->asked) {
        return LAPSE_EEXIST;
    }
    if (!q) {
        q = listener_new_queue(l, &spec);
    }

    return q ? queue_pull(q, p) : LAPSE_ENOMEM;
}

int listener_remove(struct listener *l, const char *queue)
{
    struct queue *q = listener_find(l, queue);

    if (!q || q->asked) {
        return LAPSE_ENOENT;
    }

    listener_stop_queue(l, q);
    return 0;
}

uint64_t listener_number(const struct listener *l, const char *queue)
{
    const struct queue *q = listener_find(l, queue);

    return q ? q->number : 0;
}

void listener_remove_numbered(struct listener *l, const char *queue, uint64_t number)
{
    struct queue *q = listener_find(l, queue);

    if (q && q->number == number) {
        listener_stop_queue(l, q);
    }
}

void listener_scheduled(struct listener *l, const char *queue, struct span id, int64_t due_ms)
{
    struct queue *q = listener_find(l, queue);

    if (q) {
        queue_scheduled(q, id, due_ms);
    }
}

void listener_configured(struct listener *l, const char *queue)
{
    struct queue *q = listener_find(l, queue);

    if (q) {
        queue_configured(q);
    }
}

void listener_died(struct listener *l, const char *queue, const struct leased_job *job,
                   struct span reason)
{
    leases_tell_dead(&l->shared.leases, queue, job, reason);
}

void listener_settled(struct listener *l, const struct leased_job *job)
{
    leases_settled(&l->shared.leases, job);
}

void listener_renewed(struct listener *l, const struct leased_job *job,
                      const struct lease_span *span)
{
    leases_renewed(&l->shared.leases, job, span);
}

int listener_around(struct listener *l, const struct around *a)
{
    return leases_around(&l->shared.leases, a);
}

/* ---- events ---- */
static void on_lease_ended(void *arg, void *owner)
{
    (void)arg;
    queue_lease_ended(owner);
}

static void on_lease_retried(void *arg, void *owner, struct span id, int64_t due_ms)
{
    (void)arg;
    queue_scheduled(owner, id, due_ms);
}

static void on_backlog_due(void *arg)
{
    struct listener *l = arg;
    shared_want_turn(&l->shared);
}

static void on_claims_allowed(void *arg)
{
    struct listener *l = arg;

    LIST_EACH (i, &l->queues) {
        queue_claims_allowed(CONTAINER(i, struct queue, node));
    }
}

/* ---- the turn ---- */
static void listener_free_ended(struct listener *l)
{
    for (struct list *i; (i = list_pop(&l->shared.ending));) {
        struct queue *q = CONTAINER(i, struct queue, node);
        if (queue_is_idle(q)) {
            queue_free(q);
        } else {
            list_insert(&l->stopped, &q->node);
        }
    }
}

int64_t listener_turn_due_us(const struct listener *l)
{
    return l->shared.turn_due_us;
}

void listener_turn(struct listener *l)
{
    if (!l->shared.turn_due_us) {
        return;
    }

    l->shared.turn_due_us = 0;
    slots_serve_backlog(&l->shared.slots, queue_serve);
    listener_free_ended(l);
}

/* ---- life ---- */
void listener_init(struct listener *l, struct script *script, struct calendars *calendars,
                   struct task_queue *tasks)
{
    static const struct lease_events lease_events = {on_lease_ended, on_lease_retried};
    struct context *c = script->context;
    struct shared *sh = &l->shared;

    *l = (struct listener){.shared = {.context = c, .script = script, .calendars = calendars}};
    list_init(&l->queues);
    list_init(&l->stopped);
    list_init(&sh->ending);
    table_init(&l->names);

    membership_make_name(sh->name, &c->options);
    script->holder = span_of(sh->name);
    slots_init(&sh->slots, c->options.max_running, on_backlog_due, l);
    claims_init(&sh->claims, script, span_of(sh->name));
    leases_init(&sh->leases, script, tasks, &lease_events, l);
    alarms_init(&sh->alarms, script);
    watches_init(&sh->watches, script, &sh->alarms, sh->name);
    sweeps_init(&sh->sweeps, script, tasks);
    eviction_init(&sh->eviction, script, on_claims_allowed, l);
}

void listener_up(struct listener *l)
{
    struct shared *sh = &l->shared;

    /* Before any sweep: Redis may have been away for longer than the leases. */
    leases_renew(&sh->leases);

    LIST_EACH (i, &l->queues) {
        struct queue *q = CONTAINER(i, struct queue, node);
        if (q->hears) {
            eviction_check(&sh->eviction, span_of(q->key));
            break;
        }
    }

    LIST_EACH (i, &l->queues) {
        queue_up(CONTAINER(i, struct queue, node), !l->was_up);
    }

    l->was_up = true;
    watches_up(&sh->watches);
    alarms_up(&sh->alarms);
}

void listener_drain(struct listener *l)
{
    l->shared.closing = true;
    watches_drain(&l->shared.watches);
    LIST_EACH (i, &l->queues) {
        listener_stop_queue(l, CONTAINER(i, struct queue, node));
    }
}

bool listener_give_back(struct listener *l)
{
    leases_give_back(&l->shared.leases);

    return !listener_is_idle(l);
}

bool listener_is_idle(const struct listener *l)
{
    return slots_unused(&l->shared.slots);
}

void listener_stop(struct listener *l)
{
    struct shared *sh = &l->shared;

    sh->closing = true;
    eviction_close(&sh->eviction);
    leases_stop(&sh->leases);

    LIST_EACH (i, &l->queues) {
        queue_end(CONTAINER(i, struct queue, node));
    }

    watches_close(&sh->watches);
    alarms_close(&sh->alarms);
    sweeps_close(&sh->sweeps);
}

void listener_close(struct listener *l)
{
    leases_close(&l->shared.leases);

    list_move(&l->stopped, &l->queues);
    list_move(&l->stopped, &l->shared.ending);
    LIST_EACH (i, &l->stopped) {
        queue_free(CONTAINER(i, struct queue, node));
    }

    slots_close(&l->shared.slots);
    table_free(&l->names);
    watches_free(&l->shared.watches);
    claims_close(&l->shared.claims);
}
