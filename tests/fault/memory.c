/* SPDX-License-Identifier: MIT */
/* F18, F19: a Redis that has no memory left refuses what is new, or evicts triggers, and no job is
 * lost. */
#include "handler.h"
#include "fault.h"

static long evicted(struct flow *f)
{
    char *info = redis_str(f->server, "INFO stats");
    long n = atol(strstr(info, "evicted_keys:") + 13);
    free(info);
    return n;
}

static void sweep_often(struct lapse_options *o)
{
    o->sweep_ms = 1000;
}

/* ---- F18 ---- */
enum { EACH = 30, QUEUES = 3, TRIES = 3 };
static const char *const queues[QUEUES] = {"done", "retry", "fail"};

static struct lapse_spec spec_of(const char *queue, const char *id, int64_t delay_ms)
{
    struct lapse_spec s = flow_job_spec(queue, id, delay_ms);
    s.tries = TRIES;
    s.backoff_ms = 20;
    return s;
}

static void schedule_each(struct flow *f, long round, const char *what, int64_t span_ms,
                          int expected)
{
    static struct flow_answer a[QUEUES * EACH];
    char id[40];

    for (int i = 0; i < QUEUES * EACH; i++) {
        snprintf(id, sizeof id, "%s-%ld-%d", what, round, i / QUEUES);
        struct lapse_spec s = spec_of(queues[i % QUEUES], id, i * span_ms / (QUEUES * EACH));
        a[i] = (struct flow_answer){.f = f};
        cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &a[i]), 0);
    }

    for (int i = 0; i < QUEUES * EACH; i++) {
        cr_assert_eq(flow_wait(f, &a[i]), expected, "%s: %s", what, lapse_strerror(a[i].err));
    }
}

static void none_is_there(struct flow *f, long round)
{
    char id[40];

    for (int i = 0; i < EACH; i++) {
        snprintf(id, sizeof id, "none-%ld-%d", round, i);
        cr_assert_eq(redis_int(f->server, "HEXISTS lapse:{done}:jobs %s", id), 0);
        cr_assert_eq(redis_int(f->server, "EXISTS lapse:{done}:t:%s", id), 0);
    }
}

Test(f18, without_memory_schedules_are_refused_whole_while_claims_and_settles_go_on, .timeout = 300)
{
    const long rounds = fault_n(20, 200);
    unsigned while_full = 0;
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, sweep_often);
    struct flow_handler w[QUEUES] = {{.way = FLOW_DONE}, {.way = FLOW_RETRY}, {.way = FLOW_FAIL}};

    flow_allow_log(f, "OOM");
    for (int i = 0; i < QUEUES; i++) {
        w[i].delay_ms = 20;
        flow_listen(f, queues[i], &w[i]);
    }

    for (long r = 0; r < rounds; r++) {
        const unsigned n = (unsigned)(r + 1) * EACH;
        schedule_each(f, r, "job", 100, 0);
        redis_do(f->server, "CONFIG SET maxmemory 1mb");
        unsigned before = w[0].settled + w[1].settled + w[2].settled;
        schedule_each(f, r, "none", 100, LAPSE_EREFUSED);
        flow_until(f, w[0].settled >= n && w[1].settled >= TRIES * n && w[2].settled >= n);
        while_full += w[0].settled + w[1].settled + w[2].settled - before;
        redis_do(f->server, "CONFIG SET maxmemory 0");
        none_is_there(f, r);
    }

    const unsigned all = (unsigned)rounds * EACH;
    cr_assert_gt(while_full, all);
    cr_assert(w[0].errors == 0 && w[1].errors == 0 && w[2].errors == 0, "a settle was refused: %s",
              lapse_strerror(w[0].err | w[1].err | w[2].err));
    flow_each_once(&w[0], all);
    flow_each_once(&w[2], all);
    cr_assert_eq(w[1].n_runs, TRIES * all);
    cr_assert_eq(flow_count(f, "retry", "dead"), all);
    cr_assert_eq(flow_count(f, "fail", "dead"), all);
    flow_end(f, "done", "retry", "fail"); /* audits */
    fault_row("F18", "no memory in Redis",
              "20 toggles: schedules refused whole, claims and settles 100 %, audit 0",
              "%ld toggles: %u of %u schedules refused whole, all of %u claims and settles "
              "answered 0 (%u while it was full), audit 0",
              rounds, QUEUES * all, QUEUES * all, (2 + TRIES) * all, while_full);
}

/* ---- F19 ---- */
static const char *const policies[] = {"volatile-ttl", "volatile-lru", "volatile-random",
                                       "volatile-lfu"};
static const struct {
    enum flow_mode mode;
    const char *name;
} modes[] = {{FLOW_FULL, "full"}, {FLOW_NO_ALARM, "no_alarm"}};

/* How late the latest was, ms. */
static int64_t without_triggers(const char *policy, enum flow_mode mode, long n)
{
    struct flow *f = flow_start_opts(mode, NULL, NULL);
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow_answer *a = calloc((size_t)n, sizeof *a);

    flow_listen(f, "q", &w);
    redis_do(f->server, "CONFIG SET maxmemory-policy %s", policy);

    for (long i = 0; i < n; i++) {
        struct lapse_spec s = flow_job_spec("q", NULL, 800 + i * 500 / n);
        a[i].f = f;
        cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &a[i]), 0);
    }

    for (long i = 0; i < n; i++) {
        cr_assert_eq(flow_wait(f, &a[i]), 0);
    }

    free(a);
    redis_do(f->server, "CONFIG SET maxmemory 1mb");
    flow_poll(f, redis_int(f->server, "EVAL %s 0", "return #redis.call('KEYS', 'lapse:{q}:t:*')") ==
                     0);
    long n_evicted = evicted(f);
    int64_t gone_ms = redis_now_ms(f->server);
    redis_do(f->server, "CONFIG SET maxmemory 0");
    flow_until(f, w.settled == (size_t)n);
    flow_each_once(&w, (size_t)n);

    int64_t late_us = 0;
    long n_later = 0; /* whose triggers had not expired */
    for (size_t i = 0; i < w.n_runs; i++) {
        n_later += w.runs[i].job.due_ms > gone_ms;
        int64_t us = w.runs[i].job.claimed_us - w.runs[i].job.due_ms * 1000;
        late_us = us > late_us ? us : late_us;
    }

    cr_assert_geq(n_evicted, n_later);
    flow_end(f, "q");

    return late_us / 1000;
}

Test(f19, triggers_that_are_evicted_lose_no_job, .timeout = 300)
{
    const long n = fault_n(500, 20000);
    int64_t latest[2] = {0, 0};

    for (size_t p = 0; p < sizeof policies / sizeof *policies; p++) {
        for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
            int64_t ms = without_triggers(policies[p], modes[m].mode, n);
            latest[m] = ms > latest[m] ? ms : latest[m];
            fault_say("F19 %s, %s: %ld triggers evicted, latest %lld ms", policies[p],
                      modes[m].name, n, (long long)ms);
        }
    }

    fault_row("F19", "eviction by volatile-ttl, -lru, -random, -lfu", "0 lost",
              "4 policies x %ld triggers, each with the alarm and without: 0 lost; latest %lld ms, "
              "without alarm %lld ms",
              n, (long long)latest[0], (long long)latest[1]);
}
