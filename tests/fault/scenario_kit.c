/* SPDX-License-Identifier: MIT */
#include "scenario.h"
#include "ask.h"
#include "loop.h"
#include "test.h"
#include <stdarg.h>
#include <stdio.h>

enum { TURN_MS = 20, AGAIN = 10000 }; /* AGAIN: for ENOMEM at random */
enum verb { SCHEDULE, CANCEL, RESCHEDULE, LOOK, SETTLE_DONE, SETTLE };
struct asked {
    struct flow_answer answer; /* the first, so that its address is ours */
    struct asked *next;
    struct play *p;
    struct entry *entry;
    enum verb verb;
    enum exists before;
    int want;
    scenario_fn *then;
    unsigned untold;
    bool gives_job; /* where it succeeds */
    int64_t delay_ms;
};

static void note_queue(struct play *p, const char *queue)
{
    size_t i = 0;

    while (i < QUEUES && p->queues[i] && strcmp(p->queues[i], queue) != 0) {
        i++;
    }
    PLAY_ASSERT(i < QUEUES);
    p->queues[i] = p->queues[i] ? p->queues[i] : strdup(queue);
}

static struct entry *entry_of(struct play *p, const char *queue, const char *id)
{
    struct entry *e = p->ledger;

    while (e && (strcmp(e->queue, queue) != 0 || strcmp(e->id, id) != 0)) {
        e = e->next;
    }

    if (!e) {
        e = calloc(1, sizeof *e);
        PLAY_ASSERT(e && strlen(queue) < sizeof e->queue && strlen(id) < sizeof e->id);
        note_queue(p, queue);
        strcpy(e->queue, queue);
        strcpy(e->id, id);
        e->next = p->ledger;
        p->ledger = e;
    }

    return e;
}

bool play_turn(struct play *p, int64_t end_ms)
{
    int64_t now_ms = test_now_ms();
    int64_t turn_ms = now_ms + TURN_MS; /* a condition may be Redis's, and make no event here */

    if (now_ms >= end_ms) {
        return false;
    }
    /* false: the turn was over before it began, on a busy machine; that is not yet the end */
    loop_turn(p->loop, turn_ms < end_ms ? turn_ms : end_ms);
    return true;
}

bool play_faulty(void)
{
    return inject_fired() || inject_outside();
}

/* ---- handles ---- */
struct lapse *play_open(struct play *p)
{
    struct lapse *l = NULL;
    int err = LAPSE_ENOMEM;
    int want = p->want;

    p->want = 0;

    for (int i = 0; err == LAPSE_ENOMEM && i < AGAIN; i++) {
        err = lapse_open(&l, p->loop, &p->opts);
        PLAY_ASSERT(!err == (l != NULL));
        PLAY_ASSERT(err != LAPSE_ENOMEM || play_faulty());
    }

    if (err != want) {
        play_fail("lapse_open: %s", lapse_strerror(err));
    }

    for (int i = 0; l && i < HANDLES; i++) {
        if (!p->handles[i]) {
            p->handles[i] = l;
            break;
        }
    }

    p->l = p->l ? p->l : l;

    return l;
}

static void forget(struct play *p, const struct lapse *l)
{
    for (int i = 0; i < HANDLES; i++) {
        p->handles[i] = p->handles[i] == l ? NULL : p->handles[i];
    }
    p->l = p->l == l ? NULL : p->l;
}

static void on_closed(void *arg)
{
    ((struct play *)arg)->n_closed++;
}

void play_close(struct play *p, struct lapse *l, int64_t grace_ms)
{
    bool first = false;

    for (int i = 0; i < HANDLES; i++) {
        first |= p->handles[i] == l;
    }
    forget(p, l);
    p->n_closing += first;
    lapse_close(l, grace_ms, on_closed, p);
}

void play_abandon(struct play *p, struct lapse *l)
{
    forget(p, l);
    lapse_abandon(l);
    /* no callback runs; such a scenario has one handle */
    p->asked = p->answered = p->settling = p->settled = 0;
    for (struct entry *e = p->ledger; e; e = e->next) {
        if (e->asked) {
            e->exists = MAYBE;
            e->asked = 0;
        }
    }
}

void play_all_closed(struct play *p)
{
    play_until(p, p->n_closed == p->n_closing);
    play_wait(p);
}

