/* SPDX-License-Identifier: MIT */
#include "script/row.h"
#include "job/keys.h"

/* Behind the record some scripts answer a number; and others what failed, and get a report. */
enum { ID, STATE, SCORE, ATTEMPT, RECORD, PLACE, ERRORS = PLACE, REPORT };

static bool row_read_from(struct job_row *row, const struct redisReply *r, int64_t first_state,
                          int64_t last_state)
{
    row->place = 0;
    row->errors = (struct span){"", 0};
    row->report = (struct span){NULL, 0};
    if (!reply_int(reply_at(r, PLACE), &row->place)) {
        reply_text(reply_at(r, ERRORS), &row->errors);
        reply_text(reply_at(r, REPORT), &row->report);
    }

    if (!reply_text(reply_at(r, ID), &row->id) || !keys_id_ok(row->id)) {
        return false;
    }

    return reply_int(reply_at(r, STATE), &row->state) && row->state >= first_state &&
           row->state <= last_state && reply_int(reply_at(r, SCORE), &row->score_ms) &&
           reply_text(reply_at(r, ATTEMPT), &row->attempt) &&
           reply_text(reply_at(r, RECORD), &row->record);
}

bool row_read(struct job_row *row, const struct redisReply *r)
{
    return row_read_from(row, r, LAPSE_WAITING, LAPSE_KEPT);
}

bool row_read_claimed(struct job_row *row, const struct redisReply *r)
{
    return row_read_from(row, r, JOB_SKIPPED, LAPSE_DEAD);
}
