/* SPDX-License-Identifier: MIT */
#include "crew.h"
#include <ev.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { IN_FLIGHT = 2000, TICK_MS = 2, AT_ONCE = 3 };

/* ---- lines ---- */
int history_open(const char *path)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        _exit(124);
    }
    return fd;
}

int64_t history_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000 + t.tv_nsec;
}

void history_line(int fd, const char *proc, const char *format, ...)
{
    char line[1024];
    int n = snprintf(line, sizeof line, "{\"proc\":\"%s\",\"mono_ns\":%" PRId64 ",", proc,
                     history_ns());
    va_list ap;

    va_start(ap, format);
    n += vsnprintf(line + n, sizeof line - (size_t)n, format, ap);
    va_end(ap);
    if ((size_t)n + 2 >= sizeof line) {
        abort();
    }

    memcpy(line + n, "}\n", 2);
    if (write(fd, line, (size_t)n + 2) != n + 2) {
        _exit(123);
    }
}

/* FNV-1a: what is looked for is damage, not a forger. */
uint64_t body_digest(const void *body, size_t len)
{
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < len; i++) {
        h = (h ^ ((const unsigned char *)body)[i]) * 1099511628211u;
    }
    return h ^ len;
}

struct self {
    const struct crew *c;
    struct ev_loop *loop;
    struct lapse *l;
    int fd;
    long n_calls, n_asked, n_open; /* calls made; of them first ones of a job; without an answer */
    ev_tstamp started;
    long n_timers; /* of do_later() */
    bool odd;      /* work_opts.odd_one is about it */
};
#define SAY(me, ...) history_line((me)->fd, (me)->c->proc, __VA_ARGS__)

static long random_of(long n)
{
    return n > 0 ? random() % n : 0;
}

struct later { /* something to do in a while */
    ev_timer timer;
    struct self *me;
    void (*act)(struct self *me, void *arg);
    void *arg;
};

static void on_later(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct later *later = timer->data;

    (void)loop;
    (void)events;
    later->me->n_timers--;
    later->act(later->me, later->arg);
    free(later);
}

static void do_later(struct self *me, int64_t ms, void (*act)(struct self *, void *), void *arg)
{
    struct later *later = calloc(1, sizeof *later);

    if (!later) {
        _exit(122);
    }

    *later = (struct later){.me = me, .act = act, .arg = arg};
    ev_timer_init(&later->timer, on_later, (double)ms / 1000, 0.);
    later->timer.data = later;
    ev_timer_start(me->loop, &later->timer);
    me->n_timers++;
}

struct call {
    struct self *me;
    long number;
    char op[12], id[64];
    bool again; /* may be followed by a cancel or a reschedule */
};

static struct call *new_call(struct self *me, const char *op, const char *id)
{
    struct call *call = calloc(1, sizeof *call);

    if (!call) {
        _exit(122);
    }

    call->me = me;
    call->number = ++me->n_calls;
    snprintf(call->op, sizeof call->op, "%s", op);
    snprintf(call->id, sizeof call->id, "%s", id);
    me->n_open++;
    me->c->shared->n_asked++;
    return call;
}

static const char *outcome_of(int err)
{
    return err == 0 ? "ok" : lapse_outcome_unknown(err) ? "info" : "fail";
}

static const char *name_of(int err)
{
    switch (err) {
#define LAPSE_X(name, number, did, text) \
    case LAPSE_##name: return #name;
        LAPSE_ERRORS(LAPSE_X)
#undef LAPSE_X
    }
    return "";
}

static void answered(struct call *call, int err, const char *more)
{
    SAY(call->me, "\"call\":%ld,\"op\":\"%s\",\"job\":\"%s\",\"outcome\":\"%s\",\"err\":\"%s\"%s",
        call->number, call->op, call->id, outcome_of(err), name_of(err), more);
    call->me->n_open--;
    call->me->c->shared->n_answered++;
    free(call);
}

static void ask(struct self *me, const char *op, const char *id, bool again);

/* ---- a listener ---- */
static void on_settled(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    (void)l;
    (void)job;
    answered(arg, err, "");
}

