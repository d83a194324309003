/* SPDX-License-Identifier: MIT */
/* Levels are served in the order of their numbers: while a queue of one has a backlog, no queue of
 * the later ones is served. Inside of a level weights decide (level.c).
 *
 *   OUT    --found no free slot--------------------> WAITS
 *   WAITS  --served--------------------------------> ASKS, or OUT if it has not waited
 *   ASKS   --the answer: more is due---------------> WAITS
 *   ASKS   --the answer: no more, or an error------> OUT
 *
 * While a queue asks, nobody knows whether it has more, so those that come after it wait for the
 * answer. That would starve them where a queue of an earlier level hears of jobs all the time, and
 * Redis is far: a claim of it would always be on its way. So a queue for which a slot is free, and
 * that is served at the end of the turn of the loop in which it came, has no backlog, until an
 * answer says that it has more.
 *
 * A queue is served once in a round, whatever it does when it is served. */
#include "listen/backlog.h"
#include "base/mem.h"
#include <lapse.h>

enum { FIRST_ROUND = 1 };

/* ---- levels ---- */
static struct span level_name(const struct level *l)
{
    return (struct span){(const char *)&l->number, sizeof l->number};
}

/* NULL: out of memory. */
static struct level *backlog_level(struct backlog *b, unsigned number)
{
    struct span name = {(const char *)&number, sizeof number};
    struct table_node *found = table_find(&b->levels, name);

    if (found) {
        return CONTAINER(found, struct level, numbered);
    }

    struct level *l = mem_new(sizeof *l, 0);
    if (l) {
        level_init(l, b->n_slots);
        l->number = number;
        table_add(&b->levels, &l->numbered, level_name(l));
    }

    return l;
}

int backlog_add(struct backlog *b, struct seat *s, unsigned weight, unsigned level)
{
    struct level *l = backlog_level(b, level);

    if (!l) {
        return LAPSE_ENOMEM;
    }

    seat_init(s, l, weight);

    return 0;
}

void backlog_remove(struct backlog *b, struct seat *s)
{
    struct level *l = s->level;

    backlog_leave(b, s);
    seat_end(s);
    if (l->n_seats == 0) {
        table_remove(&b->levels, &l->numbered);
        mem_free(l);
    }
}

static const struct level *backlog_first(const struct backlog *b)
{
    return b->busy.first ? CONTAINER(b->busy.first, struct level, busy) : NULL;
}

/* ---- seats ---- */
static void backlog_set(struct backlog *b, struct seat *s, enum seat_state state)
{
    struct level *l = s->level;

    b->n_waiting -= s->state == SEAT_WAITS;
    b->n_waiting += state == SEAT_WAITS;
    seat_set(s, state);
    heap_set(&b->busy, &l->busy, level_is_busy(l) ? INT64_C(1) + l->number : 0);
}

void backlog_note_more(struct seat *s)
{
    s->has_more = true;
}

void backlog_join(struct backlog *b, struct seat *s)
{
    if (s->served) {
        list_remove(&s->again);
        list_insert(&b->again, &s->again);
    } else if (s->state != SEAT_WAITS) {
        s->round = b->round;
        backlog_set(b, s, SEAT_WAITS);
    }
}

void backlog_leave(struct backlog *b, struct seat *s)
{
    list_remove(&s->again);
    backlog_set(b, s, SEAT_OUT);
}

void backlog_ask(struct backlog *b, struct seat *s)
{
    bool has_backlog = s->has_more || s->round != b->round;

    if (s->state == SEAT_WAITS) {
        backlog_set(b, s, has_backlog ? SEAT_ASKS : SEAT_OUT);
    }
    s->has_more = false;
}

void backlog_answered(struct backlog *b, struct seat *s)
{
    if (s->state == SEAT_ASKS) {
        backlog_set(b, s, SEAT_OUT);
    }
}

bool backlog_goes_before(const struct backlog *b, const struct seat *s)
{
    const struct level *first = backlog_first(b);
    bool earlier = first && first->number < s->level->number;

    return earlier || seat_others_wait(s);
}

/* ---- serving ---- */
struct seat *backlog_next(struct backlog *b)
{
    const struct level *first = backlog_first(b);
    struct seat *s = first ? level_next(first) : NULL;

    if (s) {
        s->served = true;
    }

    return s;
}

void backlog_served(struct backlog *b, struct seat *s)
{
    s->served = false;
    if (s->state == SEAT_WAITS) { /* nothing was asked for it */
        backlog_set(b, s, SEAT_OUT);
    }
}

void backlog_end_round(struct backlog *b)
{
    b->round++;
    for (struct list *i; (i = list_pop(&b->again));) {
        backlog_join(b, CONTAINER(i, struct seat, again));
    }
}

/* ---- life ---- */
void backlog_init(struct backlog *b, unsigned n_slots)
{
    *b = (struct backlog){.n_slots = n_slots, .round = FIRST_ROUND};
    table_init(&b->levels);
    list_init(&b->again);
}

void backlog_close(struct backlog *b)
{
    table_free(&b->levels);
}
