/* SPDX-License-Identifier: MIT */
/* lapse_extend(): who holds a job says how much longer that may be. */
#include "handler.h"
#include "listening.h"
#include "wire.h"

enum { HOUR = 3600000, LEASE_MS = 5000, RUN_MS = 5100, LONG_LEASE_MS = 60000, CUT_MS = 4000 };

/* Leases that outlast three seconds without a CPU; the first renewal lasts for the run. */
static void short_run(struct lapse_options *o)
{
    o->lease_ms = LEASE_MS;
    o->run_ms = RUN_MS;
    o->sweep_ms = 50;
}

static void long_run(struct lapse_options *o)
{
    short_run(o);
    o->run_ms = HOUR;
}

/* No lease or run of some seconds is over before it is looked at. */
static void long_lease(struct lapse_options *o)
{
    long_run(o);
    o->lease_ms = LONG_LEASE_MS;
}

/* What is lost stays where it is. */
static void long_run_without_sweep(struct lapse_options *o)
{
    long_run(o);
    o->sweep_ms = HOUR;
}

static void hold(struct flow *f, struct flow_handler *w)
{
    flow_listen(f, "q", w);
    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
    flow_until(f, w->n_held == 1);
}

static void settle_in_time(struct flow *f, struct flow_handler *w)
{
    cr_assert_eq(flow_score(f, "q", "run", "a"), lapse_job_until_ms(w->held[0]));
    flow_settle(w, FLOW_DONE);
    cr_assert_eq(w->errors, 0, "%s", lapse_strerror(w->err));
    cr_assert_eq(w->n_runs, 1);
    cr_assert_eq(flow_stats(f->l).recovered, 0);
}

Test(extend, a_run_goes_on_behind_run_ms)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, short_run);
    struct flow_handler w = {.way = FLOW_KEEP};

    hold(f, &w);
    int64_t first_ms = lapse_job_until_ms(w.held[0]);
    cr_assert_eq(lapse_extend(w.held[0], HOUR), 0);
    flow_until(f, lapse_job_until_ms(w.held[0]) > first_ms + RUN_MS);
    settle_in_time(f, &w);
    flow_end(f, "q");
}

/* It was renewed for the last time, and nothing would look at it any more before it ends. */
Test(extend, a_lease_that_lasted_to_the_end_of_its_run_is_renewed_at_once)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, short_run);
    struct flow_handler w = {.way = FLOW_KEEP};

    hold(f, &w);
    int64_t first_ms = lapse_job_until_ms(w.held[0]);
    flow_until(f, lapse_job_until_ms(w.held[0]) != first_ms);
    int64_t last_ms = lapse_job_until_ms(w.held[0]);
    cr_assert_eq(lapse_extend(w.held[0], HOUR), 0);
    flow_until(f, lapse_job_until_ms(w.held[0]) > last_ms);
    flow_until(f, lapse_job_until_ms(w.held[0]) > last_ms + RUN_MS);
    settle_in_time(f, &w);
    flow_end(f, "q");
}

Test(extend, a_shorter_one_ends_the_lease_with_the_run)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, long_lease);
    struct flow_handler w = {.way = FLOW_KEEP};

    flow_allow_log(f, "held for run_ms");
    hold(f, &w);
    int64_t first_ms = lapse_job_until_ms(w.held[0]);
    int64_t before_ms = redis_now_ms(f->server);
    cr_assert_eq(lapse_extend(w.held[0], CUT_MS), 0);
    flow_until(f, lapse_job_until_ms(w.held[0]) != first_ms);
    int64_t until_ms = lapse_job_until_ms(w.held[0]);
    cr_assert_geq(until_ms, before_ms + CUT_MS);
    cr_assert_leq(until_ms, redis_now_ms(f->server) + CUT_MS + 1);
    cr_assert_eq(flow_score(f, "q", "run", "a"), until_ms);

    flow_until(f, w.n_held == 2);
    cr_assert_eq(w.runs[1].job.try_no, 2);
    cr_assert_geq(w.runs[1].job.claimed_us, until_ms * 1000);
    flow_until(f, lapse_job_until_ms(w.held[0]) == 0);
    cr_assert_eq(lapse_extend(w.held[0], HOUR), LAPSE_EGONE);
    flow_settle(&w, FLOW_DONE);
    cr_assert_eq(w.err, LAPSE_EGONE, "that of the first run");
    cr_assert_eq(w.errors, 1);
    flow_end(f, "q");
}

