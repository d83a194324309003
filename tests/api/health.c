/* SPDX-License-Identifier: MIT */
/* What a handle reports about its Redis and its loop. */
#include "handler.h"
#include "listening.h"
#include "proxy.h"
#include <poll.h>

enum { REPORTS = 64 };

static struct {
    struct lapse_health report[REPORTS];
    char what[REPORTS][256];
    char detail[REPORTS][256];
    int n;
} heard;

static void on_health(struct lapse *l, const struct lapse_health *h, void *arg)
{
    (void)l;
    (void)arg;
    if (heard.n == REPORTS) {
        return;
    }

    heard.report[heard.n] = *h;
    snprintf(heard.what[heard.n], sizeof heard.what[0], "%s", h->what);
    snprintf(heard.detail[heard.n], sizeof heard.detail[0], "%s", h->detail);
    heard.n++;
}

/* The number of the first report of this kind, or -1. */
static int find_report(enum lapse_health_kind kind)
{
    for (int i = 0; i < heard.n; i++) {
        if (heard.report[i].kind == kind) {
            return i;
        }
    }
    return -1;
}

static int count_reports(enum lapse_health_kind kind)
{
    int n = 0;

    for (int i = 0; i < heard.n; i++) {
        n += heard.report[i].kind == kind;
    }
    return n;
}

static struct flow *begin(void)
{
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    flow_allow_log(f, ""); /* each of these is logged, too */
    return f;
}

static void open_it(struct flow *f, const struct lapse_options *opts)
{
    f->l = flow_open(f, opts);
    lapse_on_health(f->l, on_health, NULL);
}

Test(health, tells_of_the_connection_and_of_its_end)
{
    place_not_in_cluster("a master is connected when it is used");

    struct flow *f = begin();
    struct lapse_options opts = flow_options(f);

    open_it(f, &opts);
    flow_until(f, find_report(LAPSE_HEALTH_CONNECTED) >= 0);
    cr_assert_eq(heard.n, 1);
    cr_assert_neq(heard.what[0][0], '\0', "the address");

    server_kill9(f->server);
    flow_until(f, heard.n >= 4);
    for (int i = 1; i < 4; i++) {
        cr_assert_eq(heard.report[i].kind, LAPSE_HEALTH_DISCONNECTED);
        cr_assert_eq(heard.report[i].err, LAPSE_EDOWN);
        cr_assert_eq(heard.report[i].in_a_row, (unsigned)i);
        cr_assert_neq(heard.detail[i][0], '\0', "the reason");
    }

    heard.n = 0;
    server_restart(f->server);
    flow_until(f, find_report(LAPSE_HEALTH_CONNECTED) >= 0);
    flow_end(f, "q");
}

Test(health, tells_of_a_wrong_password_which_is_also_the_error_of_requests)
{
    struct flow *f = begin();
    struct lapse_options opts = flow_options(f);
    char url[200];

    snprintf(url, sizeof url, "unix://me:wrong@%s", f->server->socket);
    redis_do(f->server, "ACL SETUSER me on >right ~* &* +@all");
    opts.url = url;
    opts.reply_ms = 300;
    open_it(f, &opts);
    flow_until(f, find_report(LAPSE_HEALTH_AUTH_FAILED) >= 0);
    /* or Redis was slow to refuse */
    flow_until(f, flow_schedule(f, "q", "a", 0, NULL) == LAPSE_EAUTH);

    int at = find_report(LAPSE_HEALTH_AUTH_FAILED);
    cr_assert_geq(at, 0);
    cr_assert_eq(heard.report[at].err, LAPSE_EAUTH);
    cr_assert(strstr(heard.detail[at], "WRONGPASS"), "%s", heard.detail[at]);
    flow_end(f, "q");
}

Test(health, tells_which_script_was_denied)
{
    struct flow *f = begin();
    struct lapse_options opts = flow_options(f);
    char url[200];

    snprintf(url, sizeof url, "unix://me:right@%s", f->server->socket);
    redis_do(f->server, "ACL SETUSER me on >right ~* &* +@all -zadd");
    opts.url = url;
    open_it(f, &opts);
    cr_assert_eq(flow_schedule(f, "q", "a", 1000, NULL), LAPSE_EDENIED);
    flow_until(f, find_report(LAPSE_HEALTH_DENIED) >= 0);

    int at = find_report(LAPSE_HEALTH_DENIED);
    cr_assert_eq(heard.report[at].err, LAPSE_EDENIED);
    cr_assert_str_eq(heard.what[at], "schedule");
    flow_end(f, "q");
}

