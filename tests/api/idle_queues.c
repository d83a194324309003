/* SPDX-License-Identifier: MIT */
/* Thousands of queues in which nothing happens cost next to nothing: what Redis is asked is counted
 * while all of them are looked at, however long that takes. */
#include "handler.h"
#include "listening.h"
#include "wire.h"

enum { QUEUES = 1000, OFTEN_MS = 50, RARELY_MS = 2000, HOUR = 3600000 };

static const char SILENCE[] = "expiry events do not arrive";

static void often(struct lapse_options *o)
{
    o->sweep_ms = OFTEN_MS; /* an empty queue is looked at twelve times more rarely */
}

static void rarely(struct lapse_options *o)
{
    o->sweep_ms = RARELY_MS; /* an empty queue is not looked at within the patience of a test */
}

static void listen_to_many(struct flow *f, struct flow_handler *w)
{
    char name[16];

    for (unsigned i = 0; i < QUEUES; i++) {
        snprintf(name, sizeof name, "q%u", i);
        flow_listen(f, name, w);
    }
    flow_poll(f, flow_keys(f, "lapse:{q*}:listeners") == QUEUES);
}

static long long looks(struct flow *f)
{
    return flow_calls(f, "exists");
}

/* They are known to be empty then. */
static void until_looked_at(struct flow *f, long long n)
{
    long long before = looks(f);
    flow_poll(f, looks(f) >= before + n);
}

/* However many there are: scripts are those that say that the listener is alive, one every 5 s. */
Test(idle_queues, are_looked_at_while_heartbeats_are_the_only_scripts)
{
    enum { BEATS = 2, LEAST_MS = 4500 };
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, often);
    struct flow_handler w = {.way = FLOW_DONE};

    listen_to_many(f, &w);
    until_looked_at(f, 2 * QUEUES);
    flow_calm(f);

    int64_t start_ms = test_now_ms();
    long long scripts = flow_scripts(f);
    long long beats = flow_heartbeats(f);
    long long asked = looks(f);
    flow_poll(f, flow_heartbeats(f) == beats + BEATS);
    asked = looks(f) - asked;
    scripts = flow_scripts(f) - scripts;

    cr_assert_geq(asked, 3 * QUEUES);
    cr_assert_eq(scripts, BEATS, "%lld scripts and %lld looks", scripts, asked);
    cr_assert_geq(test_now_ms() - start_ms, (BEATS - 1) * LEAST_MS);
    flow_end(f, "q0");
}

/* A listener enters a hundred queues at once, and then 500 a second. It answers events of all: the
 * job of each has run by when it has not entered the last of them, whichever that is. */
Test(idle_queues, run_jobs_before_the_listener_has_entered_them)
{
    enum { ALL_ENTERED_MS = (QUEUES - 100) * 2 };
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, often);
    struct flow_handler w = {.way = FLOW_DONE};
    int64_t start_ms = test_now_ms();
    char name[16];

    for (unsigned i = 0; i < QUEUES; i++) {
        snprintf(name, sizeof name, "q%u", i);
        flow_listen(f, name, &w);
        struct lapse_spec spec = flow_job_spec(name, NULL, 0);
        cr_assert_eq(lapse_schedule(f->l, &spec, NULL, NULL), 0);
    }
    flow_until(f, w.settled == QUEUES);
    long long entered = flow_keys(f, "lapse:{q*}:listeners");
    cr_assert(entered < QUEUES || test_now_ms() - start_ms >= ALL_ENTERED_MS);
    flow_until_listeners(f, name, 1);
    cr_assert_eq(flow_keys(f, "lapse:{q*}:jobs"), 0);
    flow_close(f, f->l, 5000);
    flow_do(f, "FLUSHALL"); /* the last token of each queue is still there */
    flow_end(f, name);
}

/* Each is left by one script, however many there are. */
Test(idle_queues, are_each_left_once_when_the_handle_closes)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, rarely);
    struct flow_handler w = {.way = FLOW_DONE};
    struct lapse *other = flow_open(f, NULL);
    struct lapse *l = f->l;

    listen_to_many(f, &w);
    flow_calm(f);
    long long scripts = flow_scripts(f);
    long long beats = flow_heartbeats(f);
    flow_close(f, l, 5000);
    f->l = other;
    cr_assert_eq(flow_scripts(f) - scripts - (flow_heartbeats(f) - beats), QUEUES);
    for (unsigned i = 0; i < QUEUES; i++) {
        cr_assert_eq(redis_int(f->server, "EXISTS lapse:{q%u}:listeners", i), 0);
    }
    flow_end(f, "q0");
}

Test(idle_queues, of_one_listener_have_one_canary)
{
    enum { BEAT_LEAST_MS = 4500, FIRST = 2 };
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, often);
    struct flow_handler w = {.way = FLOW_DONE};

    listen_to_many(f, &w);
    flow_until(f, flow_calls(f, "set") >= FIRST);

    int64_t start_ms = test_now_ms();
    long long before = flow_calls(f, "set");
    until_looked_at(f, 3 * QUEUES);

    long long most = 1 + (test_now_ms() - start_ms) / BEAT_LEAST_MS;
    cr_assert_leq(flow_calls(f, "set") - before, most);
    flow_end(f, "q0", "busy");
}

/* That one is swept, by two scripts, whenever sweep_ms is over; the others are looked at six to
 * twelve times more rarely. */
