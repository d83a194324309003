/* SPDX-License-Identifier: MIT */
/* The invariants I1 to I11 of README.md, each by itself.
 *
 * A call took effect at some moment between from_ns, when it was asked, and to_ns, when it was
 * answered. A claim took effect at a moment of Redis's clock, which claimed_from() and claimed_to()
 * bound by the monotonic one. Where two of these spans overlap, either may have come first, and a
 * rule speaks only of what is certain: it compares the end of one with the beginning of the other.
 *
 *     cancel       |--------|
 *     claim a           |-------|                  may have come first: allowed
 *     claim b                       |-------|      came later: a job ran after it was cancelled
 *
 * A call whose outcome is INFO may have taken effect, or not, and then at any moment after it was
 * asked. */
#include "history.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPORT_MOST = 20 };               /* of each invariant */
static const int64_t SLACK_NS = 1000000; /* the two clocks may drift apart while they run */
static const int64_t NS_A_MS = 1000000;

/* ---- what a job's events are ---- */
#define EACH_EVENT(e, l) for (const struct event *e = (l)->event; e < (l)->event + (l)->n; e++)

/* Did it take effect, or may it have? */
static bool may_have_happened(const struct event *e)
{
    return e->outcome == OK || e->outcome == INFO;
}

static bool is_settle(const struct event *e)
{
    return e->op == ACK || e->op == NACK || e->op == DEAD;
}

/* Of an enqueue that a job with this id answered, created is 0. */
static bool makes_job(const struct event *e)
{
    return e->op == ENQUEUE && e->created;
}

static bool sets_due(const struct event *e)
{
    return makes_job(e) || e->op == RESCHEDULE;
}

/* ---- when ---- */
int64_t claimed_from(const struct history *h, const struct event *start)
{
    if (h->clock_fault || h->offset_from_ns == INT64_MIN) {
        return INT64_MIN;
    }
    return start->redis_us * 1000 + h->offset_from_ns - SLACK_NS;
}

int64_t due_from(const struct history *h, int64_t due_ms)
{
    if (h->clock_fault || h->offset_from_ns == INT64_MIN) {
        return INT64_MAX;
    }
    return due_ms * NS_A_MS + h->offset_from_ns - SLACK_NS;
}

int64_t claimed_to(const struct history *h, const struct event *start)
{
    int64_t at_ns = start->redis_us * 1000 + h->offset_to_ns;

    if (h->clock_fault || at_ns > start->to_ns) {
        return start->to_ns; /* its handler ran by then */
    }
    return at_ns;
}

/* May the roll back of a nemesis have undone it? */
static bool in_window(const struct history *h, const struct event *e)
{
    for (size_t i = 0; i < h->n_rollbacks; i++) {
        if (e->to_ns >= h->rollback[i]->since_ns && e->from_ns <= h->rollback[i]->to_ns) {
            return true;
        }
    }
    return false;
}

/* The same of the claim of a start. */
static bool claim_in_window(const struct history *h, const struct event *start)
{
    for (size_t i = 0; i < h->n_rollbacks; i++) {
        const struct event *back = h->rollback[i];
        if (claimed_to(h, start) >= back->since_ns && claimed_from(h, start) <= back->to_ns) {
            return true;
        }
    }
    return false;
}

/* ---- reports ---- */
static void print_event(const struct event *e)
{
    static const char *const outcome[] = {"asked", "ok", "fail", "info"};

    if (e) {
        printf("    %s:%ld %s %s token %llu attempt %ld due %lld %s %s\n", e->file, e->line,
               e->proc, op_name[e->op], (unsigned long long)e->token, e->attempt,
               (long long)e->due_ms, outcome[e->outcome], e->err ? e->err : "");
    }
}

