/* SPDX-License-Identifier: MIT */
/* Every sweep_ms, jittered so that listeners do not sweep in the same moment. A script that found
 * more than it may do in one call says so, and is asked again. */
#include "listen/sweep.h"

static void sweep_set_timer(struct sweep *s)
{
    int64_t every_ms = s->context->settings.sweep_ms;
    uint64_t jitter_ms = clock_random() % ((uint64_t)every_ms / 5 + 1);

    timer_set(&s->timer, every_ms - (int64_t)jitter_ms);
}

static void on_time(void *arg)
{
    struct sweep *s = arg;

    if (node_up(node_of(s->script, s->key))) {
        s->events->due(s->arg);
    }

    sweep_set_timer(s);
}

static int64_t sweep_until_us(const struct sweep *s)
{
    return clock_us() + s->context->settings.reply_ms * 1000;
}

void sweep_recover(struct sweep *s)
{
    if (s->recover.request.pending) {
        return;
    }

    s->recover.request.until_us = sweep_until_us(s);
    script_sweep(s->script, &s->recover, s->key);
}

static void on_recovered(struct sweep_request *r, int err, const struct sweep_reply *reply)
{
    struct sweep *s = CONTAINER(r, struct sweep, recover);
    struct lapse_stats *stats = &s->context->stats;

    if (!err) {
        stats->recovered += (uint64_t)reply->n_taken;
        stats->failed += (uint64_t)reply->n_dead;
    }

    if (!s->on) {
        s->events->ended(s->arg);
    } else if (!err && reply->more) {
        sweep_recover(s);
    }
}

void sweep_arm(struct sweep *s)
{
    if (s->arm.request.pending || !s->context->settings.arm_ahead_ms) {
        return;
    }

    s->arm.request.until_us = sweep_until_us(s);
    script_arm(s->script, &s->arm, s->key, s->armed_ms);
}

static void on_armed(struct arm_request *r, int err, const struct arm_reply *reply)
{
    struct sweep *s = CONTAINER(r, struct sweep, arm);

    if (!err) {
        s->armed_ms = reply->cursor_ms;
    }

    if (!s->on) {
        s->events->ended(s->arg);
    } else if (!err && reply->more) {
        sweep_arm(s);
    }
}

void sweep_start(struct sweep *s, const struct sweep_spec *spec)
{
    struct context *c = spec->script->context;

    *s = (struct sweep){.context = c,
                        .script = spec->script,
                        .key = spec->key,
                        .events = spec->events,
                        .arg = spec->arg};
    s->on = true;
    s->recover.end = on_recovered;
    s->arm.end = on_armed;
    timer_init(&s->timer, c->loop, on_time, s);
    sweep_set_timer(s);
}

void sweep_stop(struct sweep *s)
{
    s->on = false;
    timer_stop(&s->timer);
}
