/* SPDX-License-Identifier: MIT */
/* Scenes: a listener and its jobs. */
#include "scenario.h"
#include "ask.h"
#include "test.h"
#include <stdio.h>

static void jobs(struct play *p, const char *queue, int n, int64_t delay_ms)
{
    for (int i = 0; i < n; i++) {
        char id[16];
        snprintf(id, sizeof id, "%s%d", queue, i);
        play_schedule(p, queue, id, delay_ms);
    }
}

static void ran(struct play *p)
{
    play_until(p, play_ran(p));
    play_wait(p);
}

static void listen_to(struct play *p, job_fn *fn, int n, int64_t delay_ms)
{
    play_open(p);
    play_handle(p, "q", 0, fn);
    jobs(p, "q", n, delay_ms);
    ran(p);
}

/* ---- what rings ---- */
static void run_at_once(struct play *p)
{
    listen_to(p, play_done, 1, 0);
}

static void run_soon(struct play *p)
{
    listen_to(p, play_done, 2, 30);
}

static void run_what_waited(struct play *p)
{
    play_open(p);
    jobs(p, "q", 3, 0);
    play_wait(p);
    play_handle(p, "q", 0, play_done);
    ran(p);
}

static void claim_to(struct play *p, job_fn *fn)
{
    play_open(p);
    jobs(p, "q", 3, 0);
    play_wait(p);
    play_claims(p, "q", fn);
    ran(p);
    play_schedule(p, "q", "soon", 30);
    ran(p);
}

static void claim_in_a_loop(struct play *p)
{
    claim_to(p, play_done);
}

static void claim_and_settle_by_token(struct play *p)
{
    claim_to(p, play_done_by_token);
}

static void run_without_events(struct play *p)
{
    p->opts.flags = LAPSE_NO_EVENTS;
    listen_to(p, play_done, 2, 20);
}

static void run_by_the_alarm_alone(struct play *p)
{
    p->opts.flags = LAPSE_NO_EVENTS;
    p->opts.sweep_ms = HOUR;
    play_open(p);
    play_handle(p, "q", 0, play_done);
    play_depth(p, "q"); /* the claim at connect has been by */
    play_wait(p);
    jobs(p, "q", 2, 30);
    ran(p);
}

static void run_without_alarm(struct play *p)
{
    p->opts.flags = LAPSE_NO_ALARM;
    p->opts.sweep_ms = 50;
    listen_to(p, play_done, 2, 20);
}

static void run_by_keyspace(struct play *p)
{
    PLAY_REDIS(p, "CONFIG SET notify-keyspace-events Kx");
    p->opts.notify = LAPSE_KEYSPACE;
    listen_to(p, play_done, 2, 20);
}

static void run_muted(struct play *p)
{
    PLAY_REDIS(p, "CONFIG SET notify-keyspace-events %s", "");
    listen_to(p, play_done, 2, 20);
}

static void run_with_triggers_armed_late(struct play *p)
{
    p->opts.arm_ahead_ms = 10;
    p->opts.sweep_ms = 50;
    listen_to(p, play_done, 2, 60);
}

static void run_over_tcp(struct play *p)
{
    snprintf(p->url, sizeof p->url, "%s", p->server->tcp_url);
    listen_to(p, play_done, 2, 10);
}

/* ---- how many ---- */
static void run_a_hundred(struct play *p)
{
    listen_to(p, play_done, 100, 5);
}

static void run_one_by_one(struct play *p)
{
    p->opts.max_running = 1;
    listen_to(p, play_done, 5, 0);
}

static void run_within_the_queues_own_limit(struct play *p)
{
    play_open(p);
    play_handle(p, "q", 2, play_done);
    jobs(p, "q", 7, 0);
    ran(p);
}

static void run_three_queues(struct play *p)
{
    static const char *const queues[] = {"q", "r", "s"};

    p->opts.max_running = 2;
    play_open(p);
    for (int i = 0; i < 3; i++) {
        play_handle(p, queues[i], 0, play_done);
    }

    for (int i = 0; i < 3; i++) {
        jobs(p, queues[i], 4, 5);
    }

    ran(p);
}

static void run_big_bodies(struct play *p)
{
    static char body[MIB];
    struct lapse_spec s = flow_job_spec("q", NULL, 0);

    play_open(p);
    play_handle(p, "q", 0, play_done);
    s.body = body;
    s.body_len = sizeof body;
    for (int i = 0; i < 3; i++) {
        s.id = (char[]){(char)('a' + i), 0};
        play_spec(p, &s);
    }

    ran(p);
}

/* ---- how they end ---- */
static void settle_untold(struct play *p)
{
    listen_to(p, play_done_untold, 3, 0);
}

static void retry_once(struct play *p)
{
    play_open(p);
    play_handle(p, "q", 0, play_retry);
    play_schedule(p, "q", "a", 0);
    play_until(p, play_ran(p) && (p->runs != 1 || p->ledger->exists == MAYBE));
    play_wait(p);
}

static void retry_until_dead(struct play *p)
{
    struct lapse_spec s = flow_job_spec("q", "a", 0);

    play_open(p);
    play_handle(p, "q", 0, play_backoff);
    s.tries = 3;
    s.backoff_ms = 1;
    s.backoff_max_ms = 4;
    play_spec(p, &s);
    play_until(p, play_ran(p) && (p->runs >= 3 || p->ledger->exists != YES));
    play_wait(p);
}

static void fail_at_once(struct play *p)
{
    listen_to(p, play_failed, 2, 0);
    play_list(p, "q", LAPSE_DEAD, NULL, 10);
    play_wait(p);
}

