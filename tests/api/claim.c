/* SPDX-License-Identifier: MIT */
/* lapse_claim() and lapse_claim_id(): who has no handler asks for jobs. */
#include "allocations.h"
#include "handler.h"
#include "listening.h"
#include "states.h"
#include "wire.h"

enum { HOUR = 3600000 };

static void no_sweep(struct lapse_options *opts)
{
    opts->sweep_ms = HOUR;
}

static void schedule_due(struct flow *f, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    }
}

/* ---- without waiting ---- */
Test(claim, brings_up_to_n_jobs_that_are_due_the_oldest_first)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_claim c;

    for (int i = 0; i < 5; i++) {
        char id[8];
        struct lapse_spec s = flow_job_spec("q", id, 0);
        snprintf(id, sizeof id, "j%d", 4 - i);
        s.due = lapse_at(1000 + i);
        s.body = "body";
        s.body_len = 4;
        cr_assert_eq(flow_spec(f, &s, NULL), 0);
    }
    cr_assert_eq(flow_schedule(f, "q", "later", HOUR, NULL), 0);

    cr_assert_eq(flow_claim(f, "q", 3, 0, &c), 0);
    cr_assert_eq(c.n, 3);
    for (size_t i = 0; i < 3; i++) {
        struct flow_job job;
        flow_copy(f, &job, c.jobs[i]);
        cr_assert(job.state == LAPSE_RUNNING && job.try_no == 1 && job.token > 0);
        cr_assert(job.until_ms > redis_now_ms(f->server) && job.via == LAPSE_VIA_ASKED);
        cr_assert_str_eq(job.body, "body");
        cr_assert_eq(flow_score(f, "q", "run", job.id), job.until_ms);
    }
    flow_claim_done(f, &c);
    cr_assert_eq(flow_claim(f, "q", 100, 0, &c), 0);
    cr_assert_eq(c.n, 2);
    flow_claim_done(f, &c);
    cr_assert_eq(flow_claim(f, "q", 100, 0, &c), 0);
    cr_assert_eq(c.n, 0);
    cr_assert_eq(flow_count(f, "q", "due"), 1);

    struct lapse_stats s = flow_stats(f->l);
    cr_assert(s.claimed == 5 && s.via_asked == 5 && s.done == 5);
    flow_end(f, "q");
}

Test(claim, that_does_not_wait_is_one_script_and_no_subscription)
{
    place_not_by_sentinel("it subscribes");

    enum { N = 20 };
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);
    struct flow_claim c;

    schedule_due(f, N);
    for (unsigned i = 0; i < N; i++) {
        long long scripts = flow_scripts(f);
        cr_assert_eq(flow_claim(f, "q", 1, 0, &c), 0);
        cr_assert_eq(c.n, 1);
        cr_assert_eq(flow_scripts(f) - scripts, 1);
        flow_claim_done(f, &c);
    }

    long long scripts = flow_scripts(f);
    cr_assert_eq(flow_claim(f, "q", 1, 0, &c), 0);
    cr_assert_eq(c.n, 0);
    cr_assert_eq(flow_scripts(f) - scripts, 1, "of an empty queue");
    cr_assert_eq(flow_calls(f, "subscribe"), 0);
    cr_assert_eq(redis_int(f->server, "EXISTS lapse:{q}:listeners"), 0);
    flow_end(f, "q");
}

Test(claim, in_one_turn_each_gets_jobs_of_its_own)
{
    enum { CALLS = 5, EACH = 60 };
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_claim c[CALLS];
    size_t n = 0;

    schedule_due(f, 200);
    for (int i = 0; i < CALLS; i++) {
        c[i] = (struct flow_claim){.f = f};
        cr_assert_eq(lapse_claim(f->l, "q", EACH, 0, flow_claimed, &c[i]), 0);
    }
    for (int i = 0; i < CALLS; i++) {
        flow_until(f, c[i].calls);
        cr_assert_eq(c[i].err, 0);
        n += c[i].n;
    }

    cr_assert_eq(n, 200, "%zu", n);
    for (int i = 0; i < CALLS; i++) {
        flow_claim_done(f, &c[i]);
    }
    flow_end(f, "q");
}

