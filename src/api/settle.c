/* SPDX-License-Identifier: MIT */
/* lapse_settle(), which settles a job of any process by the token of its claim; lapse_report(),
 * which keeps a report of a job that this process holds; lapse_forget(). */
#include "api/request.h"
#include "base/mem.h"
#include "job/keys.h"

enum { LEASE_MIN_MS = 100, LEASE_MAX_MS = 86400000 };

struct settle_call {
    struct request request;
    lapse_cb *fn;
    enum lapse_how how;
    uint64_t token;
    bool is_ours;       /* it is this handle that must hold the job */
    int64_t lease_ms;   /* of a renewal */
    struct span reason; /* of the others, as far as they have one */
    union {
        struct settle_request settle;
        struct renew_request renew;
    } script;
};

static void settle_call_run(struct task *t)
{
    struct settle_call *c = CONTAINER(t, struct settle_call, request.task);

    if (c->fn) {
        c->fn(c->request.handle, c->request.err, NULL, c->request.arg);
    }
}

static void settle_call_done(struct task *t, bool alive)
{
    (void)alive;
    mem_free(CONTAINER(t, struct settle_call, request.task));
}

static struct leased_job settle_call_job(const struct settle_call *c)
{
    return (struct leased_job){
        .key = c->request.key, .id = c->request.id, .token = c->token, .any_holder = !c->is_ours};
}

/* ---- answers ---- */
/* Where an answer was lost, what Redis says of the repeat does not tell what became of it. */
static void settle_call_failed(struct settle_call *c, const struct script_request *r, int err)
{
    struct lapse *l = c->request.handle;
    bool over = err == LAPSE_EGONE;

    if (r->may_have_run && !(over && c->how == LAPSE_HOW_RENEW)) {
        err = LAPSE_ELOST;
    } else if (over) {
        l->context.stats.gone++;
        tally_count(&l->tallies, c->request.queue, PAST_GONE, 1);
    }

    request_end(&c->request, err);
}

static void on_settled(struct settle_request *r, int err, const struct settled_job *settled)
{
    struct settle_call *c = CONTAINER(r, struct settle_call, script.settle);
    struct leased_job job = settle_call_job(c);
    struct lapse *l = c->request.handle;

    if (err) {
        settle_call_failed(c, &r->request, err);
        return;
    }

    script_count_settled(r, settled, &l->context, c->request.queue);
    if (settled->as == SETTLED_WAITS) {
        listener_scheduled(&l->listener, c->request.queue, c->request.id, settled->due_ms);
    } else if (settled->as == SETTLED_DEAD) {
        listener_died(&l->listener, c->request.queue, &job, c->reason);
    }
    listener_settled(&l->listener, &job);
    request_wrote(&c->request, r->request.sent_us);
    request_end(&c->request, 0);
}

static void on_renewed(struct renew_request *r, int err, const struct renewed_lease *lease)
{
    struct settle_call *c = CONTAINER(r, struct settle_call, script.renew);
    struct leased_job job = settle_call_job(c);

    if (err) {
        settle_call_failed(c, &r->request, err);
        return;
    }

    struct lease_span span = {r->request.sent_us, c->lease_ms, *lease};
    listener_renewed(&c->request.handle->listener, &job, &span);
    request_wrote(&c->request, r->request.sent_us);
    request_end(&c->request, 0);
}

static void on_reported(struct settle_request *r, int err, const struct settled_job *settled)
{
    struct settle_call *c = CONTAINER(r, struct settle_call, script.settle);

    (void)settled;
    if (err) {
        settle_call_failed(c, &r->request, err);
    } else {
        request_wrote(&c->request, r->request.sent_us);
        request_end(&c->request, 0);
    }
}

/* ---- the call ---- */
static bool report_is_valid(const void *bytes, size_t len)
{
    return len <= LAPSE_REPORT_MAX && (bytes || len == 0);
}

static bool settlement_is_valid(const struct lapse_settlement *s)
{
    bool may_report = s->how == LAPSE_HOW_DONE || s->how == LAPSE_HOW_REPORT;

    if (!report_is_valid(s->report, s->report_len) || (s->report && !may_report)) {
        return false;
    }

    switch (s->how) {
    case LAPSE_HOW_DONE:
    case LAPSE_HOW_REPORT:
    case LAPSE_HOW_RELEASE: return s->ms == 0 && !s->reason;
    case LAPSE_HOW_FAIL: return s->ms == 0;
    case LAPSE_HOW_RETRY: return s->ms >= LAPSE_BACKOFF && s->ms <= JOB_TEN_YEARS_MS;
    case LAPSE_HOW_SNOOZE: return s->ms >= 0 && s->ms <= JOB_TEN_YEARS_MS;
    case LAPSE_HOW_RENEW:
        return !s->reason && (s->ms == 0 || (s->ms >= LEASE_MIN_MS && s->ms <= LEASE_MAX_MS));
    default: return false;
    }
}

static bool settlement_read(struct lapse_settlement *out, const struct lapse_settlement *in)
{
    return in && in->size >= offsetof(struct lapse_settlement, report) &&
           mem_read_sized(out, sizeof *out, in) && settlement_is_valid(out);
}