/* ---- asking ---- */
static bool no_lie(int err, int want)
{
    switch (err) {
    case 0:
    case LAPSE_ENOMEM:
    case LAPSE_ENOENT:
    case LAPSE_EEXIST:
    case LAPSE_EBUSY:
    case LAPSE_EGONE:
    case LAPSE_ECLOSED: return true; /* also where an earlier call of the scenario went wrong */
    case LAPSE_ELOST:
    case LAPSE_ETIMEOUT:
    case LAPSE_EDOWN: return want == err || want == ANY || inject_outside();
    default: return want == err;
    }
}

__attribute__((format(printf, 2, 3))) static void tell(struct entry *e, const char *format, ...)
{
    size_t len = strlen(e->tale);
    size_t keep = sizeof e->tale / 2;
    va_list ap;

    if (len > keep) {
        memmove(e->tale, e->tale + len - keep, keep + 1);
        len = keep;
    }

    va_start(ap, format);
    vsnprintf(e->tale + len, sizeof e->tale - len, format, ap);
    va_end(ap);
}

static void settle_entry(struct asked *a, int err)
{
    struct entry *e = a->entry;
    bool maybe = lapse_outcome_unknown(err);

    e->asked--;
    tell(e, "%c%d ", "scr?dt"[a->verb], err);

    if (a->verb == SCHEDULE && !err) {
        e->exists = a->untold == e->untold ? YES : MAYBE;
        e->soon = a->delay_ms < HOUR;
    } else if (a->verb == SCHEDULE) {
        if (maybe && e->exists == NO) {
            e->exists = MAYBE;
        } else if (!maybe && e->exists == MAYBE && !e->asked && a->before == NO &&
                   err != LAPSE_EEXIST) {
            e->exists = NO;
        }
    } else if (a->verb == CANCEL && !err) {
        e->exists = NO;
    } else if (a->verb == CANCEL && maybe) {
        e->exists = e->exists == YES ? MAYBE : e->exists;
    } else if (a->verb == RESCHEDULE && !err) {
        e->soon = a->delay_ms < HOUR;
    } else if (a->verb == SETTLE_DONE) {
        e->exists = !err ? NO : MAYBE;
    }
}

static void on_answer(struct flow_answer *answer)
{
    struct asked *a = (struct asked *)answer;
    struct play *p = a->p;
    int err = answer->err;
    bool is_right = err == a->want;

    PLAY_ASSERT(err || !a->gives_job || answer->has_job);

    if (play_faulty() || a->want == ANY) {
        is_right = no_lie(err, a->want);
    }
    if (!is_right) {
        play_fail("call %u (%d) of %s answered %s, not %s", p->answered, a->verb,
                  a->entry ? a->entry->id : "none", lapse_strerror(err), lapse_strerror(a->want));
    }

    if (a->entry) {
        settle_entry(a, err);
    }

    if (a->verb >= SETTLE_DONE) {
        p->settled++;
    } else {
        p->answered++;
    }

    if (a->then) {
        a->then(p);
    }
}

static struct asked *ask(struct play *p, enum verb verb, const char *queue, const char *id)
{
    struct asked *a = calloc(1, sizeof *a);

    PLAY_ASSERT(a);
    a->answer.then = on_answer;
    a->p = p;
    a->verb = verb;
    a->gives_job = verb == SCHEDULE || verb == CANCEL || verb == RESCHEDULE;
    a->want = p->want;
    a->then = p->then;
    a->next = p->asks;
    p->asks = a;
    p->want = 0;
    p->then = NULL;
    note_queue(p, queue);

    if (verb != LOOK) {
        a->entry = entry_of(p, queue, id);
        a->before = a->entry->exists;
        a->untold = a->entry->untold;
        a->entry->asked++;
    }

    return a;
}

/* What the call itself returned. */
static int called(struct asked *a, int err)
{
    struct play *p = a->p;

    if (!err) {
        p->asked++;
        if (a->entry) {
            tell(a->entry, "%c ", "SCR?DT"[a->verb]);
        }
        if (a->verb == SCHEDULE && a->entry->exists == NO) {
            a->entry->exists = MAYBE;
            a->entry->runs = 0;
        }
        return 0;
    }

    if (err != a->want) {
        play_fail("call %u (%d) returned %s, not %s", p->asked, a->verb, lapse_strerror(err),
                  lapse_strerror(a->want));
    }

    if (a->entry) {
        a->entry->asked--;
    }

    a->answer.calls = 1;

    return err;
}

/* Makes the call, again where it says ENOMEM and that may be, and returns what it returned. */
#define RETURN_OF(a, call)                                                                    \
    do {                                                                                      \
        int err = LAPSE_ENOMEM;                                                               \
        for (int i = 0; i == 0 || (err == LAPSE_ENOMEM && play_faulty() && i < AGAIN); i++) { \
            err = (call);                                                                     \
        }                                                                                     \
        return called(a, err);                                                                \
    } while (0)

