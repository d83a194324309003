/* SPDX-License-Identifier: MIT */
/* A queue that is paused: its jobs wait wherever they are looked for, and go on at once. */
#include "handler.h"
#include "listening.h"
#include "proxy.h"

enum { HOUR = 3600000, MANY = 50 };

static void no_sweep(struct lapse_options *o)
{
    o->sweep_ms = 60000;
}

static int pause_queue(struct flow *f, int64_t for_ms, char text[FLOW_TEXT])
{
    struct flow_answer a = {.f = f};
    int err = lapse_pause(f->l, "q", NULL, for_ms, flow_text_answered, &a);

    if (!err) {
        err = flow_wait(f, &a);
        strcpy(text, a.text);
    }
    return err;
}

static int unpause(struct flow *f)
{
    struct flow_answer a = {.f = f};
    int err = lapse_unpause(f->l, "q", NULL, flow_text_answered, &a);
    return err ? err : flow_wait(f, &a);
}

/* row 5 of the verbs that other queues have */
FLOW_ALL_MODES(pause, stops_giving_out_jobs_everywhere_and_goes_on)
{
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_DONE};
    struct lapse *listens = f->l;
    char text[FLOW_TEXT];

    flow_listen(f, "q", &w);
    f->l = flow_open(f, NULL); /* another process pauses, schedules and unpauses */
    cr_assert_eq(pause_queue(f, 0, text), 0);
    cr_assert_str_eq(text, "paused=9007199254740992");

    cr_assert_eq(flow_schedule(f, "q", "now", 0, NULL), 0);
    cr_assert_eq(flow_schedule(f, "q", "soon", 30, NULL), 0);
    flow_spin(f, 400);
    cr_assert_eq(w.n_runs, 0);
    cr_assert_eq(flow_count(f, "q", "due"), 2);

    cr_assert_eq(unpause(f), 0);
    flow_until(f, w.settled == 2);
    flow_each_once(&w, 2);
    f->l = listens;
    flow_end(f, "q");
}

FLOW_ALL_MODES(pause, for_a_while_ends_by_itself)
{
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_DONE};
    char text[FLOW_TEXT];

    flow_listen(f, "q", &w);
    cr_assert_eq(pause_queue(f, 300, text), 0);

    int64_t until_ms = atoll(text + strlen("paused="));
    cr_assert_eq(flow_schedule(f, "q", "now", 0, NULL), 0);
    cr_assert_eq(flow_schedule(f, "q", "soon", 20, NULL), 0);
    flow_until(f, w.settled == 2);
    for (size_t i = 0; i < w.n_runs; i++) {
        cr_assert_geq(w.runs[i].job.claimed_us, until_ms * 1000);
    }
    flow_end(f, "q");
}

/* The sweep is a minute away. */
Test(pause, that_ends_is_heard_at_once)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);
    struct lapse_options o = flow_options(f);
    struct flow_handler w = {.way = FLOW_DONE};
    char text[FLOW_TEXT];

    flow_listen(f, "q", &w);
    flow_until_listeners(f, "q", 1);
    f->l = flow_open(f, &o);

    for (unsigned i = 1; i <= 10; i++) {
        cr_assert_eq(pause_queue(f, i % 2 ? 0 : 200, text), 0);
        cr_assert_eq(flow_schedule(f, "q", NULL, i % 3 ? 0 : 10, NULL), 0);
        if (i % 2) {
            flow_spin(f, 20);
            cr_assert_eq(unpause(f), 0);
        }
        flow_until(f, w.settled == i);
    }
    flow_end(f, "q");
}

/* Notices and answers come on two connections, and either may be the slower one. The sweep is a
 * minute away. */
