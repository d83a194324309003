/* SPDX-License-Identifier: MIT */
/* Who holds a job, and for how long. */
#include "listener.h"
#include "listening.h"
#include "scripted_server.h"
#include "wire.h"
#include <poll.h>
#include <signal.h>

enum { KEPT_LEASE_MS = 3500, NO_SWEEP_MS = 3600000 };

static void short_lease(struct lapse_options *o)
{
    o->lease_ms = 400;
    o->sweep_ms = 50;
}

/* For leases that must not end: renewed after a third, they outlast two seconds without a CPU. */
static void kept_lease(struct lapse_options *o)
{
    short_lease(o);
    o->lease_ms = KEPT_LEASE_MS;
}

static void short_run(struct lapse_options *o)
{
    kept_lease(o);
    o->run_ms = 4500;
}

Test(lease, a_job_that_is_held_for_longer_than_its_lease_stays_ours)
{
    enum { N = 10 };
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, kept_lease);
    struct flow_handler w = {.way = FLOW_KEEP};

    flow_listen(f, "q", &w);
    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    }

    flow_until(f, w.n_held == N);

    int64_t until_ms = lapse_job_until_ms(w.held[0]);
    uint64_t token = lapse_job_token(w.held[0]);
    flow_until(f, lapse_job_until_ms(w.held[0]) > until_ms + 3500);
    cr_assert_eq(lapse_job_token(w.held[0]), token);
    cr_assert_eq(flow_score(f, "q", "run", lapse_job_id(w.held[0])), lapse_job_until_ms(w.held[0]));
    flow_settle(&w, FLOW_DONE);
    cr_assert_eq(w.errors, 0);
    flow_each_once(&w, N);
    cr_assert_eq(flow_stats(f->l).recovered, 0);
    flow_end(f, "q");
}

Test(lease, ends_at_run_ms_and_the_job_runs_again)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, short_run);
    struct flow_handler w = {.way = FLOW_KEEP};

    flow_allow_log(f, "held for run_ms");
    flow_hold(f, &w, "a");

    struct lapse_job *first = w.held[0];
    flow_until(f, w.n_held == 2);
    flow_until(f, lapse_job_until_ms(first) == 0);
    cr_assert_eq(flow_logged(f, "held for run_ms"), 1);
    cr_assert_eq(w.runs[1].job.try_no, 2);
    cr_assert_gt(w.runs[1].job.token, w.runs[0].job.token);
    cr_assert_str_eq(w.runs[1].job.reason, "the lease ended");

    /* run_ms counts from the handler's start, which comes after the claim; a renewal is for whole
     * milliseconds */
    cr_assert_geq(w.runs[1].job.claimed_us, w.runs[0].job.claimed_us + 4500000 - 2000);
    w.held[0] = w.held[1];
    w.n_held = 1;
    flow_settle(&w, FLOW_DONE);
    cr_assert_eq(w.errors, 0);
    lapse_done(first, flow_on_settled, &w);
    flow_until(f, w.settled == 2);
    cr_assert_eq(w.err, LAPSE_EGONE);

    struct lapse_stats s = flow_stats(f->l);
    cr_assert_eq(s.recovered, 1);
    cr_assert_eq(s.gone, 1);
    cr_assert_eq(s.done, 1);
    flow_end(f, "q");
}

static void long_lease_short_run(struct lapse_options *o)
{
    o->lease_ms = 3000;
    o->run_ms = 3100;
}

Test(lease, is_renewed_to_the_end_of_run_ms_and_no_further)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, long_lease_short_run);
    struct flow_handler w = {.way = FLOW_KEEP};

    flow_hold(f, &w, "a");

    int64_t first_ms = lapse_job_until_ms(w.held[0]);
    int64_t claimed_ms = w.runs[0].job.claimed_us / 1000;
    cr_assert_eq(first_ms, claimed_ms + 3000);
    flow_until(f, lapse_job_until_ms(w.held[0]) != first_ms);

    int64_t last_ms = lapse_job_until_ms(w.held[0]);

    /* run_ms is counted here, from when the claim was sent; the request takes its way, but not so
     * long */
    cr_assert(last_ms > first_ms && last_ms < claimed_ms + 3100 + 500, "%lld",
              (long long)(last_ms - claimed_ms));
    flow_settle(&w, FLOW_DONE);
    flow_end(f, "q");
}

