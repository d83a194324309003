/* SPDX-License-Identifier: MIT */
/* F65 to F70: a cluster of three masters and three replicas. The slot of a queue moves, or its
 * master hands over or is killed, also amid a move, or has another clock than the others. There are
 * seven more queues, on all masters; but for F69, and for the short forms of all but F65. */
#include "workload.h"
#include "audit.h"
#include "cluster.h"
#include "process.h"
#include "redis.h"
#include "set_clock.h"
#include "test.h"
#include <criterion/criterion.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DUE "lapse:{" WORK_QUEUE "}:due"
enum { MASTERS = 3, PATIENCE_MS = 60000, REPLY_MS = 20000 };

struct scene {
    struct cluster *c;
    char url[CLUSTER_URL];
    int slot;
    int owner; /* of WORK_QUEUE: its place in c->nodes */
    struct server *homes[WORK_QUEUES_MOST];
    struct work *w;
};

static void begin(struct scene *x)
{
    x->c = cluster_start(MASTERS, 1);
    cluster_url(x->c, server_login(), x->url);
    x->slot = cluster_slot(x->c, DUE);
    x->owner = cluster_owner(x->c, x->c->nodes[0].server, x->slot);
}

/* The same. No replica takes the place of a master that had no time to answer for a while. */
static void begin_calm(struct scene *x)
{
    begin(x);
    for (int i = 0; i < x->c->n; i++) {
        redis_do(x->c->nodes[i].server, "CONFIG SET cluster-replica-no-failover yes");
    }
}

static struct server *owner_of(const struct scene *x)
{
    return x->c->nodes[x->owner].server;
}

static void find_homes(struct scene *x)
{
    char name[WORK_QUEUE_NAME];
    char key[40];

    for (int i = 0; i < WORK_QUEUES_MOST; i++) {
        snprintf(key, sizeof key, "lapse:{%s}:due", work_queue(i, name));
        x->homes[i] = cluster_of(x->c, key);
    }
}

static struct server *home_of(void *arg, int queue)
{
    const struct scene *x = arg;

    return x->homes[queue];
}

static struct work_opts opts_of(struct scene *x)
{
    struct work_opts o = work_opts();

    find_homes(x);
    o.queues = (int)fault_n(1, WORK_QUEUES_MOST);
    o.server_of = home_of;
    o.arg = x;
    o.lapse.url = x->url;
    o.lapse.reply_ms = REPLY_MS; /* more than a failover takes */
    o.listeners = 4;
    o.jobs = fault_n(1500, 10000);
    o.per_s = 500;
    o.delay_ms = 1000;
    return o;
}

static void work(struct scene *x, const struct work_opts *o)
{
    x->w = work_start(owner_of(x), o);
}

static void goes_to(struct scene *x, int node)
{
    x->owner = node;
    work_server(x->w, owner_of(x));
}

/* All queues are where they stay. */
static struct verdict work_done(struct scene *x)
{
    cluster_agrees(x->c, x->slot, x->owner);
    find_homes(x);
    return work_end(x->w, PATIENCE_MS);
}

static int next_master(const struct scene *x)
{
    return (x->owner + 1) % MASTERS;
}

/* The slot has an owner that all agree on; which may be another one now. */
static void follow_slot(struct scene *x)
{
    int owner = cluster_owner(x->c, owner_of(x), x->slot);

    cr_assert_geq(owner, 0);
    cluster_agrees(x->c, x->slot, owner);
    goes_to(x, owner);
}

/* ---- the slot moves ---- */
static void reshard(struct scene *x, int from, int to)
{
    char line[400];

    snprintf(line, sizeof line,
             "redis-cli --cluster reshard 127.0.0.1:%d --cluster-from %s --cluster-to %s "
             "--cluster-slots 4000 --cluster-yes",
             x->c->nodes[from].server->port, x->c->nodes[from].id, x->c->nodes[to].id);
    struct proc *p = proc_start((const char *const[]){"/bin/sh", "-c", line, NULL});
    cr_assert_eq(proc_wait(p, PATIENCE_MS), 0, "%s%s", p->out, p->err);
    proc_free(p);
}

