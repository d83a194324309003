/* SPDX-License-Identifier: MIT */
/* lapse_wait(): who waits for the end of a job hears of it. */
#include "allocations.h"
#include "handler.h"
#include "proxy.h"
#include "states.h"

enum { HOUR = 3600000 };

struct ended {
    unsigned calls;
    int err;
    enum lapse_state state;
    enum lapse_end end;
    char report[8], reason[8], body[8];
};

static void on_ended(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct ended *e = arg;
    size_t len;

    (void)l;
    e->calls++;
    e->err = err;
    if (job) {
        e->state = lapse_job_state(job);
        e->end = lapse_job_end(job);
        snprintf(e->reason, sizeof e->reason, "%s", lapse_job_reason(job));
        const char *report = lapse_job_report(job, &len);
        snprintf(e->report, sizeof e->report, "%.*s", (int)len, report ? report : "");
        const char *body = lapse_job_body(job, &len);
        snprintf(e->body, sizeof e->body, "%.*s", (int)len, body);
    }
}

static void await(struct lapse *l, const char *id, struct ended *e)
{
    cr_assert_eq(lapse_wait(l, "q", id, HOUR, on_ended, e), 0);
}

static void make(struct flow *f, const char *id, int64_t keep_ms)
{
    struct lapse_spec s = flow_job_spec("q", id, HOUR);

    s.body = "body";
    s.body_len = 4;
    s.keep_ms = keep_ms;
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
}

/* A handle whose sweeps do not come in a test. */
static struct lapse *open_unswept(struct flow *f)
{
    struct lapse_options opts = flow_options(f);

    opts.sweep_ms = HOUR;
    return flow_open(f, &opts);
}

static struct flow *start_unswept(const char *const *server_args)
{
    struct flow *f = flow_bare(FLOW_FULL, server_args);

    f->l = open_unswept(f);
    return f;
}

static long long hears(struct flow *f, const char *queue)
{
    return redis_int(f->server, "EVAL %s 0 lapse:{%s}:ends:0",
                     "return redis.call('PUBSUB', 'NUMSUB', ARGV[1])[2]", queue);
}

/* One handle has made the job a, and another waits for its end and hears the channel. */
static struct flow *start_waiting(struct ended *e)
{
    struct flow *f = start_unswept(NULL);
    struct lapse *waits = open_unswept(f);

    make(f, "a", HOUR);
    await(waits, "a", e);
    flow_poll(f, hears(f, "q") == 1);
    return f;
}

FLOW_ALL_MODES(wait, tells_how_a_job_has_ended)
{
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_KEEP};
    struct ended e = {.calls = 0};
    struct lapse_spec s = flow_job_spec("q", "a", 0);

    s.keep_ms = HOUR;
    flow_listen(f, "q", &w);
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    flow_until(f, w.n_held == 1);
    await(f->l, "a", &e);
    cr_assert_eq(lapse_report(w.held[0], "half", 4, NULL, NULL), 0);
    flow_settle(&w, FLOW_DONE);
    flow_until(f, e.calls);
    cr_expect_eq(e.err, 0);
    cr_expect_eq(e.state, LAPSE_KEPT);
    cr_expect_eq(e.end, LAPSE_ENDED_DONE);
    cr_expect_str_eq(e.report, "half");
    flow_end(f, "q");
}

/* Nothing but the message can tell it: nobody looks for an hour. */
Test(wait, hears_of_the_end_of_a_kept_job_from_another_process_without_a_sweep)
{
    struct ended e = {.calls = 0};
    struct flow *f = start_waiting(&e);

    cr_assert_eq(flow_cancel(f, "q", "a", NULL), 0);
    flow_until(f, e.calls);
    cr_expect_eq(e.err, 0);
    cr_expect_eq(e.end, LAPSE_ENDED_CANCELLED);
    flow_end(f, "q");
}

Test(wait, hears_of_the_death_of_a_job_that_would_be_kept)
{
    struct ended e = {.calls = 0};
    struct flow *f = start_waiting(&e);

    cr_assert_eq(flow_kill(f, "q", "a", "why", NULL), 0);
    flow_until(f, e.calls);
    cr_expect_eq(e.err, 0);
    cr_expect_eq(e.state, LAPSE_DEAD);
    cr_expect_str_eq(e.reason, "why");
    cr_expect_str_eq(e.body, "body");
    flow_end(f, "q");
}

