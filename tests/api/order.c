/* SPDX-License-Identifier: MIT */
/* Requests of one id, made in one turn, take effect in that order, whatever brings one of them
 * back. */
#include "handler.h"
#include "proxy.h"

enum { HOUR = 3600000, BIG = 300 * 1024 /* more than one call reads */ };

static void expect(struct flow *f, struct flow_answer *a, int n, const int *errors)
{
    for (int i = 0; i < n; i++) {
        cr_assert_eq(flow_wait(f, &a[i]), errors[i], "request %d: %s", i, lapse_strerror(a[i].err));
    }
}

static void make(struct flow *f, const char *id, size_t body_len)
{
    struct lapse_spec s = flow_job_spec("q", id, HOUR);
    char *body = calloc(1, body_len + 1);

    s.body = body;
    s.body_len = body_len;
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    free(body);
}

static void ask_schedule(struct flow *f, struct flow_answer *a, const char *id, const char *body)
{
    struct lapse_spec s = flow_job_spec("q", id, HOUR);

    s.on_conflict = LAPSE_REPLACE;
    s.body = body;
    s.body_len = strlen(body);
    *a = (struct flow_answer){.f = f};
    cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, a), 0);
}

static void ask_cancel(struct flow *f, struct flow_answer *a, const char *id)
{
    *a = (struct flow_answer){.f = f};
    cr_assert_eq(lapse_cancel(f->l, "q", id, 0, flow_answered, a), 0);
}

static void ask_reschedule(struct flow *f, struct flow_answer *a, const char *id, int64_t delay_ms)
{
    *a = (struct flow_answer){.f = f};
    cr_assert_eq(lapse_reschedule(f->l, "q", id, lapse_in(delay_ms), 0, flow_answered, a), 0);
}

Test(order, a_cancel_that_a_call_had_no_room_for_does_not_undo_the_schedule_behind_it)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_answer a[3];

    make(f, "A", BIG);
    make(f, "C", 0);
    ask_cancel(f, &a[0], "A");
    ask_cancel(f, &a[1], "C");
    ask_schedule(f, &a[2], "C", "new");
    expect(f, a, 3, (const int[]){0, 0, 0});
    cr_assert_eq(flow_get(f, "q", "C", NULL), 0);
    flow_end(f, "q");
}

Test(order, the_last_of_two_reschedules_decides_where_a_call_had_no_room_for_the_first)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_answer a[3];
    struct flow_job job;

    make(f, "A", BIG);
    make(f, "C", 0);
    ask_reschedule(f, &a[0], "A", HOUR);
    ask_reschedule(f, &a[1], "C", 10000);
    ask_reschedule(f, &a[2], "C", 2 * HOUR);
    expect(f, a, 3, (const int[]){0, 0, 0});
    cr_assert_eq(flow_get(f, "q", "C", &job), 0);
    cr_assert_eq(job.due_ms, a[2].job.due_ms);
    cr_assert_gt(a[2].job.due_ms, a[1].job.due_ms);
    flow_end(f, "q");
}

Test(order, a_get_that_a_call_had_no_room_for_does_not_see_the_cancel_behind_it)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_answer a[3];

    make(f, "A", BIG);
    make(f, "C", 0);
    for (int i = 0; i < 2; i++) {
        a[i] = (struct flow_answer){.f = f};
        cr_assert_eq(lapse_get(f->l, "q", i ? "C" : "A", flow_answered, &a[i]), 0);
    }

    ask_cancel(f, &a[2], "C");
    expect(f, a, 3, (const int[]){0, 0, 0});
    cr_assert_eq(flow_get(f, "q", "C", NULL), LAPSE_ENOENT);
    flow_end(f, "q");
}

