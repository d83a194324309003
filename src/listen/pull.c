/* SPDX-License-Identifier: MIT */
/* A pull ends with the first jobs that it gets. One that waits gets them from whatever claim brings
 * some, be it that of a hint. One that does not wait needs the answer to a claim that was sent
 * after it came, and so does one whose time is over while answers are pending: what they bring is
 * meant for it.
 *
 * Where a claim found nothing, another may follow, once (pulls.c): until then the pull is held. */
#include "listen/pull.h"

static void on_patience_over(void *arg)
{
    struct pull *p = arg;

    p->expired = true;
    p->gave_up(p->arg, p);
}

void pull_begin(struct pull *p, const struct context *context,
                void (*gave_up)(void *arg, struct pull *p), void *arg)
{
    int64_t patience_ms = p->wait_ms ? p->wait_ms : context->options.reply_ms;

    p->fresh = true;
    p->expired = p->wait_ms == 0;
    p->gave_up = gave_up;
    p->arg = arg;
    list_init(&p->leases);
    timer_init(&p->patience, context->loop, on_patience_over, p);
    timer_set(&p->patience, patience_ms);
}

void pull_end(struct pull *p, int err)
{
    list_remove(&p->node);
    timer_stop(&p->patience);
    p->end(p, p->n_got > 0 ? 0 : err);
}

/* A claim that covered it was answered, and no other follows at once. */
static void pull_hear(struct pull *p, int err, bool again)
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

void pull_answered(struct pull *p, const struct pull_answer *answer)
{
    bool waits_for_more = p->asked || p->fresh || !p->expired;
    bool covered = pull_is_covered(p, answer->claim);

    if (covered && answer->more && p->n_got == 0) {
        p->asked = false;
    } else if (covered) {
        pull_hear(p, answer->err, answer->again);
    } else if (p->n_got > 0 || !waits_for_more) {
        pull_end(p, p->err);
    }
}

void pull_not_again(struct pull *p)
{
    if (p->held && p->fresh && !p->asked) {
        pull_hear(p, 0, false);
    }
}

unsigned pull_wanted(const struct pull *p)
{
    bool wants = !pull_is_by_id(p) && (p->fresh || !p->expired);

    return wants ? p->n : 0;
}

void pull_got(struct pull *p, int64_t claimed_us)
{
    if (p->n_got == 0 || claimed_us < p->claimed_us) {
        p->claimed_us = claimed_us;
    }
    p->n_got++;
}

bool pull_takes(const struct pull *p, const struct claim *c)
{
    bool is_for_it = !pull_is_by_id(p) || p->claim == c;

    return is_for_it && p->n_got < p->n;
}

bool pull_is_unserved(const struct pull *p, const struct claim *c)
{
    return p->fresh && !p->held && p->n_got == 0 && pull_is_covered(p, c);
}
