/* SPDX-License-Identifier: MIT */
/* Scenes: a listener and its jobs. */
#include "torture.h"
#include "test.h"
#include <stdio.h>

static void jobs(struct torture *t, const char *queue, int n, int64_t delay_ms)
{
    for (int i = 0; i < n; i++) {
        char id[16];
        snprintf(id, sizeof id, "%s%d", queue, i);
        t_schedule(t, queue, id, delay_ms);
    }
}

static void ran(struct torture *t)
{
    t_until(t, t_ran(t));
    t_wait(t);
}

static void listen_to(struct torture *t, job_fn *fn, int n, int64_t delay_ms)
{
    t_open(t);
    t_handle(t, "q", 0, fn);
    jobs(t, "q", n, delay_ms);
    ran(t);
}

/* ---- what rings ---- */
static void run_at_once(struct torture *t)
{
    listen_to(t, t_done, 1, 0);
}
static void run_soon(struct torture *t)
{
    listen_to(t, t_done, 2, 30);
}
static void run_what_waited(struct torture *t)
{
    t_open(t);
    jobs(t, "q", 3, 0);
    t_wait(t);
    t_handle(t, "q", 0, t_done);
    ran(t);
}
static void run_without_events(struct torture *t)
{
    t->opts.flags = LAPSE_NO_EVENTS;
    listen_to(t, t_done, 2, 20);
}
static void run_by_the_alarm_alone(struct torture *t)
{
    t->opts.flags = LAPSE_NO_EVENTS;
    t->opts.sweep_ms = HOUR;
    t_open(t);
    t_handle(t, "q", 0, t_done);
    t_depth(t, "q"); /* the claim at connect has been by */
    t_wait(t);
    jobs(t, "q", 2, 30);
    ran(t);
}
static void run_without_alarm(struct torture *t)
{
    t->opts.flags = LAPSE_NO_ALARM;
    t->opts.sweep_ms = 50;
    listen_to(t, t_done, 2, 20);
}
static void run_by_keyspace(struct torture *t)
{
    T_REDIS(t, "CONFIG SET notify-keyspace-events Kx");
    t->opts.notify = LAPSE_KEYSPACE;
    listen_to(t, t_done, 2, 20);
}
static void run_muted(struct torture *t)
{
    T_REDIS(t, "CONFIG SET notify-keyspace-events %s", "");
    listen_to(t, t_done, 2, 20);
}
static void run_with_triggers_armed_late(struct torture *t)
{
    t->opts.arm_ahead_ms = 10;
    t->opts.sweep_ms = 50;
    listen_to(t, t_done, 2, 60);
}
static void run_over_tcp(struct torture *t)
{
    snprintf(t->url, sizeof t->url, "%s", t->server->tcp_url);
    listen_to(t, t_done, 2, 10);
}

/* ---- how many ---- */
static void run_a_hundred(struct torture *t)
{
    listen_to(t, t_done, 100, 5);
}
static void run_one_by_one(struct torture *t)
{
    t->opts.max_running = 1;
    listen_to(t, t_done, 5, 0);
}
static void run_within_the_queues_own_limit(struct torture *t)
{
    t_open(t);
    t_handle(t, "q", 2, t_done);
    jobs(t, "q", 7, 0);
    ran(t);
}
static void run_three_queues(struct torture *t)
{
    static const char *const queues[] = {"q", "r", "s"};

    t->opts.max_running = 2;
    t_open(t);
    for (int i = 0; i < 3; i++) {
        t_handle(t, queues[i], 0, t_done);
    }

    for (int i = 0; i < 3; i++) {
        jobs(t, queues[i], 4, 5);
    }

    ran(t);
}
static void run_big_bodies(struct torture *t)
{
    static char body[MIB];
    struct lapse_spec s = t_job("q", NULL, 0);

    t_open(t);
    t_handle(t, "q", 0, t_done);
    s.body = body;
    s.body_len = sizeof body;
    for (int i = 0; i < 3; i++) {
        s.id = (char[]){(char)('a' + i), 0};
        t_spec(t, &s);
    }

    ran(t);
}

/* ---- how they end ---- */
static void settle_untold(struct torture *t)
{
    listen_to(t, t_done_untold, 3, 0);
}
static void retry_once(struct torture *t)
{
    t_open(t);
    t_handle(t, "q", 0, t_retry);
    t_schedule(t, "q", "a", 0);
    t_until(t, t_ran(t) && (t->runs != 1 || t->ledger->exists == MAYBE));
    t_wait(t);
}
static void retry_until_dead(struct torture *t)
{
    struct lapse_spec s = t_job("q", "a", 0);

    t_open(t);
    t_handle(t, "q", 0, t_backoff);
    s.tries = 3;
    s.backoff_ms = 1;
    s.backoff_max_ms = 4;
    t_spec(t, &s);
    t_until(t, t_ran(t) && (t->runs >= 3 || t->ledger->exists != YES));
    t_wait(t);
}
static void fail_at_once(struct torture *t)
{
    listen_to(t, t_failed, 2, 0);
    t_list(t, "q", LAPSE_DEAD, NULL, 10);
    t_wait(t);
}
static void settle_later(struct torture *t)
{
    listen_to(t, t_keep, 4, 0);
    t_settle_held(t);
    t_wait(t);
}
static void mixed(struct torture *t, struct lapse_job *job)
{
    job_fn *const how[] = {t_done, t_retry, t_failed, t_done_untold};
    how[t->n++ % 4](t, job);
}
static void settle_in_all_ways(struct torture *t)
{
    listen_to(t, mixed, 12, 0);
}
static void hold_for_some_leases(struct torture *t)
{
    t->opts.lease_ms = 150;
    listen_to(t, t_keep, 2, 0);
    for (int64_t end_ms = test_now_ms() + 400; t_turn(t, end_ms);) {}
    t_settle_held(t);
    t_wait(t);
}
static void hold_beyond_run_ms(struct torture *t)
{
    t->opts.lease_ms = t->opts.run_ms = 100;
    t->opts.max_running = 1;
    listen_to(t, t_keep, 1, 0);
    for (int64_t end_ms = test_now_ms() + 150; t_turn(t, end_ms);) {}
    t->want = ANY; /* ours still, where no sweep has been by */
    t_settle_held(t);
    t_wait(t);
}

