/* SPDX-License-Identifier: MIT */
/* After a reconnect: claims whose answer was lost, jobs that are held, claims that wait to be
 * sent. */
#include "listening.h"
#include "wire.h"

/* A job is due, and the listener hears of it, while it cannot ask. */
Test(reclaim, a_claim_that_waited_for_the_connection_is_not_taken_for_a_lost_one)
{
    struct wire x;

    wire_start(&x, FLOW_KEEP, NULL);
    proxy_refuse(x.proxy, true);
    wire_cut(&x, PROXY_UP, 0);

    struct flow_answer a = {.f = x.f};
    cr_assert_eq(lapse_get(x.l, "q", "nothing", flow_answered, &a), 0);
    cr_assert_eq(flow_wait(x.f, &a), LAPSE_ELOST);
    cr_assert_eq(flow_schedule(x.f, "q", "a", 0, NULL), 0);
    redis_do(x.f->server, "PUBLISH __keyevent@0__:expired lapse:{q}:t:a");
    flow_until(x.f, flow_stats(x.l).events == 1);
    flow_allow_log(x.f, "cannot connect");
    proxy_refuse(x.proxy, false);
    flow_until(x.f, x.w.n_runs == 1);
    flow_settle(&x.w, FLOW_DONE);
    cr_assert_eq(x.w.errors, 0, "%s", lapse_strerror(x.w.err));
    cr_assert_eq(x.w.n_runs, 1);
    cr_assert_eq(flow_stats(x.l).reconnects, 1);
    wire_end(&x);
}

/* A claim that Redis made and we did not hear of goes back, and its try is not counted. */
Test(reclaim, a_claim_cut_after_each_byte_of_its_answer_runs_once_with_try_1)
{
    enum { LAST = 190, STEP = 3 };
    struct wire x;
    unsigned n = 0;

    wire_start(&x, FLOW_DONE, NULL);

    for (long bytes = 0; bytes <= LAST; bytes += STEP, n++) {
        wire_cut(&x, PROXY_DOWN, bytes);
        cr_assert_eq(flow_schedule(x.f, "q", NULL, 0, NULL), 0);
        flow_until(x.f, x.w.settled == n + 1);
        proxy_cut_after(x.proxy, PROXY_DOWN, -1);
    }

    cr_assert(x.w.err == 0 || x.w.err == LAPSE_ELOST, "%s", lapse_strerror(x.w.err));
    flow_each_once(&x.w, n);

    struct lapse_stats s = flow_stats(x.l);
    cr_assert_eq(s.claimed, n);
    cr_assert_eq(s.recovered, 0);
    cr_assert_gt(s.reconnects, 30);
    wire_end(&x);
}

Test(reclaim, many_claims_whose_answer_is_lost_go_back_and_run_once)
{
    enum { N = 150 };
    struct wire x;

    wire_start(&x, FLOW_DONE, NULL);
    proxy_refuse(x.proxy, true);
    flow_allow_log(x.f, "cannot connect");
    wire_lose(&x);
    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_schedule(x.f, "q", NULL, 0, NULL), 0);
    }

    wire_cut(&x, PROXY_DOWN, 2000);
    proxy_cut_conn(x.proxy, 0);
    proxy_refuse(x.proxy, false);
    flow_until(x.f, x.w.settled == N);
    flow_each_once(&x.w, N);
    cr_assert_gt(flow_stats(x.l).reconnects, 1);
    wire_end(&x);
}

static void a_short_lease(struct lapse_options *o)
{
    o->lease_ms = 6000;
    o->sweep_ms = 500;
}

Test(reclaim, what_is_held_is_renewed_and_stays_ours)
{
    enum { N = 20 };
    struct wire x;

    wire_start(&x, FLOW_KEEP, NULL);
    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_schedule(x.f, "q", NULL, 0, NULL), 0);
    }

    flow_until(x.f, x.w.n_held == N);

    int64_t until_ms = lapse_job_until_ms(x.w.held[0]);
    uint64_t token = lapse_job_token(x.w.held[0]);
    wire_lose(&x);
    flow_until(x.f, lapse_job_until_ms(x.w.held[0]) > until_ms);
    cr_assert_eq(lapse_job_token(x.w.held[0]), token);
    cr_assert_eq(flow_count(x.f, "q", "run"), N);
    flow_settle(&x.w, FLOW_DONE);
    cr_assert_eq(x.w.errors, 0);
    flow_each_once(&x.w, N);
    cr_assert_eq(flow_logged(x.f, "replies to their claims were lost"), 0);
    wire_end(&x);
}

/* Stopped, and begun again with a handler of its own: what the first one holds is in our hands all
 * the same. */
