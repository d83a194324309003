/* SPDX-License-Identifier: MIT */
/* Queues that find no free slot wait in one list. As slots become free each is served in turn, so
 * that a busy queue does not keep the others waiting. A queue at its own limit takes no part in
 * that: it would only make the shares of the others smaller. */
#include "listen/slots.h"
#include "script/script.h"
#include <limits.h>

void slots_init(struct slots *all, unsigned max, void (*backlog_due)(void *arg), void *arg)
{
    *all = (struct slots){.max = max, .backlog_due = backlog_due, .arg = arg};
    list_init(&all->backlog);
}

void share_init(struct share *s, struct slots *all, unsigned max)
{
    *s = (struct share){.all = all, .max = max};
    list_init(&s->node);
}

/* Below its own limit, however many slots there are. */
static unsigned share_own_free(const struct share *s)
{
    unsigned n_used = s->n_held + s->n_claimed;

    if (s->asks) {
        return s->n_claimed < s->n_wanted ? s->n_wanted - s->n_claimed : 0;
    }
    if (s->max == 0) {
        return UINT_MAX;
    }

    return n_used < s->max ? s->max - n_used : 0;
}

static bool share_is_full(const struct share *s)
{
    return share_own_free(s) == 0;
}

unsigned share_free(const struct share *s)
{
    unsigned n_free = slots_free(s->all);
    unsigned n_own = share_own_free(s);

    return n_own < n_free ? n_own : n_free;
}

unsigned share_fair(const struct share *s)
{
    unsigned n = share_free(s) / (s->all->n_backlog + 1);

    if (n < 1) {
        return 1;
    }

    return n < SCRIPT_BATCH ? n : SCRIPT_BATCH;
}

/* ---- changes ---- */
static void share_changed(struct share *s)
{
    if (s->waits_for_own && !share_is_full(s)) {
        share_join_backlog(s, s->via);
    }
    if (!list_empty(&s->all->backlog)) {
        s->all->backlog_due(s->all->arg);
    }
}

void share_claim(struct share *s, unsigned n)
{
    s->n_claimed += n;
    s->all->n_claimed += n;
    share_changed(s);
}

void share_unclaim(struct share *s, unsigned n)
{
    s->n_claimed -= n;
    s->all->n_claimed -= n;
    share_changed(s);
}

void share_hold(struct share *s)
{
    s->n_held++;
    s->all->n_held++;
    share_changed(s);
}

void share_unhold(struct share *s)
{
    s->n_held--;
    s->all->n_held--;
    share_changed(s);
}

void share_want(struct share *s, unsigned n)
{
    s->asks = true;
    s->n_wanted = n;
    share_changed(s);
}

/* ---- the backlog ---- */
void share_join_backlog(struct share *s, enum lapse_via via)
{
    s->via = via;
    s->waits_for_own = share_is_full(s);

    if (!s->waits_for_own && list_empty(&s->node)) {
        list_insert(&s->all->backlog, &s->node);
        s->all->n_backlog++;
    }
}

void share_leave_backlog(struct share *s)
{
    s->waits_for_own = false;
    if (!list_empty(&s->node)) {
        list_remove(&s->node);
        s->all->n_backlog--;
    }
}

bool share_others_wait(const struct share *s)
{
    const struct list *backlog = &s->all->backlog;
    bool is_alone = backlog->next == &s->node && backlog->prev == &s->node;

    return !list_empty(backlog) && !is_alone;
}

void slots_serve_backlog(struct slots *all, void (*serve)(struct share *s))
{
    struct list turn;

    list_init(&turn);
    list_move(&turn, &all->backlog);
    while (!list_empty(&turn) && slots_free(all) > 0) {
        struct share *s = CONTAINER(turn.next, struct share, node);
        share_leave_backlog(s);
        serve(s);
    }

    list_move(&turn, &all->backlog);
    list_move(&all->backlog, &turn);
}
