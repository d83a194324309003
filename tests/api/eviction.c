/* SPDX-License-Identifier: MIT */
/* A Redis that may evict any key loses jobs without an error: no listener takes jobs from it
 * unless its options allow that. */
#include "handler.h"
#include "loop.h"
#include <hiredis/hiredis.h>

enum { HOUR = 3600000 };
static const char refusal[] = "takes no jobs: this Redis may evict any of them";
static const char *const policies[] = {"allkeys-lru", "allkeys-lfu", "allkeys-random"};

static struct flow *start(const char *policy, unsigned flags)
{
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct lapse_options opts = flow_options(f);

    flow_allow_log(f, refusal);
    redis_do(f->server, "CONFIG SET maxmemory-policy %s", policy);
    opts.flags |= flags;
    f->l = flow_open(f, &opts);
    return f;
}

Test(eviction, where_any_key_may_be_evicted_no_job_is_claimed_and_it_is_logged_once)
{
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        struct flow *f = start(policies[i], 0);
        struct flow_handler w = {.way = FLOW_DONE};
        flow_listen(f, "q", &w);
        flow_listen(f, "r", &w);
        cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0, "a producer is not the one to refuse");
        cr_assert_eq(flow_schedule(f, "q", "b", 30, NULL), 0);
        flow_until(f, flow_logged(f, refusal));
        loop_for(f->loop, i ? 100 : 1300); /* it asks again each second */
        cr_assert_eq(w.n_runs, 0);
        cr_assert_eq(flow_count(f, "q", "due"), 2);
        cr_assert_eq(flow_logged(f, refusal), 1);
        flow_end(f, "q", "r");
    }
}

Test(eviction, once_the_policy_is_mended_it_takes_them)
{
    struct flow *f = start("allkeys-lru", 0);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_listen(f, "q", &w);
    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
    flow_until(f, flow_logged(f, refusal));
    redis_do(f->server, "CONFIG SET maxmemory-policy noeviction");
    flow_until(f, w.settled == 1);
    cr_assert_eq(flow_logged(f, "does not evict them any more"), 1);
    cr_assert_eq(flow_schedule(f, "q", "b", 20, NULL), 0);
    flow_until(f, w.settled == 2);
    flow_end(f, "q");
}

Test(eviction, with_may_evict_a_listener_claims_them)
{
    struct flow *f = start("allkeys-lru", LAPSE_MAY_EVICT);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_listen(f, "q", &w);
    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
    flow_until(f, w.settled == 1);
    cr_assert_eq(flow_logged(f, refusal), 0);
    flow_end(f, "q");
}

Test(eviction, of_triggers_alone_is_no_reason_to_refuse)
{
    struct flow *f = start("volatile-ttl", 0);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_listen(f, "q", &w);
    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
    flow_until(f, w.settled == 1);
    flow_end(f, "q");
}

Test(eviction, a_queue_that_is_handled_later_is_refused_too)
{
    struct flow *f = start("allkeys-lru", 0);
    struct flow_handler w = {.way = FLOW_DONE};

    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0); /* the connection is up */
    cr_assert_eq(flow_logged(f, refusal), 0);
    flow_listen(f, "q", &w);
    flow_until(f, flow_logged(f, refusal));
    cr_assert_eq(w.n_runs, 0);
    flow_end(f, "q");
}

Test(eviction, a_policy_that_got_bad_is_seen_on_the_next_connection)
{
    struct flow *f = start("noeviction", 0);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_allow_log(f, "lost the connection");
    flow_listen(f, "q", &w);
    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
    flow_until(f, w.settled == 1);
    redis_do(f->server, "CONFIG SET maxmemory-policy allkeys-lru");
    redis_do(f->server, "CLIENT KILL TYPE normal SKIPME yes");
    flow_until(f, flow_logged(f, refusal));
    cr_assert_eq(flow_schedule(f, "q", "b", 0, NULL), 0);
    loop_for(f->loop, 100);
    cr_assert_eq(w.n_runs, 1);
    flow_end(f, "q");
}

Test(eviction, a_user_who_may_not_ask_is_let_in_and_leaves_no_trace_in_the_acl_log)
{
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct flow_handler w = {.way = FLOW_DONE};
    struct lapse_options opts = flow_options(f);
    char url[160];

    redis_do(f->server, "CONFIG SET maxmemory-policy allkeys-lru");
    redis_do(f->server, "ACL SETUSER u on >p ~* &* +@all -info");
    snprintf(url, sizeof url, "unix://u:p@%s", f->server->socket);
    opts.url = url;
    f->l = flow_open(f, &opts);
    flow_listen(f, "q", &w);
    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
    flow_until(f, w.settled == 1);

    redisReply *log = redis_cmd(f->server, "ACL LOG");
    cr_assert_eq(log->elements, 0);
    freeReplyObject(log);
    flow_end(f, "q");
}

Test(eviction, a_listener_that_refuses_can_be_closed_and_stopped)
{
    struct flow *f = start("allkeys-lru", 0);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_listen(f, "q", &w);
    flow_until(f, flow_logged(f, refusal));
    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
    cr_assert_eq(lapse_unlisten(f->l, "q"), 0);
    loop_for(f->loop, 50);
    flow_listen(f, "q", &w);
    loop_for(f->loop, 50);
    flow_close(f, f->l, HOUR);
    f->l = NULL;
    cr_assert_eq(w.n_runs, 0);
    flow_end(f, "q");
}
