/* SPDX-License-Identifier: MIT */
/* The phases, one after the other. What the server spends on one is the difference of two INFOs,
 * around the phase. */
#include "bench/run.h"
#include "bench/stops.h"
#include "cli/message.h"
#include "cli/values.h"
#include <stdlib.h>

enum {
    FAR_MS = 24 * 3600 * 1000,
    LOOK_MS = 10,
    SETTLED_MS = 200, /* after this a listener has done what it does at its start */
    LEASE_MS = 30000, /* the library's defaults */
    SWEEP_MS = 5000,
    JOB_BYTES = 440, /* that a waiting job takes in Redis, besides its body */
    PINGS = 1000,
    BURST_LEAD_MS = 1000,
    BURST_STORED_PER_S = 20000,
};

/* ---- what all phases do ---- */
/* Reports what the requests ended with. A refusal by Redis (it is full) ends the phase's requests,
 * and the rest goes on with fewer jobs. */
static int report_load(struct bench *b, const struct load *load)
{
    if (!load->err) {
        return DONE;
    }

    int code = client_report(&b->loop.client, load->err, b->plan.queue);
    bool is_refusal = load->err == LAPSE_EREFUSED || load->err == LAPSE_EDENIED;
    message_print("%llu of %llu jobs were stored", (unsigned long long)load->stored,
                  (unsigned long long)load->n);

    return is_refusal && code == DOWN ? DONE : code;
}

static void print_stored_progress(void *arg)
{
    const struct phase *p = arg;
    message_print("%s: %llu of %llu jobs are stored, %lld/s", p->name,
                  (unsigned long long)p->load.stored, (unsigned long long)p->load.n,
                  (long long)load_rate(&p->load));
}

/* ---- without listeners ---- */
static int store(struct bench *b, struct phase *p, uint64_t n)
{
    p->on = true;
    p->load.producer = &b->producer;
    p->load.n = n;
    p->load.due = lapse_in(FAR_MS);
    p->load.spaced = true;

    int code = snapshot_take(&p->before, &b->queue, NULL);
    if (code) {
        return code;
    }

    loop_set_progress(&b->loop, print_stored_progress, p);
    code = load_in_bulk(&p->load);
    loop_set_progress(&b->loop, NULL, NULL);
    if (!code) {
        code = report_load(b, &p->load);
    }

    return code ? code : snapshot_take(&p->after, &b->queue, NULL);
}

static int check_memory_left(const struct bench *b)
{
    int64_t jobs = (int64_t)b->plan.waiting + b->plan.burst;
    int64_t needed = jobs * (JOB_BYTES + b->plan.body_len);
    int64_t left = b->redis_at_start.room;

    if (left < 0 || needed <= left) {
        return DONE;
    }

    return usage_errorf("%lld waiting jobs need about %lld MiB: this Redis has %lld MiB left",
                        (long long)jobs, (long long)(needed >> 20), (long long)(left >> 20));
}

static int measure_pings(struct bench *b)
{
    for (int i = 0; i < PINGS; i++) {
        int64_t us;
        int code = redis_sync_ping(bench_queue_server(&b->queue), &us);
        if (code) {
            return code;
        }
        histogram_add(&b->pings, us);
    }

    return DONE;
}

static int run_schedule(struct bench *b)
{
    unsigned singles = b->plan.schedule / 10;
    int code = store(b, &b->schedule, b->plan.schedule);

    if (!code) {
        code = measure_pings(b);
    }
    if (code) {
        return code;
    }

    b->single.load.one_by_one = true;
    b->single.load.answered = &b->answers;

    return store(b, &b->single, singles ? singles : 1);
}

/* ---- with listeners ---- */
static int begin_phase(struct bench *b, struct phase *p)
{
    int64_t offset_us;
    int code = redis_sync_clock(bench_queue_server(&b->queue), &offset_us, &p->clock_error_us);

    p->on = true;
    p->load.producer = &b->producer;
    if (!code) {
        code = listeners_start(&p->listeners, &b->loop, &b->queue, offset_us, b->producer.next);
    }
    if (!code) {
        code = loop_wait(&b->loop, SETTLED_MS + p->listeners.far_ms);
    }

    return code ? code : snapshot_take(&p->before, &b->queue, &p->listeners);
}