Test(claim, holds_no_more_than_max_running_and_one_that_does_not_wait_is_efull)
{
    struct lapse_options opts;
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct flow_claim c;
    struct flow_claim more;

    opts = flow_options(f);
    opts.max_running = 3;
    f->l = flow_open(f, &opts);
    schedule_due(f, 5);
    cr_assert_eq(flow_claim(f, "q", 100, 0, &c), 0);
    cr_assert_eq(c.n, 3);
    cr_assert_eq(flow_claim(f, "q", 1, 0, &more), LAPSE_EFULL);

    more = (struct flow_claim){.f = f};
    cr_assert_eq(lapse_claim(f->l, "q", 2, HOUR, flow_claimed, &more), 0);
    flow_spin(f, 20);
    cr_assert_eq(more.calls, 0);
    flow_claim_done(f, &c);
    flow_until(f, more.calls);
    cr_assert_geq(more.n, 1);
    flow_claim_done(f, &more);
    while (flow_count(f, "q", "due")) {
        cr_assert_eq(flow_claim(f, "q", 1, 0, &c), 0);
        flow_claim_done(f, &c);
    }
    flow_end(f, "q");
}

Test(claim, of_a_queue_with_a_handler_is_eexist_and_a_handler_beside_one_that_waits_too)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow_claim c = {.f = f};

    flow_listen(f, "q", &w);
    cr_assert_eq(lapse_claim(f->l, "q", 1, 0, flow_claimed, &c), LAPSE_EEXIST);
    cr_assert_eq(lapse_claim_id(f->l, "q", "a", flow_claimed, &c), LAPSE_EEXIST);
    cr_assert_eq(lapse_unlisten(f->l, "q"), 0);

    cr_assert_eq(lapse_claim(f->l, "q", 1, HOUR, flow_claimed, &c), 0);
    cr_assert_eq(lapse_listen(f->l, "q", NULL, flow_on_job, &w), LAPSE_EEXIST);
    cr_assert_eq(lapse_unlisten(f->l, "q"), LAPSE_ENOENT);
    cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    flow_until(f, c.calls);
    cr_assert_eq(c.n, 1);

    flow_listen(f, "q", &w); /* while a job of it is held still */
    cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    flow_until(f, w.settled == 1);
    flow_claim_done(f, &c);
    flow_end(f, "q");
}

/* Renewed after a third, it outlasts three seconds without a CPU. */
Test(claim, renews_the_leases_of_its_jobs)
{
    enum { LEASE_MS = 5000 };
    struct lapse_options opts;
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct flow_claim c;

    opts = flow_options(f);
    opts.lease_ms = LEASE_MS;
    f->l = flow_open(f, &opts);
    schedule_due(f, 2);
    cr_assert_eq(flow_claim(f, "q", 2, 0, &c), 0);
    int64_t until_ms = lapse_job_until_ms(c.jobs[0]);
    flow_until(f, lapse_job_until_ms(c.jobs[0]) > until_ms + LEASE_MS);
    cr_assert_eq(c.n, 2);
    flow_claim_done(f, &c);
    flow_end(f, "q");
}

Test(claim, jobs_that_are_held_when_the_handle_closes_go_back_and_use_no_try)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_claim c;
    struct flow_job job;

    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
    cr_assert_eq(flow_claim(f, "q", 1, 0, &c), 0);
    flow_close(f, f->l, 0);
    lapse_done(c.jobs[0], NULL, NULL);
    f->l = flow_open(f, NULL);
    cr_assert_eq(flow_get(f, "q", "a", &job), 0);
    cr_assert(job.state == LAPSE_WAITING && job.try_no == 0);
    flow_end(f, "q");
}

