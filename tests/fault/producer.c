/* SPDX-License-Identifier: MIT */
#include "producer.h"
#include <ev.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { IN_FLIGHT = 2000, TICK_MS = 2, MOST_AT_ONCE = 3, MOST_RANDOM_BYTES = 64 };
enum { NO_MEMORY = 122, NOT_STARTED = 125, LOOP_ENDED = 126 };

static long random_of(long n)
{
    return n > 0 ? random() % n : 0;
}

static void producer_ask(struct producer *p, const char *op, const char *id, bool first);

/* ---- what it asks later of a job that it scheduled ---- */
struct planned {
    ev_timer timer;
    struct producer *producer;
    const char *op;
    char id[64];
};

static void on_planned(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct planned *planned = timer->data;
    struct producer *p = planned->producer;

    (void)loop;
    (void)events;
    p->n_planned--;
    producer_ask(p, planned->op, planned->id, false);
    free(planned);
}

static void plan(struct producer *p, int64_t in_ms, const char *op, const char *id)
{
    struct planned *planned = calloc(1, sizeof *planned);

    if (!planned) {
        _exit(NO_MEMORY);
    }

    planned->producer = p;
    planned->op = op;
    snprintf(planned->id, sizeof planned->id, "%s", id);
    ev_timer_init(&planned->timer, on_planned, (double)in_ms / 1000, 0.);
    planned->timer.data = planned;
    ev_timer_start(p->loop, &planned->timer);
    p->n_planned++;
}

/* ---- calls ---- */
struct asked {
    struct producer *producer;
    struct journal_call *call;
    bool first; /* of its job; a cancel or a reschedule may follow */
};

static void what_the_answer_says(char *out, size_t size, const char *op,
                                 const struct lapse_job *job)
{
    static const char *const state[] = {"absent", "waiting", "running", "dead"};
    int created = 1;

    if (strcmp(op, "get") == 0 || (job && strcmp(op, "cancel") == 0)) {
        snprintf(out, size, ",\"state\":\"%s\"", state[job ? lapse_job_state(job) : 0]);
        return;
    }
    if (!job) {
        *out = '\0';
        return;
    }

    if (strcmp(op, "enqueue") == 0) {
        created = lapse_job_created(job);
    }
    snprintf(out, size, ",\"due\":%" PRId64 ",\"created\":%d", lapse_job_due_ms(job), created);
}

static void asked_answered(struct asked *a, int err, const char *more)
{
    journal_answered(a->call, err, more);
    free(a);
}

static void on_answer(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct asked *a = arg;
    struct producer *p = a->producer;
    const struct work_opts *o = p->opts;
    long dice = random_of(1000);
    char more[96];

    (void)l;
    what_the_answer_says(more, sizeof more, a->call->op, job);

    if (!err && a->first && dice < o->cancel + o->reschedule) {
        const char *op = dice < o->cancel ? "cancel" : "reschedule";
        plan(p, random_of(o->delay_ms + 1), op, a->call->id);
    }

    asked_answered(a, err, more);
}

static int ask_to_enqueue(struct producer *p, const char *id, struct asked *a, int64_t delay_ms)
{
    static const char *const conflict[] = {"reject", "keep", "replace"};
    static unsigned char body[1 << 20];
    const struct work_opts *o = p->opts;
    struct lapse_spec s = lapse_spec_init();
    char queue[WORK_QUEUE_NAME];

    s.queue = work_queue_of(o, id, queue);
    s.id = id;
    s.body = body;
    s.body_len = (size_t)random_of((long)o->body_len + 1);
    for (size_t i = 0; i < s.body_len && i < MOST_RANDOM_BYTES; i++) {
        body[i] = (unsigned char)random();
    }

    s.due = lapse_in(delay_ms);
    s.tries = o->tries;
    s.backoff_ms = o->backoff_ms;
    s.on_conflict = o->ids ? (enum lapse_conflict)random_of(3) : LAPSE_REJECT;

    a->call =
        journal_asked(p->journal, "enqueue", id,
                      ",\"delay\":%" PRId64 ",\"conflict\":\"%s\",\"payload\":\"%016" PRIx64 "\"",
                      delay_ms, conflict[s.on_conflict], journal_digest(body, s.body_len));

    return lapse_schedule(p->l, &s, on_answer, a);
}

