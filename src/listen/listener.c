/* SPDX-License-Identifier: MIT */
/* The queues by name, and what happens to all of them. A queue lives from lapse_listen() until it
 * was stopped, by lapse_unlisten() or the end of the handle, and nothing of it is pending.
 *
 * A queue of a pattern lives from when the registry names it. It is stopped when another call takes
 * it, and then made again; and when the registry has not named it for a while, as after its
 * removal. A process that scheduled to it before enters it again with its next job, but not sooner
 * than so long after it did last (script/registry.c). So until then we listen on, and if the queue
 * has jobs, we enter it ourselves. */
#include "listen/listener.h"
#include "base/error.h"
#include <stdio.h>

static struct queue *listener_find_name(const struct listener *l, struct span name)
{
    struct table_node *found = table_find(&l->names, name);

    return found ? CONTAINER(found, struct queue, named) : NULL;
}

static struct queue *listener_find(const struct listener *l, const char *name)
{
    return listener_find_name(l, span_of(name));
}

/* ---- queues ---- */
static void listener_stop_queue(struct listener *l, struct queue *q)
{
    list_remove(&q->node);
    list_insert(&l->stopped, &q->node);
    table_remove(&l->names, &q->named);
    queue_stop(q);
}

/* If a pattern has it, it comes back. */
static void listener_let_go(struct listener *l, struct queue *q)
{
    listener_stop_queue(l, q);
    patterns_look(&l->patterns, span_of(q->name));
}