/* What became of a crashed holder's job nobody else would look for. */
Test(claim, finds_a_job_whose_holder_died_where_nobody_listens)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_claim c;

    flow_put(f, "q", "a", FLOW_ENDED, NULL);
    /* where it had entered, its peers would forget it after 15 s */
    redis_do(f->server, "DEL %s:{q}:listeners", f->space);
    cr_assert_eq(flow_claim(f, "q", 1, 0, &c), 0);
    cr_assert_eq(c.n, 1);
    cr_assert_eq(lapse_job_try(c.jobs[0]), 2);
    flow_claim_done(f, &c);

    struct lapse *l = flow_open(f, NULL);
    struct lapse *first = f->l;
    flow_put(f, "q", "b", FLOW_ENDED, NULL);
    f->l = l;
    cr_assert_eq(flow_claim_id(f, "q", "b", &c), 0);
    cr_assert_eq(c.n, 1);
    flow_claim_done(f, &c);
    f->l = first;
    flow_end(f, "q");
}

/* ---- by id ---- */
/* The 18th of the absences in the list of peers: "take by id" (beanstalkd's reserve-job). */
Test(claim, take_by_id)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_claim c;

    schedule_due(f, 3);
    cr_assert_eq(flow_schedule(f, "q", "this", 0, NULL), 0);
    cr_assert_eq(flow_schedule(f, "q", "later", HOUR, NULL), 0);
    cr_assert_eq(flow_claim_id(f, "q", "this", &c), 0);
    cr_assert_eq(c.n, 1);
    cr_assert_str_eq(lapse_job_id(c.jobs[0]), "this");
    cr_assert_eq(lapse_job_via(c.jobs[0]), LAPSE_VIA_ASKED);

    struct flow_claim none;
    cr_assert_eq(flow_claim_id(f, "q", "this", &none), 0);
    cr_assert_eq(none.n, 0, "it runs");
    cr_assert_eq(flow_claim_id(f, "q", "later", &none), 0);
    cr_assert_eq(none.n, 0, "it is not due");
    cr_assert_eq(flow_claim_id(f, "q", "nothing", &none), 0);
    cr_assert_eq(none.n, 0, "it is not there");
    flow_claim_done(f, &c);
    cr_assert_eq(flow_claim(f, "q", 100, 0, &c), 0);
    cr_assert_eq(c.n, 3, "the others were left alone");
    flow_claim_done(f, &c);
    flow_end(f, "q");
}

Test(claim, by_id_is_one_script)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);
    struct flow_claim c;

    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
    long long scripts = flow_scripts(f);
    cr_assert_eq(flow_claim_id(f, "q", "a", &c), 0);
    cr_assert_eq(flow_scripts(f) - scripts, 1);
    flow_claim_done(f, &c);
    flow_end(f, "q");
}

/* ---- of a queue whose settings keep its jobs back ---- */
static void claim_brings_nothing(struct flow *f)
{
    struct flow_claim c;

    cr_assert_eq(flow_claim(f, "q", 10, 0, &c), 0);
    cr_assert_eq(c.n, 0);
    cr_assert_eq(flow_claim_id(f, "q", "a", &c), 0);
    cr_assert_eq(c.n, 0);
}

Test(claim, of_a_paused_queue_brings_nothing_and_one_script_says_so)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);
    struct flow_claim c;

    cr_assert_eq(flow_configure(f, "q", "paused=9007199254740992", NULL), 0);
    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
    cr_assert_eq(flow_schedule(f, "q", "b", 0, NULL), 0);

    long long scripts = flow_scripts(f);
    claim_brings_nothing(f);
    cr_assert_eq(flow_scripts(f) - scripts, 2);
    cr_assert_eq(flow_count(f, "q", "due"), 2);

    cr_assert_eq(flow_configure(f, "q", "paused=", NULL), 0);
    cr_assert_eq(flow_claim_id(f, "q", "a", &c), 0);
    cr_assert_eq(c.n, 1);
    cr_assert_eq(lapse_job_try(c.jobs[0]), 1);
    flow_claim_done(f, &c);
    cr_assert_eq(flow_claim(f, "q", 10, 0, &c), 0);
    cr_assert_eq(c.n, 1);
    flow_claim_done(f, &c);
    flow_end(f, "q");
}

