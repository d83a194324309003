/* SPDX-License-Identifier: MIT */
/* A handle with the URL of a cluster: each queue is where its slot is. */
#include "ask.h"
#include "cluster.h"
#include "flow.h"
#include "handler.h"
#include "listening.h"
#include <signal.h>

enum { MASTERS = 3, QUEUES = 6, JOBS = 20, HOUR = 3600000 };

struct clustered {
    struct cluster *c;
    struct flow *f;
    char url[256];
    char queues[QUEUES][32]; /* of each master as many, in turn */
    struct flow_handler handlers[QUEUES];
};

static void name_queue(struct clustered *x, int at)
{
    static int n;

    for (;; n++) {
        char key[64];
        snprintf(x->queues[at], sizeof x->queues[at], "q%d", n);
        snprintf(key, sizeof key, "lapse:{%s}:due", x->queues[at]);
        if (cluster_of(x->c, key) == x->c->nodes[at % MASTERS].server) {
            n++;
            return;
        }
    }
}

static bool cluster_says(struct server *s, const char *what)
{
    char *info = redis_str(s, "CLUSTER INFO");
    bool yes = strstr(info, what) != NULL;

    free(info);
    return yes;
}

static struct lapse *open_handle(struct clustered *x, unsigned replicas)
{
    struct lapse_options opts = flow_options(x->f);

    opts.url = x->url;
    opts.replicas = replicas;
    return flow_open(x->f, &opts);
}

static struct clustered *clustered_start(int n_replicas)
{
    struct clustered *x = calloc(1, sizeof *x);

    x->c = cluster_start(MASTERS, n_replicas);
    for (int i = 0; i < QUEUES; i++) {
        name_queue(x, i);
    }
    snprintf(x->url, sizeof x->url, "redis+cluster://127.0.0.1:%d", x->c->nodes[0].server->port);
    x->f = flow_bare(FLOW_FULL, NULL);
    x->f->l = open_handle(x, 0);
    for (int i = 0; i < QUEUES; i++) {
        x->handlers[i].f = x->f;
    }
    return x;
}

static void clustered_end(struct clustered *x)
{
    flow_end(x->f);
    cluster_stop(x->c);
    free(x);
}

static void listen_to_all(struct clustered *x)
{
    for (int i = 0; i < QUEUES; i++) {
        flow_listen(x->f, x->queues[i], &x->handlers[i]);
    }
}

static unsigned n_settled(const struct clustered *x)
{
    unsigned n = 0;

    for (int i = 0; i < QUEUES; i++) {
        n += (unsigned)x->handlers[i].settled;
    }
    return n;
}

Test(clustered, jobs_run_in_queues_of_all_masters)
{
    struct clustered *x = clustered_start(0);

    listen_to_all(x);
    for (int k = 0; k < JOBS; k++) {
        for (int i = 0; i < QUEUES; i++) {
            char id[32];
            snprintf(id, sizeof id, "j%d", k);
            cr_assert_eq(flow_schedule(x->f, x->queues[i], id, 10 * k, NULL), 0);
        }
    }
    flow_until(x->f, n_settled(x) == JOBS * QUEUES);
    cr_assert_eq(flow_stats(x->f->l).moved, 0);
    clustered_end(x);
}

/* A question that is the first thing which a handle is asked. */
Test(clustered, a_question_finds_its_master)
{
    struct clustered *x = clustered_start(0);

    for (int i = 0; i < QUEUES; i++) {
        struct lapse *l = open_handle(x, 0);
        struct flow_answer a = {.f = x->f};
        cr_assert_eq(lapse_get(l, x->queues[i], "a", flow_answered, &a), 0);
        cr_assert_eq(flow_wait(x->f, &a), LAPSE_ENOENT, "%s", lapse_strerror(a.err));
    }
    clustered_end(x);
}

/* A slot is moved whole: who asks the old master hears where it is, and asks there. */
Test(clustered, a_queue_whose_slot_has_moved_works_on_at_its_new_master)
{
    struct clustered *x = clustered_start(0);
    int slot = cluster_slot_of_queue(x->c, x->queues[0]);

    listen_to_all(x);

    cr_assert_eq(flow_schedule(x->f, x->queues[0], "before", 60000, NULL), 0);
    for (int to = 1; to < MASTERS; to++) {
        char id[32];
        cluster_move(x->c, slot, to);
        cluster_agrees(x->c, slot, to);
        snprintf(id, sizeof id, "at%d", to);
        cr_assert_eq(flow_schedule(x->f, x->queues[0], id, 100, NULL), 0);
        flow_until(x->f, x->handlers[0].settled == (unsigned)to);
    }
    cr_assert_geq(flow_stats(x->f->l).moved, 1);
    cr_assert_eq(flow_reschedule(x->f, x->queues[0], "before", lapse_in(0), NULL), 0);
    flow_until(x->f, x->handlers[0].settled == MASTERS);
    clustered_end(x);
}