int play_spec(struct play *p, const struct lapse_spec *s)
{
    struct asked *a = ask(p, s->id ? SCHEDULE : LOOK, s->queue, s->id);
    /* at: far, or long past: the scenario says which it is */
    a->delay_ms = s->due.delay_ms + s->due.at_ms;
    a->gives_job = true;
    RETURN_OF(a, lapse_schedule(p->l, s, flow_answered, &a->answer));
}

int play_schedule(struct play *p, const char *queue, const char *id, int64_t delay_ms)
{
    struct lapse_spec s = flow_job_spec(queue, id, delay_ms);
    return play_spec(p, &s);
}

int play_cancel(struct play *p, const char *queue, const char *id)
{
    struct asked *a = ask(p, CANCEL, queue, id);
    RETURN_OF(a, lapse_cancel(p->l, queue, id, 0, flow_answered, &a->answer));
}

int play_reschedule(struct play *p, const char *queue, const char *id, int64_t delay_ms)
{
    struct asked *a = ask(p, RESCHEDULE, queue, id);
    a->delay_ms = delay_ms;
    RETURN_OF(a,
              lapse_reschedule(p->l, queue, id, lapse_in(delay_ms), 0, flow_answered, &a->answer));
}

int play_get(struct play *p, const char *queue, const char *id)
{
    struct asked *a = ask(p, LOOK, queue, id);
    a->gives_job = true;
    RETURN_OF(a, lapse_get(p->l, queue, id, flow_answered, &a->answer));
}

int play_list(struct play *p, const char *queue, enum lapse_state state,
              const struct lapse_job *after, unsigned n)
{
    struct asked *a = ask(p, LOOK, queue, NULL);
    RETURN_OF(a, lapse_list(p->l, queue, state, after, n, flow_list_answered, &a->answer));
}

int play_depth(struct play *p, const char *queue)
{
    struct asked *a = ask(p, LOOK, queue, NULL);
    RETURN_OF(a, lapse_depth(p->l, queue, flow_depth_answered, &a->answer));
}

int play_configure(struct play *p, const char *queue, const char *changes)
{
    struct asked *a = ask(p, LOOK, queue, NULL);
    RETURN_OF(a, lapse_configure(p->l, queue, changes, flow_text_answered, &a->answer));
}

void play_wait(struct play *p)
{
    play_until(p, p->answered == p->asked && p->settled == p->settling);
}

/* ---- handling ---- */
struct handler {
    struct handler *next;
    struct play *p;
    job_fn *fn;
    const char *queue; /* of play_claims() */
};

static void on_job(struct lapse *l, struct lapse_job *job, void *arg)
{
    struct handler *h = arg;
    struct entry *e = entry_of(h->p, lapse_job_queue(job), lapse_job_id(job));

    PLAY_ASSERT(l && lapse_job_state(job) == LAPSE_RUNNING && lapse_job_try(job) > 0);
    PLAY_ASSERT(lapse_job_claimed_us(job) >= lapse_job_due_ms(job) * 1000);
    if (e->exists == NO && !e->asked) {
        play_fail("%s ran after its end: %s", e->id, e->tale);
    }

    tell(e, "!%u ", (unsigned)lapse_job_token(job));
    e->runs++;
    h->p->runs++;

    if (h->p->over) {
        play_done(h->p, job); /* a job that came late, where the answer to its schedule was lost */
    } else {
        h->fn(h->p, job);
    }
}

int play_handle(struct play *p, const char *queue, unsigned max_running, job_fn *fn)
{
    struct lapse_listen_options o = {.size = sizeof o, .max_running = max_running};
    struct handler *h = malloc(sizeof *h);
    int err = LAPSE_ENOMEM;

    PLAY_ASSERT(h);
    *h = (struct handler){p->handlers, p, fn, queue};
    p->handlers = h;
    note_queue(p, queue);
    for (int i = 0; err == LAPSE_ENOMEM && i < AGAIN; i++) {
        err = fn ? lapse_listen(p->l, queue, &o, on_job, h) : lapse_unlisten(p->l, queue);
        PLAY_ASSERT(err != LAPSE_ENOMEM || play_faulty());
    }

    PLAY_ASSERT(err == p->want);
    p->want = 0;

    return err;
}

int play_stop(struct play *p, const char *queue)
{
    return play_handle(p, queue, 0, NULL);
}

static void claim_again(struct lapse *l, struct handler *h);