void broken(struct life *l, const char *invariant, const struct event *a, const struct event *b,
            const char *reason)
{
    static int reported[100]; /* by the number of the invariant */
    int number = atoi(invariant + 1);

    l->t->broken++;
    if (reported[number]++ >= REPORT_MOST) {
        return;
    }

    printf("%s job %s: %s\n", invariant, l->job ? l->job : "-", reason);
    print_event(a);
    print_event(b);
}

/* ---- two runs of a job, one after the other: I3, I4, I6, I7 ---- */
struct pair {
    const struct event *a, *b; /* two starts; no other claim of the job was seen in between */
    int64_t by_ns;             /* b was claimed by then */
    bool lease_over;           /* that of a had ended when b was claimed */
    /* may have happened in between: */
    bool made_again, rescheduled;
};

/* The end of a lease, as its holder knew it last: it may have been renewed. */
static int64_t lease_end_ms(const struct life *l, const struct event *start)
{
    int64_t end_ms = start->lease_until_ms;

    EACH_EVENT (e, l) {
        if (e->token == start->token && e->lease_until_ms > end_ms) {
            end_ms = e->lease_until_ms;
        }
    }
    return end_ms;
}

static bool may_lie_between(const struct life *l, const struct event *e, const struct event *a,
                            const struct event *b)
{
    return may_have_happened(e) && e->to_ns >= claimed_from(l->h, a) &&
           e->from_ns <= claimed_to(l->h, b);
}

static struct pair pair_of(const struct life *l, const struct event *a, const struct event *b)
{
    struct pair p = {.a = a, .b = b, .by_ns = claimed_to(l->h, b)};

    p.lease_over = b->redis_us >= lease_end_ms(l, a) * 1000;
    EACH_EVENT (e, l) {
        if (may_lie_between(l, e, a, b)) {
            p.made_again = p.made_again || makes_job(e);
            p.rescheduled = p.rescheduled || e->op == RESCHEDULE;
        }
    }

    return p;
}

/* The settle of this kind, by the token of a start, that was done; NULL: there is none. */
static const struct event *settle_done(const struct life *l, const struct event *start, enum op op)
{
    EACH_EVENT (e, l) {
        if (e->op == op && e->token == start->token && e->outcome == OK) {
            return e;
        }
    }
    return NULL;
}

/* May the run of a have been settled so before b was claimed? */
static bool may_be_settled(const struct life *l, const struct pair *p, enum op op)
{
    EACH_EVENT (e, l) {
        if (e->op == op && e->token == p->a->token && may_have_happened(e) &&
            e->from_ns <= p->by_ns) {
            return true;
        }
    }
    return false;
}

static bool token_grows(struct life *l, const struct event *a, const struct event *b)
{
    if (b->token > a->token) {
        return true;
    }

    if (b->token == a->token) {
        broken(l, "I3", a, b, "two claims have one token");
    } else {
        broken(l, "I3", a, b, "a token does not grow");
    }
    return false;
}

static bool had_no_holder(struct life *l, const struct pair *p)
{
    if (p->lease_over || may_be_settled(l, p, ACK) || may_be_settled(l, p, NACK) ||
        may_be_settled(l, p, DEAD)) {
        return true;
    }

    broken(l, "I3", p->a, p->b, "claimed while another holds it");
    return false;
}

static bool was_not_done(struct life *l, const struct pair *p)
{
    const struct event *ack = settle_done(l, p->a, ACK);

    if (!ack || p->made_again || ack->from_ns > p->by_ns) {
        return true;
    }

    if (p->lease_over && ack->to_ns > p->by_ns) {
        broken(l, "I4", ack, p->b, "the token of an earlier claim settled it");
    } else {
        broken(l, "I6", ack, p->b, "ran again after it was done");
    }
    return false;
}

static bool was_not_dead(struct life *l, const struct pair *p)
{
    const struct event *dead = settle_done(l, p->a, DEAD);

    if (!dead || p->made_again || p->rescheduled || dead->from_ns > p->by_ns) {
        return true;
    }

    broken(l, "I7", dead, p->b, "ran again after it was dead");
    return false;
}