/* ---- the listener's own life ---- */
static void stop_and_listen_again(struct torture *t)
{
    listen_to(t, t_done, 1, 0);
    t_stop(t, "q");
    t->want = LAPSE_ENOENT;
    t_stop(t, "q");
    t_handle(t, "q", 0, t_done);
    t->want = LAPSE_EEXIST;
    t_handle(t, "q", 0, t_done);
    t_schedule(t, "q", "again", 0);
    ran(t);
}
static void stop_after_first(struct torture *t, struct lapse_job *job)
{
    if (t->n++ == 0) {
        t_stop(t, "q");
    }
    t_done(t, job);
}
static void stop_with_jobs_unbegun(struct torture *t)
{
    t_open(t);
    jobs(t, "q", 8, 0);
    t_wait(t);
    t_handle(t, "q", 0, stop_after_first);
    t_until(t, t->n || t_ran(t));
    t_wait(t);
    if (t->n) {
        t_handle(t, "q", 0, t_done);
    }

    ran(t);
}
static void stop_and_start_in_one_turn(struct torture *t)
{
    t_open(t);
    for (int i = 0; i < 4; i++) {
        t_handle(t, "q", 0, t_done);
        t_stop(t, "q");
    }
    t_handle(t, "q", 0, t_done);
    jobs(t, "q", 2, 0);
    ran(t);
}
static void listen_with_nothing_to_do(struct torture *t)
{
    t_open(t);
    t_handle(t, "q", 0, t_done);
    t_handle(t, "r", 0, t_done);
    t_depth(t, "q");
    t_wait(t);
    for (int64_t end_ms = test_now_ms() + 60; t_turn(t, end_ms);) {}
}

/* ---- who was there before ---- */
static void take_back_ended_leases(struct torture *t)
{
    t->opts.lease_ms = 100;
    t_open(t);
    t_handle(t, "q", 0, t_keep);
    jobs(t, "q", 3, 0);
    ran(t);
    t_abandon(t, t->l);
    t_drop_held(t);
    for (struct entry *e = t->ledger; e; e = e->next) {
        e->runs = 0;
    }

    t->opts.sweep_ms = 20;
    t_open(t);
    t_handle(t, "q", 0, t_done);
    ran(t);
}
static void bury_unreadable_records(struct torture *t)
{
    T_REDIS(t, "HSET lapse:{q}:jobs alien %s", "\x7fwhat");
    T_REDIS(t, "ZADD lapse:{q}:due 1 alien 2 ghost");
    listen_to(t, t_done, 1, 0);
}
static void hear_nonsense(struct torture *t)
{
    t_open(t);
    t_handle(t, "q", 0, t_done);
    t_depth(t, "q");
    t_wait(t);
    T_REDIS(t, "PUBLISH __keyevent@0__:expired lapse:{q}:t:nobody");
    T_REDIS(t, "PUBLISH __keyevent@0__:expired %s", "another's key");
    jobs(t, "q", 1, 10);
    ran(t);
}

const struct scene scenes_handle[] = {
    SCENE(run_at_once),
    SCENE(run_soon),
    SCENE(run_what_waited),
    SCENE(run_without_events),
    SCENE(run_by_the_alarm_alone),
    SCENE(run_without_alarm),
    SCENE(run_by_keyspace),
    SCENE(run_muted),
    SCENE(run_with_triggers_armed_late),
    {"run_over_tcp", run_over_tcp, true},
    SCENE(run_a_hundred),
    SCENE(run_one_by_one),
    SCENE(run_within_the_queues_own_limit),
    SCENE(run_three_queues),
    SCENE(run_big_bodies),
    SCENE(settle_untold),
    SCENE(retry_once),
    SCENE(retry_until_dead),
    SCENE(fail_at_once),
    SCENE(settle_later),
    SCENE(settle_in_all_ways),
    SCENE(hold_for_some_leases),
    SCENE(hold_beyond_run_ms),
    SCENE(stop_and_listen_again),
    SCENE(stop_with_jobs_unbegun),
    SCENE(stop_and_start_in_one_turn),
    SCENE(listen_with_nothing_to_do),
    SCENE(take_back_ended_leases),
    SCENE(bury_unreadable_records),
    SCENE(hear_nonsense),
    {NULL, NULL, false},
};
