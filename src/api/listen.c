/* SPDX-License-Identifier: MIT */
/* lapse_listen(), lapse_unlisten(), lapse_around(), the settles, which are lapse_done(),
 * lapse_retry(), lapse_snooze(), lapse_fail() and lapse_release(), and lapse_extend(). */
#include "api/handle.h"
#include "base/error.h"
#include "base/mem.h"
#include "job/keys.h"

/* Of struct lapse_listen_options, as in the first lapse.h. */
enum { SIZE_LEAST = offsetof(struct lapse_listen_options, weight) };

int lapse_listen(struct lapse *l, const char *queue, const struct lapse_listen_options *opts,
                 lapse_handler *fn, void *arg)
{
    struct lapse_listen_options defaults = {.size = sizeof defaults};
    struct lapse_listen_options o;

    if (!opts) {
        opts = &defaults;
    }
    if (!l || !queue || !keys_queue_ok(span_of(queue)) || !fn) {
        return LAPSE_EINVAL;
    }
    if (opts->size < SIZE_LEAST || !mem_read_sized(&o, sizeof o, opts) ||
        o.weight > LAPSE_WEIGHT_MAX) {
        return LAPSE_EINVAL;
    }
    if (l->closing) {
        return LAPSE_ECLOSED;
    }

    struct share_spec share = {.max = o.max_running, .weight = o.weight, .level = o.level};
    if (share.weight == 0) {
        share.weight = 1;
    }

    int err = listener_add(&l->listener, queue, &share, fn, arg);
    if (!err) {
        registry_use(&l->registry, queue);
    }
    return err;
}

int lapse_around(struct lapse *l, lapse_before_fn *before, lapse_after_fn *after, void *arg)
{
    const struct around around = {before, after, arg};

    if (!l || (!before && !after)) {
        return LAPSE_EINVAL;
    }
    if (l->closing) {
        return LAPSE_ECLOSED;
    }

    return listener_around(&l->listener, &around);
}

int lapse_unlisten(struct lapse *l, const char *queue)
{
    if (!l || !queue || !keys_queue_ok(span_of(queue))) {
        return LAPSE_EINVAL;
    }
    if (l->closing) {
        return LAPSE_ECLOSED;
    }

    return listener_remove(&l->listener, queue);
}

void lapse_done(struct lapse_job *job, lapse_cb *fn, void *arg)
{
    lease_settle(lease_of(job), SETTLE_DONE, 0, NULL, fn, arg);
}

void lapse_retry(struct lapse_job *job, int64_t delay_ms, const char *reason, lapse_cb *fn,
                 void *arg)
{
    int64_t in_range_ms = delay_ms < JOB_TEN_YEARS_MS ? delay_ms : JOB_TEN_YEARS_MS;

    lease_settle(lease_of(job), SETTLE_RETRY, in_range_ms, reason, fn, arg);
}

void lapse_snooze(struct lapse_job *job, int64_t delay_ms, const char *reason, lapse_cb *fn,
                  void *arg)
{
    int64_t least_ms = delay_ms > 0 ? delay_ms : 0;
    int64_t in_range_ms = least_ms < JOB_TEN_YEARS_MS ? least_ms : JOB_TEN_YEARS_MS;

    lease_settle(lease_of(job), SETTLE_SNOOZE, in_range_ms, reason, fn, arg);
}

void lapse_fail(struct lapse_job *job, const char *reason, lapse_cb *fn, void *arg)
{
    lease_settle(lease_of(job), SETTLE_FAIL, 0, reason, fn, arg);
}

void lapse_release(struct lapse_job *job, lapse_cb *fn, void *arg)
{
    lease_settle(lease_of(job), SETTLE_RELEASE, 0, NULL, fn, arg);
}

int lapse_extend(struct lapse_job *job, int64_t run_ms)
{
    if (!job || !job_run_ms_ok(run_ms)) {
        return LAPSE_EINVAL;
    }

    return lease_extend(lease_of(job), run_ms);
}

void lapse_job_free(struct lapse_job *job)
{
    if (!job) {
        return;
    }
    if (job->is_dup) {
        mem_free(job);
        return;
    }

    ASSERT(!job->handle); /* its handle is open: it is to be settled */
    lease_settle(lease_of(job), SETTLE_DONE, 0, NULL, NULL, NULL);
}
