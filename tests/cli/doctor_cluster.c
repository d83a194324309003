/* SPDX-License-Identifier: MIT */
/* lapse doctor with the URL of a cluster: each node, and what only all of them together show. */
#include "findings.h"
#include "cluster.h"
#include "set_clock.h"
#include <hiredis/hiredis.h>
#include <poll.h>
#include <signal.h>
#include <time.h>

static int port_of(const struct cluster *c, int node)
{
    return c->nodes[node].server->port;
}

static void put(const char *queue)
{
    expect(lapse("schedule", queue, "--in", "1h"), 0, NULL, NULL);
}

#define ALL "~* &* +@all"

/* As as_user(), on all nodes. */
static void as_user_of(const struct cluster *c, const char *rules)
{
    for (int i = 0; i < c->n; i++) {
        as_user(c->nodes[i].server, rules);
    }
    tool_cluster_url(c, "u:p@");
}

/* Runs the command that doctor has printed, as a shell does. */
static struct proc *shell_fix(const char *out, const char *check)
{
    char line[2000];
    char start[64];

    snprintf(start, sizeof start, "{\"check\":\"%s\"", check);
    const char *at = strstr(out, start);
    cr_assert(at, "%s", out);
    at = strstr(at, "\"fix\":\"");
    cr_assert(at, "%s", out);
    at += strlen("\"fix\":\"");
    snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\""), at);
    return shell(line);
}

static bool is_valkey(const struct cluster *c)
{
    char *info = redis_str(c->nodes[0].server, "INFO server");
    bool is_one = strstr(info, "valkey_version:") != NULL;

    free(info);
    return is_one;
}

/* On Valkey redis-cli may break off: high_availability.md has it. */
static void run_fix(const struct cluster *c, const char *queue, const char *out, const char *check)
{
    struct proc *fix = shell_fix(out, check);
    bool breaks_off = proc_wait(fix, PROC_WAIT_MS) != 0 && has(fix, "is already unassigned");

    if (breaks_off && is_valkey(c)) {
        struct proc *p = doctor(queue);
        proc_free(fix);
        fix = shell_fix(p->out, check);
        proc_free(p);
    }
    expect(fix, 0, NULL, NULL);
}

Test(doctor_cluster, that_is_fit_has_a_line_for_each_node_and_queue)
{
    struct cluster *c = tool_cluster(3, 1);
    static const char *const queues[] = {"a", "b", "c", "d"};
    struct proc *p;

    for (size_t i = 0; i < 4; i++) {
        put(queues[i]);
    }
    for (int i = 0; i < 3; i++) { /* one replica each: a second would be advised */
        redis_do(c->nodes[i].server, "CONFIG SET min-replicas-to-write 0");
    }

    p = doctor();
    says(p, "cluster", "OK", "3 masters, 3 replicas, and each slot has a node");
    says(p, "clock", "OK", "those of all nodes are within");
    for (int i = 0; i < 3; i++) {
        says_of(p, port_of(c, i), "replicas", "WARN", "1 connected, and a write does not need it");
        says_of(p, port_of(c, i + 3), "replica", "OK", "fit to become the master");
    }
    cr_assert_eq(count_of(p->out, "1, each in one state"), 4, "%s", p->out);
    cr_assert_eq(count_of(p->out, "\"verdict\":\"WARN\""), 3, "%s", p->out);
    expect(p, 0, NULL, "");

    p = doctor("b");
    cr_assert_eq(count_of(p->out, "each in one state"), 1, "%s", p->out);
    expect(p, 0, "\"queue\":\"b\"", NULL);
    expect(lapse("doctor", "b"), 0, "OK    jobs         b: 1, each in one state\n", NULL);
    cluster_stop(c);
}

/* Of each master by itself: a write is sealed by the replicas of its own. */
Test(doctor_cluster, with_the_option_replicas_fails_where_a_master_has_too_few_in_step)
{
    struct cluster *c = tool_cluster(2, 1);
    struct proc *p;

    p = doctor("-o", "replicas=1");
    says_of(p, port_of(c, 0), "replicas", "WARN", "1 in step");
    says_of(p, port_of(c, 1), "replicas", "WARN", "1 in step");
    expect(p, 0, NULL, "");
    p = doctor("-o", "replicas=2");
    says_of(p, port_of(c, 0), "replicas", "FAIL", "1 in step, and the option replicas asks for 2");
    says_of(p, port_of(c, 1), "replicas", "FAIL", "1 in step, and the option replicas asks for 2");
    expect(p, 1, NULL, "");

    server_kill9(c->nodes[2].server); /* of node 0 */
    for (int64_t end_ms = test_now_ms() + PROC_WAIT_MS;
         redis_int(c->nodes[0].server, "WAIT 1 1") > 0;) {
        cr_assert_lt(test_now_ms(), end_ms, "the dead replica still counts");
        poll(NULL, 0, 10);
    }
    p = doctor("-o", "replicas=1");
    says_of(p, port_of(c, 0), "replicas", "FAIL", "0 in step, and the option replicas asks for 1");
    says_of(p, port_of(c, 1), "replicas", "WARN", "1 in step");
    says_of(p, port_of(c, 2), "replica", "WARN", "cannot be reached");
    expect(p, 1, NULL, "");
    cluster_stop(c);
}

