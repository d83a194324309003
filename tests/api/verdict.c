/* SPDX-License-Identifier: MIT */
/* A job that may not be too late, or has a guard: it runs, is skipped, or dies, by what is so when
 * it is claimed. */
#include "handler.h"
#include "listening.h"
#include <hiredis/hiredis.h>

enum { HOUR = 3600000 };

static struct lapse_guard unless_paid(const char *key)
{
    struct lapse_guard g = lapse_guard_init();

    g.key = key;
    g.field = "status";
    g.op = LAPSE_DIFFERS;
    g.value = "paid";
    g.value_len = 4;
    return g;
}

static int schedule_guarded(struct flow *f, const char *id, int64_t in_ms,
                            const struct lapse_guard *guard)
{
    struct lapse_spec s = flow_job_spec("q", id, in_ms);

    s.body = "cancel unless paid";
    s.body_len = 18;
    s.guard = guard;
    return flow_spec(f, &s, NULL);
}

/* The rights of a listener end at the keys of lapse: those of its guards have to be added. */
static struct flow *guard_start(enum flow_mode mode)
{
    struct flow *f = flow_start(mode);

    server_allow(f->server, "%%R~*{q}*");
    return f;
}

/* ---- orders ---- */
FLOW_ALL_MODES(verdict, order_is_paid_needs_no_cancel_call)
{
    struct flow *f = guard_start(mode);
    struct flow_handler w = {.way = FLOW_DONE};
    struct lapse_guard paid = unless_paid("order:{q}:paid");
    struct lapse_guard open = unless_paid("order:{q}:open");
    struct lapse_guard unknown = unless_paid("order:{q}:unknown");

    redis_do(f->server, "HSET order:{q}:open status open");
    redis_do(f->server, "HSET order:{q}:paid status open");
    flow_listen(f, "q", &w);
    cr_assert_eq(schedule_guarded(f, "paid", HOUR, &paid), 0);
    cr_assert_eq(schedule_guarded(f, "open", 300, &open), 0);
    cr_assert_eq(schedule_guarded(f, "unknown", 300, &unknown), 0);
    redis_do(f->server, "HSET order:{q}:paid status paid");
    cr_assert_eq(flow_reschedule(f, "q", "paid", lapse_in(300), NULL), 0);

    flow_until(f, w.settled == 2 && flow_stats(f->l).skipped == 1);
    cr_assert_eq(flow_runs_of(&w, "open"), 1);
    cr_assert_eq(flow_runs_of(&w, "unknown"), 1);
    cr_assert_eq(flow_runs_of(&w, "paid"), 0);
    cr_assert_eq(flow_get(f, "q", "paid", NULL), LAPSE_ENOENT);
    cr_assert_eq(flow_stats(f->l).claimed, 2);
    redis_do(f->server, "DEL order:{q}:open order:{q}:paid");
    flow_end(f, "q");
}

Test(verdict, of_each_op)
{
    static const struct {
        enum lapse_guard_op op;
        const char *value;
        bool missing, same, other;
    } c[] = {{LAPSE_EQUALS, "v\0w", false, true, false},
             {LAPSE_DIFFERS, "v\0w", true, false, true},
             {LAPSE_EXISTS, NULL, false, true, true},
             {LAPSE_MISSING, NULL, true, false, false}};
    struct flow *f = guard_start(FLOW_FULL);
    uint64_t skipped = 0;

    for (size_t i = 0; i < 3 * sizeof c / sizeof *c; i++) {
        size_t row = i / 3;
        struct lapse_guard g = lapse_guard_init();
        struct flow_claim claim;
        bool runs;

        g.key = "k{q}";
        g.op = c[row].op;
        g.value = c[row].value;
        g.value_len = c[row].value ? 3 : 0;
        redis_do(f->server, "DEL k{q}");
        switch (i % 3) {
        case 0: runs = c[row].missing; break;
        case 1: redis_do(f->server, "SET k{q} %b", "v\0w", (size_t)3), runs = c[row].same; break;
        default: redis_do(f->server, "SET k{q} v"), runs = c[row].other; break;
        }
        cr_assert_eq(schedule_guarded(f, "a", 0, &g), 0);
        cr_assert_eq(flow_claim(f, "q", 1, 0, &claim), 0);
        skipped += !runs;
        cr_assert_eq(claim.n, runs, "%zu", i);
        cr_assert_eq(flow_stats(f->l).skipped, skipped);
        if (runs) {
            flow_claim_done(f, &claim);
        }
        cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_ENOENT);
    }
    redis_do(f->server, "DEL k{q}");
    flow_end(f, "q");
}

