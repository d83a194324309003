/* SPDX-License-Identifier: MIT */
/* F32: a failover that loses claims. A real master and its replica; the link between them is cut,
 * the master goes on for a while, the replica is promoted, and the address that all use moves to
 * it. */
#include "workload.h"
#include "audit.h"
#include "handler.h"
#include "listening.h"
#include "proxy.h"
#include "replica.h"
#include <criterion/criterion.h>
#include <string.h>

static void one_at_a_time(struct lapse_options *o)
{
    o->lease_ms = 9000;
    o->sweep_ms = 200;
    o->max_running = 1;
}

struct failover {
    struct flow *f; /* on the first master; f->l goes there directly */
    struct server *other;
    struct proxy *address; /* of whichever is the master */
    struct lapse_options o;
    struct flow_handler lost, present; /* whose claim the failover lost; who claimed it then */
};

static void hold_by_address(struct failover *x, struct flow_handler *w)
{
    x->f->l = flow_open(x->f, &x->o);
    flow_listen(x->f, "q", w);
}

/* The replica is promoted before there is a claim to hear of: that is held back. */
static void claim_and_fail_over(struct failover *x)
{
    struct flow *f = x->f;
    struct lapse *direct = f->l;

    replica_follow(x->other, f->server);
    hold_by_address(x, &x->lost);
    flow_until_listeners(f, "q", 1);
    f->l = direct;
    proxy_hold(x->address, true);
    cr_assert_eq(flow_schedule(f, "q", "j", 200, NULL), 0);

    replicas_confirm(f->server, 1);
    redis_do(x->other, "REPLICAOF NO ONE");
    proxy_hold(x->address, false);
    flow_until(f, x->lost.n_held == 1);

    proxy_aim(x->address, x->other);
    proxy_drop(x->address);
    hold_by_address(x, &x->present);
    flow_until(f, x->present.n_held == 1);
    f->l = direct;
}

Test(f32, a_holder_whose_claim_a_failover_lost_has_another_token_and_may_not_settle, .timeout = 120)
{
    struct flow *f = flow_start_tcp(FLOW_FULL, replica_args, NULL);
    struct failover x = {.f = f, .other = server_start_tcp(replica_args), .o = flow_options(f)};
    struct flow_handler *lost = &x.lost;
    struct flow_handler *present = &x.present;

    x.address = proxy_start(f->server);
    x.o.url = x.address->url;
    one_at_a_time(&x.o);
    lost->way = present->way = FLOW_KEEP;
    flow_allow_log(f, "lost the connection");
    flow_allow_log(f, "the lease of job");
    flow_allow_log(f, "clock of Redis");
    claim_and_fail_over(&x);

    int64_t until_ms = lapse_job_until_ms(lost->held[0]);
    flow_until(f, lapse_job_until_ms(lost->held[0]) != until_ms);
    cr_assert_eq(lapse_job_until_ms(lost->held[0]), 0, "I4 job j: it renewed what is another's");
    cr_assert_gt(lapse_job_until_ms(present->held[0]), 0);

    flow_settle(lost, FLOW_DONE);
    cr_assert_eq(lost->err, LAPSE_EGONE, "I4 job j: it settled what is another's");
    flow_settle(present, FLOW_DONE);
    cr_assert_eq(present->errors, 0, "%s", lapse_strerror(present->err));

    uint64_t first = lost->runs[0].job.token;
    uint64_t second = present->runs[0].job.token;
    cr_assert_gt(second, first, "I3 job j: both hold it, by %llu, and then by %llu",
                 (unsigned long long)first, (unsigned long long)second);

    cr_assert_eq(audit(x.other, "lapse", "q", NULL), 0);
    flow_close(f, lost->runs[0].l, 0);
    flow_close(f, present->runs[0].l, 0);
    proxy_stop(x.address);
    server_stop(x.other);
    flow_end(f, "q");
}

static bool has_claim_since(const struct runs *runs, int64_t since_ms)
{
    const struct run *run;
    long at = 0;

    while ((run = runs_next(runs, &at)) && run->claimed_us <= since_ms * 1000) {}
    return run;
}

/* What Redis is asked now, no replica has: a claim at least is among that. */
static void claims_are_lost(struct work *w, const struct runs *runs, struct server *from, int ms)
{
    int64_t end_ms = test_now_ms() + 20000;
    int64_t since_ms = redis_now_ms(from);

    work_wait(w, ms);
    while (!has_claim_since(runs, since_ms) && !work_asked_all(w)) {
        cr_assert_lt(test_now_ms(), end_ms, "no handler was called");
        work_wait(w, 10);
    }
}

Test(f32, tokens_are_distinct_and_grow_over_failovers_that_lose_claims, .timeout = 600)
{
    struct server *s[2] = {server_start_tcp(replica_args), server_start_tcp(replica_args)};
    struct proxy *address = proxy_start(s[0]);
    struct work_opts o = work_opts();
    long times = fault_n(4, 30);
    long every_ms = 700;
    long alone_ms = 300;

    o.lapse.url = o.listener_url = o.producer_url = address->url;
    o.listeners = 3;
    o.per_s = 300;
    o.jobs = times * (every_ms + alone_ms) * o.per_s / 1000;
    o.delay_ms = 500;
    o.hold_ms = 800; /* longer than it is alone */
    o.lapse.lease_ms = 1000;
    o.lapse.sweep_ms = 200;
    o.runs = runs_new(10 * o.jobs);

    /* it takes seconds on a busy machine; of the first failover there is work to lose */
    replica_follow(s[1], s[0]);
    struct work *w = work_start(s[0], &o);
    for (long i = 0; i < times; i++) {
        struct server *from = s[i % 2];
        struct server *to = s[1 - i % 2];
        if (i > 0) {
            replica_follow(to, from);
        }
        work_wait(w, (int)every_ms);
        int64_t since_ms = test_now_ms(); /* what is older, the replica will have */
        replicas_confirm(from, 1);
        redis_do(to, "REPLICAOF NO ONE");
        claims_are_lost(w, o.runs, from, (int)alone_ms);
        proxy_aim(address, to);
        proxy_drop(address);
        work_rolled_back(w, since_ms);
        work_server(w, to);
    }

    struct verdict v = work_end(w, 60000);
    fault_row("F32",
              "a replica is promoted that lacks the last 0.3 s; master and replica change places",
              "no two claims by one token, tokens grow, the lost holder's settle is refused",
              "%ld times amid %ld jobs: %ld claims, all distinct and growing; %ld settles refused; "
              "%ld jobs lost with the 0.3 s",
              times, v.jobs, v.starts, v.stale, v.lost_in_window);
    runs_free(o.runs);
    proxy_stop(address);
    server_stop(s[0]);
    server_stop(s[1]);
}