static int finish_phase(struct bench *b, struct phase *p)
{
    int64_t offset_us = 0;
    int64_t error_us;
    int code = snapshot_take(&p->after, &b->queue, &p->listeners);

    p->rss_kib = listeners_rss_kib(&p->listeners);
    if (!code) {
        code = redis_sync_clock(bench_queue_server(&b->queue), &offset_us, &error_us);
    }
    if (code) {
        return code;
    }

    /* Redis's clock may have been set meanwhile */
    p->clock_error_us += llabs(offset_us - listeners_clock_offset_us(&p->listeners));
    listeners_stop(&p->listeners, &b->queue);
    phase_collect(p);

    return DONE;
}

static void print_settled_progress(void *arg)
{
    const struct phase *p = arg;
    message_print("%s: %llu of %llu jobs are stored, %llu settled", p->name,
                  (unsigned long long)p->load.stored, (unsigned long long)p->load.n,
                  (unsigned long long)listeners_settled(&p->listeners));
}

/* Waiting until all jobs are settled. */
struct settling {
    struct phase *phase;
    struct redis_sync *pinged; /* how long does another client wait meanwhile? NULL: not asked */
    uint64_t settled;
    int64_t since_ms, patience_ms; /* since the last settle */
    int code;
};

static void measure_ping(struct settling *s)
{
    int64_t us = 0;

    s->code = redis_sync_ping(s->pinged, &us);
    if (us > s->phase->longest_ping_us) {
        s->phase->longest_ping_us = us;
    }
}

static bool is_settled(void *arg)
{
    struct settling *s = arg;
    uint64_t settled = listeners_settled(&s->phase->listeners);
    int64_t now_ms = monotonic_ms();

    if (settled != s->settled) {
        s->settled = settled;
        s->since_ms = now_ms;
    }
    if (s->pinged) {
        measure_ping(s);
    }

    return s->code || settled >= s->phase->load.stored || now_ms - s->since_ms > s->patience_ms;
}

/* A job whose listener died comes back after its lease. */
static int64_t settle_patience_ms(const struct lapse_options *o)
{
    int64_t lease_ms = o->lease_ms ? o->lease_ms : LEASE_MS;
    int64_t sweep_ms = o->sweep_ms ? o->sweep_ms : SWEEP_MS;
    return lease_ms + 2 * sweep_ms;
}

/* last_due_ms: monotonic. */
static int wait_settled(struct bench *b, struct phase *p, int64_t last_due_ms)
{
    struct settling s = {
        .phase = p,
        .pinged = p == &b->burst ? bench_queue_server(&b->queue) : NULL,
        .since_ms = last_due_ms,
        .patience_ms = settle_patience_ms(&b->g->opts),
    };

    int code = loop_until(&b->loop, LOOK_MS, is_settled, &s);
    if (code || s.code) {
        return code ? code : s.code;
    }

    if (s.settled < p->load.stored) {
        message_print("%llu jobs were not settled, and none for %lld ms",
                      (unsigned long long)(p->load.stored - s.settled), (long long)s.patience_ms);
    }

    return DONE;
}

static void print_idle_progress(void *arg)
{
    const struct phase *p = arg;
    message_print("%s for %lld s", p->name, (long long)(monotonic_us() - p->before.us) / 1000000);
}

static int run_idle(struct bench *b)
{
    int code = begin_phase(b, &b->idle);

    if (code) {
        return code;
    }

    loop_set_progress(&b->loop, print_idle_progress, &b->idle);
    code = loop_wait(&b->loop, b->plan.idle_ms);
    loop_set_progress(&b->loop, NULL, NULL);

    return code ? code : finish_phase(b, &b->idle);
}