Test(verdict, of_a_key_of_another_type_is_death_with_the_reason)
{
    struct flow *f = guard_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};
    struct lapse_guard g = unless_paid("order:{q}:1");
    struct flow_job job;

    redis_do(f->server, "SET order:{q}:1 paid");
    flow_listen(f, "q", &w);
    cr_assert_eq(schedule_guarded(f, "a", 0, &g), 0);
    cr_assert_eq(flow_schedule(f, "q", "b", 0, NULL), 0);
    flow_until(f, w.settled == 1 && flow_stats(f->l).failed == 1);
    cr_assert_eq(flow_get(f, "q", "a", &job), 0);
    cr_assert_eq(job.state, LAPSE_DEAD);
    cr_assert_eq(job.try_no, 0);
    cr_assert_not_null(strstr(job.reason, "the key of its guard cannot be read: WRONGTYPE"), "%s",
                       job.reason);

    /* who repairs the key may have it run after all */
    redis_do(f->server, "DEL order:{q}:1");
    cr_assert_eq(flow_reschedule(f, "q", "a", lapse_in(0), NULL), 0);
    flow_until(f, w.settled == 2);
    flow_end(f, "q");
}

/* ---- too late ---- */
static int schedule_late(struct flow *f, const char *id, int64_t max_late_ms, enum lapse_late late)
{
    struct lapse_spec s = flow_job_spec("q", id, 0);

    s.max_late_ms = max_late_ms;
    s.late = late;
    return flow_spec(f, &s, NULL);
}

static void wait_past(struct flow *f, int64_t ms)
{
    flow_poll(f, redis_now_ms(f->server) > ms);
}

Test(verdict, of_a_job_that_is_too_late_is_skip_or_death)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_claim claim;
    struct flow_job job;

    cr_assert_eq(schedule_late(f, "skip", 1, LAPSE_LATE_SKIP), 0);
    cr_assert_eq(schedule_late(f, "dead", 1, LAPSE_LATE_DEAD), 0);
    cr_assert_eq(schedule_late(f, "runs", HOUR, LAPSE_LATE_DEAD), 0);
    wait_past(f, redis_now_ms(f->server) + 1);
    cr_assert_eq(flow_claim(f, "q", 9, 0, &claim), 0);
    cr_assert_eq(claim.n, 1);
    cr_assert_str_eq(lapse_job_id(claim.jobs[0]), "runs");
    flow_claim_done(f, &claim);

    cr_assert_eq(flow_get(f, "q", "skip", NULL), LAPSE_ENOENT);
    cr_assert_eq(flow_get(f, "q", "dead", &job), 0);
    cr_assert_eq(job.state, LAPSE_DEAD);
    cr_assert_str_eq(job.reason, "too late: more than max_late_ms after it was due");
    struct lapse_stats s = flow_stats(f->l);
    cr_assert(s.skipped == 1 && s.failed == 1 && s.claimed == 1 && s.done == 1);
    flow_end(f, "q");
}

/* Nobody who waits for a job gets one that is gone. */
Test(verdict, of_a_job_that_is_asked_for_by_its_id_is_the_same)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_claim claim;

    cr_assert_eq(schedule_late(f, "a", 1, LAPSE_LATE_SKIP), 0);
    cr_assert_eq(schedule_late(f, "b", 1, LAPSE_LATE_DEAD), 0);
    wait_past(f, redis_now_ms(f->server) + 1);
    cr_assert_eq(flow_claim_id(f, "q", "a", &claim), 0);
    cr_assert_eq(claim.n, 0);
    cr_assert_eq(flow_claim_id(f, "q", "b", &claim), 0);
    cr_assert_eq(claim.n, 0);
    cr_assert_eq(flow_stats(f->l).skipped, 1);
    cr_assert_eq(flow_stats(f->l).failed, 1);
    flow_end(f, "q");
}

/* The slots that were set aside for such jobs are free again. */
Test(verdict, leaves_the_slots_free)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};

    for (int i = 0; i < 600; i++) {
        char id[8];
        snprintf(id, sizeof id, "j%d", i);
        cr_assert_eq(i % 3 ? schedule_late(f, id, 1, (enum lapse_late)(i % 3 - 1))
                           : flow_schedule(f, "q", id, 0, NULL),
                     0);
    }
    wait_past(f, redis_now_ms(f->server) + 1);
    flow_listen(f, "q", &w);
    flow_until(f, w.settled == 200);
    flow_until(f, flow_stats(f->l).skipped == 200 && flow_stats(f->l).failed == 200);
    cr_assert_eq(flow_count(f, "q", "dead"), 200);
    cr_assert_eq(flow_count(f, "q", "due"), 0);
    flow_end(f, "q");
}

