/* SPDX-License-Identifier: MIT */
/* lapse_sync_done(), lapse_sync_retry(), lapse_sync_snooze(), lapse_sync_fail(),
 * lapse_sync_release(), lapse_sync_forget(), lapse_sync_extend(), lapse_sync_report().
 *
 * For each job that a thread has there is a call among the spares, or the surrounded, allocated
 * before the job was handed over. So a settle needs no memory, as in lapse.h.
 *
 * When the handle closes and the grace is over, it gives back what threads still have. Settling
 * that only frees the job, and the handle answers nothing; so the answer is made here. */
#include "sync/settle.h"
#include "sync/around.h"
#include "base/error.h"
#include <string.h>

/* ---- the loop ---- */
static void on_settled(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct call *c = arg;

    (void)l;
    (void)job;

    if (around_is(c)) {
        c->passage.err = err; /* what is around it hears next, and ends the call */
        return;
    }

    list_remove(&c->settling);
    call_end(c, err);
}

/* The job was given back, or its handle has closed: its settle only frees it. */
static int settle_free(struct call *c)
{
    if (around_is(c)) {
        around_end(c, LAPSE_EGONE);
    }
    lapse_job_free(c->job);
    return LAPSE_EGONE;
}

static int settle_ask(struct call *c)
{
    struct lapse_sync *s = c->sync;
    bool forgets = c->settle == CALL_FORGET;

    if (!s->handle || c->passage.given_back) {
        return settle_free(c);
    }

    if (around_is(c)) {
        c->passage.is_settled = true;
        c->passage.err = forgets ? 0 : LAPSE_EGONE; /* unless lapse answers */
    } else if (!forgets) {
        list_insert(&s->settling, &c->settling);
    }
    switch (c->settle) {
    case CALL_DONE: lapse_done(c->job, on_settled, c); break;
    case CALL_RETRY: lapse_retry(c->job, c->delay_ms, c->reason, on_settled, c); break;
    case CALL_SNOOZE: lapse_snooze(c->job, c->delay_ms, c->reason, on_settled, c); break;
    case CALL_FAIL: lapse_fail(c->job, c->reason, on_settled, c); break;
    case CALL_RELEASE: lapse_release(c->job, on_settled, c); break;
    case CALL_FORGET: lapse_forget(c->job); break;
    }

    return forgets && !around_is(c) ? CALL_OVER : 0;
}

static void settle_prepare_release(struct call *c)
{
    c->ask = settle_ask;
    c->settle = CALL_RELEASE;
    c->left = true;
}

void settle_release(struct call *c)
{
    settle_prepare_release(c);
    c->state = CALL_ASKED;
    if (settle_ask(c)) {
        call_end(c, LAPSE_EGONE);
    }
}

void settles_end(struct lapse_sync *s)
{
    for (struct list *i; (i = list_pop(&s->settling));) {
        call_end(CONTAINER(i, struct call, settling), LAPSE_EGONE);
    }
}

/* ---- threads ---- */
void settle_post_release(struct call *c)
{
    settle_prepare_release(c);
    call_post(c);
}

/* With the mutex held: the call of a job that this thread settles. */
static struct call *settle_call_of(struct lapse_sync *s, const struct lapse_job *job)
{
    struct call *c = around_find(s, job);

    if (c) {
        ASSERT(!c->ask); /* it was not settled before */
        around_turn(c);
        return c;
    }

    struct list *spare = list_pop(&s->spares);
    ASSERT(spare); /* the job is held, and was not settled before */
    return CONTAINER(spare, struct call, node);
}

/* reason may be NULL. */
static int settle_run(struct lapse_sync *s, struct lapse_job *job, enum call_settle how,
                      int64_t delay_ms, const char *reason, int64_t timeout_ms)
{
    int err = job ? call_check(s, timeout_ms) : LAPSE_EINVAL;

    if (err) {
        return err;
    }

    pthread_mutex_lock(&s->mutex);
    struct call *c = settle_call_of(s, job);
    size_t reason_len = reason ? strnlen(reason, sizeof c->reason - 1) : 0;

    memcpy(c->reason, reason ? reason : "", reason_len);
    c->reason[reason_len] = '\0';
    c->ask = settle_ask;
    c->job = job;
    c->settle = how;
    c->delay_ms = delay_ms;

    return call_wait(c, timeout_ms);
}

int lapse_sync_done(struct lapse_sync *s, struct lapse_job *job, int64_t timeout_ms)
{
    return settle_run(s, job, CALL_DONE, 0, NULL, timeout_ms);
}

int lapse_sync_retry(struct lapse_sync *s, struct lapse_job *job, int64_t delay_ms,
                     const char *reason, int64_t timeout_ms)
{
    return settle_run(s, job, CALL_RETRY, delay_ms, reason, timeout_ms);
}

int lapse_sync_snooze(struct lapse_sync *s, struct lapse_job *job, int64_t delay_ms,
                      const char *reason, int64_t timeout_ms)
{
    return settle_run(s, job, CALL_SNOOZE, delay_ms, reason, timeout_ms);
}

int lapse_sync_fail(struct lapse_sync *s, struct lapse_job *job, const char *reason,
                    int64_t timeout_ms)
{
    return settle_run(s, job, CALL_FAIL, 0, reason, timeout_ms);
}

int lapse_sync_release(struct lapse_sync *s, struct lapse_job *job, int64_t timeout_ms)
{
    return settle_run(s, job, CALL_RELEASE, 0, NULL, timeout_ms);
}

int lapse_sync_forget(struct lapse_sync *s, struct lapse_job *job)
{
    return settle_run(s, job, CALL_FORGET, 0, NULL, 0);
}

/* ---- extending ---- */
struct extend_args {
    struct lapse_job *job;
    int64_t run_ms;
};

static int extend_ask(struct call *c)
{
    const struct extend_args *a = c->args;
    int err = lapse_extend(a->job, a->run_ms);

    return err ? err : CALL_OVER;
}

int lapse_sync_extend(struct lapse_sync *s, struct lapse_job *job, int64_t run_ms,
                      int64_t timeout_ms)
{
    struct extend_args args = {.job = job, .run_ms = run_ms};

    return call_run(s, extend_ask, &args, timeout_ms, NULL);
}

/* ---- reporting ---- */
struct report_args {
    struct lapse_job *job;
    const void *bytes;
    size_t len;
};

static void on_reported(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    (void)l;
    (void)job;
    call_end(arg, err);
}

static int report_ask(struct call *c)
{
    const struct report_args *a = c->args;

    return lapse_report(a->job, a->bytes, a->len, on_reported, c);
}

int lapse_sync_report(struct lapse_sync *s, struct lapse_job *job, const void *bytes, size_t len,
                      int64_t timeout_ms)
{
    struct report_args args = {.job = job, .bytes = bytes, .len = len};

    return call_run_held(s, report_ask, &args, timeout_ms);
}