/* While a slot moves nothing of its queue starts, and what is asked for waits until it has. */
Test(clustered, a_queue_whose_slot_is_moving_waits_until_it_has_moved)
{
    struct clustered *x = clustered_start(0);
    int slot = cluster_slot_of_queue(x->c, x->queues[0]);
    struct flow_answer moving = {.f = x->f};
    struct lapse_spec spec = flow_job_spec(x->queues[0], "b", 0);
    struct server *from = x->c->nodes[0].server;

    listen_to_all(x);
    cr_assert_eq(flow_schedule(x->f, x->queues[0], "a", 60000, NULL), 0);

    cluster_move_begin(x->c, slot, 1);
    cluster_move_keys(x->c, slot, 1, 1);
    cr_assert_eq(lapse_schedule(x->f->l, &spec, flow_answered, &moving), 0);
    cr_assert_eq(flow_schedule(x->f, x->queues[3], "b", 0, NULL), 0, "of the same master");
    flow_until(x->f, x->handlers[3].settled == 1);
    cr_assert_not(moving.calls);

    while (cluster_move_keys(x->c, slot, 1, 10) > 0) {}
    long long n_asks = redis_errors(from, "ASK");
    flow_until(x->f, redis_errors(from, "ASK") > n_asks);
    cr_assert_not(moving.calls, "it is not asked for there");

    cluster_move_end(x->c, slot, 1);
    flow_wait(x->f, &moving);
    cr_assert_eq(moving.err, 0);
    flow_until(x->f, x->handlers[0].settled == 1);
    clustered_end(x);
}

struct answers {
    unsigned n, errors;
};

static void on_answer(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct answers *a = arg;

    (void)l;
    (void)job;
    a->n++;
    a->errors += err != 0;
}

/* Jobs are on their way, run and are settled all the while. */
Test(clustered, a_slot_that_moves_again_and_again_loses_no_job_and_runs_none_twice)
{
    enum { MOVES = 20, EACH = 25 };
    struct clustered *x = clustered_start(0);
    int slot = cluster_slot_of_queue(x->c, x->queues[0]);
    struct flow_handler *w = &x->handlers[0];
    struct answers a = {0};

    flow_listen(x->f, x->queues[0], w);

    for (int m = 0; m < MOVES; m++) {
        for (int i = 0; i < EACH; i++) {
            struct lapse_spec spec = flow_job_spec(x->queues[0], NULL, 4 * i);
            cr_assert_eq(lapse_schedule(x->f->l, &spec, on_answer, &a), 0);
        }
        flow_until(x->f, w->n_runs > (size_t)(m * EACH / 2));
        cluster_move(x->c, slot, (m + 1) % MASTERS);
        cluster_agrees(x->c, slot, (m + 1) % MASTERS);
    }
    flow_until(x->f, a.n == MOVES * EACH && w->settled == MOVES * EACH);
    cr_assert_eq(a.errors, 0);
    cr_assert_eq(w->errors, 0);
    flow_each_once(w, (size_t)MOVES * EACH);
    clustered_end(x);
}

/* The first replica of master 0. */
enum { REPLICA = MASTERS };

/* Nothing is lost on the way, and nobody is cut off: its jobs run on at the new master. */
Test(clustered, a_replica_that_takes_over_has_the_queues_of_its_master)
{
    struct clustered *x = clustered_start(1);

    listen_to_all(x);
    for (int i = 0; i < QUEUES; i++) {
        cr_assert_eq(flow_schedule(x->f, x->queues[i], "a", 0, NULL), 0);
    }
    flow_until(x->f, n_settled(x) == QUEUES);

    cluster_failover(x->c, REPLICA);
    for (int i = 0; i < QUEUES; i++) {
        cr_assert_eq(flow_schedule(x->f, x->queues[i], "b", 100, NULL), 0);
    }
    flow_until(x->f, n_settled(x) == 2 * QUEUES);
    clustered_end(x);
}

