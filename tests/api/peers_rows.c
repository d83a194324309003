/* SPDX-License-Identifier: MIT */
/* What users of other queues ask for most, one test a row of the comparison with them. */
#include "handler.h"
#include "listening.h"

enum { HOUR = 3600000, MANY = 250 };

/* Row 2: "not yet" is no try. Where each is one, ten of them kill the job. */
FLOW_ALL_MODES(peers_row_2, ten_snoozes_use_up_no_try)
{
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_SNOOZE};
    struct lapse_spec s = flow_job_spec("q", "a", 0);

    s.tries = 1;
    flow_listen(f, "q", &w);
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    flow_until(f, w.settled >= 10);
    w.way = FLOW_DONE;
    flow_until(f, flow_stats(f->l).done == 1);
    for (size_t i = 0; i < w.n_runs; i++) {
        cr_assert_eq(w.runs[i].job.try_no, 1);
    }
    cr_assert_eq(flow_stats(f->l).failed, 0);
    flow_end(f, "q");
}

/* Row 4: one call retries all dead, or deletes them, and one kills a job that waits. */
Test(peers_row_4, one_call_changes_many)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_where dead = {.state = LAPSE_DEAD};
    struct flow_counts c;

    for (int i = 0; i < MANY; i++) {
        char id[8];
        snprintf(id, sizeof id, "%d", i);
        cr_assert_eq(flow_schedule(f, "q", id, HOUR, NULL), 0);
        cr_assert_eq(flow_kill(f, "q", id, "no", NULL), 0);
    }
    cr_assert_eq(flow_count(f, "q", "dead"), MANY);

    cr_assert_eq(flow_reschedule_all(f, "q", dead, lapse_in(HOUR), 0, &c), 0);
    cr_assert_eq(c.n, MANY);
    cr_assert_eq(flow_count(f, "q", "due"), MANY);
    cr_assert_eq(flow_count(f, "q", "dead"), 0);

    cr_assert_eq(flow_kill(f, "q", "7", "no", NULL), 0);
    cr_assert_eq(flow_cancel_all(f, "q", dead, &c), 0);
    cr_assert_eq(c.n, 1);
    cr_assert_eq(flow_count(f, "q", "due"), MANY - 1);
    cr_assert_eq(flow_get(f, "q", "7", NULL), LAPSE_ENOENT);
    flow_end(f, "q");
}
