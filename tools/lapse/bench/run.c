/* SPDX-License-Identifier: MIT */
/* What is measured, part by part. Each part that needs listeners has its own, so their counts,
 * their memory and their CPU time are that part's alone. What the server spent is the difference of
 * two INFOs, around the whole part. */
#include "bench/bench.h"
#include <stdlib.h>
#include <time.h>

enum {
    FAR_MS = 24 * 3600 * 1000,
    LOOK_MS = 10,
    CALM_MS = 200,
    LEASE_MS = 30000,
    SWEEP_MS = 5000,
    JOB_BYTES = 440
};

static int64_t own_cpu_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static int mark(struct bench *b, const struct crew *c, struct mark *m)
{
    m->us = monotonic_us();
    m->producer_us = own_cpu_us();
    m->listeners_us = crew_cpu_us(c);
    for (unsigned i = 0; i < c->n; i++) {
#define LAPSE_X(name, text) m->stats.name += c->shared->slot[i].stats.name;
        LAPSE_STATS(LAPSE_X)
#undef LAPSE_X
        m->allocs += c->shared->slot[i].allocs;
    }

    return redis_sync_info(&b->redis, &m->info);
}

static int over_ms(void *arg)
{
    return monotonic_ms() >= *(int64_t *)arg;
}

static int wait_ms(struct bench *b, int64_t ms)
{
    int64_t end = monotonic_ms() + ms;
    return bench_until(b, (int)(ms < 1000 ? ms : 1000), over_ms, &end);
}

/* What became of the questions. Redis's refusal (it is full) ends what is asked, and the rest goes
 * on with less. */
static int judge(struct bench *b, const struct ask *a)
{
    int code = a->err ? client_report(&b->c, a->err, b->queue) : DONE;

    if (a->err) {
        message_print("%llu of %llu jobs were stored", (unsigned long long)a->stored,
                      (unsigned long long)a->n);
    }
    return (a->err == LAPSE_EREFUSED || a->err == LAPSE_EDENIED) && code == DOWN ? DONE : code;
}

/* ---- without listeners ---- */
static int store(struct bench *b, struct part *p, uint64_t n)
{
    int code = mark(b, &p->crew, &p->from);

    p->on = 1;
    p->ask.b = b;
    p->ask.n = n;
    p->ask.due = lapse_in(FAR_MS);
    p->ask.apart = 1;
    code = code ? code : ask_many(&p->ask);
    code = code ? code : judge(b, &p->ask);
    return code ? code : mark(b, &p->crew, &p->to);
}

int run_fill(struct bench *b)
{
    int code = redis_sync_info(&b->redis, &b->now);
    int64_t need = ((int64_t)b->waiting + b->burst) * (JOB_BYTES + b->body);

    if (!code && b->now.room >= 0 && need > b->now.room) {
        message_print("%u jobs to wait would take about %lld MiB: this Redis has %lld MiB left",
                      b->waiting + b->burst, (long long)(need >> 20),
                      (long long)(b->now.room >> 20));
        code = USAGE;
    }

    if (!code && b->waiting) {
        b->fill.ask.what = "stored to wait";
        code = store(b, &b->fill, b->waiting);
        b->stored_per_s = ask_per_second(&b->fill.ask);
    }

    return code;
}

int run_schedule(struct bench *b)
{
    enum { PINGS = 1000 };
    uint64_t singles = b->schedule / 10 ? b->schedule / 10 : 1;
    int code = store(b, &b->many, b->schedule);

    b->stored_per_s = ask_per_second(&b->many.ask);
    for (unsigned i = 0; i < PINGS && !code; i++) {
        int64_t us;
        code = redis_sync_ping(&b->redis, &us);
        spread_add(&b->pings, us);
    }

    b->single.ask.one_by_one = 1;
    b->single.ask.waited = &b->answers;

    return code ? code : store(b, &b->single, singles);
}

/* ---- with listeners ---- */
static int begin(struct bench *b, struct part *p)
{
    int code;

    p->on = 1;
    p->ask.b = b;
    code = redis_sync_clock(&b->redis, &p->crew.shared->offset_us, &p->clock_error_us);
    code = code ? code : crew_start(b, &p->crew, b->next);
    code = code ? code : wait_ms(b, CALM_MS); /* they look around when they come */
    return code ? code : mark(b, &p->crew, &p->from);
}

