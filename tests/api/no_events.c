/* SPDX-License-Identifier: MIT */
/* No events: Redis does not send them, this user may not subscribe, or they stop. Everything is
 * delivered all the same. */
#include "listening.h"
#include "wire.h"

static const char WARNING[] = "expiry events do not arrive";

static void run_jobs(struct flow *f, struct flow_handler *w, int n)
{
    unsigned want = w->settled + (unsigned)n;
    for (int i = 0; i < n; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, i % 3 * 20, NULL), 0);
    }
    flow_until(f, w->settled == want);
}

Test(no_events, without_notifications_all_is_delivered_and_one_warning_says_why)
{
    struct flow *f = flow_start(FLOW_MUTE);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_listen(f, "q", &w);
    run_jobs(f, &w, 30);
    cr_assert_eq(flow_stats(f->l).missed_events, flow_logged(f, WARNING));
    flow_until(f, flow_logged(f, WARNING) == 1);
    cr_assert_eq(flow_stats(f->l).missed_events, 1);
    run_jobs(f, &w, 30);
    flow_each_once(&w, 60);
    cr_assert_eq(flow_stats(f->l).via_event, 0);
    cr_assert_eq(flow_logged(f, WARNING), 1);
    flow_end(f, "q");
}

Test(no_events, notifications_that_stop_are_noticed_and_so_are_those_that_come_back)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_listen(f, "q", &w);
    run_jobs(f, &w, 6);
    redis_do(f->server, "CONFIG SET notify-keyspace-events %s", "");
    flow_allow_log(f, WARNING);
    flow_until(f, flow_logged(f, WARNING) == 1);
    run_jobs(f, &w, 6);
    redis_do(f->server, "CONFIG SET notify-keyspace-events Ex");
    flow_until(f, flow_logged(f, "events arrive again") == 1);

    uint64_t deaf = flow_stats(f->l).missed_events;
    cr_assert_geq(deaf, 1);
    run_jobs(f, &w, 6);
    flow_each_once(&w, 18);
    cr_assert_eq(flow_logged(f, WARNING), 1);
    cr_assert_eq(flow_stats(f->l).missed_events, deaf);
    flow_end(f, "q");
}

static void keyspace(struct lapse_options *o)
{
    o->notify = LAPSE_KEYSPACE;
}

Test(no_events, the_warning_names_the_flags_of_the_way_that_was_chosen)
{
    static const char *const args[] = {"--notify-keyspace-events", "Ex", NULL};
    struct flow *f = flow_start_opts(FLOW_FULL, args, keyspace);
    struct flow_handler w = {.way = FLOW_DONE};

    server_allow(f->server, "(+psubscribe &__keyspace@0__:lapse:{q}:t:*)");
    flow_allow_log(f, WARNING);
    flow_listen(f, "q", &w);
    run_jobs(f, &w, 6);
    flow_until(f, flow_logged(f, "lacks K or x (CONFIG SET notify-keyspace-events Kx)") == 1);
    redis_do(f->server, "CONFIG SET notify-keyspace-events Kx");
    flow_until(f, flow_logged(f, "events arrive again") == 1);
    flow_end(f, "q");
}

/* Each time the listeners change all say again that they are there, many times within the life of
 * one canary. */
Test(no_events, many_listeners_that_come_and_go_are_no_silence)
{
    enum { QUEUES = 4, ROUNDS = 30 };
    static const char *const queues[QUEUES] = {"a", "b", "c", "d"};
    struct flow *f = flow_start(FLOW_STILL);
    struct flow_handler w = {.way = FLOW_DONE};

    for (int i = 0; i < QUEUES; i++) {
        flow_listen(f, queues[i], &w);
    }

    for (int i = 0; i < ROUNDS; i++) {
        for (int q = 0; q < QUEUES; q++) {
            redis_do(f->server, "PUBLISH lapse:{%s}:notice:0 members", queues[q]);
        }
        ev_run(f->loop, EVRUN_NOWAIT);
    }

    flow_spin(f, 1500); /* longer than a real silence needs to be noticed */
    cr_assert_eq(flow_logged(f, WARNING), 0);
    flow_end(f, "a", "b", "c", "d");
}