/* A repeat finds the job that the first request made, whether that has run by now or not. */
static int schedule_again(struct clustered *x, const char *queue, const char *id)
{
    struct lapse_spec spec = flow_job_spec(queue, id, 0);

    spec.on_conflict = LAPSE_KEEP;
    spec.keep_ms = 600000;
    return flow_spec(x->f, &spec, NULL);
}

/* What was on its way to it is lost or unsure; what was answered and had a copy is there, and
 * runs. */
Test(clustered, a_master_that_is_killed_leaves_its_queues_to_its_replica)
{
    struct clustered *x = clustered_start(1);
    int err = LAPSE_EDOWN;

    flow_allow_log(x->f, "127.0.0.1");
    listen_to_all(x);
    for (int i = 0; i < QUEUES; i++) {
        struct lapse_spec spec = flow_job_spec(x->queues[i], "a", 3600000);
        spec.replicas = 1;
        cr_assert_eq(flow_spec(x->f, &spec, NULL), 0);
    }

    server_kill9(x->c->nodes[0].server);
    for (int tries = 0; err; tries++) {
        cr_assert_lt(tries, 20);
        err = schedule_again(x, x->queues[0], "after");
        cr_assert(err == 0 || err == LAPSE_EDOWN || err == LAPSE_ELOST, "%d", err);
    }
    for (int i = 0; i < QUEUES; i++) {
        cr_assert_eq(flow_reschedule(x->f, x->queues[i], "a", lapse_in(0), NULL), 0);
    }
    flow_until(x->f, n_settled(x) == QUEUES + 1);
    server_restart(x->c->nodes[0].server);
    redis_do(x->c->nodes[0].server, "PING");
    clustered_end(x);
}

/* The URL names this node alone. */
static struct lapse *open_at(struct clustered *x, int node)
{
    struct lapse_options opts = flow_options(x->f);
    char url[CLUSTER_URL];

    snprintf(url, sizeof url, "redis+cluster://127.0.0.1:%d", x->c->nodes[node].server->port);
    opts.url = url;
    opts.reply_ms = 60000;
    return flow_open(x->f, &opts);
}

static void schedule_in_both(struct clustered *x, int from, int to)
{
    cr_assert_eq(flow_schedule(x->f, x->queues[from], NULL, HOUR, NULL), 0);
    cr_assert_eq(flow_schedule(x->f, x->queues[to], NULL, HOUR, NULL), 0);
}

static void count_refused_logins(struct lapse *l, const struct lapse_health *h, void *arg)
{
    unsigned *n = arg;

    (void)l;
    *n += h->kind == LAPSE_HEALTH_AUTH_FAILED;
}

/* Later ones learn who the owner is, sooner or later. */
static bool knows_no_heir(struct server *target)
{
    char *info = redis_str(target, "INFO server");
    bool is_7_0 = strstr(info, "redis_version:7.0.") != NULL;

    free(info);
    return is_7_0;
}

/* Where the source of a move has died, the target of Redis 7.0 goes on to name it as the owner of
 * the slot; when it has come back as a replica, none. The target has the names of all queues, so
 * the two nodes are all that a handle uses: that the third refuses its login is nothing to it. */
Test(clustered, a_queue_is_found_whose_master_one_of_the_nodes_does_not_know)
{
    struct clustered *x = clustered_start(1);
    int to = cluster_owner(x->c, x->c->nodes[0].server, cluster_slot(x->c, "lapse:{}:queues"));
    int from = (to + 1) % MASTERS;
    int heir = from + MASTERS;
    int slot = cluster_slot_of_queue(x->c, x->queues[from]);
    struct server *target = x->c->nodes[to].server;
    struct server *third = x->c->nodes[3 - from - to].server;
    bool stays = knows_no_heir(target);
    unsigned n_refused = 0;

    flow_allow_log(x->f, "127.0.0.1");
    flow_close(x->f, x->f->l, 0);
    x->f->l = open_at(x, to);
    lapse_on_health(x->f->l, count_refused_logins, &n_refused);
    schedule_in_both(x, from, to);
    redis_do(third, "CONFIG SET requirepass other");

    cluster_move_begin(x->c, slot, to);
    server_kill9(x->c->nodes[from].server);
    flow_poll(x->f, cluster_owner(x->c, x->c->nodes[heir].server, slot) == heir);
    redis_do(x->c->nodes[heir].server, "CLUSTER SETSLOT %d STABLE", slot); /* Valkey's knows */
    schedule_in_both(x, from, to);
    cr_assert(!stays || cluster_owner(x->c, target, slot) == from);
    cr_assert_eq(flow_logged(x->f, "cannot ask the node"), 0);
    cr_assert_eq(n_refused, 0);
    redis_do(third, "CONFIG SET requirepass %s", "");

    server_restart(x->c->nodes[from].server);
    flow_poll(x->f, !stays || cluster_owner(x->c, target, slot) == -1);
    schedule_in_both(x, from, to);
    flow_close(x->f, x->f->l, 0);
    x->f->l = open_at(x, to);
    schedule_in_both(x, from, to);
    cr_assert(!stays || cluster_owner(x->c, target, slot) == -1);
    redis_do(x->c->nodes[from].server, "PING"); /* connects again: as many descriptors as before */
    clustered_end(x);
}