Test(health, tells_of_a_refusal_that_is_no_matter_of_rights)
{
    struct flow *f = begin();
    struct lapse_options opts = flow_options(f);

    open_it(f, &opts);
    redis_do(f->server, "CONFIG SET maxmemory 1");
    cr_assert_eq(flow_schedule(f, "q", "a", 1000, NULL), LAPSE_EREFUSED);
    flow_until(f, find_report(LAPSE_HEALTH_REFUSED) >= 0);

    int at = find_report(LAPSE_HEALTH_REFUSED);
    cr_assert_str_eq(heard.what[at], "schedule");
    cr_assert(strstr(heard.detail[at], "OOM"), "%s", heard.detail[at]);
    flow_end(f, "q");
}

Test(health, tells_of_a_redis_that_may_evict_and_of_one_that_does_not_any_more)
{
    struct flow *f = begin();
    struct flow_handler w = {.way = FLOW_DONE};
    struct lapse_options opts = flow_options(f);

    redis_do(f->server, "CONFIG SET maxmemory-policy allkeys-lru");
    open_it(f, &opts);
    flow_listen(f, "q", &w);
    flow_until(f, find_report(LAPSE_HEALTH_MAY_EVICT) >= 0);
    redis_do(f->server, "CONFIG SET maxmemory-policy noeviction");
    flow_until(f, find_report(LAPSE_HEALTH_NO_EVICTION) >= 0);
    flow_end(f, "q");
}

Test(health, tells_of_events_that_do_not_come_and_of_those_that_come_again)
{
    struct flow *f = begin();
    struct flow_handler w = {.way = FLOW_DONE};
    struct lapse_options opts = flow_options(f);

    redis_do(f->server, "CONFIG SET notify-keyspace-events %s", "");
    open_it(f, &opts);
    flow_listen(f, "q", &w);
    flow_until(f, find_report(LAPSE_HEALTH_NO_EVENTS) >= 0);
    redis_do(f->server, "CONFIG SET notify-keyspace-events Ex");
    flow_until(f, find_report(LAPSE_HEALTH_EVENTS) >= 0);
    flow_end(f, "q");
}

/* A listener that may not subscribe, and has tried to several times: every reply_ms. */
static struct flow *begin_without_the_right_to_subscribe(struct flow_handler *w)
{
    struct flow *f = begin();
    struct lapse_options opts = flow_options(f);
    char url[200];

    snprintf(url, sizeof url, "unix://me:right@%s", f->server->socket);
    redis_do(f->server, "ACL SETUSER me on >right ~* resetchannels +@all");
    opts.url = url;
    opts.reply_ms = 3500;
    open_it(f, &opts);
    flow_listen(f, "q", w);
    flow_until(f, flow_stats(f->l).missed_events >= 3);
    return f;
}

Test(health, tells_once_of_a_refused_subscription_and_of_events_when_the_right_is_granted)
{
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow *f = begin_without_the_right_to_subscribe(&w);
    int at = find_report(LAPSE_HEALTH_NO_EVENTS);

    cr_assert_geq(at, 0);
    cr_assert_eq(heard.report[at].err, LAPSE_EDENIED);
    cr_assert(strstr(heard.detail[at], "NOPERM"), "%s", heard.detail[at]);

    redis_do(f->server, "ACL SETUSER me allchannels");
    flow_until(f, find_report(LAPSE_HEALTH_EVENTS) >= 0);
    cr_assert_eq(count_reports(LAPSE_HEALTH_NO_EVENTS), 1);
    cr_assert_eq(count_reports(LAPSE_HEALTH_EVENTS), 1);
    flow_end(f, "q");
}

Test(health, tells_of_events_that_do_not_come_after_a_refused_subscription_was_granted)
{
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow *f = begin_without_the_right_to_subscribe(&w);

    redis_do(f->server, "CONFIG SET notify-keyspace-events %s", "");
    redis_do(f->server, "ACL SETUSER me allchannels");
    flow_until(f, count_reports(LAPSE_HEALTH_NO_EVENTS) == 2);
    cr_assert_eq(heard.report[heard.n - 1].err, 0, "nothing is refused any more");
    cr_assert_eq(find_report(LAPSE_HEALTH_EVENTS), -1);
    cr_assert_geq(flow_logged(f, "notify-keyspace-events of this Redis lacks"), 1);
    flow_end(f, "q");
}

/* A listener behind a proxy, whose requests are answered whatever becomes of its subscription. */
static struct flow *begin_behind(struct proxy **p, struct flow_handler *w, int64_t reply_ms)
{
    struct flow *f = begin();
    struct lapse_options opts = flow_options(f);

    *p = proxy_start(f->server);
    opts.url = (*p)->url;
    opts.reply_ms = reply_ms;
    open_it(f, &opts);
    flow_listen(f, "q", w);
    flow_until_listeners(f, "q", 1);
    return f;
}