static void gather(struct part *p)
{
    const struct crew *c = &p->crew;

    for (unsigned i = 0; i < c->n; i++) {
        const struct slot *s = &c->shared->slot[i];
        spread_merge(&p->claimed, &s->claimed);
        spread_merge(&p->started, &s->started);
        p->early += s->early;
        p->twice += s->twice;
        p->foreign += s->foreign;
        p->settled_us = s->settled_us > p->settled_us ? s->settled_us : p->settled_us;
    }

    p->settled = crew_done(c);
    p->lost = p->ask.stored > crew_ran(c) ? p->ask.stored - crew_ran(c) : 0;
}

static int end(struct bench *b, struct part *p)
{
    int64_t offset_us = 0;
    int64_t error_us = 0;
    int code = mark(b, &p->crew, &p->to);

    p->rss_kb = crew_rss_kb(&p->crew);
    code = code ? code : redis_sync_clock(&b->redis, &offset_us, &error_us);

    /* Redis's clock may have been set meanwhile */
    p->clock_error_us += llabs(offset_us - p->crew.shared->offset_us);
    crew_stop(b, &p->crew);
    gather(p);
    return code;
}

struct rest { /* until all have run */
    struct bench *b;
    struct part *p;
    uint64_t done;
    int64_t since_ms, patience_ms;
    int code;
};

static int all_done(void *arg)
{
    struct rest *r = arg;
    uint64_t done = crew_done(&r->p->crew);
    int64_t now = monotonic_ms();
    int64_t us = 0;

    if (done != r->done) {
        r->done = done;
        r->since_ms = now;
    }

    if (r->p == &r->b->salvo) { /* and how long another client waits meanwhile */
        r->code = redis_sync_ping(&r->b->redis, &us);
        r->p->ping_us = us > r->p->ping_us ? us : r->p->ping_us;
    }

    return r->code || done >= r->p->ask.stored || now - r->since_ms > r->patience_ms;
}

/* last_ms: when the last of them is due. A job whose listener died comes back after its lease. */
static int wait_done(struct bench *b, struct part *p, int64_t last_ms)
{
    const struct lapse_options *o = &b->g->opts;
    struct rest r = {.b = b, .p = p, .since_ms = last_ms};

    r.patience_ms =
        (o->lease_ms ? o->lease_ms : LEASE_MS) + 2 * (o->sweep_ms ? o->sweep_ms : SWEEP_MS);
    int code = bench_until(b, LOOK_MS, all_done, &r);
    if (!code && !r.code && r.done < p->ask.stored) {
        message_print("%llu jobs were not settled, and none for %lld ms",
                      (unsigned long long)(p->ask.stored - r.done), (long long)r.patience_ms);
    }

    return code ? code : r.code;
}

int run_idle(struct bench *b)
{
    int code = begin(b, &b->idle);
    code = code ? code : wait_ms(b, b->idle_ms);
    return code ? code : end(b, &b->idle);
}

int run_rate(struct bench *b)
{
    struct part *p = &b->steady;
    int code = begin(b, p);

    p->ask.n = p->crew.jobs;
    p->ask.per_second = b->rate;
    p->ask.at_least_us = b->duration_ms * 1000;
    p->ask.due = lapse_in(b->delay_ms);
    code = code ? code : ask_rate(&p->ask);
    code = code ? code : judge(b, &p->ask);
    code = code ? code : wait_done(b, p, monotonic_ms() + b->delay_ms);
    code = code ? code : end(b, p);
    p->settle_us = p->settled_us - p->ask.start_us - b->delay_ms * 1000;

    return code;
}

int run_burst(struct bench *b)
{
    enum { LEAD_MS = 1000, PER_S = 20000 };
    struct part *p = &b->salvo;
    int code = begin(b, p);
    int64_t per_s =
        b->stored_per_s && b->stored_per_s < INT64_C(2) * PER_S ? b->stored_per_s / 2 : PER_S;
    int64_t offset_us = p->crew.shared->offset_us;
    int64_t due_ms;

    due_ms = (monotonic_us() - offset_us) / 1000 + LEAD_MS + (int64_t)b->burst * 1000 / (per_s + 1);
    p->ask.n = b->burst;
    p->ask.due = lapse_at(due_ms);
    p->ask.late_us = due_ms * 1000 + offset_us;
    p->ask.what = "stored for the burst";
    code = code ? code : ask_many(&p->ask);
    code = code ? code : judge(b, &p->ask);
    code = code ? code : wait_done(b, p, p->ask.late_us / 1000);
    code = code ? code : end(b, p);
    p->settle_us = p->settled_us - p->ask.late_us;

    return code;
}
