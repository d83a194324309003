/* SPDX-License-Identifier: MIT */
/* A listener with fewer free slots than there are due jobs. */
#include "handler.h"
#include "listening.h"

static void three_at_once(struct lapse_options *o)
{
    o->max_running = 3;
}

static void one_at_once(struct lapse_options *o)
{
    o->max_running = 1;
}

static void settle_one(struct flow_handler *w)
{
    unsigned want = w->settled + 1;
    lapse_done(w->held[--w->n_held], flow_on_settled, w);
    flow_until(w->f, w->settled == want);
}

FLOW_ALL_MODES(capacity, max_running_is_never_exceeded_and_all_is_served)
{
    enum { N = 20, QUEUES = 3 };
    static const char *const queues[QUEUES] = {"a", "b", "c"};
    struct flow *f = flow_start_opts(mode, NULL, three_at_once);
    struct flow_handler w = {.way = FLOW_KEEP};

    for (int i = 0; i < N; i++) {
        for (int q = 0; q < QUEUES; q++) {
            cr_assert_eq(flow_schedule(f, queues[q], NULL, i * 3, NULL), 0);
        }
    }

    for (int q = 0; q < QUEUES; q++) {
        flow_listen(f, queues[q], &w);
    }

    for (size_t done = 0; done < N * QUEUES; done++) {
        flow_until(f, w.n_held == 3 || w.n_runs == N * QUEUES);
        cr_assert_leq(
            flow_count(f, "a", "run") + flow_count(f, "b", "run") + flow_count(f, "c", "run"), 3);
        settle_one(&w);
        cr_assert_leq(w.n_held, 3);
    }

    cr_assert_eq(w.errors, 0);
    flow_each_once(&w, N * QUEUES);
    flow_end(f, "a", "b", "c");
}

FLOW_ALL_MODES(capacity, a_queue_has_a_limit_of_its_own)
{
    enum { N = 12 };
    struct flow *f = flow_start_opts(mode, NULL, NULL);
    struct flow_handler narrow = {.f = f, .way = FLOW_KEEP};
    struct flow_handler wide = {.f = f, .way = FLOW_KEEP};
    struct lapse_listen_options two = {.size = sizeof two, .max_running = 2};

    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_schedule(f, "narrow", NULL, 0, NULL), 0);
        cr_assert_eq(flow_schedule(f, "wide", NULL, 0, NULL), 0);
    }

    cr_assert_eq(lapse_listen(f->l, "narrow", &two, flow_on_job, &narrow), 0);
    flow_listen(f, "wide", &wide);
    flow_until(f, wide.n_held == N && narrow.n_held == 2);
    cr_assert_eq(flow_count(f, "narrow", "run"), 2);
    cr_assert_eq(flow_count(f, "wide", "run"), N);

    for (int i = 0; i < N; i++) {
        flow_until(f, narrow.n_held == 2 || narrow.n_runs == N);
        settle_one(&narrow);
        cr_assert_leq(flow_count(f, "narrow", "run"), 2);
    }

    flow_settle(&wide, FLOW_DONE);
    flow_each_once(&narrow, N);
    flow_each_once(&wide, N);
    flow_end(f, "narrow", "wide");
}

/* Meanwhile it hears of a job of queue a again and again: in the very moment, too, in which the
 * slot is free. */
static void settle_amid_hints(struct flow_handler *w)
{
    unsigned want = w->settled + 1;

    lapse_done(w->held[--w->n_held], flow_on_settled, w);
    while (w->settled < want) {
        redis_do(w->f->server, "PUBLISH lapse:{a}:notice:0 %s", "0 a5");
        ev_run(w->f->loop, EVRUN_NOWAIT);
    }
}

