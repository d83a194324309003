/* SPDX-License-Identifier: MIT */
#include "script/job_verbs.h"
#include "job/keys.h"
#include "script/row.h"
#include "script_replies.h"

static struct span due_arg(char buf[ARG_NUMBER_MAX], struct lapse_due due)
{
    if (due.at_ms) {
        return arg_number(buf, due.at_ms);
    }

    int len = snprintf(buf, ARG_NUMBER_MAX, "+%" PRId64, due.delay_ms);
    return (struct span){buf, (size_t)len};
}

/* ---- schedule ---- */
static void on_schedule(struct script_request *request, int err, const struct redisReply *answer)
{
    struct schedule_request *r = CONTAINER(request, struct schedule_request, request);
    struct schedule_answer a = {0};

    if (!err) {
        a.made = reply_int(answer, &a.due_ms);
        if (!a.made && !row_read(&a.row, answer)) {
            err = LAPSE_EBROKEN;
        }
    }
    r->end(r, err, err ? NULL : &a);
}

static struct span conflict_arg(char buf[2 + ARG_NUMBER_MAX], const struct schedule_job *job)
{
    size_t size = 2 + ARG_NUMBER_MAX;
    int len = snprintf(buf, size, "%d", (int)job->on_conflict);

    if (job->max_wait_ms) {
        len = snprintf(buf, size, "%d:%" PRId64, (int)job->on_conflict, job->max_wait_ms);
    }
    return (struct span){buf, (size_t)len};
}

void script_schedule(struct script *s, struct schedule_request *r, struct span key,
                     const struct schedule_job *job)
{
    r->args[0] = job->id;
    r->args[1] = job->is_calendar ? span_of("first") : due_arg(r->due, job->due);
    r->args[2] = conflict_arg(r->conflict, job);
    r->args[3] = job->record;

    r->request.script = SCRIPT_SCHEDULE;
    r->request.key = key;
    r->request.args = r->args;
    r->request.n_args = 4;
    r->request.end = on_schedule;
    script_submit(s, &r->request);
}

void script_gather(struct script *s, struct schedule_request *r, struct span key,
                   const struct schedule_job *job, size_t header_len)
{
    r->args[0] = job->id;
    r->args[1] = (struct span){job->record.at, header_len};
    r->args[2] = (struct span){job->record.at + header_len, job->record.len - header_len};

    r->request.script = SCRIPT_GATHER;
    r->request.key = key;
    r->request.args = r->args;
    r->request.n_args = 3;
    r->request.end = on_schedule;
    script_submit(s, &r->request);
}

/* ---- cancel, reschedule, kill, get ---- */
static void on_job(struct script_request *request, int err, const struct redisReply *answer)
{
    struct job_request *r = CONTAINER(request, struct job_request, request);
    struct job_row row;

    if (!err && !row_read(&row, answer)) {
        err = LAPSE_EBROKEN;
    }
    r->end(r, err, err ? NULL : &row);
}

static void job_submit(struct script *s, struct job_request *r, enum script_id script,
                       struct span key, unsigned n_args)
{
    r->request.script = script;
    r->request.key = key;
    r->request.args = r->args;
    r->request.n_args = n_args;
    r->request.end = on_job;
    script_submit(s, &r->request);
}

static struct span running_arg(bool running)
{
    return span_of(running ? "1" : "0");
}

void script_cancel(struct script *s, struct job_request *r, struct span key, struct span id,
                   bool running)
{
    r->args[0] = id;
    r->args[1] = running_arg(running);
    job_submit(s, r, SCRIPT_CANCEL, key, 2);
}

void script_reschedule(struct script *s, struct job_request *r, struct span key, struct span id,
                       const struct reschedule_how *how)
{
    r->args[0] = id;
    r->args[1] = due_arg(r->due, how->due);
    r->args[2] = running_arg(how->running);
    job_submit(s, r, SCRIPT_RESCHEDULE, key, 3);
}

void script_kill(struct script *s, struct job_request *r, struct span key, struct span id,
                 struct span reason)
{
    r->args[0] = id;
    r->args[1] = reason;
    job_submit(s, r, SCRIPT_KILL, key, 2);
}

void script_get(struct script *s, struct job_request *r, struct span key, struct span id)
{
    r->args[0] = id;
    job_submit(s, r, SCRIPT_GET, key, 1);
}

/* ---- batches ---- */
void script_batch_close(struct script *s, struct job_request *r, struct span key, struct span name)
{
    r->args[0] = name;
    job_submit(s, r, SCRIPT_BATCH_CLOSE, key, 1);
}

static void on_batch_get(struct script_request *request, int err, const struct redisReply *answer)
{
    struct batch_get_request *r = CONTAINER(request, struct batch_get_request, request);
    struct batch_get_reply reply;

    if (!err && (!batch_get_reply_read(&reply, answer) || reply.cursor.len > KEYS_ID_MAX)) {
        err = LAPSE_EBROKEN;
    }
    r->end(r, err, err ? NULL : &reply);
}