/* The sweep is an hour away. */
Test(claim, that_waits_in_a_paused_queue_gets_the_job_when_the_pause_ends)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);
    struct flow_claim c = {.f = f};
    struct lapse *own = f->l;

    cr_assert_eq(flow_configure(f, "q", "paused=9007199254740992", NULL), 0);
    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
    cr_assert_eq(lapse_claim(own, "q", 1, HOUR, flow_claimed, &c), 0);
    flow_until_listeners(f, "q", 1);
    flow_spin(f, 100);
    cr_assert_eq(c.calls, 0);

    f->l = flow_open(f, NULL);
    cr_assert_eq(flow_configure(f, "q", "paused=", NULL), 0);
    flow_until(f, c.calls);
    cr_assert_eq(c.n, 1);
    f->l = own;
    flow_claim_done(f, &c);
    flow_end(f, "q");
}

Test(claim, of_a_forwarded_queue_brings_nothing_and_forwards)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);

    cr_assert_eq(flow_configure(f, "q", "forward=stream", NULL), 0);
    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
    cr_assert_eq(flow_schedule(f, "q", "b", 0, NULL), 0);

    claim_brings_nothing(f);
    cr_assert_eq(redis_int(f->server, "XLEN lapse:{q}:stream"), 2);
    cr_assert_eq(flow_count(f, "q", "due"), 0);
    cr_assert_eq(flow_stats(f->l).forwarded, 2);
    cr_assert_eq(flow_stats(f->l).claimed, 0);
    flow_end(f, "q");
}

/* One that waits serves the setting, as every listener does: before it and after it has come. */
static void waits_while_others_forward(const char *before, const char *meanwhile)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);
    struct flow_claim c = {.f = f};
    struct lapse *own = f->l;

    cr_assert_eq(flow_configure(f, "q", before, NULL), 0);
    cr_assert_eq(lapse_claim(own, "q", 1, HOUR, flow_claimed, &c), 0);
    flow_until_listeners(f, "q", 1);

    f->l = flow_open(f, NULL);
    cr_assert_eq(flow_configure(f, "q", meanwhile, NULL), 0);
    for (int i = 0; i < 20; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, i % 2 ? 0 : 20 + i, NULL), 0);
    }
    flow_until(f, redis_int(f->server, "XLEN lapse:{q}:stream") == 20);
    flow_until(f, flow_stats(own).forwarded == 20);
    cr_assert_eq(c.calls, 0);

    cr_assert_eq(flow_configure(f, "q", "forward=", NULL), 0);
    cr_assert_eq(flow_schedule(f, "q", "a", 20, NULL), 0);
    flow_until(f, c.calls);
    cr_assert_eq(c.err, 0);
    cr_assert_eq(c.n, 1);
    cr_assert_str_eq(lapse_job_id(c.jobs[0]), "a");
    f->l = own;
    flow_claim_done(f, &c);
    cr_assert_eq(redis_int(f->server, "XLEN lapse:{q}:stream"), 20);
    flow_end(f, "q");
}

Test(claim, that_waits_in_a_forwarded_queue_forwards_until_that_is_taken_away)
{
    waits_while_others_forward("forward=stream", "forward=stream");
}

Test(claim, that_waits_in_a_queue_which_becomes_forwarded_forwards_until_that_is_taken_away)
{
    waits_while_others_forward("forward=", "forward=stream");
}

Test(claim, that_waits_in_a_forwarded_queue_ends_without_jobs_when_its_time_is_over)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);
    struct flow_claim c;

    cr_assert_eq(flow_configure(f, "q", "forward=list", NULL), 0);
    cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    cr_assert_eq(flow_schedule(f, "q", NULL, 20, NULL), 0);
    cr_assert_eq(flow_claim(f, "q", 10, 100, &c), 0);
    cr_assert_eq(c.n, 0);
    cr_assert_eq(flow_stats(f->l).claimed, 0);
    flow_until(f, redis_int(f->server, "LLEN lapse:{q}:list") == 2); /* it lingers */
    flow_end(f, "q");
}