static void short_run_no_sweep(struct lapse_options *o)
{
    long_lease_short_run(o);
    o->sweep_ms = 60000;
}

static long long renewals(struct flow *f)
{
    return flow_calls(f, "zmscore"); /* no other script that runs here asks for several scores */
}

/* A renewal to a moment just before the end of run_ms would be followed by others, and the lease by
 * a warning that it could not be renewed. */
Test(lease, that_lasts_to_the_end_of_run_ms_is_not_renewed_again)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, short_run_no_sweep);
    struct flow_handler w = {.way = FLOW_KEEP};

    flow_allow_log(f, "held for run_ms");
    flow_hold(f, &w, "a");

    int64_t first_ms = lapse_job_until_ms(w.held[0]);
    flow_until(f, lapse_job_until_ms(w.held[0]) != first_ms);

    long long before = renewals(f);
    flow_until(f, lapse_job_until_ms(w.held[0]) == 0);
    cr_assert_eq(renewals(f), before);
    cr_assert_eq(flow_logged(f, "held for run_ms"), 1);
    flow_settle(&w, FLOW_DONE);
    flow_end(f, "q");
}

/* At a sixth of the lease after the refusal, and not at each look. */
Test(lease, whose_renewal_is_refused_is_renewed_a_little_later)
{
    enum { LEASE_MS = 6000 };
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct scripted_server *s = scripted_server_before(f->server);
    struct flow_handler w = {.way = FLOW_KEEP};
    struct lapse_options opts = flow_options(f);

    flow_allow_log(f, "Redis refused renew: OOM");
    scripted_server_answer(s, scripted_step("renew"), "-OOM command not allowed\r\n");
    opts.url = s->url;
    opts.lease_ms = LEASE_MS;
    f->l = flow_open(f, &opts);
    flow_hold(f, &w, "a");

    int64_t until_ms = lapse_job_until_ms(w.held[0]);
    flow_poll(f, scripted_server_answered(s) > 0);
    cr_assert_eq(lapse_job_until_ms(w.held[0]), until_ms);
    scripted_server_answer(s, SCRIPTED_NONE, "");
    flow_until(f, lapse_job_until_ms(w.held[0]) > until_ms);

    flow_settle(&w, FLOW_DONE);
    cr_assert_eq(w.errors, 0, "%s", lapse_strerror(w.err));
    flow_close(f, f->l, 5000);
    scripted_server_stop(s);
    flow_end(f, "q");
}

/* The wire swallows all that the holder says. */
Test(lease, of_a_holder_that_cannot_be_heard_ends_and_another_runs_the_job)
{
    struct wire x;
    struct flow_handler other = {.way = FLOW_KEEP};

    wire_start(&x, FLOW_KEEP, kept_lease);

    struct flow *f = x.f;
    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
    flow_until(f, x.w.n_held == 1);

    struct lapse_options opts = flow_options(f);
    opts.sweep_ms = 50;
    flow_close(f, f->l, 0);
    f->l = flow_open(f, &opts);
    flow_listen(f, "q", &other);
    flow_allow_log(f, "could not be renewed in time");
    proxy_swallow(x.proxy, true);
    flow_until(f, other.n_held == 1);
    cr_assert_eq(other.runs[0].job.try_no, 2);
    cr_assert_gt(other.runs[0].job.token, x.w.runs[0].job.token);
    cr_assert_geq(other.runs[0].job.claimed_us / 1000,
                  x.w.runs[0].job.claimed_us / 1000 + KEPT_LEASE_MS);
    flow_until(f, lapse_job_until_ms(x.w.held[0]) == 0);
    proxy_heal(x.proxy);
    flow_until(f, flow_stats(x.l).reconnects == 2);
    flow_settle(&x.w, FLOW_DONE);
    cr_assert_eq(x.w.err, LAPSE_EGONE);
    cr_assert_eq(lapse_job_until_ms(other.held[0]) > 0, 1);
    flow_settle(&other, FLOW_DONE);
    cr_assert_eq(other.errors, 0);
    cr_assert_eq(flow_stats(f->l).recovered, 1);
    wire_end(&x);
}

