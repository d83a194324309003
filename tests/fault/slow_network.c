/* SPDX-License-Identifier: MIT */
/* A bad network that works: slow, far, lossy. No job is lost, early, or run twice: a lease that is
 * ten round trips long is not lost to the wire. The checker of the history allows no second run
 * here. */
#include "own_network.h"
#include "proxy.h"
#include "workload.h"
#include <criterion/criterion.h>

static struct work_opts opts(long jobs, long per_s)
{
    struct work_opts o = work_opts();

    o.jobs = jobs;
    o.per_s = per_s;
    o.producers = 1;
    o.hold_ms = 100;
    o.lapse.lease_ms = 6000;
    return o;
}

static void row(const char *fault, const struct work_opts *o, const struct verdict *v)
{
    cr_assert(v->ok == o->jobs && v->done == o->jobs, "%ld of %ld jobs done", v->done, o->jobs);
    cr_assert_eq(v->twice, 0);
    cr_assert_eq(v->expired, 0);
    fault_row("F12", fault, "0 lost, no lease lost",
              "%ld jobs: 0 lost, %ld twice, %ld leases lost; late p50 %.0f, p99 %.0f, max %.0f ms",
              v->jobs, v->twice, v->expired, v->late_p50_ms, v->late_p99_ms, v->late_max_ms);
}

Test(f12, two_hundred_milliseconds_more_or_less_each_way, .timeout = 300)
{
    struct server *s = server_start();
    struct proxy *p = proxy_start(s);
    struct work_opts o = opts(fault_n(100, 2000), fault_n(15, 30));

    o.lapse.url = p->url;
    proxy_delay(p, 200);
    proxy_jitter(p, 100);
    struct verdict v = work_end(work_start(s, &o), 240000);
    row("proxy: 200 +- 100 ms each way", &o, &v);
    proxy_stop(p);
    server_stop(s);
}

Test(f12, a_quarter_of_a_megabit, .timeout = 300)
{
    net_own();
    struct server *s = server_start_tcp(NULL);
    struct work_opts o = opts(fault_n(60, 1000), 8);
    o.lapse.url = s->tcp_url;
    net_do("tc qdisc add dev lo root tbf rate 256kbit burst 4kb latency 400ms");
    struct verdict v = work_end(work_start(s, &o), 240000);
    row("tbf: 256 kbit/s for all together", &o, &v);
    server_stop(s);
}

Test(f12, one_packet_in_twenty_is_lost, .timeout = 300)
{
    net_own();
    struct server *s = server_start_tcp(NULL);
    struct work_opts o = opts(fault_n(300, 10000), fault_n(50, 100));
    o.lapse.url = s->tcp_url;
    net_do("iptables -A INPUT -p tcp -m statistic --mode random --probability 0.05 -j DROP");
    struct verdict v = work_end(work_start(s, &o), 240000);
    row("iptables: 5 % of the packets dropped", &o, &v);
    server_stop(s);
}