/* ---- waiting ---- */
FLOW_ALL_MODES(claim, that_waits_gets_the_first_job_that_is_due_and_none_early)
{
    struct flow *f = flow_start(mode);
    struct flow_claim c;

    for (int i = 0; i < 5; i++) {
        struct flow_job job;
        cr_assert_eq(flow_schedule(f, "q", NULL, 40, &job), 0);
        cr_assert_eq(flow_claim(f, "q", 10, HOUR, &c), 0);
        cr_assert_eq(c.n, 1);
        cr_assert_geq(lapse_job_claimed_us(c.jobs[0]), job.due_ms * 1000);
        flow_claim_done(f, &c);
    }

    flow_end(f, "q");
}

Test(claim, that_waits_hears_of_a_job_that_another_process_schedules)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);
    struct lapse *other = flow_open(f, NULL);
    struct lapse *own = f->l;
    struct flow_claim c = {.f = f};

    cr_assert_eq(lapse_claim(own, "q", 1, HOUR, flow_claimed, &c), 0);
    flow_until_listeners(f, "q", 1);
    f->l = other;
    cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    flow_until(f, c.calls);
    cr_assert_eq(c.n, 1);
    f->l = own;
    flow_claim_done(f, &c);
    flow_end(f, "q");
}

Test(claim, that_waits_ends_without_jobs_when_its_time_is_over)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_claim c;

    for (int64_t wait_ms = 1; wait_ms < 200; wait_ms *= 3) {
        int64_t before_ms = test_now_ms();
        cr_assert_eq(flow_claim(f, "q", 10, wait_ms, &c), 0);
        cr_assert_eq(c.n, 0);
        cr_assert_geq(test_now_ms() - before_ms, wait_ms - 1);
    }

    cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    cr_assert_eq(flow_claim(f, "q", 10, 0, &c), 0);
    cr_assert_eq(c.n, 1, "it is as before");
    flow_claim_done(f, &c);
    flow_end(f, "q");
}

/* Claims that wait, until one has waited for long enough to enter: the first may be over before the
 * handle is connected. */
static void enter_by_claims(struct flow *f, int64_t wait_ms)
{
    struct flow_claim c;

    flow_poll(f, flow_claim(f, "q", 1, wait_ms, &c) == 0 &&
                     redis_int(f->server, "ZCARD lapse:{q}:listeners") == 1);
}

Test(claim, in_a_loop_enters_once_and_costs_a_script_each)
{
    place_not_in_cluster("each script counts the parts of its queue");

    enum { N = 30 };
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);
    struct flow_claim c;

    enter_by_claims(f, 50);
    flow_heard(f);
    flow_calm(f);

    long long joins = flow_calls(f, "subscribe");
    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
        flow_calm(f);
        long long looks = flow_calls(f, "zcard"); /* a claim or a touch has three, and only they */
        cr_assert_eq(flow_claim(f, "q", 1, HOUR, &c), 0);
        cr_assert_eq(c.n, 1);
        flow_calm(f);
        cr_assert_eq(flow_calls(f, "zcard") - looks, 3, "of loop %d", i);
        flow_claim_done(f, &c);
    }

    cr_assert_eq(flow_calls(f, "subscribe"), joins);
    cr_assert_eq(redis_int(f->server, "ZCARD lapse:{q}:listeners"), 1);
    flow_end(f, "q");
}

Test(claim, leaves_the_other_listeners_fifteen_seconds_after_the_last_call)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_claim c;

    enter_by_claims(f, 300);
    flow_spin(f, 5000);
    cr_assert_eq(redis_int(f->server, "ZCARD lapse:{q}:listeners"), 1);
    flow_spin(f, 5000);
    flow_until(f, redis_int(f->server, "ZCARD lapse:{q}:listeners") == 0);
    cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    cr_assert_eq(flow_claim(f, "q", 1, HOUR, &c), 0);
    cr_assert_eq(c.n, 1);
    flow_claim_done(f, &c);
    flow_end(f, "q");
}

