/* SPDX-License-Identifier: MIT */
#include "script/job_verbs.h"
#include "script/row.h"

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
        if (!a.made && !row_read(&a.kept, answer)) {
            err = LAPSE_EBROKEN;
        }
    }
    r->end(r, err, err ? NULL : &a);
}

static struct span conflict_arg(enum lapse_conflict on_conflict)
{
    switch (on_conflict) {
    case LAPSE_KEEP: return span_of("1");
    case LAPSE_REPLACE: return span_of("2");
    default: return span_of("0");
    }
}

void script_schedule(struct script *s, struct schedule_request *r, struct span key,
                     const struct schedule_job *job)
{
    r->args[0] = job->id;
    r->args[1] = due_arg(r->due, job->due);
    r->args[2] = conflict_arg(job->on_conflict);
    r->args[3] = job->record;

    r->request.script = SCRIPT_SCHEDULE;
    r->request.key = key;
    r->request.args = r->args;
    r->request.n_args = 4;
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

void script_cancel(struct script *s, struct job_request *r, struct span key, struct span id)
{
    r->args[0] = id;
    job_submit(s, r, SCRIPT_CANCEL, key, 1);
}

void script_reschedule(struct script *s, struct job_request *r, struct span key, struct span id,
                       struct lapse_due due)
{
    r->args[0] = id;
    r->args[1] = due_arg(r->due, due);
    job_submit(s, r, SCRIPT_RESCHEDULE, key, 2);
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
