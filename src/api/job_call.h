/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_JOB_CALL_H
#define LAPSE_JOB_CALL_H
#include "api/request.h"
#include "script/job_verbs.h"

/* A call about one job, whose answer shows the job. */
struct job_call {
    struct request request;
    lapse_cb *fn;
    union {
        struct schedule_request schedule;
        struct job_request job;
    } script;
    struct lapse_job job;
    const struct lapse_job *answer; /* &job, or NULL */
    bool by_key;                    /* the answer may be about another id */
    bool is_series;                 /* that is what is scheduled */
    int64_t last_moment_ms;         /* of those with which it is; 0: it goes by no calendar */
    bool is_guess;                  /* they were worked out by our clock, */
    struct lapse_due from;          /* for a series that begins no earlier than this */
    char *body;                     /* the texts of a job that was read with its body */
};

/* EINVAL, and those of request_new(). spec->size 0: that of a struct job_call; else of a struct in
 * which it is the first field. */
int job_call_new(struct job_call **out, struct lapse *l, const struct request_spec *spec,
                 lapse_cb *fn);
/* The same of a job that is there, or may be: EINVAL if the queue or the id is none. */
int job_call_about(struct job_call **out, struct lapse *l, const struct request_spec *spec,
                   lapse_cb *fn);

/* Sets the job from a row of an answer; its body is left out. EBROKEN: it is about another job. */
int job_call_read(struct job_call *c, const struct job_row *row);
/* The same with its body; ENOMEM. */
int job_call_read_with_body(struct job_call *c, const struct job_row *row);

/* The answer came: the callback gets the job, or the error. */
void job_call_end(struct job_call *c, int err);

#endif