Test(pause, that_ends_while_a_claim_is_on_its_way_is_not_missed)
{
    enum { ROUNDS = 60, DOWN_US = 10000, JITTER_US = 9000 };
    struct flow *f = flow_start(FLOW_FULL);
    struct proxy *p = proxy_start(f->server);
    struct lapse *direct = f->l;
    struct lapse_options o = flow_options(f);
    struct flow_handler w = {.way = FLOW_DONE};
    char text[FLOW_TEXT];

    proxy_network(p, 0, DOWN_US, JITTER_US);
    no_sweep(&o);
    o.url = p->url;
    f->l = flow_open(f, &o);
    flow_listen(f, "q", &w);
    flow_until_listeners(f, "q", 1);

    struct lapse *far = f->l;
    f->l = direct;
    for (unsigned i = 1; i <= ROUNDS; i++) {
        cr_assert_eq(pause_queue(f, 0, text), 0);
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
        flow_spin(f, i % 30);
        cr_assert_eq(unpause(f), 0);
        flow_until(f, w.settled == i);
    }

    flow_close(f, far, 1000);
    proxy_stop(p);
    flow_end(f, "q");
}

Test(pause, lets_jobs_be_scheduled_cancelled_and_rescheduled_and_what_runs_run_on)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);
    struct flow_handler w = {.way = FLOW_KEEP};
    struct flow_job job;
    char text[FLOW_TEXT];

    flow_listen(f, "q", &w);
    cr_assert_eq(flow_schedule(f, "q", "runs", 0, NULL), 0);
    cr_assert_eq(flow_schedule(f, "q", "fails", 0, NULL), 0);
    flow_until(f, w.n_held == 2);

    cr_assert_eq(pause_queue(f, 0, text), 0);
    cr_assert_eq(flow_schedule(f, "q", "new", 0, NULL), 0);
    cr_assert_eq(flow_reschedule(f, "q", "new", lapse_in(HOUR), NULL), 0);
    cr_assert_eq(flow_get(f, "q", "runs", &job), 0);
    cr_assert_eq(job.state, LAPSE_RUNNING);

    lapse_done(w.held[0], flow_on_settled, &w);
    w.delay_ms = 0;
    lapse_retry(w.held[1], 0, "again", flow_on_settled, &w);
    w.n_held = 0;
    flow_until(f, w.settled == 2);
    cr_assert_eq(w.errors, 0);
    cr_assert_eq(flow_count(f, "q", "run"), 0);

    cr_assert_eq(flow_cancel(f, "q", "new", NULL), 0);
    flow_spin(f, 50);
    cr_assert_eq(w.n_runs, 2); /* the one that was retried waits */
    cr_assert_eq(unpause(f), 0);
    flow_until(f, w.n_held == 1);
    cr_assert_str_eq(w.runs[2].job.id, w.runs[1].job.id);
    flow_settle(&w, FLOW_DONE);
    flow_end(f, "q");
}

static void costs_no_claim(enum flow_mode mode, int n_listeners)
{
    struct flow *f = flow_start_opts(mode, NULL, no_sweep);
    struct lapse_options o = flow_options(f);
    struct flow_handler w[2] = {{.way = FLOW_DONE}, {.way = FLOW_DONE}};
    char text[FLOW_TEXT];

    no_sweep(&o);
    for (int i = 0; i < n_listeners; i++) {
        f->l = i ? flow_open(f, &o) : f->l;
        flow_listen(f, "q", &w[i]);
    }
    flow_until_listeners(f, "q", n_listeners);
    f->l = flow_open(f, &o); /* another schedules */
    flow_spin(f, 400);

    cr_assert_eq(pause_queue(f, 0, text), 0);
    cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0); /* they learn of the pause */
    cr_assert_eq(flow_schedule(f, "q", NULL, 20, NULL), 0);
    flow_spin(f, 400);

    long long asked = flow_calls(f, "mget");
    for (int i = 0; i < MANY; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, i % 2 ? 0 : 10 + i, NULL), 0);
    }
    flow_spin(f, 400);
    asked = flow_calls(f, "mget") - asked; /* of claim and touch alone */
    cr_assert_leq(asked, n_listeners - 1, "%lld claims and touches for %d jobs", asked, MANY);
    cr_assert_eq(flow_count(f, "q", "due"), MANY + 2);

    cr_assert_eq(unpause(f), 0);
    flow_until(f, w[0].settled + w[1].settled == MANY + 2);
    flow_end(f, "q");
}

