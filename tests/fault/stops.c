/* SPDX-License-Identifier: MIT */
/* F49 to F51: jobs are cancelled while they run. The notice does not come, the holder is killed
 * before it settles, or it settles at the same moment. */
#include "redis.h"
#include "wire.h"
#include "workload.h"
#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>

/* ---- F49 ---- */
enum { HELD = 200 };

static void quick_lease(struct lapse_options *o)
{
    o->lease_ms = 3500;
    o->max_running = HELD;
}

static void on_event(struct lapse *l, enum lapse_event what, const struct lapse_job *job, void *arg)
{
    cr_assert(l && what == LAPSE_EVENT_CANCEL);
    cr_assert_eq(lapse_job_cancelled(job), 1);
    ++*(unsigned *)arg;
}

static void stop_all(struct wire *x)
{
    struct lapse_where running = {.state = LAPSE_RUNNING};
    struct flow_counts counts = {0};

    running.size = sizeof running;
    cr_assert_eq(lapse_cancel_all(x->f->l, "q", &running, LAPSE_RUNNING_TOO, flow_counted, &counts),
                 0);
    flow_until(x->f, counts.calls == 1);
    cr_assert_eq(counts.err, 0);
    cr_assert_eq(counts.n_running, HELD);
}

Test(f49, a_cancel_is_heard_by_the_renewal_where_the_channel_of_notices_is_dead, .timeout = 300)
{
    struct wire x;
    unsigned n_heard = 0;

    wire_start(&x, FLOW_KEEP, quick_lease);
    flow_allow_log(x.f, "no answer");
    lapse_on_event(x.l, on_event, &n_heard);
    for (int i = 0; i < HELD; i++) {
        cr_assert_eq(flow_schedule(x.f, "q", NULL, 0, NULL), 0);
    }
    flow_until(x.f, x.w.n_held == HELD);

    proxy_swallow_conn(x.proxy, 2);
    proxy_swallow(x.proxy, true);
    stop_all(&x);
    flow_until(x.f, n_heard == HELD);
    proxy_heal(x.proxy);
    flow_poll(x.f, flow_get(x.f, "q", "nothing", NULL) == LAPSE_ENOENT);

    flow_settle(&x.w, FLOW_RETRY);
    cr_assert_eq(flow_count(x.f, "q", "due") + flow_count(x.f, "q", "run"), 0);
    cr_assert_eq(n_heard, HELD);
    wire_end(&x);
    fault_row("F49",
              "200 jobs that run are cancelled while nothing comes by the channel of notices",
              "each is heard of by the next renewal, once", "%u of %d, once", n_heard, HELD);
}

/* ---- F50 ---- */
/* Jobs of half a second, each cancelled somewhere in its life. */
static struct work_opts cancelled_jobs(long n)
{
    struct work_opts o = work_opts();

    o.jobs = n;
    o.stops = true;
    o.cancel = 1000;
    o.delayed = 0;
    o.retry = o.fail = 300;
    return o;
}

Test(f50, a_job_whose_holder_was_killed_after_it_was_asked_to_stop_does_not_run_again,
     .timeout = 900)
{
    enum { CREW = 4, EVERY_MS = 500 };
    struct server *s = server_start();
    long kills = fault_n(10, 100);
    struct work_opts o = cancelled_jobs(kills * EVERY_MS / 5);

    o.listeners = CREW;
    o.per_s = 200;
    o.delay_ms = 300;
    o.hold_ms = 1000;
    o.lapse.lease_ms = 1000;
    o.lapse.sweep_ms = 200;

    struct work *w = work_start(s, &o);
    for (long i = 0; i < kills; i++) {
        work_wait(w, EVERY_MS);
        work_kill(w, (int)(random() % CREW));
    }

    struct verdict v = work_end(w, 60000);
    cr_assert_gt(v.asked, 0);
    fault_row("F50", "the holder is killed while it has jobs that were asked to stop",
              "100 kills: each such job is gone when its lease is over, and does not run again",
              "%ld kills amid %ld jobs, %ld asked to stop: none ran again", kills, v.jobs, v.asked);
    server_stop(s);
}

/* ---- F51 ---- */
Test(f51, a_cancel_at_the_moment_of_a_settle_is_answered_as_it_was, .timeout = 900)
{
    struct server *s = server_start();
    long n = fault_n(2000, 10000);
    struct work_opts o = cancelled_jobs(n);

    o.listeners = 3;
    o.producers = 3;
    o.per_s = 1500;
    o.delay_ms = 20;
    o.hold_ms = 20;

    struct verdict v = work_end(work_start(s, &o), 120000);
    cr_assert_gt(v.asked, 0);
    cr_assert_eq(v.searched, n);
    fault_row("F51", "a cancel and a settle of a job that runs, at the same moment",
              "10,000 jobs: each cancel is answered as the history has it, and none runs after it",
              "%ld jobs, %ld of them asked to stop: each as answered", v.jobs, v.asked);
    server_stop(s);
}