static void end_behind(struct flow *f, struct proxy *p, const struct flow_handler *w)
{
    int at = find_report(LAPSE_HEALTH_NO_EVENTS);

    cr_assert_eq(heard.report[at].err, LAPSE_EDOWN);
    cr_assert_str_eq(heard.what[at], "SUBSCRIBE");
    cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    flow_until(f, w->settled == 1);
    cr_assert_eq(count_reports(LAPSE_HEALTH_NO_EVENTS), 1);
    cr_assert_eq(count_reports(LAPSE_HEALTH_EVENTS), 1);
    cr_assert_eq(count_reports(LAPSE_HEALTH_DISCONNECTED), 0);
    flow_close(f, f->l, 0);
    proxy_stop(p);
    flow_end(f, "q");
}

Test(health, tells_once_of_a_subscription_that_cannot_be_made_and_when_it_is_there_again)
{
    struct flow_handler w = {.way = FLOW_DONE};
    struct proxy *p;
    struct flow *f = begin_behind(&p, &w, 3500);
    long conns = proxy_conns(p);

    proxy_refuse(p, true);
    redis_do(f->server, "CLIENT KILL TYPE pubsub");
    flow_until(f, find_report(LAPSE_HEALTH_NO_EVENTS) >= 0 && proxy_conns(p) >= conns + 4);
    cr_assert_eq(find_report(LAPSE_HEALTH_EVENTS), -1);

    proxy_refuse(p, false);
    flow_until(f, find_report(LAPSE_HEALTH_EVENTS) >= 0);
    end_behind(f, p, &w);
}

/* It is made again at once. Its silence is noticed before the canary's, which takes 2.9 s. */
Test(health, tells_of_a_subscription_that_was_silent)
{
    struct flow_handler w = {.way = FLOW_DONE};
    struct proxy *p;
    struct flow *f = begin_behind(&p, &w, 300);

    proxy_swallow_conn(p, 2);
    proxy_swallow(p, true);
    flow_until(f, proxy_conns(p) == 3);
    proxy_swallow(p, false);
    flow_until(f, find_report(LAPSE_HEALTH_EVENTS) >= 0);
    end_behind(f, p, &w);
}

static void block_the_loop(struct lapse *l, struct lapse_job *job, void *arg)
{
    poll(NULL, 0, 700);
    flow_on_job(l, job, arg);
}

Test(health, tells_of_a_loop_that_was_blocked_and_for_how_long)
{
    struct flow *f = begin();
    struct flow_handler w = {.f = f, .way = FLOW_DONE};
    struct lapse_options opts = flow_options(f);

    opts.lease_ms = 1500;
    open_it(f, &opts);
    cr_assert_eq(lapse_listen(f->l, "q", NULL, block_the_loop, &w), 0);
    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
    flow_until(f, find_report(LAPSE_HEALTH_LOOP_BLOCKED) >= 0);
    cr_assert_geq(heard.report[find_report(LAPSE_HEALTH_LOOP_BLOCKED)].ms, 500);
    flow_until(f, w.settled == 1);
    flow_end(f, "q");
}

Test(health, is_quiet_without_a_function_and_each_kind_has_a_name)
{
    struct flow *f = begin();
    struct lapse_options opts = flow_options(f);

    f->l = flow_open(f, &opts);
    lapse_on_health(f->l, NULL, NULL);
    cr_assert_eq(flow_schedule(f, "q", "a", 100000, NULL), 0);
    cr_assert_eq(heard.n, 0);
#define LAPSE_X(name, text) cr_assert_str_eq(lapse_health_name(LAPSE_HEALTH_##name), #name);
    LAPSE_HEALTH(LAPSE_X)
#undef LAPSE_X
    cr_assert_str_eq(lapse_health_name(LAPSE_HEALTH_KINDS), "unknown");
    flow_end(f, "q");
}

struct closer {
    struct flow *f;
    bool closed;
};

static void on_closed(void *arg)
{
    struct closer *c = arg;
    c->closed = true;
}

static void close_it(struct lapse *l, const struct lapse_health *h, void *arg)
{
    struct closer *c = arg;
    (void)h;

    flow_forget(c->f, l);
    lapse_close(l, 0, on_closed, c);
}

Test(health, a_report_may_close_the_handle)
{
    place_not_in_cluster("a master is connected when it is used");

    struct flow *f = begin();
    struct lapse_options opts = flow_options(f);
    struct closer c = {.f = f};

    f->l = flow_open(f, &opts);
    lapse_on_health(f->l, close_it, &c);
    flow_until(f, c.closed);
    f->l = NULL;
    flow_end(f, "q");
}
