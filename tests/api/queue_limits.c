/* SPDX-License-Identifier: MIT */
/* The limits that all listeners of a queue keep together: how many jobs run, and how many start in
 * any window of time. */
#include "handler.h"
#include "listening.h"

enum { HOUR = 3600000, MANY = 40, CREW = 3 };

static void no_sweep(struct lapse_options *o)
{
    o->sweep_ms = 60000;
}

/* Listeners of the queue "q", each a handle of its own. */
struct crew {
    struct flow_handler w[CREW];
    struct lapse *l[CREW];
};

static void crew_start(struct crew *c, struct flow *f, enum flow_way way, flow_tweak *tweak)
{
    struct lapse_options o = flow_options(f);

    if (tweak) {
        tweak(&o);
    }
    for (int i = 0; i < CREW; i++) {
        f->l = flow_open(f, &o);
        c->l[i] = f->l;
        c->w[i].way = way;
        flow_listen(f, "q", &c->w[i]);
    }
    if (f->mode != FLOW_NO_EVENTS) { /* there nobody enters */
        flow_until_listeners(f, "q", CREW);
    }
    f->l = f->handles[0];
}

static size_t crew_held(const struct crew *c)
{
    return c->w[0].n_held + c->w[1].n_held + c->w[2].n_held;
}

static unsigned crew_settled(const struct crew *c)
{
    return c->w[0].settled + c->w[1].settled + c->w[2].settled;
}

static size_t crew_ran(const struct crew *c)
{
    return c->w[0].n_runs + c->w[1].n_runs + c->w[2].n_runs;
}

static void schedule(struct flow *f, int n, int64_t delay_ms)
{
    for (int i = 0; i < n; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, delay_ms, NULL), 0);
    }
}

static void crew_settle_one(struct crew *c)
{
    for (int i = 0; i < CREW; i++) {
        struct flow_handler *w = &c->w[i];
        if (w->n_held > 0) {
            lapse_done(w->held[--w->n_held], flow_on_settled, w);
            return;
        }
    }
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Of the starts of all jobs, by Redis's clock, no window has more than n. */
static void crew_starts_are(const struct crew *c, size_t n, int64_t window_us)
{
    int64_t starts[MANY * 4];
    size_t all = 0;

    for (int i = 0; i < CREW; i++) {
        for (size_t k = 0; k < c->w[i].n_runs; k++) {
            starts[all++] = c->w[i].runs[k].job.claimed_us;
        }
    }
    qsort(starts, all, sizeof *starts, by_number);
    for (size_t i = n; i < all; i++) {
        cr_assert_geq(starts[i] - starts[i - n], window_us, "the %zuth start", i + 1);
    }
}

/* ---- max_running ---- */
static void sweeps_often(struct lapse_options *o)
{
    o->sweep_ms = 100;
}

FLOW_ALL_MODES(queue_limits, max_running_of_several_listeners_is_never_passed)
{
    struct flow *f = flow_start(mode);
    struct crew c = {0};

    cr_assert_eq(flow_configure(f, "q", "max_running=3", NULL), 0);
    crew_start(&c, f, FLOW_KEEP, sweeps_often);
    schedule(f, 10, 0);
    schedule(f, 5, 20);
    for (unsigned n = 0; n < 15; n++) {
        size_t runs = 15 - n < 3 ? 15 - n : 3;
        flow_until(f, crew_held(&c) == runs);
        cr_assert_leq(flow_count(f, "q", "run"), 3);
        if (n == 0) {
            flow_spin(f, 200);
            cr_assert_eq(crew_held(&c), 3);
        }
        crew_settle_one(&c);
        flow_until(f, crew_settled(&c) == n + 1);
    }
    flow_end(f, "q");
}

/* No sweep passes, and no lease ends: who waits hears of each end. */
Test(queue_limits, max_running_lets_the_next_job_begin_when_one_ends_in_whatever_way)
{
    static const enum flow_way ways[] = {FLOW_DONE, FLOW_FAIL, FLOW_RETRY, FLOW_SNOOZE};

    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);
        struct crew c = {0};

        cr_assert_eq(flow_configure(f, "q", "max_running=1", NULL), 0);
        crew_start(&c, f, ways[i], no_sweep);
        for (int k = 0; k < CREW; k++) {
            c.w[k].delay_ms = HOUR;
            c.w[k].reason = "no";
        }
        schedule(f, MANY, 0);
        flow_until(f, crew_settled(&c) == MANY);
        flow_end(f, "q");
    }
}

