/* SPDX-License-Identifier: MIT */
/* Listens. A channel that is subscribed again is confirmed again: that is its sign of life, since
 * hiredis 0.14.1 has no PING for a subscriber.
 *
 * A queue that nobody handles any more is unsubscribed: else hiredis would keep its channel for as
 * long as the connection lasts, and Redis would go on sending. Two things are to be heeded.
 * UNSUBSCRIBE of the last of all channels and patterns, with a command behind it, aborts in 0.14.1:
 * so one is always left, the pattern of all expiries or, by keyspace, the channel of one queue. And
 * hiredis forgets who hears a channel when the end of its subscription comes: so it is not
 * subscribed again until then. A user who may not UNSUBSCRIBE loses the connection by it, once;
 * from then on what was subscribed stays so until the connection ends. */
#include "listen/subscription.h"
#include "base/error.h"

static struct ear *find(struct sub *s, struct span queue)
{
    struct table_node *n = table_find(&s->names, queue);
    return n ? CONTAINER(n, struct ear, named) : NULL;
}

/* SPACE:{QUEUE}:notice:DB */
static struct ear *of_channel(struct sub *s, struct span channel)
{
    const char *end = channel.at + channel.len;
    const char *open = memchr(channel.at, '{', channel.len);
    const char *close = open ? memchr(open, '}', (size_t)(end - open)) : NULL;
    struct ear *e = close ? find(s, (struct span){open + 1, (size_t)(close - open - 1)}) : NULL;
    return e && span_is(channel, e->wake) ? e : NULL;
}

static bool by_keyspace(const struct sub *s)
{
    return s->context->settings.notify == LAPSE_KEYSPACE;
}

static bool is_leaving(const struct sub *s, const char *wake)
{
    LIST_EACH (i, &s->leaving) {
        if (strcmp(CONTAINER(i, struct ear, node)->wake, wake) == 0) {
            return true;
        }
    }
    return false;
}

static void send_pattern(struct sub *s, const char *verb, const struct ear *e)
{
    const char *space = s->context->settings.space;
    int db = s->node->endpoint.address.db;
    char pattern[KEYS_MAX];
    keys_pattern(pattern, space, e->queue, db);
    conn_subscribe(&s->conn, verb, pattern);
}

/* The wake channel comes last: that it is confirmed says that all is. */
static void subscribe(struct sub *s, struct ear *e)
{
    if (!conn_up(&s->conn) || is_leaving(s, e->wake)) {
        return;
    }

    if (by_keyspace(s)) {
        send_pattern(s, "PSUBSCRIBE", e);
    }

    e->asked = conn_subscribe(&s->conn, "SUBSCRIBE", e->wake);
    s->n_asked += e->asked;
    if (strcmp(s->kept, e->wake) == 0) {
        s->kept[0] = '\0';
    }
}