Test(clustered, of_no_cluster_the_url_is_refused_with_the_one_to_give)
{
    struct flow *f = flow_start_tcp(FLOW_FULL, NULL, NULL);
    struct lapse_options opts = flow_options(f);
    char url[256];

    snprintf(url, sizeof url, "redis+cluster://127.0.0.1:%d", f->server->port);
    opts.url = url;
    opts.reply_ms = 3500; /* longer than a machine stands still */
    flow_allow_log(f, "no node of a cluster: give redis://");
    f->l = flow_open(f, &opts);
    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), LAPSE_EDOWN);
    cr_assert_eq(flow_logged(f, "no node of a cluster: give redis://"), 1);
    flow_end(f);
}

/* ---- what hears of a queue ---- */
/* Both listeners have entered, where the queue is now. */
static void until_members(struct clustered *x, const char *queue)
{
    char key[80];

    snprintf(key, sizeof key, "lapse:{%s}:listeners", queue);
    flow_poll(x->f, redis_int(cluster_of(x->c, key), "ZCARD %s", key) == 2);
}

Test(clustered, who_waits_for_the_end_of_a_job_hears_of_it_where_its_queue_has_moved)
{
    struct clustered *x = clustered_start(0);
    struct flow_answer end = {.f = x->f};
    struct lapse_spec spec = flow_job_spec(x->queues[0], "a", 60000);

    spec.keep_ms = 60000;
    cr_assert_eq(flow_spec(x->f, &spec, NULL), 0);
    cr_assert_eq(lapse_wait(x->f->l, x->queues[0], "a", 600000, flow_answered, &end), 0);
    cluster_move(x->c, cluster_slot_of_queue(x->c, x->queues[0]), 1);
    cr_assert_eq(flow_cancel(x->f, x->queues[0], "a", NULL), 0);
    cr_assert_eq(flow_wait(x->f, &end), 0);
    cr_assert_eq(end.job.state, LAPSE_KEPT);
    clustered_end(x);
}

/* One of them is on another master than the registry. */
Test(clustered, queues_of_a_pattern_are_found_on_all_masters)
{
    struct clustered *x = clustered_start(0);
    struct lapse *producer = open_handle(x, 0);

    flow_listen(x->f, "q*", &x->handlers[0]);
    x->f->l = producer;
    for (int i = 0; i < QUEUES; i++) {
        cr_assert_eq(flow_schedule(x->f, x->queues[i], "a", 0, NULL), 0);
    }
    flow_until(x->f, n_settled(x) == QUEUES);
    clustered_end(x);
}

/* Each job is for one of them, and the names of both are read at the new master. */
Test(clustered, listeners_share_the_jobs_of_a_queue_that_has_moved)
{
    struct clustered *x = clustered_start(0);
    struct lapse *second = open_handle(x, 0);

    flow_listen(x->f, x->queues[0], &x->handlers[0]);
    x->f->l = second;
    flow_listen(x->f, x->queues[0], &x->handlers[1]);
    until_members(x, x->queues[0]);
    cluster_move(x->c, cluster_slot_of_queue(x->c, x->queues[0]), 1);
    for (int i = 0; i < 2 * JOBS; i++) {
        cr_assert_eq(flow_schedule(x->f, x->queues[0], NULL, 50, NULL), 0);
    }
    flow_until(x->f, n_settled(x) == 2 * JOBS);
    until_members(x, x->queues[0]);
    clustered_end(x);
}

