/* SPDX-License-Identifier: MIT */
/* A node dies while it moves a slot, and its replica does not know of the move. */
#include "cluster.h"
#include "process.h"
#include "script.h"
#include <poll.h>

#define DUE_KEY "lapse:{q}:due"

static redisReply *script_on(struct server *s, const char *name)
{
    return redis_script(s, name, DUE_KEY, "0 cluster", NULL);
}

static bool answers(struct server *s, const char *name, const char *text)
{
    redisReply *r = script_on(s, name);
    bool yes = strncmp(show(r), text, strlen(text)) == 0;

    freeReplyObject(r);
    return yes;
}

static void schedule(struct server *s, const char *id, const char *due)
{
    const char *const argv[] = {"0 cluster", id, due, "0", "\1\0body"};
    const size_t len[] = {9, strlen(id), strlen(due), 1, 6};

    freeReplyObject(redis_scriptv(s, "schedule", DUE_KEY, 5, argv, len));
}

/* The place of the replica that has taken the slot. A node to which it was being moved still
 * believes that it is the dead one's. */
static int promoted(const struct cluster *c, int slot, const struct server *asked)
{
    int64_t deadline = test_now_ms() + 60000;
    int owner;

    while ((owner = cluster_owner(c, asked, slot)) < 0 || c->nodes[owner].server->pid == 0) {
        cr_assert(test_now_ms() < deadline, "no replica was promoted");
        poll(NULL, 0, 20);
    }
    return owner;
}

static bool has_waiting(struct server *s, int n)
{
    redisReply *r = script_on(s, "depth");
    bool yes = r->type == REDIS_REPLY_ARRAY && r->element[1]->integer == n;

    freeReplyObject(r);
    return yes;
}

static bool is_master_for(struct server *asked, const struct cluster_node *node)
{
    char *nodes = redis_str(asked, "CLUSTER NODES");
    char *line = strstr(nodes, text("%s 127.0.0.1:", node->id));

    cr_assert(line, "%s", nodes);
    line[strcspn(line, "\n")] = '\0';
    bool yes = strstr(line, "master") != NULL;
    free(nodes);

    return yes;
}

/* Before a node has heard of the promotion, it refuses what redis-cli asks of it. */
static void wait_until_all_heard(const struct cluster *c, int promoted)
{
    int64_t deadline = test_now_ms() + 30000;

    for (int i = 0; i < c->n; i++) {
        while (!is_master_for(c->nodes[i].server, &c->nodes[promoted])) {
            cr_assert(test_now_ms() < deadline, "node %d has not heard that %d is a master", i,
                      promoted);
            poll(NULL, 0, 20);
        }
    }
}

/* As an operator finishes the move. */
static void fix_cluster(const struct server *any)
{
    const char *address = text("127.0.0.1:%d", any->port);
    struct proc *p = proc_run(NULL, "redis-cli", "--cluster", "fix", address, NULL);

    cr_assert_eq(p->status, 0, "%s%s", p->out, p->err);
    proc_free(p);
}

/* All that had gone when it died: the records, say. What is left is refused, and nothing of it
 * thrown away; the move can be finished. Valkey's replicas know of the move, and start no script.
 */
Test(half, is_refused_by_a_node_that_does_not_know_of_the_move)
{
    struct cluster *c = cluster_start(3, 1);
    int slot = cluster_slot(c, DUE_KEY);
    int from = cluster_owner(c, c->nodes[0].server, slot);
    int to = (from + 1) % 3;
    struct server *target = c->nodes[to].server;

    for (int i = 0; i < 20; i++) {
        schedule(c->nodes[from].server, text("job%d", i), "+60000");
    }

    cluster_move_begin(c, slot, to);
    redis_do(c->nodes[from].server, "MIGRATE 127.0.0.1 %d lapse:{q}:jobs 0 60000", target->port);
    cr_assert(answers(c->nodes[from].server, "depth", "-TRYAGAIN"));
    while (redis_int(c->nodes[from].server, "WAIT 1 1000") < 1) {}
    server_kill9(c->nodes[from].server);

    struct server *third = c->nodes[(from + 2) % 3].server;
    int heir = promoted(c, slot, third);
    struct server *now = c->nodes[heir].server;
    bool knows = answers(now, "depth", "-TRYAGAIN");
    cr_assert(knows || answers(now, "depth", "-LAPSE EHALF lapse:{q}:jobs"));
    cr_assert(knows || answers(now, "sweep", "-LAPSE EHALF lapse:{q}:jobs"));
    cr_assert_eq(redis_int(now, "ZCARD " DUE_KEY), 20);

    server_restart(c->nodes[from].server); /* as a replica of the one that took its place */
    while (cluster_owner(c, c->nodes[from].server, slot) == from) {
        poll(NULL, 0, 20);
    }
    wait_until_all_heard(c, heir);
    fix_cluster(now);
    struct server *owner = cluster_of(c, DUE_KEY);
    int64_t deadline = test_now_ms() + 30000;
    while (!has_waiting(owner, 20)) {
        cr_assert(test_now_ms() < deadline, "it is not whole: %s", show(script_on(owner, "depth")));
        poll(NULL, 0, 20);
        owner = cluster_of(c, DUE_KEY);
    }
    cr_assert_eq(redis_int(owner, "HLEN lapse:{q}:jobs"), 20);

    cluster_stop(c);
}

/* The kit's own way of moving a slot, so that others can rely on it. */
Test(half, of_a_slot_that_was_moved_is_no_more)
{
    struct cluster *c = cluster_start(3, 0);
    int slot = cluster_slot(c, DUE_KEY);
    int from = cluster_owner(c, c->nodes[0].server, slot);
    int to = (from + 1) % 3;

    for (int i = 0; i < 20; i++) {
        schedule(c->nodes[from].server, text("job%d", i), "+60000");
    }
    cluster_move(c, slot, to);
    cluster_agrees(c, slot, to);

    cr_assert(cluster_of(c, DUE_KEY) == c->nodes[to].server);
    cr_assert(answers(c->nodes[from].server, "depth", "-MOVED"));
    cr_assert(has_waiting(c->nodes[to].server, 20));
    cluster_stop(c);
}