/* A job that kills each process that runs it is stopped by its tries, and from the second on each
 * has to wait for its backoff: of 1 s, less up to a quarter, and here not doubled. */
Test(lease, a_job_that_kills_its_process_is_dead_when_its_tries_are_used_up)
{
    enum { TRIES = 3 };
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, short_lease);
    struct runs *runs = runs_new(16);
    struct lapse_spec s = flow_job_spec("q", "poison", 0);
    struct lapse_options opts = flow_options(f);
    struct flow_handler other = {.way = FLOW_DONE};
    struct flow_job job;

    s.tries = TRIES;
    s.backoff_max_ms = 1000;
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    opts.log = NULL;
    kept_lease(&opts);

    for (int i = 0; i < TRIES; i++) {
        struct listener *w = listener_start(runs, "q", &opts, LISTENER_DIES);
        flow_poll(f, runs->n == i + 1);
        listener_free(w);
    }

    flow_listen(f, "q", &other); /* its sweep finds the last lease */
    flow_poll(f, flow_count(f, "q", "dead") == 1);

    for (int i = 0; i < TRIES; i++) {
        cr_assert_eq(runs->run[i].try_no, (unsigned)i + 1);
        cr_assert(i == 0 || runs->run[i].token > runs->run[i - 1].token);
        cr_assert(i == 0 || runs->run[i].claimed_us / 1000 >=
                                runs->run[i - 1].claimed_us / 1000 + KEPT_LEASE_MS,
                  "while its lease was good");
    }
    cr_assert_geq(runs->run[2].claimed_us / 1000,
                  runs->run[1].claimed_us / 1000 + KEPT_LEASE_MS + 750);

    cr_assert_eq(flow_get(f, "q", "poison", &job), 0);
    cr_assert_eq(job.state, LAPSE_DEAD);
    cr_assert_eq(job.try_no, TRIES);
    cr_assert_str_eq(job.reason, "the lease ended");
    cr_assert_eq(other.n_runs, 0);
    cr_assert_eq(runs->n, TRIES);
    runs_free(runs);
    flow_end(f, "q");
}

/* celery#2599: a lease that begins when a job is stored ends long before it is due. */
Test(lease, begins_when_the_job_is_claimed_however_long_it_waited)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, short_lease);
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow_job job;

    flow_listen(f, "q", &w);
    cr_assert_eq(flow_schedule(f, "q", "a", 86400000, NULL), 0);
    flow_spin(f, 600); /* a lease and many sweeps */
    cr_assert_eq(flow_get(f, "q", "a", &job), 0);
    cr_assert_eq(job.state, LAPSE_WAITING);
    cr_assert_eq(job.try_no, 0);
    cr_assert_eq(flow_reschedule(f, "q", "a", lapse_in(0), NULL), 0);
    flow_until(f, w.settled == 1);
    flow_spin(f, 600);
    flow_each_once(&w, 1);
    flow_end(f, "q");
}