Test(f65, a_slot_that_moves_again_and_again_loses_nothing_and_repeats_nothing, .timeout = 600)
{
    struct scene x;
    long moves = fault_n(6, 20);

    begin_calm(&x);
    struct work_opts o = opts_of(&x);
    o.queues = WORK_QUEUES_MOST;
    work(&x, &o);
    for (long i = 0; i < moves; i++) {
        work_wait(x.w, (int)(o.jobs * 1000 / o.per_s / (moves + 1)));
        int to = next_master(&x);
        cluster_move(x.c, x.slot, to);
        goes_to(&x, to);
    }
    if (fault_full()) {
        cluster_agrees(x.c, x.slot, x.owner); /* or redis-cli refuses */
        reshard(&x, x.owner, next_master(&x));
        follow_slot(&x);
    }

    struct verdict v = work_done(&x);
    cr_assert_eq(v.twice, 0);
    fault_row("F65", "the slot of a queue moves again and again, and 4,000 slots are resharded",
              "none lost, early or twice; p99 ≤ 50 ms, max ≤ 500 ms",
              "%ld moves amid %ld jobs: none; late p99 %.0f ms, max %.0f ms", moves, v.jobs,
              v.late_p99_ms, v.late_max_ms);
    cluster_stop(x.c);
}

/* Jobs that wait for a long time, beside those of the work: as records, which is all that moves. */
static void fill(struct server *s, long n)
{
    for (long i = 0; i < n; i += 1000) {
        redis_do(s, "EVAL %s 1 " DUE " %ld",
                 "local base = string.sub(KEYS[1], 1, -4) for i = ARGV[1], ARGV[1] + 999 do "
                 "redis.call('ZADD', KEYS[1], 4e12, 'far' .. i) "
                 "redis.call('HSET', base .. 'jobs', 'far' .. i, '\\1\\0' .. string.rep('x', 100)) "
                 "end",
                 i);
    }
}

static void empty(struct scene *x, long n)
{
    while (!work_asked_all(x->w)) {
        work_wait(x->w, 10);
    }
    cr_assert_geq(redis_int(owner_of(x), "ZCARD " DUE), n);
    redis_do(owner_of(x), "EVAL %s 1 " DUE,
             "local base = string.sub(KEYS[1], 1, -4) "
             "for _, id in ipairs(redis.call('ZRANGE', KEYS[1], 3e12, '+inf', 'BYSCORE')) do "
             "redis.call('HDEL', base .. 'jobs', id) redis.call('ZREM', KEYS[1], id) end");
}

Test(f66, a_slot_with_many_jobs_moves_without_loss, .timeout = 600)
{
    struct scene x;
    long waiting = fault_n(20000, 100000);

    begin_calm(&x);
    struct work_opts o = opts_of(&x);
    fill(owner_of(&x), waiting);
    work(&x, &o);
    work_wait(x.w, (int)(o.jobs * 1000 / o.per_s / 2));
    int64_t since_ms = test_now_ms();
    int to = next_master(&x);
    cluster_move(x.c, x.slot, to);
    int64_t frozen_ms = test_now_ms() - since_ms;
    goes_to(&x, to);

    work_wait(x.w, (int)(o.jobs * 1000 / o.per_s / 2));
    empty(&x, waiting);
    struct verdict v = work_done(&x);
    cr_assert_eq(v.twice, 0);
    fault_row("F66", "the slot of a queue moves in which 100,000 jobs wait",
              "none lost, early or twice; max ≤ the time of the move + 500 ms",
              "%ld waiting, moved in %lld ms amid %ld jobs: none; late p99 %.0f ms, max %.0f ms",
              waiting, (long long)frozen_ms, v.jobs, v.late_p99_ms, v.late_max_ms);
    cluster_stop(x.c);
}

/* ---- a master hands over, or dies ---- */
static int replica_of(const struct scene *x)
{
    return x->owner < MASTERS ? x->owner + MASTERS : x->owner - MASTERS;
}

