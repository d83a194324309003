/* SPDX-License-Identifier: MIT */
#include "handler.h"
#include "states.h"
#include <poll.h>

static void expect(struct flow *f, const char *queue, uint64_t waiting, uint64_t running,
                   uint64_t dead)
{
    struct lapse_depth d;
    cr_assert_eq(flow_depth(f, queue, &d), 0);
    cr_assert(d.waiting == waiting && d.running == running && d.dead == dead,
              "%d waiting, %d running, %d dead", (int)d.waiting, (int)d.running, (int)d.dead);
}

Test(depth, of_an_empty_queue_is_nothing_and_leaves_nothing)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_depth d;

    cr_assert_eq(flow_depth(f, "q", &d), 0);
    cr_assert(d.waiting == 0 && d.running == 0 && d.dead == 0 && d.late_ms == 0);
    cr_assert_eq(redis_int(f->server, "DBSIZE"), 0);
    flow_end(f, "q");
}

Test(depth, counts_each_state_of_this_queue_alone)
{
    struct flow *f = flow_start(FLOW_FULL);

    flow_put(f, "q", "dead", FLOW_DEAD, NULL);
    flow_put(f, "q", "runs", FLOW_RUNS, NULL);
    for (int i = 0; i < 5; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 3600000, NULL), 0);
    }

    cr_assert_eq(flow_schedule(f, "other", NULL, 3600000, NULL), 0);
    expect(f, "q", 5, 1, 1);
    expect(f, "other", 1, 0, 0);
    flow_end(f, "q", "other");
}

Test(depth, a_lease_that_is_over_counts_as_waiting)
{
    struct flow *f = flow_start(FLOW_FULL);
    flow_put(f, "q", "a", FLOW_ENDED, NULL);
    expect(f, "q", 1, 0, 0);
    flow_end(f, "q");
}

Test(depth, a_lease_that_is_over_counts_as_waiting_until_the_sweep_also_where_the_tries_are_used_up)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_put(f, "q", "a", FLOW_ENDED_LAST, NULL);
    expect(f, "q", 1, 0, 0);
    flow_listen(f, "q", &w);
    flow_until(f, flow_count(f, "q", "dead") == 1);
    expect(f, "q", 0, 0, 1);
    cr_assert_eq(w.n_runs, 0);
    flow_end(f, "q");
}

Test(depth, late_is_how_long_the_oldest_due_job_waits)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_job job;
    struct lapse_depth d;

    cr_assert_eq(flow_schedule(f, "q", "future", 3600000, NULL), 0);
    cr_assert_eq(flow_depth(f, "q", &d), 0);
    cr_assert_eq(d.late_ms, 0, "nothing is due");
    cr_assert_eq(flow_schedule(f, "q", "due", 0, &job), 0);
    while (redis_now_ms(f->server) < job.due_ms + 20) {
        poll(NULL, 0, 2);
    }

    int64_t before = redis_now_ms(f->server);
    cr_assert_eq(flow_depth(f, "q", &d), 0);
    cr_assert(d.late_ms >= before - job.due_ms &&
              d.late_ms <= redis_now_ms(f->server) - job.due_ms);
    flow_end(f, "q");
}