/* Is it sent? Then e is leaving. */
static bool unsubscribe(struct sub *s, struct ear *e)
{
    if (!e->asked || s->keeps || s->ending || !conn_up(&s->conn)) {
        return false;
    }

    if (by_keyspace(s) && s->n_asked == 1 && !s->kept[0]) {
        memcpy(s->kept, e->wake, sizeof s->kept);
        return false;
    }

    if (by_keyspace(s)) {
        send_pattern(s, "PUNSUBSCRIBE", e);
    }

    return conn_subscribe(&s->conn, "UNSUBSCRIBE", e->wake);
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

    s->keeps = s->keeps || (s->conn.refusal_logged && !list_empty(&s->leaving));
    s->n_asked = 0;
    s->kept[0] = '\0';
    for (struct list *i; (i = list_pop(&s->leaving));) {
        CONTAINER(i, struct ear, node)->leaving = false;
    }

    LIST_EACH (i, &s->ears) {
        struct ear *e = CONTAINER(i, struct ear, node);
        e->asked = e->confirmed = false;
    }

    s->events->deaf(s->arg);
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

static bool on_ask(void *arg)
{
    struct sub *s = arg;

    LIST_EACH (i, &s->ears) {
        struct ear *e = CONTAINER(i, struct ear, node);
        if (e->asked) {
            return conn_subscribe(&s->conn, "SUBSCRIBE", e->wake);
        }
    }
    return false;
}

static void on_subscribed(struct sub *s, struct span channel)
{
    struct ear *e = of_channel(s, channel);
    if (e && e->asked && !e->confirmed) {
        e->confirmed = true;
        s->events->confirmed(s->arg, e);
    }
}

static void on_unsubscribed(struct sub *s, struct span channel)
{
    LIST_EACH (i, &s->leaving) {
        struct ear *left = CONTAINER(i, struct ear, node);
        if (span_is(channel, left->wake)) {
            list_remove(i);
            left->leaving = false;
            break;
        }
    }

    struct ear *e = of_channel(s, channel);
    if (e && !e->asked) {
        subscribe(s, e); /* it was handled again meanwhile */
    }
}

static void on_event(struct sub *s, struct span channel, struct span text)
{
    const char *space = s->context->settings.space;
    int db = s->node->endpoint.address.db;
    struct keys_event event = keys_event(channel, text, space, db);
    struct ear *e = event.kind == KEYS_FOREIGN ? NULL : find(s, event.queue);

    if (e && event.kind == KEYS_CANARY) {
        s->events->canary(s->arg, e, event.id);
    } else if (e) {
        s->context->stats.events++;
        s->events->expired(s->arg, e, event.id);
    } else {
        s->context->stats.foreign_events++;
    }
}

/* ["psubscribe", pattern, n] ["subscribe", channel, n] ["unsubscribe", channel, n]
 * ["pmessage", pattern, channel, text] ["message", channel, text] */
static void on_pushed(void *arg, const struct redisReply *reply)
{
    struct sub *s = arg;
    struct span kind;
    struct span channel;
    struct span text;

    if (!reply_text(reply_at(reply, 0), &kind)) {
        return;
    }

    if (span_is(kind, "subscribe") && reply_text(reply_at(reply, 1), &channel)) {
        on_subscribed(s, channel);
    } else if (span_is(kind, "unsubscribe") && reply_text(reply_at(reply, 1), &channel)) {
        on_unsubscribed(s, channel);
    } else if (span_is(kind, "pmessage") && reply_text(reply_at(reply, 2), &channel) &&
               reply_text(reply_at(reply, 3), &text)) {
        on_event(s, channel, text);
    } else if (span_is(kind, "message") && reply_text(reply_at(reply, 1), &channel) &&
               reply_text(reply_at(reply, 2), &text)) {
        struct ear *e = of_channel(s, channel);
        if (e) {
            s->events->woken(s->arg, e, text);
        }
    }
}

void sub_init(struct sub *s, struct node *node, const struct sub_events *events, void *arg)
{
    static const struct conn_events conn_events = {on_up, on_down, on_pushed, on_refused, on_ask};

    *s = (struct sub){.context = node->context, .node = node, .events = events, .arg = arg};
    list_init(&s->ears);
    list_init(&s->leaving);
    table_init(&s->names);
    conn_init(&s->conn, &node->endpoint, CONN_SUBSCRIPTION, &conn_events, s);
}

void sub_add(struct sub *s, struct ear *e, const char *queue)
{
    const char *space = s->context->settings.space;
    int db = s->node->endpoint.address.db;

    e->queue = queue;
    e->asked = e->confirmed = e->leaving = false;
    keys_wake(e->wake, space, queue, db);
    list_insert(&s->ears, &e->node);
    table_add(&s->names, &e->named, (struct span){queue, strlen(queue)});
    if (!s->started) {
        s->started = true;
        conn_start(&s->conn); /* on the first queue: a producer needs none */
    } else {
        subscribe(s, e);
    }
}

void sub_remove(struct sub *s, struct ear *e)
{
    if (list_empty(&e->node)) {
        return; /* it never was there */
    }

    table_remove(&s->names, &e->named);
    list_remove(&e->node);
    e->leaving = unsubscribe(s, e);
    if (e->leaving) {
        list_insert(&s->leaving, &e->node);
    }

    s->n_asked -= e->asked;
    e->asked = e->confirmed = false;
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
    table_free(&s->names);
}
