/* SPDX-License-Identifier: MIT */
/* A claim whose answer was lost would sit out its lease, and use a try. Its record names the
 * holder, so what runs under our name is read page by page, and what carries a token that is in
 * none of our hands goes back, uncounted; but not a run that began and could not be settled in
 * time: it counts, and the sweep takes it.
 *
 * More runs than are kept may have been given up: then what is no younger than those sits out its
 * lease.
 *
 * The tokens in hand are noted and sorted once, at the start. Redis shows what it has and compares
 * nothing: it would have to be told all tokens with each page. */
#include "listen/reclaim.h"
#include "base/mem.h"
#include <stdlib.h>

/* A job on its way back. */
struct lost_claim {
    struct settle_ask release;
    struct resume *resume;
    char id[];
};

/* Also those of a queue that was stopped, and is handled anew; what is settled may outlive its
 * queue, and the key. */
static bool ours(const struct resume *r, const struct held *h)
{
    return h->state != HELD_SETTLED && span_eq(h->key, r->key);
}

static int compare(const void *a, const void *b)
{
    const uint64_t *x = a;
    const uint64_t *y = b;
    return (*x > *y) - (*x < *y);
}

static int note_tokens(struct resume *r)
{
    struct holder *hs = r->holder;
    unsigned n_given_up = hs->n_given_up < GIVEN_UP_MAX ? hs->n_given_up : GIVEN_UP_MAX;
    size_t n = n_given_up;

    LIST_EACH (i, &hs->all) {
        n += ours(r, CONTAINER(i, struct held, node));
    }

    mem_free(r->in_hand);
    r->n_in_hand = 0;
    r->in_hand = mem_new(0, (n + 1) * sizeof *r->in_hand);
    if (!r->in_hand) {
        return LAPSE_ENOMEM;
    }

    LIST_EACH (i, &hs->all) {
        struct held *h = CONTAINER(i, struct held, node);
        if (ours(r, h)) {
            r->in_hand[r->n_in_hand++] = h->job.token;
        }
    }

    for (unsigned i = 0; i < n_given_up; i++) {
        r->in_hand[r->n_in_hand++] = hs->given_up[i];
    }

    qsort(r->in_hand, r->n_in_hand, sizeof *r->in_hand, compare);

    return 0;
}

static bool is_in_hand(const struct resume *r, uint64_t token)
{
    return token <= r->holder->given_up_before ||
           bsearch(&token, r->in_hand, r->n_in_hand, sizeof token, compare) != NULL;
}

static void note_error(struct resume *r, int err)
{
    if (!r->err) {
        r->err = err;
    }
}

static int64_t until_us(const struct resume *r)
{
    return clock_us() + r->holder->context->settings.reply_ms * 1000;
}

static void ask_page(struct resume *r)
{
    r->ask.ask.until_us = until_us(r);
    store_reclaim(r->holder->script, &r->ask, r->key, r->name, r->next_page);
}

/* When all of a page are back: the next one, or the end. */
static void go_on(struct resume *r)
{
    if (r->n_releasing) {
        return;
    }

    if (!r->err && r->next_page && !r->stopped) {
        ask_page(r);
        return;
    }

    mem_free(r->in_hand);
    r->in_hand = NULL;
    r->on = false;
    r->done(r, r->err);
}

static void on_released(struct settle_ask *a, int err, int64_t value)
{
    struct lost_claim *lost = CONTAINER(a, struct lost_claim, release);
    struct resume *r = lost->resume;

    (void)value;
    mem_free(lost);
    r->n_releasing--;
    r->n_back += !err;
    if (err && err != LAPSE_EGONE) {
        note_error(r, err);
    }

    go_on(r);
}

static void release(struct resume *r, struct span id, uint64_t token)
{
    struct lost_claim *lost = mem_new(sizeof *lost, id.len);

    if (!lost) {
        note_error(r, LAPSE_ENOMEM);
        return;
    }

    memcpy(lost->id, id.at, id.len);
    lost->resume = r;
    lost->release.end = on_released;
    lost->release.ask.until_us = until_us(r);
    r->n_releasing++;
    store_release(r->holder->script, &lost->release, r->key, (struct span){lost->id, id.len},
                  token);
}

static void on_page(struct reclaim_ask *a, int err, int64_t next_page,
                    const struct redisReply *rows, size_t n)
{
    struct resume *r = CONTAINER(a, struct resume, ask);

    r->next_page = next_page;
    if (err) {
        note_error(r, err);
    }

    for (size_t i = 0; i < n && !r->stopped; i++) {
        struct span id;
        int64_t token;
        if (store_reclaim_row(rows, i, &id, &token) && !is_in_hand(r, (uint64_t)token)) {
            release(r, id, (uint64_t)token);
        }
    }

    go_on(r);
}

void resume_start(struct resume *r)
{
    r->on = true;
    r->n_back = 0;
    r->next_page = 0;
    r->err = note_tokens(r);
    r->ask.end = on_page;
    if (r->err) {
        go_on(r);
    } else {
        ask_page(r);
    }
}

void resume_stop(struct resume *r)
{
    r->stopped = true;
}

void resume_free(struct resume *r)
{
    mem_free(r->in_hand);
}
