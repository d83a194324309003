/* SPDX-License-Identifier: MIT */
/* A subscriber that does not keep up: Redis drops it, and the events that it had not read, when
 * its output buffer is over the limit. */
#include "listener.h"
#include "fault.h"
#include "handler.h"
#include "listening.h"
#include <hiredis/hiredis.h>
#include <signal.h>

/* How many there are; what Redis keeps for them, and for one of them, at the most so far. */
static long subscribers(struct flow *f, long long *all, long long *one)
{
    static const char omem[] = " omem=";
    char *list = redis_str(f->server, "CLIENT LIST TYPE pubsub");
    long n = 0;
    long long sum = 0;

    for (const char *at = list; (at = strstr(at, omem)); n++) {
        long long bytes = strtoll(at += sizeof omem - 1, NULL, 10);
        *one = bytes > *one ? bytes : *one;
        sum += bytes;
    }

    *all = sum > *all ? sum : *all;
    free(list);

    return n;
}

/* ---- F13 ---- */
struct burst {
    struct flow *f;
    struct runs *runs;
    long before; /* so many runs are older than the burst */
    long n, answered, refused;
};

static void on_scheduled(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct burst *b = arg;
    (void)l;
    (void)job;
    b->answered++;
    if (err) {
        b->refused++;
    }
}

static void schedule_each(struct burst *b, int64_t due_ms)
{
    char id[24];

    b->answered = 0;

    for (long i = 0; i < b->n; i++) {
        struct lapse_spec s = flow_job_spec("q", id, 0);
        snprintf(id, sizeof id, "%ld", i);
        s.due = lapse_at(due_ms);
        cr_assert_eq(lapse_schedule(b->f->l, &s, on_scheduled, b), 0);
        if (i % 1000 == 999 && i - b->answered > 5000) {
            for (long want = i - 2000; b->answered < want;) {
                flow_turn(b->f, test_now_ms() + 1000);
            }
        }
    }

    flow_until(b->f, b->answered == b->n);
    cr_assert_eq(b->refused, 0);
}

/* All due at the same moment; returns when that has come. Where it comes before the last one is
 * scheduled, these jobs are no burst: they run, and others are due after twice that time. */
static void schedule_all(struct burst *b)
{
    int64_t delay_ms = 2000 + b->n / 8;
    int64_t due_ms = redis_now_ms(b->f->server) + delay_ms;

    schedule_each(b, due_ms);
    while (redis_now_ms(b->f->server) >= due_ms) {
        flow_poll(b->f, redis_left(b->f->server, b->f->space, "q") == 0);
        b->before = b->runs->n;
        delay_ms *= 2;
        due_ms = redis_now_ms(b->f->server) + delay_ms;
        schedule_each(b, due_ms);
    }

    while (redis_now_ms(b->f->server) < due_ms) {
        flow_turn(b->f, test_now_ms() + 5);
    }
}

/* How many jobs of the burst ran; the runs after the first go to *again. */
static long distinct(const struct burst *b, long *again)
{
    unsigned char *seen = calloc((size_t)b->n, 1);
    const struct run *run;
    long jobs = 0;

    *again = 0;

    for (long at = b->before; (run = runs_next(b->runs, &at));) {
        long id = strtol(run->id, NULL, 10);
        cr_assert_geq(run->claimed_us, run->due_ms * 1000, "%ld ran early", id);
        if (id >= b->n) {
            continue;
        }
        if (seen[id]) {
            ++*again;
        } else {
            seen[id] = 1;
            jobs++;
        }
    }

    free(seen);

    return jobs;
}

/* What ../../redis.conf allows a subscriber. */
static long shipped_limit(struct flow *f)
{
    redisReply *reply = redis_cmd(f->server, "CONFIG GET client-output-buffer-limit");
    const char *at = reply->elements == 2 ? strstr(reply->element[1]->str, "pubsub ") : NULL;

    cr_assert(at);
    long bytes = strtol(at + strlen("pubsub "), NULL, 10);
    freeReplyObject(reply);
    return bytes;
}

enum { HELD = 256, MIB = 1 << 20, MOST = 40000000 };

/* That of redis.conf, or a smaller one for a small burst. */
static long set_limit(struct flow *f)
{
    long limit = shipped_limit(f);
    char text[64];

    cr_assert_leq(2 * limit, MOST, "%ld bytes for each of two", limit);
    if (fault_full()) {
        return limit;
    }

    snprintf(text, sizeof text, "pubsub %d %d 60", MIB, MIB / 4);
    redis_do(f->server, "CONFIG SET client-output-buffer-limit %s", text);
    return MIB;
}

struct kept { /* by Redis for subscribers, at most: for both, and for one */
    long long all, one;
};

/* One of the two listeners is stopped: Redis drops its subscription, and the other does all. */
static void until_all_ran(struct burst *b, struct kept *kept)
{
    int64_t end_ms = test_now_ms() + fault_n(30000, 400000);
    bool dropped = false;
    long again;

    for (long n = 0; n < b->n;) {
        dropped = dropped || subscribers(b->f, &kept->all, &kept->one) == 1;
        flow_spin(b->f, 5);
        long ran = b->runs->n - b->before;
        if (ran >= b->n) { /* some may have run twice */
            n = distinct(b, &again);
        }
        cr_assert_lt(test_now_ms(), end_ms, "%ld of %ld jobs ran", ran, b->n);
    }

    cr_assert(dropped, "the stopped one kept its subscription");
    cr_assert_leq(kept->all, MOST, "Redis kept %lld bytes", kept->all);
}