static void on_unused(void *arg, struct queue *q)
{
    listener_let_go(arg, q);
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

    bool is_taken = old && !old->pattern && (!old->asked || !pulls_empty(&old->pulls));

    if (is_taken) {
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

    if ((q && !q->asked) || pattern_of(&l->patterns, span_of(queue))) {
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

    if (!q || q->asked || q->pattern) {
        return LAPSE_ENOENT;
    }

    listener_let_go(l, q);
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
        listener_let_go(l, q);
    }
}

/* ---- patterns ---- */
/* Without memory it is found again later. */
static void listener_new_of_pattern(struct listener *l, const char *name)
{
    const struct pattern *p = pattern_of(&l->patterns, span_of(name));

    if (!p) {
        return;
    }

    struct queue_spec spec = {.name = name,
                              .pattern = p,
                              .share = p->share,
                              .handler = p->handler,
                              .handler_arg = p->handler_arg};
    struct queue *q = listener_new_queue(l, &spec);
    if (q) {
        q->walk = l->patterns.walk;
    }
}

static void on_found(void *arg, struct span queue)
{
    struct listener *l = arg;
    struct queue *q = listener_find_name(l, queue);
    char name[KEYS_QUEUE_MAX + 1];

    if (q) {
        q->walk = l->patterns.walk;
        q->lost_us = 0;
        return;
    }

    snprintf(name, sizeof name, "%.*s", (int)queue.len, queue.at);
    listener_new_of_pattern(l, name);
}

/* The registry does not name it. */
static void listener_lost_queue(struct listener *l, struct queue *q)
{
    int64_t now_us = clock_us();
    int64_t patience_us = context_rarely_ms(l->shared.context) * 1000;

    if (!q->lost_us) {
        q->lost_us = now_us;
    } else if (!queue_is_empty(q)) {
        registry_enter(l->registry, q->name);
    } else if (now_us - q->lost_us >= patience_us) {
        listener_stop_queue(l, q);
    }
}

static void on_walked(void *arg, const struct pattern *p, uint64_t n)
{
    struct listener *l = arg;

    LIST_EACH (i, &l->queues) {
        struct queue *q = CONTAINER(i, struct queue, node);
        if (q->pattern == p && q->walk < n) {
            listener_lost_queue(l, q);
        }
    }
}

/* A pattern has come or gone: some queues belong to another one now, or to none. */
static void listener_pass_on_queues(struct listener *l)
{
    LIST_EACH (i, &l->queues) {
        struct queue *q = CONTAINER(i, struct queue, node);
        if (q->pattern && pattern_of(&l->patterns, span_of(q->name)) != q->pattern) {
            listener_stop_queue(l, q);
            listener_new_of_pattern(l, q->name);
        }
    }
}

/* The channel of no queue is heard where a queue is, so that it needs no connection of its own;
 * else where the registry is. */
static void listener_move_wake(struct listener *l)
{
    struct sites *ss = &l->shared.sites;
    struct site *to = NULL;

    if (!l->shared.watches.wake_at) {
        return;
    }

    LIST_EACH (i, &ss->all) {
        if (!to && !list_empty(&site_of(i)->ear.all)) {
            to = site_of(i);
        }
    }
    if (!to) {
        to = sites_of_key(ss, span_of(l->patterns.key));
    }
    if (to) {
        watches_move_wake(&l->shared.watches, &to->ear);
    }
}

int listener_add_pattern(struct listener *l, const struct pattern_spec *spec)
{
    struct pattern_spec made = *spec;

    if (patterns_find(&l->patterns, spec->beginning)) {
        return LAPSE_EEXIST;
    }

    made.share.max = 0;
    if (spec->share.max > 0) {
        made.share.cap = cap_new(spec->share.max);
        if (!made.share.cap) {
            return LAPSE_ENOMEM;
        }
    }

    int err = patterns_add(&l->patterns, &made);
    if (err) {
        cap_release(made.share.cap);
        return err;
    }

    listener_move_wake(l);
    listener_pass_on_queues(l);
    return 0;
}

int listener_remove_pattern(struct listener *l, struct span beginning)
{
    struct pattern *p = patterns_find(&l->patterns, beginning);

    if (!p) {
        return LAPSE_ENOENT;
    }

    patterns_remove(&l->patterns, p);
    listener_pass_on_queues(l);
    pattern_free(p);
    return 0;
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

static void on_eviction_again(void *arg, struct eviction *e)
{
    struct listener *l = arg;
    struct site *s = CONTAINER(e, struct site, eviction);

    LIST_EACH (i, &l->queues) {
        struct queue *q = CONTAINER(i, struct queue, node);
        if (q->site == s) {
            eviction_check(e, span_of(q->key));
            return;
        }
    }
}

/* ---- what it was told ---- */
static void listener_told_run(struct task *t)
{
    struct listener *l = CONTAINER(t, struct listener, told_task);
    struct context *c = l->shared.context;

    l->told_pending = false;
    if (c->on_told) {
        c->on_told(c->handle, l->told, c->on_told_arg);
    }
}

static void listener_told_done(struct task *t, bool alive)
{
    (void)t; /* it is a part of the handle */
    (void)alive;
}

static void listener_log_told(const struct listener *l)
{
    static const struct {
        enum log_site site;
        const char *line;
    } told[] = {
        [LAPSE_TOLD_GO_ON] = {LOG_GO_ON, "takes jobs again, as it was told to go on"},
        [LAPSE_TOLD_QUIET] = {LOG_QUIET, "takes no more jobs, as it was told to be quiet"},
        [LAPSE_TOLD_STOP] = {LOG_STOP, "takes no more jobs, as it was told to stop"},
    };

    log_line(&l->shared.context->log, told[l->told].site, LOG_NOTICE, "%s", told[l->told].line);
}

/* Of what the program has not heard yet, only the last counts. */
static void on_told(void *arg, enum lapse_told what)
{
    struct listener *l = arg;

    l->told = what;
    l->shared.quiet = what != LAPSE_TOLD_GO_ON;
    listener_log_told(l);
    if (!l->told_pending) {
        l->told_pending = true;
        l->told_task = (struct task){.run = listener_told_run, .done = listener_told_done};
        task_queue_push(l->tasks, &l->told_task);
    }

    LIST_EACH (i, &l->queues) {
        if (!l->shared.quiet) {
            queue_go_on(CONTAINER(i, struct queue, node));
        }
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
void listener_init(struct listener *l, struct fences *fences, struct registry *registry,
                   struct calendars *calendars, struct task_queue *tasks)
{
    static const struct lease_events lease_events = {on_lease_ended, on_lease_retried};
    static const struct patterns_events patterns_events = {on_found, on_walked};
    static const struct eviction_events eviction_events = {on_claims_allowed, on_eviction_again};
    struct script *script = fences->script;
    struct context *c = script->context;
    struct shared *sh = &l->shared;

    *l = (struct listener){.registry = registry, .tasks = tasks};
    *sh = (struct shared){.context = c, .script = script, .calendars = calendars};
    list_init(&l->queues);
    list_init(&l->stopped);
    list_init(&sh->ending);
    table_init(&l->names);

    membership_make_name(sh->name, &c->options);
    script->holder = span_of(sh->name);
    slots_init(&sh->slots, c->options.max_running, on_backlog_due, l);
    claims_init(&sh->claims, script, span_of(sh->name));
    leases_init(&sh->leases, fences, tasks, &lease_events, l);
    watches_init(&sh->watches, script, sh->name);
    watches_on_told(&sh->watches, on_told, l);
    patterns_init(&l->patterns, script, &sh->watches, &patterns_events, l);
    sweeps_init(&sh->sweeps, script, tasks);
    sites_init(&sh->sites, script, &sh->watches, &eviction_events, l);
    l->names_at = l->alive_at = topo_first(script->topo);
}

void listener_in_company(struct listener *l)
{
    on_claims_allowed(l);
}

/* Is it the one that has this key? If nobody wants to know, the other one is not begun. */
static bool listener_is_at(const struct listener *l, const struct node *node, const char *key,
                           bool wanted)
{
    struct script *script = l->shared.script;

    return node == topo_first(script->topo) || (wanted && node_of(script, span_of(key)) == node);
}

/* The one that has the registry, or knows who is alive; NULL: nobody wants to know. */
static struct node *listener_node_of(const struct listener *l, const char *key, bool wanted)
{
    return wanted ? node_of(l->shared.script, span_of(key)) : NULL;
}

static bool listener_wants_names(const struct listener *l)
{
    return !list_empty(&l->patterns.all);
}

static bool listener_wants_peers(const struct listener *l)
{
    return l->shared.watches.memberships.peers.n_entered > 0;
}

static void listener_check_eviction(struct listener *l, struct site *s)
{
    LIST_EACH (i, &l->queues) {
        struct queue *q = CONTAINER(i, struct queue, node);
        if (q->hears && q->site == s) {
            eviction_check(&s->eviction, span_of(q->key));
            return;
        }
    }
}

static void listener_site_up(struct listener *l, struct site *s)
{
    listener_check_eviction(l, s);

    LIST_EACH (i, &l->queues) {
        struct queue *q = CONTAINER(i, struct queue, node);
        if (q->site == s) {
            queue_up(q);
        }
    }

    site_up(s);
}

void listener_up(struct listener *l, struct node *node)
{
    struct shared *sh = &l->shared;
    struct site *s = sites_find(&sh->sites, node);

    /* Before any sweep: Redis may have been away for longer than the leases. */
    leases_renew(&sh->leases, node);

    if (s) {
        listener_site_up(l, s);
    }
    if (listener_is_at(l, node, sh->watches.memberships.peers.key, listener_wants_peers(l))) {
        memberships_up(&sh->watches.memberships);
    }
    memberships_go_on(&sh->watches.memberships);
    if (listener_is_at(l, node, l->patterns.key, listener_wants_names(l))) {
        patterns_up(&l->patterns);
    }
}

/* false: there is no memory, and it stays where it is. */
static bool listener_move_queue(struct listener *l, struct queue *q)
{
    struct site *to = sites_of_key(&l->shared.sites, span_of(q->key));

    if (to && to != q->site) {
        queue_move(q, to);
        q->has_moved = true;
        to->has_gained = true;
    }
    return to;
}

/* What the old nodes were asked for and have not answered is lost, so the same is to be done as
 * after a reconnect. Where the new one is not up yet, that is done when it is. */
static void listener_look_at_moved(struct listener *l)
{
    LIST_EACH (i, &l->shared.sites.all) {
        struct site *s = site_of(i);
        if (s->has_gained && node_up(s->node)) {
            leases_renew(&l->shared.leases, s->node);
        }
        s->has_gained = false;
    }

    LIST_EACH (i, &l->queues) {
        struct queue *q = CONTAINER(i, struct queue, node);
        if (q->has_moved && node_up(q->site->node)) {
            queue_up(q);
        }
        q->has_moved = false;
    }
}

bool listener_remapped(struct listener *l)
{
    struct memberships *ms = &l->shared.watches.memberships;
    bool all_moved = true;

    LIST_EACH (i, &l->queues) {
        all_moved = listener_move_queue(l, CONTAINER(i, struct queue, node)) && all_moved;
    }
    listener_look_at_moved(l);
    listener_move_wake(l);

    struct node *names_at = listener_node_of(l, l->patterns.key, listener_wants_names(l));
    struct node *alive_at = listener_node_of(l, ms->peers.key, listener_wants_peers(l));
    if (names_at && names_at != l->names_at && node_up(names_at)) {
        patterns_up(&l->patterns);
    }
    if (alive_at && alive_at != l->alive_at && node_up(alive_at)) {
        memberships_up(ms);
    }
    memberships_go_on(ms);
    l->names_at = names_at;
    l->alive_at = alive_at;
    return all_moved;
}

void listener_let_go_of(struct listener *l, struct node *node)
{
    sites_let_go(&l->shared.sites, node);
}

void listener_drain(struct listener *l)
{
    l->shared.closing = true;
    sites_drain(&l->shared.sites);
    patterns_stop(&l->patterns);
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
    leases_stop(&sh->leases);
    patterns_stop(&l->patterns);

    LIST_EACH (i, &l->queues) {
        queue_end(CONTAINER(i, struct queue, node));
    }

    sites_close(&sh->sites);
    watches_close(&sh->watches);
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

    patterns_close(&l->patterns);
    slots_close(&l->shared.slots);
    table_free(&l->names);
    sites_free(&l->shared.sites);
    watches_free(&l->shared.watches);
    claims_close(&l->shared.claims);
}
