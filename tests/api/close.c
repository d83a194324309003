/* SPDX-License-Identifier: MIT */
/* The end of a handle: what it waits for, what it ends, and which callbacks run. */
#include "handler.h"
#include "listening.h"
#include "loop.h"
#include "wire.h"
#include <signal.h>

enum { HOUR = 3600000 };

struct end {
    struct flow *f;
    unsigned calls, nth; /* of all callbacks */
};

static void on_closed(void *arg)
{
    struct end *e = arg;
    e->calls++;
    e->nth = ++e->f->n_answers;
}

static void gone(struct flow *f, struct end *e)
{
    flow_until(f, e->calls);
    flow_forget(f, f->l);
    ev_run(f->loop, EVRUN_NOWAIT);
    cr_assert_eq(e->calls, 1);
}

FLOW_ALL_MODES(close, waits_for_handlers_to_settle)
{
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_KEEP};
    struct end e = {.f = f};

    flow_listen(f, "q", &w);
    for (int i = 0; i < 5; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    }

    flow_until(f, w.n_held == 5);
    lapse_close(f->l, HOUR, on_closed, &e);
    loop_for(f->loop, 60);
    cr_assert_eq(e.calls, 0);
    flow_settle(&w, FLOW_DONE);
    gone(f, &e);
    cr_assert(w.settled == 5 && !w.errors);
    cr_assert_eq(flow_count(f, "q", "due") + flow_count(f, "q", "run"), 0);
    flow_end(f, "q");
}

FLOW_ALL_MODES(close, a_job_held_beyond_the_grace_goes_back_uncounted_and_is_readable_until_settled)
{
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_KEEP};
    struct flow_handler other = {.way = FLOW_DONE};
    struct end e = {.f = f};
    struct lapse_spec s = flow_job_spec("q", "a", 0);

    s.body = "still here", s.body_len = 10;
    s.tries = 1;
    flow_listen(f, "q", &w);
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    flow_until(f, w.n_held == 1);
    lapse_close(f->l, 30, on_closed, &e);
    gone(f, &e);

    struct lapse_options opts = flow_options(f);
    f->l = flow_open(f, &opts);
    flow_listen(f, "q", &other);
    flow_until(f, other.settled == 1);
    cr_assert_eq(other.runs[0].job.try_no, 1, "our own shutdown used a try");
    cr_assert_eq(flow_stats(f->l).recovered, 0, "it sat out its lease");
    cr_assert_gt(other.runs[0].job.token, w.runs[0].job.token);

    size_t len;
    const char *body = lapse_job_body(w.held[0], &len);
    cr_assert(len == 10 && memcmp(body, "still here", 10) == 0 &&
              strcmp(lapse_job_id(w.held[0]), "a") == 0);
    lapse_done(w.held[0], flow_on_settled, &w);
    loop_for(f->loop, 20);
    cr_assert_eq(w.settled, 0, "the callback of a settle without a handle");
    flow_end(f, "q");
}

Test(close, each_way_to_settle_a_job_of_a_closed_handle_only_frees_it)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};

    for (int i = 0; i < 4; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    }

    flow_listen(f, "q", &w);
    flow_until(f, w.n_held == 4);
    flow_close(f, f->l, 0);

    char *before = flow_dump(f);
    lapse_done(w.held[0], flow_on_settled, &w);
    lapse_retry(w.held[1], LAPSE_BACKOFF, "why", flow_on_settled, &w);
    lapse_fail(w.held[2], NULL, flow_on_settled, &w);
    lapse_forget(w.held[3]);

    char *after = flow_dump(f);
    cr_assert_str_eq(before, after);
    free(before);
    free(after);
    flow_end(f, "q");
}

Test(close, answers_what_was_asked_before_it_and_tells_its_end_last)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_answer a[20];
    struct end e = {.f = f};

    for (int i = 0; i < 20; i++) { /* not even connected */
        struct lapse_spec s = flow_job_spec("q", NULL, HOUR);
        a[i] = (struct flow_answer){.f = f};
        cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &a[i]), 0);
    }

    lapse_close(f->l, HOUR, on_closed, &e);
    gone(f, &e);
    for (int i = 0; i < 20; i++) {
        cr_assert(a[i].calls == 1 && a[i].err == 0);
    }

    cr_assert_eq(e.nth, 21);
    cr_assert_eq(flow_count(f, "q", "due"), 20);
    flow_end(f, "q");
}

