/* SPDX-License-Identifier: MIT */
/* What a job costs, in things that can be counted: scripts, claims in vain, touches, allocations. */
#include "wire.h"
#include <limits.h>

/* On a busy machine who owns a job may be late by the grace, and then others ask too; the least of so many rounds is
 * what a job costs. */
enum { FEW = 200, MANY = 1000, AHEAD_MS = 300, ROUNDS = 20 };

static long long scripts(struct flow *f)
{
    return flow_calls(f, "evalsha") + flow_calls(f, "eval");
}

static void no_sweep(struct lapse_options *opts)
{
    opts->sweep_ms = 60000;
}

static void on_scheduled(struct lapse *l, int err, const struct lapse_job *job, void *left)
{
    (void)l, (void)job;
    cr_assert_eq(err, 0);
    --*(int *)left;
}

/* n jobs in one turn, due in so many ms, one every step_us. */
static void schedule_many(struct flow *f, int n, int64_t delay_ms, int step_us)
{
    static int made;
    int left = n;
    for (int i = 0; i < n; i++) {
        char id[32];
        snprintf(id, sizeof id, "job-%d", made++);
        struct lapse_spec spec = flow_job_spec("q", id, delay_ms + (int64_t)i * step_us / 1000);
        cr_assert_eq(lapse_schedule(f->l, &spec, on_scheduled, &left), 0);
    }
    flow_until(f, left == 0);
}

/* Everything but the schedule, which a hundred share: a touch, a claim, a done. One more may be where the touch came
 * a moment too early, by Redis's clock. */
Test(counts, a_lone_job_takes_four_scripts)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);
    struct flow_worker w = {.policy = FLOW_DONE};
    flow_handle(f, "q", &w);
    cr_assert_eq(flow_schedule(f, "q", NULL, 20, NULL), 0);
    flow_until(f, w.settled == 1);
    loop_for(f->loop, 200);
    long long before = scripts(f), least = 100;
    for (unsigned i = 2; i <= ROUNDS && least > 4; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 20, NULL), 0);
        flow_until(f, w.settled == i);
        long long now = scripts(f);
        least = now - before < least ? now - before : least;
        before = now;
    }
    cr_assert_eq(least, 4);
    flow_end(f, "q");
}

Test(counts, jobs_due_together_share_their_scripts)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);
    struct flow_worker w = {.policy = FLOW_DONE};
    flow_handle(f, "q", &w);
    schedule_many(f, MANY, AHEAD_MS, 0);
    long long before = scripts(f);
    flow_until(f, w.settled == MANY);
    /* 10 touches, 10 claims, 10 dones when all are full; a claim takes what room there is, 256 of it */
    cr_assert_leq(scripts(f) - before, MANY / 10, "%lld scripts", scripts(f) - before);
    flow_end(f, "q");
}

/* Of the listener: the schedules are made before. What is kept for later is made in the first round. */
static void allocations(int step_us)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);
    struct flow_worker w = {.policy = FLOW_DONE};
    flow_handle(f, "q", &w);
    long made = LONG_MAX;
    for (unsigned round = 1; round <= ROUNDS && made > MANY + MANY / 10; round++) {
        schedule_many(f, MANY, AHEAD_MS, step_us);
        long before = alloc_made();
        flow_until(f, w.settled == round * MANY);
        made = alloc_made() - before;
    }
    cr_assert_leq(made, MANY + MANY / 10, "%ld allocations for %d jobs", made, MANY);
    flow_end(f, "q");
}

Test(counts, one_allocation_a_job_in_a_burst)
{
    allocations(0);
}

Test(counts, one_allocation_a_job_when_they_come_one_by_one)
{
    allocations(1000);
}

struct costs {
    uint64_t claimed, empty, touches;
};

static struct costs costs_of(struct lapse *const *l, unsigned n)
{
    struct costs c = {0};
    for (unsigned i = 0; i < n; i++) {
        struct lapse_stats s = flow_stats(l[i]);
        c.claimed += s.claimed;
        c.empty += s.empty;
        c.touches += s.touches;
    }
    return c;
}

static unsigned settled(const struct flow_worker *w, unsigned n)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < n; i++)
        sum += w[i].settled;
    return sum;
}

static void shared_by(unsigned n, int64_t delay_ms)
{
    enum { MOST = 8 };
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct flow_worker w[MOST] = {0};
    struct lapse *l[MOST];
    struct lapse_options opts = flow_options(f);
    no_sweep(&opts);
    for (unsigned i = 0; i < n; i++) {
        f->l = l[i] = flow_open(f, &opts);
        w[i].policy = FLOW_DONE;
        flow_handle(f, "q", &w[i]);
    }
    flow_until_listeners(f, "q", n);
    flow_spin(f, 500);
    uint64_t empty = UINT64_MAX, touches = UINT64_MAX;
    for (unsigned round = 1; round <= ROUNDS && (empty > FEW / 10 || touches > FEW + FEW / 5); round++) {
        struct costs from = costs_of(l, n);
        schedule_many(f, FEW, delay_ms, 1000);
        flow_until(f, settled(w, n) == round * FEW);
        struct costs to = costs_of(l, n);
        cr_assert_eq(to.claimed - from.claimed, FEW);
        empty = to.empty - from.empty;
        touches = to.touches - from.touches;
    }
    cr_assert_leq(empty, FEW / 10, "%llu claims found nothing", (unsigned long long)empty);
    cr_assert_leq(touches, FEW + FEW / 5, "%llu touches", (unsigned long long)touches);
    flow_end(f, "q");
}

Test(counts, four_listeners_ask_for_a_job_once)
{
    shared_by(4, AHEAD_MS);
}

Test(counts, four_listeners_ask_for_a_job_once_that_is_due_at_once)
{
    shared_by(4, 0);
}

Test(counts, eight_listeners_ask_for_a_job_once)
{
    shared_by(8, AHEAD_MS);
}
