/* SPDX-License-Identifier: MIT */
/* The scripts of src/lua/job, a function each. A request holds its arguments as texts, so
 * submitting it needs no memory and cannot fail. key is KEYS[1] of the queue; it, ids and records
 * are not copied, and live until the request has ended. */
#ifndef LAPSE_JOB_VERBS_H
#define LAPSE_JOB_VERBS_H
#include "job/job.h"
#include "script/args.h"
#include "script/script.h"

/* ---- schedule ---- */
struct schedule_job {
    struct span id;
    struct lapse_due due;
    enum lapse_conflict on_conflict;
    struct span record;
};

struct schedule_answer {
    bool made;
    int64_t due_ms;      /* of the job that was made */
    struct job_row kept; /* the job that LAPSE_KEEP found instead */
};

struct schedule_request {
    struct script_request request;
    struct span args[4];
    char due[ARG_NUMBER_MAX];
    void (*end)(struct schedule_request *r, int err, const struct schedule_answer *answer);
};

void script_schedule(struct script *s, struct schedule_request *r, struct span key,
                     const struct schedule_job *job);

/* ---- cancel, reschedule, kill, get ---- */
struct job_request {
    struct script_request request;
    struct span args[2];
    char due[ARG_NUMBER_MAX];
    /* row: NULL on an error */
    void (*end)(struct job_request *r, int err, const struct job_row *row);
};

void script_cancel(struct script *s, struct job_request *r, struct span key, struct span id);
void script_reschedule(struct script *s, struct job_request *r, struct span key, struct span id,
                       struct lapse_due due);
void script_kill(struct script *s, struct job_request *r, struct span key, struct span id,
                 struct span reason);
void script_get(struct script *s, struct job_request *r, struct span key, struct span id);

#endif
