/* SPDX-License-Identifier: MIT */
/* A job runs once, when it is due and not before, whichever way a listener learns of it. */
#include "handler.h"
#include "listening.h"

static void schedule_each(struct flow *f, const char *queue, const char *prefix, int64_t delay_ms,
                          int n)
{
    for (int i = 0; i < n; i++) {
        char id[40];
        snprintf(id, sizeof id, "%s-%lld-%d", prefix, (long long)delay_ms, i);
        cr_assert_eq(flow_schedule(f, queue, id, delay_ms, NULL), 0);
    }
}

FLOW_ALL_MODES(due, jobs_of_all_delays_run_once_and_none_early)
{
    static const int64_t delays_ms[] = {0, 1, 2, 5, 50, 120, 300};
    enum { EACH = 10, DELAYS = sizeof delays_ms / sizeof *delays_ms, N = (DELAYS + 1) * EACH };
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_listen(f, "q", &w);
    for (int i = 0; i < DELAYS; i++) {
        schedule_each(f, "q", "in", delays_ms[i], EACH);
    }

    for (int i = 0; i < EACH; i++) {
        struct lapse_spec s = flow_job_spec("q", NULL, 0);
        s.due = lapse_at(redis_now_ms(f->server) - 3600000 * i);
        cr_assert_eq(flow_spec(f, &s, NULL), 0);
    }

    flow_until(f, w.settled == N);
    cr_assert_eq(w.errors, 0);
    flow_each_once(&w, N);
    for (size_t i = 0; i < N; i++) {
        cr_assert(flow_via_ok(mode, w.runs[i].job.via), "via %d", (int)w.runs[i].job.via);
    }

    struct lapse_stats s = flow_stats(f->l);
    cr_assert_eq(s.claimed, N);
    cr_assert_eq(s.done, N);
    cr_assert_eq(s.via_touch + s.via_event + s.via_notice + s.via_alarm + s.via_sweep, N);
    flow_end(f, "q");
}

FLOW_ALL_MODES(due, jobs_that_were_due_before_anybody_listened_run_once)
{
    enum { N = 250 };
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_DONE};

    schedule_each(f, "q", "early", 0, N / 2);
    schedule_each(f, "q", "soon", 1, N / 2);
    flow_listen(f, "q", &w);
    flow_until(f, w.settled == N);
    flow_each_once(&w, N);
    flow_end(f, "q");
}

/* The alarm of the listener is set to an hour from now when another process schedules an earlier
 * job. */
FLOW_ALL_MODES(due, a_new_earlier_job_does_not_wait_for_the_one_before)
{
    struct flow *f = flow_bare(mode, NULL);
    struct lapse_options opts = flow_options(f);
    struct flow_handler w = {.way = FLOW_DONE};

    opts.sweep_ms =
        mode == FLOW_NO_EVENTS || mode == FLOW_SWEEP || mode == FLOW_NO_ALARM ? 100 : 60000;
    f->l = flow_open(f, &opts);
    flow_listen(f, "q", &w);
    cr_assert_eq(flow_schedule(f, "q", "late", 3600000, NULL), 0);
    if (mode != FLOW_NO_EVENTS) {
        flow_until_listeners(f, "q", 1);
    }

    struct lapse *listener = f->l;
    f->l = flow_open(f, NULL);
    for (int i = 5; i > 0; i--) {
        schedule_each(f, "q", "soon", 40 * i, 1);
    }

    f->l = listener;
    flow_until(f, w.settled == 5);
    flow_each_once(&w, 5);
    cr_assert_eq(flow_runs_of(&w, "late"), 0);
    cr_assert_eq(flow_cancel(f, "q", "late", NULL), 0);
    flow_end(f, "q");
}

FLOW_ALL_MODES(due, a_job_made_due_earlier_runs_at_its_new_time)
{
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow_job moved;

    flow_listen(f, "q", &w);
    cr_assert_eq(flow_schedule(f, "q", "a", 3600000, NULL), 0);
    cr_assert_eq(flow_schedule(f, "q", "b", 3600000, NULL), 0);
    cr_assert_eq(flow_reschedule(f, "q", "a", lapse_in(60), &moved), 0);
    cr_assert_eq(flow_reschedule(f, "q", "b", lapse_in(0), NULL), 0);
    flow_until(f, w.settled == 2);
    flow_each_once(&w, 2);
    cr_assert_eq(w.runs[strcmp(w.runs[1].job.id, "a") == 0].job.due_ms, moved.due_ms);
    flow_end(f, "q");
}