/* The renewal that is on its way has the length of before. */
Test(extend, the_last_of_several_in_a_turn_counts)
{
    static const int64_t run_ms[][3] = {{500, 700, HOUR}, {HOUR, 400, HOUR}, {600, HOUR, 1000}};
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, long_run);
    struct flow_handler w = {.way = FLOW_KEEP};

    flow_allow_log(f, "held for run_ms");
    for (size_t i = 0; i < sizeof run_ms / sizeof *run_ms; i++) {
        w.n_runs = 0;
        if (i == 0) {
            hold(f, &w);
        } else {
            cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
            flow_until(f, w.n_held == 1);
        }
        int64_t first_ms = lapse_job_until_ms(w.held[0]);
        for (size_t k = 0; k < 3; k++) {
            cr_assert_eq(lapse_extend(w.held[0], run_ms[i][k]), 0);
        }
        if (run_ms[i][2] == HOUR) {
            flow_until(f, lapse_job_until_ms(w.held[0]) > first_ms + RUN_MS);
            settle_in_time(f, &w);
        } else {
            flow_until(f, lapse_job_until_ms(w.held[0]) == 0);
            flow_until(f, w.n_held == 2);
            cr_assert_lt(w.runs[1].job.due_ms, first_ms, "the end of the run that was cut short");
            flow_settle(&w, FLOW_DONE);
        }
    }
    flow_end(f, "q");
}

Test(extend, many_in_one_turn_travel_together_and_those_that_change_nothing_not_at_all)
{
    enum { N = 100 };
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, long_lease);
    struct flow_handler w = {.way = FLOW_KEEP};

    flow_listen(f, "q", &w);
    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    }
    flow_until(f, w.n_held == N);
    flow_calm(f);

    /* no other script that runs here asks for several scores */
    long long before = flow_calls(f, "zmscore");
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < N; i++) {
            cr_assert_eq(lapse_extend(w.held[i], HOUR + round), 0);
        }
    }
    flow_calm(f);
    cr_assert_eq(flow_calls(f, "zmscore") - before, 0);

    int64_t until_ms = lapse_job_until_ms(w.held[N - 1]);
    for (int i = 0; i < N; i++) {
        cr_assert_eq(lapse_extend(w.held[i], LONG_LEASE_MS / 2), 0);
    }
    flow_until(f, lapse_job_until_ms(w.held[N - 1]) != until_ms);
    cr_assert_eq(flow_calls(f, "zmscore") - before, 1);
    for (int i = 0; i < N; i++) {
        cr_assert_eq(lapse_extend(w.held[i], HOUR), 0);
    }
    flow_settle(&w, FLOW_DONE);
    cr_assert_eq(w.errors, 0);
    flow_end(f, "q");
}

static int schedule_run(struct flow *f, const char *id, int64_t run_ms)
{
    struct lapse_spec s = flow_job_spec("q", id, 0);

    s.run_ms = run_ms;
    return flow_spec(f, &s, NULL);
}

/* From the start of its handler; the lease ends with the run. */
Test(extend, the_schedule_may_say_how_long_one_run_may_take)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, long_lease);
    struct flow_handler w = {.way = FLOW_KEEP};

    flow_allow_log(f, "held for run_ms");
    flow_listen(f, "q", &w);
    cr_assert_eq(schedule_run(f, "a", CUT_MS), 0);
    flow_until(f, w.n_held == 2);
    cr_assert_eq(w.runs[1].job.try_no, 2);
    cr_assert_geq(w.runs[1].job.due_ms, w.runs[0].job.claimed_us / 1000 + CUT_MS);
    cr_assert_lt(w.runs[1].job.due_ms, w.runs[0].job.claimed_us / 1000 + LONG_LEASE_MS,
                 "the lease of the claim was cut");
    cr_assert_eq(lapse_extend(w.held[1], HOUR), 0);
    int64_t cut_ms = w.runs[1].job.claimed_us / 1000 + CUT_MS;
    flow_poll(f, redis_now_ms(f->server) > cut_ms + 500);
    cr_assert_gt(lapse_job_until_ms(w.held[1]), cut_ms + 500);
    flow_settle(&w, FLOW_DONE);
    cr_assert_eq(w.errors, 1, "that of the first run");
    flow_end(f, "q");
}

