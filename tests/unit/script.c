/* SPDX-License-Identifier: MIT */
/* Scripts on several servers: each goes where its key is. The servers are real, and so is all but
 * the rule which of them has a key. */
#include "script/queue_verbs.h"
#include "server.h"
#include "test.h"
#include "redis.h"
#include <criterion/criterion.h>
#include <ev.h>
#include <string.h>

enum { SERVERS = 2, REPLY_MS = 400 };

static struct server *servers[SERVERS];
static struct address addresses[SERVERS];
static struct node nodes[SERVERS];
static struct context context;
static struct topo topo;
static struct script script;
static unsigned n_up;

struct question {
    struct depth_request depth;
    int err;
    int64_t waiting;
    bool ended;
};

/* Queues whose names end with 1 are on the second one. */
static struct node *by_name(struct topo *t, struct span key)
{
    (void)t;
    return &nodes[memmem(key.at, key.len, "1}", 2) != NULL];
}

static void on_up(void *arg, struct node *n)
{
    (void)arg;
    (void)n;
    n_up++;
}

static void on_depth(struct depth_request *r, int err, const struct depth_reply *reply)
{
    struct question *q = CONTAINER(r, struct question, depth);

    q->err = err;
    q->waiting = reply ? reply->waiting : -1;
    q->ended = true;
}

static void turn_until(const bool *done)
{
    int64_t deadline = test_now_ms() + 20000;

    while (!*done) {
        cr_assert(test_now_ms() < deadline);
        script_flush(&script);
        ev_run(context.loop, EVRUN_ONCE);
    }
}

static void ask(struct question *q, const char *key)
{
    *q = (struct question){.depth.end = on_depth};
    q->depth.request.until_us = clock_us() + REPLY_MS * 1000;
    script_depth(&script, &q->depth, span_of(key));
}

static void servers_start(void)
{
    static const struct node_events events = {.up = on_up};

    context.loop = ev_loop_new(0);
    context.options.reply_ms = REPLY_MS;
    context.options.space = "s";

    for (int i = 0; i < SERVERS; i++) {
        servers[i] = server_start();
        addresses[i] = (struct address){.unix_socket = true, .host = servers[i]->socket};
        node_init(&nodes[i], &context, &addresses[i], &events, NULL);
    }
    topo_init(&topo, &nodes[0]);
    topo_add(&topo, &nodes[1]);
    topo.find = by_name;
    cr_assert_eq(script_init(&script, &topo), 0);

    for (int i = 0; i < SERVERS; i++) {
        node_start(&nodes[i]);
    }
    while (n_up < SERVERS) {
        ev_run(context.loop, EVRUN_ONCE);
    }
    redis_do(servers[0], "ZADD s:{q0}:due 5 a");
    redis_do(servers[1], "ZADD s:{q1}:due 5 a 5 b");
}

static void servers_stop(void)
{
    for (int i = 0; i < SERVERS; i++) {
        node_close(&nodes[i]);
        server_stop(servers[i]);
    }
    script_close(&script);
    ev_loop_destroy(context.loop);
}

TestSuite(script, .init = servers_start, .fini = servers_stop);

Test(script, goes_where_its_key_is)
{
    struct question q[4];

    for (int round = 0; round < 2; round++) { /* by its text, then by its hash */
        ask(&q[0], "s:{q0}:due");
        ask(&q[1], "s:{q1}:due");
        ask(&q[2], "s:{q0}:due");
        ask(&q[3], "s:{q1}:due");
        for (int i = 0; i < 4; i++) {
            turn_until(&q[i].ended);
            cr_expect_eq(q[i].err, 0);
            cr_expect_eq(q[i].waiting, i % 2 + 1, "%d: %ld", i, (long)q[i].waiting);
        }
    }
    cr_assert(node_knows_time(&nodes[0]) && node_knows_time(&nodes[1]));
}

/* A server that forgets scripts is sent them again, and the other one is not. */
Test(script, is_known_to_each_server_by_itself)
{
    struct question q[2];

    ask(&q[0], "s:{q0}:due");
    turn_until(&q[0].ended);
    cr_assert(node_knows_script(&nodes[0], SCRIPT_DEPTH));
    cr_assert(!node_knows_script(&nodes[1], SCRIPT_DEPTH));

    ask(&q[1], "s:{q1}:due");
    turn_until(&q[1].ended);
    redis_do(servers[0], "SCRIPT FLUSH");
    ask(&q[0], "s:{q0}:due");
    turn_until(&q[0].ended);
    cr_expect_eq(q[0].err, 0);
    cr_expect(node_knows_script(&nodes[0], SCRIPT_DEPTH));
}

Test(script, waits_for_a_server_that_is_down_and_holds_up_no_other)
{
    struct question q[3];

    server_kill9(servers[0]);
    ask(&q[0], "s:{q0}:due");
    turn_until(&q[0].ended); /* its connection is lost meanwhile, or it was not sent */
    cr_assert(!node_up(&nodes[0]) && node_up(&nodes[1]) && topo_any_up(&topo));

    ask(&q[0], "s:{q0}:due");
    ask(&q[1], "s:{q1}:due");
    turn_until(&q[1].ended);
    cr_expect(!q[0].ended);
    cr_expect_eq(q[1].err, 0);
    cr_expect_eq(q[1].waiting, 2);

    turn_until(&q[0].ended);
    cr_expect_eq(q[0].err, LAPSE_EDOWN);

    server_restart(servers[0]);
    redis_do(servers[0], "ZADD s:{q0}:due 5 a");
    ask(&q[2], "s:{q0}:due");
    q[2].depth.request.until_us = clock_us() + 20000000;
    turn_until(&q[2].ended);
    cr_expect_eq(q[2].err, 0);
    cr_expect_eq(q[2].waiting, 1);
}
