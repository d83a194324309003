/* SPDX-License-Identifier: MIT */
/* F31: requests of one id, made in one turn, take effect in that order, whatever brings some of
 * them back. */
#include "workload.h"
#include "proxy.h"
#include "redis.h"
#include "replica.h"
#include "test.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FEW = 4, LONG_BODY = 400000 }; /* records of 256 KiB end a script */

/* Three of each of three ids in one turn, and in the handler of every other run done and
 * schedule. */
static struct work_opts in_turn(long asks, long per_s, int ids)
{
    struct work_opts o = work_opts();
    const char *seed = getenv("LAPSE_SEED");

    o.seed = seed ? (unsigned)strtoul(seed, NULL, 10) : 1;
    o.jobs = asks;
    o.per_s = per_s;
    o.ids = ids;
    o.turn = 3;
    o.again = 500;
    o.delay_ms = 50;
    o.hold_ms = 20;
    o.retry = 50;

    return o;
}

static void searched(const struct verdict *v, const struct work_opts *o)
{
    cr_assert_geq(v->starts, v->jobs / FEW, "%ld runs of %ld ids", v->starts, v->jobs);
    cr_assert_geq(v->searched, v->jobs * 9 / 10,
                  "%ld of %ld ids had too many events to be searched", v->jobs - v->searched,
                  v->jobs);
    cr_assert_leq(v->jobs, o->ids);
}

static struct verdict cut_short(long asks)
{
    struct server *s = server_start();
    struct work_opts o = in_turn(asks, 400, (int)(asks / 8));

    o.body_len = LONG_BODY;
    struct verdict v = work_end(work_start(s, &o), 60000);
    searched(&v, &o);
    server_stop(s);
    return v;
}

Test(f31, in_turn_means_in_order_where_a_script_answers_fewer_than_it_was_asked, .timeout = 300)
{
    long asks = fault_n(1200, 20000);
    struct verdict v = cut_short(asks);
    fault_row("F31", "requests of one id in one turn, bodies of up to 400 kB, which end a script",
              "each takes effect in its turn, done and schedule in one handler too",
              "%ld requests of %ld ids, %ld runs: all in order", asks, v.jobs, v.starts);
}

Test(f31, in_turn_means_in_order_when_redis_forgets_the_scripts, .timeout = 300)
{
    struct server *s = server_start();
    long flushes = 100;
    long asks = fault_n(4000, 40000);
    struct work_opts o = in_turn(asks, 2000, (int)(asks / 8));
    struct work *w = work_start(s, &o);
    long every_ms = asks * 1000 / o.per_s / flushes;
    long n = 0;

    work_note(w, "SCRIPT FLUSH, again and again");
    for (; n < flushes || !work_asked_all(w); n++) {
        redis_do(s, "SCRIPT FLUSH");
        work_wait(w, (int)every_ms);
    }

    struct verdict v = work_end(w, 60000);
    searched(&v, &o);
    cr_assert_eq(v.info, 0);
    fault_row("F31", "the same, SCRIPT FLUSH 100 times", "each takes effect in its turn",
              "%ld requests of %ld ids, %ld runs, %ld times SCRIPT FLUSH: all in order", asks,
              v.jobs, v.starts, n);
    server_stop(s);
}

/* A settle is repeated on the next connection, and a schedule of its handler must still come after
 * it. */
Test(f31, in_turn_means_in_order_when_connections_are_cut, .timeout = 300)
{
    struct server *s = server_start();
    long asks = fault_n(2400, 40000);
    long n = 0;
    struct work_opts o = in_turn(asks, 800, (int)(asks / 8));

    o.lapse.lease_ms = 1000;
    o.lapse.sweep_ms = 200;

    struct work *w = work_start(s, &o);
    for (; !work_asked_all(w); n++) {
        work_nemesis(w, "CLIENT KILL");
        redis_do(s, "CLIENT KILL TYPE normal SKIPME yes");
        work_wait(w, 100);
    }

    struct verdict v = work_end(w, 60000);
    searched(&v, &o);
    fault_row("F31", "the same, all connections cut ten times a second",
              "each takes effect in its turn, or never, where nobody knows",
              "%ld requests of %ld ids, %ld runs, %ld times cut: all in order", asks, v.jobs,
              v.starts, n);
    server_stop(s);
}

/* ---- an address that changes servers ---- */
/* Every answer came from the one, and what is asked next goes to the other, which has all that the
 * one had. */
static void change(struct proxy *p, struct server *from, struct server *to)
{
    proxy_hold(p, true);
    replicas_confirm(from, 1);
    redis_do(to, "REPLICAOF NO ONE");
    proxy_aim(p, to);
    redis_do(from, "REPLICAOF 127.0.0.1 %d", to->port);
    proxy_hold(p, false);
}

Test(f31, in_turn_means_in_order_behind_an_address_that_changes_servers, .timeout = 300)
{
    struct server *s[2] = {server_start_tcp(replica_args), server_start_tcp(replica_args)};
    struct proxy *p = proxy_start(s[0]);
    long asks = fault_n(3000, 20000);
    long every_ms = 100;
    long n = 0;
    struct work_opts o = in_turn(asks, 1000, (int)(asks / 8));

    o.lapse.url = o.listener_url = o.producer_url = p->url;
    replica_follow(s[1], s[0]);

    struct work *w = work_start(s[0], &o);
    work_note(w, "the servers change places, again and again");

    for (; !work_asked_all(w) || n % 2; n++) {
        change(p, s[n % 2], s[1 - n % 2]);
        work_wait(w, (int)every_ms);
        replicas_confirm(s[1 - n % 2], 1);
    }

    struct verdict v = work_end(w, 60000);
    searched(&v, &o);
    cr_assert_eq(v.info, 0);
    fault_row("F31", "the same, behind an address that changes servers under live connections",
              "each takes effect in its turn",
              "%ld requests of %ld ids, %ld runs, %ld changes: all in order", asks, v.jobs,
              v.starts, n);
    proxy_stop(p);
    server_stop(s[0]);
    server_stop(s[1]);
}
