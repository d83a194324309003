/* SPDX-License-Identifier: MIT */
/* I12, I13. All orders of the calls on one job in which each lies between question and answer, and
 * those of one process as it asked them, until one is found that the states allow. By themselves
 * leases end, and where there are faults claims come and go that nobody saw. */
#include "history.h"
#include <stdlib.h>
#include <string.h>

enum { CONFIGS_MOST = 1000000, NEAR_NS = 100000000 };
enum kind {
    NONE,
    WAITS,
    RUNS,
    UNSEEN,
    IS_DEAD
}; /* UNSEEN: runs, by a claim whose start is in no history */

struct at {
    enum kind kind;
    int holder;     /* RUNS: which event */
    int made;       /* which enqueue made it, and so gave it its body; -1: nobody knows */
    int64_t due_ms; /* WAITS: when it is due; 0: nobody knows */
    int64_t at_ns;  /* it is not earlier than this */
};

struct search {
    const struct history *h;
    const struct event *op[SEARCH_MOST];
    struct event gone; /* not there at the end */
    int n;
    int64_t from[SEARCH_MOST], to[SEARCH_MOST];
    uint64_t must;                /* these have taken place; the others may have */
    uint64_t before[SEARCH_MOST]; /* when this one takes place, these have, or never do */
    uint64_t *seen;
    size_t room, n_seen;
};

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- what was tried already ---- */
static bool tried(struct search *s, uint64_t done, const struct at *a)
{
    uint64_t word[] = {done,
                       (uint64_t)a->kind,
                       (uint64_t)a->holder,
                       (uint64_t)a->made,
                       (uint64_t)a->due_ms,
                       (uint64_t)a->at_ns};
    uint64_t key = 14695981039346656037u;

    for (size_t i = 0; i < sizeof word / sizeof *word; i++) {
        key = (key ^ word[i]) * 0x9e3779b97f4a7c15u;
        key ^= key >> 29;
    }

    key = key ? key : 1;

    if (2 * s->n_seen >= s->room) {
        uint64_t *old = s->seen;
        size_t room = s->room;
        s->room = room ? 2 * room : 256;
        s->seen = calloc(s->room, sizeof *s->seen);
        if (!s->seen) {
            exit(2);
        }
        for (size_t i = 0; i < room; i++) {
            if (old[i]) {
                size_t k = old[i] & (s->room - 1);
                while (s->seen[k]) {
                    k = (k + 1) & (s->room - 1);
                }
                s->seen[k] = old[i];
            }
        }
        free(old);
    }

    size_t k = key & (s->room - 1);
    for (; s->seen[k]; k = (k + 1) & (s->room - 1)) {
        if (s->seen[k] == key) {
            return true;
        }
    }

    s->seen[k] = key;
    s->n_seen++;

    return false;
}

/* ---- the states ---- */
static bool is(const struct event *e, const char *err)
{
    return e->err && strcmp(e->err, err) == 0;
}

static bool live(enum kind k)
{
    return k == RUNS || k == UNSEEN;
}

static bool refused(const struct event *e, enum kind k)
{
    if (is(e, "EEXIST")) {
        return k != NONE;
    }
    if (is(e, "EBUSY")) {
        return live(k);
    }
    if (is(e, "ENOENT")) {
        return k == NONE;
    }

    return true; /* it never came to the job */
}

static bool enqueue(const struct event *e, enum kind k)
{
    if (e->conflict == REPLACE) {
        return !live(k);
    }
    return e->created ? k == NONE : e->conflict == KEEP && k != NONE;
}

static bool differ(int64_t told_ms, int64_t known_ms)
{
    return told_ms && known_ms && told_ms != known_ms;
}

static bool shows(const struct event *e, const struct at *a)
{
    static const enum state state[] = {ABSENT, WAITING, RUNNING, RUNNING, DIED};
    return e->state == state[a->kind] && !(a->kind == WAITS && differ(e->due_ms, a->due_ms));
}

/* Is it the job that this start was given? */
static bool same_job(const struct search *s, const struct event *start, const struct at *a)
{
    const char *body = a->made < 0 ? NULL : s->op[a->made]->payload;
    return !differ(start->due_ms, a->due_ms) &&
           (!body || !start->payload || body == start->payload);
}

/* Refused by its own process, whose lease ends as long before Redis's as the claim was on its way
 * there. */
static bool gave_up(const struct search *s, const struct event *e, int holder)
{
    const struct event *start = s->op[holder];
    int64_t until_ms = later(start->lease_until_ms, e->lease_until_ms);
    int64_t way_ns = 2 * (start->to_ns - s->from[holder]) + NEAR_NS;
    return e->to_ns + way_ns >= s->from[holder] + until_ms * 1000000 - start->redis_us * 1000;
}

