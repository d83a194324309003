/* SPDX-License-Identifier: MIT */
/* The scripts of src/lua/lease, a function each; job_verbs.h says what holds for all requests. */
#ifndef LAPSE_LEASE_VERBS_H
#define LAPSE_LEASE_VERBS_H
#include "job/job.h"
#include "job/keys.h"
#include "script/args.h"
#include "script/script.h"
#include "script_replies.h"

/* ---- report, done, retry, snooze, fail, release, renew ---- */
/* A job that script->holder holds by the token of its claim, or any holder does. */
struct leased_job {
    struct span key;
    struct span id;
    uint64_t token;
    bool any_holder;
};

/* What became of a job that was settled. Where something was asked while it ran, that happened. */
struct settled_job {
    enum { SETTLED_OVER, SETTLED_WAITS, SETTLED_DEAD, SETTLED_CANCELLED } as;
    int64_t due_ms; /* of one that waits: retried, snoozed, or rescheduled while it ran */
};

struct settle_request {
    struct script_request request;
    struct span args[4];
    char token[ARG_NUMBER_MAX];
    char delay[1 + ARG_NUMBER_MAX];
    struct span reported; /* of done, with a report: what script_put_report() has put */
    /* job: NULL on an error */
    void (*end)(struct settle_request *r, int err, const struct settled_job *job);
};

/* Counts what a settle has done. */
void script_count_settled(const struct settle_request *r, const struct settled_job *job,
                          struct context *context, const char *queue);

/* It settles nothing, and needs no memory here either. */
void script_report(struct script *s, struct settle_request *r, const struct leased_job *job,
                   struct span report);

/* The token of a job, and behind it a report, of which done makes one argument. out has
 * ARG_NUMBER_MAX bytes more than the report. */
struct span script_put_report(char *out, uint64_t token, struct span report);
void script_done(struct script *s, struct settle_request *r, const struct leased_job *job);
/* delay_ms: negative, and it is the backoff of the job. */
void script_retry(struct script *s, struct settle_request *r, const struct leased_job *job,
                  int64_t delay_ms, struct span reason);
/* The same script, and the try does not count. */
void script_snooze(struct script *s, struct settle_request *r, const struct leased_job *job,
                   int64_t delay_ms, struct span reason);
void script_fail(struct script *s, struct settle_request *r, const struct leased_job *job,
                 struct span reason);
void script_release(struct script *s, struct settle_request *r, const struct leased_job *job);

struct renewed_lease {
    int64_t until_ms; /* its new end */
    bool cancelled;   /* the job is asked to stop */
};

struct renew_request {
    struct script_request request;
    struct span args[3];
    char token[ARG_NUMBER_MAX];
    char lease[ARG_NUMBER_MAX];
    /* lease: NULL on an error */
    void (*end)(struct renew_request *r, int err, const struct renewed_lease *lease);
};

void script_renew(struct script *s, struct renew_request *r, const struct leased_job *job,
                  int64_t lease_ms);

/* ---- claim ---- */
enum { CLAIM_ARGS = 3 /* before the ids */ };

/* The ids that a claim names. */
struct claim_ids {
    unsigned n;
    struct span args[CLAIM_ARGS + SCRIPT_BATCH];
    char texts[SCRIPT_BATCH][KEYS_ID_MAX + 1];
    uint8_t via[SCRIPT_BATCH]; /* of each id: enum lapse_via */
};

struct claim_request {
    struct script_request request;
    struct span args[CLAIM_ARGS];
    char lease[ARG_NUMBER_MAX];
    char limit[ARG_NUMBER_MAX];
    struct claim_ids *ids; /* NULL: the oldest are asked for */
    bool in_order;         /* with ids: no other goes before those that have a priority */
    /* reply: NULL on an error */
    void (*end)(struct claim_request *r, int err, const struct claim_reply *reply);
};

/* Claims the ids of the request, or, if it has none, the oldest due jobs: limit at most. holder
 * lives until the request has ended. */
void script_claim(struct script *s, struct claim_request *r, struct span key, struct span holder,
                  int64_t lease_ms, unsigned limit);

/* Adds an id to those to claim, which is possible until the request is sent, and for SCRIPT_BATCH
 * ids at most. The id is copied. */
void script_claim_add(struct claim_request *r, struct span id, enum lapse_via via);

/* The i-th job that was claimed; false: its row cannot be read. */
bool script_claimed_job(const struct claim_reply *reply, size_t i, struct job_row *row);

/* ---- touch ---- */
enum { TOUCH_ARGS = 8 };

struct touch_request {
    struct script_request request;
    struct span args[TOUCH_ARGS];
    char numbers[TOUCH_ARGS][ARG_NUMBER_MAX];
    /* reply: NULL on an error */
    void (*end)(struct touch_request *r, int err, const struct touch_reply *reply);
};

/* What to read, and to claim: the head of lua/lease/touch.lua describes it. */
struct touch_range {
    int64_t cursor_ms;
    int64_t rank;
    int64_t n_members;
    bool everyone;
    unsigned look;
};

struct touch_spec {
    struct span holder; /* lives until the request has ended */
    int64_t lease_ms;
    unsigned limit;
    struct touch_range range;
};

void script_touch(struct script *s, struct touch_request *r, struct span key,
                  const struct touch_spec *spec);

/* The i-th job that was claimed; false: it was forwarded, or its row cannot be read. Its place is 1
 * if its trigger expired now. */
bool script_touched_job(const struct touch_reply *reply, size_t i, struct job_row *row);

/* The i-th job, claimed or forwarded, whose trigger expired now; false: it is none of these. */
bool script_touched_trigger(const struct touch_reply *reply, size_t i, struct span *id);

/* ---- reclaim ---- */
struct reclaim_request {
    struct script_request request;
    struct span args[2];
    char page[ARG_NUMBER_MAX];
    /* reply: NULL on an error */
    void (*end)(struct reclaim_request *r, int err, const struct reclaim_reply *reply);
};

/* A page of the jobs that run under the name of a holder; page 0 is the first. */
void script_reclaim(struct script *s, struct reclaim_request *r, struct span key,
                    struct span holder, int64_t page);

/* The i-th job of a page; false: it cannot be read. */
bool script_reclaimed_job(const struct reclaim_reply *reply, size_t i, struct span *id,
                          uint64_t *token);

/* ---- sweep ---- */
struct sweep_request {
    struct script_request request;
    struct span args[1];
    /* reply: NULL on an error */
    void (*end)(struct sweep_request *r, int err, const struct sweep_reply *reply);
};

/* tell: those that die are shown. */
void script_sweep(struct script *s, struct sweep_request *r, struct span key, bool tell);
/* The i-th of these; false: it cannot be read. */
bool script_swept_job(const struct sweep_reply *reply, size_t i, struct job_row *row);

#endif