Test(verdict, comes_before_a_job_is_forwarded)
{
    struct flow *f = guard_start(FLOW_FULL);
    struct lapse_guard g = unless_paid("order:{q}:1");

    redis_do(f->server, "HSET order:{q}:1 status paid");
    cr_assert_eq(schedule_guarded(f, "paid", 0, &g), 0);
    cr_assert_eq(schedule_late(f, "late", 1, LAPSE_LATE_SKIP), 0);
    cr_assert_eq(schedule_late(f, "dead", 1, LAPSE_LATE_DEAD), 0);
    cr_assert_eq(flow_schedule(f, "q", "goes", 0, NULL), 0);
    wait_past(f, redis_now_ms(f->server) + 1);
    cr_assert_eq(flow_configure(f, "q", "forward=list", NULL), 0);
    struct flow_handler w = {.way = FLOW_DONE};
    flow_allow_log(f, "Redis forwards the jobs");
    flow_listen(f, "q", &w);
    flow_until(f, flow_stats(f->l).skipped == 2);
    struct lapse_stats s = flow_stats(f->l);
    cr_assert(s.forwarded == 1 && s.failed == 1 && s.claimed == 0);
    cr_assert_eq(redis_int(f->server, "LLEN lapse:{q}:list"), 1);
    redis_do(f->server, "DEL lapse:{q}:list order:{q}:1");
    flow_end(f, "q");
}

/* ---- what others see of it ---- */
static void on_shown(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct lapse_guard g = lapse_guard_init();
    enum lapse_late late = LAPSE_LATE_SKIP;
    int *n = arg;
    (void)l;

    cr_assert_eq(err, 0);
    struct lapse_job *dup = lapse_job_dup(job);
    for (int i = 0; i < 2; i++) {
        const struct lapse_job *shown = i ? dup : job;
        cr_assert_eq(lapse_job_max_late_ms(shown, &late), 5000);
        cr_assert_eq(lapse_job_max_late_ms(shown, NULL), 5000);
        cr_assert_eq(late, LAPSE_LATE_DEAD);
        cr_assert_eq(lapse_job_guard(shown, &g), 1);
        cr_assert_str_eq(g.key, "order:{q}:1");
        cr_assert_str_eq(g.field, "status");
        cr_assert_eq(g.op, LAPSE_DIFFERS);
        cr_assert(g.value_len == 4 && memcmp(g.value, "paid", 4) == 0);
        cr_assert_str_eq(lapse_job_tag(shown, 0), "t");
        cr_assert_str_eq(lapse_job_header(shown, "trace"), "1");
        size_t len;
        cr_assert_eq(memcmp(lapse_job_body(shown, &len), "body", 4), 0);
    }
    lapse_job_free(dup);
    ++*n;
}

Test(verdict, is_shown_of_a_job_as_it_was_asked_for)
{
    static const char *const tag = "t";
    static const struct lapse_header header = {"trace", "1"};
    struct flow *f = guard_start(FLOW_FULL);
    struct lapse_spec s = flow_job_spec("q", "a", HOUR);
    struct lapse_guard g = unless_paid("order:{q}:1");
    struct lapse_guard none = lapse_guard_init();
    struct flow_claim claim;
    int n = 0;

    s.body = "body";
    s.body_len = 4;
    s.tags = &tag;
    s.n_tags = 1;
    s.headers = &header;
    s.n_headers = 1;
    s.guard = &g;
    s.max_late_ms = 5000;
    s.late = LAPSE_LATE_DEAD;
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    cr_assert_eq(lapse_get(f->l, "q", "a", on_shown, &n), 0);
    flow_until(f, n == 1);
    cr_assert_eq(flow_reschedule(f, "q", "a", lapse_in(0), NULL), 0);
    cr_assert_eq(flow_claim(f, "q", 1, 0, &claim), 0);
    cr_assert_eq(claim.n, 1);
    on_shown(f->l, 0, claim.jobs[0], &n);
    flow_claim_done(f, &claim);

    cr_assert_eq(flow_schedule(f, "q", "plain", 0, NULL), 0);
    cr_assert_eq(flow_claim(f, "q", 1, 0, &claim), 0);
    cr_assert_eq(lapse_job_guard(claim.jobs[0], &none), 0);
    cr_assert_eq(lapse_job_max_late_ms(claim.jobs[0], NULL), 0);
    flow_claim_done(f, &claim);
    flow_end(f, "q");
}

/* ---- for how long it may be tried ---- */
Test(verdict, of_a_job_that_was_tried_for_as_long_as_it_may_be_is_death)
{
    struct flow *f = guard_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_RETRY, .delay_ms = 60, .reason = "no answer"};
    struct lapse_spec s = flow_job_spec("q", "a", 0);
    struct flow_job job;

    s.retry_for_ms = 200;
    s.tries = LAPSE_FOREVER;
    flow_listen(f, "q", &w);
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    flow_until(f, flow_stats(f->l).failed == 1);
    cr_assert_eq(flow_get(f, "q", "a", &job), 0);
    cr_assert_eq(job.state, LAPSE_DEAD);
    for (size_t i = 0; i < w.n_runs; i++) {
        cr_assert_leq(w.runs[i].job.claimed_us / 1000, w.runs[0].job.due_ms + 200);
    }
    flow_end(f, "q");
}

