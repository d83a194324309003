/* SPDX-License-Identifier: MIT */
#include "cluster.h"
#include "redis.h"
#include "test.h"
#include <criterion/criterion.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATIENCE_MS = 30000, STARTS = 5 };

/* ---- starting ---- */
/* The slots are dealt out in as many equal parts as there are masters. */
static int first_slot(const struct cluster *c, int master)
{
    return CLUSTER_SLOTS * master / c->n_masters;
}

static void write_node(const struct cluster *c, FILE *f, int i, int me)
{
    const struct cluster_node *node = &c->nodes[i];
    int port = (int)strtol(node->arguments[2], NULL, 10);
    const char *myself = i == me ? "myself," : "";

    if (i >= c->n_masters) {
        fprintf(f, "%s 127.0.0.1:%d@%d %sslave %s 0 0 %d connected\n", node->id, port,
                node->bus_port, myself, c->nodes[i % c->n_masters].id, i % c->n_masters + 1);
        return;
    }
    fprintf(f, "%s 127.0.0.1:%d@%d %smaster - 0 0 %d connected %d-%d\n", node->id, port,
            node->bus_port, myself, i + 1, first_slot(c, i), first_slot(c, i + 1) - 1);
}

static void write_nodes(const struct cluster *c, int me)
{
    FILE *f = fopen(c->nodes[me].arguments[0], "w");

    cr_assert(f, "%s: %m", c->nodes[me].arguments[0]);
    for (int i = 0; i < c->n; i++) {
        write_node(c, f, i, me);
    }
    fprintf(f, "vars currentEpoch %d lastVoteEpoch 0\n", c->n_masters);
    cr_assert_eq(fclose(f), 0);
}

static void choose_ports(struct cluster *c)
{
    for (int i = 0; i < c->n; i++) {
        struct cluster_node *node = &c->nodes[i];
        node->bus_port = server_free_port();
        snprintf(node->id, sizeof node->id, "%040d", i + 1);
        snprintf(node->arguments[0], sizeof node->arguments[0], "%.40s/nodes%d.conf", c->dir, i);
        snprintf(node->arguments[1], sizeof node->arguments[1], "%d", node->bus_port);
        snprintf(node->arguments[2], sizeof node->arguments[2], "%d", server_free_port());
    }
}

static void node_add_args(struct cluster_node *node, size_t *n, const char *const *more)
{
    for (; more && *more; more++) {
        cr_assert(*n < SERVER_ARGS - 1);
        node->args[(*n)++] = *more;
    }
    node->args[*n] = NULL;
}

static bool start_node(struct cluster *c, int i, const char *const *more)
{
    struct cluster_node *node = &c->nodes[i];
    const char *const args[] = {"--cluster-enabled",
                                "yes",
                                "--cluster-node-timeout",
                                "2000", /* CLUSTER_TIMEOUT_MS */
                                "--cluster-require-full-coverage",
                                "no",
                                "--repl-diskless-sync-delay",
                                "0",
                                "--cluster-config-file",
                                node->arguments[0],
                                "--cluster-port",
                                node->arguments[1]};
    size_t n = sizeof args / sizeof *args;

    memcpy(node->args, args, sizeof args);
    node_add_args(node, &n, more);
    if (c->keys) {
        const char *const tls[] = {"--include", c->keys->only, "--tls-port", node->arguments[2],
                                   NULL};
        node_add_args(node, &n, tls);
    }
    node->server = server_start_at((int)strtol(node->arguments[2], NULL, 10), node->args);
    return node->server != NULL;
}

static void stop_nodes(struct cluster *c)
{
    for (int i = 0; i < c->n; i++) {
        server_stop(c->nodes[i].server);
        c->nodes[i].server = NULL;
    }
}

/* Another process may take a free port before we do. */
static bool start_nodes(struct cluster *c, const char *const *args)
{
    choose_ports(c);
    for (int i = 0; i < c->n; i++) {
        write_nodes(c, i);
    }
    for (int i = 0; i < c->n; i++) {
        if (!start_node(c, i, args)) {
            stop_nodes(c);
            return false;
        }
    }
    return true;
}

static void wait_for_slots(struct cluster *c)
{
    int64_t deadline = test_now_ms() + PATIENCE_MS;

    for (int i = 0; i < c->n; i++) {
        char *info = NULL;
        do {
            free(info);
            cr_assert(test_now_ms() < deadline, "node %d of the cluster is not up", i);
            poll(NULL, 0, 10);
            info = redis_str(c->nodes[i].server, "CLUSTER INFO");
        } while (!strstr(info, "cluster_state:ok"));
        free(info);
    }
}