Test(wait, for_a_job_that_has_ended_is_answered_at_once)
{
    struct flow *f = start_unswept(NULL);
    struct ended e[3] = {{.calls = 0}};

    make(f, "kept", HOUR);
    make(f, "dead", 0);
    cr_assert_eq(flow_cancel(f, "q", "kept", NULL), 0);
    cr_assert_eq(flow_kill(f, "q", "dead", "why", NULL), 0);
    await(f->l, "kept", &e[0]);
    await(f->l, "dead", &e[1]);
    await(f->l, "none", &e[2]);
    flow_until(f, e[0].calls && e[1].calls && e[2].calls);
    cr_expect_eq(e[0].end, LAPSE_ENDED_CANCELLED);
    cr_expect_eq(e[1].state, LAPSE_DEAD);
    cr_expect_eq(e[2].err, LAPSE_ENOENT);
    flow_end(f, "q");
}

/* Of such a job nothing is published. */
Test(wait, for_a_job_that_is_not_kept_ends_with_enoent_when_it_is_looked_at_again)
{
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct lapse_options opts = flow_options(f);
    struct ended e = {.calls = 0};

    opts.sweep_ms = 20;
    f->l = flow_open(f, &opts);
    make(f, "a", 0);
    await(f->l, "a", &e);
    cr_assert_eq(flow_cancel(f, "q", "a", NULL), 0);
    flow_until(f, e.calls);
    cr_expect_eq(e.err, LAPSE_ENOENT);
    flow_end(f, "q");
}

Test(wait, that_is_over_is_etimeout)
{
    struct flow *f = start_unswept(NULL);
    struct ended e[2] = {{.calls = 0}};

    make(f, "a", HOUR);
    cr_assert_eq(lapse_wait(f->l, "q", "a", 30, on_ended, &e[0]), 0);
    cr_assert_eq(lapse_wait(f->l, "q", "a", 0, on_ended, &e[1]), 0);
    flow_until(f, e[0].calls && e[1].calls);
    cr_expect_eq(e[0].err, LAPSE_ETIMEOUT);
    cr_expect_eq(e[1].err, LAPSE_ETIMEOUT);
    cr_expect_eq(flow_get(f, "q", "a", NULL), 0);
    flow_end(f, "q");
}

/* Nothing is published of it, and no sweep comes before the limit. */
Test(wait, that_is_over_looks_once_more_before_it_says_so)
{
    struct flow *f = start_unswept(NULL);
    struct ended e = {.calls = 0};

    make(f, "a", 0);
    cr_assert_eq(lapse_wait(f->l, "q", "a", 300, on_ended, &e), 0);
    flow_poll(f, hears(f, "q") == 1);
    cr_assert_eq(flow_get(f, "q", "a", NULL), 0); /* what the channel led to is answered */
    cr_assert_eq(flow_cancel(f, "q", "a", NULL), 0);
    flow_until(f, e.calls);
    cr_expect_eq(e.err, LAPSE_ENOENT);
    flow_end(f, "q");
}

Test(wait, of_which_redis_could_not_be_asked_says_that)
{
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct lapse_options opts = flow_options(f);
    struct ended e[2] = {{.calls = 0}};

    opts.reply_ms = 50;
    flow_allow_log(f, "Redis");
    server_kill9(f->server);
    f->l = flow_open(f, &opts);
    cr_assert_eq(lapse_wait(f->l, "q", "a", 0, on_ended, &e[0]), 0);
    cr_assert_eq(lapse_wait(f->l, "q", "a", 100, on_ended, &e[1]), 0);
    flow_until(f, e[0].calls && e[1].calls);
    cr_expect_eq(e[0].err, LAPSE_EDOWN);
    cr_expect_eq(e[1].err, LAPSE_EDOWN);
    flow_close(f, f->l, 0);
    f->l = NULL;
    server_restart(f->server);
    flow_end(f);
}

Test(wait, that_only_looks_makes_no_connection)
{
    struct flow *f = start_unswept(NULL);
    struct ended e = {.calls = 0};

    make(f, "a", HOUR);
    long long before = redis_int(f->server, "EVAL %s 0",
                                 "return tonumber(string.match(redis.call('INFO', 'stats'), "
                                 "'total_connections_received:(%d+)'))");
    cr_assert_eq(lapse_wait(f->l, "q", "a", 0, on_ended, &e), 0);
    flow_until(f, e.calls);
    cr_expect_eq(redis_int(f->server, "EVAL %s 0",
                           "return tonumber(string.match(redis.call('INFO', 'stats'), "
                           "'total_connections_received:(%d+)'))"),
                 before);
    flow_end(f, "q");
}

/* The end comes while nobody hears. */
Test(wait, hears_of_an_end_that_was_published_while_the_connection_was_cut)
{
    struct ended e = {.calls = 0};
    struct flow *f = start_waiting(&e);

    flow_allow_log(f, "connection");
    redis_do(f->server, "CLIENT KILL TYPE pubsub");
    cr_assert_eq(flow_cancel(f, "q", "a", NULL), 0);
    flow_until(f, e.calls);
    cr_expect_eq(e.err, 0);
    flow_end(f, "q");
}

