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
    struct ends *ends;
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

static void ends_look(struct ends *e)
{
    LIST_EACH (i, &e->queues) {
        queue_look(CONTAINER(i, struct ended_queue, node));
    }
}

static void ends_set_tick(struct ends *e)
{
    int64_t turn_ms = e->node->context->options.sweep_ms / ROTA_TURNS;
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
    struct ends *e = arg;

    e->refused = false;
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
    struct ends *e = arg;
    struct context *c = e->node->context;
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

/* NULL: out of memory. */
static struct ended_queue *queue_new(struct ends *e, const char *name)
{
    const struct node *node = e->node;
    size_t size = strlen(name) + 1;
    struct ended_queue *q = mem_new(sizeof *q, size);

    if (!q) {
        return NULL;
    }

    q->ends = e;
    memcpy(q->name, name, size);
    list_init(&q->waiters);
    table_init(&q->ids);
    keys_ends(q->channel_name, node->context->options.space, name, node->endpoint.address.db);

    if (list_empty(&e->queues)) {
        ends_set_tick(e);
    }
    list_insert(&e->queues, &q->node);
    table_add(&e->names, &q->named, span_of(q->name));
    pubsub_add(&e->pubsub, &q->channel, q->channel_name, NULL);

    return q;
}

/* Nobody waits for a job of it any more. */
static void queue_leave(struct ended_queue *q)
{
    struct ends *e = q->ends;

    table_remove(&e->names, &q->named);
    list_remove(&q->node);
    if (list_empty(&e->queues)) {
        timer_stop(&e->tick);
    }

    list_insert(&e->leaving, &q->node);
    pubsub_remove(&e->pubsub, &q->channel);
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

void ends_init(struct ends *e, struct node *node)
{
    static const struct pubsub_events events = {
        on_confirmed, on_message, on_matched, on_refused, on_failed, on_channel_left, on_down};

    *e = (struct ends){.node = node};
    list_init(&e->queues);
    list_init(&e->leaving);
    table_init(&e->names);
    rota_init(&e->rota);
    timer_init(&e->tick, node->context->loop, on_tick, e);
    pubsub_init(&e->pubsub, &node->endpoint, CONN_ENDS, NULL, &events, e);
}

void ends_up(struct ends *e)
{
    pubsub_start(&e->pubsub);
    ends_look(e);
}

void ends_drain(struct ends *e)
{
    pubsub_ending(&e->pubsub);
    while (!list_empty(&e->queues)) {
        struct ended_queue *q = CONTAINER(e->queues.next, struct ended_queue, node);
        struct end_waiter *w = CONTAINER(q->waiters.next, struct end_waiter, node);

        ends_remove(w);
        w->closed(w);
    }
}

void ends_close(struct ends *e)
{
    ends_drain(e);
    pubsub_close(&e->pubsub);
    while (!list_empty(&e->leaving)) {
        queue_free(CONTAINER(e->leaving.next, struct ended_queue, node));
    }
    table_free(&e->names);
}
