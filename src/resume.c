/* SPDX-License-Identifier: MIT */
/* A claim whose answer was lost would sit out its lease, and use a try. Its record names the holder: what carries our
 * name and a token that is in none of our hands goes back, uncounted; but not what was, and could not be settled in
 * time: that run counts, and the sweep takes it. The queue's running jobs are read page by page. */
#include "resume.h"
#include "mem.h"
#include <stdio.h>

enum { TOKEN_MAX = 24, OURS = 2 /* spans of store_resume()'s own */ };

static void done(struct resume *r, int err)
{
    r->on = false;
    r->done(r, err);
}

/* Also those of a queue that was stopped, and is handled anew; what is settled may outlive its queue, and the key. */
static bool ours(const struct resume *r, const struct held *h)
{
    return h->state != HELD_SETTLED && span_is(h->key, r->key.at, r->key.len);
}

static struct span token(char *text, uint64_t number)
{
    return (struct span){text, (size_t)snprintf(text, TOKEN_MAX, "%llu", (unsigned long long)number)};
}

static void page(struct resume *r, int64_t at)
{
    struct holder *hs = r->holder;
    unsigned n = 0, n_given_up = hs->n_given_up < GIVEN_UP_MAX ? hs->n_given_up : GIVEN_UP_MAX, max = n_given_up;
    LIST_EACH (i, &hs->all) {
        max += ours(r, CONTAINER(i, struct held, node));
    }
    mem_free(r->args);
    r->args = mem_new(0, (max + OURS) * (sizeof *r->args + TOKEN_MAX));
    if (!r->args) {
        done(r, LAPSE_ENOMEM);
        return;
    }
    char *text = (char *)(r->args + max + OURS);
    LIST_EACH (i, &hs->all) {
        struct held *h = CONTAINER(i, struct held, node);
        if (ours(r, h)) {
            r->args[OURS + n] = token(text + (size_t)n * TOKEN_MAX, h->job.token);
            n++;
        }
    }
    for (unsigned i = 0; i < n_given_up; i++, n++) {
        r->args[OURS + n] = token(text + (size_t)n * TOKEN_MAX, hs->given_up[i]);
    }
    r->ask.ask.until_us = clock_us() + hs->core->options.set.reply_ms * 1000;
    store_resume(hs->script, &r->ask, r->key, r->name, at, r->args, n);
}

static void on_page(struct resume_ask *a, int err, int64_t next, int64_t n_back)
{
    struct resume *r = CONTAINER(a, struct resume, ask);
    r->n_back += n_back;
    if (!err && next) {
        page(r, next);
    } else {
        done(r, err);
    }
}

void resume_start(struct resume *r)
{
    r->on = true;
    r->n_back = 0;
    r->ask.end = on_page;
    page(r, 0);
}

void resume_free(struct resume *r)
{
    mem_free(r->args);
}