static void on_claimed(struct lapse *l, int err, struct lapse_job *const *jobs, size_t n, void *arg)
{
    struct handler *h = arg;

    PLAY_ASSERT(l && (!err || n == 0));
    PLAY_ASSERT(!err || play_faulty() || err == LAPSE_ECLOSED);

    for (size_t i = 0; i < n; i++) {
        on_job(l, jobs[i], h);
    }
    if (err != LAPSE_ECLOSED) {
        claim_again(l, h);
    }
}

static void claim_again(struct lapse *l, struct handler *h)
{
    enum { EACH = 2, WAIT_MS = 60000 };
    int err = LAPSE_ENOMEM;

    for (int i = 0; err == LAPSE_ENOMEM && i < AGAIN; i++) {
        err = lapse_claim(l, h->queue, EACH, WAIT_MS, on_claimed, h);
        PLAY_ASSERT(err != LAPSE_ENOMEM || play_faulty());
    }
    PLAY_ASSERT(!err || err == LAPSE_ECLOSED);
}

void play_claims(struct play *p, const char *queue, job_fn *fn)
{
    struct handler *h = malloc(sizeof *h);

    PLAY_ASSERT(h);
    *h = (struct handler){p->handlers, p, fn, queue};
    p->handlers = h;
    note_queue(p, queue);
    claim_again(p->l, h);
}

static struct asked *settle(struct play *p, enum verb verb, struct lapse_job *job)
{
    struct asked *a = ask(p, verb, lapse_job_queue(job), lapse_job_id(job));

    p->settling++;
    tell(a->entry, "%c%u ", "SCR?DT"[a->verb], (unsigned)lapse_job_token(job));
    if (verb == SETTLE_DONE) {
        a->entry->exists = MAYBE;
        a->entry->n_done++;
    }
    return a;
}

void play_done(struct play *p, struct lapse_job *job)
{
    struct asked *a = settle(p, SETTLE_DONE, job);
    lapse_done(job, flow_answered, &a->answer);
}

void play_done_by_token(struct play *p, struct lapse_job *job)
{
    static const struct lapse_settlement done = {.size = sizeof done, .how = LAPSE_HOW_DONE};
    struct asked *a = settle(p, SETTLE_DONE, job);
    const struct entry *e = a->entry;
    uint64_t token = lapse_job_token(job);
    int err = LAPSE_ENOMEM;

    lapse_forget(job);
    for (int i = 0; err == LAPSE_ENOMEM && i < AGAIN; i++) {
        err = lapse_settle(p->l, e->queue, e->id, token, &done, flow_answered, &a->answer);
        PLAY_ASSERT(err != LAPSE_ENOMEM || play_faulty());
    }
    PLAY_ASSERT(!err);
}

void play_done_untold(struct play *p, struct lapse_job *job)
{
    struct entry *e = entry_of(p, lapse_job_queue(job), lapse_job_id(job));

    e->exists = MAYBE;
    e->n_done++;
    e->untold++;
    tell(e, "D%u- ", (unsigned)lapse_job_token(job));
    lapse_done(job, NULL, NULL);
}

void play_retry(struct play *p, struct lapse_job *job)
{
    struct entry *e = entry_of(p, lapse_job_queue(job), lapse_job_id(job));

    if (e->runs > 1) {
        play_done(p, job);
        return;
    }
    struct asked *a = settle(p, SETTLE, job);
    lapse_retry(job, 1, "once more", flow_answered, &a->answer);
}

void play_backoff(struct play *p, struct lapse_job *job)
{
    struct asked *a = settle(p, SETTLE, job);
    lapse_retry(job, LAPSE_BACKOFF, "not yet", flow_answered, &a->answer);
}

void play_failed(struct play *p, struct lapse_job *job)
{
    struct asked *a = settle(p, SETTLE, job);
    lapse_fail(job, "broken for good", flow_answered, &a->answer);
}

void play_keep(struct play *p, struct lapse_job *job)
{
    PLAY_ASSERT(p->n_held < sizeof p->held / sizeof *p->held);
    p->held[p->n_held++] = job;
}

void play_settle_held(struct play *p)
{
    while (p->n_held) {
        play_done(p, p->held[--p->n_held]);
    }
}

void play_drop_held(struct play *p)
{
    while (p->n_held) {
        lapse_done(p->held[--p->n_held], NULL, NULL);
    }
}

bool play_ran(struct play *p)
{
    for (const struct entry *e = p->ledger; e; e = e->next) {
        if (e->asked || (e->exists == YES && e->soon && !e->runs)) {
            return false;
        }
    }
    return true;
}