Test(extend, a_schedule_may_not_give_a_run_more_than_run_ms)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, short_run);
    struct flow_handler w = {.way = FLOW_KEEP};

    flow_allow_log(f, "held for run_ms");
    flow_listen(f, "q", &w);
    cr_assert_eq(schedule_run(f, "a", HOUR), 0);
    flow_until(f, w.n_held == 2);
    cr_assert_lt(w.runs[1].job.due_ms, w.runs[0].job.claimed_us / 1000 + RUN_MS + LEASE_MS);
    flow_settle(&w, FLOW_DONE);
    flow_end(f, "q");
}

Test(extend, the_run_of_a_job_that_was_claimed_without_a_handler_is_limited_too)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, long_run_without_sweep);
    struct flow_claim c;

    flow_allow_log(f, "held for run_ms");
    cr_assert_eq(schedule_run(f, "a", 500), 0);
    cr_assert_eq(flow_claim_id(f, "q", "a", &c), 0);
    flow_until(f, lapse_job_until_ms(c.jobs[0]) == 0);
    cr_assert_lt(flow_score(f, "q", "run", "a"), lapse_job_claimed_us(c.jobs[0]) / 1000 + LEASE_MS);
    lapse_done(c.jobs[0], NULL, NULL);
    flow_until(f, redis_left(f->server, f->space, "q") == 0);
    flow_end(f, "q");
}

Test(extend, of_a_job_that_was_settled_by_its_token_is_egone)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, long_run);
    struct flow_handler w = {.way = FLOW_KEEP};
    struct lapse_settlement done = {.how = LAPSE_HOW_DONE};

    hold(f, &w);
    cr_assert_eq(flow_settle_by(f, "q", "a", lapse_job_token(w.held[0]), done), 0);
    cr_assert_eq(lapse_extend(w.held[0], HOUR), LAPSE_EGONE);
    flow_settle(&w, FLOW_DONE);
    cr_assert_eq(w.err, LAPSE_EGONE);
    flow_end(f, "q");
}

Test(extend, of_a_job_that_was_given_back_is_egone)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, long_run);
    struct flow_handler w = {.way = FLOW_KEEP};

    hold(f, &w);
    flow_close(f, f->l, 0);
    cr_assert_eq(lapse_extend(w.held[0], HOUR), LAPSE_EGONE);
    lapse_job_free(w.held[0]);
    f->l = flow_open(f, NULL);
    cr_assert_eq(flow_cancel(f, "q", "a", NULL), 0);
    flow_end(f, "q");
}

/* The wire swallows the renewal: the lease ends where it would have. */
/* Its lease ends before it gives up its connection. */
static void patient(struct lapse_options *o)
{
    long_run(o);
    o->reply_ms = 60000;
}

Test(extend, that_redis_does_not_hear_of_loses_the_job)
{
    struct wire x;

    wire_start(&x, FLOW_KEEP, patient);
    cr_assert_eq(flow_schedule(x.f, "q", "a", 0, NULL), 0);
    flow_until(x.f, x.w.n_held == 1);
    flow_allow_log(x.f, "could not be renewed in time");
    proxy_swallow(x.proxy, true);
    cr_assert_eq(lapse_extend(x.w.held[0], LEASE_MS / 2), 0);
    cr_assert_eq(lapse_extend(x.w.held[0], HOUR), 0);
    flow_until(x.f, lapse_job_until_ms(x.w.held[0]) == 0);
    cr_assert_eq(lapse_extend(x.w.held[0], HOUR), LAPSE_EGONE);
    proxy_heal(x.proxy);
    flow_until(x.f, flow_stats(x.l).reconnects > 0);
    flow_settle(&x.w, FLOW_DONE);
    wire_end(&x);
}

Test(extend, of_a_wrong_length_is_einval_and_changes_nothing)
{
    static const int64_t wrong_ms[] = {INT64_MIN, -1, 0, 99, 366 * INT64_C(86400000) + 1,
                                       INT64_MAX};
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, long_run);
    struct flow_handler w = {.way = FLOW_KEEP};

    hold(f, &w);
    for (size_t i = 0; i < sizeof wrong_ms / sizeof *wrong_ms; i++) {
        cr_assert_eq(lapse_extend(w.held[0], wrong_ms[i]), LAPSE_EINVAL, "row %zu", i);
    }
    cr_assert_eq(lapse_extend(NULL, HOUR), LAPSE_EINVAL);
    cr_assert_eq(lapse_extend(w.held[0], 366 * INT64_C(86400000)), 0);
    settle_in_time(f, &w);
    flow_end(f, "q");
}
