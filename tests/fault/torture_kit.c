/* SPDX-License-Identifier: MIT */
#include "torture.h"
#include "test.h"
#include <stdarg.h>
#include <stdio.h>

enum { AGAIN = 10000 }; /* for ENOMEM at random */
enum verb { SCHEDULE, CANCEL, RESCHEDULE, LOOK, SETTLE_DONE, SETTLE };
struct asked {
    struct asked *next;
    struct torture *t;
    struct entry *entry;
    enum verb verb;
    enum exists before;
    int want;
    scene_fn *then;
    unsigned calls, untold;
    int64_t delay_ms;
};

static void note_queue(struct torture *t, const char *queue)
{
    size_t i = 0;

    while (i < QUEUES && t->queues[i] && strcmp(t->queues[i], queue)) {
        i++;
    }
    T_ASSERT(i < QUEUES);
    t->queues[i] = t->queues[i] ? t->queues[i] : strdup(queue);
}

static struct entry *entry_of(struct torture *t, const char *queue, const char *id)
{
    struct entry *e = t->ledger;

    while (e && (strcmp(e->queue, queue) || strcmp(e->id, id))) {
        e = e->next;
    }

    if (!e) {
        e = calloc(1, sizeof *e);
        T_ASSERT(e && strlen(queue) < sizeof e->queue && strlen(id) < sizeof e->id);
        note_queue(t, queue);
        strcpy(e->queue, queue);
        strcpy(e->id, id);
        e->next = t->ledger;
        t->ledger = e;
    }

    return e;
}

static void on_turn_over(struct ev_loop *loop, ev_timer *w, int events)
{
    (void)loop;
    (void)w;
    (void)events;
}

bool t_turn(struct torture *t, int64_t end_ms)
{
    ev_timer over; /* a condition may be Redis's */

    if (test_now_ms() >= end_ms) {
        return false;
    }

    ev_timer_init(&over, on_turn_over, .02, 0.);
    ev_now_update(t->loop);
    ev_timer_start(t->loop, &over);
    ev_run(t->loop, EVRUN_ONCE);
    ev_timer_stop(t->loop, &over);
    return true;
}

bool t_faulty(void)
{
    return inject_fired() || inject_outside();
}

/* ---- handles ---- */
struct lapse *t_open(struct torture *t)
{
    struct lapse *l = NULL;
    int err = LAPSE_ENOMEM;
    int want = t->want;

    t->want = 0;

    for (int i = 0; err == LAPSE_ENOMEM && i < AGAIN; i++) {
        err = lapse_open(&l, t->loop, &t->opts);
        T_ASSERT(!err == (l != NULL));
        T_ASSERT(err != LAPSE_ENOMEM || t_faulty());
    }

    if (err != want) {
        t_fail("lapse_open: %s", lapse_strerror(err));
    }

    for (int i = 0; l && i < HANDLES; i++) {
        if (!t->handles[i]) {
            t->handles[i] = l;
            break;
        }
    }

    t->l = t->l ? t->l : l;

    return l;
}

static void forget(struct torture *t, const struct lapse *l)
{
    for (int i = 0; i < HANDLES; i++) {
        t->handles[i] = t->handles[i] == l ? NULL : t->handles[i];
    }
    t->l = t->l == l ? NULL : t->l;
}

static void on_closed(void *arg)
{
    ((struct torture *)arg)->n_closed++;
}

void t_close(struct torture *t, struct lapse *l, int64_t grace_ms)
{
    bool first = false;

    for (int i = 0; i < HANDLES; i++) {
        first |= t->handles[i] == l;
    }
    forget(t, l);
    t->n_closing += first;
    lapse_close(l, grace_ms, on_closed, t);
}

void t_abandon(struct torture *t, struct lapse *l)
{
    forget(t, l);
    lapse_abandon(l);
    t->asked = t->answered = t->settling = t->settled =
        0; /* nobody is told; one handle in such a scene */
    for (struct entry *e = t->ledger; e; e = e->next) {
        if (e->asked) {
            e->exists = MAYBE;
            e->asked = 0;
        }
    }
}

