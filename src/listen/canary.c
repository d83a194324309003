/* SPDX-License-Identifier: MIT */
/* Each time we set the canary, Redis finds that the one before has expired, and publishes its
 * event, which must come. When it does not come in time, nor one of a job, we set the canary again;
 * when that one's event does not come either, seconds later, events do not arrive.
 *
 * One for each Redis is enough, as all events come on one connection. It lies among the triggers
 * of one of the queues, where users have the right to set it, and the subscription to hear it. */
#include "listen/canary.h"
#include "base/error.h"

enum {
    BEAT_MS = 5000,
    JITTER_MS = 500,
    FIRST_MS = 400,   /* how long an event may take; to the second canary, too */
    SECOND_MS = 2500, /* how long the event after one that was not heard may take */
    UNHEARD_MAX = 2,
    ARGS = 5
};

static bool canary_on(const struct canary *c)
{
    return c->key[0] != '\0';
}

static void canary_set(struct canary *c)
{
    const char *argv[ARGS] = {"SET", c->key, "1", "PX", "1"};
    size_t lens[ARGS];
    struct conn *conn = &c->node->commands;

    for (size_t i = 0; i < ARGS; i++) {
        lens[i] = strlen(argv[i]);
    }

    c->moved = false;
    c->pending = conn_send(conn, &c->set, ARGS, argv, lens);
    if (!c->pending) {
        timer_set(&c->timer, FIRST_MS);
    }
}

/* The event of the one that the last one made expire is on its way. */
static bool canary_waits(const struct canary *c)
{
    return c->expires_one && c->heard_us < c->set.sent_us;
}

/* Not when the answer comes, for the event comes on another connection, and may be later. */
static void canary_count_unheard(struct canary *c)
{
    c->n_unheard++;
    if (c->n_unheard >= UNHEARD_MAX) {
        c->context->stats.missed_events++;
        c->silent(c->arg);
    }
}

static void on_time(void *arg)
{
    struct canary *c = arg;

    if (c->pending || !node_up(c->node)) {
        return;
    }
    if (canary_waits(c)) {
        canary_count_unheard(c);
    }

    canary_set(c);
}

static int64_t canary_next_ms(const struct canary *c)
{
    bool is_first = c->is_set && !c->expires_one;

    if (is_first || (canary_waits(c) && c->n_unheard == 0)) {
        return FIRST_MS;
    }
    if (canary_waits(c) && c->n_unheard == 1) {
        return SECOND_MS;
    }

    return BEAT_MS - (int64_t)(clock_random() % (JITTER_MS + 1));
}

static void on_set(struct call *call, int err, const struct redisReply *reply)
{
    struct canary *c = CONTAINER(call, struct canary, set);
    bool was_set = c->is_set;
    struct span refusal;

    c->pending = false;
    c->is_set = !err && !c->moved && !reply_error(reply, &refusal);
    c->expires_one = c->is_set && was_set;

    if (err || !canary_on(c)) {
        return; /* the next connection or subscription starts it again */
    }

    if (c->moved) {
        canary_set(c);
        return;
    }

    timer_set(&c->timer, canary_next_ms(c));
}

void canary_heard(struct canary *c)
{
    bool waits = canary_waits(c);

    c->heard_us = clock_us();
    c->n_unheard = 0;
    if (waits && canary_on(c) && !c->pending) {
        timer_set(&c->timer, canary_next_ms(c));
    }
}

void canary_up(struct canary *c)
{
    c->is_set = false;
    c->expires_one = false;
    if (canary_on(c) && !c->pending) {
        timer_set(&c->timer, 0);
    }
}

void canary_start(struct canary *c, const char *queue, const char *name)
{
    keys_canary(c->key, c->context->options.space, queue, name);
    c->moved = true;
    c->heard_us = 0;
    canary_up(c);
}

void canary_stop(struct canary *c)
{
    c->key[0] = '\0';
    c->moved = true;
    c->heard_us = 0;
    c->n_unheard = 0;
    timer_stop(&c->timer);
}

void canary_init(struct canary *c, struct node *node, void (*silent)(void *arg), void *arg)
{
    *c = (struct canary){.context = node->context, .node = node, .silent = silent, .arg = arg};
    c->set.end = on_set;
    timer_init(&c->timer, node->context->loop, on_time, c);
}