/* What the owner has, so has its replica. */
static void until_copied(const struct scene *x)
{
    struct server *s = owner_of(x);
    int64_t deadline = test_now_ms() + PATIENCE_MS;

    do {
        cr_assert_lt(test_now_ms(), deadline, "the replica does not follow");
        redis_do(s, "EVAL %s 1 {" WORK_QUEUE "}",
                 "redis.call('SET', KEYS[1], 1) redis.call('DEL', KEYS[1])");
    } while (redis_int(s, "WAIT 1 100") < 1);
}

Test(f67, a_master_that_hands_over_again_and_again_loses_nothing_and_repeats_nothing,
     .timeout = 600)
{
    struct scene x;
    long times = fault_n(1, 10);
    int apart_ms = 3 * CLUSTER_TIMEOUT_MS;

    begin_calm(&x);
    struct work_opts o = opts_of(&x);
    o.jobs = o.per_s * ((times - 1) * apart_ms + 3000) / 1000;
    work(&x, &o);
    for (long i = 0; i < times; i++) {
        work_wait(x.w, i ? apart_ms : 1000);
        until_copied(&x);
        int to = replica_of(&x);
        cluster_failover(x.c, to);
        goes_to(&x, to);
    }

    struct verdict v = work_done(&x);
    cr_assert_eq(v.twice, 0);
    fault_row("F67", "CLUSTER FAILOVER of the queue's master, again and again, 6 s apart",
              "none lost, early or twice; max ≤ 500 ms",
              "%ld times amid %ld jobs: none; late p99 %.0f ms, max %.0f ms", times, v.jobs,
              v.late_p99_ms, v.late_max_ms);
    cluster_stop(x.c);
}

/* Has it all that this master has written? Asked by a write of no key, as a slot moves. */
static void replica_follows(struct server *s)
{
    redis_do(s, "FUNCTION FLUSH");
    cr_assert_geq(redis_int(s, "WAIT 1 %d", PATIENCE_MS), 1, "its replica does not follow");
}

static bool owns(const struct scene *x, int node)
{
    return cluster_owner(x->c, x->c->nodes[node].server, x->slot) == node;
}

/* The owner was killed: waits until its replica has taken its place. */
static void until_promoted(struct scene *x)
{
    int to = replica_of(x);
    int64_t deadline = test_now_ms() + PATIENCE_MS;

    while (!owns(x, to)) {
        cr_assert_lt(test_now_ms(), deadline, "its replica is not promoted");
        poll(NULL, 0, 10);
    }
    goes_to(x, to);
}

static void kill_owner(struct scene *x)
{
    work_nemesis(x->w, "the master is killed");
    server_kill9(owner_of(x));
    until_promoted(x);
}

/* Redis answers, and tells its replicas afterwards: what it has answered last may be lost. That is
 * not older than the last time at which its replica is known to have had all. */
static void kill_owner_amid_answers(struct scene *x)
{
    int64_t since_ms = test_now_ms();

    replica_follows(owner_of(x));
    work_nemesis(x->w, "the master is killed");
    server_kill9(owner_of(x));
    work_rolled_back(x->w, since_ms);
    until_promoted(x);
}

/* The one that was killed comes back as the replica of the other. */
static void revive(struct scene *x)
{
    server_restart(x->c->nodes[replica_of(x)].server);
    until_copied(x);
}

/* How long the new master takes, from its promotion on, until nothing is overdue any more. */
static int64_t until_caught_up(const struct scene *x)
{
    int64_t since_ms = test_now_ms();

    while (redis_int(owner_of(x), "EVAL %s 1 " DUE,
                     "local t = redis.call('TIME') "
                     "return redis.call('ZCOUNT', KEYS[1], '-inf', t[1] * 1000 - 1000)") > 0) {
        cr_assert_lt(test_now_ms() - since_ms, PATIENCE_MS, "overdue jobs are not claimed");
        poll(NULL, 0, 1);
    }
    return test_now_ms() - since_ms;
}