Test(pause, costs_no_claim_a_job)
{
    costs_no_claim(FLOW_FULL, 1);
}

Test(pause, costs_no_claim_a_job_that_redis_does_not_expire)
{
    costs_no_claim(FLOW_STILL, 1);
}

Test(pause, costs_no_claim_a_job_of_two_listeners)
{
    costs_no_claim(FLOW_FULL, 2);
}

Test(pause, whose_end_was_not_heard_is_found_by_the_sweep)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_options o = flow_options(f);
    struct flow_handler w = {.way = FLOW_DONE};
    char text[FLOW_TEXT];

    o.sweep_ms = 50;
    f->l = flow_open(f, &o);
    flow_listen(f, "q", &w);
    flow_until_listeners(f, "q", 1);
    cr_assert_eq(pause_queue(f, 0, text), 0);
    cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    flow_spin(f, 200);
    cr_assert_eq(w.n_runs, 0);
    redis_do(f->server, "DEL lapse:{q}:conf");
    flow_until(f, w.settled == 1);
    flow_end(f, "q");
}

Test(pause, outlives_a_reconnect)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);
    struct flow_handler w = {.way = FLOW_DONE};
    char text[FLOW_TEXT];

    flow_allow_log(f, "connect");
    flow_listen(f, "q", &w);
    cr_assert_eq(pause_queue(f, 0, text), 0);
    cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    flow_heard(f); /* the connection for events is subscribed, and no normal one */
    flow_spin(f, 50);

    redis_do(f->server, "CLIENT KILL TYPE normal SKIPME yes");
    flow_until(f, flow_stats(f->l).reconnects == 1);
    flow_heard(f);
    flow_spin(f, 100);
    cr_assert_eq(w.n_runs, 0);
    redis_do(f->server, "CLIENT KILL TYPE normal SKIPME yes");
    redis_do(f->server, "DEL lapse:{q}:conf"); /* nobody publishes that */
    flow_until(f, w.settled == 1);
    flow_end(f, "q");
}

Test(pause, of_a_queue_with_10000_jobs_keeps_them_all)
{
    enum { ALL = 10000 };
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);
    struct flow_handler w = {.way = FLOW_DONE};
    char text[FLOW_TEXT];
    unsigned before = 0;

    flow_listen(f, "q", &w);
    flow_until_listeners(f, "q", 1);
    redis_do(f->server, "EVAL %s 0",
             "for i = 1, 10000 do redis.call('ZADD', 'lapse:{q}:due', 5, 'j' .. i) "
             "redis.call('HSET', 'lapse:{q}:jobs', 'j' .. i, '\\1\\0') end");
    cr_assert_eq(flow_schedule(f, "q", "first", 0, NULL), 0);
    flow_until(f, w.settled > 1000);
    cr_assert_eq(pause_queue(f, 0, text), 0);
    do {
        before = w.settled;
        flow_spin(f, 200);
    } while (w.settled != before);
    flow_poll(f, flow_count(f, "q", "run") == 0);
    flow_calm(f);

    long long left = flow_count(f, "q", "due");
    cr_assert_eq(left + w.settled, ALL + 1);
    cr_assert_gt(left, 0);
    cr_assert_eq(flow_count(f, "q", "run"), 0);
    cr_assert_eq(unpause(f), 0);
    flow_until(f, w.settled == ALL + 1);
    flow_end(f, "q");
}

Test(pause, of_a_queue_whose_handler_goes_is_no_matter)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};
    char text[FLOW_TEXT];

    flow_listen(f, "q", &w);
    cr_assert_eq(pause_queue(f, 150, text), 0);
    cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    flow_spin(f, 30);
    cr_assert_eq(lapse_unlisten(f->l, "q"), 0);
    flow_spin(f, 200);
    flow_listen(f, "q", &w);
    flow_until(f, w.settled == 1);
    cr_assert_eq(pause_queue(f, 0, text), 0);
    flow_end(f, "q"); /* it closes while the gate is closed */
}