static void settle_call_renew(struct settle_call *c, int64_t lease_ms)
{
    struct lapse *l = c->request.handle;
    struct leased_job job = settle_call_job(c);

    c->lease_ms = lease_ms ? lease_ms : l->context.options.lease_ms;
    c->script.renew.end = on_renewed;
    c->script.renew.request.repeats = true;
    c->script.renew.request.until_us = request_until_us(l);
    script_renew(&l->script, &c->script.renew, &job, c->lease_ms);
}

/* A report that is refused, as by a full Redis, does not keep the settle behind it waiting. */
static void settle_call_report(struct settle_call *c, struct span report)
{
    struct lapse *l = c->request.handle;
    struct settle_request *r = &c->script.settle;
    struct leased_job job = settle_call_job(c);

    r->end = on_reported;
    r->request.repeats = true;
    r->request.yields = true;
    r->request.until_us = request_until_us(l);
    script_report(&l->script, r, &job, report);
}

static void settle_call_send(struct settle_call *c, int64_t delay_ms)
{
    struct lapse *l = c->request.handle;
    struct settle_request *r = &c->script.settle;
    struct leased_job job = settle_call_job(c);

    r->end = on_settled;
    r->request.repeats = true;
    r->request.until_us = request_until_us(l);

    switch (c->how) {
    case LAPSE_HOW_DONE: script_done(&l->script, r, &job); break;
    case LAPSE_HOW_RETRY: script_retry(&l->script, r, &job, delay_ms, c->reason); break;
    case LAPSE_HOW_SNOOZE: script_snooze(&l->script, r, &job, delay_ms, c->reason); break;
    case LAPSE_HOW_FAIL: script_fail(&l->script, r, &job, c->reason); break;
    default: script_release(&l->script, r, &job); break;
    }
}

static int settle_call_new(struct settle_call **out, struct lapse *l, struct request_spec *spec)
{
    void *made;

    spec->size = sizeof **out;
    spec->run = settle_call_run;
    spec->done = settle_call_done;
    int err = request_new(&made, l, spec);

    *out = err ? NULL : made;
    return err;
}

/* What the settlement says is copied behind the request. */
static void settle_call_begin(struct settle_call *c, const struct lapse_settlement *s,
                              struct span reason)
{
    struct span report = {s->report ? s->report : "", s->report_len};
    char *extra = c->request.extra;

    if (s->how == LAPSE_HOW_RENEW) {
        settle_call_renew(c, s->ms);
    } else if (s->how == LAPSE_HOW_REPORT) {
        report.at = memcpy(extra, report.at, report.len);
        settle_call_report(c, report);
    } else {
        c->reason.at = memcpy(extra, reason.at, reason.len);
        c->reason.len = reason.len;
        if (s->report) {
            c->script.settle.reported = script_put_report(extra, c->token, report);
        }
        settle_call_send(c, s->ms);
    }
}

int lapse_settle(struct lapse *l, const char *queue, const char *id, uint64_t token,
                 const struct lapse_settlement *how, lapse_cb *fn, void *arg)
{
    struct lapse_settlement s;
    struct settle_call *c;

    if (!l || !queue || !keys_queue_ok(span_of(queue)) || !id || !keys_id_ok(span_of(id)) ||
        token == 0 || token > EXACT_MAX || !settlement_read(&s, how)) {
        return LAPSE_EINVAL;
    }

    struct span reason = {s.reason ? s.reason : "", job_reason_len(s.reason)};
    size_t report_size = s.report ? ARG_NUMBER_MAX + s.report_len : 0;
    struct request_spec spec = {
        .queue = queue,
        .id = id,
        .body_len = s.report_len,
        .extra_len = reason.len + report_size,
        .arg = arg,
    };
    int err = settle_call_new(&c, l, &spec);
    if (err) {
        return err;
    }

    c->fn = fn;
    c->how = s.how;
    c->token = token;
    settle_call_begin(c, &s, reason);

    return 0;
}

int lapse_report(struct lapse_job *job, const void *bytes, size_t len, lapse_cb *fn, void *arg)
{
    struct settle_call *c;

    if (!job || !report_is_valid(bytes, len)) {
        return LAPSE_EINVAL;
    }
    if (!lease_is_ours(lease_of(job))) {
        return LAPSE_EGONE;
    }

    struct request_spec spec = {
        .queue = job->queue,
        .id = job->id,
        .body_len = len,
        .extra_len = len,
        .arg = arg,
        .of_lease = true,
    };
    int err = settle_call_new(&c, job->handle, &spec);
    if (err) {
        return err;
    }

    c->fn = fn;
    c->how = LAPSE_HOW_REPORT;
    c->token = job->token;
    c->is_ours = true;
    memcpy(c->request.extra, bytes ? bytes : "", len);
    settle_call_report(c, (struct span){c->request.extra, len});

    return 0;
}

void lapse_forget(struct lapse_job *job)
{
    lease_forget(lease_of(job));
}
