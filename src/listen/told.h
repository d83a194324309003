/* SPDX-License-Identifier: MIT */
/* What the event function hears of jobs that are no lease of ours any more. */
#ifndef LAPSE_TOLD_H
#define LAPSE_TOLD_H
#include "base/context.h"
#include "base/task.h"
#include "job/job.h"

/* Each tells of a copy, in turn with all other calls of user code. Without an event function, or
 * without memory, nothing is reported. */
void told_of_job(struct task_queue *tasks, struct context *c, enum lapse_event what,
                 const struct lapse_job *job);
void told_of_dead(struct task_queue *tasks, struct context *c, const char *queue,
                  const struct job_row *row);

#endif
