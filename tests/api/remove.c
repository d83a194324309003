/* SPDX-License-Identifier: MIT */
/* lapse_listeners(), lapse_remove(). */
#include "handler.h"
#include "listening.h"
#include "proxy.h"
#include "states.h"

enum { HOUR = 3600000 };

static void expect_listeners(struct flow *f, const char *expected)
{
    char found[FLOW_TEXT];

    cr_assert_eq(flow_listeners(f, "q", found), 0);
    cr_assert_str_eq(found, expected);
}

static void named_worker(struct lapse_options *opts)
{
    opts->name = "worker";
}

Test(listeners_of_a_queue, are_shown_with_what_they_hold)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, named_worker);
    struct flow_handler w = {.f = f, .way = FLOW_KEEP};

    expect_listeners(f, "");
    flow_hold(f, &w, "a");
    flow_until_listeners(f, "q", 1);
    expect_listeners(f, "worker 1+");
    flow_settle(&w, FLOW_DONE);
    flow_until(f, w.settled == 1);
    expect_listeners(f, "worker 0+");
    cr_assert_eq(lapse_unlisten(f->l, "q"), 0);
    flow_until_listeners(f, "q", 0);
    expect_listeners(f, "");
    flow_end(f, "q");
}

Test(listeners_of_a_queue, that_died_are_not_shown)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, named_worker);

    redis_do(f->server, "ZADD lapse:{q}:listeners 5 dead/0 6 late/0");
    redis_do(f->server, "ZADD lapse:{}:alive 5 late/0");
    expect_listeners(f, "");
    flow_end(f, "q");
}

/* It has no handler, and hears no events. */
Test(listeners_of_a_queue, who_only_claims_is_none_and_shown_while_it_holds_a_job)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, named_worker);
    struct flow_claim c = {.f = f};

    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
    cr_assert_eq(flow_claim(f, "q", 1, 0, &c), 0);
    cr_assert_eq(c.n, 1);
    expect_listeners(f, "worker 1");
    flow_claim_done(f, &c);
    expect_listeners(f, "");
    flow_end(f, "q");
}

/* ---- remove ---- */
struct removal {
    bool ended;
    int err;
    uint64_t n, n_running;
};

static void on_removal(struct lapse *l, int err, uint64_t n, uint64_t n_running, void *arg)
{
    (void)l;
    *(struct removal *)arg = (struct removal){true, err, n, n_running};
}

static int removal(struct flow *f, unsigned flags, struct removal *r)
{
    *r = (struct removal){.ended = false};
    cr_assert_eq(lapse_remove(f->l, "q", flags, on_removal, r), 0);
    flow_until(f, r->ended);
    return r->err;
}

/* Another program may have written it. The next heartbeat of any listener makes it end. */
Test(listeners_of_a_queue, of_whom_some_never_die_are_shown_and_the_queue_is_removed)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct removal r;

    flow_put(f, "q", "waits", FLOW_WAITS, NULL);
    redis_do(f->server, "DEL lapse:{}:alive");
    redis_do(f->server, "ZADD lapse:{}:alive inf a 1e17 b 99999999999999.3 c");
    redis_do(f->server, "ZADD lapse:{q}:listeners 0 a 0 b 0 c");
    expect_listeners(f, "c 0+, b 0+, a 0+");
    cr_assert_eq(removal(f, 0, &r), LAPSE_EBUSY);
    cr_assert_eq(removal(f, LAPSE_FORCE, &r), 0);
    cr_assert_eq(r.n, 1);
    redis_do(f->server, "DEL lapse:{}:alive");
    flow_end(f, "q");
}

/* The canary of a listener is one of them, for a millisecond or two. */
static long long keys_of_q(struct flow *f)
{
    return redis_int(f->server, "EVAL %s 0", "return #redis.call('KEYS', 'lapse:{q}:*')");
}

