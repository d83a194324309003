/* SPDX-License-Identifier: MIT */
/* Arguments to text, answers to values. The order of both is that of the scripts' heads. */
#include "script/verbs.h"
#include "base/error.h"
#include "script/row.h"
#include <stdio.h>

static struct span text(const char *s)
{
    return (struct span){s, strlen(s)};
}

static struct span number(char out[24], int64_t n)
{
    return (struct span){out, (size_t)snprintf(out, 24, "%lld", (long long)n)};
}

static void ask(struct script *s, struct ask *a, enum script_id script, struct span key,
                const struct span *args, unsigned n_args,
                void (*end)(struct ask *, int, const struct redisReply *))
{
    a->script = script;
    a->key = key;
    a->args = args;
    a->n_args = n_args;
    a->end = end;
    script_ask(s, a);
}

/* ---- jobs ---- */
static void on_job(struct ask *ask, int err, const struct redisReply *answer)
{
    struct job_ask *a = CONTAINER(ask, struct job_ask, ask);
    struct job_row row;
    int64_t due;

    if (err) {
        a->end(a, err, NULL, 0);
    } else if (reply_int(answer, &due)) {
        a->end(a, 0, NULL, due);
    } else if (row_read(&row, answer)) {
        a->end(a, 0, &row, 0);
    } else {
        a->end(a, LAPSE_EBROKEN, NULL, 0);
    }
}

static struct span due_text(struct job_ask *a, struct lapse_due due)
{
    int len = due.at_ms ? snprintf(a->due, sizeof a->due, "%lld", (long long)due.at_ms)
                        : snprintf(a->due, sizeof a->due, "+%lld", (long long)due.delay_ms);
    return (struct span){a->due, (size_t)len};
}

void store_schedule(struct script *s, struct job_ask *a, struct span key, struct span id,
                    struct lapse_due due, enum lapse_conflict on_conflict, struct span record)
{
    a->args[0] = id;
    a->args[1] = due_text(a, due);
    a->args[2] = text(on_conflict == LAPSE_REPLACE ? "2" : on_conflict == LAPSE_KEEP ? "1" : "0");
    a->args[3] = record;
    ask(s, &a->ask, SCRIPT_SCHEDULE, key, a->args, 4, on_job);
}

void store_cancel(struct script *s, struct job_ask *a, struct span key, struct span id)
{
    a->args[0] = id;
    ask(s, &a->ask, SCRIPT_CANCEL, key, a->args, 1, on_job);
}

void store_reschedule(struct script *s, struct job_ask *a, struct span key, struct span id,
                      struct lapse_due due)
{
    a->args[0] = id;
    a->args[1] = due_text(a, due);
    ask(s, &a->ask, SCRIPT_RESCHEDULE, key, a->args, 2, on_job);
}

void store_get(struct script *s, struct job_ask *a, struct span key, struct span id)
{
    a->args[0] = id;
    ask(s, &a->ask, SCRIPT_GET, key, a->args, 1, on_job);
}

/* ---- settles ---- */
static void on_settle(struct ask *ask, int err, const struct redisReply *answer)
{
    struct settle_ask *a = CONTAINER(ask, struct settle_ask, ask);
    int64_t value = 0;

    if (!err && !reply_int(answer, &value)) {
        err = LAPSE_EBROKEN;
    }
    a->end(a, err, value);
}

static void settle(struct script *s, struct settle_ask *a, enum script_id script, struct span key,
                   struct span id, uint64_t token, unsigned n_args)
{
    a->args[0] = id;
    a->args[1] = number(a->token, (int64_t)token);
    ask(s, &a->ask, script, key, a->args, n_args, on_settle);
}

void store_done(struct script *s, struct settle_ask *a, struct span key, struct span id,
                uint64_t token)
{
    settle(s, a, SCRIPT_DONE, key, id, token, 2);
}

void store_retry(struct script *s, struct settle_ask *a, struct span key, struct span id,
                 uint64_t token, int64_t delay_ms, struct span reason)
{
    a->args[2] = number(a->number, delay_ms);
    a->args[3] = reason;
    settle(s, a, SCRIPT_RETRY, key, id, token, 4);
}

void store_fail(struct script *s, struct settle_ask *a, struct span key, struct span id,
                uint64_t token, struct span reason)
{
    a->args[2] = reason;
    settle(s, a, SCRIPT_FAIL, key, id, token, 3);
}

void store_release(struct script *s, struct settle_ask *a, struct span key, struct span id,
                   uint64_t token)
{
    settle(s, a, SCRIPT_RELEASE, key, id, token, 2);
}

void store_renew(struct script *s, struct settle_ask *a, struct span key, struct span id,
                 uint64_t token, int64_t for_ms)
{
    a->args[2] = number(a->number, for_ms);
    settle(s, a, SCRIPT_RENEW, key, id, token, 3);
}

/* ---- claims ---- */
enum { CLAIM_HEAD = 3 /* arguments before the ids */ };

static void on_claim(struct ask *ask, int err, const struct redisReply *answer)
{
    struct claim_ask *a = CONTAINER(ask, struct claim_ask, ask);
    struct claimed got = {.rows = answer};

    if (!err && !(reply_int(reply_at(answer, 0), &got.outlook.now_us) &&
                  reply_int(reply_at(answer, 1), &got.outlook.oldest_ms) &&
                  reply_int(reply_at(answer, 2), &got.outlook.next_ms) &&
                  reply_int(reply_at(answer, 3), &got.n_unreadable) &&
                  reply_int(reply_at(answer, 4), &got.n_lost))) {
        err = LAPSE_EBROKEN;
    }

    got.n = err ? 0 : reply_len(answer) - 5;
    a->end(a, err, &got);
}