/* A key with the tag of no queue, in a slot of this master. */
static void key_of_master(const struct cluster *c, int master, char key[32])
{
    for (int i = 0;; i++) {
        snprintf(key, 32, "kit:%d", i);
        int slot = cluster_slot(c, key);
        if (slot >= first_slot(c, master) && slot < first_slot(c, master + 1)) {
            return;
        }
    }
}

/* That its link is up does not say that a write is not lost: WAIT does. */
static void wait_for_replicas(struct cluster *c)
{
    int n_replicas = c->n / c->n_masters - 1;
    int64_t deadline = test_now_ms() + PATIENCE_MS;

    for (int i = 0; i < c->n_masters && n_replicas > 0; i++) {
        struct server *s = c->nodes[i].server;
        char key[32];
        key_of_master(c, i, key);
        redis_do(s, "SET %s 1", key);
        while (redis_int(s, "WAIT %d 100", n_replicas) < n_replicas) {
            cr_assert(test_now_ms() < deadline, "master %d of the cluster has no replicas", i);
            redis_do(s, "SET %s 1", key);
        }
        redis_do(s, "DEL %s", key);
    }
}

static struct cluster *start(int n_masters, int n_replicas, const char *const *args,
                             const struct keys *keys)
{
    struct cluster *c = calloc(1, sizeof *c);

    cr_assert(c && n_masters > 0 && n_masters * (1 + n_replicas) <= CLUSTER_NODES);
    c->keys = keys;
    c->n_masters = n_masters;
    c->n = n_masters * (1 + n_replicas);
    test_dir(c->dir, sizeof c->dir);

    for (int i = 0; !start_nodes(c, args); i++) {
        cr_assert(i < STARTS, "the nodes of the cluster did not start");
    }
    wait_for_slots(c);
    wait_for_replicas(c);
    return c;
}

struct cluster *cluster_start(int n_masters, int n_replicas)
{
    return start(n_masters, n_replicas, NULL, NULL);
}

struct cluster *cluster_start_opts(int n_masters, int n_replicas, const char *const *args)
{
    return start(n_masters, n_replicas, args, NULL);
}

struct cluster *cluster_start_tls(int n_masters, int n_replicas, const struct keys *keys)
{
    return start(n_masters, n_replicas, NULL, keys);
}

void cluster_stop(struct cluster *c)
{
    if (!c) {
        return;
    }
    stop_nodes(c);
    test_dir_remove(c->dir);
    free(c);
}

void cluster_url(const struct cluster *c, const char *login, char out[CLUSTER_URL])
{
    int len = snprintf(out, CLUSTER_URL, "redis%s+cluster://%s", c->keys ? "s" : "", login);

    for (int i = 0; i < c->n; i++) {
        len += snprintf(out + len, (size_t)(CLUSTER_URL - len), "%s127.0.0.1:%d", i ? "," : "",
                        c->nodes[i].server->port);
        cr_assert_lt(len, CLUSTER_URL);
    }
}

/* ---- who owns what ---- */
static bool node_runs(const struct cluster_node *node)
{
    return node->server->pid > 0;
}

static struct server *any_node(const struct cluster *c)
{
    int i = 0;

    while (!node_runs(&c->nodes[i])) {
        cr_assert(++i < c->n);
    }
    return c->nodes[i].server;
}

int cluster_slot(const struct cluster *c, const char *key)
{
    return (int)redis_int(any_node(c), "CLUSTER KEYSLOT %s", key);
}

int cluster_slot_of_queue(const struct cluster *c, const char *queue)
{
    char key[300];

    snprintf(key, sizeof key, "lapse:{%s}:due", queue);
    return cluster_slot(c, key);
}

bool cluster_is_master(struct server *s)
{
    redisReply *role = redis_cmd(s, "ROLE");
    bool yes = strcmp(role->element[0]->str, "master") == 0;

    freeReplyObject(role);
    return yes;
}

/* By its id: a node says its port without TLS to who asks without. */
static int place_of(const struct cluster *c, const char *id)
{
    for (int i = 0; i < c->n; i++) {
        if (strcmp(c->nodes[i].id, id) == 0) {
            return i;
        }
    }
    return -1;
}

int cluster_owner(const struct cluster *c, const struct server *asked, int slot)
{
    redisReply *r = redis_cmd((struct server *)asked, "CLUSTER SLOTS");
    int owner = -1;

    cr_assert_eq(r->type, REDIS_REPLY_ARRAY, "%s", r->str);
    for (size_t i = 0; i < r->elements; i++) {
        redisReply *const *row = r->element[i]->element;
        if (row[0]->integer <= slot && slot <= row[1]->integer) {
            owner = place_of(c, row[2]->element[2]->str);
        }
    }
    freeReplyObject(r);
    return owner;
}

