/* SPDX-License-Identifier: MIT */
/* Listening: begun, stopped, begun again. */
#include "handler.h"

static void no_timers(struct lapse_options *o)
{
    o->sweep_ms = o->reply_ms = 60000;
    o->lease_ms = 600000;
}

FLOW_ALL_MODES(listening, one_that_holds_nothing_is_closed_without_waiting_for_a_timer)
{
    struct flow *f = flow_start_opts(mode, NULL, no_timers);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_listen(f, "q", &w);
    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
    flow_until(f, w.settled == 1);
    flow_close(f, f->l, 3600000);
    flow_end(f, "q");
}

Test(listening, a_queue_twice_is_eexist_and_stopping_what_is_not_handled_is_enoent)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};

    cr_assert_eq(lapse_unlisten(f->l, "q"), LAPSE_ENOENT);
    flow_listen(f, "q", &w);
    cr_assert_eq(lapse_listen(f->l, "q", NULL, flow_on_job, &w), LAPSE_EEXIST);
    cr_assert_eq(lapse_unlisten(f->l, "other"), LAPSE_ENOENT);
    cr_assert_eq(lapse_unlisten(f->l, "q"), 0);
    cr_assert_eq(lapse_unlisten(f->l, "q"), LAPSE_ENOENT);
    flow_end(f, "q");
}

struct stopper {
    struct flow_handler w;
    size_t after;
};

static void stop_after(struct lapse *l, struct lapse_job *job, void *arg)
{
    struct stopper *s = arg;
    flow_on_job(l, job, &s->w);
    if (s->w.n_runs == s->after) {
        cr_assert_eq(lapse_unlisten(l, "q"), 0);
    }
}

FLOW_ALL_MODES(listening, stopped_gives_back_what_it_has_not_begun_and_no_try_is_counted)
{
    enum { N = 120, BEGUN = 3 };
    struct flow *f = flow_start(mode);
    struct stopper s = {.w = {.f = f, .way = FLOW_KEEP}, .after = BEGUN};
    struct flow_handler later = {.way = FLOW_DONE};
    struct flow_job job;

    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    }

    cr_assert_eq(lapse_listen(f->l, "q", NULL, stop_after, &s), 0);
    flow_poll(f, s.w.n_runs == BEGUN && flow_count(f, "q", "due") == N - BEGUN);
    cr_assert_eq(flow_count(f, "q", "run"), BEGUN);

    char *id =
        redis_str(f->server, "EVAL %s 0", "return redis.call('ZRANGE', 'lapse:{q}:due', 0, 0)[1]");
    cr_assert_eq(flow_get(f, "q", id, &job), 0);
    cr_assert_eq(job.try_no, 0);
    cr_assert_eq(job.state, LAPSE_WAITING);
    free(id);
    flow_listen(f, "q", &later);
    flow_settle(&s.w, FLOW_DONE);
    cr_assert_eq(s.w.errors, 0);
    flow_until(f, later.settled == N - BEGUN);
    cr_assert_eq(s.w.n_runs, BEGUN);
    flow_each_once(&later, N - BEGUN);
    flow_end(f, "q");
}

FLOW_ALL_MODES(listening, begun_again_hears_of_what_is_due_later)
{
    struct flow *f = flow_start(mode);
    struct flow_handler first = {.way = FLOW_DONE};
    struct flow_handler second = {.way = FLOW_DONE};

    flow_listen(f, "q", &first);
    cr_assert_eq(flow_schedule(f, "q", "a", 100, NULL), 0);
    size_t begun = first.n_runs; /* 1 where the machine stood still until it was due */
    cr_assert_eq(lapse_unlisten(f->l, "q"), 0);
    flow_listen(f, "q", &second);
    cr_assert_eq(flow_schedule(f, "q", "b", 50, NULL), 0);
    flow_until(f, first.settled + second.settled == 2);
    flow_each_once(&first, begun);
    flow_each_once(&second, 2 - begun);
    flow_end(f, "q");
}