/* What neither a master nor the cluster hands on. */
Test(doctor_cluster, is_looked_at_node_by_node)
{
    struct cluster *c = tool_cluster(2, 1);
    struct server *replica = c->nodes[3].server;
    struct proc *p;
    char fix[100];

    as_user_of(c, ALL);
    redis_do(replica, "CONFIG SET notify-keyspace-events %s", "");
    redis_do(replica, "CONFIG SET cluster-require-full-coverage yes");
    redis_do(replica, "ACL SETUSER u -zadd");
    redis_do(c->nodes[1].server, "CONFIG SET cluster-node-timeout 15000");
    redis_do(c->nodes[1].server, "CONFIG SET maxmemory-policy allkeys-lru");
    redis_do(c->nodes[0].server, "CONFIG SET min-replicas-to-write 1");

    p = doctor();
    says_of(p, replica->port, "events", "WARN", "CONFIG SET notify-keyspace-events Ex");
    says_of(p, replica->port, "coverage", "WARN", "required");
    says_of(p, replica->port, "rights", "FAIL", "user u lacks +zadd");
    says_of(p, port_of(c, 1), "timeout", "WARN", "15.0 s");
    says_of(p, port_of(c, 1), "eviction", "FAIL", "allkeys-lru");
    says_of(p, port_of(c, 0), "replicas", "WARN", "after a failover the new master has one fewer");
    snprintf(fix, sizeof fix, "one replica more, or redis-cli -h 127.0.0.1 -p %d CONFIG SET min-",
             port_of(c, 0));
    says_of(p, port_of(c, 0), "replicas", "WARN", fix);
    snprintf(fix, sizeof fix, "redis-cli -h 127.0.0.1 -p %d CONFIG SET maxmemory-policy",
             port_of(c, 1));
    expect(p, 1, fix, "");

    redis_do(replica, "ACL DELUSER u");
    p = doctor();
    says_of(p, replica->port, "replica", "FAIL", "it does not let this user in: AUTH: WRONGPASS");
    expect(p, 1, NULL, "");

    redis_do(c->nodes[1].server, "ACL DELUSER u");
    p = doctor();
    says_of(p, port_of(c, 1), "master", "FAIL", "users are not replicated");
    expect(p, 1, NULL, "");
    cluster_stop(c);
}

Test(doctor_cluster, without_replicas_and_with_a_master_that_is_away_says_what_waits)
{
    struct cluster *c = tool_cluster(2, 0);
    struct proc *p;
    char fix[100];

    put("a");
    put("b");
    p = doctor();
    says_of(p, port_of(c, 0), "replicas", "WARN", "when this master dies, its queues are gone");
    snprintf(fix, sizeof fix, "redis-cli --cluster add-node NEW:PORT 127.0.0.1:%d --cluster-slave",
             port_of(c, 0));
    says_of(p, port_of(c, 0), "replicas", "WARN", fix);
    expect(p, 0, NULL, "");

    server_kill9(c->nodes[1].server);
    p = doctor("a", "b");
    says_of(p, port_of(c, 1), "master", "FAIL",
            "cannot be reached: Connection refused; the queues "
            "of its 8192 slots wait");
    cr_assert_eq(count_of(p->out, "each in one state"), 1, "%s", p->out);
    cr_assert_eq(count_of(p->out, "the master of its slot cannot be reached"), 1, "%s", p->out);
    expect(p, 1, NULL, "");

    server_kill9(c->nodes[0].server);
    expect(lapse("doctor"), 69, "", "the cluster could not be reached: redis+cluster://");
    cluster_stop(c);
}

/* When the other one of two nodes last answered it, by the clock of the machine. */
static long long answered_ms(struct server *s)
{
    char *nodes = redis_str(s, "CLUSTER NODES");
    long long at_ms = -1;

    for (char *line = strtok(nodes, "\n"); line; line = strtok(NULL, "\n")) {
        if (!strstr(line, "myself")) {
            cr_assert_eq(sscanf(line, "%*s %*s %*s %*s %*s %lld", &at_ms), 1, "%s", line);
        }
    }
    free(nodes);
    return at_ms;
}

/* Of two nodes. What the owner sent before would give it the slot again at the other one: so this
 * waits until each has answered the other since. */
static void take_away(struct cluster *c, int slot)
{
    int owner = cluster_owner(c, c->nodes[0].server, slot);
    int64_t deadline = test_now_ms() + PROC_WAIT_MS;
    struct timespec now;

    redis_do(c->nodes[owner].server, "CLUSTER DELSLOTS %d", slot);
    clock_gettime(CLOCK_REALTIME, &now);
    long long gone_ms = now.tv_sec * 1000LL + now.tv_nsec / 1000000;
    for (int i = 0; i < 2; i++) {
        while (answered_ms(c->nodes[i].server) <= gone_ms) {
            cr_assert(test_now_ms() < deadline);
            poll(NULL, 0, 10);
        }
    }
    redis_do(c->nodes[!owner].server, "CLUSTER DELSLOTS %d", slot);
}

Test(doctor_cluster, whose_slots_are_open_or_have_no_node_gets_the_command_that_closes_them)
{
    struct cluster *c = tool_cluster(2, 0);
    int slot;
    int from;
    struct proc *p;
    char text[64];

    put("a");
    slot = cluster_slot_of_queue(c, "a");
    from = cluster_owner(c, c->nodes[0].server, slot);
    cluster_move_begin(c, slot, !from);
    cluster_move_keys(c, slot, !from, 1);
    p = doctor();
    snprintf(text, sizeof text, "open at this node: %d;", slot);
    says_of(p, port_of(c, from), "slots", "WARN", text);
    says_of(p, port_of(c, !from), "slots", "WARN", text);
    snprintf(text, sizeof text, "its slot %d moves: ", slot);
    cr_assert(has(p, text), "%s", p->out);
    cr_assert_eq(count_of(p->out, "--cluster fix"), 1, "one is safe, and no other: %s", p->out);
    cr_assert(!has(p, "are left on"), "%s", p->out);
    cr_assert(!has(p, " DEL "), "what was not found is on its way: %s", p->out);
    run_fix(c, "a", p->out, "slots");
    expect(p, 1, "cannot be checked: the slot of the queue is moving to another node", "");

    cluster_agrees(c, slot, cluster_owner(c, c->nodes[0].server, slot));
    p = doctor();
    says(p, "slots", NULL, NULL);
    expect(p, 0, "1, each in one state", "");

    take_away(c, slot);
    p = doctor("a");
    says(p, "cluster", "FAIL", "1 of 16384 slots have no node: their queues cannot be used");
    expect(p, 1, "\"text\":\"cannot be looked at: no node has its slot\"", "");
    cluster_stop(c);
}

