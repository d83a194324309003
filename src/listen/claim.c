/* SPDX-License-Identifier: MIT */
/* Ids that are heard before a claim is sent travel together: the first asks for the claim, and the
 * others are added to it. Redis decides by its clock which of the jobs are due.
 *
 * A touch reads the triggers of our due jobs and claims them, in one script; or it forwards all
 * that is due, and reads the triggers of that. Their events come to us all the same, and must not
 * lead to claims in vain: what a touch took is remembered by its hash until its event was heard.
 * Where two jobs want the same place the older is forgotten, which costs a claim in vain. */
#include "listen/claim.h"
#include "base/mem.h"

enum { SPARE_MAX = 8 };

/* ---- the events that we made ---- */
static uint32_t echo_hash(struct span key, struct span id)
{
    return span_hash(key) ^ span_hash(id);
}

static void claims_note_echo(struct claims *cs, struct span key, struct span id)
{
    uint32_t hash = echo_hash(key, id);
    cs->echoes[hash % ECHOES] = hash;
}

bool claims_take_echo(struct claims *cs, struct span key, struct span id)
{
    uint32_t hash = echo_hash(key, id);
    uint32_t *noted = &cs->echoes[hash % ECHOES];

    if (*noted != hash || hash == 0) {
        return false;
    }

    *noted = 0;
    return true;
}

/* ---- life ---- */
static struct claim *claims_take_spare(struct claims *cs)
{
    struct list *spare = list_pop(&cs->spare);

    if (!spare) {
        return mem_new(sizeof(struct claim), 0);
    }

    cs->n_spare--;
    return CONTAINER(spare, struct claim, node);
}

static void claim_delete(struct claim *c)
{
    mem_free(c->ids);
    mem_free(c);
}

struct claim *claim_new(struct claims *cs, enum claim_kind kind, void *owner,
                        void (*end)(struct claim *c, int err, const struct claim_result *got))
{
    struct claim *c = claims_take_spare(cs);

    if (!c) {
        return NULL;
    }

    struct claim_ids *ids = c->ids;
    if (kind == CLAIM_IDS && !ids) {
        ids = mem_new(sizeof *ids, 0);
        if (!ids) {
            mem_free(c);
            return NULL;
        }
    }

    *c = (struct claim){.claims = cs, .owner = owner, .end = end, .kind = kind, .ids = ids};
    list_init(&c->node);
    if (ids) {
        ids->n = 0;
    }

    return c;
}

void claim_free(struct claim *c)
{
    struct claims *cs = c->claims;

    if (cs->n_spare < SPARE_MAX) {
        cs->n_spare++;
        list_insert(&cs->spare, &c->node);
    } else {
        claim_delete(c);
    }
}

/* ---- answers ---- */
/* What the replies of both scripts have, by the same names. */
#define RESULT_OF(reply)                                                            \
    {                                                                               \
        .now_us = (reply)->now_us, .oldest_due_ms = (reply)->oldest_due_ms,         \
        .next_due_ms = (reply)->next_due_ms, .n_unreadable = (reply)->n_unreadable, \
        .n_lost = (reply)->n_lost, .gate_ms = (reply)->gate_ms,                     \
        .n_forwarded = (reply)->n_forwarded, .n_jobs = (reply)->n_jobs              \
    }

static void on_claim_answer(struct claim_request *r, int err, const struct claim_reply *reply)
{
    struct claim *c = CONTAINER(r, struct claim, call);

    if (err) {
        c->end(c, err, NULL);
        return;
    }

    struct claim_result got = RESULT_OF(reply);
    got.claim = reply;
    c->end(c, 0, &got);
}

static void claim_note_echoes(struct claim *c, const struct touch_reply *reply)
{
    for (size_t i = 0; i < reply->n_jobs; i++) {
        struct span id;
        if (script_touched_trigger(reply, i, &id)) {
            claims_note_echo(c->claims, c->touch.request.key, id);
        }
    }
}

static void on_touch_answer(struct touch_request *r, int err, const struct touch_reply *reply)
{
    struct claim *c = CONTAINER(r, struct claim, touch);

    if (err) {
        c->end(c, err, NULL);
        return;
    }

    struct claim_result got = RESULT_OF(reply);
    got.touch = reply;
    claim_note_echoes(c, reply);
    c->end(c, 0, &got);
}

