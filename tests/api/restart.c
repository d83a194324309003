/* SPDX-License-Identifier: MIT */
/* Redis goes away and comes back, or loses what only helps. */
#include "handler.h"
#include "listening.h"

static void schedule_ahead(struct flow *f, int n, int64_t first_ms, int64_t spread_ms)
{
    unsigned before = f->n_answers;
    struct flow_answer *a = calloc((size_t)n, sizeof *a);

    cr_assert(a);
    for (int i = 0; i < n; i++) {
        struct lapse_spec s = flow_job_spec("q", NULL, first_ms + (spread_ms * i) / n);
        a[i].f = f;
        cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &a[i]), 0);
    }

    flow_until(f, f->n_answers == before + (unsigned)n);
    for (int i = 0; i < n; i++) {
        cr_assert_eq(a[i].err, 0, "%s", lapse_strerror(a[i].err));
    }

    free(a);
}

/* "everysec" writes later while an fsync is under way, and kill -9 then loses what was
 * acknowledged. */
static const char *const always[] = {"--appendfsync", "always", NULL};

static void expect_trouble(struct flow *f)
{
    flow_allow_log(f, "cannot connect");
    flow_allow_log(f, "lost the connection");
    flow_allow_log(f, "is loading its data");
}

FLOW_ALL_MODES(restart, jobs_that_fell_due_while_redis_was_down_run_once)
{
    enum { N = 1000 };
    struct flow *f = flow_start_opts(mode, always, NULL);
    struct flow_handler w = {.way = FLOW_DONE};

    expect_trouble(f);
    flow_listen(f, "q", &w);
    schedule_ahead(f, N, 700, 300);

    int64_t last_ms = redis_now_ms(f->server) + 1000;
    server_kill9(f->server);
    flow_spin(f, 1100);
    server_restart(f->server);
    if (mode == FLOW_MUTE) {
        redis_do(f->server, "CONFIG SET notify-keyspace-events %s", "");
    }

    if (mode == FLOW_STILL || mode == FLOW_SWEEP) {
        redis_do(f->server, "DEBUG SET-ACTIVE-EXPIRE 0");
    }

    cr_assert_geq(redis_now_ms(f->server), last_ms);
    flow_until(f, w.settled == N);
    cr_assert_eq(w.errors, 0);
    flow_each_once(&w, N);
    flow_end(f, "q");
}

FLOW_ALL_MODES(restart, triggers_that_are_gone_are_not_missed)
{
    enum { N = 200 };
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_listen(f, "q", &w);
    schedule_ahead(f, N, 5000, 200);
    cr_assert_eq(
        redis_int(
            f->server, "EVAL %s 0",
            "local n = 0 for _, k in ipairs(redis.call('KEYS', 'lapse:{q}:t:*')) do if not "
            "string.find(k, '}:t:{', 1, true) then n = n + redis.call('DEL', k) end end return n"),
        N);
    flow_until(f, w.settled == N);
    flow_each_once(&w, N);
    flow_end(f, "q");
}

/* Redis loads a snapshot without the keys that have expired by then, and sends no event for
 * them. */
Test(restart, from_a_snapshot_misses_no_trigger)
{
    enum { N = 300 };
    static const char *const args[] = {"--appendonly", "no", NULL};
    struct flow *f = flow_start_opts(FLOW_FULL, args, NULL);
    struct flow_handler w = {.way = FLOW_DONE};

    expect_trouble(f);
    flow_listen(f, "q", &w);
    schedule_ahead(f, N, 1500, 100);
    redis_do(f->server, "SAVE");
    server_kill9(f->server);
    flow_spin(f, 1700);
    server_restart(f->server);
    flow_until(f, w.settled == N);
    flow_each_once(&w, N);
    flow_end(f, "q");
}

/* What a nemesis does to Redis every few ms, while jobs run. */
static void run_under(void (*strike)(struct flow *f, int round), unsigned rounds, flow_tweak *tweak)
{
    enum { N = 1000 };
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, tweak);
    struct flow_handler w = {.way = FLOW_DONE};

    expect_trouble(f);
    flow_listen(f, "q", &w);
    schedule_ahead(f, N, 50, 600);

    unsigned struck = 0;
    unsigned next_settled = 0; /* however fast they run */
    for (int64_t next_ms = 0; w.settled < N;) {
        flow_turn(f, test_now_ms() + 20);
        if (struck < rounds && (test_now_ms() >= next_ms || w.settled >= next_settled)) {
            strike(f, (int)struck++);
            next_ms = test_now_ms() + 5 + random() % 40;
            next_settled = w.settled + 50;
        }
    }

    cr_assert_gt(struck, 5);
    cr_assert(w.err == 0 || w.err == LAPSE_ELOST, "%s", lapse_strerror(w.err));
    flow_each_once(&w, N);
    cr_assert_eq(flow_stats(f->l).recovered, 0);
    flow_end(f, "q");
}

static void flush_scripts(struct flow *f, int round)
{
    (void)round;
    redis_do(f->server, "SCRIPT FLUSH");
}

static void kill_subscriptions(struct flow *f, int round)
{
    (void)round;
    redis_do(f->server, "CLIENT KILL TYPE pubsub");
}

static void kill_all(struct flow *f, int round)
{
    (void)round;
    redis_do(f->server, "CLIENT KILL TYPE pubsub");
    redis_do(f->server, "CLIENT KILL TYPE normal SKIPME yes");
}

static void any_of_it(struct flow *f, int round)
{
    switch (round % 5) {
    case 0: flush_scripts(f, round); break;
    case 1: kill_all(f, round); break;
    case 2: redis_do(f->server, "DEBUG RELOAD"); break;
    case 3: redis_do(f->server, "CONFIG RESETSTAT"); break;
    case 4: kill_subscriptions(f, round); break;
    }
}

Test(restart, scripts_that_are_flushed_are_sent_again)
{
    run_under(flush_scripts, 1000, NULL);
}

Test(restart, subscriptions_that_are_cut_at_any_moment_lose_nothing)
{
    run_under(kill_subscriptions, 1000, NULL);
}

Test(restart, connections_that_are_cut_at_any_moment_lose_nothing_and_run_nothing_twice)
{
    run_under(kill_all, 40, NULL);
}

Test(restart, all_of_it_in_turn_loses_nothing_and_runs_nothing_twice)
{
    run_under(any_of_it, 60, NULL);
}

/* kill -9 in the midst of claims and settles: what was done stays done, the rest runs. */
Test(restart, redis_killed_while_jobs_run_loses_nothing_and_runs_nothing_twice)
{
    enum { N = 1500, ROUNDS = 4 };
    struct flow *f = flow_start_opts(FLOW_FULL, always, NULL);
    struct flow_handler w = {.way = FLOW_DONE};

    expect_trouble(f);
    flow_listen(f, "q", &w);
    schedule_ahead(f, N, 100, 2000);

    for (int i = 0; i < ROUNDS; i++) {
        size_t some = w.n_runs + 50 + (size_t)random() % 150;
        flow_until(f, w.n_runs >= some || w.settled == N);
        server_restart(f->server);
    }

    flow_until(f, w.settled == N);
    cr_assert(w.err == 0 || w.err == LAPSE_ELOST, "%s", lapse_strerror(w.err));
    flow_each_once(&w, N);
    flow_end(f, "q");
}