/* A retry, a new enqueue, a dead job that was rescheduled. With faults leases end, too. */
static bool had_a_reason(struct life *l, const struct pair *p)
{
    if (l->h->faults || p->made_again || settle_done(l, p->a, NACK) || settle_done(l, p->a, DEAD) ||
        may_be_settled(l, p, NACK) || (p->rescheduled && may_be_settled(l, p, DEAD))) {
        return true;
    }

    broken(l, "I6", p->a, p->b, "ran again though nothing had failed");
    return false;
}

static void rule_of_attempts(struct life *l, const struct pair *p)
{
    const struct event *a = p->a;
    const struct event *b = p->b;
    /* with faults there may be claims in between that nobody saw */
    bool counted = l->h->faults ? b->attempt > a->attempt : b->attempt == a->attempt + 1;

    if (a->tries && a->attempt >= a->tries) {
        broken(l, "I7", a, b, "ran again after its last try");
    } else if (!counted) {
        broken(l, "I7", a, b, "attempts do not count its runs");
    }
}

static void rule_of_back_off(struct life *l, const struct pair *p)
{
    const struct event *nack = settle_done(l, p->a, NACK);

    if (nack && nack->least_ms > 0 &&
        p->by_ns < nack->from_ns + nack->least_ms * NS_A_MS - SLACK_NS) {
        broken(l, "I7", nack, p->b, "ran before its back-off was over");
    }
}

static void rules_of_pair(struct life *l, const struct event *a, const struct event *b)
{
    struct pair p = pair_of(l, a, b);

    /* the first that does not hold says what went wrong; the others follow from it */
    if (!token_grows(l, a, b) || !had_no_holder(l, &p) || !was_not_done(l, &p) ||
        !was_not_dead(l, &p) || !had_a_reason(l, &p)) {
        return;
    }

    if (p.made_again || p.rescheduled) {
        return; /* its attempts may begin at 1 again */
    }

    l->t->twice++;
    if (p.lease_over && !settle_done(l, a, NACK)) {
        l->t->expired++;
    }

    rule_of_attempts(l, &p);
    rule_of_back_off(l, &p);
}

/* What holds of tokens though one of the claims may have been undone: they go by Redis's clock. */
static void rule_of_undone_pair(struct life *l, const struct event *a, const struct event *b)
{
    bool clock_was_set_back = l->h->clock_fault && b->token < a->token;

    if (!clock_was_set_back) {
        token_grows(l, a, b);
    }
}

/* ---- one run: I1, I2, I5, I7, I9, I10 ---- */
static void rule_of_claim_time(struct life *l, const struct event *s, int64_t late_ms)
{
    if (s->redis_us < s->due_ms * 1000) {
        broken(l, "I2", s, NULL, "claimed before it was due");
    }
    if (late_ms && s->redis_us > (s->due_ms + late_ms) * 1000) {
        broken(l, "I11", s, NULL, "later than this run allows");
    }
}

/* A job that one call made, and none moved, is not started before the delay that call named. */
static void rule_of_delay(struct life *l, const struct event *s)
{
    const struct event *first = NULL;
    long n = 0;

    EACH_EVENT (e, l) {
        if (e->op == ENQUEUE || e->op == RESCHEDULE) {
            first = first ? first : e;
            n++;
        }
    }

    if (n == 0) {
        broken(l, "I1", s, NULL, "ran, and nobody had asked for it");
    } else if (n == 1 && first->delay_ms > 0 && !l->h->clock_fault &&
               s->to_ns < first->from_ns + first->delay_ms * NS_A_MS - SLACK_NS) {
        broken(l, "I2", first, s, "started before its delay was over");
    }
}

static void rule_of_attempt_bounds(struct life *l, const struct event *s)
{
    if (s->attempt < 1 || (s->tries && s->attempt > s->tries)) {
        broken(l, "I7", s, NULL, "an attempt that it does not have");
    }
}

