/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_CLAIM_H
#define LAPSE_CLAIM_H
#include "script/lease_verbs.h"

enum { ECHOES = 1024 };

/* What the claims of all queues share. */
struct claims {
    struct context *context;
    struct script *script;
    struct span holder; /* our name, as Redis knows it */
    struct list spare;  /* ended claims, to be used again */
    unsigned n_spare;
    uint32_t echoes[ECHOES]; /* hashes of jobs whose events we made: they will come */
};

void claims_init(struct claims *cs, struct script *script, struct span holder);
/* To be called when no claim is pending. */
void claims_close(struct claims *cs);

/* The event of a job was heard. True: we made it ourselves, and have claimed or forwarded the job
 * with it. */
bool claims_take_echo(struct claims *cs, struct span key, struct span id);

enum claim_kind {
    CLAIM_IDS,    /* jobs with certain ids */
    CLAIM_OLDEST, /* the oldest that are due */
    CLAIM_TOUCH   /* jobs of ours whose triggers it reads */
};

/* What a claim of any kind brought. */
struct claim_result {
    int64_t now_us;
    int64_t oldest_due_ms; /* due, and not taken; 0: none */
    int64_t next_due_ms;   /* the first that is due later; 0: none */
    int64_t n_unreadable;
    int64_t n_lost;
    int64_t gate_ms; /* until when no job is given out; 0: jobs are */
    int64_t n_forwarded;
    size_t n_jobs;                   /* those that do not run as well */
    const struct claim_reply *claim; /* one of the two is NULL */
    const struct touch_reply *touch;
};

/* A claim of jobs of one queue. */
struct claim {
    struct claims *claims;
    struct list node;
    void *owner; /* the queue */
    void (*end)(struct claim *c, int err, const struct claim_result *got);
    enum claim_kind kind;
    bool forwards;    /* it asks for no job, and only forwards */
    unsigned n_slots; /* set aside for it */
    int64_t lease_ms;
    enum lapse_via via;    /* of the oldest */
    struct claim_ids *ids; /* allocated when first needed */
    bool in_order;         /* of ids: they may be others where there are priorities */
    int64_t target_ms;     /* the due time that a touch is to find */
    union {
        struct claim_request call;
        struct touch_request touch;
    };
};

/* NULL: out of memory. end() is called once for each time that the claim is sent. */
struct claim *claim_new(struct claims *cs, enum claim_kind kind, void *owner,
                        void (*end)(struct claim *c, int err, const struct claim_result *got));
void claim_free(struct claim *c);

/* Asks for the n oldest jobs that are due. */
void claim_ask_oldest(struct claim *c, struct span key, unsigned n, enum lapse_via via);

/* Adds an id, which is copied, and a slot. The first id asks for the claim. */
void claim_add(struct claim *c, struct span key, struct span id, enum lapse_via via);
/* It is not sent yet, and may take one more. */
bool claim_is_open(const struct claim *c);
/* Takes it back if it is not sent yet; then end() is not called. */
bool claim_withdraw(struct claim *c);

/* Touches, and claims n jobs at most. */
void claim_touch(struct claim *c, struct span key, unsigned n, const struct touch_range *range);

/* When it was sent, by clock_us(). */
int64_t claim_sent_us(const struct claim *c);

/* It has taken something, if only what is no job. */
static inline bool claim_found(const struct claim_result *got)
{
    return got->n_jobs > 0 || got->n_unreadable > 0 || got->n_lost > 0 || got->n_forwarded > 0;
}

/* The i-th job that was claimed, or else was skipped or is dead; false: its row cannot be read. */
bool claim_job(const struct claim_result *got, size_t i, struct job_row *row);
/* The hint that led to this job. */
enum lapse_via claim_via(const struct claim *c, const struct job_row *row);

/* A claim of ids ends early when the jobs' bodies are large: how many ids are left? They are asked
 * for by claim_go_on(). */
unsigned claim_n_left(const struct claim *c, const struct claim_result *got);
void claim_go_on(struct claim *c, unsigned n_left);

#endif
