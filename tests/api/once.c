/* SPDX-License-Identifier: MIT */
/* Without a fault each job runs exactly once: many jobs, two listeners, each mode. */
#include "wire.h"

FLOW_ALL_MODES(once, five_thousand_jobs_with_random_delays_and_two_listeners)
{
    enum { N = 5000, MOST_MS = 2000, LISTENERS = 2, IN_FLIGHT = 100 };
    struct flow *f = flow_bare(mode, NULL);
    struct flow_worker w[LISTENERS] = {{.policy = FLOW_DONE}, {.policy = FLOW_DONE}};
    struct flow_answer *a = calloc(N, sizeof *a);
    unsigned char *times = calloc(N, 1);

    cr_assert(a && times);
    for (int i = 0; i < LISTENERS; i++) {
        f->l = flow_open(f, NULL);
        flow_handle(f, "q", &w[i]);
    }

    for (int i = 0; i < N; i++) {
        char id[16];
        snprintf(id, sizeof id, "%d", i);
        struct lapse_spec s = flow_job_spec("q", id, random() % (MOST_MS + 1));
        a[i].f = f;
        cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &a[i]), 0);
        if (i % IN_FLIGHT == 0) {
            cr_assert_eq(flow_wait(f, &a[i]), 0);
        }
    }

    flow_until(f, w[0].settled + w[1].settled == N);

    for (int i = 0; i < LISTENERS; i++) {
        cr_assert_eq(w[i].errors, 0);
        for (size_t k = 0; k < w[i].n_runs; k++) {
            const struct flow_job *job = &w[i].runs[k].job;
            times[strtol(job->id, NULL, 10)]++;
            cr_assert_geq(job->claimed_us, job->due_ms * 1000);
            cr_assert_eq(job->try_no, 1);
        }
    }

    for (int i = 0; i < N; i++) {
        cr_assert_eq(times[i], 1, "job %d ran %d times", i, times[i]);
    }

    free(a);
    free(times);
    flow_end(f, "q");
}
