/* SPDX-License-Identifier: MIT */
/* Listens. A channel that is subscribed again is confirmed again: that is its sign of life, since hiredis 0.14.1 has no
 * PING for a subscriber. A queue that nobody handles any more stays subscribed until the connection
 * ends, and is ignored: UNSUBSCRIBE of the last one with a command behind it aborts in 0.14.1. */
#include "sub.h"
#include "err.h"

static struct ear *find(struct sub *s, struct span queue)
{
    LIST_EACH (i, &s->ears) {
        struct ear *e = CONTAINER(i, struct ear, node);
        if (span_is(queue, e->queue, strlen(e->queue))) {
            return e;
        }
    }
    return NULL;
}

static bool by_keyspace(const struct sub *s)
{
    return s->core->options.set.notify == LAPSE_KEYSPACE;
}

/* The wake channel comes last: that it is confirmed says that all is. */
static void subscribe(struct sub *s, const struct ear *e)
{
    const struct options *o = &s->core->options;
    char pattern[KEYS_MAX];
    if (by_keyspace(s)) {
        keys_pattern(pattern, o->set.space, e->queue, o->url.db);
        conn_subscribe(&s->conn, "PSUBSCRIBE", pattern);
    }
    conn_subscribe(&s->conn, "SUBSCRIBE", e->wake);
}

static void on_up(void *arg)
{
    struct sub *s = arg;
    if (!by_keyspace(s)) {
        conn_subscribe(&s->conn, "PSUBSCRIBE", KEYS_EXPIRED);
    }
    LIST_EACH (i, &s->ears) {
        subscribe(s, CONTAINER(i, struct ear, node));
    }
}

static void on_down(void *arg)
{
    struct sub *s = arg;
    LIST_EACH (i, &s->ears) {
        CONTAINER(i, struct ear, node)->confirmed = false;
    }
    s->events->deaf(s->arg);
}

static bool on_ask(void *arg)
{
    struct sub *s = arg;
    return !list_empty(&s->ears) &&
           conn_subscribe(&s->conn, "SUBSCRIBE", CONTAINER(s->ears.next, struct ear, node)->wake);
}

/* ["psubscribe", pattern, n] ["subscribe", channel, n] ["pmessage", pattern, channel, text] ["message", channel, text]
 */
static void on_pushed(void *arg, const struct redisReply *reply)
{
    struct sub *s = arg;
    struct span kind, channel, text, queue, id;
    if (!reply_text(reply_at(reply, 0), &kind)) {
        return;
    }
    if (span_is(kind, "subscribe", 9) && reply_text(reply_at(reply, 1), &channel)) {
        LIST_EACH (i, &s->ears) {
            struct ear *e = CONTAINER(i, struct ear, node);
            if (span_is(channel, e->wake, strlen(e->wake)) && !e->confirmed) {
                e->confirmed = true;
                s->events->confirmed(s->arg, e);
            }
        }
    } else if (span_is(kind, "pmessage", 8) && reply_text(reply_at(reply, 2), &channel) &&
               reply_text(reply_at(reply, 3), &text)) {
        const struct options *o = &s->core->options;
        enum keys_event what = keys_event(channel, text, o->set.space, o->url.db, &queue, &id);
        struct ear *e = what == KEYS_FOREIGN ? NULL : find(s, queue);
        if (e && what == KEYS_CANARY) {
            s->events->canary(s->arg, e, id);
        } else if (e) {
            s->core->stats.events++;
            s->events->expired(s->arg, e, id);
        } else {
            s->core->stats.foreign++;
        }
    } else if (span_is(kind, "message", 7) && reply_text(reply_at(reply, 1), &channel) &&
               reply_text(reply_at(reply, 2), &text)) {
        LIST_EACH (i, &s->ears) {
            struct ear *e = CONTAINER(i, struct ear, node);
            if (span_is(channel, e->wake, strlen(e->wake))) {
                s->events->woken(s->arg, e, text);
            }
        }
    }
}

void sub_init(struct sub *s, struct core *core, const struct sub_events *events, void *arg)
{
    static const struct conn_events conn_events = {on_up, on_down, on_pushed, on_ask};
    *s = (struct sub){.core = core, .events = events, .arg = arg};
    list_init(&s->ears);
    conn_init(&s->conn, core, &conn_events, s);
}

void sub_add(struct sub *s, struct ear *e, const char *queue)
{
    const struct options *o = &s->core->options;
    e->queue = queue;
    e->confirmed = false;
    keys_wake(e->wake, o->set.space, queue, o->url.db);
    list_insert(&s->ears, &e->node);
    if (!s->started) {
        s->started = true;
        conn_start(&s->conn); /* on the first queue: a producer needs none */
    } else {
        subscribe(s, e);
    }
}

void sub_remove(struct sub *s, struct ear *e)
{
    (void)s;
    list_remove(&e->node);
    e->confirmed = false;
}

void sub_up(struct sub *s)
{
    if (s->started) {
        conn_start(&s->conn);
    }
}

void sub_close(struct sub *s)
{
    conn_close(&s->conn, LAPSE_ELOST);
}