/* Beside the rights on one server it takes one more, on each node. */
Test(clustered, who_may_not_ask_for_the_map_is_denied_and_told_so)
{
    struct clustered *x = clustered_start(0);
    struct lapse_options opts = flow_options(x->f);
    struct flow_answer a = {.f = x->f};
    struct lapse_spec spec = flow_job_spec(x->queues[0], "a", 0);
    char url[256];

    snprintf(url, sizeof url, "redis+cluster://lapse_listener:secret@127.0.0.1:%d",
             x->c->nodes[0].server->port);
    opts.url = url;
    opts.reply_ms = 3000; /* so long it asks; and longer than a machine stands still */
    flow_allow_log(x->f, "NOPERM");
    for (int i = 0; i < x->c->n; i++) {
        redis_do(x->c->nodes[i].server, "ACL SETUSER lapse_listener -cluster|slots");
    }
    x->f->l = flow_open(x->f, &opts);
    cr_assert_eq(lapse_schedule(x->f->l, &spec, flow_answered, &a), 0);
    cr_assert_eq(flow_wait(x->f, &a), LAPSE_EDENIED, "%s", lapse_strerror(a.err));
    cr_assert(flow_logged(x->f, "NOPERM") > 0);

    for (int i = 0; i < x->c->n; i++) {
        redis_do(x->c->nodes[i].server, "ACL SETUSER lapse_listener +cluster|slots");
    }
    flow_poll(x->f, schedule_again(x, x->queues[0], "b") == 0);
    listen_to_all(x);
    flow_until(x->f, n_settled(x) == 1);
    clustered_end(x);
}

/* The first master sees no other, so it answers that the cluster is down, until put_up(). */
static void put_down(struct clustered *x)
{
    for (int i = 1; i < MASTERS; i++) {
        server_signal(x->c->nodes[i].server, SIGSTOP);
    }
    flow_allow_log(x->f, "CLUSTERDOWN");
    flow_allow_log(x->f, "127.0.0.1");
    flow_poll(x->f, cluster_says(x->c->nodes[0].server, "cluster_state:fail"));
}

static void put_up(struct clustered *x)
{
    for (int i = 1; i < MASTERS; i++) {
        server_signal(x->c->nodes[i].server, SIGCONT);
    }
    flow_poll(x->f, cluster_says(x->c->nodes[0].server, "cluster_state:ok"));
}

/* It answers so to the question too whether it may evict jobs. */
Test(clustered, one_that_is_down_when_a_listener_begins_has_its_jobs_run_when_it_is_up)
{
    struct clustered *x = clustered_start(0);
    struct lapse_options opts = flow_options(x->f);

    put_down(x);
    opts.url = x->url;
    opts.reply_ms = 1000;
    flow_close(x->f, x->f->l, 0);
    x->f->l = flow_open(x->f, &opts);
    cr_assert_eq(lapse_listen(x->f->l, x->queues[0], NULL, flow_on_job, &x->handlers[0]), 0);
    for (int i = 0; i < 3; i++) { /* as long as the listener asks, and more */
        cr_assert_eq(flow_schedule(x->f, x->queues[0], "a", 0, NULL), LAPSE_EDOWN);
    }

    put_up(x);
    flow_poll(x->f, schedule_again(x, x->queues[0], "a") == 0);
    flow_until(x->f, x->handlers[0].settled == 1);
    clustered_end(x);
}

/* Redis refused it before it could know it. By its hash it would be refused once more, and what is
 * sent behind it would pass: a sweep before the renewals. */
Test(clustered, a_script_that_was_refused_as_a_text_is_no_known_one)
{
    struct clustered *x = clustered_start(0);
    struct lapse_options opts = flow_options(x->f);
    struct flow_answer a = {.f = x->f};
    struct lapse_spec spec = flow_job_spec(x->queues[0], "a", 60000);
    struct server *s = x->c->nodes[0].server;

    put_down(x);
    opts.url = x->url;
    opts.reply_ms = 60000;
    flow_close(x->f, x->f->l, 0);
    x->f->l = flow_open(x->f, &opts);
    cr_assert_eq(lapse_schedule(x->f->l, &spec, flow_answered, &a), 0);
    flow_poll(x->f, redis_errors(s, "CLUSTERDOWN") >= 5);
    put_up(x);
    cr_assert_eq(flow_wait(x->f, &a), 0, "%s", lapse_strerror(a.err));
    cr_assert_eq(redis_errors(s, "NOSCRIPT"), 0);
    clustered_end(x);
}