Test(doctor_cluster, whose_slots_move_unseen_by_this_user_has_no_keys_that_are_astray)
{
    struct cluster *c = tool_cluster(2, 0);
    int slot = cluster_slot_of_queue(c, "a");
    int from = cluster_owner(c, c->nodes[0].server, slot);
    struct proc *p;

    put("a");
    as_user_of(c, ALL " -cluster|nodes");
    cluster_move_begin(c, slot, !from);
    cluster_move_keys(c, slot, !from, 1);
    p = doctor("a");
    says(p, "slots", "WARN", "unknown is which are moving: CLUSTER NODES is refused");
    cr_assert(!has(p, "are left on"), "%s", p->out);
    expect(p, 1, "cannot be checked: the slot of the queue is moving to another node", "");
    while (cluster_move_keys(c, slot, !from, 100) > 0) {}
    p = doctor("a");
    says(p, "jobs", "FAIL", "is moving to another node; this passes (ASK ");
    says(p, "events", "WARN",
         "cannot be tested while the slot of queue a is moving to another node: run doctor again "
         "when it has moved (SET: ASK ");
    expect(p, 1, "cannot be read: the slot of the queue is moving to another node", "");
    cluster_stop(c);
}

/* What a source leaves that dies at the end of a move, when its replica does not know of it: a
 * queue that looks new, and all of its jobs on a node that does not own it. */
Test(doctor_cluster, whose_queue_has_all_of_its_keys_on_another_node_is_not_taken_for_empty)
{
    struct cluster *c = tool_cluster(2, 0);
    int slot;
    int from;
    struct proc *p;
    char text[120];

    put("a");
    slot = cluster_slot_of_queue(c, "a");

    for (int round = 0; round < 2; round++) {
        from = cluster_owner(c, c->nodes[0].server, slot); /* the command may change that */
        cluster_move_begin(c, slot, !from);
        while (cluster_move_keys(c, slot, !from, 100) > 0) {}
        redis_do(c->nodes[from].server, "CLUSTER SETSLOT %d STABLE", slot);
        if (round == 1) { /* and the target has been told to forget of it, too */
            redis_do(c->nodes[!from].server, "CLUSTER SETSLOT %d STABLE", slot);
        }

        long long n = redis_int(c->nodes[!from].server, "CLUSTER COUNTKEYSINSLOT %d", slot);
        cr_assert_gt(n, 0);
        p = doctor("--repair");
        snprintf(text, sizeof text, "%lld keys of its slot %d are left on 127.0.0.1:%d", n, slot,
                 port_of(c, !from));
        says(p, "slots", "FAIL", text);
        cr_assert_eq(has(p, "IMPORTING"), round == 1, "%s", p->out);
        cr_assert(!has(p, "each in one state"), "%s", p->out);
        run_fix(c, "a", p->out, "slots");
        expect(p, 1, NULL, "");

        cluster_agrees(c, slot, cluster_owner(c, cluster_of(c, "{a}"), slot));
        p = doctor();
        says(p, "slots", NULL, NULL);
        expect(p, 0, "\"text\":\"1, each in one state\"", "");
    }
    cluster_stop(c);
}

/* Moves all keys of a slot that are there, but for the parts of groups. */
static void carry(const struct cluster *c, int slot, int from, int to)
{
    redisReply *keys = redis_cmd(c->nodes[from].server, "CLUSTER GETKEYSINSLOT %d 100", slot);

    for (size_t i = 0; i < keys->elements; i++) {
        if (!strstr(keys->element[i]->str, ":p:")) {
            redis_do(c->nodes[from].server, "MIGRATE 127.0.0.1 %d %s 0 60000", port_of(c, to),
                     keys->element[i]->str);
        }
    }
    freeReplyObject(keys);
}

/* All keys of a queue are on another master, which does not own its slot, but for the parts of a
 * group; neither knows of a move. Returns the owner. */
static int strand(const struct cluster *c, const char *queue)
{
    int slot = cluster_slot_of_queue(c, queue);
    int from = cluster_owner(c, c->nodes[0].server, slot);

    cluster_move_begin(c, slot, !from);
    carry(c, slot, from, !from);
    redis_do(c->nodes[from].server, "CLUSTER SETSLOT %d STABLE", slot);
    redis_do(c->nodes[!from].server, "CLUSTER SETSLOT %d STABLE", slot);
    return from;
}

/* The keys come back to the owner. Not by redis-cli --cluster fix: it makes the other node the
 * owner, which has more of them, and what this one has is lost if it hears of that too early. */
static void bring_back(const struct cluster *c, const char *queue, int owner)
{
    int slot = cluster_slot_of_queue(c, queue);

    redis_do(c->nodes[!owner].server, "CLUSTER SETSLOT %d IMPORTING %s", slot, c->nodes[owner].id);
    carry(c, slot, !owner, owner);
    redis_do(c->nodes[!owner].server, "CLUSTER SETSLOT %d STABLE", slot);
}

/* What looks there like parts of no group: a dead job of them would be a second hash of records,
 * and the move could not be finished. */