Test(idle_queues, are_looked_at_more_rarely_than_one_that_has_a_job)
{
    enum { SWEEPS = 60, MORE_RARELY = 4 };
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, often);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_listen(f, "busy", &w);
    cr_assert_eq(flow_schedule(f, "busy", "a", HOUR, NULL), 0);
    listen_to_many(f, &w);
    until_looked_at(f, 2 * QUEUES);

    long long scripts = flow_scripts(f) - flow_heartbeats(f);
    long long asked = looks(f);
    flow_poll(f, flow_scripts(f) - flow_heartbeats(f) - scripts >= 2 * SWEEPS);
    asked = looks(f) - asked;

    cr_assert_leq(asked, SWEEPS * QUEUES / MORE_RARELY, "%lld looks", asked);
    flow_end(f, "q0", "busy");
}

/* Each canary makes the one before it expire. */
Test(idle_queues, share_a_canary_that_is_heard_where_redis_expires_nothing_by_itself)
{
    enum { SILENT_AT = 3 };
    struct flow *f = flow_start_opts(FLOW_STILL, NULL, rarely);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_listen(f, "a", &w);
    flow_listen(f, "b", &w);
    flow_until(f, flow_calls(f, "set") >= SILENT_AT);
    flow_calm(f);
    cr_assert_eq(flow_stats(f->l).missed_events, 0);
    cr_assert_eq(flow_logged(f, SILENCE), 0);
    flow_end(f, "a", "b");
}

/* The canary was set among the triggers of the first queue. Both are on the same master. */
Test(idle_queues, notice_that_events_have_ceased_when_the_queue_of_the_canary_is_gone)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, rarely);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_listen(f, "a", &w);
    flow_until_listeners(f, "a", 1);
    flow_listen(f, "q", &w);
    flow_until_listeners(f, "q", 1);
    flow_until(f, flow_calls(f, "set") >= 2);

    cr_assert_eq(lapse_unlisten(f->l, "a"), 0);
    redis_do(f->server, "CONFIG SET notify-keyspace-events %s", "");
    flow_allow_log(f, SILENCE);
    flow_until(f, flow_logged(f, SILENCE) == 1);
    redis_do(f->server, "CONFIG SET notify-keyspace-events Ex");
    flow_until(f, flow_logged(f, "events arrive again") == 1);
    flow_end(f, "a", "q");
}

/* Nothing tells the listener of the job. */
Test(idle_queues, are_looked_at_for_the_jobs_of_producers_that_may_not_publish)
{
    place_not_with_masters("the producer goes by the socket of one");

    enum { N = 3 };
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, often);
    struct flow_handler w = {.way = FLOW_DONE};
    struct lapse_options opts = flow_options(f);
    struct lapse *listener = f->l;
    char url[160];

    redis_do(f->server, "ACL SETUSER mute on >secret ~* &* +@all -publish");
    snprintf(url, sizeof url, "unix://mute:secret@%s", f->server->socket);
    opts.url = url;
    flow_listen(f, "q", &w);
    flow_until_listeners(f, "q", 1);
    f->l = flow_open(f, &opts);

    for (unsigned i = 1; i <= N; i++) {
        until_looked_at(f, 2);
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
        flow_until(f, w.settled == i);
    }

    cr_assert_eq(flow_stats(listener).via_sweep, N);
    redis_do(f->server, "ACL LOG RESET");
    flow_end(f, "q");
}

/* However often it has been empty before. */
Test(idle_queues, that_get_jobs_are_swept_every_time)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, often);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_listen(f, "q", &w);
    until_looked_at(f, 3);
    cr_assert_eq(flow_schedule(f, "q", "a", HOUR, NULL), 0);

    long long sweeps = flow_scripts(f) - flow_heartbeats(f);
    long long asked = looks(f);
    flow_poll(f, flow_scripts(f) - flow_heartbeats(f) - sweeps >= 40);
    asked = looks(f) - asked;
    cr_assert_leq(asked, 22, "%lld looks", asked); /* a claim and a sweep for each, but the first */
    cr_assert_eq(flow_cancel(f, "q", "a", NULL), 0);
    flow_end(f, "q");
}

Test(idle_queues, are_looked_at_every_time_by_who_does_not_subscribe)
{
    struct flow *f = flow_start_opts(FLOW_NO_EVENTS, NULL, rarely);
    struct flow_handler w = {.way = FLOW_DONE};
    struct lapse *listener = f->l;

    flow_listen(f, "q", &w);
    until_looked_at(f, 2);
    f->l = flow_open(f, NULL);
    cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    flow_until(f, w.settled == 1);
    cr_assert_eq(flow_stats(listener).via_sweep, 1);
    flow_end(f, "q");
}

/* The subscription is lost, and does not come back. */
Test(idle_queues, are_looked_at_every_time_by_who_is_not_subscribed_any_more)
{
    place_not_with_masters("behind the proxy is one, and the heartbeats are on another");

    struct wire x;

    wire_start(&x, FLOW_DONE, rarely);
    flow_allow_log(x.f, "cannot connect");
    redis_do(x.f->server, "PUBLISH lapse:{q}:notice:0 0"); /* and so it is looked at soon */
    until_looked_at(x.f, 1);
    flow_calm(x.f);
    proxy_refuse(x.proxy, true);
    redis_do(x.f->server, "CLIENT KILL TYPE pubsub");
    flow_poll(x.f, proxy_conns(x.proxy) >= 4); /* in vain */
    cr_assert_eq(flow_schedule(x.f, "q", NULL, 0, NULL), 0);
    flow_until(x.f, x.w.settled == 1);
    cr_assert_eq(flow_stats(x.l).via_sweep, 1);
    proxy_refuse(x.proxy, false);
    wire_end(&x);
}
