/* SPDX-License-Identifier: MIT */
/* Who asks for jobs of a queue that has no handler. The queue has slots for the jobs that these
 * want. It listens from the moment at which one begins to wait, until LINGER_MS after the last one
 * has ended: a loop of claims does not enter and leave each time. Between them its share of the
 * jobs is claimed by others when their grace is over, as it is where a listener has no free slot.
 *
 * Nobody else may sweep a queue that has no handlers anywhere. So a claim that found nothing is
 * followed by a look whether there is anything to sweep, once in sweep_ms, and by another claim if
 * there is. Where the gate is closed none would bring a job. */
#include "listen/pulls.h"
#include "base/error.h"

enum { LINGER_MS = 15000 };

static struct pull *pull_at(struct list *node)
{
    return CONTAINER(node, struct pull, node);
}

static void pulls_want(struct pulls *ps)
{
    unsigned n = 0;

    LIST_EACH (i, &ps->all) {
        n += pull_wanted(pull_at(i));
    }

    share_want(ps->share, n);
}

/* One has come or ended. */
static void pulls_changed(struct pulls *ps)
{
    pulls_want(ps);

    if (!pulls_empty(ps)) {
        timer_stop(&ps->linger);
    } else if (!ps->closed && !timer_on(&ps->linger)) {
        timer_set(&ps->linger, LINGER_MS);
    }
}

static void on_linger_over(void *arg)
{
    struct pulls *ps = arg;
    ps->events->unused(ps->arg);
}

void pulls_end(struct pulls *ps, struct pull *p, int err)
{
    pull_end(p, err);
    pulls_changed(ps);
}

static void on_gave_up(void *arg, struct pull *p)
{
    struct pulls *ps = arg;
    int obstacle = ps->events->obstacle(ps->arg);
    int err = obstacle ? obstacle : p->err;

    if (!p->asked && (p->fresh || !share_claims(ps->share))) {
        pull_end(p, err);
    }
    pulls_changed(ps);
}

/* ---- asking ---- */
int pulls_add(struct pulls *ps, struct pull *p)
{
    if (p->wait_ms == 0 && slots_free(ps->share->all) == 0) {
        pulls_changed(ps);
        return LAPSE_EFULL;
    }

    list_insert(&ps->all, &p->node);
    pull_begin(p, ps->context, on_gave_up, ps);
    share_leave_backlog(ps->share); /* its claim does what hints wanted that nobody waited for */
    pulls_changed(ps);

    return 0;
}

static void pulls_ask_for(struct pulls *ps, struct pull *p)
{
    p->claim = claim_new(ps->claims, CLAIM_IDS, ps->arg, ps->events->claimed);
    if (!p->claim) {
        pulls_end(ps, p, LAPSE_ENOMEM);
        return;
    }

    p->asked = true;
    share_claim(ps->share, 1);
    claim_add(p->claim, ps->key, p->id, LAPSE_VIA_ASKED);
}

void pulls_ask(struct pulls *ps, bool again)
{
    LIST_EACH (i, &ps->all) {
        struct pull *p = pull_at(i);
        bool to_ask = pull_is_by_id(p) && !p->asked && (again || !p->held);
        if (to_ask && ps->events->may_claim(ps->arg)) {
            pulls_ask_for(ps, p);
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

/* ---- answers ---- */
struct pull *pulls_taker(const struct pulls *ps, const struct claim *c)
{
    LIST_EACH (i, &ps->all) {
        struct pull *p = pull_at(i);
        if (pull_takes(p, c)) {
            return p;
        }
    }

    return NULL;
}

static bool pulls_unserved(const struct pulls *ps, const struct claim *c)
{
    LIST_EACH (i, &ps->all) {
        if (pull_is_unserved(pull_at(i), c)) {
            return true;
        }
    }

    return false;
}

static bool pulls_wait(const struct pulls *ps)
{
    LIST_EACH (i, &ps->all) {
        if (!pull_at(i)->expired) {
            return true;
        }
    }

    return false;
}

/* Asks whether there is anything to sweep. false: not now. */
static bool pulls_look(struct pulls *ps)
{
    int64_t now_us = clock_us();
    int64_t every_us = ps->context->options.sweep_ms * 1000;
    bool recently = ps->looked_us && now_us - ps->looked_us < every_us;

    if (recently && !sweep_looks(ps->sweep)) {
        return false;
    }

    ps->looked_us = now_us;
    return sweep_look(ps->sweep);
}

void pulls_answered(struct pulls *ps, const struct claim *c, int err,
                    const struct claim_result *got)
{
    struct pull_answer answer = {.claim = c, .err = err};
    bool may_bring_more = !err && got->gate_ms == 0;

    if (got && c->kind == CLAIM_OLDEST) {
        answer.more = got->oldest_due_ms && claim_found(got);
    }
    if (may_bring_more && !answer.more && pulls_unserved(ps, c)) {
        answer.again = pulls_look(ps);
    }

    LIST_EACH (i, &ps->all) {
        pull_answered(pull_at(i), &answer);
    }

    if (!err && !ps->closed && pulls_wait(ps)) {
        ps->events->wait(ps->arg);
    }
    pulls_changed(ps);
}

void pulls_looked(struct pulls *ps)
{
    ps->looked_us = clock_us();
}

void pulls_not_again(struct pulls *ps)
{
    LIST_EACH (i, &ps->all) {
        pull_not_again(pull_at(i));
    }

    pulls_changed(ps);
}

/* ---- life ---- */
void pulls_init(struct pulls *ps, const struct pulls_spec *spec)
{
    *ps = (struct pulls){.context = spec->context,
                         .claims = spec->claims,
                         .key = spec->key,
                         .share = spec->share,
                         .sweep = spec->sweep,
                         .events = spec->events,
                         .arg = spec->arg};
    list_init(&ps->all);
    timer_init(&ps->linger, ps->context->loop, on_linger_over, ps);
}

void pulls_close(struct pulls *ps)
{
    ps->closed = true;
    timer_stop(&ps->linger);
    LIST_EACH (i, &ps->all) {
        pull_end(pull_at(i), LAPSE_ECLOSED);
    }
}