Test(f68, a_master_that_is_killed_again_and_again_loses_nothing, .timeout = 1200)
{
    struct scene x;
    long kills = fault_n(1, 10);
    int64_t most_ms = 0;

    begin(&x);
    struct work_opts o = opts_of(&x);
    o.jobs = o.per_s * (kills * 7 + 1);
    work(&x, &o);
    for (long i = 0; i < kills; i++) {
        work_wait(x.w, 1000);
        kill_owner_amid_answers(&x);
        int64_t ms = until_caught_up(&x);
        most_ms = ms > most_ms ? ms : most_ms;
        revive(&x);
    }

    struct verdict v = work_done(&x);
    fault_row(
        "F68",
        "the queue's master is killed, and comes back as a replica (cluster-node-timeout 2000)",
        "none lost that its replica has, none early; what is overdue is claimed 500 ms after the "
        "new one answers",
        "%ld kills amid %ld jobs: %ld lost of the last %.1f ms; %ld ran twice; claimed after at "
        "most %lld ms",
        kills, v.jobs, v.lost_in_window, v.window_ms, v.twice, (long long)most_ms);
    cluster_stop(x.c);
}

/* ---- one of both dies amid a move ---- */
/* redis-cli makes one of both nodes the owner, and moves the keys of the other there afterwards.
 * Scripts run as soon as sets and records are there, and may write keys that are still to come. Of
 * these any version will do. */
static bool any_version_will_do(const char *conflicts)
{
    static const char *const names[] = {":seq", ":listeners", ":past"};
    int n_keys = 0;
    int n_named = 0;

    for (const char *at = conflicts; (at = strstr(at, "    - ")); at++) {
        n_keys++;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        n_named += strstr(conflicts, names[i]) != NULL;
    }
    return n_keys == n_named;
}

/* The command that doctor has for the slots; false: it finds nothing wrong with them. */
static bool ask_doctor(const struct scene *x, char command[400])
{
    struct proc *p = proc_run(NULL, "lapse", "-u", x->url, "doctor", WORK_QUEUE, "--json", NULL);
    const char *at = strstr(p->out, "{\"check\":\"slots\"");
    const char *fix = at ? strstr(at, "\"fix\":\"") : NULL;

    if (fix) {
        fix += strlen("\"fix\":\"");
        snprintf(command, 400, "%.*s", (int)strcspn(fix, "\""), fix);
    }
    proc_free(p);
    return fix != NULL;
}

static bool knows_all(struct server *s)
{
    char *nodes = redis_str(s, "CLUSTER NODES");
    int n_replicas = 0;

    for (const char *at = nodes; (at = strstr(at, "slave ")); at++) {
        n_replicas++;
    }
    bool yes = n_replicas == MASTERS && !strstr(nodes, "fail");
    free(nodes);
    return yes;
}

/* While not all nodes know who is a replica, redis-cli may close the slot and leave keys behind. */
static void mend(struct scene *x)
{
    const char *replace = "";
    int64_t deadline = test_now_ms() + PATIENCE_MS;
    char command[400];

    for (int i = 0; i < x->c->n; i++) {
        while (!knows_all(x->c->nodes[i].server)) {
            cr_assert_lt(test_now_ms(), deadline, "node %d does not know all others", i);
            poll(NULL, 0, 10);
        }
    }

    while (ask_doctor(x, command)) {
        char line[440];
        snprintf(line, sizeof line, "%s%s", command, replace);
        struct proc *p = proc_start((const char *const[]){"/bin/sh", "-c", line, NULL});
        proc_wait(p, PATIENCE_MS);
        const char *conflicts = strstr(p->out, "Keys(s):");
        cr_assert(!conflicts || any_version_will_do(conflicts), "%s: %s%s", line, p->out, p->err);
        cr_assert(test_now_ms() < deadline, "%s: %s%s", line, p->out, p->err);
        replace = conflicts ? " --cluster-replace" : "";
        proc_free(p);
    }
}

/* Neither node has a whole queue then, nor have their replicas. The scripts can tell by each of
 * these, for jobs wait all the time. A key that is not there at the moment stays away. */
static void move_half(struct scene *x, int to, long round)
{
    static const char *const halves[][2] = {{"jobs", "attempts"}, {"due", "run"}, {"jobs", "run"}};

    cluster_move_begin(x->c, x->slot, to);
    work_nemesis(x->w, "keys of the queue are on two nodes");
    for (int i = 0; i < 2; i++) {
        redis_do(owner_of(x), "MIGRATE 127.0.0.1 %d lapse:{" WORK_QUEUE "}:%s 0 60000",
                 x->c->nodes[to].server->port, halves[round % 3][i]);
    }

    replica_follows(owner_of(x));
    replica_follows(x->c->nodes[to].server);
}

