/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_CLAIM_H
#define LAPSE_CLAIM_H
#include "script/lease_verbs.h"

/* What the claims of all queues share. */
struct claims {
    struct context *context;
    struct script *script;
    struct span holder; /* our name, as Redis knows it */
    struct list spare;  /* ended claims, to be used again */
    unsigned n_spare;
};

void claims_init(struct claims *cs, struct script *script, struct span holder);
/* To be called when no claim is pending. */
void claims_close(struct claims *cs);

/* A claim of jobs of one queue: of those with certain ids, or of the oldest that are due. */
struct claim {
    struct claims *claims;
    struct list node;
    void *owner; /* the queue */
    void (*end)(struct claim *c, int err, const struct claim_reply *got);
    struct claim_request call;
    unsigned n_slots; /* set aside for it */
    int64_t lease_ms;
};

/* NULL: out of memory. end() is called once for each time that the claim is sent. */
struct claim *claim_new(struct claims *cs, void *owner,
                        void (*end)(struct claim *c, int err, const struct claim_reply *got));
void claim_free(struct claim *c);

/* Asks for the n oldest jobs that are due. */
void claim_ask_oldest(struct claim *c, struct span key, unsigned n, enum lapse_via via);

/* Adds an id, which is copied, and a slot. The first id asks for the claim. */
void claim_add(struct claim *c, struct span key, struct span id, enum lapse_via via);
/* It is a claim of ids, is not sent yet, and may take one more. */
bool claim_is_open(const struct claim *c);
/* Takes it back if it is not sent yet; then end() is not called. */
bool claim_withdraw(struct claim *c);

static inline bool claim_is_by_age(const struct claim *c)
{
    return c->call.n_ids == 0;
}

/* When it was sent, by clock_us(). */
static inline int64_t claim_sent_us(const struct claim *c)
{
    return c->call.request.sent_us;
}

/* The hint that led to this job. */
enum lapse_via claim_via(const struct claim *c, const struct job_row *row);

/* A claim of ids ends early when the jobs' bodies are large: how many ids are left? They are asked
 * for by claim_go_on(). */
unsigned claim_n_left(const struct claim *c, const struct claim_reply *got);
void claim_go_on(struct claim *c, unsigned n_left);

#endif