static void rule_of_body(struct life *l, const struct event *s)
{
    bool is_known = false;

    if (!s->payload) {
        return;
    }

    EACH_EVENT (e, l) {
        if (e->op == ENQUEUE && may_have_happened(e) && e->payload) {
            is_known = true;
            if (e->payload == s->payload) {
                return;
            }
        }
    }

    if (is_known) {
        broken(l, "I10", s, NULL, "another body than the one it was given");
    }
}

/* The last call that had surely set the due time when this was claimed; NULL: there is none. */
static const struct event *last_to_set_due(const struct life *l, const struct event *s)
{
    const struct event *last = NULL;

    EACH_EVENT (e, l) {
        if (sets_due(e) && e->outcome == OK && e->to_ns < claimed_from(l->h, s) &&
            (!last || e->from_ns > last->from_ns)) {
            last = e;
        }
    }
    return last;
}

/* The first run is due when the last call that set it said, or one that may have come later. A
 * retry, or the end of a lease, sets the due time of later runs. */
static void rule_of_due(struct life *l, const struct event *s)
{
    const struct event *last = last_to_set_due(l, s);

    if (s->attempt != 1 || !last) {
        return;
    }

    EACH_EVENT (e, l) {
        bool may_be_later = sets_due(e) && e->to_ns >= last->from_ns;
        bool fits = e->outcome == INFO || (e->outcome == OK && e->due_ms == s->due_ms);
        if (may_be_later && fits) {
            return;
        }
    }

    if (last->op == RESCHEDULE) {
        broken(l, "I9", last, s, "ran at a time that a reschedule had ended");
    } else {
        broken(l, "I2", last, s, "was due at another time than its enqueue was told");
    }
}

/* A cancel by which a job that ran was asked to stop. */
static bool asks_to_stop(const struct event *e)
{
    return e->op == CANCEL && e->outcome == OK && e->state == RUNNING;
}

/* May the job that was cancelled have been enqueued again before this was claimed? */
static bool may_be_made_after(const struct life *l, const struct event *cancel,
                              const struct event *s)
{
    EACH_EVENT (e, l) {
        if (makes_job(e) && may_have_happened(e) && e->to_ns >= cancel->from_ns &&
            e->from_ns <= claimed_to(l->h, s)) {
            return true;
        }
    }
    return false;
}

static void rule_of_cancels(struct life *l, const struct event *s)
{
    EACH_EVENT (e, l) {
        bool was_cancelled =
            e->op == CANCEL && e->outcome == OK && e->to_ns < claimed_from(l->h, s);
        if (was_cancelled && !may_be_made_after(l, e, s)) {
            broken(l, "I5", e, s, "ran after it was cancelled");
            return;
        }
    }
}

static void rules_of_start(struct life *l, const struct event *s, int64_t late_ms)
{
    rule_of_claim_time(l, s, late_ms);
    rule_of_delay(l, s);
    rule_of_attempt_bounds(l, s);
    rule_of_body(l, s);
    if (!l->rolled_back) {
        rule_of_due(l, s);
        rule_of_cancels(l, s);
    }
}

/* ---- settles: I4 ---- */
/* The claim whose token a settle has: that of its own process, or, where it made none,
 * another's. */
static const struct event *claim_of(const struct life *l, const struct event *settle)
{
    const struct event *claim = NULL;

    EACH_EVENT (e, l) {
        if (e->op == START && e->token == settle->token && (!claim || e->proc == settle->proc)) {
            claim = e;
        }
    }
    return claim;
}

static void rule_of_holder(struct life *l, const struct event *s, const struct event *claim)
{
    if (claim && claim->proc != s->proc) {
        broken(l, "I4", s, claim,
               "settled by a process that does not hold it, with the token of the one that does");
    }
}