static void settle(struct self *me, void *arg)
{
    struct lapse_job *job = arg;
    const struct work_opts *o = me->c->o;
    long dice = random_of(1000);
    long wait_ms = random_of(2) ? LAPSE_BACKOFF : random_of(o->backoff_ms + 1);
    const char *op = dice < o->retry ? "nack" : dice < o->retry + o->fail ? "dead" : "ack";
    int64_t least_ms = wait_ms < 0 ? o->backoff_ms * 3 / 4
                                   : wait_ms; /* back-off: a quarter of it at most is jitter */
    struct call *call = new_call(me, op, lapse_job_id(job));
    char id[sizeof call->id];

    strcpy(id, call->id);
    SAY(me,
        "\"call\":%ld,\"op\":\"%s\",\"job\":\"%s\",\"outcome\":\"asked\",\"token\":%" PRIu64
        ",\"lease_until\":%" PRId64 ",\"least\":%" PRId64,
        call->number, op, call->id, lapse_job_token(job), lapse_job_until_ms(job), least_ms);

    if (strcmp(op, "nack") == 0) {
        lapse_retry(job, wait_ms, "said so", on_settled, call);
    } else if (strcmp(op, "dead") == 0) {
        lapse_fail(job, "said so", on_settled, call);
    } else {
        lapse_done(job, on_settled, call);
    }

    if (strcmp(op, "ack") == 0 && random_of(1000) < o->anew) {
        ask(me, "enqueue", id, false);
    }
}

static void on_job(struct lapse *l, struct lapse_job *job, void *arg)
{
    struct self *me = arg;
    const struct work_opts *o = me->c->o;
    size_t len;
    const void *body = lapse_job_body(job, &len);

    (void)l;
    SAY(me,
        "\"op\":\"start\",\"job\":\"%s\",\"token\":%" PRIu64
        ",\"attempt\":%u,\"tries\":%u,\"due\":%" PRId64 ",\"redis_us\":%" PRId64
        ",\"lease_until\":%" PRId64 ",\"via\":%d,\"payload\":\"%016" PRIx64 "\"",
        lapse_job_id(job), lapse_job_token(job), lapse_job_try(job),
        lapse_job_tries(job) == LAPSE_FOREVER ? 0 : lapse_job_tries(job), lapse_job_due_ms(job),
        lapse_job_claimed_us(job), lapse_job_until_ms(job), (int)lapse_job_via(job),
        body_digest(body, len));
    me->c->shared->n_starts++;
    if (me->odd) {
        poll(NULL, 0, (int)o->odd_one.block_ms); /* and so its loop */
    }

    if (me->odd && o->odd_one.hold_ms) {
        do_later(me, o->odd_one.hold_ms, settle, job);
    } else if (o->hold_ms) {
        do_later(me, random_of(o->hold_ms + 1), settle, job);
    } else {
        settle(me, job);
    }
}

static void on_closed(void *arg)
{
    (void)arg;
    _exit(0);
}

static void on_term(struct ev_loop *loop, ev_signal *w, int events)
{
    (void)loop;
    (void)events;
    lapse_close(((struct self *)w->data)->l, 5000, on_closed, NULL);
}

static void be_born(struct self *me, const struct crew *c, const char *url, bool odd)
{
    struct lapse_options o = c->o->lapse;

    *me = (struct self){.c = c, .fd = history_open(c->path), .loop = ev_loop_new(0), .odd = odd};
    o.url = url ? url : o.url;
    if (odd) {
        o.flags |= c->o->odd_one.flags;
        o.max_running = c->o->odd_one.max_running ? c->o->odd_one.max_running : o.max_running;
    }

    srandom(c->seed);
    if (!me->loop || lapse_open(&me->l, me->loop, &o)) {
        _exit(125);
    }
}

void crew_listen(const struct crew *c)
{
    struct self me;
    ev_signal term;

    be_born(&me, c, c->number < c->o->listeners - c->o->direct ? c->o->listener_url : NULL,
            c->number < c->o->odd);
    if (lapse_listen(me.l, WORK_QUEUE, NULL, on_job, &me)) {
        _exit(125);
    }

    ev_signal_init(&term, on_term, SIGTERM);
    term.data = &me;
    ev_signal_start(me.loop, &term);
    ev_run(me.loop, 0);
    _exit(126);
}

/* ---- a producer ---- */
static void cancel_it(struct self *me, void *id)
{
    ask(me, "cancel", id, false);
    free(id);
}

static void reschedule_it(struct self *me, void *id)
{
    ask(me, "reschedule", id, false);
    free(id);
}

static void on_answer(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    static const char *const state[] = {"absent", "waiting", "running", "dead"};
    struct call *call = arg;
    struct self *me = call->me;
    const struct work_opts *o = me->c->o;
    char more[96] = "";
    long dice = random_of(1000);

    (void)l;

    if (strcmp(call->op, "get") == 0) {
        snprintf(more, sizeof more, ",\"state\":\"%s\"", state[job ? lapse_job_state(job) : 0]);
    } else if (job && strcmp(call->op, "cancel") != 0) {
        snprintf(more, sizeof more, ",\"due\":%" PRId64 ",\"created\":%d", lapse_job_due_ms(job),
                 strcmp(call->op, "enqueue") ? 1 : lapse_job_created(job));
    }

    if (!err && call->again && dice < o->cancel + o->reschedule) {
        do_later(me, random_of(o->delay_ms + 1), dice < o->cancel ? cancel_it : reschedule_it,
                 strdup(call->id));
    }

    answered(call, err, more);
}