/* asynq#717: two that sweep the same ended leases. */
Test(lease, many_that_sweep_count_one_try_for_an_ended_lease)
{
    enum { N = 150, SWEEPERS = 4 };
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, short_lease);
    struct runs *runs = runs_new(N);
    struct flow_handler w = {.way = FLOW_DONE};
    struct lapse_options opts = flow_options(f);

    opts.log = NULL;
    opts.lease_ms = 200;
    opts.sweep_ms = NO_SWEEP_MS; /* what its holder is too slow to renew is left to the others */

    struct listener *victim = listener_start(runs, "q", &opts, LISTENER_KEEPS);
    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    }

    flow_poll(f, runs->n == N);
    listener_signal(victim, SIGKILL);

    for (int i = 0; i < SWEEPERS; i++) {
        opts = flow_options(f);
        opts.sweep_ms = 20;
        f->l = flow_open(f, &opts);
        flow_listen(f, "q", &w);
    }

    flow_until(f, w.settled == N);
    cr_assert_eq(w.errors, 0);
    cr_assert_eq(w.n_runs, N);
    for (int i = 0; i < N; i++) {
        cr_assert_eq(w.runs[i].job.try_no, 2);
        cr_assert_eq(flow_runs_of(&w, w.runs[i].job.id), 1);
    }

    uint64_t recovered = 0;
    for (unsigned i = 0; i < f->n_open; i++) {
        recovered += flow_stats(f->handles[i]).recovered;
    }

    cr_assert_eq(recovered, N);
    listener_free(victim);
    runs_free(runs);
    flow_end(f, "q");
}

/* kombu#164: with a limit to a sweep, what was over it came back a sweep later, or never. */
Test(lease, one_sweep_takes_all_leases_that_ended)
{
    enum { N = 1000 };
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, short_lease);
    struct runs *runs = runs_new(N);
    struct flow_handler w = {.way = FLOW_DONE};
    struct lapse_options opts = flow_options(f);

    opts.log = NULL;
    opts.max_running = N;
    opts.lease_ms = 1000;
    opts.sweep_ms = NO_SWEEP_MS;

    struct listener *victim = listener_start(runs, "q", &opts, LISTENER_KEEPS);
    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    }

    flow_poll(f, runs->n == N);
    listener_signal(victim, SIGKILL);
    opts = flow_options(f);
    opts.sweep_ms = 4000; /* ten of them would take too long for this test */
    f->l = flow_open(f, &opts);
    flow_listen(f, "q", &w);
    flow_until(f, w.settled == N);
    cr_assert_eq(flow_stats(f->l).recovered, N);
    for (int i = 0; i < N; i++) {
        cr_assert_eq(w.runs[i].job.try_no, 2);
    }

    listener_free(victim);
    runs_free(runs);
    flow_end(f, "q");
}

struct sleeper {
    struct flow_handler w;
    struct flow *f;
};

/* The first one blocks the loop for longer than the lease of all that were claimed with it. */
static void sleep_once(struct lapse *l, struct lapse_job *job, void *arg)
{
    struct sleeper *s = arg;

    cr_assert_leq(redis_now_ms(s->f->server), lapse_job_until_ms(job),
                  "%s began when its lease was over", lapse_job_id(job));
    if (s->w.n_runs == 0) {
        poll(NULL, 0, KEPT_LEASE_MS + 500);
    }
    flow_on_job(l, job, &s->w);
}

struct waiter {
    struct flow_handler *w;
    int64_t for_ms;
};

static void take_a_while(struct lapse *l, struct lapse_job *job, void *arg)
{
    struct waiter *x = arg;
    poll(NULL, 0, (int)x->for_ms);
    flow_on_job(l, job, x->w);
}

Test(lease, jobs_whose_lease_ended_while_a_handler_slept_are_not_begun)
{
    enum { N = 20 };
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, kept_lease);
    struct sleeper s = {.w = {.f = f, .way = FLOW_DONE}, .f = f};

    flow_allow_log(f, "the lease of job");
    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    }

    cr_assert_eq(lapse_listen(f->l, "q", NULL, sleep_once, &s), 0);
    flow_poll(f, redis_left(f->server, f->space, "q") == 0);
    flow_until(f, s.w.settled == s.w.n_runs);
    cr_assert_eq(s.w.runs[0].job.try_no, 1);
    for (size_t i = 1; i < s.w.n_runs; i++) {
        cr_assert_eq(s.w.runs[i].job.try_no, 1, "a job that was not begun has used a try");
    }

    for (size_t i = 1; i < s.w.n_runs; i++) {
        cr_assert_eq(flow_runs_of(&s.w, s.w.runs[i].job.id) -
                         (strcmp(s.w.runs[0].job.id, s.w.runs[i].job.id) == 0),
                     1);
    }

    cr_assert(flow_logged(f, "the event loop was blocked for"));
    flow_end(f, "q");
}