/* Nobody could take them meanwhile; and what the listener sweeps itself waits behind its
 * renewals. */
Test(clustered, leases_that_end_while_it_is_down_are_renewed_when_it_is_up)
{
    struct clustered *x = clustered_start(0);
    struct flow_handler *w = &x->handlers[0];
    struct lapse_options opts = flow_options(x->f);

    flow_allow_log(x->f, "the lease of job");
    opts.url = x->url;
    opts.lease_ms = 4000;
    opts.reply_ms = 1000;
    opts.sweep_ms = 100;
    flow_close(x->f, x->f->l, 0);
    x->f->l = flow_open(x->f, &opts);
    w->way = FLOW_KEEP;
    flow_listen(x->f, x->queues[0], w);
    for (int i = 0; i < JOBS; i++) {
        cr_assert_eq(flow_schedule(x->f, x->queues[0], NULL, 0, NULL), 0);
    }
    flow_until(x->f, w->n_held == JOBS);

    put_down(x);
    flow_until(x->f, lapse_job_until_ms(w->held[0]) == 0);
    for (int i = 0; i < 3; i++) { /* for longer than a renewal waits */
        cr_assert_eq(flow_schedule(x->f, x->queues[0], NULL, 60000, NULL), LAPSE_EDOWN);
    }
    put_up(x);
    flow_until(x->f, lapse_job_until_ms(w->held[0]) > 0);
    cr_assert_eq(flow_stats(x->f->l).recovered, 0);
    flow_settle(w, FLOW_DONE);
    cr_assert_eq(w->errors, 0);
    flow_each_once(w, JOBS);
    clustered_end(x);
}

/* N jobs of the first queue run; returns how many calls its master had of them. */
static long long calls_of_jobs(struct clustered *x, unsigned n)
{
    struct server *master = x->c->nodes[0].server;
    struct flow_handler *w = &x->handlers[0];
    unsigned until = w->settled + n;

    for (unsigned i = 1; i < n; i++) {
        struct lapse_spec due = flow_job_spec(x->queues[0], NULL, 0);
        cr_assert_eq(lapse_schedule(x->f->l, &due, NULL, NULL), 0);
    }
    cr_assert_eq(flow_schedule(x->f, x->queues[0], NULL, 0, NULL), 0);

    long long before = redis_calls(master, "evalsha");
    flow_listen(x->f, x->queues[0], w);
    flow_until(x->f, w->settled == until);
    cr_assert_eq(lapse_unlisten(x->f->l, x->queues[0]), 0);
    return redis_calls(master, "evalsha") - before;
}

/* What waits for a dead master is not in the way of what another takes. */
Test(clustered, settles_travel_together_while_requests_wait_for_a_dead_master)
{
    enum { N = 500 };
    struct clustered *x = clustered_start(0);
    struct lapse_spec spec = flow_job_spec(x->queues[1], NULL, HOUR);

    cr_assert_eq(flow_schedule(x->f, x->queues[1], "a", HOUR, NULL), 0);
    long long usual = calls_of_jobs(x, N); /* on a slow machine few travel together */
    flow_allow_log(x->f, "127.0.0.1");
    server_kill9(x->c->nodes[1].server);
    flow_poll(x->f, flow_logged(x->f, "127.0.0.1") > 0);

    cr_assert_eq(lapse_schedule(x->f->l, &spec, NULL, NULL), 0);
    cr_assert_lt(calls_of_jobs(x, N), N / 2 + usual);
    server_restart(x->c->nodes[1].server);
    redis_do(x->c->nodes[1].server, "PING");
    clustered_end(x);
}

/* ---- copies ---- */
Test(clustered, a_schedule_waits_for_the_replicas_of_its_master)
{
    struct clustered *x = clustered_start(1);
    struct flow_job job;

    for (int i = 0; i < QUEUES; i++) {
        struct lapse_spec spec = flow_job_spec(x->queues[i], "a", 60000);
        spec.replicas = 1;
        cr_assert_eq(flow_spec(x->f, &spec, &job), 0);
        cr_assert_eq(job.replicas, 1);
    }
    cr_assert_eq(flow_stats(x->f->l).unsealed, 0);
    clustered_end(x);
}

