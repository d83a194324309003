/* SPDX-License-Identifier: MIT */
/* I1 to I11, each by itself, from what is known for certain: where two things may have happened in
 * either order, either is right. */
#include "history.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TELL_MOST = 20 };
static const int64_t SLACK_NS = 1000000; /* an answer's way, and what clocks leave out */

int64_t claimed_from(const struct history *h, const struct event *start)
{
    return h->clock_fault ? INT64_MIN : start->redis_us * 1000 + h->offset_ns - SLACK_NS;
}

int64_t claimed_to(const struct history *h, const struct event *start)
{
    int64_t at = start->redis_us * 1000 + h->offset_ns;
    return h->clock_fault || at > start->to_ns ? start->to_ns : at;
}

static void tell_event(const struct event *e)
{
    static const char *const outcome[] = {"asked", "ok", "fail", "info"};

    if (e) {
        printf("    %s:%ld %s %s token %llu attempt %ld due %lld %s %s\n", e->file, e->line,
               e->proc, op_name[e->op], (unsigned long long)e->token, e->attempt,
               (long long)e->due_ms, outcome[e->outcome], e->err ? e->err : "");
    }
}

void broken(struct life *l, const char *invariant, const struct event *a, const struct event *b,
            const char *why)
{
    static int told[100]; /* of each invariant */

    l->t->broken++;
    if (told[atoi(invariant + 1)]++ >= TELL_MOST) {
        return;
    }

    printf("%s job %s: %s\n", invariant, l->job ? l->job : "-", why);
    tell_event(a);
    tell_event(b);
}

static bool maybe(const struct event *e)
{
    return e->outcome == OK || e->outcome == INFO;
}

static bool in_window(const struct history *h, const struct event *e)
{
    for (size_t i = 0; i < h->n_rollbacks; i++) {
        if (e->to_ns >= h->rollback[i]->since_ns && e->from_ns <= h->rollback[i]->to_ns) {
            return true;
        }
    }
    return false;
}

#define EACH_EVENT(e, l) for (const struct event *e = (l)->event; e < (l)->event + (l)->n; e++)

/* ---- pairs of starts ---- */
static bool settled(const struct life *l, const struct event *start, enum op op, int64_t before_ns)
{
    EACH_EVENT (e, l)
        if (e->op == op && e->token == start->token && maybe(e) && e->from_ns <= before_ns) {
            return true;
        }
    return false;
}

static const struct event *settle_ok(const struct life *l, const struct event *start, enum op op)
{
    EACH_EVENT (e, l)
        if (e->op == op && e->token == start->token && e->outcome == OK) {
            return e;
        }
    return NULL;
}

/* May one of these have taken place between the two claims? */
static bool between(const struct life *l, enum op op, const struct event *a, const struct event *b)
{
    EACH_EVENT (e, l)
        if (e->op == op && maybe(e) && (op != ENQUEUE || e->created) &&
            e->to_ns >= claimed_from(l->h, a) && e->from_ns <= claimed_to(l->h, b)) {
            return true;
        }
    return false;
}

static int64_t lease_of(const struct life *l, const struct event *start)
{
    int64_t until_ms = start->lease_until_ms;

    EACH_EVENT (e, l)
        if (e->token == start->token && e->lease_until_ms > until_ms) {
            until_ms = e->lease_until_ms;
        }
    return until_ms;
}

static void rules_of_pair(struct life *l, const struct event *a, const struct event *b)
{
    const struct history *h = l->h;
    int64_t by = claimed_to(h, b);
    bool over = b->redis_us >= lease_of(l, a) * 1000;
    bool anew = between(l, ENQUEUE, a, b), moved = between(l, RESCHEDULE, a, b);

    if (b->token <= a->token) {
        broken(l, "I3", a, b,
               b->token == a->token ? "two claims have one token" : "a token does not grow");
        return;
    }

    if (!over && !settled(l, a, ACK, by) && !settled(l, a, NACK, by) && !settled(l, a, DEAD, by)) {
        broken(l, "I3", a, b, "claimed while another holds it");
        return;
    }

    const struct event *ack = settle_ok(l, a, ACK);
    const struct event *nack = settle_ok(l, a, NACK);
    const struct event *dead = settle_ok(l, a, DEAD);
    if (ack && !anew && ack->from_ns <= by) {
        if (over && ack->to_ns > by) {
            broken(l, "I4", ack, b, "the token of an earlier claim settled it");
        } else {
            broken(l, "I6", ack, b, "ran again after it was done");
        }
        return;
    }

    if (dead && !anew && !moved && dead->from_ns <= by) {
        broken(l, "I7", dead, b, "ran again after it was dead");
        return;
    }

    if (!anew && !nack && !dead && !h->faults && !settled(l, a, NACK, by) &&
        !(moved && settled(l, a, DEAD, by))) {
        broken(l, "I6", a, b, "ran again though nothing had failed");
        return;
    }

    if (anew || moved) {
        return;
    }

    l->t->twice++;
    l->t->expired += !nack && over;

    if (a->tries && a->attempt >= a->tries) {
        broken(l, "I7", a, b, "ran again after its last try");
    } else if (h->faults ? b->attempt <= a->attempt : b->attempt != a->attempt + 1) {
        broken(l, "I7", a, b, "attempts do not count its runs");
    }

    if (nack && nack->least_ms > 0 && by < nack->from_ns + nack->least_ms * 1000000 - SLACK_NS) {
        broken(l, "I7", nack, b, "ran before its back-off was over");
    }
}