static void often_swept(struct lapse_options *o)
{
    kept_lease(o);
    o->sweep_ms = 50;
}

/* Redis answers the look and the claim in one moment. The sweep, which that look leads to, is asked
 * before the first handler sleeps. */
Test(lease, a_sweep_that_was_asked_before_a_handler_slept_takes_no_job_of_ours)
{
    enum { N = 20, DELAY_MS = 300 };
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, often_swept);
    struct sleeper s = {.w = {.f = f, .way = FLOW_DONE}, .f = f};

    flow_allow_log(f, "the lease of job");
    cr_assert_eq(lapse_listen(f->l, "q", NULL, sleep_once, &s), 0);
    flow_until_listeners(f, "q", 1);
    flow_calm(f);
    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, DELAY_MS, NULL), 0);
    }

    server_signal(f->server, SIGSTOP);
    flow_spin(f, DELAY_MS + 200);
    server_signal(f->server, SIGCONT);
    flow_poll(f, redis_left(f->server, f->space, "q") == 0);
    flow_until(f, s.w.settled == s.w.n_runs);
    for (size_t i = 1; i < s.w.n_runs; i++) {
        cr_assert_eq(s.w.runs[i].job.try_no, 1, "a job that was not begun has used a try");
    }
    cr_assert(flow_logged(f, "the event loop was blocked for"));
    flow_end(f, "q");
}

static void scaled_down(struct lapse_options *opts)
{
    opts->lease_ms = 1000;
    opts->run_ms = 1500;
    opts->sweep_ms = 60000; /* no help from there */
}

/* Jobs of one try that wait behind others in this process for much longer than run_ms. */
Test(lease, of_a_job_that_waits_its_turn_does_not_end_however_long_the_others_take)
{
    enum { N = 60 };
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, scaled_down);
    struct flow_handler w = {.way = FLOW_DONE};
    struct waiter waiter = {.w = &w, .for_ms = 40};

    flow_allow_log(f, "the lease of job");
    w.f = f;

    for (int i = 0; i < N; i++) {
        struct lapse_spec s = flow_job_spec("q", NULL, 0);
        s.tries = 1;
        cr_assert_eq(flow_spec(f, &s, NULL), 0);
    }

    cr_assert_eq(lapse_listen(f->l, "q", NULL, take_a_while, &waiter), 0);
    flow_until(f, w.settled == N);
    cr_assert_eq(w.errors, 0);
    flow_each_once(&w, N);
    flow_end(f, "q");
}

static void run_below_lease(struct lapse_options *opts)
{
    opts->lease_ms = 30000;
    opts->run_ms = 3000;
    opts->sweep_ms = 60000;
}

/* A lease is no longer than run_ms: it must be looked at that often. */
Test(lease, of_a_job_that_waits_its_turn_is_renewed_where_run_ms_is_below_lease_ms)
{
    enum { N = 120 };
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, run_below_lease);
    struct flow_handler w = {.f = f, .way = FLOW_DONE};
    struct waiter waiter = {.w = &w, .for_ms = 40};

    flow_allow_log(f, "the lease of job");
    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    }

    cr_assert_eq(lapse_listen(f->l, "q", NULL, take_a_while, &waiter), 0);
    flow_until(f, w.settled == N);
    cr_assert_eq(flow_stats(f->l).claimed, N, "they went back, and were claimed again");
    flow_each_once(&w, N);
    flow_end(f, "q");
}