FLOW_ALL_MODES(due, a_job_made_due_later_does_not_run_at_its_old_time)
{
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow_job moved;

    flow_listen(f, "q", &w);
    cr_assert_eq(flow_schedule(f, "q", "a", 5000, NULL), 0);
    cr_assert_eq(flow_schedule(f, "q", "b", 5000, NULL), 0);
    cr_assert_eq(flow_reschedule(f, "q", "a", lapse_in(5400), &moved), 0);
    cr_assert_eq(flow_reschedule(f, "q", "b", lapse_in(3600000), NULL), 0);
    flow_until(f, w.settled == 1);
    flow_each_once(&w, 1);
    cr_assert_str_eq(w.runs[0].job.id, "a");
    cr_assert_eq(w.runs[0].job.due_ms, moved.due_ms);
    cr_assert_eq(flow_cancel(f, "q", "b", NULL), 0);
    flow_end(f, "q");
}

/* Each cancel meets its job at about the moment it falls due: before, as it runs, or after. */
FLOW_ALL_MODES(due, a_cancel_at_the_last_moment_and_a_run_exclude_each_other)
{
    enum { N = 60 };
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow_answer a[N];
    char id[N][8];
    unsigned cancelled = 0;

    flow_listen(f, "q", &w);

    int64_t start = redis_now_ms(f->server) + 100;
    for (int i = 0; i < N; i++) {
        struct lapse_spec s = flow_job_spec("q", id[i], 0);
        snprintf(id[i], sizeof id[i], "%d", i);
        s.due = lapse_at(start + i);
        cr_assert_eq(flow_spec(f, &s, NULL), 0);
    }

    for (int i = 0; i < N; i++) {
        while (redis_now_ms(f->server) < start + i) {
            ev_run(f->loop, EVRUN_NOWAIT);
        }
        a[i] = (struct flow_answer){.f = f};
        cr_assert_eq(lapse_cancel(f->l, "q", id[i], 0, flow_answered, &a[i]), 0);
    }

    for (int i = 0; i < N; i++) {
        int err = flow_wait(f, &a[i]);
        cr_assert(err == 0 || err == LAPSE_EBUSY || err == LAPSE_ENOENT, "%s", lapse_strerror(err));
        cancelled += !err;
    }

    flow_until(f, w.settled == N - cancelled);
    flow_until(f, redis_left(f->server, f->space, "q") == 0);
    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_runs_of(&w, id[i]), a[i].err ? 1u : 0u, "cancel said %d", a[i].err);
    }

    flow_each_once(&w, N - cancelled);
    flow_end(f, "q");
}

Test(due, a_job_due_at_once_is_announced_by_a_notice)
{
    enum { N = 50 };
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_listen(f, "q", &w);
    flow_until_listeners(f, "q", 1);

    struct lapse *listener = f->l;
    f->l = flow_open(f, NULL);
    for (unsigned i = 0; i < N; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
        flow_until(f, w.settled == i + 1);
    }

    flow_each_once(&w, N);
    cr_assert_eq(flow_stats(listener).via_event, 0);
    cr_assert_gt(flow_stats(listener).via_notice, 0);
    flow_end(f, "q");
}

/* Redis expires nothing by itself here: each event is one that we made by touching. They go out to
 * all, though the touch has claimed the jobs, and lead to no claims. */
Test(due, the_alarm_makes_the_events)
{
    enum { N = 50 };
    struct flow *f = flow_start(FLOW_STILL);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_listen(f, "q", &w);
    flow_until_listeners(f, "q", 1);
    for (int i = 0; i < N; i++) {
        schedule_each(f, "q", "x", 60 + 4 * i, 1);
    }

    flow_until(f, w.settled == N);
    flow_each_once(&w, N);

    flow_heard(f);

    struct lapse_stats s = flow_stats(f->l);
    cr_assert_gt(s.via_touch, 0);
    cr_assert_eq(s.via_event, 0);
    cr_assert_leq(s.touches, N);
    cr_assert_geq(s.events, s.touches);
    flow_end(f, "q");
}

static void sweep_alone(struct lapse_options *o)
{
    o->flags = LAPSE_NO_EVENTS | LAPSE_NO_ALARM;
    o->sweep_ms = 50;
}

Test(due, with_neither_events_nor_alarm_the_sweep_delivers)
{
    enum { N = 20 };
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, sweep_alone);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_listen(f, "q", &w);
    for (int i = 0; i < N; i++) {
        schedule_each(f, "q", "x", 10 * i, 1);
    }

    flow_until(f, w.settled == N);
    flow_each_once(&w, N);
    cr_assert_eq(flow_stats(f->l).via_sweep, N);
    flow_end(f, "q");
}
