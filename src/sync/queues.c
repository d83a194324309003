/* SPDX-License-Identifier: MIT */
/* lapse_sync_list(), lapse_sync_list_tag(), lapse_sync_list_batch(), lapse_sync_adopt(),
 * lapse_sync_depth(), lapse_sync_stats(), lapse_sync_lateness(), lapse_sync_on_health(),
 * lapse_sync_on_event(), lapse_sync_on_told(). */
#include "sync/call.h"

/* ---- list ---- */
struct list_args {
    const char *queue;
    enum lapse_state state;
    const char *tag;   /* of a list by tag */
    const char *batch; /* or by batch */
    const struct lapse_job *after;
    unsigned n;
};

void lapse_sync_free_jobs(struct lapse_sync_jobs *jobs)
{
    if (!jobs) {
        return;
    }
    for (size_t i = 0; i < jobs->n; i++) {
        lapse_job_free(jobs->jobs[i]);
    }
    jobs->n = 0;
}

static bool list_dup(struct lapse_sync_jobs *out, const struct lapse_job *const *jobs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        out->jobs[i] = lapse_job_dup(jobs[i]);
        if (!out->jobs[i]) {
            return false;
        }
        out->n++;
    }

    return true;
}

static void on_list(struct lapse *l, int err, const struct lapse_job *const *jobs, size_t n,
                    void *arg)
{
    struct call *c = arg;
    struct lapse_sync_jobs dups = {.n = 0};
    (void)l;

    if (!err && !list_dup(&dups, jobs, n)) {
        err = LAPSE_ENOMEM;
    }

    struct lapse_sync_jobs *out = call_out(c);
    if (out && !err) {
        *out = dups;
        dups.n = 0;
    }
    call_ended(c, err);
    lapse_sync_free_jobs(&dups);
}

static int list_ask(struct call *c)
{
    const struct list_args *a = c->args;
    return lapse_list(c->sync->handle, a->queue, a->state, a->after, a->n, on_list, c);
}

int lapse_sync_list(struct lapse_sync *s, const char *queue, enum lapse_state state,
                    const struct lapse_job *after, unsigned n, int64_t timeout_ms,
                    struct lapse_sync_jobs *out)
{
    struct list_args args = {.queue = queue, .state = state, .after = after, .n = n};
    return out ? call_run(s, list_ask, &args, timeout_ms, out) : LAPSE_EINVAL;
}

static int list_tag_ask(struct call *c)
{
    const struct list_args *a = c->args;
    return lapse_list_tag(c->sync->handle, a->queue, a->tag, a->after, a->n, on_list, c);
}

int lapse_sync_list_tag(struct lapse_sync *s, const char *queue, const char *tag,
                        const struct lapse_job *after, unsigned n, int64_t timeout_ms,
                        struct lapse_sync_jobs *out)
{
    struct list_args args = {.queue = queue, .tag = tag, .after = after, .n = n};
    return out ? call_run(s, list_tag_ask, &args, timeout_ms, out) : LAPSE_EINVAL;
}

static int list_batch_ask(struct call *c)
{
    const struct list_args *a = c->args;
    return lapse_list_batch(c->sync->handle, a->queue, a->batch, a->after, a->n, on_list, c);
}

int lapse_sync_list_batch(struct lapse_sync *s, const char *queue, const char *batch,
                          const struct lapse_job *after, unsigned n, int64_t timeout_ms,
                          struct lapse_sync_jobs *out)
{
    struct list_args args = {.queue = queue, .batch = batch, .after = after, .n = n};
    return out ? call_run(s, list_batch_ask, &args, timeout_ms, out) : LAPSE_EINVAL;
}

/* ---- adopt ---- */
struct adopt_args {
    const char *queue;
    const struct lapse_adoption *adoption;
};

/* What was moved is given with an error, too. */
static void on_adopt(struct lapse *l, int err, const struct lapse_job *const *jobs, size_t n,
                     void *arg)
{
    struct call *c = arg;
    struct lapse_sync_jobs dups = {.n = 0};
    (void)l;

    if (!list_dup(&dups, jobs, n)) {
        err = LAPSE_ELOST;
    }

    struct lapse_sync_jobs *out = call_out(c);
    if (out) {
        *out = dups;
        dups.n = 0;
    }
    call_ended(c, err);
    lapse_sync_free_jobs(&dups);
}

static int adopt_ask(struct call *c)
{
    const struct adopt_args *a = c->args;
    return lapse_adopt(c->sync->handle, a->queue, a->adoption, on_adopt, c);
}

