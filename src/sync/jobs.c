/* SPDX-License-Identifier: MIT */
/* lapse_sync_schedule(), lapse_sync_cancel(), lapse_sync_reschedule(), lapse_sync_kill(),
 * lapse_sync_get(), lapse_sync_wait(), lapse_sync_batch_close(), lapse_sync_batch_get(),
 * lapse_sync_free(). */
#include "sync/call.h"

struct job_args {
    const struct lapse_spec *spec;
    const char *queue;
    const char *id;
    struct lapse_due due;
    unsigned flags;
    const char *reason;
    int64_t wait_ms;
};

/* ---- answers ---- */
/* A job goes with each answer that has one, whatever its code. no_memory: what it means that the
 * job cannot be duplicated. */
static void job_answer(struct call *c, int err, const struct lapse_job *job, int no_memory)
{
    struct lapse_job *dup = NULL;

    if (job && c->out) {
        dup = lapse_job_dup(job);
        err = dup ? err : no_memory;
    }

    struct lapse_job **out = call_out(c);
    if (out && dup) {
        *out = dup;
        dup = NULL;
    }
    call_ended(c, err);
    lapse_job_free(dup);
}

static void on_changed(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    (void)l;
    job_answer(arg, err, job, LAPSE_ELOST);
}

static void on_got(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    (void)l;
    job_answer(arg, err, job, LAPSE_ENOMEM);
}

static void on_batch(struct lapse *l, int err, const struct lapse_batch *batch, void *arg)
{
    struct call *c = arg;
    struct lapse_batch *out = call_out(c);
    (void)l;

    if (out && !err) {
        *out = *batch;
    }
    call_ended(c, err);
}

/* ---- questions, in the thread of the loop ---- */
static int job_ask_schedule(struct call *c)
{
    const struct job_args *a = c->args;
    return lapse_schedule(c->sync->handle, a->spec, on_changed, c);
}

static int job_ask_cancel(struct call *c)
{
    const struct job_args *a = c->args;
    return lapse_cancel(c->sync->handle, a->queue, a->id, a->flags, on_changed, c);
}

static int job_ask_reschedule(struct call *c)
{
    const struct job_args *a = c->args;
    return lapse_reschedule(c->sync->handle, a->queue, a->id, a->due, a->flags, on_changed, c);
}

static int job_ask_kill(struct call *c)
{
    const struct job_args *a = c->args;
    return lapse_kill(c->sync->handle, a->queue, a->id, a->reason, on_changed, c);
}

static int job_ask_get(struct call *c)
{
    const struct job_args *a = c->args;
    return lapse_get(c->sync->handle, a->queue, a->id, on_got, c);
}

static int job_ask_wait(struct call *c)
{
    const struct job_args *a = c->args;
    return lapse_wait(c->sync->handle, a->queue, a->id, a->wait_ms, on_got, c);
}

static int job_ask_batch_close(struct call *c)
{
    const struct job_args *a = c->args;
    return lapse_batch_close(c->sync->handle, a->queue, a->id, on_changed, c);
}

static int job_ask_batch_get(struct call *c)
{
    const struct job_args *a = c->args;
    return lapse_batch_get(c->sync->handle, a->queue, a->id, on_batch, c);
}

/* ---- the calls ---- */
/* The struct of an older caller may end behind the flags. */
static bool job_wants_copies(const struct lapse_spec *spec)
{
    return spec && spec->size >= offsetof(struct lapse_spec, max_wait_ms) &&
           (spec->replicas > 0 || (spec->flags & LAPSE_FSYNC) != 0);
}

int lapse_sync_schedule(struct lapse_sync *s, const struct lapse_spec *spec, int64_t timeout_ms,
                        struct lapse_job **out)
{
    struct job_args args = {.spec = spec};

    if (s && timeout_ms == 0 && !s->wants_copies && job_wants_copies(spec)) {
        timeout_ms = call_patience_ms(s) + s->copies_ms;
    }

    return call_run(s, job_ask_schedule, &args, timeout_ms, out);
}

int lapse_sync_cancel(struct lapse_sync *s, const char *queue, const char *id, unsigned flags,
                      int64_t timeout_ms, struct lapse_job **out)
{
    struct job_args args = {.queue = queue, .id = id, .flags = flags};
    return call_run(s, job_ask_cancel, &args, timeout_ms, out);
}

int lapse_sync_reschedule(struct lapse_sync *s, const char *queue, const char *id,
                          struct lapse_due due, unsigned flags, int64_t timeout_ms,
                          struct lapse_job **out)
{
    struct job_args args = {.queue = queue, .id = id, .due = due, .flags = flags};
    return call_run(s, job_ask_reschedule, &args, timeout_ms, out);
}

int lapse_sync_kill(struct lapse_sync *s, const char *queue, const char *id, const char *reason,
                    int64_t timeout_ms, struct lapse_job **out)
{
    struct job_args args = {.queue = queue, .id = id, .reason = reason};
    return call_run(s, job_ask_kill, &args, timeout_ms, out);
}

int lapse_sync_get(struct lapse_sync *s, const char *queue, const char *id, int64_t timeout_ms,
                   struct lapse_job **out)
{
    struct job_args args = {.queue = queue, .id = id};
    return call_run(s, job_ask_get, &args, timeout_ms, out);
}

int lapse_sync_wait(struct lapse_sync *s, const char *queue, const char *id, int64_t wait_ms,
                    struct lapse_job **out)
{
    struct job_args args = {.queue = queue, .id = id, .wait_ms = wait_ms};

    if (!s || wait_ms < 0 || wait_ms > TIMEOUT_MAX_MS - call_patience_ms(s)) {
        return LAPSE_EINVAL;
    }

    return call_run(s, job_ask_wait, &args, call_patience_ms(s) + wait_ms, out);
}

int lapse_sync_batch_close(struct lapse_sync *s, const char *queue, const char *name,
                           int64_t timeout_ms, struct lapse_job **out)
{
    struct job_args args = {.queue = queue, .id = name};
    return call_run(s, job_ask_batch_close, &args, timeout_ms, out);
}

int lapse_sync_batch_get(struct lapse_sync *s, const char *queue, const char *name,
                         int64_t timeout_ms, struct lapse_batch *out)
{
    struct job_args args = {.queue = queue, .id = name};
    return out ? call_run(s, job_ask_batch_get, &args, call_all_ms(timeout_ms), out) : LAPSE_EINVAL;
}

void lapse_sync_free(struct lapse_job *job)
{
    lapse_job_free(job);
}
