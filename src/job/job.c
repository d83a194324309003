/* SPDX-License-Identifier: MIT */
/* One job in memory, and the two packed texts that Redis keeps of it: the record, which never
 * changes in a life, and what is held of it from its first claim on. src/lua/README.md draws both.
 */
#include "job/job.h"
#include "base/clock.h"

enum { VERSION = 1, HAS_TRIES = 1, HAS_BACKOFF = 2, HAS_BACKOFF_MAX = 4 };

static size_t put_varint(unsigned char *out, uint64_t value)
{
    size_t n = 0;

    for (; value >= 128; value >>= 7) {
        out[n++] = (unsigned char)(value | 128);
    }
    out[n++] = (unsigned char)value;
    return n;
}

size_t job_encode(unsigned char out[JOB_HEADER_MAX], unsigned tries, int64_t backoff_ms,
                  int64_t backoff_max_ms)
{
    size_t n = 2;

    out[0] = VERSION;
    out[1] = 0;
    if (tries != JOB_TRIES) {
        out[1] |= HAS_TRIES;
        n += put_varint(out + n, tries);
    }

    if (backoff_ms != JOB_BACKOFF_MS) {
        out[1] |= HAS_BACKOFF;
        n += put_varint(out + n, (uint64_t)backoff_ms);
    }

    if (backoff_max_ms != JOB_BACKOFF_MAX_MS) {
        out[1] |= HAS_BACKOFF_MAX;
        n += put_varint(out + n, (uint64_t)backoff_max_ms);
    }

    return n;
}

static bool get_varint(const unsigned char **at, const unsigned char *end, int64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; *at < end && shift < 49; shift += 7) {
        unsigned char byte = *(*at)++;
        *value |= (int64_t)(byte & 127) << shift;
        if (byte < 128) {
            return true;
        }
    }

    return false;
}

bool job_decode(struct lapse_job *job, struct span record)
{
    const unsigned char *at = (const unsigned char *)record.at;
    const unsigned char *end = at + record.len;
    int64_t value[3] = {JOB_TRIES, JOB_BACKOFF_MS, JOB_BACKOFF_MAX_MS};

    if (record.len < 2 || at[0] != VERSION || at[1] > 7) {
        return false;
    }

    unsigned flags = at[1];
    at += 2;

    for (unsigned i = 0; i < 3; i++) {
        if (flags & 1u << i && !get_varint(&at, end, &value[i])) {
            return false;
        }
    }

    if (value[0] < 1 || value[0] > (int64_t)LAPSE_FOREVER || end - at > JOB_BODY_MAX) {
        return false;
    }

    job->tries = (unsigned)value[0];
    job->backoff_ms = value[1];
    job->backoff_max_ms = value[2];
    job->body = at;
    job->body_len = (size_t)(end - at);

    return true;
}

/* A number and the space after it. */
static bool get_number(struct span *s, int64_t *out)
{
    struct span digits;
    return span_cut(s, ' ', &digits) && span_decimal(digits, EXACT_MAX, out);
}

/* A word of at least one byte, and the space after it: (%S+) and a space to Lua. */
static bool skip_word(struct span *s)
{
    struct span word;

    if (!span_cut(s, ' ', &word)) {
        return false;
    }

    for (size_t i = 0; i < word.len; i++) {
        if (word.at[i] >= '\t' && word.at[i] <= '\r') {
            return false;
        }
    }
    return word.len > 0;
}

static void held_decode(struct lapse_job *job, struct span held)
{
    int64_t version;
    int64_t try_no;
    int64_t tries;
    int64_t token;
    int64_t claimed_us;
    int64_t due_ms;

    if (!get_number(&held, &version) || version != 1 || !get_number(&held, &try_no) ||
        try_no > UINT32_MAX || !get_number(&held, &tries) || !get_number(&held, &token) ||
        !get_number(&held, &claimed_us) || !get_number(&held, &due_ms) || !skip_word(&held)) {
        return;
    }

    job->try_no = (unsigned)try_no;
    job->token = (uint64_t)token;
    job->claimed_us = claimed_us;
    job->due_ms = due_ms;

    size_t len = held.len < JOB_REASON_MAX ? held.len : JOB_REASON_MAX;
    memcpy(job->reason, held.at, len);
    job->reason[len] = '\0';
}