bool claim_job(const struct claim_result *got, size_t i, struct job_row *row)
{
    return got->touch ? script_touched_job(got->touch, i, row)
                      : script_claimed_job(got->claim, i, row);
}

/* ---- sending ---- */
/* Where lease and patience are the same for all kinds. */
static int64_t claim_begin(struct claim *c, struct script_request *r)
{
    const struct lapse_options *options = &c->claims->context->options;
    bool short_runs = options->run_ms < options->lease_ms;

    c->lease_ms = short_runs ? options->run_ms : options->lease_ms;
    r->until_us = clock_us() + options->reply_ms * 1000;
    return c->lease_ms;
}

static struct span claim_holder(const struct claim *c)
{
    return c->forwards ? span_of("-") : c->claims->holder;
}

static void claim_send(struct claim *c, struct span key)
{
    struct claims *cs = c->claims;
    int64_t lease_ms = claim_begin(c, &c->call.request);

    c->call.end = on_claim_answer;
    c->call.ids = c->kind == CLAIM_IDS ? c->ids : NULL;
    c->call.in_order = c->in_order;
    script_claim(cs->script, &c->call, key, claim_holder(c), lease_ms, c->n_slots);
}

void claim_ask_oldest(struct claim *c, struct span key, unsigned n, enum lapse_via via)
{
    c->n_slots = n;
    c->via = via;
    claim_send(c, key);
}

void claim_add(struct claim *c, struct span key, struct span id, enum lapse_via via)
{
    c->call.ids = c->ids;
    script_claim_add(&c->call, id, via);
    c->n_slots++;
    if (c->n_slots == 1) {
        c->via = via;
        claim_send(c, key);
    }
}

bool claim_is_open(const struct claim *c)
{
    return script_is_unsent(&c->call.request) && c->ids->n < SCRIPT_BATCH;
}

bool claim_withdraw(struct claim *c)
{
    return script_withdraw(c->claims->script, &c->call.request);
}

void claim_touch(struct claim *c, struct span key, unsigned n, const struct touch_range *range)
{
    struct claims *cs = c->claims;
    int64_t lease_ms = claim_begin(c, &c->touch.request);
    struct touch_spec spec = {
        .holder = claim_holder(c), .lease_ms = lease_ms, .limit = n, .range = *range};

    c->n_slots = n;
    c->touch.end = on_touch_answer;
    script_touch(cs->script, &c->touch, key, &spec);
}

int64_t claim_sent_us(const struct claim *c)
{
    return c->kind == CLAIM_TOUCH ? c->touch.request.sent_us : c->call.request.sent_us;
}

/* ---- what a claim of ids brought ---- */
static bool claim_named(const struct claim *c, const struct job_row *row)
{
    return c->kind == CLAIM_IDS && row->place >= 1 && row->place <= c->ids->n;
}

enum lapse_via claim_via(const struct claim *c, const struct job_row *row)
{
    if (c->kind == CLAIM_TOUCH) {
        return row->place == 1 ? LAPSE_VIA_TOUCH : LAPSE_VIA_ALARM;
    }
    if (claim_named(c, row)) {
        return (enum lapse_via)c->ids->via[row->place - 1];
    }

    return c->via;
}

unsigned claim_n_left(const struct claim *c, const struct claim_result *got)
{
    size_t bytes = 0;
    int64_t last = 0;

    for (size_t i = 0; i < got->n_jobs; i++) {
        struct job_row row;
        if (claim_job(got, i, &row) && claim_named(c, &row)) {
            bytes += row.record.len;
            last = row.place > last ? row.place : last;
        }
    }

    if (bytes <= SCRIPT_BATCH_BYTES) {
        return 0;
    }

    return c->ids->n - (unsigned)last;
}

void claim_go_on(struct claim *c, unsigned n_left)
{
    struct claim_ids *ids = c->ids;
    unsigned first = ids->n - n_left;

    memmove(ids->texts, ids->texts + first, n_left * sizeof *ids->texts);
    memmove(ids->via, ids->via + first, n_left * sizeof *ids->via);
    ids->n = n_left;
    c->n_slots = n_left;
    claim_send(c, c->call.request.key);
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
        claim_delete(CONTAINER(i, struct claim, node));
    }
}