void t_all_closed(struct torture *t)
{
    t_until(t, t->n_closed == t->n_closing);
    t_wait(t);
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
    case LAPSE_ECLOSED: return true; /* also where an earlier call of the scene went wrong */
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

static void answer(struct asked *a, int err)
{
    struct torture *t = a->t;

    if (a->calls++) {
        t_fail("a second callback of one call");
    }

    if (t_faulty() || a->want == ANY ? !no_lie(err, a->want) : err != a->want) {
        t_fail("call %u (%d) of %s answered %s, not %s", t->answered, a->verb,
               a->entry ? a->entry->id : "none", lapse_strerror(err), lapse_strerror(a->want));
    }

    if (a->entry) {
        settle_entry(a, err);
    }

    if (a->verb >= SETTLE_DONE) {
        t->settled++;
    } else {
        t->answered++;
    }

    if (a->then) {
        a->then(t);
    }
}

static struct asked *ask(struct torture *t, enum verb verb, const char *queue, const char *id)
{
    struct asked *a = calloc(1, sizeof *a);

    T_ASSERT(a);
    a->t = t;
    a->verb = verb;
    a->want = t->want;
    a->then = t->then;
    a->next = t->asks;
    t->asks = a;
    t->want = 0;
    t->then = NULL;
    note_queue(t, queue);

    if (verb != LOOK) {
        a->entry = entry_of(t, queue, id);
        a->before = a->entry->exists;
        a->untold = a->entry->untold;
        a->entry->asked++;
    }

    return a;
}

/* What the call itself returned. */
static int called(struct asked *a, int err)
{
    struct torture *t = a->t;

    if (!err) {
        t->asked++;
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
        t_fail("call %u (%d) returned %s, not %s", t->asked, a->verb, lapse_strerror(err),
               lapse_strerror(a->want));
    }

    if (a->entry) {
        a->entry->asked--;
    }

    a->calls = 1;

    return err;
}

#define CALL(call)                                                    \
    int err;                                                          \
    int left = AGAIN;                                                 \
    while ((err = (call)) == LAPSE_ENOMEM && t_faulty() && --left) {} \
    return called(a, err)

static void on_answer(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct asked *a = arg;
    T_ASSERT(l && (!job || !err));
    T_ASSERT(!job || (lapse_job_id(job) && lapse_job_body(job, NULL)));
    T_ASSERT(err || a->verb >= SETTLE_DONE || job);
    answer(a, err);
}

static void on_list(struct lapse *l, int err, const struct lapse_job *const *jobs, size_t n,
                    void *arg)
{
    T_ASSERT(l && (!err || !n));
    for (size_t i = 0; i < n; i++) {
        T_ASSERT(lapse_job_id(jobs[i]));
    }
    answer(arg, err);
}

static void on_depth(struct lapse *l, int err, const struct lapse_depth *d, void *arg)
{
    T_ASSERT(l && !err == (d != NULL));
    answer(arg, err);
}

struct lapse_spec t_job(const char *queue, const char *id, int64_t delay_ms)
{
    struct lapse_spec s = lapse_spec_init();
    s.queue = queue;
    s.id = id;
    s.due = lapse_in(delay_ms);
    return s;
}

int t_spec(struct torture *t, const struct lapse_spec *s)
{
    struct asked *a = ask(t, s->id ? SCHEDULE : LOOK, s->queue, s->id);
    a->delay_ms =
        s->due.delay_ms + s->due.at_ms; /* at: far, or long past: the scene says which it is */
    CALL(lapse_schedule(t->l, s, on_answer, a));
}

int t_schedule(struct torture *t, const char *queue, const char *id, int64_t delay_ms)
{
    struct lapse_spec s = t_job(queue, id, delay_ms);
    return t_spec(t, &s);
}

int t_cancel(struct torture *t, const char *queue, const char *id)
{
    struct asked *a = ask(t, CANCEL, queue, id);
    CALL(lapse_cancel(t->l, queue, id, 0, on_answer, a));
}

int t_reschedule(struct torture *t, const char *queue, const char *id, int64_t delay_ms)
{
    struct asked *a = ask(t, RESCHEDULE, queue, id);
    a->delay_ms = delay_ms;
    CALL(lapse_reschedule(t->l, queue, id, lapse_in(delay_ms), 0, on_answer, a));
}

int t_get(struct torture *t, const char *queue, const char *id)
{
    struct asked *a = ask(t, LOOK, queue, id);
    CALL(lapse_get(t->l, queue, id, on_answer, a));
}

int t_list(struct torture *t, const char *queue, enum lapse_state state,
           const struct lapse_job *after, unsigned n)
{
    struct asked *a = ask(t, LOOK, queue, NULL);
    CALL(lapse_list(t->l, queue, state, after, n, on_list, a));
}

int t_depth(struct torture *t, const char *queue)
{
    struct asked *a = ask(t, LOOK, queue, NULL);
    CALL(lapse_depth(t->l, queue, on_depth, a));
}

void t_wait(struct torture *t)
{
    t_until(t, t->answered == t->asked && t->settled == t->settling);
}

/* ---- handling ---- */
struct handler {
    struct handler *next;
    struct torture *t;
    job_fn *fn;
};

static void on_job(struct lapse *l, struct lapse_job *job, void *arg)
{
    struct handler *h = arg;
    struct entry *e = entry_of(h->t, lapse_job_queue(job), lapse_job_id(job));

    T_ASSERT(l && lapse_job_state(job) == LAPSE_RUNNING && lapse_job_try(job) > 0);
    T_ASSERT(lapse_job_claimed_us(job) >= lapse_job_due_ms(job) * 1000);
    if (e->exists == NO && !e->asked) {
        t_fail("%s ran after its end: %s", e->id, e->tale);
    }

    tell(e, "!%u ", (unsigned)lapse_job_token(job));
    e->runs++;
    h->t->runs++;

    if (h->t->over) {
        t_done(h->t, job); /* a job that came late, where the answer to its schedule was lost */
    } else {
        h->fn(h->t, job);
    }
}

int t_handle(struct torture *t, const char *queue, unsigned max_running, job_fn *fn)
{
    struct lapse_listen_options o = {sizeof o, max_running};
    struct handler *h = malloc(sizeof *h);
    int err = LAPSE_ENOMEM;

    T_ASSERT(h);
    *h = (struct handler){t->handlers, t, fn};
    t->handlers = h;
    note_queue(t, queue);
    for (int i = 0; err == LAPSE_ENOMEM && i < AGAIN; i++) {
        err = fn ? lapse_listen(t->l, queue, &o, on_job, h) : lapse_unlisten(t->l, queue);
        T_ASSERT(err != LAPSE_ENOMEM || t_faulty());
    }

    T_ASSERT(err == t->want);
    t->want = 0;

    return err;
}

int t_stop(struct torture *t, const char *queue)
{
    return t_handle(t, queue, 0, NULL);
}

static struct asked *settle(struct torture *t, enum verb verb, struct lapse_job *job)
{
    struct asked *a = ask(t, verb, lapse_job_queue(job), lapse_job_id(job));

    t->settling++;
    tell(a->entry, "%c%u ", "SCR?DT"[a->verb], (unsigned)lapse_job_token(job));
    if (verb == SETTLE_DONE) {
        a->entry->exists = MAYBE;
        a->entry->n_done++;
    }
    return a;
}

void t_done(struct torture *t, struct lapse_job *job)
{
    struct asked *a = settle(t, SETTLE_DONE, job);
    lapse_done(job, on_answer, a);
}

void t_done_untold(struct torture *t, struct lapse_job *job)
{
    struct entry *e = entry_of(t, lapse_job_queue(job), lapse_job_id(job));

    e->exists = MAYBE;
    e->n_done++;
    e->untold++;
    tell(e, "D%u- ", (unsigned)lapse_job_token(job));
    lapse_done(job, NULL, NULL);
}

void t_retry(struct torture *t, struct lapse_job *job)
{
    struct entry *e = entry_of(t, lapse_job_queue(job), lapse_job_id(job));

    if (e->runs > 1) {
        t_done(t, job);
        return;
    }
    struct asked *a = settle(t, SETTLE, job);
    lapse_retry(job, 1, "once more", on_answer, a);
}

void t_backoff(struct torture *t, struct lapse_job *job)
{
    struct asked *a = settle(t, SETTLE, job);
    lapse_retry(job, LAPSE_BACKOFF, "not yet", on_answer, a);
}

void t_failed(struct torture *t, struct lapse_job *job)
{
    struct asked *a = settle(t, SETTLE, job);
    lapse_fail(job, "broken for good", on_answer, a);
}

void t_keep(struct torture *t, struct lapse_job *job)
{
    T_ASSERT(t->n_held < sizeof t->held / sizeof *t->held);
    t->held[t->n_held++] = job;
}

void t_settle_held(struct torture *t)
{
    while (t->n_held) {
        t_done(t, t->held[--t->n_held]);
    }
}

void t_drop_held(struct torture *t)
{
    while (t->n_held) {
        lapse_done(t->held[--t->n_held], NULL, NULL);
    }
}

bool t_ran(struct torture *t)
{
    for (const struct entry *e = t->ledger; e; e = e->next) {
        if (e->asked || (e->exists == YES && e->soon && !e->runs)) {
            return false;
        }
    }
    return true;
}
