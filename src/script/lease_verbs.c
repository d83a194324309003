/* SPDX-License-Identifier: MIT */
#include "script/lease_verbs.h"
#include "script/row.h"
#include "script/tally.h"
#include "base/error.h"

/* ---- report, done, retry, snooze, fail, release ---- */
static struct settled_job settled_read(enum script_id script, int64_t value)
{
    struct settled_job job = {.as = SETTLED_OVER};

    if (value > 1) {
        job.as = SETTLED_WAITS;
        job.due_ms = value;
    } else if (value < 0) {
        job.as = SETTLED_CANCELLED;
    } else if (script == SCRIPT_RETRY || script == SCRIPT_FAIL) {
        job.as = SETTLED_DEAD;
    }

    return job;
}

static bool settle_is_snooze(const struct settle_request *r)
{
    struct span delay = r->args[2];
    return r->request.script == SCRIPT_RETRY && span_starts(delay, "~");
}

void script_count_settled(const struct settle_request *r, const struct settled_job *job,
                          struct context *context, const char *queue)
{
    struct lapse_stats *stats = &context->stats;
    struct tallies *tallies = context->tallies;
    bool waits = job->as == SETTLED_WAITS;
    bool is_snooze = settle_is_snooze(r);

    switch (r->request.script) {
    case SCRIPT_DONE:
        stats->done++;
        tally_count(tallies, queue, PAST_DONE, 1);
        break;
    case SCRIPT_RETRY:
    case SCRIPT_FAIL:
        stats->snoozed += waits && is_snooze;
        stats->retried += waits && !is_snooze;
        stats->failed += job->as == SETTLED_DEAD;
        tally_count(tallies, queue, PAST_RETRIED, waits && !is_snooze);
        tally_count(tallies, queue, PAST_DEAD, job->as == SETTLED_DEAD);
        tally_count(tallies, queue, PAST_CANCELLED, job->as == SETTLED_CANCELLED);
        break;
    default: tally_count(tallies, queue, PAST_CANCELLED, job->as == SETTLED_CANCELLED); break;
    }
}

static void on_settle(struct script_request *request, int err, const struct redisReply *answer)
{
    struct settle_request *r = CONTAINER(request, struct settle_request, request);
    int64_t value = 0;

    if (!err && !reply_int(answer, &value)) {
        err = LAPSE_EBROKEN;
        request->may_have_run = true;
    }

    struct settled_job job = settled_read(request->script, value);
    r->end(r, err, err ? NULL : &job);
}

static void settle_submit(struct script *s, struct settle_request *r, enum script_id script,
                          const struct leased_job *job, unsigned n_args)
{
    bool has_report = r->reported.at != NULL;

    r->args[0] = job->id;
    r->args[1] = has_report ? r->reported : arg_number(r->token, (int64_t)job->token);

    r->request.script = script;
    r->request.key = job->key;
    r->request.any_holder = job->any_holder;
    r->request.args = r->args;
    r->request.n_args = n_args;
    r->request.end = on_settle;
    script_submit(s, &r->request);
}

void script_report(struct script *s, struct settle_request *r, const struct leased_job *job,
                   struct span report)
{
    r->args[2] = report;
    settle_submit(s, r, SCRIPT_REPORT, job, 3);
}

struct span script_put_report(char *out, uint64_t token, struct span report)
{
    size_t len = arg_number(out, (int64_t)token).len;

    out[len++] = ' ';
    memcpy(out + len, report.at, report.len);
    return (struct span){out, len + report.len};
}

void script_done(struct script *s, struct settle_request *r, const struct leased_job *job)
{
    settle_submit(s, r, SCRIPT_DONE, job, 2);
}

void script_retry(struct script *s, struct settle_request *r, const struct leased_job *job,
                  int64_t delay_ms, struct span reason)
{
    r->args[2] = delay_ms < 0 ? span_of("") : arg_number(r->delay, delay_ms);
    r->args[3] = reason;
    settle_submit(s, r, SCRIPT_RETRY, job, 4);
}