static void settle_later(struct play *p)
{
    listen_to(p, play_keep, 4, 0);
    play_settle_held(p);
    play_wait(p);
}

static void mixed(struct play *p, struct lapse_job *job)
{
    job_fn *const how[] = {play_done, play_retry, play_failed, play_done_untold};
    how[p->n++ % 4](p, job);
}

static void settle_in_all_ways(struct play *p)
{
    listen_to(p, mixed, 12, 0);
}

static void hold_for_some_leases(struct play *p)
{
    p->opts.lease_ms = 600; /* a machine that stands still for a moment does not end it */
    listen_to(p, play_keep, 2, 0);
    for (int64_t end_ms = test_now_ms() + 1300; play_turn(p, end_ms);) {}
    play_settle_held(p);
    play_wait(p);
}

static void hold_beyond_run_ms(struct play *p)
{
    p->opts.lease_ms = p->opts.run_ms = 100;
    p->opts.max_running = 1;
    listen_to(p, play_keep, 1, 0);
    for (int64_t end_ms = test_now_ms() + 150; play_turn(p, end_ms);) {}
    p->want = ANY; /* ours still, where no sweep has been by */
    play_settle_held(p);
    play_wait(p);
}

/* ---- the listener's own life ---- */
static void stop_and_listen_again(struct play *p)
{
    listen_to(p, play_done, 1, 0);
    play_stop(p, "q");
    p->want = LAPSE_ENOENT;
    play_stop(p, "q");
    play_handle(p, "q", 0, play_done);
    p->want = LAPSE_EEXIST;
    play_handle(p, "q", 0, play_done);
    play_schedule(p, "q", "again", 0);
    ran(p);
}

static void stop_after_first(struct play *p, struct lapse_job *job)
{
    if (p->n++ == 0) {
        play_stop(p, "q");
    }
    play_done(p, job);
}

static void stop_with_jobs_unbegun(struct play *p)
{
    play_open(p);
    jobs(p, "q", 8, 0);
    play_wait(p);
    play_handle(p, "q", 0, stop_after_first);
    play_until(p, p->n || play_ran(p));
    play_wait(p);
    if (p->n) {
        play_handle(p, "q", 0, play_done);
    }

    ran(p);
}

static void stop_and_start_in_one_turn(struct play *p)
{
    play_open(p);
    for (int i = 0; i < 4; i++) {
        play_handle(p, "q", 0, play_done);
        play_stop(p, "q");
    }
    play_handle(p, "q", 0, play_done);
    jobs(p, "q", 2, 0);
    ran(p);
}

static void listen_with_nothing_to_do(struct play *p)
{
    play_open(p);
    play_handle(p, "q", 0, play_done);
    play_handle(p, "r", 0, play_done);
    play_depth(p, "q");
    play_wait(p);
    for (int64_t end_ms = test_now_ms() + 60; play_turn(p, end_ms);) {}
}

/* ---- jobs that were there before ---- */
static void take_back_ended_leases(struct play *p)
{
    p->opts.lease_ms = 100;
    play_open(p);
    play_handle(p, "q", 0, play_keep);
    jobs(p, "q", 3, 0);
    ran(p);
    play_abandon(p, p->l);
    play_drop_held(p);
    for (struct entry *e = p->ledger; e; e = e->next) {
        e->runs = 0;
    }

    p->opts.sweep_ms = 20;
    play_open(p);
    play_handle(p, "q", 0, play_done);
    ran(p);
}

static void bury_unreadable_records(struct play *p)
{
    PLAY_REDIS(p, "HSET lapse:{q}:jobs alien %s", "\x7fwhat");
    PLAY_REDIS(p, "ZADD lapse:{q}:due 1 alien 2 ghost");
    listen_to(p, play_done, 1, 0);
}

static void hear_nonsense(struct play *p)
{
    play_open(p);
    play_handle(p, "q", 0, play_done);
    play_depth(p, "q");
    play_wait(p);
    PLAY_REDIS(p, "PUBLISH __keyevent@0__:expired lapse:{q}:t:nobody");
    PLAY_REDIS(p, "PUBLISH __keyevent@0__:expired %s", "another's key");
    jobs(p, "q", 1, 10);
    ran(p);
}

const struct scenario scenarios_listening[] = {
    SCENARIO(run_at_once),
    SCENARIO(run_soon),
    SCENARIO(run_what_waited),
    SCENARIO(claim_in_a_loop),
    SCENARIO(claim_and_settle_by_token),
    SCENARIO(run_without_events),
    SCENARIO(run_by_the_alarm_alone),
    SCENARIO(run_without_alarm),
    SCENARIO(run_by_keyspace),
    SCENARIO(run_muted),
    SCENARIO(run_with_triggers_armed_late),
    {"run_over_tcp", run_over_tcp, true},
    SCENARIO(run_a_hundred),
    SCENARIO(run_one_by_one),
    SCENARIO(run_within_the_queues_own_limit),
    SCENARIO(run_three_queues),
    SCENARIO(run_big_bodies),
    SCENARIO(settle_untold),
    SCENARIO(retry_once),
    SCENARIO(retry_until_dead),
    SCENARIO(fail_at_once),
    SCENARIO(settle_later),
    SCENARIO(settle_in_all_ways),
    SCENARIO(hold_for_some_leases),
    SCENARIO(hold_beyond_run_ms),
    SCENARIO(stop_and_listen_again),
    SCENARIO(stop_with_jobs_unbegun),
    SCENARIO(stop_and_start_in_one_turn),
    SCENARIO(listen_with_nothing_to_do),
    SCENARIO(take_back_ended_leases),
    SCENARIO(bury_unreadable_records),
    SCENARIO(hear_nonsense),
    {NULL, NULL, false},
};
