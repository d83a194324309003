/* SPDX-License-Identifier: MIT */
/* I12, I13: is there an order of all events of a job that its states allow?
 *
 * Each event takes effect at one moment between its two bounds, and the calls of one process take
 * effect as it asked them. An order is built from its beginning, event by event, and given up where
 * the next event cannot take effect in the state that the job is in. What happens by itself is
 * tried too: a lease ends; where there are faults, claims come and go that nobody saw; and where
 * there are none, so does one whose handler did not begin, since the job was asked to stop. */
#include "history.h"
#include <stdlib.h>
#include <string.h>

enum { TRIED_MOST = 1000000, NEAR_NS = 100000000 };

enum stage {
    NONE, /* there is no such job */
    WAITS,
    RUNS,
    UNSEEN, /* runs by a claim whose start is in no history */
    IS_DEAD,
};

/* What the job is after the events so far. */
struct at {
    enum stage stage;
    int holder;     /* RUNS: which event claimed it */
    bool stops;     /* it runs, and was asked to stop */
    int made;       /* which enqueue made it, and so gave it its body; -1: nobody knows */
    int64_t due_ms; /* WAITS: when it is due; 0: nobody knows */
    int64_t now_ns; /* what comes next is not earlier than this */
};

struct search {
    const struct history *h;
    const struct event *op[SEARCH_MOST]; /* the events, sorted by when they were asked */
    struct event gone;                   /* stands for "not there at the end" */
    int n;
    bool asks_to_stop; /* a cancel asks the job to stop, if it runs */
    int64_t from[SEARCH_MOST], to[SEARCH_MOST];
    /* sets of events, a bit each: */
    uint64_t must;                /* these have taken effect; the others may have */
    uint64_t before[SEARCH_MOST]; /* when this one takes effect, these have, or never do */
    /* hashes of what was tried, open-addressed; 0: free */
    uint64_t *tried;
    size_t tried_cap, n_tried;
};

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static uint64_t bit(int i)
{
    return 1ull << i;
}