Test(doctor_cluster, whose_queue_has_only_parts_of_a_group_on_its_node_is_not_repaired)
{
    struct cluster *c = tool_cluster(2, 0);
    char url[80];
    struct proc *p;

    expect(lapse("schedule", "a", "--id", "g", "--gather", "quiet=1h,most=9", "x"), 0, NULL, NULL);
    int from = strand(c, "a");
    struct server *owner = c->nodes[from].server;

    snprintf(url, sizeof url, "redis://%s127.0.0.1:%d", server_login(), owner->port);
    setenv("LAPSE_URL", url, 1);
    p = doctor("a", "--repair");
    says(p, "parts", "FAIL", "half-way: missing here is lapse:{a}:jobs");
    expect(p, 1, "lapse doctor a with the URL of the cluster, which asks all masters; if no", "");

    as_user_of(c, ALL " -cluster|countkeysinslot -cluster|nodes");
    p = doctor("a");
    says_of(p, port_of(c, !from), "slots", "WARN",
            "unknown is whether keys of slots of others are left on it: NOPERM");
    expect(p, 1, NULL, "");
    p = doctor("a", "--repair");
    cr_assert(has(p, "is not repaired: unknown is whether keys of its slot"), "%s", p->out);
    cr_assert(!has(p, "\"check\":\"parts\""), "%s", p->out);
    expect(p, 1, "if no slot was being moved, lapse doctor a --repair --half", "");

    for (int i = 0; i < c->n; i++) {
        redis_do(c->nodes[i].server, "ACL SETUSER u +cluster|countkeysinslot");
    }
    p = doctor("a", "--repair");
    cr_assert_eq(count_of(p->out, "they may be on their way, for CLUSTER NODES is refused"), 1,
                 "%s", p->out);
    expect(p, 1, NULL, "");
    cr_assert_eq(redis_int(owner, "EXISTS lapse:{a}:jobs"), 0);
    cr_assert_eq(redis_int(owner, "LLEN lapse:{a}:p:g"), 1);

    bring_back(c, "a", from);
    tool_cluster_url(c, server_login());
    expect(doctor("a"), 0, "\"text\":\"1, each in one state\"", "");
    cluster_stop(c);
}

/* Runs a command as a user who lacks the right to this one: its script stops amid its writes. */
static void break_off(struct cluster *c, const char *right, struct proc *(*run)(void))
{
    for (int i = 0; i < c->n; i++) {
        redis_do(c->nodes[i].server, "ACL SETUSER u reset on >p ~* &* +@all -%s", right);
    }
    tool_cluster_url(c, "u:p@");
    struct proc *p = run();
    cr_assert(strstr(p->err, "the script stopped half-way: run lapse doctor --repair"), "%s",
              p->err);
    expect(p, 77, "", NULL);
    tool_cluster_url(c, server_login());
}

static struct proc *schedule_x(void)
{
    return lapse("schedule", "a", "--id", "x", "--in", "1h");
}

static struct proc *claim_from_a(void)
{
    return lapse("claim", "a");
}

/* All scripts are refused, the one that would repair it, too. */
static void looks_like_half(const char *missing)
{
    char text[200];

    snprintf(text, sizeof text,
             "no other master has keys of its slot, so a script broke off half-way, or they are "
             "lost: missing here is %s\"",
             missing);
    expect(lapse("depth", "a"), 69, "", "missing here: ");
    struct proc *p = doctor("a", "--repair");
    says(p, "jobs", "FAIL", text);
    expect(p, 1, "\"fix\":\"lapse doctor a --repair --half\"", "");
    p = doctor("a", "--repair", "--half");
    says(p, "jobs", "WARN", "1 of them repaired");
    expect(p, 0, NULL, "");
}

/* What README.md of the scripts says of it, a case each. */
Test(doctor_cluster, whose_queue_looks_like_half_as_a_script_broke_off_repairs_it_with_half)
{
    struct cluster *c = tool_cluster(2, 0);

    break_off(c, "hset", schedule_x);
    looks_like_half("lapse:{a}:jobs");
    expect(lapse("depth", "a"), 0, "\"dead\":1", "");
    expect(lapse("cancel", "a", "x"), 0, NULL, "");

    expect(lapse("schedule", "a", "--id", "y", "--in", "0s", "body"), 0, NULL, "");
    break_off(c, "zadd", claim_from_a);
    looks_like_half("lapse:{a}:due lapse:{a}:run lapse:{a}:dead lapse:{a}:kept");
    expect(lapse("list", "a", "--state", "dead"), 0, "the record was in none of the sets", "");

    expect(lapse("reschedule", "a", "y", "--in", "0s"), 0, NULL, "");
    break_off(c, "hset", claim_from_a);
    looks_like_half("lapse:{a}:attempts");
    expect(lapse("claim", "a"), 0, "\"body\":\"body\"", "");
    cluster_stop(c);
}

/* Of a queue whose jobs all wait its owner has the set, and another master the rest. */
static void part(const struct cluster *c, int slot, int owner, int other)
{
    struct server *s = c->nodes[owner].server;

    redis_do(c->nodes[other].server, "CLUSTER SETSLOT %d IMPORTING %s", slot, c->nodes[owner].id);
    redis_do(s, "CLUSTER SETSLOT %d MIGRATING %s", slot, c->nodes[other].id);
    redisReply *keys = redis_cmd(s, "CLUSTER GETKEYSINSLOT %d 100", slot);
    for (size_t i = 0; i < keys->elements; i++) {
        if (!strstr(keys->element[i]->str, ":due")) {
            redis_do(s, "MIGRATE 127.0.0.1 %d %s 0 60000", port_of(c, other),
                     keys->element[i]->str);
        }
    }
    freeReplyObject(keys);
    for (int i = 0; i < c->n; i++) {
        redis_do(c->nodes[i].server, "CLUSTER SETSLOT %d STABLE", slot);
    }
}

