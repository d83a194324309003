/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_ROW_H
#define LAPSE_ROW_H
#include "job/job.h"
#include "redis/reply.h"

/* Takes the row of a job in a script's reply apart; false: it has not the shape of one. */
bool row_read(struct job_row *row, const struct redisReply *r);

/* The same of a claim, which may have skipped the job, and shows none that is kept. */
bool row_read_claimed(struct job_row *row, const struct redisReply *r);

#endif
