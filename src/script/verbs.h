/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_STORE_H
#define LAPSE_STORE_H
#include "job/job.h"
#include "job/keys.h"
#include "script/script.h"

/* One C function per script of src/lua: typed arguments in, a job or numbers out, and no policy.
 * What is asked is embedded in what waits for it, with room for its arguments as text, so asking
 * allocates nothing and cannot fail. key is KEYS[1] of the queue; it, ids, records and whys are not
 * copied and live until end() runs. */

/* schedule, cancel, reschedule, get */
struct job_ask {
    struct ask ask;
    struct span args[4];
    char due[24];
    /* err 0: row, or for a job that was just made due_ms alone (row NULL). */
    void (*end)(struct job_ask *a, int err, const struct job_row *row, int64_t due_ms);
};
void store_schedule(struct script *s, struct job_ask *a, struct span key, struct span id,
                    struct lapse_due due, enum lapse_conflict on_conflict, struct span record);
void store_cancel(struct script *s, struct job_ask *a, struct span key, struct span id);
void store_reschedule(struct script *s, struct job_ask *a, struct span key, struct span id,
                      struct lapse_due due);
void store_get(struct script *s, struct job_ask *a, struct span key, struct span id);

/* done, retry, fail, release, renew: of a job that script->holder holds by token */
struct settle_ask {
    struct ask ask;
    struct span args[4];
    char token[24], number[24];
    /* err 0: value of the reply: end of the lease (renew), next due or 0 for dead (retry), 1. */
    void (*end)(struct settle_ask *a, int err, int64_t value);
};
void store_done(struct script *s, struct settle_ask *a, struct span key, struct span id,
                uint64_t token);
void store_retry(struct script *s, struct settle_ask *a, struct span key, struct span id,
                 uint64_t token, int64_t delay_ms, struct span reason);
void store_fail(struct script *s, struct settle_ask *a, struct span key, struct span id,
                uint64_t token, struct span reason);
void store_release(struct script *s, struct settle_ask *a, struct span key, struct span id,
                   uint64_t token);
void store_renew(struct script *s, struct settle_ask *a, struct span key, struct span id,
                 uint64_t token, int64_t for_ms);

/* When to look again, as claim and touch answer it. 0: none. */
struct outlook {
    int64_t now_us;
    int64_t oldest_ms; /* due already, and not taken */
    int64_t next_ms;   /* the first that is due later */
};

struct claimed {
    struct outlook outlook;
    int64_t n_unreadable, n_lost; /* moved to dead; members without a record, removed */
    const struct redisReply *rows;
    size_t n; /* read them with store_claimed_row() */
};
struct claim_ask {
    struct ask ask;
    char lease[24], limit[24];
    unsigned n_ids;
    struct span args[3 + SCRIPT_BATCH];
    char ids[SCRIPT_BATCH][KEYS_ID_MAX + 1];
    uint8_t via[SCRIPT_BATCH]; /* of each id: enum lapse_via */
    uint8_t via_oldest;
    void (*end)(struct claim_ask *a, int err, const struct claimed *got);
};
/* Claims the ids in a, or with n_ids 0 the oldest due jobs, limit at most. holder lives until the
 * end. */
void store_claim(struct script *s, struct claim_ask *a, struct span key, struct span holder,
                 int64_t lease_ms, unsigned limit);
/* Adds an id to those to claim. That is possible until the claim is sent, and for SCRIPT_BATCH ids
 * at most. The id is copied. */
void store_claim_add(struct claim_ask *a, struct span id, enum lapse_via via);
bool store_claimed_row(const struct claimed *got, size_t i, struct job_row *row);

/* The others answer with a few numbers: see the heads of the scripts. */
struct queue_ask {
    struct ask ask;
    struct span args[4];
    char number[2][24];
    int64_t n[6]; /* of the answer, from its second place on */
    int64_t now_us;
    void *arg;
    void (*end)(struct queue_ask *a, int err);
};
void store_touch(struct script *s, struct queue_ask *a, struct span key, int64_t cursor_ms);
void store_arm(struct script *s, struct queue_ask *a, struct span key, int64_t cursor_ms);
void store_sweep(struct script *s, struct queue_ask *a, struct span key);
void store_heartbeat(struct script *s, struct queue_ask *a, struct span key, struct span name,
                     int64_t life_ms);
void store_depth(struct script *s, struct queue_ask *a, struct span key);
void store_eviction(struct script *s, struct queue_ask *a, struct span key);

/* A page of what runs under a holder's name. */
struct reclaim_ask {
    struct ask ask;
    struct span args[2];
    char page[24];
    /* err 0: n rows, read with store_reclaim_row(); next_page 0: that was the last. */
    void (*end)(struct reclaim_ask *a, int err, int64_t next_page, const struct redisReply *rows,
                size_t n);
};
void store_reclaim(struct script *s, struct reclaim_ask *a, struct span key, struct span holder,
                   int64_t page);
bool store_reclaim_row(const struct redisReply *rows, size_t i, struct span *id, int64_t *token);

struct list_ask {
    struct ask ask;
    struct span args[4];
    char state[4], limit[8], score[24];
    /* err 0: n rows, read with store_list_row(); more: the page is not full and there are more. */
    void (*end)(struct list_ask *a, int err, const struct redisReply *rows, size_t n, bool more);
};
/* after: id of the last one before, empty for the first page; not copied. */
void store_list(struct script *s, struct list_ask *a, struct span key, enum lapse_state state,
                unsigned limit, int64_t after_score, struct span after);
bool store_list_row(const struct redisReply *rows, size_t i, struct job_row *row);

#endif
