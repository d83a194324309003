/* SPDX-License-Identifier: MIT */
#include "flow.h"

FLOW_ALL_MODES(schedule, a_job_runs_once_and_is_gone)
{
    struct flow *f = flow_start(mode);
    struct flow_worker w = {.policy = FLOW_DONE};
    struct flow_job made;
    flow_handle(f, "orders", &w);
    cr_assert_eq(flow_schedule(f, "orders", "a", 50, &made), 0);
    cr_assert_str_eq(made.id, "a");
    flow_until(f, w.settled == 1);
    cr_assert_eq(w.errors, 0);
    cr_assert_eq(w.n_runs, 1);
    cr_assert_eq(w.runs[0].job.due_ms, made.due_ms);
    cr_assert_geq(w.runs[0].job.claimed_us, made.due_ms * 1000);
    cr_assert_eq(flow_get(f, "orders", "a", NULL), LAPSE_ENOENT);
    flow_end(f, "orders");
}