FLOW_ALL_MODES(claim, of_many_that_wait_each_job_goes_to_one)
{
    enum { CALLS = 40 };
    struct flow *f = flow_start(mode);
    struct flow_claim c[CALLS];
    unsigned n = 0;

    for (int i = 0; i < CALLS; i++) {
        c[i] = (struct flow_claim){.f = f};
        cr_assert_eq(lapse_claim(f->l, "q", 1, HOUR, flow_claimed, &c[i]), 0);
    }
    for (int i = 0; i < CALLS; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, i % 3 * 20, NULL), 0);
    }
    for (int i = 0; i < CALLS; i++) {
        flow_until(f, c[i].calls);
        cr_assert_eq(c[i].n, 1);
        n += (unsigned)c[i].n;
    }

    cr_assert_eq(n, CALLS);
    cr_assert_eq(flow_count(f, "q", "run"), CALLS);
    for (int i = 0; i < CALLS; i++) {
        flow_claim_done(f, &c[i]);
    }
    flow_end(f, "q");
}

Test(claim, beside_a_handler_of_another_process_shares_the_jobs)
{
    enum { N = 200, FULL = 10 };
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse *own = f->l;
    struct flow_handler w = {.f = f, .way = FLOW_KEEP};
    struct lapse_listen_options few = {.size = sizeof few, .max_running = FULL};
    struct flow_claim first;
    unsigned n = FULL;

    /* each gets some: the handler takes what it may hold, and leaves the others */
    f->l = flow_open(f, NULL);
    cr_assert_eq(lapse_listen(f->l, "q", &few, flow_on_job, &w), 0);
    f->l = own;
    schedule_due(f, 2 * FULL);
    flow_until(f, w.n_held == FULL);
    cr_assert_eq(flow_claim(f, "q", FULL, 0, &first), 0);
    cr_assert_eq(first.n, FULL);
    flow_claim_done(f, &first);
    w.way = FLOW_DONE;
    flow_settle(&w, FLOW_DONE);

    for (int i = 2 * FULL; i < N; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 5 * i, NULL), 0);
    }
    while (redis_left(f->server, f->space, "q") > 0) {
        struct flow_claim c;
        cr_assert_eq(flow_claim(f, "q", 5, 100, &c), 0);
        n += (unsigned)c.n;
        flow_claim_done(f, &c);
    }

    cr_assert_eq(w.n_runs + n, N);
    flow_end(f, "q");
}

/* ---- the end of a handle ---- */
Test(claim, that_waits_ends_with_eclosed_when_the_handle_closes)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_claim c[3];

    for (int i = 0; i < 3; i++) {
        c[i] = (struct flow_claim){.f = f};
        cr_assert_eq(lapse_claim(f->l, i == 2 ? "p" : "q", 1, HOUR, flow_claimed, &c[i]), 0);
    }
    flow_until_listeners(f, "q", 1);
    flow_close(f, f->l, HOUR);
    for (int i = 0; i < 3; i++) {
        cr_assert(c[i].calls == 1 && c[i].err == LAPSE_ECLOSED);
    }
    f->l = flow_open(f, NULL);
    flow_end(f, "q", "p");
}

Test(claim, at_each_moment_of_a_close_loses_no_job_and_leaks_nothing)
{
    enum { N = 20 };
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse *own = f->l;

    for (int turns = 0; turns < 40; turns++) {
        struct flow_claim c[3] = {{.f = f}, {.f = f}, {.f = f}};
        f->l = own;
        schedule_due(f, N);
        f->l = flow_open(f, NULL);
        for (int i = 0; i < 3; i++) {
            cr_assert_eq(lapse_claim(f->l, "q", 5, i * 500, flow_claimed, &c[i]), 0);
        }
        for (int i = 0; i < turns; i++) {
            flow_turn(f, test_now_ms() + 5);
        }
        if (turns % 3 == 0) {
            lapse_abandon(f->l);
            flow_forget(f, f->l);
        } else {
            flow_close(f, f->l, turns % 3 == 1 ? 0 : 100); /* nobody settles meanwhile */
        }
        for (int i = 0; i < 3; i++) {
            cr_assert(c[i].calls == 1 || turns % 3 == 0);
            for (size_t k = 0; k < c[i].n; k++) {
                lapse_done(c[i].jobs[k], NULL, NULL);
            }
        }
        redis_do(f->server, "FLUSHALL");
    }

    f->l = own;
    flow_end(f, "q");
}

