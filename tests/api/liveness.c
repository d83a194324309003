/* SPDX-License-Identifier: MIT */
/* Redis is there and says nothing: only a deadline finds that out. */
#include "listening.h"
#include "wire.h"
#include <poll.h>
#include <signal.h>

/* A machine that has other work stands still for less. */
enum { REPLY_MS = 3500 };

static const char SILENT[] = "no answer from Redis";

static void short_patience(struct lapse_options *o)
{
    o->reply_ms = REPLY_MS;
}

static void expect_silence(struct flow *f)
{
    flow_allow_log(f, SILENT);
    flow_allow_log(f, "to the subscription");
    flow_allow_log(f, "cannot connect");
}

Test(liveness, a_connection_that_swallows_all_is_given_up_and_jobs_run_when_it_heals)
{
    enum { N = 20 };
    struct wire x;

    wire_start(&x, FLOW_DONE, short_patience);
    expect_silence(x.f);
    proxy_swallow(x.proxy, true);
    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_schedule(x.f, "q", NULL, 10 * i, NULL), 0);
    }

    long conns = proxy_conns(x.proxy);
    /* both, and again */
    flow_until(x.f, proxy_conns(x.proxy) >= conns + 2);
    flow_until(x.f, flow_logged(x.f, "connecting again") > 0 && proxy_conns(x.proxy) >= conns + 4);
    cr_assert_eq(x.w.n_runs, 0);
    proxy_heal(x.proxy);
    flow_until(x.f, x.w.settled == N);
    cr_assert_eq(x.w.errors, 0);
    flow_each_once(&x.w, N);
    flow_until_listeners(x.f, "q", 1);
    wire_end(&x);
}

/* celery#8091: alive, reconnected, and consuming nothing. No command is under way; the
 * subscription is dead without an error, and only its heartbeat can show that. */
Test(liveness, a_subscription_that_is_dead_without_a_word_is_noticed)
{
    enum { N = 20 };
    struct wire x;

    wire_start(&x, FLOW_DONE, short_patience);
    expect_silence(x.f);
    flow_allow_log(x.f, "expiry events do not arrive"); /* the canary may be first to miss them */

    long long entered = flow_calls(x.f, "set");
    proxy_swallow_conn(x.proxy, 2);
    proxy_swallow(x.proxy, true);
    flow_until(x.f, flow_logged(x.f, "to the subscription") == 1);
    flow_poll(x.f, flow_calls(x.f, "set") > entered); /* again */
    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_schedule(x.f, "q", NULL, 50, NULL), 0);
    }

    flow_until(x.f, x.w.settled == N);
    flow_each_once(&x.w, N);
    cr_assert_gt(flow_stats(x.l).events, 0);
    cr_assert_eq(flow_logged(x.f, SILENT), 1);
    wire_end(&x);
}

/* The other way round: no command is under way, and the next one must not be the first to
 * find out. */
Test(liveness, an_idle_connection_for_commands_that_is_dead_is_replaced_before_a_request_needs_it)
{
    struct wire x;

    wire_start(&x, FLOW_DONE, short_patience);

    struct lapse *direct = x.f->l;
    expect_silence(x.f);
    proxy_swallow_conn(x.proxy, 1);
    proxy_swallow(x.proxy, true);
    flow_until(x.f, flow_logged(x.f, SILENT) == 1 && flow_stats(x.l).reconnects == 1);
    cr_assert_eq(flow_logged(x.f, "to the subscription"), 0);
    x.f->l = x.l;
    cr_assert_eq(flow_get(x.f, "q", "nothing", NULL), LAPSE_ENOENT);
    x.f->l = direct;
    wire_end(&x);
}

Test(liveness, a_producer_that_asks_nothing_finds_out_too)
{
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct proxy *proxy = proxy_start(f->server);
    struct lapse_options opts = flow_options(f);

    opts.url = proxy->url;
    short_patience(&opts);
    f->l = flow_open(f, &opts);
    expect_silence(f);
    cr_assert_eq(flow_get(f, "q", "nothing", NULL), LAPSE_ENOENT);
    flow_spin(f, REPLY_MS + 1000);
    cr_assert_eq(flow_logged(f, SILENT), 0);
    proxy_swallow_conn(proxy, 1);
    proxy_swallow(proxy, true);
    flow_until(f, flow_stats(f->l).reconnects == 1);
    cr_assert_eq(flow_schedule(f, "q", "a", 3600000, NULL), 0);
    flow_close(f, f->l, 0);
    proxy_stop(proxy);
    flow_end(f, "q");
}