/* Both causes are possible then. */
Test(doctor_cluster, whose_queue_looks_like_half_names_both_causes_where_not_all_masters_were_asked)
{
    struct cluster *c = tool_cluster(3, 0);
    int of_a = cluster_owner(c, c->nodes[0].server, cluster_slot_of_queue(c, "a"));
    int of_b = cluster_owner(c, c->nodes[0].server, cluster_slot_of_queue(c, "b"));
    int away = 0;
    struct proc *p;

    while (away == of_a || away == of_b) {
        away++;
    }
    put("b");
    part(c, cluster_slot_of_queue(c, "b"), of_b, 3 - of_b - away);
    break_off(c, "hset", schedule_x);
    server_kill9(c->nodes[away].server);
    p = doctor("b");
    says(p, "slots", "FAIL",
         "start the masters that cannot be reached or, if one is gone for good, run CLUSTER FORGET "
         "with its id on every node; then run lapse doctor b again");
    cr_assert(!has(p, "redis-cli --cluster fix"), "%s", p->out);
    proc_free(p);
    p = doctor("a");
    says(p, "jobs", "FAIL",
         "a part of it is on another node, or a script broke off half-way: missing here is "
         "lapse:{a}:jobs");
    expect(p, 1, "; if no slot was being moved, lapse doctor a --repair --half", "");
    cluster_stop(c);
}

/* Runs the first commands of a fix, all but that of redis-cli --cluster. */
static void run_beginning(const char *fix)
{
    const char *end = strstr(fix, "; redis-cli --cluster fix");
    char line[1000];

    cr_assert(end, "%s", fix);
    snprintf(line, sizeof line, "%.*s", (int)(end - fix), fix);
    expect(shell(line), 0, "OK", NULL);
}

/* The epoch of a node, as another one knows it. */
static long long epoch_of(struct server *asked, const char *id)
{
    char *nodes = redis_str(asked, "CLUSTER NODES");
    const char *line = strstr(nodes, id);
    long long epoch = -1;

    cr_assert(line, "%s", nodes);
    cr_assert_eq(sscanf(line, "%*s %*s %*s %*s %*s %*s %lld", &epoch), 1, "%s", line);
    free(nodes);
    return epoch;
}

/* What redis-cli --cluster fix does at first; and then the old owner hears of it too early. */
static void make_owner(const struct cluster *c, int slot, int owner, int other)
{
    struct server *s = c->nodes[other].server;
    int64_t deadline = test_now_ms() + PROC_WAIT_MS;

    redis_do(s, "CLUSTER SETSLOT %d STABLE", slot);
    redis_do(s, "MULTI");
    redis_do(s, "CLUSTER DELSLOTS %d", slot);
    redis_do(s, "CLUSTER ADDSLOTS %d", slot);
    redis_do(s, "CLUSTER BUMPEPOCH");
    redis_do(s, "EXEC");
    long long epoch = epoch_of(s, c->nodes[other].id);
    while (epoch_of(c->nodes[owner].server, c->nodes[other].id) < epoch) {
        cr_assert_lt(test_now_ms(), deadline, "the old owner hears nothing");
        poll(NULL, 0, 10);
    }
}

Test(doctor_cluster, whose_queue_has_keys_on_two_nodes_gets_the_command_that_loses_none)
{
    struct cluster *c = tool_cluster(3, 0);
    int slot = cluster_slot_of_queue(c, "a");
    int owner = cluster_owner(c, c->nodes[0].server, slot);
    int other = (owner + 1) % 3;
    char text[200];

    put("a");
    part(c, slot, owner, other);
    redis_do(c->nodes[other].server, "CLUSTER SETSLOT %d IMPORTING %s", slot, c->nodes[owner].id);
    cr_assert_eq(redis_int(c->nodes[owner].server, "CLUSTER COUNTKEYSINSLOT %d", slot), 1);
    struct proc *p = doctor("a");
    says_of(p, port_of(c, other), "slots", "WARN", "open at this node");
    cr_assert_eq(count_of(p->out, "--cluster fix"), 2, "%s", p->out);
    cr_assert_eq(count_of(p->out, "CLUSTER DELSLOTS"), 2, "all are safe: %s", p->out);
    cr_assert_eq(count_of(p->out, "the slot has no owner"), 1, "%s", p->out);
    snprintf(text, sizeof text, "redis-cli -h 127.0.0.1 -p %d CLUSTER DELSLOTS %d; ",
             port_of(c, owner), slot);
    says(p, "slots", "FAIL", text);
    says(
        p, "jobs", "FAIL",
        "a part of it is on another node: missing here is lapse:{a}:jobs\",\"fix\":\"redis-cli -h");
    cr_assert(!has(p, "--half"), "%s", p->out);

    const char *fix = strstr(p->out, "\"fix\":\"redis-cli -h");
    cr_assert(fix, "%s", p->out);
    run_beginning(fix + strlen("\"fix\":\""));
    make_owner(c, slot, owner, other);
    cr_assert_eq(redis_int(c->nodes[owner].server, "CLUSTER COUNTKEYSINSLOT %d", slot), 1,
                 "they were deleted");
    run_fix(c, "a", p->out, "slots");
    expect(p, 1, NULL, "");

    cluster_agrees(c, slot, other);
    p = doctor("a");
    says(p, "slots", NULL, NULL);
    expect(p, 0, "\"text\":\"1, each in one state\"", "");
    cluster_stop(c);
}

/* Another queue that this node has. */
static const char *neighbour_of(const struct cluster *c, const char *queue, int owner)
{
    static char name[2] = "c";

    while (strcmp(name, queue) == 0 ||
           cluster_owner(c, c->nodes[0].server, cluster_slot_of_queue(c, name)) != owner) {
        cr_assert_lt(++*name, 'z', "the node has no queue but %s", queue);
    }
    return name;
}

