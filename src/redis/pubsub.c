/* SPDX-License-Identifier: MIT */
/* A channel that is subscribed to again is confirmed again. That is the sign of life of this
 * connection, since hiredis 0.14.1 has no PING for a subscriber.
 *
 * A channel that is removed is unsubscribed: else hiredis would keep it for as long as the
 * connection lasts, and Redis would go on sending. There are three catches.
 *
 *  - UNSUBSCRIBE of the last of all channels and patterns, with a command behind it, aborts in
 *    0.14.1: so one is always left, the common pattern or, where there is none, one channel.
 *  - hiredis forgets who hears a channel when the end of its subscription comes: so it is not
 *    subscribed to again before that.
 *  - A user who may not UNSUBSCRIBE loses the connection by it, once. From then on what was
 *    subscribed to stays so until the connection ends. */
#include "redis/pubsub.h"
#include "base/error.h"
#include "base/mem.h"
#include <string.h>

static struct channel *channel_find(const struct table *names, struct span name)
{
    struct table_node *n = table_find(names, name);
    return n ? CONTAINER(n, struct channel, named) : NULL;
}

/* The channel comes after its pattern: that it is confirmed says that both are. */
static void channel_subscribe(struct pubsub *p, struct channel *ch)
{
    if (!conn_up(&p->conn) || channel_find(&p->leaving_names, span_of(ch->name))) {
        return;
    }

    if (ch->pattern) {
        conn_subscribe(&p->conn, "PSUBSCRIBE", ch->pattern);
    }

    ch->asked = conn_subscribe(&p->conn, "SUBSCRIBE", ch->name);
    if (ch->asked) {
        p->n_asked++;
    }
    if (strcmp(p->kept, ch->name) == 0) {
        p->kept[0] = '\0';
    }
}

/* true: it was sent, and its end is to be confirmed. */
static bool channel_unsubscribe(struct pubsub *p, struct channel *ch)
{
    if (!ch->asked || p->may_not_leave || p->ending || !conn_up(&p->conn)) {
        return false;
    }

    bool is_last = !p->pattern && p->n_asked == 1 && !p->kept[0];
    if (is_last) {
        ASSERT(strlen(ch->name) < sizeof p->kept);
        memcpy(p->kept, ch->name, strlen(ch->name) + 1);
        return false;
    }

    if (ch->pattern) {
        conn_subscribe(&p->conn, "PUNSUBSCRIBE", ch->pattern);
    }
    return conn_subscribe(&p->conn, "UNSUBSCRIBE", ch->name);
}

static void channel_left(struct pubsub *p, struct channel *ch)
{
    table_remove(&p->leaving_names, &ch->named);
    list_remove(&ch->node);
    ch->leaving = false;
    if (ch->is_left) {
        mem_free(ch);
    } else {
        p->events->left(p->arg, ch);
    }
}

/* ---- the connection ---- */
static void on_up(void *arg)
{
    struct pubsub *p = arg;

    if (p->pattern) {
        conn_subscribe(&p->conn, "PSUBSCRIBE", p->pattern);
    }
    LIST_EACH (i, &p->channels) {
        channel_subscribe(p, CONTAINER(i, struct channel, node));
    }
}

static void on_down(void *arg)
{
    struct pubsub *p = arg;

    if (p->conn.was_refused && !list_empty(&p->leaving)) {
        p->may_not_leave = true;
    }
    p->n_asked = 0;
    p->kept[0] = '\0';

    while (!list_empty(&p->leaving)) {
        channel_left(p, CONTAINER(p->leaving.next, struct channel, node));
    }
    LIST_EACH (i, &p->channels) {
        struct channel *ch = CONTAINER(i, struct channel, node);
        ch->asked = false;
        ch->confirmed = false;
    }

    p->events->down(p->arg);
}

static void on_refused(void *arg, struct span error)
{
    struct pubsub *p = arg;
    p->events->refused(p->arg, error);
}

static void on_failed(void *arg)
{
    struct pubsub *p = arg;
    p->events->failed(p->arg);
}

static bool on_ask(void *arg)
{
    struct pubsub *p = arg;

    LIST_EACH (i, &p->channels) {
        struct channel *ch = CONTAINER(i, struct channel, node);
        if (ch->asked) {
            return conn_subscribe(&p->conn, "SUBSCRIBE", ch->name);
        }
    }
    return false;
}

/* ---- frames ---- */
static void on_subscribed(struct pubsub *p, struct span name)
{
    struct channel *ch = channel_find(&p->names, name);

    if (ch && ch->asked && !ch->confirmed) {
        ch->confirmed = true;
        p->events->confirmed(p->arg, ch);
    }
}