/* For a machine on which the proxy gets no CPU for two seconds. */
static void some_patience(struct lapse_options *opts)
{
    opts->reply_ms = 2500;
    opts->max_bytes = 64 << 20;
}

/* Its last byte comes long after reply_ms, and there is never a silence as long as that. */
Test(liveness, a_long_answer_over_a_slow_wire_is_no_silence)
{
    struct wire x;
    struct lapse_spec s = flow_job_spec("q", "a", 3600000);
    struct flow_job job;

    wire_start(&x, FLOW_DONE, some_patience);

    struct lapse *direct = x.f->l;
    s.body = calloc(1, s.body_len = 1 << 20);
    cr_assert_eq(flow_spec(x.f, &s, NULL), 0);
    proxy_delay(x.proxy, 290);
    x.f->l = x.l;

    int64_t from_ms = test_now_ms();
    cr_assert_eq(flow_get(x.f, "q", "a", &job), 0);
    cr_assert_gt(test_now_ms() - from_ms, 2 * 2500, "the wire was too fast to tell");
    cr_assert_eq(job.body_len, s.body_len);
    cr_assert_eq(flow_stats(x.l).reconnects, 0);
    x.f->l = direct;
    free((void *)s.body);
    wire_end(&x);
}

/* SIGSTOP: it accepts, and never answers. */
Test(liveness, a_stopped_redis_is_given_up_and_all_runs_once_when_it_goes_on)
{
    enum { N = 50 };
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, short_patience);
    struct flow_handler w = {.way = FLOW_DONE};

    expect_silence(f);
    flow_listen(f, "q", &w);
    flow_until_listeners(f, "q", 1);
    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 200 + i, NULL), 0);
    }

    server_signal(f->server, SIGSTOP);
    flow_until(f, flow_logged(f, SILENT) > 0);
    flow_spin(f, 700);
    server_signal(f->server, SIGCONT);
    flow_until(f, w.settled == N);
    cr_assert(w.err == 0 || w.err == LAPSE_ELOST);
    flow_each_once(&w, N);
    flow_end(f, "q");
}

Test(liveness, requests_that_wait_for_a_silent_redis_end_in_time)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, short_patience);
    struct flow_answer sent = {.f = f};
    struct flow_answer waits = {.f = f};
    struct lapse_spec s = flow_job_spec("q", "a", 3600000);

    expect_silence(f);
    /* From now on no request is longer than what Redis reads at once: of one that it reads in two
     * pieces, from a connection that is gone, it may throw the second away. */
    cr_assert_eq(flow_schedule(f, "q", "before", 3600000, NULL), 0);
    server_signal(f->server, SIGSTOP);
    cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &sent), 0);
    cr_assert_eq(flow_wait(f, &sent), LAPSE_ETIMEOUT);
    s.id = "b";
    cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &waits), 0);

    int err = flow_wait(f, &waits);
    cr_assert(err == LAPSE_EDOWN, "%s", lapse_strerror(err));
    server_signal(f->server, SIGCONT);
    flow_until(f, flow_stats(f->l).reconnects == 1);
    cr_assert_eq(flow_get(f, "q", "b", NULL), LAPSE_ENOENT); /* a NO: it was not stored */
    flow_poll(f, flow_get(f, "q", "a", NULL) == 0); /* a MAYBE: Redis read it when it went on */
    flow_end(f, "q");
}

static long long reads(struct flow *f)
{
    return flow_calls(f, "evalsha_ro") + flow_calls(f, "eval_ro");
}