struct chain {
    struct flow *f;
    unsigned left;
    unsigned n;
};

static void claim_next(struct lapse *l, int err, struct lapse_job *const *jobs, size_t n, void *arg)
{
    struct chain *chain = arg;

    cr_assert_eq(err, 0);
    for (size_t i = 0; i < n; i++) {
        lapse_done(jobs[i], NULL, NULL);
        cr_assert(lapse_job_id(jobs[i]), "it may be read until the callback returns");
    }
    chain->n += (unsigned)n;
    if (--chain->left > 0) {
        cr_assert_eq(lapse_claim(l, "q", 2, 1000, claim_next, chain), 0);
    }
}

Test(claim, from_the_callback_of_a_claim)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct chain chain = {.f = f, .left = 50};

    schedule_due(f, 100);
    cr_assert_eq(lapse_claim(f->l, "q", 2, 0, claim_next, &chain), 0);
    flow_until(f, chain.left == 0);
    cr_assert_eq(chain.n, 100);
    flow_until(f, redis_left(f->server, f->space, "q") == 0);
    flow_end(f, "q");
}

static void abandon_in_it(struct lapse *l, int err, struct lapse_job *const *jobs, size_t n,
                          void *arg)
{
    (void)err;
    lapse_abandon(l);
    for (size_t i = 0; i < n; i++) {
        lapse_done(jobs[i], NULL, NULL);
        cr_assert(lapse_job_id(jobs[i]));
    }
    *(size_t *)arg = n;
}

Test(claim, whose_callback_abandons_the_handle_leaks_nothing)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse *own = f->l;
    size_t n = 0;

    schedule_due(f, 3);
    f->l = flow_open(f, NULL);
    cr_assert_eq(lapse_claim(f->l, "q", 3, 0, abandon_in_it, &n), 0);
    flow_until(f, n == 3);
    flow_forget(f, f->l);
    redis_do(f->server, "FLUSHALL");
    f->l = own;
    flow_end(f, "q");
}

/* ---- Redis away ---- */
Test(claim, without_redis_is_edown_after_reply_ms_waiting_or_not)
{
    struct lapse_options opts;
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct flow_claim c;

    opts = flow_options(f);
    opts.reply_ms = 200;
    opts.url = "unix:///nowhere/redis.sock";
    flow_allow_log(f, "cannot connect");
    f->l = flow_open(f, &opts);
    cr_assert_eq(flow_claim(f, "q", 1, 0, &c), LAPSE_EDOWN);
    cr_assert_eq(flow_claim(f, "q", 1, 1, &c), LAPSE_EDOWN);
    cr_assert_eq(flow_claim(f, "q", 1, 1000, &c), LAPSE_EDOWN);
    cr_assert_eq(flow_claim_id(f, "q", "a", &c), LAPSE_EDOWN);
    flow_close(f, f->l, 0);
    flow_end(f);
}

Test(claim, that_redis_refuses_says_so)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_claim c;

    flow_allow_log(f, "refused");
    redis_do(f->server, "SET lapse:{q}:due x");
    cr_assert_eq(flow_claim(f, "q", 1, 0, &c), LAPSE_EREFUSED);
    cr_assert_eq(flow_claim(f, "q", 1, HOUR, &c), LAPSE_EREFUSED);
    cr_assert_eq(flow_claim_id(f, "q", "a", &c), LAPSE_EREFUSED);
    redis_do(f->server, "DEL lapse:{q}:due");
    cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    cr_assert_eq(flow_claim(f, "q", 1, 0, &c), 0);
    cr_assert_eq(c.n, 1);
    flow_claim_done(f, &c);
    flow_end(f, "q");
}

