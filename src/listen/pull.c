/* SPDX-License-Identifier: MIT */
/* Who asks for jobs and has no handler.
 *
 * A pull ends with the first jobs that it gets. One that waits gets them from whatever claim brings
 * some, be it that of a hint. One that does not wait needs the answer to a claim by age that was
 * sent after it came, and so does one whose time is over while answers are pending: what they bring
 * is meant for it.
 *
 * Nobody else may sweep a queue that has no handlers anywhere. So a claim that found nothing is
 * followed by a look whether there is anything to sweep, once in sweep_ms, and by another claim if
 * there is. */
#include "listen/pull.h"

static struct pull *pull_at(struct list *node)
{
    return CONTAINER(node, struct pull, node);
}

static bool pull_is_by_id(const struct pull *p)
{
    return p->id.len > 0;
}

static void on_patience_over(void *arg)
{
    struct pull *p = arg;

    p->expired = true;
    p->pulls->gave_up(p->pulls->arg, p);
}

void pull_end(struct pull *p, int err)
{
    list_remove(&p->node);
    timer_stop(&p->patience);
    p->end(p, p->n_got > 0 ? 0 : err);
}

/* A claim that covered it was answered. */
static void pull_answered(struct pull *p, int err, bool again)
{
    bool failed_first = err && p->fresh;

    p->asked = false;
    p->claim = NULL;
    p->err = err;

    if (p->n_got > 0 || failed_first) {
        pull_end(p, err);
    } else if (again && p->fresh && !p->held) {
        p->held = true;
    } else {
        p->fresh = false;
        if (p->expired) {
            pull_end(p, err);
        }
    }
}

static bool pull_is_covered(const struct pull *p, const struct claim *c)
{
    return pull_is_by_id(p) ? p->claim == c : p->asked && c->kind == CLAIM_OLDEST;
}

void pulls_answered(struct pulls *ps, const struct pulls_answer *answer)
{
    LIST_EACH (i, &ps->all) {
        struct pull *p = pull_at(i);
        bool waits_for_more = p->asked || p->fresh || !p->expired;

        bool covered = pull_is_covered(p, answer->claim);

        if (covered && answer->more && p->n_got == 0) {
            p->asked = false;
        } else if (covered) {
            pull_answered(p, answer->err, answer->again);
        } else if (p->n_got > 0 || !waits_for_more) {
            pull_end(p, p->err);
        }
    }
}

void pulls_not_again(struct pulls *ps)
{
    LIST_EACH (i, &ps->all) {
        struct pull *p = pull_at(i);
        if (p->held && p->fresh && !p->asked) {
            pull_answered(p, 0, false);
        }
    }
}

void pulls_asked(struct pulls *ps)
{
    LIST_EACH (i, &ps->all) {
        struct pull *p = pull_at(i);
        if (!pull_is_by_id(p)) {
            p->asked = true;
        }
    }
}

unsigned pulls_wanted(const struct pulls *ps)
{
    unsigned n = 0;

    LIST_EACH (i, &ps->all) {
        const struct pull *p = pull_at(i);
        if (!pull_is_by_id(p) && (p->fresh || !p->expired)) {
            n += p->n;
        }
    }

    return n;
}

bool pulls_wait(const struct pulls *ps)
{
    LIST_EACH (i, &ps->all) {
        if (!pull_at(i)->expired) {
            return true;
        }
    }

    return false;
}

struct pull *pulls_taker(const struct pulls *ps, const struct claim *c)
{
    LIST_EACH (i, &ps->all) {
        struct pull *p = pull_at(i);
        bool is_for_it = !pull_is_by_id(p) || p->claim == c;
        if (is_for_it && p->n_got < p->n) {
            return p;
        }
    }

    return NULL;
}

bool pulls_unserved(const struct pulls *ps, const struct claim *c)
{
    LIST_EACH (i, &ps->all) {
        const struct pull *p = pull_at(i);
        if (p->fresh && !p->held && p->n_got == 0 && pull_is_covered(p, c)) {
            return true;
        }
    }

    return false;
}

void pulls_init(struct pulls *ps, void (*gave_up)(void *arg, struct pull *p), void *arg)
{
    *ps = (struct pulls){.gave_up = gave_up, .arg = arg};
    list_init(&ps->all);
}

void pulls_add(struct pulls *ps, struct pull *p, const struct context *context)
{
    int64_t patience_ms = p->wait_ms ? p->wait_ms : context->options.reply_ms;

    p->pulls = ps;
    p->fresh = true;
    p->expired = p->wait_ms == 0;
    list_init(&p->leases);
    list_insert(&ps->all, &p->node);
    timer_init(&p->patience, context->loop, on_patience_over, p);
    timer_set(&p->patience, patience_ms);
}

void pulls_end(struct pulls *ps, int err)
{
    LIST_EACH (i, &ps->all) {
        pull_end(pull_at(i), err);
    }
}