static int ask_else(struct producer *p, const char *op, const char *id, struct asked *a,
                    int64_t delay_ms)
{
    bool stops = p->opts->stops && strcmp(op, "cancel") == 0;
    char name[WORK_QUEUE_NAME];
    const char *queue = work_queue_of(p->opts, id, name);

    a->call = journal_asked(p->journal, op, id, "%s", stops ? ",\"running\":1" : "");

    if (strcmp(op, "cancel") == 0) {
        unsigned flags = stops ? LAPSE_RUNNING_TOO : 0;
        return lapse_cancel(p->l, queue, id, flags, on_answer, a);
    }
    if (strcmp(op, "reschedule") == 0) {
        return lapse_reschedule(p->l, queue, id, lapse_in(delay_ms), 0, on_answer, a);
    }
    return lapse_get(p->l, queue, id, on_answer, a);
}

static void producer_ask(struct producer *p, const char *op, const char *id, bool first)
{
    const struct work_opts *o = p->opts;
    struct asked *a = calloc(1, sizeof *a);
    int64_t delay_ms = random_of(1000) < o->delayed ? random_of(o->delay_ms + 1) : 0;
    int err;

    if (!a) {
        _exit(NO_MEMORY);
    }

    a->producer = p;
    a->first = first;
    if (strcmp(op, "enqueue") == 0) {
        err = ask_to_enqueue(p, id, a, delay_ms);
    } else {
        err = ask_else(p, op, id, a, delay_ms);
    }

    if (err) {
        asked_answered(a, err, "");
    }
}

void producer_enqueue_again(void *producer, struct lapse *l, const char *id)
{
    struct producer *p = producer;

    if (random_of(1000) < p->opts->again) {
        p->l = l;
        producer_ask(p, "enqueue", id, false);
    }
}

/* Of a few ids in turn: what comes back of one has others behind it. */
static void ask_anything(struct producer *p)
{
    static const char *const op[] = {"enqueue", "enqueue",    "enqueue",
                                     "cancel",  "reschedule", "get"};
    const struct work_opts *o = p->opts;
    char id[MOST_AT_ONCE][32];
    long n = o->turn > 1 ? MOST_AT_ONCE : 1;

    for (long i = 0; i < n; i++) {
        snprintf(id[i], sizeof id[i], "s%ld", random_of(o->ids));
    }

    for (long i = 0; i < n * o->turn; i++) {
        producer_ask(p, op[random_of(6)], id[i % n], false);
    }

    p->n_asked += n * o->turn;
}

/* ---- its life ---- */
static void on_closed(void *arg)
{
    (void)arg;
    _exit(0);
}

static bool may_ask(const struct producer *p, double now)
{
    if (p->n_asked >= p->jobs || p->journal->n_open >= IN_FLIGHT) {
        return false;
    }
    return p->per_s == 0 || (double)p->n_asked < (now - p->started) * (double)p->per_s;
}

static void on_tick(struct ev_loop *loop, ev_timer *w, int events)
{
    struct producer *p = w->data;
    double now = ev_now(loop);

    (void)events;

    while (may_ask(p, now)) {
        char id[40];
        if (p->opts->ids) {
            ask_anything(p);
        } else {
            snprintf(id, sizeof id, "%s-%ld", p->journal->proc, p->n_asked++);
            producer_ask(p, "enqueue", id, true);
        }
    }

    if (p->n_asked >= p->jobs && p->journal->n_open == 0 && p->n_planned == 0) {
        ev_timer_stop(loop, w);
        lapse_close(p->l, 0, on_closed, NULL);
    }
}

void producer_run(void *producer)
{
    struct producer *p = producer;
    struct lapse_options o = p->opts->lapse;
    ev_timer tick;

    if (p->opts->producer_url) {
        o.url = p->opts->producer_url;
    }

    journal_open(p->journal);
    p->loop = ev_loop_new(0);
    srandom(p->seed);
    if (!p->loop || lapse_open(&p->l, p->loop, &o)) {
        _exit(NOT_STARTED);
    }

    p->started = ev_now(p->loop);
    ev_timer_init(&tick, on_tick, 0., (double)TICK_MS / 1000);
    tick.data = p;
    ev_timer_start(p->loop, &tick);
    ev_run(p->loop, 0);
    _exit(LOOP_ENDED);
}
