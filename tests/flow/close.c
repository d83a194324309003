/* SPDX-License-Identifier: MIT */
#include "flow.h"

static void nothing_else_wakes_the_loop(struct lapse_options *opts)
{
    opts->sweep_ms = 24 * 3600 * 1000;
    opts->reply_ms = 3600 * 1000;
}

FLOW_ALL_MODES(close, of_an_idle_listener_does_not_wait_for_the_grace)
{
    struct flow *f = flow_start_opts(mode, NULL, nothing_else_wakes_the_loop);
    struct flow_worker w = {.policy = FLOW_DONE};
    flow_handle(f, "q", &w);
    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
    flow_until(f, w.settled == 1);
    flow_close(f, f->l, 3600 * 1000);
    flow_end(f, "q");
}