static void until_back(struct burst *b, struct kept *kept)
{
    flow_poll(b->f, subscribers(b->f, &kept->all, &kept->one) == 2 &&
                        redis_int(b->f->server, "ZCARD lapse:{q}:listeners") == 2);
}

static void run_some_more(struct burst *b)
{
    char id[24];

    for (int i = 0; i < 50; i++) {
        snprintf(id, sizeof id, "%ld", b->n + i);
        cr_assert_eq(flow_schedule(b->f, "q", id, 0, NULL), 0);
    }
    flow_poll(b->f, redis_left(b->f->server, b->f->space, "q") == 0);
}

Test(f13, a_stopped_listener_amid_a_burst_is_dropped_and_comes_back, .timeout = 900)
{
    struct burst b = {.f = flow_start(FLOW_FULL), .n = fault_n(40000, 1000000)};
    struct lapse_options opts = flow_options(b.f);
    struct listener *w[2];
    struct kept kept = {.all = 0};
    long again;
    long limit = set_limit(b.f);

    b.runs = runs_new(4 * b.n + 20 * HELD);
    opts.log = NULL;
    opts.lease_ms = 3000;
    opts.sweep_ms = 500;
    for (int i = 0; i < 2; i++) {
        w[i] = listener_start(b.runs, "q", &opts, LISTENER_SETTLES);
    }

    flow_until_listeners(b.f, "q", 2);
    schedule_all(&b);

    listener_signal(w[0], SIGSTOP);
    int64_t stopped_ms = test_now_ms();
    until_all_ran(&b, &kept);

    listener_signal(w[0], SIGCONT);
    int64_t continued_ms = test_now_ms();
    until_back(&b, &kept);
    int64_t back_ms = test_now_ms();

    run_some_more(&b);
    cr_assert_eq(distinct(&b, &again), b.n);
    cr_assert_leq(again, HELD);
    cr_assert_leq(b.runs->taken, b.runs->max);

    fault_row("F13", "SIGSTOP of one of two listeners as a burst falls due",
              "1,000,000 jobs done, 0 lost; dropped and back; Redis keeps <= 40 MB",
              "%ld jobs done by the other in %.1f s, 0 lost, %ld ran again; limit %ld MiB: Redis "
              "seen to keep %.1f MB for it, %.1f for both; back in %.2f s",
              b.n, (double)(continued_ms - stopped_ms) / 1e3, again, limit / MIB,
              (double)kept.one / 1e6, (double)kept.all / 1e6,
              (double)(back_ms - continued_ms) / 1e3);

    for (int i = 0; i < 2; i++) {
        listener_exit(w[i]); /* settles of the one that slept heard EGONE */
        listener_free(w[i]);
    }
    runs_free(b.runs);
    flow_end(b.f, "q");
}

/* ---- F14 ---- */
static void slow_sweep(struct lapse_options *o)
{
    o->sweep_ms = 60000;
}

Test(f14, a_subscriber_that_is_dropped_again_and_again_misses_no_job, .timeout = 300)
{
    enum { DROPS = 100, EACH = 5, LEN = 1500000 };
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};
    struct lapse_options opts = flow_options(f);
    struct lapse *direct = f->l;
    char *junk = malloc(LEN);

    memset(junk, 'x', LEN);
    redis_do(f->server, "CONFIG SET client-output-buffer-limit %s", "pubsub 1mb 1mb 60");
    flow_allow_log(f, "lost the connection");
    slow_sweep(&opts);

    struct lapse *l = f->l = flow_open(f, &opts);
    flow_listen(f, "q", &w);
    f->l = direct;

    for (uint64_t i = 0; i < DROPS; i++) {
        flow_until_listeners(f, "q", 1);
        for (int k = 0; k < EACH; k++) {
            cr_assert_eq(flow_schedule(f, "q", NULL, random() % 60, NULL), 0);
        }
        redis_do(f->server, "PUBLISH lapse:{q}:notice:0 %b", junk, (size_t)LEN);
        for (int k = 0; k < EACH; k++) {
            cr_assert_eq(flow_schedule(f, "q", NULL, random() % 20, NULL), 0);
        }
        flow_until(f, flow_stats(l).reconnects == i + 1);
    }

    flow_until(f, w.settled == 2 * DROPS * EACH);
    cr_assert_eq(w.errors, 0);
    flow_each_once(&w, 2 * DROPS * EACH);

    unsigned warnings = flow_logged(f, "lost the connection");
    cr_assert_leq(warnings, DROPS);
    fault_row("F14", "output buffer limit 1 MB: the subscriber is dropped",
              "100 drops: 0 lost, <= 1 warning each",
              "%d drops, %d jobs: 0 lost, 0 twice, %u warnings", DROPS, 2 * DROPS * EACH, warnings);
    free(junk);
    flow_end(f, "q");
}
