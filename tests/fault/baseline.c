/* SPDX-License-Identifier: MIT */
/* The baseline of the other rows: nothing breaks. */
#include "workload.h"
#include "redis.h"
#include <criterion/criterion.h>

Test(f1, without_a_fault_each_job_runs_once_and_none_early, .timeout = 300)
{
    struct server *s = server_start();
    struct work_opts o = work_opts();

    o.jobs = fault_n(10000, 100000);
    o.producers = o.listeners = 4;
    o.per_s = 4000;
    o.delay_ms = 5000;

    struct verdict v = work_end(work_start(s, &o), 120000);
    cr_assert_eq(v.ok, o.jobs);
    cr_assert_eq(v.starts, o.jobs);
    cr_assert_eq(v.done, o.jobs);
    fault_row("F1", "none: 4 producers, 4 listeners, delays of 0 to 5 s",
              "100,000 jobs: 0 lost, 0 early, 0 twice; p99 at most 50 ms late, none 1 s",
              "%ld jobs: 0 lost, 0 early, %ld twice; late p50 %.2f, p99 %.2f, max %.1f ms", v.jobs,
              v.twice, v.late_p50_ms, v.late_p99_ms, v.late_max_ms);
    server_stop(s);
}

Test(f1, any_verbs_on_a_few_ids_have_an_order, .timeout = 120)
{
    struct server *s = server_start();
    struct work_opts o = work_opts();

    for (unsigned round = 0; round < fault_n(5, 100); round++) {
        o.jobs = 150;
        o.ids = 20;
        o.per_s = 300;
        o.delay_ms = 20;
        o.hold_ms = 10;
        o.retry = o.fail = 100;
        o.seed = round + 1;
        work_end(work_start(s, &o), 30000);
        redis_do(s, "FLUSHALL");
    }

    server_stop(s);
}