/* Can it take place in this state, and what is the state then? */
static bool step(const struct search *s, int i, struct at *a)
{
    const struct event *e = s->op[i];
    bool ours = a->kind == RUNS && s->op[a->holder]->token == e->token;

    switch (e->op) {
    case ENQUEUE:
        if (e->outcome == FAIL) {
            return refused(e, a->kind);
        }
        if (!enqueue(e, a->kind)) {
            return false;
        }
        if (e->created) {
            *a = (struct at){.kind = WAITS, .made = i, .due_ms = e->due_ms, .at_ns = a->at_ns};
        }
        return true;
    case CANCEL:
    case RESCHEDULE:
        if (e->outcome == FAIL) {
            return refused(e, a->kind);
        }
        if (a->kind != WAITS && a->kind != IS_DEAD) {
            return false;
        }
        a->kind = e->op == CANCEL ? NONE : WAITS;
        a->due_ms = e->op == CANCEL ? 0 : e->due_ms;
        return true;
    case START:
        if (a->kind != WAITS || !same_job(s, e, a)) {
            return false;
        }
        a->kind = RUNS;
        a->holder = i;
        return true;
    case ACK:
    case NACK:
    case DEAD:
        if (e->outcome == FAIL) {
            return !ours || gave_up(s, e, a->holder);
        }
        if (!ours) {
            return false;
        }
        a->due_ms = 0;
        a->kind = e->op == ACK ? NONE : e->op == DEAD ? IS_DEAD : WAITS;
        if (e->op == NACK && s->op[a->holder]->tries &&
            s->op[a->holder]->attempt >= s->op[a->holder]->tries) {
            a->kind = IS_DEAD;
        }
        return true;
    case GET: return e->outcome == FAIL ? refused(e, a->kind) : shows(e, a);
    case STATE: return shows(e, a);
    default: return false;
    }
}

static bool go(struct search *s, uint64_t done, struct at a);

static bool try_all(struct search *s, uint64_t done, struct at a)
{
    int64_t first_end = INT64_MAX; /* who is asked later than that has another before it */

    for (int i = 0; i < s->n; i++) {
        if (!(done >> i & 1) && s->to[i] < first_end) {
            first_end = s->to[i];
        }
    }

    if (a.at_ns > first_end) {
        return false;
    }

    for (int i = 0; i < s->n; i++) {
        struct at next = a;
        uint64_t never = s->before[i] & ~done; /* from now on */
        if (done >> i & 1 || s->from[i] > first_end || never & s->must || !step(s, i, &next)) {
            continue;
        }
        next.at_ns = later(a.at_ns, s->from[i]);
        if (go(s, done | never | 1ull << i, next)) {
            return true;
        }
    }

    return false;
}

static bool go(struct search *s, uint64_t done, struct at a)
{
    if ((done & s->must) == s->must) {
        return true;
    }
    if (s->n_seen > CONFIGS_MOST || tried(s, done, &a)) {
        return false;
    }
    if (try_all(s, done, a)) {
        return true;
    }

    /* what happens by itself */
    struct at to = a;
    to.due_ms = 0;

    if (a.kind == RUNS) {
        const struct event *e = s->op[a.holder];
        to.at_ns =
            later(a.at_ns, s->from[a.holder] + e->lease_until_ms * 1000000 - e->redis_us * 1000);
        to.kind = e->tries && e->attempt >= e->tries ? IS_DEAD : WAITS;
        return go(s, done, to);
    }

    if (!s->h->faults) {
        return false;
    }

    if (a.kind == WAITS) {
        to.kind = UNSEEN;
        return go(s, done, to);
    }

    if (a.kind == UNSEEN) {
        to.kind = WAITS;
        if (go(s, done, to)) {
            return true;
        }
        to.kind = IS_DEAD;
        return go(s, done, to);
    }

    return false;
}

static void add(struct search *s, const struct event *e)
{
    int i = s->n++;

    s->op[i] = e;
    s->from[i] = e->op == START ? claimed_from(s->h, e) : e->from_ns;
    s->to[i] = e->op == START ? claimed_to(s->h, e) : e->to_ns;
    if (e->outcome != INFO) {
        s->must |= 1ull << i;
    }
}

/* A call that Redis refused, or that never came to it, has no place. */
static bool has_place(const struct event *e)
{
    bool call = e->op != START && e->op < STATE;
    return call && (e->outcome != FAIL || is(e, "EEXIST") || is(e, "EBUSY") || is(e, "ENOENT"));
}

bool asked_in_turn(const struct event *first, const struct event *second)
{
    return has_place(first) && has_place(second) && first->proc == second->proc && first < second &&
           second->from_ns <= first->heard_ns;
}

/* They are sorted by the time of asking. */
static void keep_order(struct search *s, struct leave leave)
{
    for (int i = 0; i < s->n; i++) {
        for (int k = 0; k < i; k++) {
            if (asked_in_turn(s->op[k], s->op[i]) && !leave.any &&
                !(leave.first == s->op[k] && leave.second == s->op[i])) {
                s->before[i] |= 1ull << k;
            }
        }
    }
}

int search(const struct life *l, struct leave leave)
{
    struct search s = {.h = l->h};
    bool end = false;

    if (l->n >= SEARCH_MOST) {
        return -1;
    }

    for (size_t i = 0; i < l->n; i++) {
        add(&s, &l->event[i]);
        end = end || l->event[i].op == STATE;
    }

    if (!end) {
        s.gone = *l->h->final;
        s.gone.op = STATE;
        s.gone.state = ABSENT;
        add(&s, &s.gone);
    }

    keep_order(&s, leave);

    bool found = go(&s, 0, (struct at){.kind = NONE, .made = -1, .at_ns = INT64_MIN});
    int answer = found ? 1 : s.n_seen > CONFIGS_MOST ? -1 : 0;
    free(s.seen);

    return answer;
}