void script_snooze(struct script *s, struct settle_request *r, const struct leased_job *job,
                   int64_t delay_ms, struct span reason)
{
    struct span delay = arg_number(r->delay + 1, delay_ms);

    r->delay[0] = '~';
    r->args[2] = (struct span){r->delay, 1 + delay.len};
    r->args[3] = reason;
    settle_submit(s, r, SCRIPT_RETRY, job, 4);
}

void script_fail(struct script *s, struct settle_request *r, const struct leased_job *job,
                 struct span reason)
{
    r->args[2] = reason;
    settle_submit(s, r, SCRIPT_FAIL, job, 3);
}

void script_release(struct script *s, struct settle_request *r, const struct leased_job *job)
{
    settle_submit(s, r, SCRIPT_RELEASE, job, 2);
}

/* ---- renew ---- */
static void on_renew(struct script_request *request, int err, const struct redisReply *answer)
{
    struct renew_request *r = CONTAINER(request, struct renew_request, request);
    struct renewed_lease lease = {0};

    if (!err && !reply_int(answer, &lease.until_ms)) {
        err = LAPSE_EBROKEN;
    }
    if (lease.until_ms < 0) {
        lease.until_ms = -lease.until_ms;
        lease.cancelled = true;
    }
    r->end(r, err, err ? NULL : &lease);
}

void script_renew(struct script *s, struct renew_request *r, const struct leased_job *job,
                  int64_t lease_ms)
{
    r->args[0] = job->id;
    r->args[1] = arg_number(r->token, (int64_t)job->token);
    r->args[2] = arg_number(r->lease, lease_ms);

    r->request.script = SCRIPT_RENEW;
    r->request.key = job->key;
    r->request.any_holder = job->any_holder;
    r->request.args = r->args;
    r->request.n_args = 3;
    r->request.end = on_renew;
    script_submit(s, &r->request);
}

/* ---- claim ---- */
static void on_claim(struct script_request *request, int err, const struct redisReply *answer)
{
    struct claim_request *r = CONTAINER(request, struct claim_request, request);
    struct claim_reply reply;

    if (!err && !claim_reply_read(&reply, answer)) {
        err = LAPSE_EBROKEN;
    }
    r->end(r, err, err ? NULL : &reply);
}

static const struct span *claim_args(struct claim_request *r, struct span holder, int64_t lease_ms,
                                     unsigned limit)
{
    struct span *args = r->ids ? r->ids->args : r->args;
    int64_t named = r->in_order ? -1 : 0;

    args[0] = holder;
    args[1] = arg_number(r->lease, lease_ms);
    args[2] = arg_number(r->limit, r->ids ? named : limit);
    for (unsigned i = 0; r->ids && i < r->ids->n; i++) {
        args[CLAIM_ARGS + i] = span_of(r->ids->texts[i]);
    }

    return args;
}

void script_claim(struct script *s, struct claim_request *r, struct span key, struct span holder,
                  int64_t lease_ms, unsigned limit)
{
    r->request.script = SCRIPT_CLAIM;
    r->request.key = key;
    r->request.args = claim_args(r, holder, lease_ms, limit);
    r->request.n_args = CLAIM_ARGS + (r->ids ? r->ids->n : 0);
    r->request.end = on_claim;
    script_submit(s, &r->request);
}

void script_claim_add(struct claim_request *r, struct span id, enum lapse_via via)
{
    struct claim_ids *ids = r->ids;
    unsigned i = ids->n;

    ASSERT(i < SCRIPT_BATCH);
    ASSERT(!r->request.pending || script_is_unsent(&r->request));

    memcpy(ids->texts[i], id.at, id.len);
    ids->texts[i][id.len] = '\0';
    ids->via[i] = (uint8_t)via;
    ids->args[CLAIM_ARGS + i] = (struct span){ids->texts[i], id.len};
    ids->n++;
    r->request.n_args = CLAIM_ARGS + ids->n;
}

bool script_claimed_job(const struct claim_reply *reply, size_t i, struct job_row *row)
{
    return row_read_claimed(row, claim_reply_row(reply, i));
}