Test(remove, takes_the_jobs_the_settings_and_the_name)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct removal r;
    char queues[FLOW_TEXT];

    flow_enter(f, "other");
    flow_put(f, "q", "waits", FLOW_WAITS, NULL);
    flow_put(f, "q", "ended", FLOW_ENDED, NULL);
    flow_put(f, "q", "dead", FLOW_DEAD, NULL);
    cr_assert_eq(flow_configure(f, "q", "max_running=2", NULL), 0);

    redis_do(f->server, "DEL lapse:{}:alive"); /* who died counts as alive for up to 15 s */
    cr_assert_eq(removal(f, 0, &r), 0);
    cr_assert(r.n == 3 && r.n_running == 0);
    flow_poll(f, keys_of_q(f) == 0);
    cr_assert_eq(flow_queues(f, NULL, queues), 0);
    cr_assert_str_eq(queues, "other 0+0+0 ''");

    cr_assert_eq(removal(f, 0, &r), 0, "of none");
    cr_assert_eq(r.n, 0);
    flow_end(f, "q", "other");
}

Test(remove, of_a_queue_that_has_listeners_is_ebusy_and_changes_nothing)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.f = f, .way = FLOW_DONE};
    struct removal r;

    flow_listen(f, "q", &w);
    flow_until_listeners(f, "q", 1);
    cr_assert_eq(flow_schedule(f, "q", "a", HOUR, NULL), 0);
    cr_assert_eq(removal(f, 0, &r), LAPSE_EBUSY);
    cr_assert(r.n == 0 && r.n_running == 0);
    cr_assert_eq(flow_get(f, "q", "a", NULL), 0);

    cr_assert_eq(lapse_unlisten(f->l, "q"), 0);
    flow_until_listeners(f, "q", 0);
    cr_assert_eq(removal(f, 0, &r), 0);
    cr_assert_eq(r.n, 1);
    flow_poll(f, keys_of_q(f) == 0);
    flow_end(f, "q");
}

Test(remove, of_a_queue_of_which_a_job_runs_is_ebusy)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_claim c = {.f = f};
    struct removal r;

    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
    cr_assert_eq(flow_claim(f, "q", 1, 0, &c), 0);
    cr_assert_eq(removal(f, 0, &r), LAPSE_EBUSY);
    cr_assert(r.n == 0 && r.n_running == 1);
    flow_claim_done(f, &c);
    flow_end(f, "q");
}

Test(remove, by_force_takes_jobs_from_their_holders_and_listeners_go_on)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.f = f, .way = FLOW_KEEP};
    struct removal r;

    flow_allow_log(f, "lease"); /* it was lost */
    flow_hold(f, &w, "a");
    flow_until_listeners(f, "q", 1);
    cr_assert_eq(flow_schedule(f, "q", "b", HOUR, NULL), 0);
    cr_assert_eq(removal(f, LAPSE_FORCE, &r), 0);
    cr_assert(r.n == 2 && r.n_running == 1);
    cr_assert_eq(flow_get(f, "q", "b", NULL), LAPSE_ENOENT);

    flow_settle(&w, FLOW_DONE);
    flow_until(f, w.settled == 1);
    cr_assert_eq(w.err, LAPSE_EGONE);
    w.way = FLOW_DONE;
    cr_assert_eq(flow_schedule(f, "q", "c", 0, NULL), 0);
    flow_until(f, w.settled == 2);
    flow_end(f, "q");
}

/* The wire is dead from the first hundred on: of the call that is under way then nobody knows
 * whether Redis ran it. */
Test(remove, of_hundreds_of_jobs_takes_a_call_for_each_hundred_and_goes_on_where_it_was_cut_off)
{
    place_not_with_masters("the proxy is before one of the masters");

    struct flow *f = flow_start(FLOW_FULL);
    struct proxy *proxy = proxy_start(f->server);
    struct lapse_options opts = flow_options(f);
    struct removal r = {.ended = false};

    opts.url = proxy->url;
    flow_allow_log(f, "Redis");
    struct lapse *l = flow_open(f, &opts);
    for (int i = 0; i < 350; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, HOUR, NULL), 0);
    }

    cr_assert_eq(lapse_remove(l, "q", 0, on_removal, &r), 0);
    flow_until(f, flow_count(f, "q", "due") < 350);
    proxy_swallow(proxy, true);
    flow_until(f, r.ended);
    cr_assert(r.err && r.n <= 200, "%s, %d", lapse_strerror(r.err), (int)r.n);
    flow_close(f, l, 0);

    uint64_t before = r.n;
    cr_assert_eq(removal(f, 0, &r), 0);
    cr_assert(r.n >= 150 && before + r.n <= 350, "%d + %d", (int)before, (int)r.n);
    flow_poll(f, keys_of_q(f) == 0);

    proxy_stop(proxy);
    flow_end(f, "q");
}
