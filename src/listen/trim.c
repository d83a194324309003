/* SPDX-License-Identifier: MIT */
/* Who forwards a queue to a stream cuts off what every group of the stream has acknowledged, every
 * sweep_ms while the stream has entries. Nobody else would: XACK frees no memory.
 *
 * Jobs also wait for a while where a list is full, or the queue has a rate: then there is nothing
 * to cut, and that is asked once. */
#include "listen/trim.h"

static void trim_ask(struct trim *t)
{
    const struct lapse_options *options = &t->script->context->options;

    if (trim_pending(t)) {
        return;
    }

    t->request.request.until_us = clock_us() + options->reply_ms * 1000;
    script_trim(t->script, &t->request, t->key);
}

static void on_time(void *arg)
{
    trim_ask(arg);
}

/* What could not be looked at is looked at again later. */
static void on_trimmed(struct trim_request *r, int err, const struct trim_reply *reply)
{
    struct trim *t = CONTAINER(r, struct trim, request);

    if (!t->on) {
        t->events->ended(t->arg);
        return;
    }

    if (!err) {
        t->is_empty = reply->n_left == 0 && !t->again;
    }
    if (err || reply->n_left > 0 || t->again) {
        trim_soon(t);
    }
    if (!err && reply->n_trimmed > 0) {
        t->events->room(t->arg);
    }
}

void trim_start(struct trim *t, struct script *script, struct span key,
                const struct trim_events *events, void *arg)
{
    *t = (struct trim){.script = script, .key = key, .events = events, .arg = arg};
    t->on = true;
    t->request.end = on_trimmed;
    timer_init(&t->timer, script->context->loop, on_time, t);
}

void trim_soon(struct trim *t)
{
    t->is_empty = false;
    t->again = trim_pending(t);
    if (t->on && !timer_on(&t->timer) && !t->again) {
        timer_set(&t->timer, t->script->context->options.sweep_ms);
    }
}

void trim_now(struct trim *t)
{
    if (t->on && !t->is_empty) {
        timer_stop(&t->timer);
        trim_ask(t);
    }
}

void trim_changed(struct trim *t)
{
    t->is_empty = false;
}

void trim_stop(struct trim *t)
{
    t->on = false;
    timer_stop(&t->timer);
}