Test(reclaim, jobs_of_a_handler_that_was_replaced_do_not_go_back)
{
    struct wire x;
    struct flow_handler second = {.way = FLOW_DONE};

    wire_start(&x, FLOW_KEEP, NULL);
    cr_assert_eq(flow_schedule(x.f, "q", "a", 0, NULL), 0);
    flow_until(x.f, x.w.n_held == 1);

    struct lapse *direct = x.f->l;
    x.f->l = x.l;
    cr_assert_eq(lapse_unlisten(x.l, "q"), 0);
    flow_listen(x.f, "q", &second);
    wire_lose(&x);
    flow_until(x.f, flow_stats(x.l).reconnects == 1);
    cr_assert_eq(flow_get(x.f, "q", "a", NULL), 0); /* behind the resume */
    cr_assert_eq(flow_schedule(x.f, "q", "b", 0, NULL), 0);
    flow_until(x.f, second.settled == 1);
    x.f->l = direct;
    flow_settle(&x.w, FLOW_DONE);
    cr_assert_eq(x.w.errors, 0, "%s", lapse_strerror(x.w.err));
    flow_each_once(&x.w, 1);
    flow_each_once(&second, 1);
    wire_end(&x);
}

/* Nobody could take the jobs meanwhile; the sweep at the reconnect must not take them either, and
 * then they are renewed. */
Test(reclaim, redis_away_for_longer_than_a_lease_does_not_run_live_jobs_twice)
{
    enum { N = 20 };
    static const char *const always[] = {"--appendfsync", "always", NULL};
    struct flow *f = flow_start_opts(FLOW_FULL, always, a_short_lease);
    struct flow_handler w = {.way = FLOW_KEEP};

    flow_allow_log(f, "onnect");
    flow_allow_log(f, "the lease of job");
    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    }

    flow_listen(f, "q", &w);
    flow_until(f, w.n_held == N);
    server_kill9(f->server);
    flow_until(f, lapse_job_until_ms(w.held[0]) == 0);
    server_restart(f->server);
    flow_until(f, lapse_job_until_ms(w.held[0]) > 0);

    int64_t until_ms = lapse_job_until_ms(w.held[0]);
    flow_until(f, lapse_job_until_ms(w.held[0]) >= until_ms + 3000); /* past regular sweeps */
    cr_assert_eq(w.n_runs, N);
    flow_settle(&w, FLOW_DONE);
    cr_assert_eq(w.errors, 0);
    flow_each_once(&w, N);
    flow_end(f, "q");
}

/* Its handler had begun, so it is not one of the claims whose answer was lost. */
Test(reclaim, a_run_that_could_not_be_settled_in_time_has_used_its_try)
{
    static const char *const always[] = {"--appendfsync", "always", NULL};
    struct flow *f = flow_start_opts(FLOW_FULL, always, a_short_lease);
    struct flow_handler w = {.way = FLOW_KEEP};

    flow_allow_log(f, "onnect");
    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
    flow_listen(f, "q", &w);
    flow_until(f, w.n_held == 1);
    server_kill9(f->server);
    flow_settle(&w, FLOW_DONE); /* until the lease is over */
    cr_assert_eq(w.errors, 1);
    w.way = FLOW_DONE;
    server_restart(f->server);
    flow_until(f, w.settled == 2);
    cr_assert_eq(w.n_runs, 2);
    cr_assert_eq(w.runs[1].job.try_no, 2);
    flow_end(f, "q");
}

/* The reconnect looks at what runs, page by page, while a new handler of the queue begins to
 * claim. */
Test(reclaim, of_a_queue_that_got_a_new_handler_meanwhile_gives_back_nothing_of_that_handler)
{
    enum { N = 50, DELAY_MS = 30 };
    struct wire x;
    struct flow_handler second = {.way = FLOW_KEEP};

    wire_start(&x, FLOW_KEEP, NULL);
    redis_do(x.f->server, "EVAL %s 0", /* others hold so many that there are many pages */
             "for i = 1, 3000 do redis.call('ZADD', 'lapse:{q}:run', 99999999999999, 'x' .. i) "
             "redis.call('HSET', 'lapse:{q}:jobs', 'x' .. i, '\\1\\0') redis.call('HSET', "
             "'lapse:{q}:attempts', 'x' .. i, '1 5 other/1 1 10 5 5 ') end");
    wire_lose(&x);
    flow_until(x.f, flow_stats(x.l).reconnects == 1);
    proxy_delay(x.proxy, DELAY_MS);

    struct lapse *direct = x.f->l;
    x.f->l = x.l;
    cr_assert_eq(lapse_unlisten(x.l, "q"), 0);
    flow_listen(x.f, "q", &second);
    x.f->l = direct;
    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_schedule(x.f, "q", NULL, 0, NULL), 0);
    }

    flow_until(x.f, second.n_held >= N);
    flow_spin(x.f, 20 * DELAY_MS);
    cr_assert_eq(flow_logged(x.f, "replies to their claims were lost"), 0);
    cr_assert_eq(second.n_runs, N, "some went back, and were claimed again");

    proxy_delay(x.proxy, 0);
    flow_settle(&second, FLOW_DONE);
    cr_assert_eq(second.errors, 0);
    redis_do(x.f->server, "EVAL %s 0",
             "for i = 1, 3000 do redis.call('ZREM', 'lapse:{q}:run', 'x' .. i) redis.call('HDEL', "
             "'lapse:{q}:jobs', 'x' .. i) redis.call('HDEL', 'lapse:{q}:attempts', 'x' .. i) end");
    wire_end(&x);
}