/* No settle by an earlier claim is done once a later one exists, not even by the same token. */
static void rule_of_later_claims(struct life *l, const struct event *s, const struct event *claim)
{
    EACH_EVENT (e, l) {
        bool existed = e->op == START && claimed_to(l->h, e) < s->from_ns;
        if (!existed || claim_in_window(l->h, e)) {
            continue;
        }
        if (e->token > s->token) {
            broken(l, "I4", s, e, "the token of an earlier claim settled it");
        }
        if (e->token == s->token && e->proc != s->proc && e->redis_us > claim->redis_us) {
            broken(l, "I4", s, e,
                   "an earlier holder settled it, by the token that the present one has too");
        }
    }
}

static void rule_of_one_settle(struct life *l, const struct event *s)
{
    for (const struct event *e = s + 1; e < l->event + l->n; e++) {
        if (is_settle(e) && e->token == s->token && e->outcome == OK) {
            broken(l, "I4", s, e, "one claim was settled twice");
        }
    }
}

static void rules_of_settle(struct life *l, const struct event *s)
{
    if (s->outcome == OK) {
        const struct event *claim = claim_of(l, s);

        rule_of_holder(l, s, claim);
        rule_of_later_claims(l, s, claim);
        rule_of_one_settle(l, s);
    }
}

/* ---- cancels that were refused: I5 ---- */
/* The enqueue of a job that surely waited while this cancel was under way: it was made before, and
 * nothing that may have come before the answer took it away. NULL: that is not certain. */
static const struct event *sure_to_wait(const struct life *l, const struct event *cancel)
{
    const struct event *made = NULL;

    EACH_EVENT (e, l) {
        bool claimed = e->op == START && claimed_from(l->h, e) <= cancel->to_ns;
        bool cancelled =
            e->op == CANCEL && e != cancel && may_have_happened(e) && e->from_ns <= cancel->to_ns;
        if (claimed || cancelled) {
            return NULL;
        }
        if (makes_job(e) && e->outcome == OK && e->to_ns < cancel->from_ns) {
            made = e;
        }
    }

    return made;
}

static void rule_of_refused_cancel(struct life *l, const struct event *cancel)
{
    if (cancel->outcome != FAIL || !cancel->err) {
        return;
    }
    if (cancel->running && strcmp(cancel->err, "EBUSY") == 0) {
        broken(l, "I5", cancel, NULL, "it was to ask the run to stop, and was told that it runs");
        return;
    }

    bool not_found = strcmp(cancel->err, "ENOENT") == 0;
    /* with faults there may be a claim that nobody saw */
    bool too_late = strcmp(cancel->err, "EBUSY") == 0 && !l->h->faults;
    const struct event *made = not_found || too_late ? sure_to_wait(l, cancel) : NULL;
    if (!made) {
        return;
    }

    if (not_found) {
        broken(l, "I5", made, cancel, "not found, and it was waiting");
    } else {
        broken(l, "I5", made, cancel, "too late, and nobody had claimed it");
    }
}

/* ---- the end: I1, I3, I7 ---- */
struct ending {
    const struct event *made;  /* the last enqueue that surely made the job */
    const struct event *run;   /* the last that ran */
    const struct event *state; /* what Redis had of it at the end; NULL: nothing */
    bool may_be_failed;        /* by its handler */
    bool may_be_removed;       /* it was done or cancelled, after it was made */
};

static struct ending ending_of(const struct life *l)
{
    struct ending end = {.made = NULL};

    EACH_EVENT (e, l) {
        if (makes_job(e) && e->outcome == OK) {
            end.made = e;
        }
        if (e->op == STATE) {
            end.state = e;
        }
        if (e->op == START) {
            end.run = e;
        }
        if (e->op == DEAD && may_have_happened(e)) {
            end.may_be_failed = true;
        }
    }

    EACH_EVENT (e, l) {
        if ((e->op == ACK || e->op == CANCEL) && may_have_happened(e) && end.made &&
            e->to_ns >= end.made->from_ns) {
            end.may_be_removed = true;
        }
    }

    return end;
}

