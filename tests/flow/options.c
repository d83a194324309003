/* SPDX-License-Identifier: MIT */
/* The settings that change what is kept in Redis or what it sends: arm_ahead_ms, notify. */
#include "wire.h"

static const char *const keyspace_flags[] = {"--notify-keyspace-events", "Kx", NULL};

static void by_keyspace(struct lapse_options *o)
{
    o->notify = LAPSE_KEYSPACE;
    o->sweep_ms = 60000;
}

static void quiet_sweep(struct lapse_options *o)
{
    o->sweep_ms = 60000;
}

static long long triggers(struct flow *f)
{
    return redis_int(f->server, "EVAL %s 0", "return #redis.call('KEYS', 'lapse:{q}:t:[^{]*')");
}

Test(options, keyspace_hears_our_triggers_and_of_no_other_key)
{
    enum { N = 20 };
    struct flow *f = flow_start_opts(FLOW_FULL, keyspace_flags, by_keyspace);
    struct flow_worker w = {.policy = FLOW_DONE};
    flow_handle(f, "q", &w);
    flow_spin(f, 1300); /* past its canaries: it is not deaf, or flow_end() finds the warning */
    for (int i = 0; i < 100; i++)
        redis_do(f->server, "SET other:%d x PX %d", i, 1 + i);
    for (int i = 0; i < N; i++)
        cr_assert_eq(flow_schedule(f, "q", NULL, 20 + 10 * i, NULL), 0);
    flow_until(f, w.settled == N);
    while (redis_int(f->server, "EVAL %s 0", "return #redis.call('KEYS', 'other:*')")) {} /* reading expires nothing */
    redis_do(f->server, "SCAN 0 MATCH other:* COUNT 1000");                               /* this does */
    flow_each_once(&w, N);
    struct lapse_stats s = flow_stats(f->l);
    cr_assert_eq(s.events, N);
    cr_assert_eq(s.via_event, N);
    cr_assert_eq(s.foreign, 0);
    flow_end(f, "q");
}

Test(options, keyspace_survives_the_loss_of_its_connections)
{
    struct flow *f = flow_start_opts(FLOW_FULL, keyspace_flags, by_keyspace);
    struct flow_worker w = {.policy = FLOW_DONE};
    flow_fine(f, "onnect");
    flow_handle(f, "q", &w);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 50, NULL), 0);
        flow_until(f, w.settled == 2u * (unsigned)i + 1);
        redis_do(f->server, "CLIENT KILL TYPE pubsub");
        redis_do(f->server, "CLIENT KILL TYPE normal SKIPME yes");
        flow_until(f, flow_stats(f->l).reconnects == 2u * (unsigned)i + 2);
        cr_assert_eq(flow_schedule(f, "q", NULL, 50, NULL), 0);
        flow_until(f, w.settled == 2u * (unsigned)i + 2);
    }
    flow_each_once(&w, 6);
    flow_end(f, "q");
}

static void arm_late(struct lapse_options *o)
{
    o->arm_ahead_ms = 400;
    o->sweep_ms = 50;
}

/* Whatever rings; in FULL the trigger is there in time, and it is its event that rings. */
FLOW_ALL_MODES(options, a_job_far_ahead_gets_its_trigger_as_it_comes_near)
{
    enum { N = 150 };
    struct flow *f = flow_start_opts(mode, NULL, arm_late);
    struct flow_worker w = {.policy = FLOW_DONE};
    for (int i = 0; i < N; i++)
        cr_assert_eq(flow_schedule(f, "q", NULL, 1500 + i, NULL), 0);
    cr_assert_eq(triggers(f), 0);
    flow_handle(f, "q", &w);
    if (mode == FLOW_FULL)
        flow_until(f, triggers(f) == N);
    cr_assert_eq(w.n_runs, 0);
    flow_until(f, w.settled == N);
    flow_each_once(&w, N);
    cr_assert_eq(triggers(f), 0);
    flow_end(f, "q");
}

Test(options, a_job_without_a_trigger_is_found_by_the_alarm_at_its_moment)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, quiet_sweep);
    struct flow_worker w = {.policy = FLOW_DONE};
    flow_handle(f, "q", &w);
    cr_assert_eq(flow_schedule(f, "q", "a", 300, NULL), 0);
    redis_do(f->server, "DEL lapse:{q}:t:a");
    flow_until(f, w.settled == 1);
    cr_assert_eq(w.runs[0].job.via, LAPSE_VIA_ALARM);
    flow_end(f, "q");
}
