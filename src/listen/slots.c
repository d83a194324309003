/* SPDX-License-Identifier: MIT */
/* How many jobs may be held and asked for. Queues that find no free slot wait in the backlog, which
 * says who gets the next one (backlog.c). A queue at its own limit takes no part in that: others
 * would wait for it, and their shares would be smaller. */
#include "listen/slots.h"
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

    return backlog_add(&all->backlog, &s->seat, spec->weight, spec->level);
}

void share_end(struct share *s)
{
    backlog_remove(&s->all->backlog, &s->seat);
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
    if (s->waits_for_own && !share_is_full(s)) {
        share_join_backlog(s, s->via);
    }
    slots_changed(s->all);
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
    seat_take(&s->seat);
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

    if (slots_free(s->all) == 0) {
        backlog_note_more(&s->seat);
    }
    if (s->waits_for_own) {
        seat_set_full(&s->seat, true);
    } else {
        backlog_join(&s->all->backlog, &s->seat);
    }
}

void share_leave_backlog(struct share *s)
{
    s->waits_for_own = false;
    seat_set_full(&s->seat, false);
    backlog_leave(&s->all->backlog, &s->seat);
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
        serve(CONTAINER(next, struct share, seat));
        backlog_served(b, next);
    }

    backlog_end_round(b);
}