Test(wait, goes_on_where_redis_has_forgotten_its_scripts)
{
    struct ended e = {.calls = 0};
    struct flow *f = start_waiting(&e);

    redis_do(f->server, "SCRIPT FLUSH");
    cr_assert_eq(flow_cancel(f, "q", "a", NULL), 0);
    flow_until(f, e.calls);
    cr_expect_eq(e.err, 0);
    cr_expect_eq(e.end, LAPSE_ENDED_CANCELLED);
    flow_end(f, "q");
}

/* The subscription is dead without an error, and only its heartbeat can show that. */
Test(wait, hears_again_where_its_connection_was_dead_without_a_word)
{
    struct flow *f = start_unswept(NULL);
    struct proxy *proxy = proxy_start(f->server);
    struct lapse_options opts = flow_options(f);
    struct ended e = {.calls = 0};

    opts.url = proxy->url;
    opts.sweep_ms = HOUR;
    opts.reply_ms = 3500;
    struct lapse *waits = flow_open(f, &opts);
    flow_allow_log(f, "no answer from Redis");
    flow_allow_log(f, "for ends of jobs");
    make(f, "a", HOUR);
    await(waits, "a", &e);
    flow_poll(f, hears(f, "q") == 1);

    proxy_swallow_conn(proxy, 2);
    proxy_swallow(proxy, true);
    flow_until(f, flow_logged(f, "to the subscription to ends of jobs") == 1);
    flow_until(f, flow_logged(f, "connected again to Redis") == 1);
    cr_assert_eq(e.calls, 0);
    cr_assert_eq(flow_cancel(f, "q", "a", NULL), 0);
    flow_until(f, e.calls);
    cr_expect_eq(e.end, LAPSE_ENDED_CANCELLED);

    flow_close(f, waits, 0);
    proxy_stop(proxy);
    flow_end(f, "q");
}

Test(wait, goes_on_where_redis_comes_back)
{
    static const char *const always[] = {"--appendfsync", "always", NULL};
    struct flow *f = start_unswept(always);
    struct ended e = {.calls = 0};

    flow_allow_log(f, "Redis");
    make(f, "a", HOUR);
    await(f->l, "a", &e);
    flow_poll(f, hears(f, "q") == 1);
    server_kill9(f->server);
    flow_spin(f, 50);
    server_restart(f->server);
    flow_until(f, flow_cancel(f, "q", "a", NULL) == 0);
    flow_until(f, e.calls);
    cr_expect_eq(e.end, LAPSE_ENDED_CANCELLED);
    flow_end(f, "q");
}

Test(wait, looks_where_the_user_may_not_hear)
{
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct lapse_options opts = flow_options(f);
    struct ended e[2] = {{.calls = 0}};
    char url[160];

    redis_do(f->server, "ACL SETUSER deaf on >secret ~* +@all resetchannels");
    snprintf(url, sizeof url, "unix://deaf:secret@%s", f->server->socket);
    opts.url = url;
    opts.sweep_ms = 20;
    f->l = flow_open(f, &opts);
    flow_allow_log(f, "refuses the subscription to ends of jobs");
    make(f, "a", HOUR);
    make(f, "b", HOUR);
    await(f->l, "a", &e[0]);
    await(f->l, "b", &e[1]);
    flow_until(f, flow_logged(f, "refuses the subscription to ends of jobs"));
    cr_assert_eq(flow_cancel(f, "q", "a", NULL), 0);
    flow_until(f, e[0].calls);
    cr_expect_eq(e[0].end, LAPSE_ENDED_CANCELLED);
    cr_expect_eq(flow_logged(f, "refuses the subscription to ends of jobs"), 1);
    flow_close(f, f->l, 0);
    cr_expect_eq(e[1].err, LAPSE_ECLOSED);
    f->l = NULL;
    flow_end(f, "q");
}

Test(wait, of_many_jobs_and_of_many_for_one_is_answered_once_each)
{
    enum { N = 500 };
    struct flow *f = start_unswept(NULL);
    struct lapse *waits = open_unswept(f);
    struct ended *e = flow_keep(f, "", 0, 2 * N * sizeof *e);
    const struct lapse_where all = {.size = sizeof all, .state = LAPSE_WAITING};
    unsigned n = 0;

    for (int i = 0; i < N; i++) {
        char id[16];
        snprintf(id, sizeof id, "%d", i);
        make(f, id, HOUR);
        await(waits, id, &e[i]);
        await(waits, "0", &e[N + i]);
    }
    flow_poll(f, hears(f, "q") == 1);
    struct flow_counts c = {.calls = 0};
    cr_assert_eq(lapse_cancel_all(f->l, "q", &all, 0, flow_counted, &c), 0);
    for (n = 0; n < 2 * N; n++) {
        flow_until(f, e[n].calls);
    }
    for (n = 0; n < 2 * N; n++) {
        cr_assert_eq(e[n].calls, 1);
        cr_assert_eq(e[n].end, LAPSE_ENDED_CANCELLED);
    }
    flow_end(f, "q");
}

