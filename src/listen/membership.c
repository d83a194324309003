/* SPDX-License-Identifier: MIT */
/* The registry of a queue's listeners, kept in Redis: a name, and until when it is good. In it are
 * those who hear events and can take jobs. They are in the order of README.md of src/lua; the one
 * whose rank is hash(id) mod n answers the event of id.
 *
 * With each heartbeat a listener also sets a canary, a trigger of its own, which makes the one
 * before it expire: an event that must come. When it has not come by the next one, seconds later,
 * events do not arrive. Only heartbeats count: when many listeners come and go, several canaries
 * are made within the time that an event may take.
 *
 * Whoever enters or leaves makes all others ask for their rank, and anybody may say that somebody
 * did. So a listener asks once in APART_MS at the most, and many do not ask in the same moment. One
 * that is full leaves only after FULL_MS: at the edge of what it can take it would go out and in
 * with each job. Until then the grace covers it. */
#include "listen/membership.h"

enum {
    LIFE_MS = 15000,
    BEAT_MS = LIFE_MS / 3,
    JITTER_MS = 500,
    PAUSE_MS = 300,
    APART_MS = 200,
    FULL_MS = 1000,
    FIRST_MS = 400,
    SECOND_MS = 2500,
    OVERDUE = 2
};

static int64_t after_us(int64_t ms)
{
    return clock_us() + ms * 1000;
}

static int64_t at_random_ms(int64_t most_ms)
{
    return (int64_t)(clock_random() % (uint64_t)(most_ms + 1));
}

static bool full_for_long(const struct ring *r)
{
    return r->full_us && clock_us() >= r->full_us + FULL_MS * INT64_C(1000);
}

static bool belongs(const struct ring *r)
{
    return r->wanted && !full_for_long(r);
}

static void send(struct ring *r, bool enter)
{
    r->entered = enter;
    r->again_us = 0;
    r->asked_us = clock_us();
    r->listen.ask.until_us = after_us(r->context->settings.reply_ms);
    store_heartbeat(r->script, &r->listen, r->key, r->name, enter ? LIFE_MS : 0);
}

static void set_timer(struct ring *r)
{
    int64_t at_us = r->beat_us;
    int64_t first_us = r->asked_us + APART_MS * INT64_C(1000);

    if (r->again_us && r->again_us < at_us) {
        at_us = r->again_us;
    }

    if (r->entered && r->full_us && r->full_us + FULL_MS * INT64_C(1000) < at_us) {
        at_us = r->full_us + FULL_MS * INT64_C(1000);
    }

    if (r->asked_us && at_us < first_us) {
        at_us = first_us;
    }

    int64_t left_us = at_us - clock_us();
    timer_set(&r->beat, left_us > 0 ? left_us / 1000 + 1 : 0);
}

static void on_time(void *arg)
{
    struct ring *r = arg;
    bool enter = belongs(r);

    if (r->listen.ask.asked || !node_up(r->script->node) || !(enter || r->entered)) {
        return; /* its answer, the connection, or room sets the timer again */
    }

    r->beats = clock_us() >= r->beat_us;
    r->reads = r->beats && r->entered;
    send(r, enter);
}

/* Soon, and never while the last answer is on its way: that sets the timer. */
static void ask_again(struct ring *r, int64_t in_ms)
{
    int64_t at_us = after_us(in_ms);

    if (!r->again_us || at_us < r->again_us) {
        r->again_us = at_us;
    }
    if (!r->closed && !r->listen.ask.asked) {
        set_timer(r);
    }
}

void ring_enter(struct ring *r, bool wanted)
{
    r->wanted = wanted;
    ask_again(r, 0);
}

void ring_changed(struct ring *r)
{
    ask_again(r, at_random_ms(r->n / 2));
}

void ring_room(struct ring *r, bool room)
{
    r->full_us = room ? 0 : clock_us();
    if (room && !r->entered) {
        ask_again(r, 0);
    } else if (!r->closed && !r->listen.ask.asked) {
        set_timer(r);
    }
}

static int64_t next_beat_ms(struct ring *r)
{
    bool heard = r->heard_us >= r->listen.ask.sent_us;

    r->n_unheard = !r->entered || heard ? 0 : r->n_unheard + r->reads;
    if (r->n_unheard >= OVERDUE) {
        r->context->stats.missed_events++;
        r->events->silent(r->arg);
    }

    if (r->n_unheard == 1) {
        return SECOND_MS;
    }
    if (r->n_unheard == 0 && !r->heard_us) {
        return FIRST_MS;
    }

    return BEAT_MS - at_random_ms(JITTER_MS);
}

static void on_listened(struct queue_ask *a, int err)
{
    struct ring *r = CONTAINER(a, struct ring, listen);

    if (r->closed) {
        if (r->entered && node_up(r->script->node)) {
            send(r, false);
        } else {
            r->events->left(r->arg);
        }
        return;
    }

    if (err) {
        r->beat_us = after_us(PAUSE_MS);
    } else {
        r->rank = a->n[0] < a->n[1] ? a->n[0] : -1;
        r->n = a->n[1];
        if (r->beats) {
            r->beat_us = after_us(next_beat_ms(r));
        }
    }

    if (r->wanted != r->entered && !r->full_us) {
        ask_again(r, 0);
    } else {
        set_timer(r);
    }

    r->events->ranked(r->arg);
}

void ring_heard(struct ring *r)
{
    r->heard_us = clock_us();
    if (r->n_unheard) {
        r->beat_us = after_us(BEAT_MS);
        if (!r->closed && !r->listen.ask.asked) {
            set_timer(r);
        }
    }
    r->n_unheard = 0;
}

void ring_deaf(struct ring *r)
{
    r->rank = -1;
    r->n = r->heard_us = r->beat_us = 0;
    r->n_unheard = 0;
    ring_enter(r, false);
}

bool ring_owns(const struct ring *r, struct span id)
{
    return r->rank < 0 ? r->n == 0 : span_hash(id) % r->n == r->rank;
}

void ring_init(struct ring *r, struct context *context, struct script *script, struct span key,
               struct span name, const struct ring_events *events, void *arg)
{
    *r = (struct ring){.context = context,
                       .script = script,
                       .key = key,
                       .name = name,
                       .events = events,
                       .arg = arg};
    r->rank = -1;
    r->listen.end = on_listened;
    timer_init(&r->beat, context->loop, on_time, r);
}

void ring_leave(struct ring *r)
{
    ring_close(r);
    r->wanted = false;
    if (r->entered && !r->listen.ask.asked && node_up(r->script->node)) {
        send(r, false);
    }
}

void ring_close(struct ring *r)
{
    r->closed = true;
    timer_stop(&r->beat);
}