/* ---- 10,000 ---- */
enum { JOBS = 10000, AHEAD = 300 };

struct orders {
    struct flow *f;
    unsigned n_scheduled;
    unsigned n_run;
    unsigned next_paid; /* the first of an even number that is not paid */
    unsigned n_missed;  /* paid after their claim */
    uint64_t seed;
    uint64_t tokens[JOBS]; /* of those that ran */
    uint64_t marks[JOBS];  /* of those that were paid: claims whose tokens are larger came later */
};

/* A token is larger than the last one and than the time in us, so the larger of these divides the
 * claims before this moment from those after it. */
static void pay(struct orders *o, unsigned i)
{
    static const char script[] =
        "local t = redis.call('TIME') local now = t[1] * 1000000 + t[2] "
        "local seq = tonumber(redis.call('GET', 'lapse:{q}:seq') or 0) "
        "redis.call('SET', KEYS[1], '1') return string.format('%.0f', math.max(now, seq))";
    redisReply *r = redis_cmd(o->f->server, "EVAL %s 1 paid:{q}:%u", script, i);

    cr_assert_eq(r->type, REDIS_REPLY_STRING);
    o->marks[i] = strtoull(r->str, NULL, 10);
    freeReplyObject(r);
}

static void pay_up_to(struct orders *o, unsigned end)
{
    for (; o->next_paid < end && o->next_paid < JOBS; o->next_paid += 2) {
        pay(o, o->next_paid);
    }
}

/* With each run some orders are paid that are about to be claimed. */
static void on_order(struct lapse *l, struct lapse_job *job, void *arg)
{
    struct orders *o = arg;
    unsigned i = (unsigned)atoi(lapse_job_id(job) + 1);
    (void)l;

    o->tokens[i] = lapse_job_token(job);
    o->n_run++;
    o->seed = o->seed * 6364136223846793005u + 1442695040888963407u;
    pay_up_to(o, i + (unsigned)(o->seed >> 33) % AHEAD);
    lapse_done(job, NULL, NULL);
}

static void on_scheduled(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct orders *o = arg;
    (void)l;
    (void)job;

    cr_assert_eq(err, 0);
    o->n_scheduled++;
}

static void schedule_orders(struct flow *f, struct orders *o)
{
    for (unsigned i = 0; i < JOBS; i++) {
        char id[8];
        char key[24];
        snprintf(id, sizeof id, "o%05u", i);
        snprintf(key, sizeof key, "paid:{q}:%u", i);
        struct lapse_spec s = flow_job_spec("q", id, 0);
        struct lapse_guard g = lapse_guard_init();
        g.key = key;
        g.op = LAPSE_MISSING;
        s.guard = &g;
        cr_assert_eq(lapse_schedule(f->l, &s, on_scheduled, o), 0);
        if (i % 1000 == 999) {
            flow_until(f, o->n_scheduled == i + 1);
        }
    }
}

Test(verdict,
     of_10000_jobs_half_paid_in_the_last_moment_lets_none_run_that_was_paid_before_its_claim)
{
    struct flow *f = guard_start(FLOW_FULL);
    static struct orders o;

    o.f = f;
    schedule_orders(f, &o);
    cr_assert_eq(lapse_listen(f->l, "q", NULL, on_order, &o), 0);
    for (unsigned n = 1000; n <= JOBS; n += 1000) {
        flow_until(f, o.n_run + flow_stats(f->l).skipped >= n);
    }
    flow_until(f, flow_stats(f->l).done == o.n_run);

    uint64_t n_skipped = 0;
    for (unsigned i = 0; i < JOBS; i++) {
        bool ran = o.tokens[i] > 0;
        bool paid = o.marks[i] > 0;
        n_skipped += !ran;
        cr_assert(ran || paid, "%u did not run", i);
        cr_assert(!ran || !paid || o.tokens[i] <= o.marks[i], "%u ran", i);
        o.n_missed += ran && paid;
    }
    cr_assert_eq(n_skipped, flow_stats(f->l).skipped);
    cr_assert_eq(o.n_run + n_skipped, JOBS);
    cr_assert(n_skipped > 0 && o.n_missed > 0, "%u were paid after their claim", o.n_missed);
    printf("%u ran, %u of them paid after their claim; %u skipped\n", o.n_run, o.n_missed,
           (unsigned)n_skipped);
    redis_do(f->server, "EVAL %s 0",
             "for i = 0, 9998, 2 do redis.call('DEL', 'paid:{q}:' .. i) end");
    flow_end(f, "q");
}