/* How many masters have no connection but that of the test. */
static int n_unused(const struct clustered *x)
{
    int n = 0;

    for (int i = 0; i < MASTERS; i++) {
        n += redis_clients(x->c->nodes[i].server) == 1;
    }
    return n;
}

/* Commands, events, WAIT and ends of jobs: a connection of each kind to each master. */
static void use_all(struct clustered *x, const char *later)
{
    unsigned want = n_settled(x) + QUEUES;

    listen_to_all(x);
    for (int i = 0; i < QUEUES; i++) {
        struct lapse_spec spec = flow_job_spec(x->queues[i], NULL, 20);
        struct flow_answer a = {.f = x->f};

        spec.replicas = 1;
        cr_assert_eq(flow_spec(x->f, &spec, NULL), 0);
        cr_assert_eq(flow_schedule(x->f, x->queues[i], later, 3600000, NULL), 0);
        cr_assert_eq(lapse_wait(x->f->l, x->queues[i], later, 50, flow_answered, &a), 0);
        cr_assert_eq(flow_wait(x->f, &a), LAPSE_ETIMEOUT);
    }
    flow_until(x->f, n_settled(x) == want);
    for (int i = 0; i < QUEUES; i++) {
        cr_assert_eq(lapse_unlisten(x->f->l, x->queues[i]), 0);
    }
}

Test(clustered, masters_that_are_used_no_more_are_let_go_of_and_found_again)
{
    struct clustered *x = clustered_start(1);
    struct lapse_options opts = flow_options(x->f);

    flow_close(x->f, x->f->l, 0);
    opts.url = x->url;
    opts.sweep_ms = 20;
    x->f->l = flow_open(x->f, &opts);

    for (int round = 0; round < 2; round++) {
        use_all(x, round ? "b" : "a");
        flow_poll(x->f, n_unused(x) == MASTERS - 1); /* one is asked for the map */
    }
    clustered_end(x);
}

/* Before any master is known. */
Test(clustered, schedules_that_wait_for_replicas_go_when_their_master_is_known)
{
    struct clustered *x = clustered_start(1);
    struct flow_answer answers[QUEUES];
    struct lapse *l = open_handle(x, 0);

    for (int i = 0; i < QUEUES; i++) {
        struct lapse_spec spec = flow_job_spec(x->queues[i], "a", 60000);
        spec.replicas = 1;
        answers[i] = (struct flow_answer){.f = x->f};
        cr_assert_eq(lapse_schedule(l, &spec, flow_answered, &answers[i]), 0);
    }
    for (int i = 0; i < QUEUES; i++) {
        cr_assert_eq(flow_wait(x->f, &answers[i]), 0);
        cr_assert_eq(answers[i].job.replicas, 1);
    }
    clustered_end(x);
}

Test(clustered, with_the_option_replicas_all_that_is_answered_has_copies)
{
    struct clustered *x = clustered_start(1);

    flow_close(x->f, x->f->l, 0);
    x->f->l = open_handle(x, 1);
    listen_to_all(x);
    for (int i = 0; i < QUEUES; i++) {
        cr_assert_eq(flow_schedule(x->f, x->queues[i], "a", 50, NULL), 0);
    }
    flow_until(x->f, n_settled(x) == QUEUES);
    cr_assert_eq(flow_stats(x->f->l).unsealed, 0);
    clustered_end(x);
}

/* The new master has the only copy until the old one is its replica. */
Test(clustered, copies_are_waited_for_at_the_new_master_too)
{
    struct clustered *x = clustered_start(1);
    struct lapse_spec spec = flow_job_spec(x->queues[0], "a", 60000);
    struct flow_job job;
    int err = LAPSE_EALONE;

    spec.replicas = 1;
    cr_assert_eq(flow_spec(x->f, &spec, NULL), 0);
    flow_allow_log(x->f, "replicas");
    flow_allow_log(x->f, "no replica has confirmed it");
    cluster_failover(x->c, REPLICA);
    spec.on_conflict = LAPSE_KEEP;
    for (int tries = 0; err == LAPSE_EALONE; tries++) {
        cr_assert_lt(tries, 20);
        err = flow_spec(x->f, &spec, &job);
    }
    cr_assert_eq(err, 0, "%s", lapse_strerror(err));
    cr_assert_eq(job.replicas, 1);
    clustered_end(x);
}