Test(queue_limits, max_running_lets_the_next_job_begin_when_one_is_given_back)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow_claim c = {.f = f};

    cr_assert_eq(flow_configure(f, "q", "max_running=1", NULL), 0);
    schedule(f, 2, 0);
    cr_assert_eq(flow_claim(f, "q", 1, 0, &c), 0);
    f->l = flow_open(f, NULL);
    flow_listen(f, "q", &w);
    flow_spin(f, 100);
    cr_assert_eq(w.n_runs, 0);
    lapse_release(c.jobs[0], NULL, NULL);
    flow_until(f, w.settled == 2);
    flow_end(f, "q");
}

/* Its leases end by themselves, and until then its jobs count. */
Test(queue_limits, max_running_opens_when_the_lease_of_a_dead_listener_ends)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);
    struct lapse_options o = flow_options(f);
    struct flow_handler dead = {.way = FLOW_KEEP};
    struct flow_handler w = {.way = FLOW_DONE};
    struct lapse *other = f->l;

    o.lease_ms = 1000;
    no_sweep(&o);
    cr_assert_eq(flow_configure(f, "q", "max_running=1", NULL), 0);
    f->l = flow_open(f, &o);
    flow_hold(f, &dead, "held");
    lapse_abandon(f->l);
    flow_forget(f, f->l);
    lapse_done(dead.held[0], flow_on_settled, &dead); /* frees it, and tells nobody */

    int64_t ends_ms = flow_score(f, "q", "run", "held");
    f->l = other;
    flow_listen(f, "q", &w);
    cr_assert_eq(flow_schedule(f, "q", "next", 0, NULL), 0);
    flow_until(f, w.settled == 1);
    cr_assert_geq(w.runs[0].job.claimed_us, ends_ms * 1000);
    flow_end(f, "q");
}

Test(queue_limits, max_running_that_is_raised_or_taken_away_is_heard_at_once)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);
    struct crew c = {0};

    cr_assert_eq(flow_configure(f, "q", "max_running=1", NULL), 0);
    crew_start(&c, f, FLOW_KEEP, no_sweep);
    schedule(f, 9, 0);
    flow_until(f, crew_held(&c) == 1);
    cr_assert_eq(flow_configure(f, "q", "max_running=4", NULL), 0);
    flow_until(f, crew_held(&c) == 4);
    flow_spin(f, 50);
    cr_assert_eq(crew_held(&c), 4);
    cr_assert_eq(flow_configure(f, "q", "max_running=", NULL), 0);
    flow_until(f, crew_held(&c) == 9);
    for (unsigned n = 1; n <= 9; n++) {
        crew_settle_one(&c);
        flow_until(f, crew_settled(&c) == n);
    }
    flow_end(f, "q");
}

Test(queue_limits, max_running_counts_jobs_that_were_asked_for)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);
    struct flow_claim first = {.f = f};
    struct flow_claim waits = {.f = f};

    cr_assert_eq(flow_configure(f, "q", "max_running=2", NULL), 0);
    schedule(f, 3, 0);
    cr_assert_eq(flow_claim(f, "q", 9, 0, &first), 0);
    cr_assert_eq(first.n, 2);

    f->l = flow_open(f, NULL);
    cr_assert_eq(lapse_claim(f->l, "q", 1, HOUR, flow_claimed, &waits), 0);
    flow_spin(f, 100);
    cr_assert_eq(waits.calls, 0);
    flow_claim_done(f, &first);
    flow_until(f, waits.calls == 1);
    cr_assert_eq(waits.n, 1);
    flow_claim_done(f, &waits);
    flow_end(f, "q");
}

/* ---- rate ---- */
FLOW_ALL_MODES(queue_limits, rate_of_several_listeners_holds_in_every_window)
{
    struct flow *f = flow_start(mode);
    struct crew c = {0};

    cr_assert_eq(flow_configure(f, "q", "rate=5/100ms", NULL), 0);
    crew_start(&c, f, FLOW_DONE, NULL);
    schedule(f, 15, 0);
    for (int i = 0; i < 15; i++) {
        schedule(f, 1, 10 * i);
    }
    flow_until(f, crew_settled(&c) == 30);
    crew_starts_are(&c, 5, 100000);
    flow_end(f, "q");
}

/* Neither a sweep nor a notice opens the gate, but the moment. */
Test(queue_limits, rate_lets_the_next_job_begin_by_itself)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);
    struct crew c = {0};

    cr_assert_eq(flow_configure(f, "q", "rate=1/30ms", NULL), 0);
    crew_start(&c, f, FLOW_DONE, no_sweep);
    schedule(f, MANY, 0);
    flow_until(f, crew_settled(&c) == MANY);
    crew_starts_are(&c, 1, 30000);
    flow_end(f, "q");
}

