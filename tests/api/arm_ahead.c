/* SPDX-License-Identifier: MIT */
/* arm_ahead_ms: a job that is due later than that gets its trigger when it comes near. */
#include "handler.h"

enum { MINUTE_MS = 60000, HOUR_MS = 3600000 };

static void one_ms_ahead(struct lapse_options *o)
{
    o->arm_ahead_ms = 1;
}

static struct lapse *open_listener(struct flow *f)
{
    struct lapse_options o = flow_options(f);

    o.arm_ahead_ms = HOUR_MS;
    o.sweep_ms = 100;
    return flow_open(f, &o);
}

static long long n_triggers(struct flow *f)
{
    return redis_int(f->server, "EVAL %s 0", "return #redis.call('KEYS', 'lapse:{q}:t:[^{]*')");
}

/* More than one call of the script takes. */
Test(arm_ahead, the_sweep_sets_the_triggers_of_all_jobs_that_come_near)
{
    enum { N = 150 };
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, one_ms_ahead);
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow_job job;

    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, MINUTE_MS + i, NULL), 0);
    }
    cr_assert_eq(flow_schedule(f, "q", "near", MINUTE_MS, &job), 0);
    cr_assert_eq(flow_schedule(f, "q", "far", 2 * HOUR_MS, NULL), 0);
    cr_assert_eq(n_triggers(f), 0);

    f->l = open_listener(f);
    flow_listen(f, "q", &w);
    flow_poll(f, n_triggers(f) == N + 1);
    cr_assert_eq(redis_int(f->server, "PEXPIRETIME lapse:{q}:t:near"), job.due_ms - 1);
    cr_assert_eq(redis_int(f->server, "EXISTS lapse:{q}:t:far"), 0);
    cr_assert_eq(w.n_runs, 0);

    flow_end(f, "q");
}

Test(arm_ahead, a_job_without_a_trigger_runs_at_its_moment)
{
    enum { N = 5, DELAY_MS = 200 };
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, one_ms_ahead);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_listen(f, "q", &w);
    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, DELAY_MS + i, NULL), 0);
    }
    flow_until(f, w.settled == N);
    cr_assert_eq(w.errors, 0);
    flow_each_once(&w, N);

    flow_end(f, "q");
}