/* This process slept, not Redis: the answers are in the socket. */
Test(liveness, a_busy_host_does_not_take_its_own_sleep_for_silence)
{
    enum { N = 3, SLEEP_MS = REPLY_MS + 100 };
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, short_patience);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_listen(f, "q", &w);
    flow_until_listeners(f, "q", 1);

    for (int i = 0; i < N; i++) {
        struct flow_answer a = {.f = f};
        long long answered = reads(f);
        int64_t end_ms = test_now_ms() + SLEEP_MS;

        cr_assert_eq(lapse_get(f->l, "q", "nothing", flow_answered, &a), 0);
        ev_run(f->loop, EVRUN_NOWAIT); /* sent */
        while (test_now_ms() < end_ms || reads(f) == answered) {
            poll(NULL, 0, 10);
        }
        cr_assert_eq(flow_wait(f, &a), LAPSE_ENOENT, "%s", lapse_strerror(a.err));
    }

    cr_assert_eq(flow_stats(f->l).reconnects, 0);
    flow_end(f, "q");
}

Test(liveness, a_slow_wire_is_no_silence)
{
    enum { N = 20 };
    struct wire x;

    wire_start(&x, FLOW_DONE, NULL);
    proxy_delay(x.proxy, 100);
    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_schedule(x.f, "q", NULL, i * 10, NULL), 0);
    }

    flow_until(x.f, x.w.settled == N);
    cr_assert_eq(x.w.errors, 0);
    flow_each_once(&x.w, N);
    cr_assert_eq(flow_stats(x.l).reconnects, 0);
    wire_end(&x);
}

static void impatient(struct lapse_options *o)
{
    o->reply_ms = REPLY_MS;
    o->max_bytes = 64 << 20;
}

/* A mebibyte is longer on its way than reply_ms, and nothing comes back meanwhile; those
 * behind it wait longer still. */
Test(liveness, bodies_on_a_slow_wire_are_no_silence_and_none_behind_them_is_given_up)
{
    enum { N = 3 };
    struct wire x;
    struct lapse_spec s = flow_job_spec("q", NULL, 3600000);
    struct flow_answer a[N];

    wire_start(&x, FLOW_DONE, some_patience);
    s.body = calloc(1, s.body_len = 1 << 20);
    proxy_delay(x.proxy, 180); /* each 64 KiB */

    int64_t from_ms = test_now_ms();
    for (int i = 0; i < N; i++) {
        a[i] = (struct flow_answer){.f = x.f};
        cr_assert_eq(lapse_schedule(x.l, &s, flow_answered, &a[i]), 0);
    }

    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_wait(x.f, &a[i]), 0);
    }

    cr_assert_gt(test_now_ms() - from_ms, 3 * 2500, "the wire was too fast to tell");
    cr_assert_eq(flow_stats(x.l).reconnects, 0);
    proxy_delay(x.proxy, 0);
    free((void *)s.body);
    wire_end(&x);
}

/* What fits into a socket is no sign of life, and what did not go out cannot have happened. */
Test(liveness, bodies_for_a_redis_that_reads_nothing_end_in_time_and_those_not_sent_did_not_happen)
{
    enum { N = 8 };
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, impatient);
    struct lapse_spec s = flow_job_spec("q", NULL, 3600000);
    struct flow_answer a[N];
    int sent = 0;
    int unsent = 0;

    expect_silence(f);
    flow_allow_log(f, "lost the connection");
    cr_assert_eq(flow_get(f, "q", "nothing", NULL), LAPSE_ENOENT);
    server_signal(f->server, SIGSTOP);
    s.body = calloc(1, s.body_len = 1 << 20);
    for (int i = 0; i < N; i++) {
        a[i] = (struct flow_answer){.f = f};
        cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &a[i]), 0);
    }

    for (int i = 0; i < N; i++) {
        int err = flow_wait(f, &a[i]);
        if (err == LAPSE_ETIMEOUT) {
            sent++;
        }
        if (err == LAPSE_EDOWN) {
            unsent++;
        }
    }

    cr_assert_eq(sent + unsent, N);
    cr_assert(sent > 0 && unsent >= N / 2, "%d sent, %d not", sent, unsent);
    server_signal(f->server, SIGCONT);
    flow_until(f, flow_get(f, "q", "nothing", NULL) == LAPSE_ENOENT);
    cr_assert_leq(flow_count(f, "q", "due"), sent);
    free((void *)s.body);
    flow_end(f, "q");
}