/* May it be one of the claims that were rolled back? */
static bool undone(const struct history *h, const struct event *start)
{
    for (size_t i = 0; i < h->n_rollbacks; i++) {
        if (claimed_to(h, start) >= h->rollback[i]->since_ns &&
            claimed_from(h, start) <= h->rollback[i]->to_ns) {
            return true;
        }
    }
    return false;
}

/* What holds of tokens though one of the claims may have been undone: they go by Redis's clock. */
static void rule_of_undone_pair(struct life *l, const struct event *a, const struct event *b)
{
    if (b->token == a->token) {
        broken(l, "I3", a, b, "two claims have one token");
    } else if (b->token < a->token && !l->h->clock_fault) {
        broken(l, "I3", a, b, "a token does not grow");
    }
}

/* ---- one start ---- */
static bool is_setter(const struct event *e)
{
    return (e->op == ENQUEUE && e->created) || e->op == RESCHEDULE;
}

/* Due when it should be: as the last that set it said, or one that may have come later. */
static void rule_of_due(struct life *l, const struct event *s)
{
    const struct event *last = NULL;

    if (s->attempt != 1) {
        return; /* a retry, or the end of a lease, has set it */
    }

    EACH_EVENT (e, l)
        if (is_setter(e) && e->outcome == OK && e->to_ns < claimed_from(l->h, s) &&
            (!last || e->from_ns > last->from_ns)) {
            last = e;
        }

    if (!last) {
        return;
    }

    EACH_EVENT (e, l)
        if (is_setter(e) && e->to_ns >= last->from_ns &&
            (e->outcome == INFO || (e->outcome == OK && e->due_ms == s->due_ms))) {
            return;
        }

    if (last->op == RESCHEDULE) {
        broken(l, "I9", last, s, "ran at a time that a reschedule had ended");
    } else {
        broken(l, "I2", last, s, "was due at another time than its enqueue was told");
    }
}

static void rule_of_body(struct life *l, const struct event *s)
{
    bool known = false;

    if (!s->payload) {
        return;
    }

    EACH_EVENT (e, l)
        if (e->op == ENQUEUE && maybe(e) && e->payload) {
            known = true;
            if (e->payload == s->payload) {
                return;
            }
        }

    if (known) {
        broken(l, "I10", s, NULL, "another body than the one it was given");
    }
}

static void rule_of_cancels(struct life *l, const struct event *s)
{
    EACH_EVENT (c, l) {
        if (c->op != CANCEL || c->outcome != OK || c->to_ns >= claimed_from(l->h, s)) {
            continue;
        }
        bool anew = false;
        EACH_EVENT (e, l)
            anew = anew || (e->op == ENQUEUE && maybe(e) && e->created && e->to_ns >= c->from_ns &&
                            e->from_ns <= claimed_to(l->h, s));
        if (!anew) {
            broken(l, "I5", c, s, "ran after it was cancelled");
            return;
        }
    }
}

static void rules_of_start(struct life *l, const struct event *s)
{
    const struct event *first = NULL;
    long setters = 0;

    if (s->redis_us < s->due_ms * 1000) {
        broken(l, "I2", s, NULL, "claimed before it was due");
    }

    EACH_EVENT (e, l)
        if (e->op == ENQUEUE || e->op == RESCHEDULE) {
            first = first ? first : e;
            setters++;
        }

    if (setters == 0) {
        broken(l, "I1", s, NULL, "ran, and nobody had asked for it");
    } else if (setters == 1 && first->delay_ms > 0 && !l->h->clock_fault &&
               s->to_ns < first->from_ns + first->delay_ms * 1000000 - SLACK_NS) {
        broken(l, "I2", first, s, "started before its delay was over");
    }

    if (s->attempt < 1 || (s->tries && s->attempt > s->tries)) {
        broken(l, "I7", s, NULL, "an attempt that it does not have");
    }

    rule_of_body(l, s);
    if (l->rolled_back) {
        return;
    }

    rule_of_due(l, s);
    rule_of_cancels(l, s);
}

