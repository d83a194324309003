/* SPDX-License-Identifier: MIT */
/* Redis refuses, or stops half way: due jobs are delivered as soon as they can be, and nothing is
 * lost. */
#include "handler.h"
#include "listening.h"

static void schedule_n(struct flow *f, int n, int64_t every_ms)
{
    for (int i = 0; i < n; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, i * every_ms, NULL), 0);
    }
}

static long long refusals(struct flow *f)
{
    return redis_int(
        f->server, "EVAL %s 0",
        "return tonumber(string.match(redis.call('INFO', 'stats'), 'total_error_replies:(%d+)'))");
}

/* Claims, leases and settles begin by removing, which a full Redis allows. */
FLOW_ALL_MODES(impaired_redis, a_full_redis_delivers_what_it_has)
{
    enum { N = 60 };
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_RETRY, .delay_ms = 20, .reason = "again"};
    struct lapse_spec s = flow_job_spec("q", NULL, 50);

    flow_allow_log(f, "out of memory");
    s.tries = 2;
    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_spec(f, &s, NULL), 0);
    }

    redis_do(f->server, "CONFIG SET maxmemory 1");
    flow_listen(f, "q", &w);
    cr_assert_eq(flow_schedule(f, "q", "one-more", 0, NULL), LAPSE_EREFUSED);
    flow_until(f, w.settled == 2 * N);
    cr_assert_eq(w.errors, 0);
    cr_assert_eq(flow_count(f, "q", "dead"), N);
    redis_do(f->server, "CONFIG SET maxmemory 0");
    w.way = FLOW_DONE;
    cr_assert_eq(flow_schedule(f, "q", "one-more", 0, NULL), 0);
    flow_until(f, w.settled == 2 * N + 1);
    cr_assert_eq(w.n_runs, 2 * N + 1);
    flow_end(f, "q");
}

static struct flow *start_as(const char *rules, struct flow_handler *w, flow_tweak *tweak)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_options opts = flow_options(f);
    char url[160];

    redis_do(f->server, "ACL SETUSER narrow on >secret ~* &* +@all %s", rules);
    snprintf(url, sizeof url, "unix://narrow:secret@%s", f->server->socket);
    opts.url = url;
    if (tweak) {
        tweak(&opts);
    }

    struct lapse *direct = f->l;
    f->l = flow_open(f, &opts);
    flow_listen(f, "q", w);
    f->l = direct;

    return f;
}

static void short_lease(struct lapse_options *o)
{
    o->lease_ms = 1500; /* none that is held ends, also where there is no CPU for a second */
    o->sweep_ms = 100;
}

/* Redis does not roll back. A job that was taken from one set and is not yet held no longer waits,
 * and no listener has it. */
Test(impaired_redis, a_claim_that_breaks_off_half_way_loses_no_job)
{
    place_not_in_cluster("of a queue that lacks a part nothing runs");

    enum { N = 20 };
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow *f = start_as("-hset", &w, short_lease);

    flow_allow_log(f, "in the middle of");
    schedule_n(f, N, 2);
    flow_poll(f, flow_logged(f, "broke off in the middle of claim") > 0 &&
                     flow_count(f, "q", "run") > 0);

    long long before = refusals(f);
    flow_spin(f, 500);
    cr_assert_leq(refusals(f) - before, 15, "%lld refusals in half a second", refusals(f) - before);
    cr_assert_eq(w.n_runs, 0);
    redis_do(f->server, "ACL SETUSER narrow +hset");
    flow_until(f, w.settled == N);
    cr_assert_eq(w.errors, 0);
    for (size_t i = 0; i < w.n_runs; i++) {
        cr_assert_eq(flow_runs_of(&w, w.runs[i].job.id), 1);
    }

    cr_assert_eq(w.n_runs, N);
    flow_end(f, "q");
}

/* done drops the record last: a job whose record stays is in no set, and its id must become usable
 * again. */
Test(impaired_redis, a_settle_that_breaks_off_half_way_is_repeated_and_says_elost)
{
    place_not_in_cluster("of a queue that lacks a part nothing runs");

    struct flow_handler w = {.way = FLOW_DONE};
    struct flow *f = start_as("-hdel", &w, NULL);

    flow_allow_log(f, "in the middle of");
    schedule_n(f, 1, 0);
    flow_until(f, w.settled == 1);
    cr_assert_eq(w.err, LAPSE_ELOST);
    cr_assert_eq(w.n_runs, 1);
    cr_assert_gt(flow_logged(f, "broke off in the middle of done"), 0);
    cr_assert_eq(flow_count(f, "q", "run") + flow_count(f, "q", "due") + flow_count(f, "q", "dead"),
                 0);
    redis_do(f->server, "ACL SETUSER narrow +hdel");
    cr_assert_eq(flow_cancel(f, "q", w.runs[0].job.id, NULL), 0); /* removes what was left */
    flow_end(f, "q");
}

static void often(struct lapse_options *o)
{
    o->sweep_ms = 200;
}

/* Neither its jobs nor its membership are announced to anyone. */
Test(impaired_redis, a_user_who_may_not_publish_is_served_by_alarm_and_sweep)
{
    enum { N = 20 };
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow *f = start_as("-publish", &w, often);

    f->l = f->handles[1];
    schedule_n(f, N, 5);
    flow_until(f, w.settled == N);
    flow_each_once(&w, N);
    cr_assert_eq(flow_stats(f->l).via_notice, 0);
    flow_end(f, "q");
}

/* A script of another client runs too long: Redis answers BUSY, so it is alive. */
Test(impaired_redis, a_busy_redis_delivers_when_it_is_free_again)
{
    enum { N = 30 };
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_allow_log(f, "BUSY");
    flow_listen(f, "q", &w);
    flow_until_listeners(f, "q", 1);

    int64_t since_ms = test_now_ms();
    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 300 + i, NULL), 0);
    }

    struct redisContext *busy = redis_busy(f->server);
    cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_EREFUSED);
    flow_spin(f, 600);
    /* once a second */
    cr_assert_leq(flow_logged(f, "BUSY"), 1 + (test_now_ms() - since_ms) / 1000);
    redis_not_busy(f->server, busy);
    flow_until(f, w.settled == N);
    cr_assert_eq(w.errors, 0);
    flow_each_once(&w, N);
    cr_assert_eq(flow_stats(f->l).reconnects, 0);
    flow_end(f, "q");
}

static void set_replica(struct flow *f, bool on)
{
    redis_do(f->server, on ? "REPLICAOF 127.0.0.1 1" : "REPLICAOF NO ONE");
}

Test(impaired_redis, a_replica_delivers_when_it_is_a_master_again)
{
    place_not_by_sentinel("a replica is not used");
    place_not_in_cluster("REPLICAOF is not allowed");

    enum { N = 30 };
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_allow_log(f, "READONLY");
    flow_listen(f, "q", &w);
    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 100 + i, NULL), 0);
    }

    set_replica(f, true);
    flow_until(f, flow_logged(f, "READONLY") > 0);

    long long before = refusals(f);
    flow_spin(f, 500);
    cr_assert_leq(refusals(f) - before, 15, "%lld refusals in half a second", refusals(f) - before);
    set_replica(f, false);
    flow_until(f, w.settled == N);
    cr_assert_eq(w.errors, 0);
    flow_each_once(&w, N);
    flow_end(f, "q");
}