Test(close, ends_what_redis_does_not_answer_with_elost_and_what_never_left_with_eclosed)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_answer sent = {.f = f};
    struct flow_answer unsent = {.f = f};
    struct end e = {.f = f};

    cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_ENOENT);
    server_signal(f->server, SIGSTOP);
    cr_assert_eq(lapse_get(f->l, "q", "a", flow_answered, &sent), 0);
    ev_run(f->loop, EVRUN_NOWAIT);

    struct lapse *first = f->l;
    f->l = flow_open(f, NULL); /* cannot get in */
    cr_assert_eq(lapse_get(f->l, "q", "a", flow_answered, &unsent), 0);
    flow_close(f, f->l, 30);
    cr_assert(unsent.calls == 1 && unsent.err == LAPSE_ECLOSED);
    f->l = first;
    lapse_close(f->l, 30, on_closed, &e);
    gone(f, &e);
    cr_assert(sent.calls == 1 && sent.err == LAPSE_ELOST && sent.nth < e.nth);
    server_signal(f->server, SIGCONT);
    flow_end(f, "q");
}

Test(close, a_settle_that_redis_does_not_answer_is_elost)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};
    struct end e = {.f = f};

    flow_listen(f, "q", &w);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    }

    flow_until(f, w.n_held == 2);
    server_signal(f->server, SIGSTOP);
    lapse_done(w.held[0], flow_on_settled, &w);
    lapse_done(w.held[1], NULL, NULL);
    lapse_close(f->l, 30, on_closed, &e);
    gone(f, &e);
    cr_assert(w.settled == 1 && w.err == LAPSE_ELOST);
    server_signal(f->server, SIGCONT);
    flow_end(f, "q");
}

Test(close, without_redis_ends_after_the_grace)
{
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct flow_answer a = {.f = f};
    struct flow_handler w = {.way = FLOW_DONE};
    struct end e = {.f = f};

    flow_allow_log(f, "cannot connect to Redis at ");
    server_kill9(f->server);
    f->l = flow_open(f, NULL);
    flow_listen(f, "q", &w);
    cr_assert_eq(lapse_get(f->l, "q", "a", flow_answered, &a), 0);
    lapse_close(f->l, 50, on_closed, &e);
    gone(f, &e);
    cr_assert(a.calls == 1 && a.err == LAPSE_ECLOSED && e.nth == 2);
    server_restart(f->server);
    flow_end(f);
}

Test(close, before_the_first_turn_of_the_loop)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct end e = {.f = f};

    lapse_close(f->l, HOUR, on_closed, &e);
    gone(f, &e);
    f->l = flow_open(f, NULL);
    flow_close(f, f->l, -5); /* no grace */
    flow_end(f);
}

Test(close, again_the_earlier_end_and_the_first_closed_win)
{
    static const int64_t grace[][2] = {
        {HOUR, 0}, {0, INT64_MAX}, {INT64_MAX, 20}, {20, HOUR}, {HOUR, INT64_MIN}};
    struct flow *f = flow_bare(FLOW_FULL, NULL);

    for (size_t i = 0; i < sizeof grace / sizeof *grace; i++) {
        struct flow_handler w = {.way = FLOW_KEEP};
        struct end first = {.f = f};
        struct end second = {.f = f};
        f->l = flow_open(f, NULL);
        flow_listen(f, "q", &w);
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
        flow_until(f, w.n_held == 1); /* held: only the grace ends it */
        lapse_close(f->l, grace[i][0], on_closed, &first);
        lapse_close(f->l, grace[i][1], on_closed, &second);
        gone(f, &first);
        cr_assert_eq(second.calls, 0);
        lapse_done(w.held[0], NULL, NULL);
        redis_do(f->server, "FLUSHALL");
    }

    flow_end(f, "q");
}

/* A later call may name the first callback: until the handle has ended, and while its last
 * callbacks run. */
