/* SPDX-License-Identifier: MIT */
/* lapse_sync_claim(), lapse_sync_claim_id(), lapse_sync_settle().
 *
 * A job that was claimed is held as one that a handler has: it brings the call that will settle it.
 * One that finds no memory for that, or nobody who waits for it any more, goes back. */
#include "sync/call.h"

struct claim_args {
    const char *queue;
    const char *id;
    unsigned n;
    int64_t wait_ms;
    uint64_t token;
    const struct lapse_settlement *how;
};

/* ---- claiming ---- */
/* What was claimed, and the calls that will settle it. */
struct claimed {
    struct lapse_sync_jobs jobs;
    struct list spares;
};

static void claim_take(struct claimed *to, struct lapse_sync *s, struct lapse_job *job)
{
    struct call *spare = to->jobs.n < LAPSE_SYNC_JOBS ? call_new(s) : NULL;

    if (!spare) {
        lapse_release(job, NULL, NULL);
        return;
    }

    list_insert(&to->spares, &spare->node);
    to->jobs.jobs[to->jobs.n++] = job;
}

static void claim_return(struct claimed *c)
{
    for (size_t i = 0; i < c->jobs.n; i++) {
        lapse_release(c->jobs.jobs[i], NULL, NULL);
    }
    for (struct list *i; (i = list_pop(&c->spares));) {
        call_free(CONTAINER(i, struct call, node));
    }
}

static void claim_collect(struct claimed *to, struct call *c, struct lapse_job *const *jobs,
                          size_t n)
{
    to->jobs.n = 0;
    list_init(&to->spares);
    for (size_t i = 0; i < n; i++) {
        claim_take(to, c->sync, jobs[i]);
    }
}

static void on_claimed(struct lapse *l, int err, struct lapse_job *const *jobs, size_t n, void *arg)
{
    struct call *c = arg;
    struct claimed got;
    (void)l;

    claim_collect(&got, c, jobs, n);
    if (!err && n > 0 && got.jobs.n == 0) {
        err = LAPSE_ENOMEM;
    }

    struct lapse_sync_jobs *out = call_out(c);
    bool waits = out && !err;
    if (waits) {
        *out = got.jobs;
        list_move(&c->sync->spares, &got.spares);
    }
    call_ended(c, err);
    if (!waits) {
        claim_return(&got);
    }
}

static int claim_ask(struct call *c)
{
    const struct claim_args *a = c->args;
    return lapse_claim(c->sync->handle, a->queue, a->n, a->wait_ms, on_claimed, c);
}

static int claim_ask_id(struct call *c)
{
    const struct claim_args *a = c->args;
    return lapse_claim_id(c->sync->handle, a->queue, a->id, on_claimed, c);
}

int lapse_sync_claim(struct lapse_sync *s, const char *queue, unsigned n, int64_t wait_ms,
                     int64_t timeout_ms, struct lapse_sync_jobs *out)
{
    struct claim_args args = {.queue = queue, .n = n, .wait_ms = wait_ms};

    if (!s || !out || wait_ms < 0 || wait_ms > LAPSE_WAIT_MAX_MS) {
        return LAPSE_EINVAL;
    }
    if (timeout_ms == 0) {
        timeout_ms = call_patience_ms(s) + wait_ms;
    }

    return call_run(s, claim_ask, &args, timeout_ms, out);
}

int lapse_sync_claim_id(struct lapse_sync *s, const char *queue, const char *id, int64_t timeout_ms,
                        struct lapse_job **out)
{
    struct claim_args args = {.queue = queue, .id = id};
    struct lapse_sync_jobs got = {.n = 0};
    int err = out ? call_run(s, claim_ask_id, &args, timeout_ms, &got) : LAPSE_EINVAL;

    if (err) {
        return err;
    }
    if (got.n == 0) {
        return LAPSE_ENOENT;
    }

    *out = got.jobs[0];
    return 0;
}

/* ---- settling by token ---- */
static void on_settled_by_token(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    (void)l;
    (void)job;
    call_end(arg, err);
}

static int token_ask_settle(struct call *c)
{
    const struct claim_args *a = c->args;

    return lapse_settle(c->sync->handle, a->queue, a->id, a->token, a->how, on_settled_by_token, c);
}

int lapse_sync_settle(struct lapse_sync *s, const char *queue, const char *id, uint64_t token,
                      const struct lapse_settlement *how, int64_t timeout_ms)
{
    struct claim_args args = {.queue = queue, .id = id, .token = token, .how = how};
    return call_run(s, token_ask_settle, &args, timeout_ms, NULL);
}
