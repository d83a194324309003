/* SPDX-License-Identifier: MIT */
/* Listening: begun, stopped, begun again. */
#include "wire.h"

static void no_timers(struct lapse_options *o)
{
    o->sweep_ms = o->reply_ms = 60000;
    o->lease_ms = 600000;
}

FLOW_ALL_MODES(handle, one_that_holds_nothing_is_closed_without_waiting_for_a_timer)
{
    struct flow *f = flow_start_opts(mode, NULL, no_timers);
    struct flow_worker w = {.policy = FLOW_DONE};
    flow_handle(f, "q", &w);
    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
    flow_until(f, w.settled == 1);
    flow_close(f, f->l, 3600000);
    flow_end(f, "q");
}