/* ---- touch ---- */
static void on_touch(struct script_request *request, int err, const struct redisReply *answer)
{
    struct touch_request *r = CONTAINER(request, struct touch_request, request);
    struct touch_reply reply;

    if (!err && !touch_reply_read(&reply, answer)) {
        err = LAPSE_EBROKEN;
    }
    r->end(r, err, err ? NULL : &reply);
}

void script_touch(struct script *s, struct touch_request *r, struct span key,
                  const struct touch_spec *spec)
{
    const struct touch_range *range = &spec->range;

    r->args[0] = spec->holder;
    r->args[1] = arg_number(r->numbers[1], spec->lease_ms);
    r->args[2] = arg_number(r->numbers[2], spec->limit);
    r->args[3] = arg_number(r->numbers[3], range->cursor_ms);
    r->args[4] = arg_number(r->numbers[4], range->rank);
    r->args[5] = arg_number(r->numbers[5], range->n_members);
    r->args[6] = arg_number(r->numbers[6], range->everyone);
    r->args[7] = arg_number(r->numbers[7], range->look);

    r->request.script = SCRIPT_TOUCH;
    r->request.key = key;
    r->request.args = r->args;
    r->request.n_args = TOUCH_ARGS;
    r->request.end = on_touch;
    script_submit(s, &r->request);
}

bool script_touched_job(const struct touch_reply *reply, size_t i, struct job_row *row)
{
    return row_read_claimed(row, touch_reply_row(reply, i));
}

bool script_touched_trigger(const struct touch_reply *reply, size_t i, struct span *id)
{
    struct job_row row;

    if (script_touched_job(reply, i, &row)) {
        *id = row.id;
        return row.place == 1;
    }

    return reply_text(touch_reply_row(reply, i), id);
}

/* ---- reclaim ---- */
static void on_reclaim(struct script_request *request, int err, const struct redisReply *answer)
{
    struct reclaim_request *r = CONTAINER(request, struct reclaim_request, request);
    struct reclaim_reply reply;

    if (!err && !reclaim_reply_read(&reply, answer)) {
        err = LAPSE_EBROKEN;
    }
    r->end(r, err, err ? NULL : &reply);
}

void script_reclaim(struct script *s, struct reclaim_request *r, struct span key,
                    struct span holder, int64_t page)
{
    r->args[0] = holder;
    r->args[1] = arg_number(r->page, page);

    r->request.script = SCRIPT_RECLAIM;
    r->request.key = key;
    r->request.args = r->args;
    r->request.n_args = 2;
    r->request.end = on_reclaim;
    script_submit(s, &r->request);
}

bool script_reclaimed_job(const struct reclaim_reply *reply, size_t i, struct span *id,
                          uint64_t *token)
{
    int64_t number;

    if (!reply_text(reclaim_reply_id(reply, i), id) || !keys_id_ok(*id) ||
        !reply_int(reclaim_reply_token(reply, i), &number)) {
        return false;
    }

    *token = (uint64_t)number;
    return true;
}

/* ---- sweep ---- */
static void on_sweep(struct script_request *request, int err, const struct redisReply *answer)
{
    struct sweep_request *r = CONTAINER(request, struct sweep_request, request);
    struct sweep_reply reply;

    if (!err && !sweep_reply_read(&reply, answer)) {
        err = LAPSE_EBROKEN;
    }
    r->end(r, err, err ? NULL : &reply);
}

bool script_swept_job(const struct sweep_reply *reply, size_t i, struct job_row *row)
{
    return row_read(row, sweep_reply_row(reply, i)) && row->state == LAPSE_DEAD;
}

/* It is sent before the next handler runs: if that one sleeps, leases of ours may be over by then,
 * and a sweep that came so late would count a try of jobs that have not begun. */
void script_sweep(struct script *s, struct sweep_request *r, struct span key, bool tell)
{
    r->args[0] = span_of(tell ? "1" : "0");

    r->request.script = SCRIPT_SWEEP;
    r->request.key = key;
    r->request.args = r->args;
    r->request.n_args = 1;
    r->request.end = on_sweep;
    script_submit(s, &r->request);
    s->oldest_us = 0;
}
