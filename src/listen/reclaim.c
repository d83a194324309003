/* SPDX-License-Identifier: MIT */
/* If the answer to a claim is lost, Redis believes that we hold jobs which we have never seen. They
 * would wait until their leases end, and a try would be counted. After a reconnect we return every
 * job that carries our name and an unknown token, and no try is counted. Runs that could not be
 * settled in time are left out: they did happen, and the sweep recovers them.
 *
 * The tokens that we know are copied and sorted once, at the start. Redis shows page by page what
 * it has and compares nothing: it would need all tokens with each page. */
#include "listen/reclaim.h"
#include "base/mem.h"
#include <stdlib.h>

/* A job that is being returned. */
struct stray {
    struct settle_request release;
    struct reclaim *reclaim;
    char id[];
};

static int token_compare(const void *a, const void *b)
{
    const uint64_t *x = a;
    const uint64_t *y = b;

    return (*x > *y) - (*x < *y);
}

static int reclaim_note_known(struct reclaim *r)
{
    size_t max = leases_max_tokens(r->leases, r->key);

    mem_free(r->known);
    r->n_known = 0;
    r->known = mem_new(0, (max + 1) * sizeof *r->known);
    if (!r->known) {
        return LAPSE_ENOMEM;
    }

    r->n_known = leases_tokens(r->leases, r->key, r->known);
    qsort(r->known, r->n_known, sizeof *r->known, token_compare);

    return 0;
}

/* Where more runs could not be settled than are remembered, what is no younger than the forgotten
 * ones is not returned: it waits until its lease ends. */
static bool reclaim_knows(const struct reclaim *r, uint64_t token)
{
    if (token <= leases_forgotten_token(r->leases)) {
        return true;
    }

    return bsearch(&token, r->known, r->n_known, sizeof token, token_compare) != NULL;
}

static void reclaim_note_error(struct reclaim *r, int err)
{
    if (!r->err) {
        r->err = err;
    }
}

static int64_t reclaim_until_us(const struct reclaim *r)
{
    return clock_us() + r->script->context->options.reply_ms * 1000;
}

static void reclaim_ask_page(struct reclaim *r)
{
    r->page.request.until_us = reclaim_until_us(r);
    script_reclaim(r->script, &r->page, r->key, r->holder, r->next_page);
}

/* When all jobs of a page are returned: the next page, or the end. */
static void reclaim_go_on(struct reclaim *r)
{
    if (r->n_returning > 0) {
        return;
    }

    if (!r->err && r->next_page && !r->stopped) {
        reclaim_ask_page(r);
        return;
    }

    mem_free(r->known);
    r->known = NULL;
    r->on = false;
    r->done(r->arg, r->err, r->n_returned);
}

static void on_returned(struct settle_request *release, int err, const struct settled_job *job)
{
    struct stray *stray = CONTAINER(release, struct stray, release);
    struct reclaim *r = stray->reclaim;

    (void)job;
    mem_free(stray);
    r->n_returning--;
    if (!err) {
        r->n_returned++;
    } else if (err != LAPSE_EGONE) {
        reclaim_note_error(r, err);
    }

    reclaim_go_on(r);
}

static void reclaim_return(struct reclaim *r, struct span id, uint64_t token)
{
    struct stray *stray = mem_new(sizeof *stray, id.len);

    if (!stray) {
        reclaim_note_error(r, LAPSE_ENOMEM);
        return;
    }

    memcpy(stray->id, id.at, id.len);
    stray->reclaim = r;
    stray->release.end = on_returned;
    stray->release.request.until_us = reclaim_until_us(r);
    r->n_returning++;

    struct leased_job job = {.key = r->key, .id = {stray->id, id.len}, .token = token};
    script_release(r->script, &stray->release, &job);
}

static void on_page(struct reclaim_request *page, int err, const struct reclaim_reply *reply)
{
    struct reclaim *r = CONTAINER(page, struct reclaim, page);
    size_t n = 0;

    if (err) {
        r->next_page = 0;
        reclaim_note_error(r, err);
    } else {
        r->next_page = reply->next_page;
        n = reply->n_jobs;
    }

    for (size_t i = 0; i < n && !r->stopped; i++) {
        struct span id;
        uint64_t token;
        if (script_reclaimed_job(reply, i, &id, &token) && !reclaim_knows(r, token)) {
            reclaim_return(r, id, token);
        }
    }

    reclaim_go_on(r);
}

void reclaim_init(struct reclaim *r, const struct reclaim_spec *spec)
{
    *r = (struct reclaim){.script = spec->script,
                          .leases = spec->leases,
                          .key = spec->key,
                          .holder = spec->holder,
                          .done = spec->done,
                          .arg = spec->arg};
    r->page.end = on_page;
}

void reclaim_start(struct reclaim *r)
{
    r->on = true;
    r->n_returned = 0;
    r->next_page = 0;
    r->err = reclaim_note_known(r);

    if (r->err) {
        reclaim_go_on(r);
    } else {
        reclaim_ask_page(r);
    }
}

void reclaim_stop(struct reclaim *r)
{
    r->stopped = true;
}

void reclaim_free(struct reclaim *r)
{
    mem_free(r->known);
}