/* What Redis holds of a job at the end is of its last claim, even of one whose answer was lost. */
static void rule_of_last_token(struct life *l, const struct event *state)
{
    if (!state->token || l->rolled_back) {
        return;
    }

    EACH_EVENT (e, l) {
        if (e->op == START && e->token > state->token) {
            broken(l, "I3", e, state, "the last claim has a smaller token than an earlier one");
        }
    }
}

static void rule_of_last_state(struct life *l, const struct ending *end)
{
    const struct event *state = end->state;
    int64_t now_ms = l->h->final->redis_ms;

    switch (state->state) {
    case WAITING:
        if (state->due_ms <= now_ms) {
            broken(l, "I1", end->made, state, "lost: due, and not run at the end");
        }
        break;
    case RUNNING:
        if (state->lease_until_ms <= now_ms) {
            broken(l, "I1", end->made, state, "lost: its lease is over, and nobody took it back");
        }
        break;
    case DIED:
        if (!end->may_be_failed && state->tries && state->attempt < state->tries) {
            broken(l, "I7", end->run, state, "dead before its last try");
        }
        break;
    case ABSENT: break;
    }
}

/* Who was asked to stop is gone when its run is over, unless it was made again. */
static void rule_of_stopped(struct life *l, const struct event *state)
{
    const struct event *asked = NULL;

    EACH_EVENT (e, l) {
        bool is_new = makes_job(e) && may_have_happened(e);
        if (asks_to_stop(e)) {
            asked = e;
        } else if (asked && is_new && e->to_ns >= asked->from_ns) {
            return;
        }
    }
    if (asked && state->state != RUNNING) {
        broken(l, "I5", asked, state, "its run was asked to stop, and it is there after it");
    }
}

/* How long before a roll back it was enqueued: the first that came after it. */
static int64_t enqueued_before_ns(const struct history *h, const struct event *made)
{
    int64_t least_ns = INT64_MAX;

    for (size_t i = 0; i < h->n_rollbacks; i++) {
        int64_t ago_ns = h->rollback[i]->to_ns - made->to_ns;
        if (ago_ns >= 0 && ago_ns < least_ns) {
            least_ns = ago_ns;
        }
    }

    return least_ns == INT64_MAX ? 0 : least_ns;
}

static void lost(struct life *l, const struct event *made)
{
    if (!in_window(l->h, made)) {
        broken(l, "I1", made, NULL,
               "lost: enqueued, and neither done nor cancelled nor there at the end");
        return;
    }

    int64_t window_ns = enqueued_before_ns(l->h, made);

    l->t->lost_in_window++;
    if (window_ns > l->t->window_ns) {
        l->t->window_ns = window_ns;
    }
}

static void rules_of_end(struct life *l)
{
    struct ending end = ending_of(l);

    if (end.state) {
        rule_of_last_token(l, end.state);
        rule_of_last_state(l, &end);
        if (!l->rolled_back) {
            rule_of_stopped(l, end.state);
        }
    } else if (end.made && !end.may_be_removed) {
        lost(l, end.made);
    }
}

/* ---- all rules of one job ---- */
static void count_event(struct tally *t, const struct event *e)
{
    if (makes_job(e) && e->outcome == OK) {
        t->ok++;
    }
    if (e->op == ENQUEUE && e->outcome == INFO) {
        t->info++;
    }
    if (e->op == START) {
        t->late_us[t->starts++] = e->redis_us - e->due_ms * 1000;
    }
    if (e->op == ACK && e->outcome == OK) {
        t->done++;
    }
    if (e->op == STATE && e->state == DIED) {
        t->dead++;
    }
    if (asks_to_stop(e)) {
        t->asked++;
    }
    if (is_settle(e) && e->outcome == FAIL) {
        t->stale++;
    }
}