static void serve_in_turn(struct flow *f)
{
    enum { EACH = 6, QUEUES = 3, TOTAL = EACH * QUEUES };
    static const char *const queues[QUEUES] = {"a", "b", "c"};
    struct lapse_options opts = flow_options(f);
    struct flow_handler w = {.way = FLOW_KEEP};

    one_at_once(&opts);
    opts.flags |= LAPSE_MAY_EVICT; /* a queue whose master has not said waits for no room yet */
    f->l = flow_open(f, &opts);

    for (int i = 0; i < TOTAL; i++) {
        char id[8];
        snprintf(id, sizeof id, "%s%d", queues[i / EACH], i % EACH);
        cr_assert_eq(flow_schedule(f, queues[i / EACH], id, 0, NULL), 0);
    }

    for (int q = 0; q < QUEUES; q++) {
        flow_listen(f, queues[q], &w);
    }

    for (int i = 0; i < TOTAL; i++) {
        flow_until(f, w.n_held == 1);
        settle_amid_hints(&w);
    }

    flow_each_once(&w, TOTAL);

    for (int i = 0; i + QUEUES <= TOTAL; i++) {
        cr_assert(strcmp(w.runs[i].job.queue, w.runs[i + 1].job.queue) != 0 &&
                      strcmp(w.runs[i].job.queue, w.runs[i + 2].job.queue) != 0 &&
                      strcmp(w.runs[i + 1].job.queue, w.runs[i + 2].job.queue) != 0,
                  "runs %d to %d: %s %s %s", i, i + 2, w.runs[i].job.queue, w.runs[i + 1].job.queue,
                  w.runs[i + 2].job.queue);
    }

    flow_close(f, f->l, 5000);
}

Test(capacity, queues_that_wait_for_room_are_served_in_turn)
{
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    for (int i = 0; i < 15; i++) {
        serve_in_turn(f);
    }
    flow_end(f, "a", "b", "c");
}

/* Or it would go out and in with each job, and all others would ask for their rank each time. */
Test(capacity, a_listener_that_is_full_for_a_moment_stays_in_the_registry)
{
    enum { N = 30, MOMENT_MS = 60, LONG_MS = 900, BEAT_MS = 4500 };
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, one_at_once);
    struct flow_handler w = {.way = FLOW_KEEP};
    long long by_right = 1;

    flow_listen(f, "q", &w);
    flow_poll(f, flow_heartbeats(f) == 2); /* its first heartbeats */
    flow_heard(f);
    flow_calm(f);

    long long before = flow_heartbeats(f);
    int64_t start_ms = test_now_ms();
    for (int i = 0; i < N; i++) {
        int64_t from_ms = test_now_ms();
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
        flow_until(f, w.n_held == 1);
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0); /* there is no room for it */
        flow_spin(f, MOMENT_MS);
        settle_one(&w);
        flow_until(f, w.n_held == 1);
        settle_one(&w);
        flow_spin(f, MOMENT_MS);
        /* where the machine is so slow it leaves, comes back, and hears that the members changed */
        by_right += test_now_ms() - from_ms > LONG_MS ? 3 : 0;
    }

    by_right += (test_now_ms() - start_ms) / BEAT_MS;

    long long asked = flow_heartbeats(f) - before;
    cr_assert_leq(asked, by_right, "%lld, not %lld", asked, by_right);
    flow_end(f, "q");
}

Test(capacity, a_full_listener_leaves_the_registry_and_comes_back)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, one_at_once);
    struct flow_handler full = {.way = FLOW_KEEP};
    struct flow_handler other = {.way = FLOW_DONE};

    cr_assert_eq(flow_schedule(f, "q", "first", 0, NULL), 0);
    flow_listen(f, "q", &full);
    flow_until(f, full.n_held == 1);

    /* it notices that it is full when it must leave something */
    cr_assert_eq(flow_schedule(f, "q", "second", 0, NULL), 0);
    flow_until_listeners(f, "q", 0);
    f->l = flow_open(f, NULL);
    flow_listen(f, "q", &other);
    flow_until(f, other.settled == 1);
    flow_until_listeners(f, "q", 1);
    for (unsigned i = 1; i <= 20; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 10, NULL), 0);
        flow_until(f, other.settled == 1 + i);
    }

    flow_settle(&full, FLOW_DONE);
    flow_until_listeners(f, "q", 2);
    cr_assert_eq(full.errors, 0);
    flow_each_once(&full, 1);
    flow_each_once(&other, 21);
    flow_end(f, "q");
}