struct server *cluster_of(const struct cluster *c, const char *key)
{
    int slot = cluster_slot(c, key);
    int votes[CLUSTER_NODES] = {0};
    int best = 0;

    for (int i = 0; i < c->n; i++) {
        int owner = node_runs(&c->nodes[i]) ? cluster_owner(c, c->nodes[i].server, slot) : -1;
        if (owner >= 0) {
            votes[owner]++;
        }
    }
    for (int i = 0; i < c->n; i++) {
        best = votes[i] > votes[best] ? i : best;
    }
    return c->nodes[best].server;
}

void cluster_agrees(const struct cluster *c, int slot, int owner)
{
    int64_t deadline = test_now_ms() + PATIENCE_MS;

    for (int i = 0; i < c->n; i++) {
        while (node_runs(&c->nodes[i]) && cluster_owner(c, c->nodes[i].server, slot) != owner) {
            cr_assert(test_now_ms() < deadline, "node %d does not say that %d owns slot %d", i,
                      owner, slot);
            poll(NULL, 0, 10);
        }
    }
}

/* ---- a slot that moves ---- */
static struct cluster_node *owner_of_slot(const struct cluster *c, int slot)
{
    int owner = cluster_owner(c, any_node(c), slot);

    cr_assert(owner >= 0, "nobody owns slot %d", slot);
    return (struct cluster_node *)&c->nodes[owner];
}

void cluster_move_begin(const struct cluster *c, int slot, int to)
{
    struct cluster_node *from = owner_of_slot(c, slot);

    redis_do(c->nodes[to].server, "CLUSTER SETSLOT %d IMPORTING %s", slot, from->id);
    redis_do(from->server, "CLUSTER SETSLOT %d MIGRATING %s", slot, c->nodes[to].id);
}

static void move_key(const struct cluster_node *from, const struct cluster_node *to,
                     const redisReply *key)
{
    redis_do(from->server, "MIGRATE 127.0.0.1 %d %b 0 60000", to->server->port, key->str,
             (size_t)key->len);
}

int cluster_move_keys(const struct cluster *c, int slot, int to, int limit)
{
    const struct cluster_node *from = owner_of_slot(c, slot);
    redisReply *keys = redis_cmd(from->server, "CLUSTER GETKEYSINSLOT %d %d", slot, limit);
    int n = (int)keys->elements;

    for (int i = 0; i < n; i++) {
        move_key(from, &c->nodes[to], keys->element[i]);
    }
    freeReplyObject(keys);
    return n;
}

/* First the new owner, then the old one: in between nobody may think that it is its own. */
void cluster_move_end(const struct cluster *c, int slot, int to)
{
    const struct cluster_node *from = owner_of_slot(c, slot);

    redis_do(c->nodes[to].server, "CLUSTER SETSLOT %d NODE %s", slot, c->nodes[to].id);
    redis_do(from->server, "CLUSTER SETSLOT %d NODE %s", slot, c->nodes[to].id);
}

void cluster_move(const struct cluster *c, int slot, int to)
{
    cluster_move_begin(c, slot, to);
    while (cluster_move_keys(c, slot, to, 100) > 0) {}
    cluster_move_end(c, slot, to);
}

void cluster_failover(const struct cluster *c, int replica)
{
    struct server *s = c->nodes[replica].server;
    int64_t deadline = test_now_ms() + PATIENCE_MS;

    redis_do(s, "CLUSTER FAILOVER");
    while (!cluster_is_master(s)) {
        cr_assert(test_now_ms() < deadline, "the replica is not promoted");
        poll(NULL, 0, 10);
    }
}

/* What it has read when the first is answered has been acted on, and sent when the second is. */
static void two_questions(struct server *s)
{
    redis_do(s, "PING");
    redis_do(s, "PING");
}

void cluster_hands_over(const struct cluster *c, int old, int slot, int heir)
{
    struct server *s = c->nodes[old].server;
    int64_t deadline = test_now_ms() + PATIENCE_MS;

    while (cluster_is_master(s)) {
        cr_assert(test_now_ms() < deadline, "the old master does not hear of the new one");
        poll(NULL, 0, 10);
    }

    two_questions(c->nodes[heir].server);
    two_questions(s);
    while (cluster_owner(c, s, slot) != heir) {
        cr_assert(test_now_ms() < deadline, "the old master does not hear who owns slot %d", slot);
        poll(NULL, 0, 10);
    }
}