static void on_unsubscribed(struct pubsub *p, struct span name)
{
    struct channel *left = channel_find(&p->leaving_names, name);
    struct channel *ch = channel_find(&p->names, name);

    if (left) {
        channel_left(p, left);
    }
    if (ch && !ch->asked) {
        channel_subscribe(p, ch); /* it was added again meanwhile */
    }
}

static void on_message(struct pubsub *p, struct span name, struct span text)
{
    struct channel *ch = channel_find(&p->names, name);

    if (ch) {
        p->events->message(p->arg, ch, text);
    }
}

/* ["psubscribe", pattern, n] ["subscribe", channel, n] ["unsubscribe", channel, n]
 * ["pmessage", pattern, channel, text] ["message", channel, text] */
static void on_pushed(void *arg, const struct redisReply *reply)
{
    struct pubsub *p = arg;
    struct span kind;
    struct span second;
    struct span third;
    struct span fourth;

    if (!reply_text(reply_at(reply, 0), &kind) || !reply_text(reply_at(reply, 1), &second)) {
        return;
    }

    if (span_is(kind, "subscribe")) {
        on_subscribed(p, second);
    } else if (span_is(kind, "unsubscribe")) {
        on_unsubscribed(p, second);
    } else if (!reply_text(reply_at(reply, 2), &third)) {
        return;
    } else if (span_is(kind, "message")) {
        on_message(p, second, third);
    } else if (span_is(kind, "pmessage") && reply_text(reply_at(reply, 3), &fourth)) {
        p->events->matched(p->arg, third, fourth);
    }
}

/* ---- what the owner calls ---- */
void pubsub_init(struct pubsub *p, struct endpoint *endpoint, enum conn_role role,
                 const char *pattern, const struct pubsub_events *events, void *arg)
{
    static const struct conn_events conn_events = {.up = on_up,
                                                   .down = on_down,
                                                   .failed = on_failed,
                                                   .pushed = on_pushed,
                                                   .refused = on_refused,
                                                   .ask = on_ask};

    *p = (struct pubsub){.pattern = pattern, .events = events, .arg = arg};
    list_init(&p->channels);
    list_init(&p->leaving);
    table_init(&p->names);
    table_init(&p->leaving_names);
    conn_init(&p->conn, endpoint, role, &conn_events, p);
}

void pubsub_add(struct pubsub *p, struct channel *ch, const char *name, const char *pattern)
{
    *ch = (struct channel){.name = name, .pattern = pattern};
    list_insert(&p->channels, &ch->node);
    table_add(&p->names, &ch->named, span_of(name));

    if (p->started) {
        channel_subscribe(p, ch);
    } else {
        p->started = true;
        conn_start(&p->conn);
    }
}

void pubsub_remove(struct pubsub *p, struct channel *ch)
{
    table_remove(&p->names, &ch->named);
    list_remove(&ch->node);

    ch->leaving = channel_unsubscribe(p, ch);
    if (ch->leaving) {
        list_insert(&p->leaving, &ch->node);
        table_add(&p->leaving_names, &ch->named, span_of(ch->name));
    }
    if (ch->asked) {
        p->n_asked--;
    }
    ch->asked = false;
    ch->confirmed = false;
}

/* What remains of a channel until its end is confirmed. NULL: there is no memory. */
static struct channel *channel_remains(const char *name)
{
    size_t size = strlen(name) + 1;
    struct channel *ch = mem_new(sizeof *ch, size);

    if (ch) {
        ch->name = memcpy(ch + 1, name, size);
        ch->leaving = true;
        ch->is_left = true;
    }
    return ch;
}

void pubsub_leave(struct pubsub *p, struct channel *ch)
{
    pubsub_remove(p, ch);
    if (!ch->leaving) {
        return;
    }

    table_remove(&p->leaving_names, &ch->named);
    list_remove(&ch->node);
    ch->leaving = false;

    struct channel *remains = channel_remains(ch->name);
    if (!remains) {
        conn_drop(&p->conn); /* with the connection all of it ends */
        return;
    }
    list_insert(&p->leaving, &remains->node);
    table_add(&p->leaving_names, &remains->named, span_of(remains->name));
}

void pubsub_start(struct pubsub *p)
{
    if (p->started) {
        conn_start(&p->conn);
    }
}

void pubsub_close(struct pubsub *p)
{
    conn_close(&p->conn, LAPSE_ELOST);
    LIST_EACH (i, &p->leaving) {
        struct channel *ch = CONTAINER(i, struct channel, node);
        if (ch->is_left) {
            channel_left(p, ch); /* nobody else knows it */
        }
    }
    table_free(&p->names);
    table_free(&p->leaving_names);
}
