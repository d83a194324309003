/* SPDX-License-Identifier: MIT */
#include "listen/subscription.h"

static void on_confirmed(void *arg, struct channel *ch)
{
    struct sub *s = arg;
    s->events->confirmed(s->arg, CONTAINER(ch, struct ear, channel));
}

static void on_message(void *arg, struct channel *ch, struct span text)
{
    struct sub *s = arg;
    s->events->woken(s->arg, CONTAINER(ch, struct ear, channel), text);
}

static struct ear *sub_find(struct sub *s, struct span queue)
{
    struct table_node *n = table_find(&s->names, queue);
    return n ? CONTAINER(n, struct ear, named) : NULL;
}

static void on_matched(void *arg, struct span channel, struct span text)
{
    struct sub *s = arg;
    const char *space = s->context->settings.space;
    struct keys_event event = keys_event(channel, text, space, s->node->endpoint.address.db);
    struct ear *e = event.kind == KEYS_FOREIGN ? NULL : sub_find(s, event.queue);

    if (e && event.kind == KEYS_CANARY) {
        s->events->canary(s->arg, e, event.id);
    } else if (e) {
        s->context->stats.events++;
        s->events->expired(s->arg, e, event.id);
    } else {
        s->context->stats.foreign_events++;
    }
}

static void on_refused(void *arg, struct span error, bool again)
{
    struct context *context = ((struct sub *)arg)->context;
    char text[LOG_VALUE];
    struct lapse_health report = {
        .kind = LAPSE_HEALTH_NO_EVENTS, .err = LAPSE_EDENIED, .detail = text};

    log_escape(text, sizeof text, error.at, error.len);
    context->stats.missed_events++;
    health_report(&context->health, report);
    if (!again) {
        log_line(&context->log, LOG_SUBSCRIBE, LOG_ERR,
                 "Redis refuses the subscription: %s; alarm and sweep go on without events", text);
    }
}

static void on_down(void *arg)
{
    struct sub *s = arg;
    s->events->deaf(s->arg);
}

static bool by_keyspace(const struct sub *s)
{
    return s->context->settings.notify == LAPSE_KEYSPACE;
}

void sub_init(struct sub *s, struct node *node, const struct sub_events *events, void *arg)
{
    static const struct pubsub_events pubsub_events = {on_confirmed, on_message, on_matched,
                                                       on_refused, on_down};

    *s = (struct sub){.context = node->context, .node = node, .events = events, .arg = arg};
    table_init(&s->names);
    pubsub_init(&node->pubsub, &node->endpoint, by_keyspace(s) ? NULL : KEYS_EXPIRED,
                &pubsub_events, s);
}

void sub_add(struct sub *s, struct ear *e, const char *queue)
{
    const char *space = s->context->settings.space;
    int db = s->node->endpoint.address.db;

    e->queue = queue;
    keys_wake(e->notice, space, queue, db);
    keys_pattern(e->pattern, space, queue, db);
    table_add(&s->names, &e->named, span_of(queue));
    pubsub_add(&s->node->pubsub, &e->channel, e->notice, by_keyspace(s) ? e->pattern : NULL);
}

void sub_remove(struct sub *s, struct ear *e)
{
    if (!e->queue) {
        return; /* it was never added */
    }

    table_remove(&s->names, &e->named);
    pubsub_remove(&s->node->pubsub, &e->channel);
    e->queue = NULL;
}

void sub_close(struct sub *s)
{
    pubsub_close(&s->node->pubsub);
    table_free(&s->names);
}