static int by_claim(const void *a, const void *b)
{
    const struct event *x = *(const struct event *const *)a;
    const struct event *y = *(const struct event *const *)b;
    int order = (x->redis_us > y->redis_us) - (x->redis_us < y->redis_us);
    return order ? order : (x->token > y->token) - (x->token < y->token);
}

static void rules_of_starts(struct life *l, const struct event *const *start, size_t n,
                            int64_t late_ms)
{
    for (size_t i = 0; i < n; i++) {
        rules_of_start(l, start[i], late_ms);
    }

    if (n > 0 && !l->h->faults && start[0]->attempt > 1) {
        broken(l, "I7", start[0], NULL, "its first attempt was not seen");
    }

    for (size_t i = 0; i + 1 < n; i++) {
        if (l->rolled_back) {
            rule_of_undone_pair(l, start[i], start[i + 1]);
        } else {
            rules_of_pair(l, start[i], start[i + 1]);
        }
    }
}

void rules_of_job(struct life *l, int64_t late_ms)
{
    const struct event **start = calloc(l->n + 1, sizeof *start);
    size_t n = 0;

    if (!start) {
        exit(2);
    }

    l->t->jobs++;
    EACH_EVENT (e, l) {
        count_event(l->t, e);
        l->rolled_back = l->rolled_back || in_window(l->h, e);
        if (e->op == START) {
            start[n++] = e;
        }
    }

    qsort(start, n, sizeof *start, by_claim);
    rules_of_starts(l, start, n, late_ms);
    free(start);

    EACH_EVENT (e, l) {
        if (is_settle(e) && !in_window(l->h, e)) {
            rules_of_settle(l, e);
        }
        if (e->op == CANCEL && !l->rolled_back) {
            rule_of_refused_cancel(l, e);
        }
    }

    rules_of_end(l);
}

/* ---- what no single job shows: I3, I8 ---- */
/* The names of queues as addresses: equal ones are one. */
static int by_queue_and_token(const void *a, const void *b)
{
    const struct event *x = *(const struct event *const *)a;
    const struct event *y = *(const struct event *const *)b;
    uintptr_t of_x = (uintptr_t)x->queue;
    uintptr_t of_y = (uintptr_t)y->queue;
    int order = (of_x > of_y) - (of_x < of_y);

    if (order == 0) {
        order = (x->token > y->token) - (x->token < y->token);
    }
    return order ? order : (x > y) - (x < y); /* by job */
}

static bool is_one_token_of_two_jobs(const struct event *a, const struct event *b)
{
    return a->queue == b->queue && a->token == b->token && a->job != b->job;
}

/* All claims that are known: by a start, or by what Redis has of a job at the end. */
static void rule_of_tokens(struct life *all)
{
    const struct history *h = all->h;
    const struct event **claim = calloc(h->n + 1, sizeof *claim);
    size_t n = 0;

    if (!claim) {
        exit(2);
    }

    for (size_t i = 0; i < h->n; i++) {
        const struct event *e = &h->event[i];
        if ((e->op == START || e->op == STATE) && e->token) {
            claim[n++] = e;
        }
    }

    qsort(claim, n, sizeof *claim, by_queue_and_token);

    for (size_t i = 0; i + 1 < n; i++) {
        if (is_one_token_of_two_jobs(claim[i], claim[i + 1])) {
            broken(all, "I3", claim[i], claim[i + 1], "claims of two jobs have one token");
        }
    }

    free(claim);
}

void rules_of_all(struct history *h, struct tally *t)
{
    struct life all = {.h = h, .t = t};

    rule_of_tokens(&all);

    /* events of no job come first */
    for (const struct event *e = h->event; e < h->event + h->n && !e->job; e++) {
        if (e->op == FSCK && e->defects) {
            broken(&all, "I8", e, NULL, "Redis holds what is in no state, or in two");
        }
        if (e->op == FINAL && e->n_jobs != e->n_due + e->n_run + e->n_dead) {
            broken(&all, "I8", e, NULL, "not as many records as jobs in all states");
        }
    }
}