bool job_row(struct job_row *row, const struct redisReply *r)
{
    row->place = 0;
    reply_int(reply_at(r, 5), &row->place);
    return reply_len(r) >= 5 && reply_text(reply_at(r, 0), &row->id) &&
           keys_id_ok(row->id.at, row->id.len) && reply_int(reply_at(r, 1), &row->state) &&
           row->state >= LAPSE_WAITING && row->state <= LAPSE_DEAD &&
           reply_int(reply_at(r, 2), &row->score_ms) && reply_text(reply_at(r, 3), &row->held) &&
           reply_text(reply_at(r, 4), &row->record);
}

size_t job_room(const char *queue, const struct job_row *row, bool body)
{
    return strlen(queue) + 1 + row->id.len + 1 + (body ? row->record.len : 0);
}

void job_fill(struct lapse_job *job, const char *queue, const struct job_row *row, char *room,
              bool body)
{
    size_t queue_len = strlen(queue) + 1;

    job->queue = memcpy(room, queue, queue_len);
    room += queue_len;
    job->id = memcpy(room, row->id.at, row->id.len);
    room[row->id.len] = '\0';
    room += row->id.len + 1;
    job->state = (enum lapse_state)row->state;
    job->score_ms = row->score_ms;
    job->due_ms = row->score_ms;
    held_decode(job, row->held);

    if (job->state == LAPSE_WAITING) {
        job->due_ms = row->score_ms;
    } else if (job->state == LAPSE_RUNNING) {
        job->until_ms = row->score_ms;
    }

    if (job_decode(job, row->record) && body && job->body_len) {
        job->body = memcpy(room, job->body, job->body_len);
    } else {
        job->body = "";
        job->body_len = 0;
    }
}

int64_t job_backoff_ms(const struct lapse_job *job)
{
    int64_t wait = job->backoff_ms;

    for (unsigned i = 1; i < job->try_no && wait && wait < job->backoff_max_ms; i++) {
        wait *= 2;
    }
    wait = wait < job->backoff_max_ms ? wait : job->backoff_max_ms;
    return wait - (int64_t)(clock_random() % ((uint64_t)wait / 4 + 1));
}

const char *lapse_job_queue(const struct lapse_job *job)
{
    return job->queue;
}

const char *lapse_job_id(const struct lapse_job *job)
{
    return job->id;
}

const void *lapse_job_body(const struct lapse_job *job, size_t *len)
{
    if (len) {
        *len = job->body_len;
    }
    return job->body;
}

enum lapse_state lapse_job_state(const struct lapse_job *job)
{
    return job->state;
}

int64_t lapse_job_due_ms(const struct lapse_job *job)
{
    return job->due_ms;
}

int64_t lapse_job_until_ms(const struct lapse_job *job)
{
    return job->until_ms;
}

int64_t lapse_job_claimed_us(const struct lapse_job *job)
{
    return job->claimed_us;
}

unsigned lapse_job_try(const struct lapse_job *job)
{
    return job->try_no;
}

unsigned lapse_job_tries(const struct lapse_job *job)
{
    return job->tries;
}

uint64_t lapse_job_token(const struct lapse_job *job)
{
    return job->token;
}

int lapse_job_created(const struct lapse_job *job)
{
    return job->created;
}

enum lapse_via lapse_job_via(const struct lapse_job *job)
{
    return job->via;
}

const char *lapse_job_reason(const struct lapse_job *job)
{
    return job->reason;
}
