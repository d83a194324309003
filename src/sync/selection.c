/* SPDX-License-Identifier: MIT */
/* lapse_sync_cancel_all(), lapse_sync_kill_all(), lapse_sync_reschedule_all(),
 * lapse_sync_remove(). */
#include "sync/call.h"

struct selection_args {
    const char *queue;
    const struct lapse_where *where;
    struct lapse_due due;
    int64_t spread_ms;
    unsigned flags;
    const char *reason;
};

static void on_count(struct lapse *l, int err, uint64_t n, uint64_t n_running, void *arg)
{
    struct call *c = arg;
    struct lapse_sync_count *out = call_out(c);
    (void)l;

    if (out) {
        out->n = n;
        out->n_running = n_running;
    }
    call_ended(c, err);
}

static int selection_ask_cancel(struct call *c)
{
    const struct selection_args *a = c->args;
    return lapse_cancel_all(c->sync->handle, a->queue, a->where, a->flags, on_count, c);
}

static int selection_ask_reschedule(struct call *c)
{
    const struct selection_args *a = c->args;
    return lapse_reschedule_all(c->sync->handle, a->queue, a->where, a->due, a->spread_ms, a->flags,
                                on_count, c);
}

static int selection_ask_kill(struct call *c)
{
    const struct selection_args *a = c->args;
    return lapse_kill_all(c->sync->handle, a->queue, a->where, a->reason, on_count, c);
}

static int selection_ask_remove(struct call *c)
{
    const struct selection_args *a = c->args;
    return lapse_remove(c->sync->handle, a->queue, a->flags, on_count, c);
}

int lapse_sync_cancel_all(struct lapse_sync *s, const char *queue, const struct lapse_where *w,
                          unsigned flags, int64_t timeout_ms, struct lapse_sync_count *out)
{
    struct selection_args args = {.queue = queue, .where = w, .flags = flags};
    return call_run(s, selection_ask_cancel, &args, call_all_ms(timeout_ms), out);
}

int lapse_sync_kill_all(struct lapse_sync *s, const char *queue, const struct lapse_where *w,
                        const char *reason, int64_t timeout_ms, struct lapse_sync_count *out)
{
    struct selection_args args = {.queue = queue, .where = w, .reason = reason};
    return call_run(s, selection_ask_kill, &args, call_all_ms(timeout_ms), out);
}

int lapse_sync_reschedule_all(struct lapse_sync *s, const char *queue, const struct lapse_where *w,
                              struct lapse_due due, int64_t spread_ms, unsigned flags,
                              int64_t timeout_ms, struct lapse_sync_count *out)
{
    struct selection_args args = {
        .queue = queue,
        .where = w,
        .due = due,
        .spread_ms = spread_ms,
        .flags = flags,
    };
    return call_run(s, selection_ask_reschedule, &args, call_all_ms(timeout_ms), out);
}

int lapse_sync_remove(struct lapse_sync *s, const char *queue, unsigned flags, int64_t timeout_ms,
                      struct lapse_sync_count *out)
{
    struct selection_args args = {.queue = queue, .flags = flags};
    return call_run(s, selection_ask_remove, &args, call_all_ms(timeout_ms), out);
}