/* A queue for which nobody waits any more is not heard of. */
Test(wait, that_has_ended_leaves_no_more_than_one_channel)
{
    enum { N = 5 };
    struct flow *f = start_unswept(NULL);
    long long n = 0;

    for (int i = 0; i < N; i++) {
        struct ended e = {.calls = 0};
        char queue[8];
        snprintf(queue, sizeof queue, "q%d", i);
        struct lapse_spec s = flow_job_spec(queue, "a", HOUR);
        cr_assert_eq(flow_spec(f, &s, NULL), 0);
        cr_assert_eq(lapse_wait(f->l, queue, "a", 20, on_ended, &e), 0);
        flow_until(f, e.calls);
    }
    flow_poll(f, (n = redis_int(f->server, "EVAL %s 0",
                                "return #redis.call('PUBSUB', 'CHANNELS', '*:ends:*')")) <= 1);
    flow_end(f, "q0", "q1", "q2", "q3", "q4");
}

static void on_ended_again(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct ended *e = arg;

    on_ended(l, err, job, &e[0]);
    await(l, "b", &e[1]);
}

Test(wait, may_begin_in_the_callback_of_another_and_a_closing_handle_ends_it)
{
    struct flow *f = start_unswept(NULL);
    struct ended e[2] = {{.calls = 0}};

    make(f, "a", HOUR);
    make(f, "b", HOUR);
    cr_assert_eq(lapse_wait(f->l, "q", "a", HOUR, on_ended_again, e), 0);
    cr_assert_eq(flow_cancel(f, "q", "a", NULL), 0);
    flow_until(f, e[0].calls);
    cr_expect_eq(e[1].calls, 0);
    flow_close(f, f->l, HOUR);
    cr_expect_eq(e[1].calls, 1);
    cr_expect_eq(e[1].err, LAPSE_ECLOSED);
    f->l = NULL;
    flow_end(f, "q");
}

Test(wait, of_an_abandoned_handle_is_never_answered_and_leaves_nothing)
{
    struct flow *f = start_unswept(NULL);
    struct lapse *l = open_unswept(f);
    struct ended e[2] = {{.calls = 0}};

    make(f, "a", HOUR);
    await(l, "a", &e[0]);
    flow_poll(f, hears(f, "q") == 1);
    await(l, "a", &e[1]);
    lapse_abandon(l);
    flow_forget(f, l);
    cr_expect_eq(e[0].calls + e[1].calls, 0);
    flow_end(f, "q");
}

Test(wait, that_lacks_memory_is_enomem_and_leaves_nothing)
{
    struct flow *f = start_unswept(NULL);
    struct ended e = {.calls = 0};

    for (int n = 1; n <= 2; n++) { /* the call, and what is known of its queue */
        long live = alloc_live();
        alloc_fail(n);
        cr_expect_eq(lapse_wait(f->l, "q", "a", HOUR, on_ended, &e), LAPSE_ENOMEM);
        alloc_fail(0);
        cr_expect_eq(alloc_live(), live);
    }
    await(f->l, "a", &e);
    flow_until(f, e.calls);
    cr_expect_eq(e.err, LAPSE_ENOENT);
    flow_end(f, "q");
}

Test(wait, with_wrong_arguments_is_einval)
{
    struct flow *f = start_unswept(NULL);
    struct ended e = {.calls = 0};

    cr_expect_eq(lapse_wait(NULL, "q", "a", 0, on_ended, &e), LAPSE_EINVAL);
    cr_expect_eq(lapse_wait(f->l, NULL, "a", 0, on_ended, &e), LAPSE_EINVAL);
    cr_expect_eq(lapse_wait(f->l, "q q", "a", 0, on_ended, &e), LAPSE_EINVAL);
    cr_expect_eq(lapse_wait(f->l, "q", NULL, 0, on_ended, &e), LAPSE_EINVAL);
    cr_expect_eq(lapse_wait(f->l, "q", "a a", 0, on_ended, &e), LAPSE_EINVAL);
    cr_expect_eq(lapse_wait(f->l, "q", "a", -1, on_ended, &e), LAPSE_EINVAL);
    cr_expect_eq(lapse_wait(f->l, "q", "a", 315576000001, on_ended, &e), LAPSE_EINVAL);
    flow_spin(f, 20);
    cr_expect_eq(e.calls, 0);
    flow_end(f, "q");
}