Test(order, requests_of_one_turn_keep_it_when_redis_has_forgotten_the_scripts)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_answer a[4];
    struct flow_job job;

    make(f, "warm", 0); /* Redis knows both scripts, and so do we */
    cr_assert_eq(flow_cancel(f, "q", "warm", NULL), 0);

    for (int i = 0; i < 20; i++) {
        redis_do(f->server, "SCRIPT FLUSH");
        ask_schedule(f, &a[0], "X", "");
        ask_cancel(f, &a[1], "X");
        ask_schedule(f, &a[2], "Y", "first");
        ask_schedule(f, &a[3], "Y", "second");
        expect(f, a, 4, (const int[]){0, 0, 0, 0});
        cr_assert_eq(flow_get(f, "q", "X", NULL), LAPSE_ENOENT);
        cr_assert_eq(flow_get(f, "q", "Y", &job), 0);
        cr_assert_eq(job.body_len, 6);
    }

    flow_end(f, "q");
}

/* ---- a job that schedules itself again ---- */
struct chain {
    struct flow *f;
    int n_runs;
    unsigned n_scheduled;
    int64_t delay_ms;
    int err;
    void (*before)(struct flow *f); /* what happens to Redis just before a run is settled */
};

static void on_again(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct chain *c = arg;
    (void)l;
    (void)job;
    c->n_scheduled++;
    c->err = c->err ? c->err : err;
}

static void run_and_schedule_again(struct lapse *l, struct lapse_job *job, void *arg)
{
    struct chain *c = arg;
    struct lapse_spec s = flow_job_spec("q", "chain", c->delay_ms);

    c->n_runs++;
    if (c->before) {
        c->before(c->f);
    }
    lapse_done(job, NULL, NULL);
    cr_assert_eq(lapse_schedule(l, &s, on_again, c), 0);
}

static void forget_scripts(struct flow *f)
{
    redis_do(f->server, "SCRIPT FLUSH");
}

Test(order, a_job_that_schedules_itself_again_goes_on_when_redis_has_forgotten_the_scripts)
{
    enum { RUNS = 30 };
    struct flow *f = flow_start(FLOW_FULL);
    struct chain c = {.f = f, .before = forget_scripts};

    cr_assert_eq(lapse_listen(f->l, "q", NULL, run_and_schedule_again, &c), 0);
    cr_assert_eq(flow_schedule(f, "q", "chain", 0, NULL), 0);
    flow_until(f, c.err || c.n_runs == RUNS);
    cr_assert_eq(c.err, 0, "after %d runs: %s", c.n_runs, lapse_strerror(c.err));
    c.before = NULL;
    c.delay_ms = HOUR;
    flow_until(f, c.n_scheduled == (unsigned)c.n_runs && flow_count(f, "q", "due") == 1);
    flow_end(f, "q");
}

/* Redis refuses each settle while attempts is no hash; a schedule it would take. */
static void break_held(struct flow *f)
{
    redis_do(f->server, "RENAME lapse:{q}:attempts lapse:{q}:seq2");
    redis_do(f->server, "SET lapse:{q}:attempts x");
}

Test(order, a_schedule_waits_for_the_settle_of_its_id_that_is_refused_and_repeated)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct chain c = {.f = f, .delay_ms = HOUR, .before = break_held};

    flow_allow_log(f, "WRONGTYPE");
    cr_assert_eq(lapse_listen(f->l, "q", NULL, run_and_schedule_again, &c), 0);
    cr_assert_eq(flow_schedule(f, "q", "chain", 0, NULL), 0);
    flow_until(f, flow_logged(f, "done: WRONGTYPE"));
    redis_do(f->server, "RENAME lapse:{q}:seq2 lapse:{q}:attempts");
    flow_until(f, c.n_scheduled);
    cr_assert_eq(c.err, 0, "%s", lapse_strerror(c.err));
    cr_assert_eq(flow_count(f, "q", "due"), 1);
    cr_assert_eq(flow_count(f, "q", "run"), 0);
    flow_end(f, "q");
}

