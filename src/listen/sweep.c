/* SPDX-License-Identifier: MIT */
/* Every sweep_ms we look whether the queue has jobs, and sweep it if it has. A queue that has none
 * is looked at more rarely for as long as we hear of none: a script that stores a job in an empty
 * queue publishes it. What looks rarely finds is a job whose producer may not publish, and jobs
 * that are kept: then a sweep frees those whose time is over.
 *
 * The times are jittered, so that listeners do not sweep in the same moment, and thousands of
 * queues not in one. What comes soon is looked at with what is due: then the looks of many queues
 * take one turn of the loop, and one write. To sweep early does no harm.
 *
 * A script that found more than it may do in one call says so, and is asked again. */
#include "listen/sweep.h"
#include "listen/told.h"
#include "script/tally.h"

enum {
    JITTER = 5, /* the part of the time by which a sweep may be early */
    EMPTY_JITTER = 2,
    LOOKS_MAX = 256 /* in one turn */
};

static int64_t sweep_every_ms(const struct sweep *s)
{
    const struct context *c = s->sweeps->context;

    return s->empty && s->subscribed ? context_rarely_ms(c) : c->options.sweep_ms;
}

static void sweeps_set_timer(struct sweeps *ss)
{
    int64_t at_us = ss->heap.first ? ss->heap.first->at : 0;

    if (at_us == ss->timer_us) {
        return;
    }

    ss->timer_us = at_us;
    if (at_us) {
        int64_t left_us = at_us - clock_us();
        timer_set(&ss->timer, left_us > 0 ? left_us / 1000 + 1 : 0);
    } else {
        timer_stop(&ss->timer);
    }
}

/* The next look. The caller sets the timer. */
static void sweep_put_off(struct sweep *s)
{
    int64_t every_us = sweep_every_ms(s) * 1000;
    int64_t jitter_us = every_us / (s->empty ? EMPTY_JITTER : JITTER);
    int64_t early_us = (int64_t)(clock_random() % (uint64_t)(jitter_us + 1));

    heap_set(&s->sweeps->heap, &s->node, clock_us() + every_us - early_us);
}

static void on_time(void *arg)
{
    struct sweeps *ss = arg;
    int64_t soon_us = clock_us() + ss->context->options.sweep_ms * 1000 / JITTER;

    ss->timer_us = 0;
    for (unsigned n = 0; n < LOOKS_MAX && ss->heap.first && ss->heap.first->at <= soon_us; n++) {
        struct sweep *s = CONTAINER(ss->heap.first, struct sweep, node);
        sweep_put_off(s);
        look_ask(&s->look);
        s->events->looks(s->arg);
    }

    sweeps_set_timer(ss);
}

static void on_looked(struct look *l, bool any, bool kept)
{
    struct sweep *s = CONTAINER(l, struct sweep, look);
    bool heard = s->heard_us >= look_sent_us(l);
    bool was_empty = s->empty;

    if (!s->on) {
        s->events->ended(s->arg);
        return;
    }

    s->empty = !any && !heard;
    if (s->empty != was_empty) {
        sweep_put_off(s);
        sweeps_set_timer(s->sweeps);
    }

    bool up = node_up(node_of(s->sweeps->script, s->key));
    if (any && up) {
        s->events->due(s->arg);
    } else {
        if (kept && up) {
            sweep_recover(s);
        }
        s->events->nothing(s->arg);
    }
}

bool sweep_look(struct sweep *s)
{
    look_ask(&s->look);
    return s->look.pending;
}

void sweep_heard(struct sweep *s)
{
    s->heard_us = clock_us();
    if (s->on && s->empty) {
        s->empty = false;
        sweep_put_off(s);
        sweeps_set_timer(s->sweeps);
    }
}

void sweep_set_subscribed(struct sweep *s, bool subscribed)
{
    s->subscribed = subscribed;
    sweep_heard(s);
}

/* ---- what a sweep does ---- */
static int64_t sweep_until_us(const struct sweep *s)
{
    return clock_us() + s->sweeps->context->options.reply_ms * 1000;
}

void sweep_recover(struct sweep *s)
{
    if (s->recover.request.pending) {
        return;
    }

    s->recover.request.until_us = sweep_until_us(s);
    script_sweep(s->sweeps->script, &s->recover, s->key, s->sweeps->context->on_event);
}

static void sweep_tell(const struct sweep *s, const struct sweep_reply *reply)
{
    struct job_row row;

    for (size_t i = 0; i < reply->n_jobs; i++) {
        if (script_swept_job(reply, i, &row)) {
            told_of_row(s->sweeps->tasks, s->sweeps->context, LAPSE_EVENT_DIED, s->queue, &row,
                        NULL);
        }
    }
}

static void on_recovered(struct sweep_request *r, int err, const struct sweep_reply *reply)
{
    struct sweep *s = CONTAINER(r, struct sweep, recover);
    struct lapse_stats *stats = &s->sweeps->context->stats;

    if (!err) {
        stats->recovered += (uint64_t)reply->n_taken;
        stats->failed += (uint64_t)reply->n_dead;
        stats->dead_freed += (uint64_t)reply->n_freed;
        tally_count(s->sweeps->context->tallies, s->queue, PAST_RECOVERED,
                    (uint64_t)reply->n_taken);
        tally_count(s->sweeps->context->tallies, s->queue, PAST_DEAD, (uint64_t)reply->n_dead);
        sweep_tell(s, reply);
    }

    if (!s->on) {
        s->events->ended(s->arg);
    } else if (!err && reply->more) {
        sweep_recover(s);
    }
}

void sweep_arm(struct sweep *s)
{
    if (s->arm.request.pending || !s->sweeps->context->options.arm_ahead_ms) {
        return;
    }

    s->arm.request.until_us = sweep_until_us(s);
    script_arm(s->sweeps->script, &s->arm, s->key, s->armed_ms);
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

/* ---- life ---- */
void sweep_start(struct sweep *s, const struct sweep_spec *spec)
{
    struct sweeps *ss = spec->sweeps;

    *s = (struct sweep){.sweeps = ss, .key = spec->key, .events = spec->events, .arg = spec->arg};
    s->queue = spec->queue;
    s->on = true;
    s->recover.end = on_recovered;
    s->arm.end = on_armed;
    look_init(&s->look, ss->script, spec->queue, on_looked);
    sweep_put_off(s);
    sweeps_set_timer(ss);
}

void sweep_stop(struct sweep *s)
{
    s->on = false;
    heap_set(&s->sweeps->heap, &s->node, 0);
    sweeps_set_timer(s->sweeps);
}

void sweeps_init(struct sweeps *ss, struct script *script, struct task_queue *tasks)
{
    *ss = (struct sweeps){.context = script->context, .script = script, .tasks = tasks};
    timer_init(&ss->timer, script->context->loop, on_time, ss);
}

void sweeps_close(struct sweeps *ss)
{
    timer_stop(&ss->timer);
}