int lapse_sync_adopt(struct lapse_sync *s, const char *queue, const struct lapse_adoption *adoption,
                     int64_t timeout_ms, struct lapse_sync_jobs *out)
{
    struct adopt_args args = {.queue = queue, .adoption = adoption};

    if (!out) {
        return LAPSE_EINVAL;
    }
    out->n = 0;
    return call_run(s, adopt_ask, &args, timeout_ms, out);
}

/* ---- depth ---- */
static void on_depth(struct lapse *l, int err, const struct lapse_depth *depth, void *arg)
{
    struct call *c = arg;
    struct lapse_depth *out = call_out(c);
    (void)l;

    if (out && !err) {
        *out = *depth;
    }
    call_ended(c, err);
}

static int depth_ask(struct call *c)
{
    return lapse_depth(c->sync->handle, c->args, on_depth, c);
}

int lapse_sync_depth(struct lapse_sync *s, const char *queue, int64_t timeout_ms,
                     struct lapse_depth *out)
{
    return out ? call_run(s, depth_ask, queue, timeout_ms, out) : LAPSE_EINVAL;
}

/* ---- statistics ---- */
struct stats_args {
    struct lapse_stats *out;
    size_t size;
};

/* The caller waits while this runs, so it may write to the caller's. */
static int stats_ask(struct call *c)
{
    const struct stats_args *a = c->args;

    lapse_stats(c->sync->handle, a->out, a->size);
    return CALL_OVER;
}

int lapse_sync_stats(struct lapse_sync *s, struct lapse_stats *out, size_t size)
{
    struct stats_args args = {.out = out, .size = size};
    return out ? call_run(s, stats_ask, &args, 0, NULL) : LAPSE_EINVAL;
}

struct lateness_args {
    enum lapse_via via;
    struct lapse_histogram *out;
};

static int lateness_ask(struct call *c)
{
    const struct lateness_args *a = c->args;
    int err = lapse_lateness(c->sync->handle, a->via, a->out);

    return err ? err : CALL_OVER;
}

int lapse_sync_lateness(struct lapse_sync *s, enum lapse_via via, struct lapse_histogram *out)
{
    struct lateness_args args = {.via = via, .out = out};
    return call_run(s, lateness_ask, &args, 0, NULL);
}

/* ---- health ---- */
struct health_args {
    lapse_sync_health_fn *fn;
    void *arg;
};

static void on_health(struct lapse *l, const struct lapse_health *h, void *arg)
{
    struct lapse_sync *s = arg;

    (void)l;
    s->health_fn(s, h, s->health_arg);
}

static int health_ask(struct call *c)
{
    const struct health_args *a = c->args;
    struct lapse_sync *s = c->sync;

    s->health_fn = a->fn;
    s->health_arg = a->arg;
    lapse_on_health(s->handle, a->fn ? on_health : NULL, s);
    return CALL_OVER;
}

int lapse_sync_on_health(struct lapse_sync *s, lapse_sync_health_fn *fn, void *arg)
{
    struct health_args args = {.fn = fn, .arg = arg};
    return call_run(s, health_ask, &args, 0, NULL);
}

/* ---- events ---- */
struct event_args {
    lapse_sync_event_fn *fn;
    void *arg;
};

static void on_event(struct lapse *l, enum lapse_event what, const struct lapse_job *job, void *arg)
{
    struct lapse_sync *s = arg;

    (void)l;
    s->event_fn(s, what, job, s->event_arg);
}

static int event_ask(struct call *c)
{
    const struct event_args *a = c->args;
    struct lapse_sync *s = c->sync;

    s->event_fn = a->fn;
    s->event_arg = a->arg;
    lapse_on_event(s->handle, a->fn ? on_event : NULL, s);
    return CALL_OVER;
}

int lapse_sync_on_event(struct lapse_sync *s, lapse_sync_event_fn *fn, void *arg)
{
    struct event_args args = {.fn = fn, .arg = arg};
    return call_run(s, event_ask, &args, 0, NULL);
}

/* ---- what it was told ---- */
struct told_args {
    lapse_sync_told_fn *fn;
    void *arg;
};

static void on_told(struct lapse *l, enum lapse_told what, void *arg)
{
    struct lapse_sync *s = arg;

    (void)l;
    s->told_fn(s, what, s->told_arg);
}

static int told_ask(struct call *c)
{
    const struct told_args *a = c->args;
    struct lapse_sync *s = c->sync;

    s->told_fn = a->fn;
    s->told_arg = a->arg;
    lapse_on_told(s->handle, a->fn ? on_told : NULL, s);
    return CALL_OVER;
}

int lapse_sync_on_told(struct lapse_sync *s, lapse_sync_told_fn *fn, void *arg)
{
    struct told_args args = {.fn = fn, .arg = arg};
    return call_run(s, told_ask, &args, 0, NULL);
}
