/* SPDX-License-Identifier: MIT */
/* The registry of a queue's listeners, kept in Redis: a name, and until when it is good. In it are those who hear
 * events and can take jobs. The one whose rank in byte order is hash(id) mod n answers the event of id.
 *
 * With each heartbeat a listener also sets a canary, a trigger of its own, which makes the one before it expire:
 * an event that must come. When it has not come by the next one, seconds later, events do not arrive. Only beats of
 * our own timer count: when many listeners come and go, several are made within the life of one canary. */
#include "ring.h"

enum { LIFE_MS = 15000, PAUSE_MS = 300, SOON_MS = 100, FIRST_MS = 100, SECOND_MS = 2500, OVERDUE = 2 };

void ring_enter(struct ring *r, bool wanted)
{
    r->wanted = wanted;
    if (r->listen.ask.asked) {
        r->again = true;
    } else if (conn_up(r->script->conn) && (wanted || r->entered)) {
        r->entered = wanted;
        r->again = false;
        r->listen.ask.until_us = clock_us() + r->core->options.set.reply_ms * 1000;
        store_listen(r->script, &r->listen, r->key, r->name, wanted ? LIFE_MS : 0);
    }
}

void ring_soon(struct ring *r, bool wanted)
{
    r->wanted = wanted;
    timer_set(&r->beat, SOON_MS);
}

static void on_beat(void *arg)
{
    struct ring *r = arg;
    r->reads = r->entered && !r->listen.ask.asked;
    ring_enter(r, r->wanted);
}

static int64_t next_beat_ms(struct ring *r)
{
    bool heard = r->heard_us >= r->listen.ask.sent_us;
    r->n_unheard = !r->entered || heard ? 0 : r->n_unheard + r->reads;
    r->reads = false;
    if (r->n_unheard >= OVERDUE) {
        r->core->stats.deaf++;
        r->events->silent(r->arg);
    }
    if (r->wanted != r->entered) {
        return SOON_MS;
    }
    return r->n_unheard == 1 ? SECOND_MS : r->n_unheard || r->heard_us ? LIFE_MS / 3 : FIRST_MS;
}

static void on_listened(struct queue_ask *a, int err)
{
    struct ring *r = CONTAINER(a, struct ring, listen);
    int64_t wait_ms = PAUSE_MS;
    if (!err) {
        r->rank = a->n[0] < a->n[1] ? a->n[0] : -1;
        r->n = a->n[1];
        wait_ms = next_beat_ms(r);
    }
    if (r->again) {
        ring_enter(r, r->wanted);
    } else if (!r->closed) {
        timer_set(&r->beat, wait_ms);
    }
    if (!r->closed) {
        r->events->ranked(r->arg);
    }
}

void ring_heard(struct ring *r)
{
    r->heard_us = clock_us();
    if (r->n_unheard && r->wanted == r->entered) {
        timer_set(&r->beat, LIFE_MS / 3);
    }
    r->n_unheard = 0;
}

void ring_deaf(struct ring *r)
{
    r->rank = -1;
    r->n = r->heard_us = 0;
    ring_enter(r, false);
}

bool ring_owns(const struct ring *r, struct span id)
{
    return r->rank < 0 ? r->n == 0 : keys_hash(id.at, id.len) % r->n == r->rank;
}

void ring_init(struct ring *r, struct core *core, struct script *script, struct span key, struct span name,
               const struct ring_events *events, void *arg)
{
    *r = (struct ring){.core = core, .script = script, .key = key, .name = name, .events = events, .arg = arg};
    r->rank = -1;
    r->listen.end = on_listened;
    timer_init(&r->beat, core->loop, on_beat, r);
}

void ring_close(struct ring *r)
{
    r->closed = true;
    timer_stop(&r->beat);
}