/* Keys of the same slot are on two nodes, whatever queues this run is to look at. */
Test(doctor_cluster, whose_open_slot_has_keys_on_two_nodes_gets_the_safe_command_for_other_queues)
{
    struct cluster *c = tool_cluster(2, 0);
    int slot = cluster_slot_of_queue(c, "a");
    int owner = cluster_owner(c, c->nodes[0].server, slot);
    struct proc *p;
    char text[200];

    put("a");
    part(c, slot, owner, !owner);
    redis_do(c->nodes[!owner].server, "CLUSTER SETSLOT %d IMPORTING %s", slot, c->nodes[owner].id);
    p = doctor("b");
    snprintf(text, sizeof text, "\"fix\":\"redis-cli -h 127.0.0.1 -p %d CLUSTER DELSLOTS %d; ",
             port_of(c, owner), slot);
    says_of(p, port_of(c, !owner), "slots", "WARN", text);
    cr_assert_eq(count_of(p->out, "--cluster fix"), 1, "%s", p->out);
    cr_assert(!has(p, "keys of several"), "%s", p->out);
    expect(p, 0, NULL, "");

    const char *next = neighbour_of(c, "a", owner);
    int slot_of_next = cluster_slot_of_queue(c, next);
    put(next);
    part(c, slot_of_next, owner, !owner);
    redis_do(c->nodes[!owner].server, "CLUSTER SETSLOT %d IMPORTING %s", slot_of_next,
             c->nodes[owner].id);
    p = doctor("b");
    says_of(p, port_of(c, !owner), "slots", "WARN",
            "keys of several are on two nodes: run what is before redis-cli --cluster fix for each "
            "of them first, and then that once");
    expect(p, 0, NULL, "");

    as_user_of(c, ALL " -cluster|countkeysinslot");
    p = doctor("b");
    says_of(p, port_of(c, !owner), "slots", "WARN",
            "\"fix\":\"run lapse doctor as a user with +cluster|nodes +cluster|countkeysinslot\"");
    cr_assert(!has(p, "--cluster fix"), "%s", p->out);
    expect(p, 0, NULL, "");

    tool_cluster_url(c, server_login());
    redis_do(c->nodes[!owner].server, "FLUSHALL");
    p = doctor("b");
    snprintf(text, sizeof text, "\"fix\":\"redis-cli --cluster fix 127.0.0.1:%d\"",
             port_of(c, !owner));
    says_of(p, port_of(c, !owner), "slots", "WARN", text);
    expect(p, 0, NULL, "");
    cluster_stop(c);
}

/* The user of users.md: it sees neither other masters' keys nor moves. */
Test(doctor_cluster, whose_queue_looks_like_half_gets_no_plain_fix_for_a_user_who_sees_too_little)
{
    struct cluster *c = tool_cluster(2, 0);
    int slot = cluster_slot_of_queue(c, "a");
    int owner = cluster_owner(c, c->nodes[0].server, slot);
    struct proc *p;

    put("a");
    part(c, slot, owner, !owner);
    as_user_of(c, ALL " -cluster +cluster|slots");
    p = doctor("a");
    cr_assert(!has(p, "--cluster fix"), "%s", p->out);
    says(p, "jobs", "FAIL",
         "\"fix\":\"run lapse doctor a as a user with +cluster|nodes +cluster|countkeysinslot; if "
         "no slot was being moved, lapse doctor a --repair --half\"");
    expect(p, 1, NULL, "");

    redis_do(c->nodes[!owner].server, "ACL SETUSER u +cluster|countkeysinslot +cluster|nodes");
    redis_do(c->nodes[owner].server, "ACL SETUSER u +cluster|nodes");
    p = doctor("a");
    cr_assert(!has(p, "--cluster fix"), "%s", p->out);
    says(p, "slots", "FAIL", "would be in the way; unknown is how many are on 127.0.0.1:");
    expect(p, 1, "\"fix\":\"run lapse doctor a as a user with +cluster|nodes", "");

    redis_do(c->nodes[owner].server, "CLUSTER SETSLOT %d MIGRATING %s", slot, c->nodes[!owner].id);
    p = doctor("a");
    cr_assert(!has(p, "--cluster fix"), "%s", p->out);
    says(p, "slots", "WARN", ", and unknown is how many on 127.0.0.1:");
    expect(p, 1, NULL, "");
    cluster_stop(c);
}

/* All slots of a master become another's: a new one that is to get some has none either. What the
 * old one has sent before may come late, and gives them back to it. */
static void take_all(const struct cluster *c, int from, int to)
{
    int first = CLUSTER_SLOTS * from / 3;
    int last = CLUSTER_SLOTS * (from + 1) / 3 - 1;
    int64_t deadline = test_now_ms() + PROC_WAIT_MS;
    bool done = false;

    redis_do(c->nodes[from].server, "CLUSTER DELSLOTSRANGE %d %d", first, last);
    while (!done) {
        cr_assert_lt(test_now_ms(), deadline);
        redis_do(c->nodes[to].server, "CLUSTER DELSLOTSRANGE %d %d", first, last);
        redisReply *r = redis_cmd(c->nodes[to].server, "CLUSTER ADDSLOTSRANGE %d %d", first, last);
        done = r->type == REDIS_REPLY_STATUS;
        freeReplyObject(r);
    }
    redis_do(c->nodes[to].server, "CLUSTER BUMPEPOCH");
    cluster_agrees(c, first, to);
    cluster_agrees(c, last, to);
}