Test(queue_limits, rate_that_is_used_up_costs_no_claim_a_job)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);
    struct flow_handler w = {.way = FLOW_DONE};

    cr_assert_eq(flow_configure(f, "q", "rate=1/1h", NULL), 0);
    flow_listen(f, "q", &w);
    flow_until_listeners(f, "q", 1);
    f->l = flow_open(f, NULL); /* another schedules */
    schedule(f, 2, 0);
    flow_until(f, w.settled == 1);
    flow_spin(f, 200);

    long long asked = flow_calls(f, "mget");
    schedule(f, MANY, 0);
    schedule(f, MANY, 20);
    flow_spin(f, 200);
    cr_assert_eq(flow_calls(f, "mget"), asked); /* of claim and touch */
    cr_assert_eq(flow_configure(f, "q", "rate=", NULL), 0);
    flow_until(f, w.settled == 2 * MANY + 2);
    flow_end(f, "q");
}

/* A gate that is closed for a moment may be that of a full stream, which is trimmed then. */
Test(queue_limits, rate_of_a_queue_that_is_not_forwarded_has_no_stream_looked_at_again_and_again)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);
    struct flow_handler w = {.way = FLOW_DONE};

    cr_assert_eq(flow_configure(f, "q", "rate=1/20ms", NULL), 0);
    flow_listen(f, "q", &w);
    flow_until_listeners(f, "q", 1);
    schedule(f, 3, 0);
    flow_until(f, w.settled == 3);
    long long asked = flow_calls(f, "get");
    schedule(f, MANY, 0);
    flow_until(f, w.settled == MANY + 3);
    cr_assert_leq(flow_calls(f, "get") - asked, 1);
    flow_end(f, "q");
}

Test(queue_limits, rate_counts_what_is_forwarded)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);
    struct flow_answer a = {.f = f};

    cr_assert_eq(flow_configure(f, "q", "rate=5/200ms forward=list", NULL), 0);
    cr_assert_eq(lapse_forward(f->l, "q", NULL, flow_text_answered, &a), 0);
    cr_assert_eq(flow_wait(f, &a), 0);
    schedule(f, 17, 0);
    flow_until(f, flow_stats(f->l).forwarded == 17);
    cr_assert_eq(redis_int(f->server, "LLEN lapse:{q}:rate"), 5);

    char *starts = redis_str(f->server, "LINDEX lapse:{q}:rate 0");
    cr_assert_gt(atoll(starts), 0);
    free(starts);
    flow_end(f, "q");
}

Test(queue_limits, of_both_kinds_hold_together)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);
    struct crew c = {0};

    cr_assert_eq(flow_configure(f, "q", "rate=4/50ms max_running=2", NULL), 0);
    crew_start(&c, f, FLOW_DONE, no_sweep);
    schedule(f, MANY, 0);
    flow_until(f, crew_settled(&c) == MANY);
    cr_assert_eq(crew_ran(&c), MANY);
    crew_starts_are(&c, 4, 50000);
    flow_end(f, "q");
}

Test(queue_limits, that_are_out_of_range_are_refused_with_the_rule)
{
    static const char *const bad[][2] = {
        {"rate=0/1s", "rate=0/1s: must be N/D: 1 to 10000 starts in 1ms to 1d, as 100/1s"},
        {"rate=5/0s", "rate=5/0s: must be N/D: 1 to 10000 starts in 1ms to 1d, as 100/1s"},
        {"rate=10001/1s", "rate=10001/1s: must be N/D: 1 to 10000 starts in 1ms to 1d, as 100/1s"},
        {"max_running=0", "max_running=0: must be a number from 1 to 1000000000"},
        {"max_running=1000000001",
         "max_running=1000000001: must be a number from 1 to 1000000000"}};
    struct flow *f = flow_start(FLOW_FULL);
    char text[FLOW_TEXT];

    cr_assert_eq(flow_configure(f, "q", "rate=100/1s max_running=8", text), 0);
    cr_assert_str_eq(text, "rate=100/1s max_running=8");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_assert_eq(flow_configure(f, "q", bad[i][0], text), LAPSE_EINVAL);
        cr_assert_str_eq(text, bad[i][1]);
    }
    cr_assert_eq(flow_configure(f, "q", NULL, text), 0);
    cr_assert_str_eq(text, "rate=100/1s max_running=8");
    flow_end(f, "q");
}

/* It hears of no end, and no sweep passes. */
Test(queue_limits, max_running_goes_on_where_a_listener_hears_no_notices)
{
    struct flow *f = flow_start_opts(FLOW_NO_EVENTS, NULL, no_sweep);
    struct flow_handler w = {.way = FLOW_DONE};

    cr_assert_eq(flow_configure(f, "q", "max_running=2", NULL), 0);
    schedule(f, MANY, 0);
    flow_listen(f, "q", &w);
    flow_until(f, w.settled == MANY);
    flow_end(f, "q");
}
