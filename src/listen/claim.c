/* SPDX-License-Identifier: MIT */
/* Ids that are heard before a claim is sent travel together: the first asks for the claim, and the
 * others are added to it. Redis decides by its clock which of the jobs are due. */
#include "listen/claim.h"
#include "base/mem.h"

enum { SPARE_MAX = 8 };

static void on_answer(struct claim_request *r, int err, const struct claim_reply *got)
{
    struct claim *c = CONTAINER(r, struct claim, call);
    c->end(c, err, got);
}

struct claim *claim_new(struct claims *cs, void *owner,
                        void (*end)(struct claim *c, int err, const struct claim_reply *got))
{
    struct list *spare = list_pop(&cs->spare);
    struct claim *c = NULL;

    if (spare) {
        c = CONTAINER(spare, struct claim, node);
        cs->n_spare--;
    } else {
        c = mem_new(sizeof *c, 0);
    }
    if (!c) {
        return NULL;
    }

    list_init(&c->node);
    c->claims = cs;
    c->owner = owner;
    c->end = end;
    c->call.end = on_answer;
    c->call.n_ids = 0;
    c->n_slots = 0;

    return c;
}

void claim_free(struct claim *c)
{
    struct claims *cs = c->claims;

    if (cs->n_spare < SPARE_MAX) {
        cs->n_spare++;
        list_insert(&cs->spare, &c->node);
    } else {
        mem_free(c);
    }
}

static void claim_send(struct claim *c, struct span key)
{
    struct claims *cs = c->claims;
    const struct lapse_options *settings = &cs->context->settings;
    bool short_runs = settings->run_ms < settings->lease_ms;

    c->lease_ms = short_runs ? settings->run_ms : settings->lease_ms;
    c->call.request.until_us = clock_us() + settings->reply_ms * 1000;
    script_claim(cs->script, &c->call, key, cs->holder, c->lease_ms, c->n_slots);
}

void claim_ask_oldest(struct claim *c, struct span key, unsigned n, enum lapse_via via)
{
    c->n_slots = n;
    c->call.via_oldest = (uint8_t)via;
    claim_send(c, key);
}

void claim_add(struct claim *c, struct span key, struct span id, enum lapse_via via)
{
    script_claim_add(&c->call, id, via);
    c->n_slots++;
    if (c->n_slots == 1) {
        claim_send(c, key);
    }
}

bool claim_is_open(const struct claim *c)
{
    return script_is_unsent(&c->call.request) && !claim_is_by_age(c) &&
           c->call.n_ids < SCRIPT_BATCH;
}

bool claim_withdraw(struct claim *c)
{
    return script_withdraw(c->claims->script, &c->call.request);
}

/* ---- answers ---- */
static bool claim_named(const struct claim *c, const struct job_row *row)
{
    return row->place >= 1 && row->place <= c->call.n_ids;
}

enum lapse_via claim_via(const struct claim *c, const struct job_row *row)
{
    if (claim_named(c, row)) {
        return (enum lapse_via)c->call.via[row->place - 1];
    }

    return (enum lapse_via)c->call.via_oldest;
}

unsigned claim_n_left(const struct claim *c, const struct claim_reply *got)
{
    size_t bytes = 0;
    int64_t last = 0;

    for (size_t i = 0; i < got->n_jobs; i++) {
        struct job_row row;
        if (script_claimed_job(got, i, &row) && claim_named(c, &row)) {
            bytes += row.record.len;
            last = row.place > last ? row.place : last;
        }
    }

    if (bytes <= SCRIPT_BATCH_BYTES) {
        return 0;
    }

    return c->call.n_ids - (unsigned)last;
}

void claim_go_on(struct claim *c, unsigned n_left)
{
    struct claim_request *r = &c->call;
    unsigned first = r->n_ids - n_left;

    memmove(r->ids, r->ids + first, n_left * sizeof *r->ids);
    memmove(r->via, r->via + first, n_left * sizeof *r->via);
    r->n_ids = n_left;
    c->n_slots = n_left;
    claim_send(c, r->request.key);
}

/* ---- all claims ---- */
void claims_init(struct claims *cs, struct script *script, struct span holder)
{
    *cs = (struct claims){.context = script->context, .script = script, .holder = holder};
    list_init(&cs->spare);
}

void claims_close(struct claims *cs)
{
    for (struct list *i; (i = list_pop(&cs->spare));) {
        mem_free(CONTAINER(i, struct claim, node));
    }
}