/* CLUSTER SLOTS does not name it. It is the target when a cluster gets its fourth master. */
Test(doctor_cluster, of_which_a_master_has_no_slots_yet_asks_it_for_keys)
{
    struct cluster *c = tool_cluster(3, 0);
    int slot = cluster_slot_of_queue(c, "a");
    int owner = cluster_owner(c, c->nodes[0].server, slot);
    int other = (owner + 1) % 3;
    struct proc *p;

    take_all(c, other, owner);
    put("a");
    p = doctor("a");
    says(p, "cluster", "OK", "2 masters, 0 replicas, and each slot has a node");
    says_of(p, port_of(c, other), "master", "OK", "it has no slots yet");
    expect(p, 0, "1, each in one state", "");

    part(c, slot, owner, other);
    p = doctor("a");
    says(p, "slots", "FAIL", "keys of its slot");
    run_fix(c, "a", p->out, "slots");
    expect(p, 1, "a part of it is on another node: missing here is lapse:{a}:jobs", "");
    cluster_agrees(c, slot, other);
    expect(doctor("a"), 0, "1, each in one state", "");
    cluster_stop(c);
}

Test(doctor_cluster, of_which_a_master_without_slots_is_dead_says_that_it_may_have_keys)
{
    struct cluster *c = tool_cluster(3, 0);
    int owner = cluster_owner(c, c->nodes[0].server, cluster_slot_of_queue(c, "a"));
    int other = (owner + 1) % 3;
    struct proc *p;

    take_all(c, other, owner);
    break_off(c, "hset", schedule_x);
    server_kill9(c->nodes[other].server);
    p = doctor("a", "--repair");
    says_of(p, port_of(c, other), "master", "WARN",
            "it has no slots, but may have keys that were to move");
    expect(p, 1, "if no slot was being moved, lapse doctor a --repair --half", "");

    p = doctor("a", "--repair", "--half");
    says(p, "jobs", "WARN", "1 of them repaired");
    expect(p, 0, NULL, "");
    cluster_stop(c);
}

/* A doctor that has heard of node 0 what it says of the cluster and of itself, and waits for the
 * next node, which is stopped. */
static struct proc *doctor_that_waits(const struct cluster *c, const char *queue)
{
    static const char calls[] = "local text = redis.call('INFO', 'commandstats') "
                                "return tonumber(text:match('cluster|nodes:calls=(%d+)') or 0)";
    struct server *s = c->nodes[0].server;
    long long before = redis_int(s, "EVAL %s 0", calls);

    redis_do(s, "CONFIG SET cluster-node-timeout 60000"); /* it is not called dead meanwhile */
    server_signal(c->nodes[1].server, SIGSTOP);
    struct proc *p = lapse_start("doctor", "--json", queue);
    for (int64_t end_ms = test_now_ms() + 10000; redis_int(s, "EVAL %s 0", calls) < before + 2;) {
        cr_assert_lt(test_now_ms(), end_ms, "it does not ask");
        poll(NULL, 0, 2);
    }
    return p;
}

static void go_on(const struct cluster *c, struct proc *p)
{
    server_signal(c->nodes[1].server, SIGCONT);
    proc_wait(p, PROC_WAIT_MS);
}

Test(doctor_cluster, whose_slot_has_moved_meanwhile_has_its_queue_on_the_new_node)
{
    struct cluster *c = tool_cluster(3, 0);
    int slot = cluster_slot_of_queue(c, "b");
    char text[80];

    cr_assert_eq(cluster_owner(c, c->nodes[0].server, slot), 0);
    struct proc *p = doctor_that_waits(c, "b");
    redis_do(c->nodes[2].server, "CLUSTER SETSLOT %d NODE %s", slot, c->nodes[2].id);
    redis_do(c->nodes[0].server, "CLUSTER SETSLOT %d NODE %s", slot, c->nodes[2].id);
    go_on(c, p);
    snprintf(text, sizeof text, "127.0.0.1:%d\",\"queue\":\"b\",\"verdict\":\"OK\"", port_of(c, 2));
    cr_assert(has(p, text), "%s", p->out);
    expect(p, 0, NULL, "");
    cluster_stop(c);
}

/* What the nodes said of themselves is older than the keys that have moved since. */
Test(doctor_cluster, whose_slot_has_begun_to_move_meanwhile_has_no_keys_that_are_astray)
{
    struct cluster *c = tool_cluster(2, 0);
    int slot = cluster_slot_of_queue(c, "b");
    struct proc *p;
    char text[40];

    redis_do(c->nodes[1].server, "CLUSTER SETSLOT %d IMPORTING %s", slot, c->nodes[0].id);
    redis_do(c->nodes[1].server, "ASKING");
    redis_do(c->nodes[1].server, "SET lapse:{b}:t:moved x");
    p = doctor_that_waits(c, "b");
    redis_do(c->nodes[0].server, "CLUSTER SETSLOT %d MIGRATING %s", slot, c->nodes[1].id);
    go_on(c, p);
    snprintf(text, sizeof text, "open at this node: %d;", slot);
    says_of(p, port_of(c, 0), "slots", "WARN", text);
    cr_assert(!has(p, "are left on"), "%s", p->out);
    proc_free(p);
    cluster_stop(c);
}

Test(doctor_cluster, whose_slot_has_moved_to_a_replica_meanwhile_is_to_be_asked_again)
{
    struct cluster *c = tool_cluster(3, 1);
    struct proc *p = doctor_that_waits(c, "b");

    cluster_failover(c, 3);
    cluster_hands_over(c, 0, cluster_slot_of_queue(c, "b"), 3);
    go_on(c, p);
    expect(p, 1, "\"text\":\"cannot be looked at: its slot has just moved to a node that had none",
           "");
    cluster_stop(c);
}