void script_batch_get(struct script *s, struct batch_get_request *r, struct span key,
                      struct span name, struct span cursor)
{
    r->args[0] = name;
    r->args[1] = cursor;

    r->request.script = SCRIPT_BATCH_GET;
    r->request.key = key;
    r->request.args = r->args;
    r->request.n_args = 2;
    r->request.end = on_batch_get;
    script_submit(s, &r->request);
}

/* ---- series ---- */
void script_pause(struct script *s, struct job_request *r, struct span key, struct span id,
                  bool is_paused)
{
    r->args[0] = id;
    r->args[1] = span_of(is_paused ? "1" : "0");
    job_submit(s, r, SCRIPT_PAUSE, key, 2);
}

static void on_refill(struct script_request *request, int err, const struct redisReply *answer)
{
    struct refill_request *r = CONTAINER(request, struct refill_request, request);

    (void)answer;
    r->end(r, err);
}

void script_refill(struct script *s, struct refill_request *r, struct span key,
                   const struct refill_spec *spec)
{
    r->args[0] = spec->id;
    r->args[1] = spec->series;
    r->args[2] = spec->calendar;
    r->args[3] = spec->moments;

    r->request.script = SCRIPT_REFILL;
    r->request.key = key;
    r->request.args = r->args;
    r->request.n_args = 4;
    r->request.end = on_refill;
    script_submit(s, &r->request);
}

/* ---- cancel_all, kill_all, reschedule_all ---- */
static void selection_end(struct script_request *request, int err,
                          const struct selection_answer *answer)
{
    struct selection_request *r = CONTAINER(request, struct selection_request, request);

    if (!err && answer->cursor.len > CURSOR_MAX) {
        err = LAPSE_EBROKEN;
    }
    r->end(r, err, err ? NULL : answer);
}

static void on_cancel_all(struct script_request *request, int err, const struct redisReply *answer)
{
    struct cancel_all_reply reply = {.n = 0};

    if (!err && !cancel_all_reply_read(&reply, answer)) {
        err = LAPSE_EBROKEN;
    }

    struct selection_answer a = {
        .n = (uint64_t)reply.n,
        .n_running = (uint64_t)reply.n_running,
        .cursor = reply.cursor,
    };
    selection_end(request, err, &a);
}

static void on_kill_all(struct script_request *request, int err, const struct redisReply *answer)
{
    struct kill_all_reply reply = {.n = 0};

    if (!err && !kill_all_reply_read(&reply, answer)) {
        err = LAPSE_EBROKEN;
    }

    struct selection_answer a = {
        .n = (uint64_t)reply.n,
        .n_running = (uint64_t)reply.n_running,
        .cursor = reply.cursor,
    };
    selection_end(request, err, &a);
}

static void on_reschedule_all(struct script_request *request, int err,
                              const struct redisReply *answer)
{
    struct reschedule_all_reply reply = {.n = 0};

    if (!err && !reschedule_all_reply_read(&reply, answer)) {
        err = LAPSE_EBROKEN;
    } else if (!err && reply.due_ms == 0) {
        err = LAPSE_EINVAL;
    }

    struct selection_answer a = {
        .n = (uint64_t)reply.n,
        .n_running = (uint64_t)reply.n_running,
        .cursor = reply.cursor,
        .due_ms = reply.n > 0 ? reply.due_ms : 0,
    };
    selection_end(request, err, &a);
}

/* The arguments that all have. */
static void selection_args(struct selection_request *r, struct span key,
                           const struct selection *selection)
{
    r->args[0] = arg_number(r->state, selection->state);
    r->args[1] = selection->tag;
    r->args[2] = selection->reason;
    r->args[3] = arg_number(r->before, selection->before_ms);
    r->args[4] = arg_number(r->limit, selection->limit);
    r->args[5] = selection->cursor;
    r->args[6] = running_arg(selection->running);

    r->request.key = key;
    r->request.args = r->args;
}

void script_cancel_all(struct script *s, struct selection_request *r, struct span key,
                       const struct selection *selection)
{
    selection_args(r, key, selection);

    r->request.script = SCRIPT_CANCEL_ALL;
    r->request.n_args = 7;
    r->request.end = on_cancel_all;
    script_submit(s, &r->request);
}

void script_kill_all(struct script *s, struct selection_request *r, struct span key,
                     const struct selection *selection, struct span why)
{
    selection_args(r, key, selection);
    r->args[7] = why;

    r->request.script = SCRIPT_KILL_ALL;
    r->request.n_args = 8;
    r->request.end = on_kill_all;
    script_submit(s, &r->request);
}

void script_reschedule_all(struct script *s, struct selection_request *r, struct span key,
                           const struct selection *selection, struct lapse_due due,
                           int64_t spread_ms)
{
    selection_args(r, key, selection);
    r->args[7] = due_arg(r->due, due);
    r->args[8] = arg_number(r->spread, spread_ms);

    r->request.script = SCRIPT_RESCHEDULE_ALL;
    r->request.n_args = 9;
    r->request.end = on_reschedule_all;
    script_submit(s, &r->request);
}