/* The new owner has half a queue, and says so; where it knows of the move (Valkey) it waits. */
static void until_refused(const struct scene *x)
{
    struct server *s = owner_of(x);
    int64_t deadline = test_now_ms() + PATIENCE_MS;

    while (!redis_errors(s, "LAPSE") && !redis_errors(s, "TRYAGAIN")) {
        cr_assert_lt(test_now_ms(), deadline, "nothing was refused: is it half a queue?");
        poll(NULL, 0, 10);
    }
}

/* One of another shard: after a failover its replica may be the master. */
static int other_master(const struct scene *x)
{
    int node = (x->owner % MASTERS + 1) % MASTERS;

    return cluster_is_master(x->c->nodes[node].server) ? node : node + MASTERS;
}

static void kill_source(struct scene *x, int to, long round)
{
    move_half(x, to, round);
    redis_do(x->c->nodes[replica_of(x)].server, "CONFIG RESETSTAT");
    kill_owner(x);
    until_refused(x);
    revive(x);
}

/* The replica of the target has what was moved, and nobody has told it that the slot is coming. */
static void kill_target(struct scene *x, int to, long round)
{
    int heir = to < MASTERS ? to + MASTERS : to - MASTERS;
    int64_t deadline = test_now_ms() + PATIENCE_MS;

    move_half(x, to, round);
    server_kill9(x->c->nodes[to].server);
    while (!cluster_is_master(x->c->nodes[heir].server)) {
        cr_assert_lt(test_now_ms(), deadline, "its replica is not promoted");
        poll(NULL, 0, 10);
    }
    server_restart(x->c->nodes[to].server);
}

Test(f69, a_source_or_a_target_that_dies_amid_a_move_loses_nothing, .timeout = 1200)
{
    struct scene x;
    long times = fault_n(1, 5);

    begin(&x);
    struct work_opts o = opts_of(&x);
    o.jobs = o.per_s * (times * 2 * 7 + 1);
    o.lapse.lease_ms = 60000; /* longer than a fix takes */
    o.queues = 1;             /* others are not halved: their masters die amid answers */
    fill(owner_of(&x), 1000);
    work(&x, &o);
    for (long i = 0; i < times; i++) {
        work_wait(x.w, 1000);
        kill_source(&x, other_master(&x), i);
        mend(&x);
        follow_slot(&x);
        work_wait(x.w, 1000);
        kill_target(&x, other_master(&x), i);
        mend(&x);
        follow_slot(&x);
    }

    empty(&x, 1000);
    struct verdict v = work_done(&x);
    fault_row("F69",
              "the source, then the target of a move is killed, comes back, and the commands of "
              "lapse doctor finish the move",
              "nothing is thrown away, none lost or early",
              "%ld of each amid %ld jobs: none; %ld ran twice", times, v.jobs, v.twice);
    cluster_stop(x.c);
}

/* ---- a clock that is off ---- */
Test(f70, a_master_whose_clock_is_off_gives_none_before_it_is_due_by_that_clock, .timeout = 600)
{
    char path[CLOCK_PATH];
    struct scene x;

    begin(&x);
    struct work_opts o = opts_of(&x);
    int to = replica_of(&x);
    struct wall_clock *clock = clock_begin(path);
    clock->step_us = 3000000;
    server_restart(x.c->nodes[to].server);
    clock_not_for_others();
    until_copied(&x);

    o.jobs = o.per_s * 6;
    o.delay_ms = 5000;
    work(&x, &o);
    work_wait(x.w, 3000);
    work_clock_fault(x.w);
    cluster_failover(x.c, to);
    goes_to(&x, to);

    struct verdict v = work_done(&x);
    fault_row("F70", "the clock of a replica is 3 s ahead, and it becomes the queue's master",
              "none lost, and none before it is due by the clock of its master",
              "amid %ld jobs: none; %ld ran twice; late by its clock by up to %.0f ms", v.jobs,
              v.twice, v.late_max_ms);
    clock_end(clock, path);
    cluster_stop(x.c);
}