/* Schedules the jobs of a phase, and waits until they are settled. */
static int run_jobs(struct bench *b, struct phase *p, int (*schedule)(struct load *load),
                    int64_t (*last_due_ms)(const struct load *load))
{
    loop_set_progress(&b->loop, print_settled_progress, p);
    int code = schedule(&p->load);

    if (!code) {
        code = report_load(b, &p->load);
    }
    if (!code) {
        code = wait_settled(b, p, last_due_ms(&p->load));
    }

    loop_set_progress(&b->loop, NULL, NULL);

    return code ? code : finish_phase(b, p);
}

static int64_t last_due_of_rate(const struct load *load)
{
    return monotonic_ms() + load->due.delay_ms;
}

static int run_rate(struct bench *b)
{
    struct phase *p = &b->rate;
    int code = begin_phase(b, p);

    if (code) {
        return code;
    }

    p->load.n = p->listeners.n_jobs;
    p->load.per_second = b->plan.rate;
    p->load.at_least_us = b->plan.duration_ms * 1000;
    p->load.due = lapse_in(b->plan.delay_ms);
    code = run_jobs(b, p, load_at_rate, last_due_of_rate);
    p->settling_us = p->last_settled_us - p->load.start_us - b->plan.delay_ms * 1000;

    return code;
}

/* How fast the jobs of the burst can surely be stored. */
static int64_t burst_stored_per_s(const struct bench *b)
{
    const struct phase *last = b->schedule.on ? &b->schedule : &b->waiting;
    int64_t half = last->on ? load_rate(&last->load) / 2 : 0;

    return half > 0 && half < BURST_STORED_PER_S ? half : BURST_STORED_PER_S;
}

static int64_t last_due_of_burst(const struct load *load)
{
    return load->late_after_us / 1000;
}

static int run_burst(struct bench *b)
{
    struct phase *p = &b->burst;
    int code = begin_phase(b, p);

    if (code) {
        return code;
    }

    int64_t offset_us = listeners_clock_offset_us(&p->listeners);
    int64_t store_ms = (int64_t)b->plan.burst * 1000 / burst_stored_per_s(b);
    int64_t due_ms = (monotonic_us() - offset_us) / 1000 + BURST_LEAD_MS + store_ms;

    p->load.n = b->plan.burst;
    p->load.due = lapse_at(due_ms);
    p->load.late_after_us = due_ms * 1000 + offset_us;
    code = run_jobs(b, p, load_in_bulk, last_due_of_burst);
    p->settling_us = p->last_settled_us - p->load.late_after_us;

    return code;
}

static int run_cancel(struct bench *b)
{
    struct phase *p = &b->cancel;
    int code = begin_phase(b, p);

    if (code) {
        return code;
    }

    p->load.n = b->plan.cancel;
    p->load.due = lapse_in(0);
    loop_set_progress(&b->loop, print_settled_progress, p);
    code = stops_run(&p->load, &p->listeners, settle_patience_ms(&b->g->opts));
    loop_set_progress(&b->loop, NULL, NULL);
    if (!code) {
        code = report_load(b, &p->load);
    }

    return code ? code : finish_phase(b, p);
}

/* ---- all ---- */
int run_phases(struct bench *b)
{
    int code = redis_sync_info(bench_queue_server(&b->queue), &b->redis_at_start);

    if (!code) {
        code = check_memory_left(b);
    }
    if (!code && b->plan.rtt_us >= 0) {
        code = proxy_measure(&b->proxy, bench_queue_server(&b->queue), b->plan.rtt_us);
    }
    if (!code && b->plan.waiting) {
        code = store(b, &b->waiting, b->plan.waiting);
    }
    if (!code && b->plan.idle_ms) {
        code = run_idle(b);
    }
    if (!code && b->plan.schedule) {
        code = run_schedule(b);
    }
    if (!code && b->plan.rate) {
        code = run_rate(b);
    }
    if (!code && b->plan.burst) {
        code = run_burst(b);
    }
    if (!code && b->plan.cancel) {
        code = run_cancel(b);
    }

    return code;
}
