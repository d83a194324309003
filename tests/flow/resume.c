/* SPDX-License-Identifier: MIT */
/* What a reconnect finds: claims whose answer was lost, jobs in hand, claims that wait to be sent. */
#include "wire.h"

/* A job is due, and the listener hears of it, while it cannot ask. */
Test(resume, a_claim_that_waited_for_the_connection_is_not_taken_for_a_lost_one)
{
    struct wire x;
    wire_start(&x, FLOW_KEEP, NULL);
    proxy_refuse(x.proxy, true);
    wire_cut(&x, PROXY_UP, 0);
    struct flow_answer a = {.f = x.f};
    cr_assert_eq(lapse_get(x.l, "q", "nothing", flow_answered, &a), 0);
    cr_assert_eq(flow_wait(x.f, &a), LAPSE_ELOST);
    cr_assert_eq(flow_schedule(x.f, "q", "a", 0, NULL), 0);
    redis_do(x.f->server, "PUBLISH __keyevent@0__:expired lapse:{q}:t:a");
    flow_until(x.f, flow_stats(x.l).events == 1);
    flow_fine(x.f, "cannot connect");
    proxy_refuse(x.proxy, false);
    flow_until(x.f, x.w.n_runs == 1);
    flow_settle(&x.w, FLOW_DONE);
    cr_assert_eq(x.w.errors, 0, "%s", lapse_strerror(x.w.err));
    cr_assert_eq(x.w.n_runs, 1);
    cr_assert_eq(flow_stats(x.l).reconnects, 1);
    wire_end(&x);
}