static int enqueue(struct self *me, struct call *call, int64_t delay_ms)
{
    static const char *const conflict[] = {"reject", "keep", "replace"};
    static unsigned char body[1 << 20];
    const struct work_opts *o = me->c->o;
    struct lapse_spec s = lapse_spec_init();

    s.queue = WORK_QUEUE;
    s.id = call->id;
    s.body = body;
    s.body_len = (size_t)random_of((long)o->body_len + 1);
    for (size_t i = 0; i < s.body_len && i < 64; i++) {
        body[i] = (unsigned char)random();
    }

    s.due = lapse_in(delay_ms);
    s.tries = o->tries;
    s.backoff_ms = o->backoff_ms;
    s.on_conflict = o->ids ? (enum lapse_conflict)random_of(3) : LAPSE_REJECT;
    SAY(me,
        "\"call\":%ld,\"op\":\"enqueue\",\"job\":\"%s\",\"outcome\":\"asked\",\"delay\":%" PRId64
        ",\"conflict\":\"%s\",\"payload\":\"%016" PRIx64 "\"",
        call->number, call->id, delay_ms, conflict[s.on_conflict], body_digest(body, s.body_len));

    return lapse_schedule(me->l, &s, on_answer, call);
}

static void ask(struct self *me, const char *op, const char *id, bool again)
{
    struct call *call = new_call(me, op, id);
    int64_t delay_ms = random_of(1000) < me->c->o->delayed ? random_of(me->c->o->delay_ms + 1) : 0;
    int err;

    call->again = again;

    if (strcmp(op, "enqueue") == 0) {
        err = enqueue(me, call, delay_ms);
    } else {
        SAY(me, "\"call\":%ld,\"op\":\"%s\",\"job\":\"%s\",\"outcome\":\"asked\"", call->number, op,
            id);
        err = strcmp(op, "cancel") == 0 ? lapse_cancel(me->l, WORK_QUEUE, id, 0, on_answer, call)
              : strcmp(op, "reschedule") == 0
                  ? lapse_reschedule(me->l, WORK_QUEUE, id, lapse_in(delay_ms), 0, on_answer, call)
                  : lapse_get(me->l, WORK_QUEUE, id, on_answer, call);
    }

    if (err) {
        answered(call, err, "");
    }
}

/* Of a few ids in turn: what comes back of one has others behind it. */
static void ask_anything(struct self *me)
{
    static const char *const op[] = {"enqueue", "enqueue",    "enqueue",
                                     "cancel",  "reschedule", "get"};
    const struct work_opts *o = me->c->o;
    char id[AT_ONCE][32];
    long n = o->turn > 1 ? AT_ONCE : 1;

    for (long i = 0; i < n; i++) {
        snprintf(id[i], sizeof id[i], "s%ld", random_of(o->ids));
    }

    for (long i = 0; i < n * o->turn; i++) {
        ask(me, op[random_of(6)], id[i % n], false);
    }

    me->n_asked += n * o->turn;
}

static void on_tick(struct ev_loop *loop, ev_timer *w, int events)
{
    struct self *me = w->data;
    const struct crew *c = me->c;
    double due = c->per_s ? (ev_now(loop) - me->started) * (double)c->per_s : 1e18;

    (void)events;

    while (me->n_asked < c->jobs && me->n_open < IN_FLIGHT && (double)me->n_asked < due) {
        char id[40];
        if (c->o->ids) {
            ask_anything(me);
        } else {
            snprintf(id, sizeof id, "%s-%ld", c->proc, me->n_asked++);
            ask(me, "enqueue", id, true);
        }
    }

    if (me->n_asked >= c->jobs && me->n_open == 0 && me->n_timers == 0) {
        ev_timer_stop(loop, w);
        lapse_close(me->l, 0, on_closed, NULL);
    }
}

void crew_produce(const struct crew *c)
{
    struct self me;
    ev_timer tick;

    be_born(&me, c, c->o->producer_url, false);
    me.started = ev_now(me.loop);
    ev_timer_init(&tick, on_tick, 0., (double)TICK_MS / 1000);
    tick.data = &me;
    ev_timer_start(me.loop, &tick);
    ev_run(me.loop, 0);
    _exit(126);
}
