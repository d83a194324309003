/* SPDX-License-Identifier: MIT */
/* When to look whether a job has ended:
 *
 *   at once        when the wait begins
 *   subscribed     when Redis has confirmed the channel: what was published before was not heard
 *   a message      names it. Anyone may publish such messages, so they only make us look
 *   connected      when Redis is there again
 *   each sweep_ms  since messages can be lost, and are published only for jobs that are kept; each
 *                  at its turn, as 10,000 looks at once would keep all other requests waiting */
#include "listen/ends.h"
#include "base/error.h"
#include "base/mem.h"
#include <string.h>

struct ended_queue {
    struct list node;
    struct table_node named; /* among all queues; not while it is leaving */
    struct ends_ear *ear;
    struct list waiters;
    struct table ids;
    struct channel channel;
    char channel_name[KEYS_MAX];
    char name[]; /* of the queue */
};

static void queue_look(struct ended_queue *q)
{
    LIST_EACH (i, &q->waiters) {
        struct end_waiter *w = CONTAINER(i, struct end_waiter, node);
        w->look(w);
    }
}

static void ear_look(struct ends_ear *ear)
{
    LIST_EACH (i, &ear->queues) {
        queue_look(CONTAINER(i, struct ended_queue, node));
    }
}

static void ends_set_tick(struct ends *e)
{
    int64_t turn_ms = e->script->context->options.sweep_ms / ROTA_TURNS;
    timer_set(&e->tick, turn_ms ? turn_ms : 1);
}

static void on_tick(void *arg)
{
    struct ends *e = arg;

    struct list *waiters = rota_turn(&e->rota);

    ends_set_tick(e);
    LIST_EACH (i, waiters) {
        struct end_waiter *w = CONTAINER(i, struct end_waiter, turn);
        w->look(w);
    }
}

/* ---- the subscription ---- */
static struct ended_queue *queue_of(struct channel *ch)
{
    return CONTAINER(ch, struct ended_queue, channel);
}

static void on_confirmed(void *arg, struct channel *ch)
{
    struct ends_ear *ear = arg;

    ear->ends->refused = false;
    queue_look(queue_of(ch));
}

/* 'ID ID ID...' */
static void on_message(void *arg, struct channel *ch, struct span text)
{
    struct ended_queue *q = queue_of(ch);
    struct span rest = text;

    (void)arg;
    for (bool more = true; more;) {
        struct span id = rest;

        more = span_cut(&rest, ' ', &id);
        for (struct table_node *n = table_find(&q->ids, id); n; n = table_next(n)) {
            struct end_waiter *w = CONTAINER(n, struct end_waiter, named);
            w->look(w);
        }
    }
}

/* It was not asked for: there is no pattern. */
static void on_matched(void *arg, struct span channel, struct span text)
{
    (void)arg;
    (void)channel;
    (void)text;
}

static void on_refused(void *arg, struct span error)
{
    struct ends_ear *ear = arg;
    struct ends *e = ear->ends;
    struct context *c = e->script->context;
    char text[LOG_VALUE];

    if (!e->refused) {
        log_escape(text, sizeof text, error.at, error.len);
        log_line(
            &c->log, LOG_SUBSCRIBE, LOG_ERR,
            "Redis refuses the subscription to ends of jobs: %s; who waits for one hears of it "
            "within sweep_ms",
            text);
    }
    e->refused = true;
}

static void on_failed(void *arg)
{
    (void)arg;
}

static void queue_free(struct ended_queue *q)
{
    table_free(&q->ids);
    list_remove(&q->node);
    mem_free(q);
}

static void on_channel_left(void *arg, struct channel *ch)
{
    (void)arg;
    queue_free(queue_of(ch));
}

static void on_down(void *arg)
{
    (void)arg;
}

/* ---- the queues ---- */
static struct ended_queue *queue_find(const struct ends *e, const char *name)
{
    struct table_node *n = table_find(&e->names, span_of(name));
    return n ? CONTAINER(n, struct ended_queue, named) : NULL;
}

static void ear_init(struct ends_ear *ear, struct ends *e, struct node *node)
{
    static const struct pubsub_events events = {
        on_confirmed, on_message, on_matched, on_refused, on_failed, on_channel_left, on_down};

    *ear = (struct ends_ear){.ends = e, .node = node};
    list_init(&ear->queues);
    list_init(&ear->leaving);
    list_insert(&e->ears, &ear->of_ends);
    pubsub_init(&ear->pubsub, &node->endpoint, CONN_ENDS, NULL, &events, ear);
    node->n_holders++;
}

static struct ends_ear *ear_of(struct list *node)
{
    return CONTAINER(node, struct ends_ear, of_ends);
}

static struct ends_ear *ends_find_ear(const struct ends *e, const struct node *node)
{
    LIST_EACH (i, &e->ears) {
        if (ear_of(i)->node == node) {
            return ear_of(i);
        }
    }
    return NULL;
}

/* Where the queue is. NULL: out of memory. */
static struct ends_ear *ends_ear_for(struct ends *e, const char *queue)
{
    char key[KEYS_MAX];
    size_t len = keys_of(key, e->script->context->options.space, queue, KEYS_DUE);
    struct node *node = node_of(e->script, (struct span){key, len});
    struct ends_ear *ear = ends_find_ear(e, node);