Test(claim, whose_answer_is_lost_is_elost_and_its_jobs_go_back_and_use_no_try)
{
    struct wire x;
    struct flow_claim c;
    struct flow_job job;

    wire_start(&x, FLOW_DONE, NULL);
    x.f->l = x.l;
    cr_assert_eq(flow_claim(x.f, "p", 1, 0, &c), 0);
    for (long bytes = 0; bytes < 40; bytes += 8) {
        cr_assert_eq(flow_schedule(x.f, "p", "a", 0, NULL), 0);
        wire_cut(&x, PROXY_DOWN, bytes);
        cr_assert_eq(flow_claim(x.f, "p", 1, 0, &c), LAPSE_ELOST);
        proxy_cut_after(x.proxy, PROXY_DOWN, -1);
        flow_poll(x.f, flow_get(x.f, "p", "a", &job) == 0 && job.state == LAPSE_WAITING);
        cr_assert_eq(job.try_no, 0);
        cr_assert_eq(flow_cancel(x.f, "p", "a", NULL), 0);
    }
    flow_allow_log(x.f, "replies to their claims were lost");
    redis_do(x.f->server, "DEL lapse:{p}:seq");
    x.f->l = x.f->handles[0];
    wire_end(&x);
}

Test(claim, that_waits_goes_on_when_the_connection_was_lost_and_is_back)
{
    struct wire x;
    struct flow_claim c;

    wire_start(&x, FLOW_DONE, NULL);
    struct lapse *direct = x.f->l;
    c = (struct flow_claim){.f = x.f};
    cr_assert_eq(lapse_claim(x.l, "p", 1, HOUR, flow_claimed, &c), 0);
    flow_until_listeners(x.f, "p", 1);
    flow_calm(x.f);
    x.f->l = x.l;
    flow_calm(x.f);
    wire_lose(&x);
    flow_until(x.f, flow_stats(x.l).reconnects >= 1);
    proxy_cut_after(x.proxy, PROXY_UP, -1);
    x.f->l = direct;
    cr_assert_eq(c.calls, 0);
    cr_assert_eq(flow_schedule(x.f, "p", "a", 0, NULL), 0);
    flow_until(x.f, c.calls);
    cr_assert(c.err == 0 && c.n == 1);
    flow_claim_done(x.f, &c);
    redis_do(x.f->server, "DEL lapse:{p}:seq");
    flow_close(x.f, x.l, 5000);
    proxy_stop(x.proxy);
    flow_end(x.f, "q", "p");
}

/* ---- what it must not do ---- */
static void patient(struct lapse_options *o)
{
    o->reply_ms = 60000;
}

/* Those that waited longest get the jobs; the others hear that the handle closes. None ends by a
 * time, which a slow machine would pass before it has asked for all of them. */
Test(claim, ten_thousand_that_wait_are_each_answered)
{
    enum { N = 9000, JOBS = 300 };
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, patient);
    struct flow_claim *c = calloc(N, sizeof *c);

    for (int i = 0; i < N; i++) {
        c[i].f = f;
        cr_assert_eq(lapse_claim(f->l, "q", 1, HOUR, flow_claimed, &c[i]), 0);
    }
    for (int i = 0; i < JOBS; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    }
    for (int i = 0; i < JOBS; i++) {
        flow_until(f, c[i].calls);
        cr_assert_eq(c[i].err, 0);
        cr_assert_eq(c[i].n, 1);
        flow_claim_done(f, &c[i]);
    }
    cr_assert_eq(redis_left(f->server, f->space, "q"), 0);

    flow_close(f, f->l, 0);
    for (int i = JOBS; i < N; i++) {
        cr_assert_eq(c[i].calls, 1);
        cr_assert_eq(c[i].err, LAPSE_ECLOSED);
        cr_assert_eq(c[i].n, 0);
    }
    free(c);
    flow_end(f, "q");
}
