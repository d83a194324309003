/* SPDX-License-Identifier: MIT */
#include "listening.h"
#include "wire.h"

void wire_start(struct wire *x, enum flow_way way, flow_tweak *tweak)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse *direct = f->l;

    *x = (struct wire){.f = f, .proxy = proxy_start(f->server), .w = {.way = way}};

    struct lapse_options opts = flow_options(f);
    opts.url = x->proxy->url;
    opts.sweep_ms = 60000; /* nothing on the wire that the test did not cause */
    if (tweak) {
        tweak(&opts);
    }

    x->l = flow_open(f, &opts);
    f->l = x->l;
    x->subscribes = !(opts.flags & LAPSE_NO_EVENTS);
    /* so its connection is the first one */
    cr_assert_eq(flow_get(f, "q", "nothing", NULL), LAPSE_ENOENT);
    flow_listen(f, "q", &x->w);

    if (x->subscribes) {
        flow_until_listeners(f, "q", 1);
        /* it entered, heard of itself, and set its first canaries: */
        flow_poll(f, flow_calls(f, "set") >= 2);
        flow_heard(f); /* the next ones come seconds later */
    }

    flow_calm(f);
    f->l = direct;
    flow_allow_log(f, "lost the connection");
}

/* Its subscription is the second connection; each one after that is again for commands. */
void wire_cut(struct wire *x, enum proxy_way way, long bytes)
{
    long n = proxy_conns(x->proxy);
    proxy_cut_conn(x->proxy, x->subscribes && n == 2 ? 1 : n);
    proxy_cut_after(x->proxy, way, bytes);
}

void wire_lose(struct wire *x)
{
    struct flow_answer a = {.f = x->f};
    wire_cut(x, PROXY_UP, 0);
    cr_assert_eq(lapse_get(x->l, "q", "nothing", flow_answered, &a), 0);
    cr_assert_eq(flow_wait(x->f, &a), LAPSE_ELOST);
}

void wire_end(struct wire *x)
{
    flow_close(x->f, x->l, 5000);
    proxy_stop(x->proxy);
    flow_end(x->f, "q");
}