    if (!ear) {
        ear = mem_new(sizeof *ear, 0);
        if (ear) {
            ear_init(ear, e, node);
        }
    }
    return ear;
}

static bool ends_are_none(const struct ends *e)
{
    LIST_EACH (i, &e->ears) {
        if (!list_empty(&ear_of(i)->queues)) {
            return false;
        }
    }
    return true;
}

static void queue_hear(struct ended_queue *q, struct ends_ear *ear)
{
    q->ear = ear;
    list_insert(&ear->queues, &q->node);
    pubsub_add(&ear->pubsub, &q->channel, q->channel_name, NULL);
}

/* NULL: out of memory. */
static struct ended_queue *queue_new(struct ends *e, const char *name)
{
    const struct script *s = e->script;
    struct ends_ear *ear = ends_ear_for(e, name);
    size_t size = strlen(name) + 1;
    struct ended_queue *q = ear ? mem_new(sizeof *q, size) : NULL;

    if (!q) {
        return NULL;
    }

    memcpy(q->name, name, size);
    list_init(&q->waiters);
    table_init(&q->ids);
    keys_ends(q->channel_name, s->context->options.space, name, s->topo->db);

    if (ends_are_none(e)) {
        ends_set_tick(e);
    }
    table_add(&e->names, &q->named, span_of(q->name));
    queue_hear(q, ear);

    return q;
}

/* Nobody waits for a job of it any more. */
static void queue_leave(struct ended_queue *q)
{
    struct ends_ear *ear = q->ear;
    struct ends *e = ear->ends;

    table_remove(&e->names, &q->named);
    list_remove(&q->node);
    if (ends_are_none(e)) {
        timer_stop(&e->tick);
    }

    list_insert(&ear->leaving, &q->node);
    pubsub_remove(&ear->pubsub, &q->channel);
    if (!q->channel.leaving) {
        queue_free(q);
    }
}

/* ---- what the owner calls ---- */
int ends_add(struct ends *e, struct end_waiter *w, const char *queue, struct span id)
{
    struct ended_queue *q = queue_find(e, queue);

    if (!q) {
        q = queue_new(e, queue);
    }
    if (!q) {
        return LAPSE_ENOMEM;
    }

    w->queue = q;
    list_insert(&q->waiters, &w->node);
    rota_add(&e->rota, &w->turn);
    table_add(&q->ids, &w->named, id);
    return 0;
}

void ends_remove(struct end_waiter *w)
{
    struct ended_queue *q = w->queue;

    table_remove(&q->ids, &w->named);
    list_remove(&w->node);
    list_remove(&w->turn);
    if (list_empty(&q->waiters)) {
        queue_leave(q);
    }
}

void ends_init(struct ends *e, struct script *script)
{
    *e = (struct ends){.script = script};
    list_init(&e->ears);
    table_init(&e->names);
    rota_init(&e->rota);
    timer_init(&e->tick, script->context->loop, on_tick, e);
    ear_init(&e->first, e, topo_first(script->topo));
}

void ends_up(struct ends *e, struct node *node)
{
    struct ends_ear *ear = ends_find_ear(e, node);

    if (ear) {
        pubsub_start(&ear->pubsub);
        ear_look(ear);
    }
}

static bool queue_follow(struct ended_queue *q)
{
    struct ends_ear *from = q->ear;
    struct ends_ear *to = ends_ear_for(from->ends, q->name);

    if (to && to != from) {
        list_remove(&q->node);
        pubsub_leave(&from->pubsub, &q->channel);
        queue_hear(q, to);
        queue_look(q);
    }
    return to;
}

bool ends_remapped(struct ends *e)
{
    bool all_moved = true;

    LIST_EACH (i, &e->ears) {
        LIST_EACH (k, &ear_of(i)->queues) {
            all_moved = queue_follow(CONTAINER(k, struct ended_queue, node)) && all_moved;
        }
    }
    return all_moved;
}

static void ear_close(struct ends_ear *ear)
{
    pubsub_close(&ear->pubsub);
    while (!list_empty(&ear->leaving)) {
        queue_free(CONTAINER(ear->leaving.next, struct ended_queue, node));
    }
    list_remove(&ear->of_ends);
    ear->node->n_holders--;
}

void ends_let_go_of(struct ends *e, struct node *node)
{
    struct ends_ear *ear = ends_find_ear(e, node);

    if (ear && ear != &e->first && list_empty(&ear->queues)) {
        ear_close(ear);
        mem_free(ear);
    }
}

static void ear_drain(struct ends_ear *ear)
{
    pubsub_ending(&ear->pubsub);
    while (!list_empty(&ear->queues)) {
        struct ended_queue *q = CONTAINER(ear->queues.next, struct ended_queue, node);
        struct end_waiter *w = CONTAINER(q->waiters.next, struct end_waiter, node);

        ends_remove(w);
        w->closed(w);
    }
}

void ends_drain(struct ends *e)
{
    LIST_EACH (i, &e->ears) {
        ear_drain(ear_of(i));
    }
}

void ends_close(struct ends *e)
{
    ends_drain(e);
    LIST_EACH (i, &e->ears) {
        struct ends_ear *ear = ear_of(i);
        ear_close(ear);
        if (ear != &e->first) {
            mem_free(ear);
        }
    }
    table_free(&e->names);
}