/* ---- settles, cancels ---- */
/* The claim by the settle's token: its own process's, or, where it made none, another's. */
static const struct event *claim_of(const struct life *l, const struct event *settle)
{
    const struct event *claim = NULL;

    EACH_EVENT (e, l)
        if (e->op == START && e->token == settle->token && (!claim || e->proc == settle->proc)) {
            claim = e;
        }
    return claim;
}

static void rules_of_settle(struct life *l, const struct event *s)
{
    if (s->outcome != OK) {
        return;
    }

    const struct event *claim = claim_of(l, s);
    if (claim && claim->proc != s->proc) {
        broken(l, "I4", s, claim,
               "settled by a process that does not hold it, with the token of the one that does");
    }

    EACH_EVENT (e, l) {
        bool known = e->op == START && claimed_to(l->h, e) < s->from_ns && !undone(l->h, e);
        if (known && e->token > s->token) {
            broken(l, "I4", s, e, "the token of an earlier claim settled it");
        }
        if (known && e->token == s->token && e->proc != s->proc && e->redis_us > claim->redis_us) {
            broken(l, "I4", s, e,
                   "an earlier holder settled it, by the token that the present one has too");
        }
        if (e->op >= ACK && e->op <= DEAD && e->token == s->token && e->outcome == OK && e > s) {
            broken(l, "I4", s, e, "one claim was settled twice");
        }
    }
}

/* NULL: it was surely there, nobody having taken it, when the cancel was answered */
static const struct event *sure_to_wait(const struct life *l, const struct event *c)
{
    const struct event *made = NULL;

    EACH_EVENT (e, l) {
        if (e->op == ENQUEUE && e->outcome == OK && e->created && e->to_ns < c->from_ns) {
            made = e;
        }
        if ((e->op == START && claimed_from(l->h, e) <= c->to_ns) ||
            (e->op == CANCEL && e != c && maybe(e) && e->from_ns <= c->to_ns)) {
            return NULL;
        }
    }

    return made;
}

static void rule_of_refused_cancel(struct life *l, const struct event *c)
{
    if (c->outcome != FAIL || !c->err || (l->h->faults && strcmp(c->err, "ENOENT") != 0)) {
        return;
    }

    const struct event *made = sure_to_wait(l, c);
    if (made && strcmp(c->err, "ENOENT") == 0) {
        broken(l, "I5", made, c, "not found, and it was waiting");
    }

    if (made && strcmp(c->err, "EBUSY") == 0) {
        broken(l, "I5", made, c, "too late, and nobody had claimed it");
    }
}

/* ---- the end ---- */
static void lost(struct life *l, const struct event *made)
{
    const struct history *h = l->h;

    if (!in_window(h, made)) {
        broken(l, "I1", made, NULL,
               "lost: enqueued, and neither done nor cancelled nor there at the end");
        return;
    }

    l->t->lost_in_window++;

    int64_t least_ns = INT64_MAX; /* it fell to the first after it */
    for (size_t i = 0; i < h->n_rollbacks; i++) {
        int64_t ago_ns = h->rollback[i]->to_ns - made->to_ns;
        if (ago_ns >= 0 && ago_ns < least_ns) {
            least_ns = ago_ns;
        }
    }

    if (least_ns < INT64_MAX && least_ns > l->t->window_ns) {
        l->t->window_ns = least_ns;
    }
}

/* What Redis holds of a job at the end is of its last claim, be it one that nobody heard of. */
static void rule_of_last_token(struct life *l, const struct event *end)
{
    if (!end->token || l->rolled_back) {
        return;
    }
    EACH_EVENT (e, l)
        if (e->op == START && e->token > end->token) {
            broken(l, "I3", e, end, "the last claim has a smaller token than an earlier one");
        }
}

static void rules_of_end(struct life *l)
{
    const struct event *made = NULL;
    const struct event *end = NULL;
    const struct event *run = NULL;
    bool removed = false, killed = false;

    EACH_EVENT (e, l) {
        if (e->op == ENQUEUE && e->outcome == OK && e->created) {
            made = e;
        }
        if (e->op == STATE) {
            end = e;
        }
        if (e->op == START) {
            run = e;
        }
        killed = killed || (e->op == DEAD && maybe(e));
    }

    if (end) {
        rule_of_last_token(l, end);
    }

    if (end && end->state == WAITING && end->due_ms <= l->h->final->redis_ms) {
        broken(l, "I1", made, end, "lost: due, and not run at the end");
    } else if (end && end->state == RUNNING && end->lease_until_ms <= l->h->final->redis_ms) {
        broken(l, "I1", made, end, "lost: its lease is over, and nobody took it back");
    } else if (end && end->state == DIED && !killed && end->tries && end->attempt < end->tries) {
        broken(l, "I7", run, end, "dead before its last try");
    }

    if (end || !made) {
        return;
    }

    EACH_EVENT (e, l)
        removed =
            removed || ((e->op == ACK || e->op == CANCEL) && maybe(e) && e->to_ns >= made->from_ns);
    if (!removed) {
        lost(l, made);
    }
}

