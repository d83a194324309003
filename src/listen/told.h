/* SPDX-License-Identifier: MIT */
/* What the event function hears of jobs that are no lease of ours, or are none any more. */
#ifndef LAPSE_TOLD_H
#define LAPSE_TOLD_H
#include "base/context.h"
#include "base/task.h"
#include "job/job.h"

/* Who is to know that the event function has heard of it: fn is not called if the handle ends
 * before that. */
struct told_end {
    void (*fn)(void *arg);
    void *arg;
};

/* Each tells of a copy, in turn with all other calls of user code. Without an event function, or
 * without memory, nothing is reported. */
void told_of_job(struct task_queue *tasks, struct context *c, enum lapse_event what,
                 const struct lapse_job *job);
/* The same of a row. false: nothing is reported, and end, which may be NULL, is not called. */
bool told_of_row(struct task_queue *tasks, struct context *c, enum lapse_event what,
                 const char *queue, const struct job_row *row, const struct told_end *end);

#endif