/* There is room for one connection of doctor's, and not for that on which it waits for an event. */
Test(doctor_cluster, whose_master_takes_one_connection_only_is_looked_at)
{
    struct cluster *c = tool_cluster(2, 0);
    long long n = redis_int(c->nodes[1].server, "EVAL %s 0",
                            "local text, n = redis.call('INFO', 'clients'), 0 "
                            "for name in string.gmatch('connected_clients cluster_connections', "
                            "'%S+') do n = n + tonumber(text:match(name .. ':(%d+)')) end "
                            "return n");
    struct proc *p;

    redis_do(c->nodes[1].server, "CONFIG SET maxclients %lld", n + 1);
    p = doctor("a");
    says_of(p, port_of(c, 1), "events", "WARN", "cannot be tested: ");
    cr_assert(!has(p, "cannot be reached"), "%s", p->out);
    expect(p, 0, "\"text\":\"0, each in one state\"", "");
    cluster_stop(c);
}

Test(doctor_cluster, whose_clocks_are_apart_is_warned_of)
{
    struct cluster *c = tool_cluster(2, 0);
    char path[CLOCK_PATH];
    char text[120];

    struct wall_clock *clock = clock_begin(path);
    clock->step_us = 200000;
    server_restart(c->nodes[1].server);
    clock_not_for_others();
    snprintf(text, sizeof text, "that of 127.0.0.1:%d is 0.", port_of(c, 1));
    finds(doctor("q"), -1, "clock", "WARN", text);
    snprintf(text, sizeof text, " s ahead of that of 127.0.0.1:%d: due jobs go by", port_of(c, 0));
    finds(doctor("q"), -1, "clock", "WARN", text);
    cluster_stop(c);
    clock_end(clock, path);
}

/* A user who may not ask the cluster about itself hears of what it may see. */
Test(doctor_cluster, of_which_this_user_may_not_see_all_is_looked_at_as_far_as_it_may)
{
    struct cluster *c = tool_cluster(2, 0);
    struct proc *p;

    put("a");
    as_user_of(c, ALL " -cluster +cluster|slots");
    p = doctor();
    cr_assert(has(p, "\"text\":\"unknown: this user may not run CLUSTER INFO\""), "%s", p->out);
    cr_assert_eq(count_of(p->out, "keys of slots of others are left on it: NOPERM"), 1, "%s",
                 p->out);
    expect(p, 0, "1, each in one state", "");

    for (int i = 0; i < c->n; i++) {
        redis_do(c->nodes[i].server, "ACL SETUSER u -scan");
    }
    expect(doctor(), 0, "\"check\":\"queues\",\"server\":", "");
    expect(doctor("a"), 0, "1, each in one state", "");

    redis_do(c->nodes[1].server, "ACL SETUSER u -cluster");
    p = doctor("a");
    says_of(p, port_of(c, 1), "rights", "FAIL", "user u lacks +cluster|slots");
    expect(p, 1, NULL, "");
    cluster_stop(c);
}

/* That is no cluster that cannot be reached, and another URL would not help. */
Test(doctor_cluster, that_refuses_this_user_was_reached)
{
    struct cluster *c = tool_cluster(2, 0);
    struct proc *p;

    as_user_of(c, ALL " -cluster");
    p = doctor("a");
    cr_assert(strstr(p->err, ": this user lacks +cluster|slots: NOPERM "), "%s", p->err);
    cr_assert(!strstr(p->err, "set its URL"), "%s", p->err);
    expect(p, 77, "", "the cluster refuses this user: redis+cluster://");

    tool_cluster_url(c, "u:wrong@");
    p = doctor("a");
    cr_assert(!strstr(p->err, "set its URL"), "%s", p->err);
    expect(p, 77, "", ": AUTH: WRONGPASS ");
    cluster_stop(c);
}

Test(doctor_cluster, is_not_what_a_single_redis_or_a_url_without_hosts_is)
{
    struct server *s = server_start_tcp(NULL);
    char url[80];

    snprintf(url, sizeof url, "redis+cluster://127.0.0.1:%d", s->port);
    expect(lapse("-u", url, "doctor"), 69, "", "it is no node of a cluster: give redis://");
    server_stop(s);
}

/* Each is an answer to CLUSTER SLOTS. */
Test(doctor_cluster, that_answers_nonsense_is_not_looked_at)
{
    static const struct {
        const char *reply, *says;
    } rows[] = {
        {"*0\r\n", "it knows no node that has slots"},
        {"+OK\r\n", "makes no sense"},
        {"*1\r\n:1\r\n", "makes no sense"},
        {"*1\r\n*2\r\n:0\r\n:1\r\n", "makes no sense"},
        {"*1\r\n*3\r\n:0\r\n:16384\r\n*3\r\n$1\r\nh\r\n:1\r\n$1\r\ni\r\n", "makes no sense"},
        {"*1\r\n*3\r\n:-1\r\n:1\r\n*3\r\n$1\r\nh\r\n:1\r\n$1\r\ni\r\n", "makes no sense"},
        {"*1\r\n*3\r\n:0\r\n:1\r\n:5\r\n", "makes no sense"},
        {"*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$1\r\nh\r\n:1\r\n", "makes no sense"},
        {"*1\r\n*3\r\n:0\r\n:1\r\n*3\r\n$1\r\nh\r\n:65536\r\n$1\r\ni\r\n", "makes no sense"},
        {"*1\r\n*3\r\n:0\r\n:1\r\n*3\r\n$1\r\nh\r\n:1\r\n:5\r\n", "makes no sense"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct scripted_server *f = scripted_server_start_tcp(rows[i].reply, strlen(rows[i].reply));
        char url[80];
        snprintf(url, sizeof url, "redis+cluster://127.0.0.1:%d", f->port);
        expect(lapse("-u", url, "doctor", "q"), 69, "", rows[i].says);
        scripted_server_stop(f);
    }
}