Test(close, without_a_callback_leaves_its_end_to_the_callback_of_a_second_close)
{
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct flow_handler w = {.way = FLOW_KEEP};
    struct end e = {.f = f};

    f->l = flow_open(f, NULL);
    flow_listen(f, "q", &w);
    cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    flow_until(f, w.n_held == 1);
    lapse_close(f->l, HOUR, NULL, NULL);
    lapse_close(f->l, 0, on_closed, &e);
    gone(f, &e);
    lapse_done(w.held[0], NULL, NULL);
    redis_do(f->server, "FLUSHALL");
    flow_end(f, "q");
}

static void on_end_close(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    (void)job;
    cr_assert_eq(err, LAPSE_ECLOSED);
    lapse_close(l, 0, on_closed, arg);
}

Test(close, without_a_callback_that_has_ended_still_calls_that_of_a_close_in_its_last_callback)
{
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct end e = {.f = f};

    f->l = flow_open(f, NULL);
    cr_assert_eq(lapse_get(f->l, "q", "a", on_end_close, &e), 0);
    lapse_close(f->l, 0, NULL, NULL);
    gone(f, &e);
    flow_end(f);
}

Test(close, every_call_in_between_is_eclosed)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};
    struct end e = {.f = f};
    struct lapse_spec s = flow_job_spec("q", "b", HOUR);
    struct lapse_settlement done = {.size = sizeof done, .how = LAPSE_HOW_DONE};
    struct lapse_stats stats;
    struct lapse *l = f->l;

    flow_hold(f, &w, "a");
    lapse_close(l, HOUR, on_closed, &e);
    cr_assert_eq(lapse_claim(l, "q", 1, 0, flow_claimed, NULL), LAPSE_ECLOSED);
    cr_assert_eq(lapse_claim(l, "q2", 1, HOUR, flow_claimed, NULL), LAPSE_ECLOSED);
    cr_assert_eq(lapse_claim_id(l, "q2", "a", flow_claimed, NULL), LAPSE_ECLOSED);
    cr_assert_eq(lapse_settle(l, "q", "a", 1, &done, flow_answered, NULL), LAPSE_ECLOSED);
    cr_assert_eq(lapse_schedule(l, &s, flow_answered, NULL), LAPSE_ECLOSED);
    cr_assert_eq(lapse_cancel(l, "q", "a", 0, flow_answered, NULL), LAPSE_ECLOSED);
    cr_assert_eq(lapse_reschedule(l, "q", "a", lapse_in(1), 0, flow_answered, NULL), LAPSE_ECLOSED);
    cr_assert_eq(lapse_get(l, "q", "a", flow_answered, NULL), LAPSE_ECLOSED);
    cr_assert_eq(lapse_depth(l, "q", flow_depth_answered, NULL), LAPSE_ECLOSED);
    cr_assert_eq(lapse_list(l, "q", LAPSE_DEAD, NULL, 1, flow_list_answered, NULL), LAPSE_ECLOSED);
    cr_assert_eq(lapse_listen(l, "q2", NULL, flow_on_job, &w), LAPSE_ECLOSED);
    cr_assert_eq(lapse_unlisten(l, "q"), LAPSE_ECLOSED);
    lapse_stats(l, &stats, sizeof stats);
    cr_assert_eq(stats.claimed, 1);
    flow_settle(&w, FLOW_DONE); /* but what is held is settled */
    cr_assert_eq(w.errors, 0);
    gone(f, &e);
    flow_end(f, "q");
}

static void close_now(struct lapse *l, struct lapse_job *job, void *arg)
{
    struct flow_handler *w = arg;
    flow_on_job(l, job, w);
    lapse_close(l, 5000, NULL, NULL);
}

