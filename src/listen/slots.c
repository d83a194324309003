/* SPDX-License-Identifier: MIT */
/* How many jobs may be held and asked for. Queues that find no free slot wait in the backlog, which
 * says who gets the next one (backlog.c). A queue at its own limit, or at one that it has with
 * others, takes no part in that: others would wait for it, and their shares would be smaller. */
#include "listen/slots.h"
#include "base/mem.h"
#include "script/script.h"
#include <limits.h>

void slots_init(struct slots *all, unsigned max, void (*backlog_due)(void *arg), void *arg)
{
    *all = (struct slots){.max = max, .backlog_due = backlog_due, .arg = arg};
    backlog_init(&all->backlog, max);
}

void slots_close(struct slots *all)
{
    backlog_close(&all->backlog);
}

int share_init(struct share *s, struct slots *all, const struct share_spec *spec)
{
    *s = (struct share){.all = all, .max = spec->max};
    list_init(&s->capped);

    int err = backlog_add(&all->backlog, &s->seat, spec->weight, spec->level);
    if (!err && spec->cap) {
        s->cap = spec->cap;
        s->cap->n_users++;
    }

    return err;
}

void share_end(struct share *s)
{
    backlog_remove(&s->all->backlog, &s->seat);
    list_remove(&s->capped);
    cap_release(s->cap);
}

/* ---- limits ---- */
struct cap *cap_new(unsigned max)
{
    struct cap *c = mem_new(sizeof *c, 0);

    if (c) {
        *c = (struct cap){.max = max, .n_users = 1};
        list_init(&c->waiting);
    }

    return c;
}

void cap_release(struct cap *c)
{
    if (!c) {
        return;
    }

    c->n_users--;
    if (c->n_users == 0) {
        mem_free(c);
    }
}

static unsigned cap_free(const struct cap *c)
{
    if (!c) {
        return UINT_MAX;
    }

    return c->n_used < c->max ? c->max - c->n_used : 0;
}

static void cap_use(struct cap *c, int n)
{
    if (c) {
        c->n_used += (unsigned)n;
    }
}

/* As many as there are slots go to the backlog. One that finds its slot taken waits on as the first
 * of them. */
static void cap_wake(const struct cap *c)
{
    for (unsigned n = c ? cap_free(c) : 0; n > 0 && !list_empty(&c->waiting); n--) {
        struct share *s = CONTAINER(c->waiting.next, struct share, capped);

        list_remove(&s->capped);
        share_join_backlog(s, s->via);
        s->is_next = true;
    }
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
    unsigned n_cap = cap_free(s->cap);
    unsigned n_own = share_own_free(s);

    n_free = n_cap < n_free ? n_cap : n_free;
    return n_own < n_free ? n_own : n_free;
}

unsigned share_fair(const struct share *s)
{
    unsigned n = seat_room(&s->seat, share_free(s));

    if (n < 1) {
        return 1;
    }

    return n < SCRIPT_BATCH ? n : SCRIPT_BATCH;
}

/* ---- changes ---- */
static void slots_changed(struct slots *all)
{
    if (backlog_waits(&all->backlog)) {
        all->backlog_due(all->arg);
    }
}

static void share_changed(struct share *s)
{
    seat_set_asked(&s->seat, s->n_claimed);
    cap_wake(s->cap);
    if (s->waits_for_own && !share_is_full(s)) {
        share_join_backlog(s, s->via);
    }
    slots_changed(s->all);
}

void share_claim(struct share *s, unsigned n)
{
    s->n_claimed += n;
    s->all->n_claimed += n;
    s->is_next = false;
    cap_use(s->cap, (int)n);
    share_changed(s);
}

void share_unclaim(struct share *s, unsigned n)
{
    s->n_claimed -= n;
    s->all->n_claimed -= n;
    cap_use(s->cap, -(int)n);
    share_changed(s);
}

void share_hold(struct share *s)
{
    s->n_held++;
    s->all->n_held++;
    cap_use(s->cap, 1);
    seat_take(&s->seat);
    share_changed(s);
}

void share_unhold(struct share *s)
{
    s->n_held--;
    s->all->n_held--;
    cap_use(s->cap, -1);
    share_changed(s);
}

void share_want(struct share *s, unsigned n)
{
    s->asks = true;
    s->n_wanted = n;
    share_changed(s);
}

/* ---- the backlog ---- */
/* false: it need not wait for that. */
static bool share_wait_for_cap(struct share *s)
{
    if (cap_free(s->cap) == 0 && list_empty(&s->capped)) {
        struct list *waiting = &s->cap->waiting;
        list_insert(s->is_next ? waiting->next : waiting, &s->capped);
    }

    s->is_next = false;
    return !list_empty(&s->capped);
}

void share_join_backlog(struct share *s, enum lapse_via via)
{
    s->via = via;
    s->waits_for_own = share_is_full(s);
    bool waits_for_cap = share_wait_for_cap(s);

    if (slots_free(s->all) == 0) {
        backlog_note_more(&s->seat);
    }
    if (s->waits_for_own || waits_for_cap) {
        seat_set_full(&s->seat, true);
    } else {
        backlog_join(&s->all->backlog, &s->seat);
    }
}

void share_leave_backlog(struct share *s)
{
    s->waits_for_own = false;
    s->is_next = false;
    list_remove(&s->capped);
    seat_set_full(&s->seat, false);
    backlog_leave(&s->all->backlog, &s->seat);
    cap_wake(s->cap);
    slots_changed(s->all);
}

void share_ask(struct share *s, unsigned n)
{
    backlog_ask(&s->all->backlog, &s->seat);
    share_claim(s, n);
}

void share_note_more(struct share *s)
{
    backlog_note_more(&s->seat);
}

void share_answered(struct share *s)
{
    backlog_answered(&s->all->backlog, &s->seat);
    slots_changed(s->all);
}

bool share_others_wait(const struct share *s)
{
    return backlog_goes_before(&s->all->backlog, &s->seat);
}

void slots_serve_backlog(struct slots *all, void (*serve)(struct share *s))
{
    struct backlog *b = &all->backlog;

    while (slots_free(all) > 0) {
        struct seat *next = backlog_next(b);
        if (!next) {
            break;
        }
        struct share *s = CONTAINER(next, struct share, seat);

        serve(s);
        backlog_served(b, next);
        s->is_next = false;
        cap_wake(s->cap); /* it may have left a slot to others */
    }

    backlog_end_round(b);
}
