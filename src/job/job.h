/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_JOB_H
#define LAPSE_JOB_H
#include "redis/reply.h"
#include <lapse.h>

enum {
    JOB_BODY_MAX = 1 << 20,
    JOB_REASON_MAX = 200,
    JOB_HEADER_MAX = 2 + 5 + 7 + 7, /* version, flags, three varints */
    JOB_TRIES = 10,
    JOB_BACKOFF_MS = 1000,
    JOB_BACKOFF_MAX_MS = 3600000
};
#define JOB_TEN_YEARS_MS ((int64_t)315576000000)

struct lapse_job {
    struct lapse *handle;   /* NULL: cut loose, settling only frees it */
    const char *queue, *id; /* these three lie in the same allocation */
    const void *body;
    size_t body_len;
    char reason[JOB_REASON_MAX + 1];
    enum lapse_state state;
    enum lapse_via via;
    int created;
    unsigned tries, try_no;
    uint64_t token;
    int64_t due_ms, until_ms, claimed_us, backoff_ms, backoff_max_ms;
    int64_t score_ms; /* its place in its state: what lapse_list() goes on from */
};

/* The record that Redis keeps; README.md of src/lua draws it. Returns the header's length. */
size_t job_encode(unsigned char out[JOB_HEADER_MAX], unsigned tries, int64_t backoff_ms,
                  int64_t backoff_max_ms);
/* Fills tries, backoff and the body, which points into record; false: not readable by this version.
 */
bool job_decode(struct lapse_job *job, struct span record);

/* A row of a script's reply, taken apart but not copied; false: not the shape of one. */
struct job_row {
    struct span id, held, record;
    int64_t state, score_ms, place; /* place: 0 where there is none */
};
bool job_row(struct job_row *row, const struct redisReply *r);

/* Bytes to have behind a job for the texts of a row. */
size_t job_room(const char *queue, const struct job_row *row, bool body);
/* Fills job from row; texts are copied to room. A record that is not readable leaves tries 0 and no
 * body. */
void job_fill(struct lapse_job *job, const char *queue, const struct job_row *row, char *room,
              bool body);

/* Wait before the next run, jittered: 3/4 to all of backoff_ms * 2^(try - 1), and never over the
 * maximum. */
int64_t job_backoff_ms(const struct lapse_job *job);

#endif