static void count(struct life *l)
{
    struct tally *t = l->t;

    t->jobs++;
    EACH_EVENT (e, l) {
        t->ok += e->op == ENQUEUE && e->outcome == OK && e->created;
        t->info += e->op == ENQUEUE && e->outcome == INFO;
        if (e->op == START) {
            t->late_us[t->starts++] = e->redis_us - e->due_ms * 1000;
        }
        t->done += e->op == ACK && e->outcome == OK;
        t->dead += e->op == STATE && e->state == DIED;
        t->stale += e->op >= ACK && e->op <= DEAD && e->outcome == FAIL;
    }
}

static int by_claim(const void *a, const void *b)
{
    const struct event *x = *(const struct event *const *)a;
    const struct event *y = *(const struct event *const *)b;
    int order = (x->redis_us > y->redis_us) - (x->redis_us < y->redis_us);
    return order ? order : (x->token > y->token) - (x->token < y->token);
}

void rules_of_job(struct life *l, int64_t late_ms)
{
    const struct event **start = calloc(l->n + 1, sizeof *start);
    size_t n = 0;

    if (!start) {
        exit(2);
    }

    count(l);

    EACH_EVENT (e, l) {
        l->rolled_back = l->rolled_back || in_window(l->h, e);
        if (e->op == START) {
            start[n++] = e;
        }
    }

    qsort(start, n, sizeof *start, by_claim);

    for (size_t i = 0; i < n; i++) {
        rules_of_start(l, start[i]);
        if (late_ms && start[i]->redis_us > (start[i]->due_ms + late_ms) * 1000) {
            broken(l, "I11", start[i], NULL, "later than this run allows");
        }
    }

    if (n > 0 && !l->h->faults && start[0]->attempt > 1) {
        broken(l, "I7", start[0], NULL, "its first attempt was not seen");
    }

    for (size_t i = 0; i + 1 < n; i++) {
        (l->rolled_back ? rule_of_undone_pair : rules_of_pair)(l, start[i], start[i + 1]);
    }

    free(start);

    EACH_EVENT (e, l) {
        if (e->op >= ACK && e->op <= DEAD && !in_window(l->h, e)) {
            rules_of_settle(l, e);
        }
        if (e->op == CANCEL && !l->rolled_back) {
            rule_of_refused_cancel(l, e);
        }
    }

    rules_of_end(l);
}

static int by_token(const void *a, const void *b)
{
    const struct event *x = *(const struct event *const *)a;
    const struct event *y = *(const struct event *const *)b;
    int order = (x->token > y->token) - (x->token < y->token);
    return order ? order : (x > y) - (x < y); /* by job */
}

/* Of each claim that is known, be it by what Redis has at the end. */
static void rule_of_tokens(struct life *all)
{
    const struct history *h = all->h;
    const struct event **claim = calloc(h->n + 1, sizeof *claim);
    size_t n = 0;

    if (!claim) {
        exit(2);
    }

    for (size_t i = 0; i < h->n; i++) {
        if ((h->event[i].op == START || h->event[i].op == STATE) && h->event[i].token) {
            claim[n++] = &h->event[i];
        }
    }

    qsort(claim, n, sizeof *claim, by_token);

    for (size_t i = 0; i + 1 < n; i++) {
        if (claim[i]->token == claim[i + 1]->token && claim[i]->job != claim[i + 1]->job) {
            broken(all, "I3", claim[i], claim[i + 1], "claims of two jobs have one token");
        }
    }

    free(claim);
}

void rules_of_all(struct history *h, struct tally *t)
{
    struct life all = {.h = h, .t = t};

    rule_of_tokens(&all);
    for (size_t i = 0; i < h->n && !h->event[i].job; i++) {
        const struct event *e = &h->event[i];
        if (e->op == FSCK && e->defects) {
            broken(&all, "I8", e, NULL, "Redis holds what is in no state, or in two");
        }
        if (e->op == FINAL && e->n_jobs != e->n_due + e->n_run + e->n_dead) {
            broken(&all, "I8", e, NULL, "not as many records as jobs in all states");
        }
    }
}