/* ---- what was tried already ---- */
static uint64_t hash_of(uint64_t done, const struct at *a)
{
    uint64_t word[] = {done,
                       (uint64_t)a->stage,
                       (uint64_t)a->holder,
                       (uint64_t)a->stops,
                       (uint64_t)a->made,
                       (uint64_t)a->due_ms,
                       (uint64_t)a->now_ns};
    uint64_t hash = 14695981039346656037u;

    for (size_t i = 0; i < sizeof word / sizeof *word; i++) {
        hash = (hash ^ word[i]) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return hash ? hash : 1;
}

/* Where it is, or has its place. */
static uint64_t *tried_place(const struct search *s, uint64_t hash)
{
    size_t i = hash & (s->tried_cap - 1);

    while (s->tried[i] && s->tried[i] != hash) {
        i = (i + 1) & (s->tried_cap - 1);
    }
    return &s->tried[i];
}

static void tried_grow(struct search *s)
{
    uint64_t *old = s->tried;
    size_t old_cap = s->tried_cap;

    s->tried_cap = old_cap ? 2 * old_cap : 256;
    s->tried = calloc(s->tried_cap, sizeof *s->tried);
    if (!s->tried) {
        exit(2);
    }

    for (size_t i = 0; i < old_cap; i++) {
        if (old[i]) {
            *tried_place(s, old[i]) = old[i];
        }
    }
    free(old);
}

/* Was this tried? From now on it was. */
static bool was_tried(struct search *s, uint64_t done, const struct at *a)
{
    uint64_t hash = hash_of(done, a);

    if (2 * s->n_tried >= s->tried_cap) {
        tried_grow(s);
    }

    uint64_t *place = tried_place(s, hash);
    if (*place) {
        return true;
    }

    *place = hash;
    s->n_tried++;
    return false;
}

/* ---- what an event needs, and makes of the job ---- */
static bool is_err(const struct event *e, const char *name)
{
    return e->err && strcmp(e->err, name) == 0;
}

static bool is_running(enum stage stage)
{
    return stage == RUNS || stage == UNSEEN;
}

/* May a call have been refused so in this stage? */
static bool fits_refusal(const struct event *e, enum stage stage)
{
    if (is_err(e, "EEXIST")) {
        return stage != NONE;
    }
    if (is_err(e, "EBUSY")) {
        return is_running(stage) && !e->running;
    }
    if (is_err(e, "ENOENT")) {
        return stage == NONE;
    }

    return true; /* it never came to the job */
}

static bool differ(int64_t told_ms, int64_t known_ms)
{
    return told_ms && known_ms && told_ms != known_ms;
}

/* A get, or what Redis had at the end. */
static bool shows(const struct event *e, const struct at *a)
{
    static const enum state state[] = {ABSENT, WAITING, RUNNING, RUNNING, DIED};

    if (e->state != state[a->stage]) {
        return false;
    }
    return a->stage != WAITS || !differ(e->due_ms, a->due_ms);
}

static bool may_enqueue(const struct event *e, enum stage stage)
{
    if (e->conflict == REPLACE) {
        return !is_running(stage);
    }
    if (e->created) {
        return stage == NONE;
    }
    return e->conflict == KEEP && stage != NONE;
}

static bool step_enqueue(const struct event *e, int i, struct at *a)
{
    if (!may_enqueue(e, a->stage)) {
        return false;
    }
    if (e->created) {
        *a = (struct at){.stage = WAITS, .made = i, .due_ms = e->due_ms, .now_ns = a->now_ns};
    }
    return true;
}

/* The answer says whether the job ran then; of one that was lost nobody knows. */
static bool step_cancel(const struct event *e, struct at *a)
{
    bool asks = e->outcome == INFO ? e->running : e->state == RUNNING;

    if (is_running(a->stage)) {
        a->stops = true;
        return asks;
    }
    if ((a->stage != WAITS && a->stage != IS_DEAD) || (e->outcome == OK && asks)) {
        return false;
    }
    a->stage = NONE;
    a->due_ms = 0;
    return true;
}

static bool step_reschedule(const struct event *e, struct at *a)
{
    if (a->stage != WAITS && a->stage != IS_DEAD) {
        return false;
    }
    a->stage = WAITS;
    a->due_ms = e->due_ms;
    return true;
}

/* Is it the job that this start was given? */
static bool is_same_job(const struct search *s, const struct event *start, const struct at *a)
{
    const char *body = a->made < 0 ? NULL : s->op[a->made]->payload;

    if (differ(start->due_ms, a->due_ms)) {
        return false;
    }
    return !body || !start->payload || body == start->payload;
}

static bool step_start(const struct search *s, int i, struct at *a)
{
    if (a->stage != WAITS || !is_same_job(s, s->op[i], a)) {
        return false;
    }
    a->stage = RUNS;
    a->holder = i;
    return true;
}

/* A run is over that was not done: a job that was asked to stop is gone. */
static void ends_run(struct at *a, enum stage stage)
{
    a->stage = a->stops ? NONE : stage;
    a->stops = false;
    a->due_ms = 0;
}

static bool is_last_try(const struct event *start)
{
    return start->tries && start->attempt >= start->tries;
}

/* Refused by its own process, for which the lease ended as long before Redis's as the claim was on
 * its way there. */
static bool gave_up(const struct search *s, const struct event *e, int holder)
{
    const struct event *start = s->op[holder];
    int64_t until_ms = later(start->lease_until_ms, e->lease_until_ms);
    int64_t lease_ns = until_ms * 1000000 - start->redis_us * 1000;
    int64_t way_ns = 2 * (start->to_ns - s->from[holder]) + NEAR_NS;

    return e->to_ns + way_ns >= s->from[holder] + lease_ns;
}

static bool step_settle(const struct search *s, const struct event *e, struct at *a)
{
    bool is_holders = a->stage == RUNS && s->op[a->holder]->token == e->token;

    if (e->outcome == FAIL) {
        return !is_holders || gave_up(s, e, a->holder);
    }
    if (!is_holders) {
        return false;
    }

    if (e->op == ACK) {
        ends_run(a, NONE);
    } else if (e->op == DEAD || is_last_try(s->op[a->holder])) {
        ends_run(a, IS_DEAD);
    } else {
        ends_run(a, WAITS);
    }
    return true;
}

/* Can event i take effect now? Then makes a what the job is after it. */
static bool step(const struct search *s, int i, struct at *a)
{
    const struct event *e = s->op[i];
    bool is_settle = e->op == ACK || e->op == NACK || e->op == DEAD;

    if (e->outcome == FAIL && e->op != START && e->op != STATE && !is_settle) {
        return fits_refusal(e, a->stage);
    }

    switch (e->op) {
    case ENQUEUE: return step_enqueue(e, i, a);
    case CANCEL: return step_cancel(e, a);
    case RESCHEDULE: return step_reschedule(e, a);
    case START: return step_start(s, i, a);
    case ACK:
    case NACK:
    case DEAD: return step_settle(s, e, a);
    case GET:
    case STATE: return shows(e, a);
    default: return false;
    }
}

/* ---- the search ---- */
static bool search_from(struct search *s, uint64_t done, struct at a);

/* What takes effect next is asked before any other that is left was answered. */
static int64_t first_end_of(const struct search *s, uint64_t done)
{
    int64_t first_ns = INT64_MAX;

    for (int i = 0; i < s->n; i++) {
        if (!(done & bit(i)) && s->to[i] < first_ns) {
            first_ns = s->to[i];
        }
    }
    return first_ns;
}

static bool search_events(struct search *s, uint64_t done, struct at a)
{
    int64_t first_end_ns = first_end_of(s, done);

    if (a.now_ns > first_end_ns) {
        return false;
    }

    for (int i = 0; i < s->n; i++) {
        struct at next = a;
        uint64_t never = s->before[i] & ~done; /* they do not take effect any more */

        if (done & bit(i) || s->from[i] > first_end_ns || never & s->must || !step(s, i, &next)) {
            continue;
        }
        next.now_ns = later(a.now_ns, s->from[i]);
        if (search_from(s, done | never | bit(i), next)) {
            return true;
        }
    }

    return false;
}

/* The lease ends. */
static bool search_end_of_lease(struct search *s, uint64_t done, struct at a)
{
    const struct event *start = s->op[a.holder];
    int64_t lease_ns = start->lease_until_ms * 1000000 - start->redis_us * 1000;

    a.now_ns = later(a.now_ns, s->from[a.holder] + lease_ns);
    ends_run(&a, is_last_try(start) ? IS_DEAD : WAITS);
    return search_from(s, done, a);
}

static bool search_with(struct search *s, uint64_t done, struct at a, enum stage stage)
{
    ends_run(&a, stage);
    return search_from(s, done, a);
}

/* The job is claimed, and its handler does not begin. */
static bool search_not_begun(struct search *s, uint64_t done, struct at a)
{
    a.now_ns = later(a.now_ns, due_from(s->h, a.due_ms));
    return search_with(s, done, a, UNSEEN);
}

/* Is there an order from here? done: the events so far, and those that never take effect. */
static bool search_from(struct search *s, uint64_t done, struct at a)
{
    if ((done & s->must) == s->must) {
        return true;
    }
    if (s->n_tried > TRIED_MOST || was_tried(s, done, &a)) {
        return false;
    }
    if (search_events(s, done, a)) {
        return true;
    }

    /* what happens by itself */
    if (a.stage == RUNS) {
        return search_end_of_lease(s, done, a);
    }
    if (s->h->faults && a.stage == WAITS) {
        return search_with(s, done, a, UNSEEN);
    }
    if (s->h->faults && a.stage == UNSEEN) {
        return search_with(s, done, a, WAITS) || search_with(s, done, a, IS_DEAD);
    }
    if (s->asks_to_stop && a.stage == WAITS) {
        return search_not_begun(s, done, a);
    }
    if (a.stage == UNSEEN && a.stops) {
        return search_with(s, done, a, NONE);
    }

    return false;
}

static void add(struct search *s, const struct event *e)
{
    int i = s->n++;

    s->op[i] = e;
    s->from[i] = e->op == START ? claimed_from(s->h, e) : e->from_ns;
    s->to[i] = e->op == START ? claimed_to(s->h, e) : e->to_ns;
    s->asks_to_stop = s->asks_to_stop || (e->op == CANCEL && e->running);
    if (e->outcome != INFO) {
        s->must |= bit(i);
    }
}

/* A call that Redis refused, or that never came to it, has no place. */
static bool has_place(const struct event *e)
{
    if (e->op == START || e->op >= STATE) {
        return false; /* no call */
    }
    return e->outcome != FAIL || is_err(e, "EEXIST") || is_err(e, "EBUSY") || is_err(e, "ENOENT");
}

bool asked_in_turn(const struct event *first, const struct event *second)
{
    return has_place(first) && has_place(second) && first->proc == second->proc && first < second &&
           second->from_ns <= first->heard_ns;
}

static void keep_order(struct search *s, struct leave leave)
{
    for (int i = 0; i < s->n && !leave.any; i++) {
        for (int k = 0; k < i; k++) {
            bool left = leave.first == s->op[k] && leave.second == s->op[i];
            if (!left && asked_in_turn(s->op[k], s->op[i])) {
                s->before[i] |= bit(k);
            }
        }
    }
}

int search(const struct life *l, struct leave leave)
{
    struct search s = {.h = l->h};
    bool is_there = false;

    if (l->n >= SEARCH_MOST) {
        return -1;
    }

    for (size_t i = 0; i < l->n; i++) {
        add(&s, &l->event[i]);
        is_there = is_there || l->event[i].op == STATE;
    }

    if (!is_there) {
        s.gone = *l->h->final;
        s.gone.op = STATE;
        s.gone.state = ABSENT;
        add(&s, &s.gone);
    }

    keep_order(&s, leave);

    struct at nothing = {.stage = NONE, .made = -1, .now_ns = INT64_MIN};
    bool found = search_from(&s, 0, nothing);
    bool given_up = s.n_tried > TRIED_MOST;
    free(s.tried);

    if (found) {
        return 1;
    }
    return given_up ? -1 : 0;
}