/* A canary that is deleted does not expire. */
Test(no_events, a_canary_that_is_lost_is_no_silence)
{
    struct flow *f = flow_start(FLOW_STILL);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_listen(f, "q", &w);
    flow_until_listeners(f, "q", 1);
    flow_until(f, flow_calls(f, "set") >= 1);
    redis_do(f->server, "FLUSHALL");
    flow_until(f, flow_calls(f, "set") >= 4);
    flow_calm(f);
    cr_assert_eq(flow_logged(f, WARNING), 0);
    cr_assert_eq(flow_stats(f->l).missed_events, 0);
    flow_end(f, "q");
}

static long long connections(struct flow *f)
{
    return redis_int(f->server, "EVAL %s 0",
                     "return tonumber(string.match(redis.call('INFO', 'stats'), "
                     "'total_connections_received:(%d+)'))");
}

/* Its user may do anything but hear. */
Test(no_events, without_the_right_to_subscribe_alarm_and_sweep_deliver)
{
    enum { N = 60 };
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct lapse_options opts = flow_options(f);
    struct flow_handler w = {.way = FLOW_DONE};
    char url[160];

    redis_do(f->server, "ACL SETUSER half on >secret ~* +@all resetchannels");
    snprintf(url, sizeof url, "unix://half:secret@%s", f->server->socket);
    opts.url = url;
    opts.sweep_ms = 1000;
    opts.reply_ms = 3500;
    f->l = flow_open(f, &opts);
    flow_allow_log(f, "refuses the subscription");
    flow_listen(f, "q", &w);

    int64_t start = test_now_ms();
    long long before = connections(f);
    for (int i = 0; i < N; i += 6) {
        run_jobs(f, &w, 6);
        flow_spin(f, 200);
    }

    flow_poll(f, connections(f) - before > 2 && flow_stats(f->l).missed_events >= 2);

    long long conns = connections(f) - before;
    int64_t took_ms = test_now_ms() - start;
    flow_each_once(&w, N);
    cr_assert_eq(flow_stats(f->l).via_event, 0);
    cr_assert_eq(flow_stats(f->l).via_notice, 0);

    /* one each half of reply_ms at the most, and with no word more than the first */
    cr_assert_leq(conns, 2 + took_ms / 1750, "%lld connections in %lld ms", conns,
                  (long long)took_ms);
    cr_assert_leq(flow_stats(f->l).missed_events, (uint64_t)conns + 1);
    cr_assert_eq(flow_logged(f, "refuses the subscription"), 1);
    redis_do(f->server, "ACL SETUSER half allchannels");
    flow_until_listeners(f, "q", 1);
    run_jobs(f, &w, 6);
    flow_until(f, flow_stats(f->l).events > 0);
    flow_end(f, "q");
}

static void no_alarm(struct lapse_options *o)
{
    o->flags = LAPSE_NO_ALARM; /* and wire_start() has put the sweep off for a minute */
}

/* Commands go on all the while: only the subscription was away, and with it the wake of a job that
 * is due. */
Test(no_events, what_was_published_meanwhile_is_looked_for_when_the_subscription_is_back)
{
    enum { N = 5 };
    struct wire x;

    wire_start(&x, FLOW_DONE, no_alarm);
    flow_allow_log(x.f, "cannot connect");
    proxy_refuse(x.proxy, true);
    redis_do(x.f->server, "CLIENT KILL TYPE pubsub");
    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_schedule(x.f, "q", NULL, 0, NULL), 0);
    }

    flow_poll(x.f, proxy_conns(x.proxy) >= 5); /* in vain */
    cr_assert_eq(x.w.n_runs, 0);
    proxy_refuse(x.proxy, false);
    flow_until(x.f, x.w.settled == N);
    flow_each_once(&x.w, N);
    cr_assert_eq(flow_stats(x.l).via_sweep, N);
    cr_assert_eq(flow_stats(x.l).reconnects, 1);
    wire_end(&x);
}
