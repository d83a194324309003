/* SPDX-License-Identifier: MIT */
/* Start-time fair queueing by jobs taken. The pass of a seat is the number of jobs that it has
 * taken, and that its claims ask for, divided by its weight. Whose pass is least is served first,
 * and of several the one that has waited for longest.
 *
 * A seat that had no backlog begins where the least of the others is: it gets no credit for what
 * it did not need, and pays for what it took meanwhile. Where no seat has a backlog nothing is
 * weighed, and what was weighed before is forgotten. A seat whose queue was only full, and has a
 * backlog all the same, may be behind by the window.
 *
 * The window. A seat whose claim is on its way cannot be served, and slots that become free
 * meanwhile would go to others, whatever their weights are: of 6, 3 and 1, with 10 slots and a
 * Redis that is far, they got 33, 37 and 30 jobs of 100. So who is ahead of the least by more than
 * the window waits for that answer, even if a slot is free. The window is what each seat gets of
 * one filling of all slots: a smaller one would keep slots empty, and a wider one lets more jobs be
 * taken before their turn.
 *
 * Where no queue has a weight nothing is weighed, and no pass changes: they are served in turn, as
 * they came. There may be thousands, of which few have more than a job, and a free slot matters
 * more than who had one before. */
#include "listen/level.h"

/* What a job adds to the pass of a seat whose weight is 1. At 50,000 jobs a second a pass has room
 * for a backlog of five years. */
#define JOB_PASS (INT64_C(1) << 20)

void level_init(struct level *l, unsigned n_slots)
{
    *l = (struct level){.n_slots = n_slots};
}

/* ---- passes ---- */
static bool level_weighs(const struct level *l)
{
    return l->n_weighted > 0;
}

static int64_t seat_cost(const struct seat *s)
{
    return level_weighs(s->level) ? JOB_PASS / s->weight : 0;
}

static int64_t seat_pass(const struct seat *s)
{
    return s->period == s->level->period ? s->pass : 0;
}

/* With what its claims ask for. A heap takes no 0. */
static int64_t seat_at(const struct seat *s)
{
    return 1 + seat_pass(s) + s->n_asked * seat_cost(s);
}

/* Of those that wait or ask; 0: there is none. */
static int64_t level_least(const struct level *l)
{
    const struct heap_node *waiting = l->waiting.first;
    const struct heap_node *asking = l->asking.first;

    if (waiting && asking) {
        return waiting->at < asking->at ? waiting->at : asking->at;
    }
    if (waiting) {
        return waiting->at;
    }

    return asking ? asking->at : 0;
}

static int64_t level_window(const struct level *l)
{
    uint64_t weight = l->weight_waiting + l->weight_asking;

    return JOB_PASS * l->n_slots / (int64_t)(weight ? weight : 1);
}

/* Those that have a backlog are never behind the least. */
static void seat_catch_up(struct seat *s)
{
    int64_t behind = level_least(s->level) - seat_at(s);

    if (s->is_full) {
        behind -= level_window(s->level);
    }

    s->pass = seat_pass(s);
    s->period = s->level->period;
    if (behind > 0) {
        s->pass += behind;
    }
}

/* ---- states ---- */
static void seat_put(struct seat *s, int64_t at)
{
    struct level *l = s->level;

    if (s->state == SEAT_WAITS) {
        l->weight_waiting += at ? s->weight : -(uint64_t)s->weight;
        heap_set(&l->waiting, &s->node, at);
    } else if (s->state == SEAT_ASKS) {
        l->weight_asking += at ? s->weight : -(uint64_t)s->weight;
        heap_set(&l->asking, &s->node, at);
    }
}

void seat_set(struct seat *s, enum seat_state state)
{
    struct level *l = s->level;

    if (s->state == state) {
        return;
    }
    if (!level_is_busy(l)) {
        l->period++;
    }
    if (s->state == SEAT_OUT) {
        seat_catch_up(s);
    }

    seat_put(s, 0);
    s->state = state;
    s->is_full = s->is_full && state == SEAT_OUT;
    seat_put(s, seat_at(s));
}

static void seat_moved(struct seat *s)
{
    struct level *l = s->level;

    if (s->state == SEAT_WAITS) {
        heap_set(&l->waiting, &s->node, seat_at(s));
    } else if (s->state == SEAT_ASKS) {
        heap_set(&l->asking, &s->node, seat_at(s));
    }
}

void seat_set_asked(struct seat *s, unsigned n)
{
    s->n_asked = n;
    seat_moved(s);
}

void seat_take(struct seat *s)
{
    if (!level_is_busy(s->level)) {
        return;
    }

    seat_catch_up(s);
    s->pass += seat_cost(s);
    seat_moved(s);
}

/* ---- seats ---- */
/* From now on something is weighed, or nothing is any more. */
static void level_start_over(struct heap *seats)
{
    struct heap old = *seats;

    seats->first = NULL;
    while (old.first) {
        struct seat *s = CONTAINER(old.first, struct seat, node);
        heap_set(&old, &s->node, 0);
        heap_set(seats, &s->node, seat_at(s));
    }
}

static void level_count(struct level *l, unsigned weight, int n)
{
    bool weighed = level_weighs(l);

    l->n_seats += (unsigned)n;
    l->n_weighted += weight == 1 ? 0 : (unsigned)n;
    if (level_weighs(l) != weighed) {
        l->period++;
        level_start_over(&l->waiting);
        level_start_over(&l->asking);
    }
}

void seat_init(struct seat *s, struct level *l, unsigned weight)
{
    *s = (struct seat){.level = l, .weight = weight};
    list_init(&s->again);
    level_count(l, weight, 1);
}

void seat_end(struct seat *s)
{
    seat_set(s, SEAT_OUT);
    level_count(s->level, s->weight, -1);
}

/* ---- serving ---- */
bool seat_others_wait(const struct seat *s)
{
    unsigned own = s->state == SEAT_WAITS ? s->weight : 0;

    return s->level->weight_waiting > own;
}

unsigned seat_room(const struct seat *s, unsigned n)
{
    const struct level *l = s->level;
    int64_t least = level_least(l);
    uint64_t weight = l->weight_waiting + (s->state == SEAT_WAITS ? 0 : s->weight);
    uint64_t room = (uint64_t)n * s->weight / weight;

    if (least == 0 || !level_weighs(l)) {
        return (unsigned)room;
    }

    int64_t at = seat_at(s) > least ? seat_at(s) : least;
    int64_t most = (least + level_window(l) - at) / seat_cost(s);
    if (most < 0) {
        return 0;
    }

    return room < (uint64_t)most ? (unsigned)room : (unsigned)most;
}

struct seat *level_next(const struct level *l)
{
    struct heap_node *waiting = l->waiting.first;

    if (!waiting || waiting->at - level_least(l) > level_window(l)) {
        return NULL;
    }

    return CONTAINER(waiting, struct seat, node);
}