FLOW_ALL_MODES(close, jobs_claimed_and_not_begun_go_back_uncounted)
{
    enum { N = 40 };
    struct flow *f = flow_bare(mode, NULL);
    struct flow_handler first = {.f = f, .way = FLOW_DONE};
    struct flow_handler second = {.way = FLOW_DONE};

    f->l = flow_open(f, NULL);
    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    }

    cr_assert_eq(lapse_listen(f->l, "q", NULL, close_now, &first), 0);
    flow_until(f, first.settled == 1);
    flow_until(f, flow_count(f, "q", "due") == N - 1 && flow_count(f, "q", "run") == 0);
    flow_forget(f, f->l);
    cr_assert_eq(first.n_runs, 1, "the handler does not run again");
    f->l = flow_open(f, NULL);
    flow_listen(f, "q", &second);
    flow_until(f, second.settled == N - 1);
    for (size_t i = 0; i < second.n_runs; i++) {
        cr_assert_eq(second.runs[i].job.try_no, 1);
    }

    flow_end(f, "q");
}

static void close_without_grace(struct lapse *l, struct lapse_job *job, void *arg)
{
    flow_on_job(l, job, arg);
    lapse_close(l, 0, NULL, NULL);
}

/* The first release that a Redis sees needs two calls: it does not know the script. */
Test(close, without_a_grace_jobs_that_were_not_begun_go_back_uncounted)
{
    enum { N = 40 };
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler first = {.f = f, .way = FLOW_KEEP};
    struct flow_job job;

    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_schedule(f, "q", i == 0 ? "a" : NULL, 0, NULL), 0);
    }

    cr_assert_eq(lapse_listen(f->l, "q", NULL, close_without_grace, &first), 0);
    flow_until(f, first.n_runs == 1);
    flow_poll(f, flow_count(f, "q", "run") == 0);
    cr_assert_eq(flow_count(f, "q", "due"), N);
    flow_forget(f, f->l);
    lapse_done(first.held[0], NULL, NULL);

    f->l = flow_open(f, NULL);
    cr_assert_eq(flow_get(f, "q", "a", &job), 0);
    cr_assert_leq(job.try_no, 1);
    flow_end(f, "q");
}

Test(close, a_settle_that_is_under_way_when_the_grace_is_over_is_answered)
{
    struct wire x;
    struct end e;

    wire_start(&x, FLOW_KEEP, NULL);
    e = (struct end){.f = x.f};
    cr_assert_eq(flow_schedule(x.f, "q", "a", 0, NULL), 0);
    flow_until(x.f, x.w.n_held == 1);
    proxy_delay(x.proxy, 100);
    lapse_done(x.w.held[0], flow_on_settled, &x.w);
    lapse_close(x.l, 0, on_closed, &e);
    flow_until(x.f, e.calls);
    flow_forget(x.f, x.l);
    cr_assert(x.w.settled == 1 && x.w.err == 0, "%s", lapse_strerror(x.w.err));
    cr_assert_eq(flow_get(x.f, "q", "a", NULL), LAPSE_ENOENT);
    proxy_stop(x.proxy);
    flow_end(x.f, "q");
}

/* What the claim brings is given back, too. */
Test(close, a_claim_that_is_under_way_when_the_grace_is_over_leaves_no_job_running)
{
    struct wire x;
    struct end e;

    wire_start(&x, FLOW_KEEP, NULL);
    e = (struct end){.f = x.f};
    proxy_delay(x.proxy, 200);
    cr_assert_eq(flow_schedule(x.f, "q", "a", 0, NULL), 0);
    flow_poll(x.f, flow_count(x.f, "q", "run") == 1); /* the answer is on its way */
    cr_assert_eq(x.w.n_runs, 0);
    lapse_close(x.l, 0, on_closed, &e);
    flow_until(x.f, e.calls);
    flow_forget(x.f, x.l);
    cr_assert_eq(x.w.n_runs, 0);
    cr_assert_eq(flow_count(x.f, "q", "due"), 1);
    cr_assert_eq(flow_count(x.f, "q", "run"), 0);
    proxy_stop(x.proxy);
    flow_end(x.f, "q");
}

Test(close, of_nothing_is_nothing_and_the_loop_ends_with_its_last_handle)
{
    struct flow *f = flow_start(FLOW_FULL);

    lapse_close(NULL, 0, on_closed, NULL);
    lapse_abandon(NULL);
    lapse_close(f->l, 1000, NULL, NULL);
    flow_forget(f, f->l);
    ev_run(f->loop, 0); /* returns, for nothing is left to wait for */
    flow_end(f);
}