void store_claim(struct script *s, struct claim_ask *a, struct span key, struct span holder,
                 int64_t lease_ms, unsigned limit)
{
    a->args[0] = holder;
    a->args[1] = number(a->lease, lease_ms);
    a->args[2] = number(a->limit, a->n_ids ? 0 : limit);
    for (unsigned i = 0; i < a->n_ids; i++) {
        a->args[CLAIM_HEAD + i] = text(a->ids[i]);
    }
    ask(s, &a->ask, SCRIPT_CLAIM, key, a->args, CLAIM_HEAD + a->n_ids, on_claim);
}

void store_claim_add(struct claim_ask *a, struct span id, enum lapse_via via)
{
    unsigned i = a->n_ids;

    ASSERT(i < SCRIPT_BATCH && (!a->ask.asked || script_unsent(&a->ask)));
    memcpy(a->ids[i], id.at, id.len);
    a->ids[i][id.len] = '\0';
    a->via[i] = (uint8_t)via;
    a->args[CLAIM_HEAD + i] = (struct span){a->ids[i], id.len};
    a->n_ids++;
    a->ask.n_args = CLAIM_HEAD + a->n_ids;
}

bool store_claimed_row(const struct claimed *got, size_t i, struct job_row *row)
{
    return row_read(row, reply_at(got->rows, 5 + i));
}

/* ---- of a queue ---- */
static void on_numbers(struct ask *ask, int err, const struct redisReply *answer)
{
    struct queue_ask *a = CONTAINER(ask, struct queue_ask, ask);
    size_t want = reply_len(answer) < 7 ? reply_len(answer) : 7;

    for (size_t i = 0; !err && i < want; i++) {
        if (!reply_int(reply_at(answer, i), i ? &a->n[i - 1] : &a->now_us)) {
            err = LAPSE_EBROKEN;
        }
    }
    a->end(a, err);
}

static void ask_numbers(struct script *s, struct queue_ask *a, enum script_id script,
                        struct span key, unsigned n_args)
{
    memset(a->n, 0, sizeof a->n);
    ask(s, &a->ask, script, key, a->args, n_args, on_numbers);
}

void store_touch(struct script *s, struct queue_ask *a, struct span key, int64_t cursor_ms)
{
    a->args[0] = number(a->number[0], cursor_ms);
    ask_numbers(s, a, SCRIPT_TOUCH, key, 1);
}

void store_arm(struct script *s, struct queue_ask *a, struct span key, int64_t cursor_ms)
{
    a->args[0] = number(a->number[0], cursor_ms);
    ask_numbers(s, a, SCRIPT_ARM, key, 1);
}

void store_sweep(struct script *s, struct queue_ask *a, struct span key)
{
    ask_numbers(s, a, SCRIPT_SWEEP, key, 0);
}

void store_heartbeat(struct script *s, struct queue_ask *a, struct span key, struct span name,
                     int64_t life_ms)
{
    a->args[0] = name;
    a->args[1] = number(a->number[0], life_ms);
    ask_numbers(s, a, SCRIPT_HEARTBEAT, key, 2);
}

void store_depth(struct script *s, struct queue_ask *a, struct span key)
{
    ask_numbers(s, a, SCRIPT_DEPTH, key, 0);
}

void store_eviction(struct script *s, struct queue_ask *a, struct span key)
{
    ask_numbers(s, a, SCRIPT_EVICTION, key, 0);
}

enum { RECLAIM_HEAD = 2 };

static void on_reclaim(struct ask *ask, int err, const struct redisReply *answer)
{
    struct reclaim_ask *a = CONTAINER(ask, struct reclaim_ask, ask);
    int64_t next_page = 0;

    if (!err && !reply_int(reply_at(answer, 1), &next_page)) {
        err = LAPSE_EBROKEN;
    }
    a->end(a, err, next_page, answer, err ? 0 : (reply_len(answer) - RECLAIM_HEAD) / 2);
}

void store_reclaim(struct script *s, struct reclaim_ask *a, struct span key, struct span holder,
                   int64_t page)
{
    a->args[0] = holder;
    a->args[1] = number(a->page, page);
    ask(s, &a->ask, SCRIPT_RECLAIM, key, a->args, 2, on_reclaim);
}

bool store_reclaim_row(const struct redisReply *rows, size_t i, struct span *id, int64_t *token)
{
    return reply_text(reply_at(rows, RECLAIM_HEAD + 2 * i), id) && keys_id_ok(*id) &&
           reply_int(reply_at(rows, RECLAIM_HEAD + 2 * i + 1), token);
}

static void on_list(struct ask *ask, int err, const struct redisReply *answer)
{
    struct list_ask *a = CONTAINER(ask, struct list_ask, ask);
    int64_t more = 0;

    if (!err && !reply_int(reply_at(answer, 1), &more)) {
        err = LAPSE_EBROKEN;
    }
    a->end(a, err, answer, err ? 0 : reply_len(answer) - 2, more);
}

void store_list(struct script *s, struct list_ask *a, struct span key, enum lapse_state state,
                unsigned limit, int64_t after_score, struct span after)
{
    a->args[0] =
        (struct span){a->state, (size_t)snprintf(a->state, sizeof a->state, "%d", (int)state % 10)};
    a->args[1] =
        (struct span){a->limit, (size_t)snprintf(a->limit, sizeof a->limit, "%u", limit % 1000)};
    a->args[2] = number(a->score, after_score);
    a->args[3] = after;
    ask(s, &a->ask, SCRIPT_LIST, key, a->args, 4, on_list);
}

bool store_list_row(const struct redisReply *rows, size_t i, struct job_row *row)
{
    return row_read(row, reply_at(rows, 2 + i));
}
