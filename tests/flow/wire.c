/* SPDX-License-Identifier: MIT */
#include "wire.h"

struct lapse_stats flow_stats(struct lapse *l)
{
    struct lapse_stats s;
    lapse_stats(l, &s, sizeof s);
    return s;
}

void flow_until_listeners(struct flow *f, const char *queue, long long n)
{
    flow_until(f, redis_int(f->server, "ZCARD %s:{%s}:listeners", f->space, queue) == n);
}

void wire_start(struct wire *x, enum flow_policy policy, flow_tweak *tweak)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse *direct = f->l;
    *x = (struct wire){.f = f, .proxy = proxy_start(f->server), .w = {.policy = policy}};
    struct lapse_options opts = flow_options(f);
    opts.url = x->proxy->url;
    opts.sweep_ms = 60000; /* nothing on the wire that the test did not cause */
    if (tweak)
        tweak(&opts);
    x->l = flow_open(f, &opts);
    f->l = x->l;
    cr_assert_eq(flow_get(f, "q", "nothing", NULL), LAPSE_ENOENT); /* so its connection is the first one */
    flow_handle(f, "q", &x->w);
    flow_until_listeners(f, "q", 1);
    cr_assert_eq(flow_get(f, "q", "nothing", NULL), LAPSE_ENOENT);
    f->l = direct;
    flow_fine(f, "lost the connection");
}

/* Its subscription is the second connection; each one after that is again for commands. */
void wire_cut(struct wire *x, enum proxy_way way, long bytes)
{
    long n = proxy_conns(x->proxy);
    proxy_cut_conn(x->proxy, n == 2 ? 1 : n);
    proxy_cut_after(x->proxy, way, bytes);
}

void wire_end(struct wire *x)
{
    flow_close(x->f, x->l, 5000);
    proxy_stop(x->proxy);
    flow_end(x->f, "q");
}