/* ---- many of one id ---- */
Test(order, a_hundred_reschedules_of_one_id_are_one_call)
{
    struct flow *f = flow_start(FLOW_FULL);
    static struct flow_answer a[100];
    struct flow_job job;

    make(f, "session", 0);

    long long before = flow_scripts(f);
    for (int i = 0; i < 100; i++) {
        ask_reschedule(f, &a[i], "session", HOUR + i * 1000);
    }

    for (int i = 0; i < 100; i++) {
        cr_assert_eq(flow_wait(f, &a[i]), 0);
    }

    cr_assert_eq(flow_scripts(f) - before, 1);
    cr_assert_eq(flow_get(f, "q", "session", &job), 0);
    cr_assert_eq(job.due_ms, a[99].job.due_ms);
    flow_end(f, "q");
}

Test(order, a_thousand_requests_of_one_id_hold_up_no_other)
{
    enum { HOT = 1000, OTHERS = 100 };
    static struct flow_answer hot[HOT];
    static struct flow_answer other[OTHERS];
    struct flow *f = flow_start(FLOW_FULL);
    char id[16];

    for (int i = 0; i < HOT; i++) {
        ask_schedule(f, &hot[i], "hot", "");
    }

    for (int i = 0; i < OTHERS; i++) {
        snprintf(id, sizeof id, "%d", i);
        ask_schedule(f, &other[i], id, "");
    }

    for (int i = 0; i < OTHERS; i++) {
        cr_assert_eq(flow_wait(f, &other[i]), 0);
    }

    cr_assert_eq(hot[0].calls, 1);
    cr_assert_eq(hot[5].calls, 0, "the others had to wait");
    for (int i = 0; i < HOT; i++) {
        cr_assert_eq(flow_wait(f, &hot[i]), 0);
        cr_assert(i == 0 || hot[i].nth > hot[i - 1].nth);
    }

    flow_end(f, "q");
}

static void little_patience(struct lapse_options *opts)
{
    opts->reply_ms = 3500;
}

/* Each is answered in time; the last of them has waited for many times reply_ms by then. */
Test(order, no_request_is_given_up_while_those_before_it_are_answered)
{
    enum { HOT = 200, DELAY_MS = 30 };
    static struct flow_answer a[HOT];
    struct flow *f = flow_start(FLOW_FULL);
    struct proxy *p = proxy_start(f->server);
    struct lapse_options opts = flow_options(f);

    opts.url = p->url;
    little_patience(&opts);
    f->l = flow_open(f, &opts);
    proxy_delay(p, DELAY_MS);
    for (int i = 0; i < HOT; i++) {
        ask_schedule(f, &a[i], "hot", "");
    }

    for (int i = 0; i < HOT; i++) {
        cr_assert_eq(flow_wait(f, &a[i]), 0, "request %d: %s", i, lapse_strerror(a[i].err));
    }

    flow_close(f, f->l, 0);
    proxy_stop(p);
    flow_end(f, "q");
}

static void patience_below_the_lease(struct lapse_options *opts)
{
    opts->reply_ms = 3500;
    opts->lease_ms = 20000;
}

/* The settle is repeated until its lease ends. */
Test(order, a_request_behind_a_settle_that_is_refused_is_given_up_in_time)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, patience_below_the_lease);
    struct flow_handler w = {.way = FLOW_KEEP};
    struct flow_answer a = {.f = f};

    flow_allow_log(f, "WRONGTYPE");
    flow_hold(f, &w, "a");
    break_held(f);
    lapse_done(w.held[0], flow_on_settled, &w);
    cr_assert_eq(lapse_get(f->l, "q", "a", flow_answered, &a), 0);
    /* within the patience of the kit, which is less than the lease */
    cr_assert_eq(flow_wait(f, &a), LAPSE_EDOWN);
    redis_do(f->server, "RENAME lapse:{q}:seq2 lapse:{q}:attempts");
    flow_until(f, w.settled == 1);
    cr_assert_eq(w.err, 0);
    flow_end(f, "q");
}
