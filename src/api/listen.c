/* SPDX-License-Identifier: MIT */
/* lapse_listen(), lapse_unlisten(), lapse_around(), the settles, which are lapse_done(),
 * lapse_retry(), lapse_snooze(), lapse_fail() and lapse_release(), and lapse_extend(). */
#include "api/handle.h"
#include "base/error.h"
#include "base/mem.h"
#include "job/keys.h"

/* Of struct lapse_listen_options, as in the first lapse.h. */
enum { SIZE_LEAST = offsetof(struct lapse_listen_options, weight) };

/* false: they are wrong. */
static bool listen_read(struct share_spec *out, const struct lapse_listen_options *opts)
{
    struct lapse_listen_options o = {.size = sizeof o};

    if (opts && (opts->size < SIZE_LEAST || !mem_read_sized(&o, sizeof o, opts) ||
                 o.weight > LAPSE_WEIGHT_MAX)) {
        return false;
    }

    *out = (struct share_spec){.max = o.max_running, .weight = o.weight, .level = o.level};
    if (out->weight == 0) {
        out->weight = 1;
    }
    return true;
}

int lapse_listen(struct lapse *l, const char *queue, const struct lapse_listen_options *opts,
                 lapse_handler *fn, void *arg)
{
    struct pattern_spec spec = {.handler = fn, .handler_arg = arg};
    struct span name = span_of(queue ? queue : "");
    bool is_pattern = keys_queues_of(name, &spec.beginning);

    if (!l || !fn || (!is_pattern && !keys_queue_ok(name)) || !listen_read(&spec.share, opts)) {
        return LAPSE_EINVAL;
    }
    if (l->closing) {
        return LAPSE_ECLOSED;
    }
    if (is_pattern) {
        return listener_add_pattern(&l->listener, &spec);
    }

    int err = listener_add(&l->listener, queue, &spec.share, fn, arg);
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
    struct span name = span_of(queue ? queue : "");
    struct span beginning;
    bool is_pattern = keys_queues_of(name, &beginning);

    if (!l || (!is_pattern && !keys_queue_ok(name))) {
        return LAPSE_EINVAL;
    }
    if (l->closing) {
        return LAPSE_ECLOSED;
    }

    return is_pattern ? listener_remove_pattern(&l->listener, beginning)
                      : listener_remove(&l->listener, queue);
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
