/* SPDX-License-Identifier: MIT */
/* A cluster by its URL: each master in turn, with the queues that it has; each replica, as what it
 * would be if it took its master's place; and what only all of them together show. */
#include "doctor/ask.h"
#include "doctor/checks.h"
#include "doctor/members.h"
#include "doctor/report.h"
#include "doctor/visit.h"
#include "cli/message.h"
#include "job/keys.h"
#include "redis/redis_error.h"
#include "redis/slot.h"
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLOCKS_APART_US = 100000, PROBES = 2000 };

bool member_is_master(const struct member *m)
{
    return m->node->master < 0;
}

bool member_has_slots(const struct member *m)
{
    return m->node->n_slots > 0;
}

redisReply *member_ask(struct member *m, int argc, const char *const *argv)
{
    redisReply *r = m->reached ? redis_sync_command(&m->redis, argc, argv, NULL) : NULL;

    m->reached = r != NULL;
    return r;
}

/* ---- connections ---- */
static void report_unreached(struct doctor *d, const struct member *m, int code)
{
    struct finding f = {.at = m->node->place, .check = "replica", .verdict = WARN};

    if (member_is_master(m)) {
        f.check = "master";
        f.verdict = member_has_slots(m) ? FAIL : WARN;
    }
    if (code == DENIED) {
        f.verdict = FAIL;
        report(d, f, "it does not let this user in: %s; users are not replicated",
               printable(m->redis.why));
    } else if (!member_has_slots(m) && member_is_master(m)) {
        report(d, f, "cannot be reached: %s; it has no slots, but may have keys that were to move",
               printable(m->redis.why));
    } else if (member_is_master(m)) {
        report(d, f, "cannot be reached: %s; the queues of its %u slots wait",
               printable(m->redis.why), m->node->n_slots);
    } else {
        report(d, f, "cannot be reached: %s", printable(m->redis.why));
    }
}

/* "[5461->-ID]" is a slot that moves from it to another, "[5461-<-ID]" one that comes. */
void member_read(struct member *m)
{
    freeReplyObject(m->nodes);
    m->nodes = member_ask(m, 2, (const char *[]){"CLUSTER", "NODES"});

    char *at = is_text(m->nodes) ? strstr(m->nodes->str, "myself") : NULL;
    if (at) {
        at[strcspn(at, "\n")] = '\0';
    }
    m->self = at ? at : "";
}

static void connect_all(struct members *all)
{
    for (int i = 0; i < all->c->n && !all->d->code; i++) {
        struct member *m = &all->v[i];
        int code;

        m->node = &all->c->nodes[i];
        code = cluster_sync_connect(all->c, i, &m->redis);
        m->reached = code == 0;
        if (code) {
            report_unreached(all->d, m, code);
        }
        member_read(m);
    }
}

static void disconnect_all(struct members *all)
{
    for (int i = 0; i < all->c->n; i++) {
        redis_sync_close(&all->v[i].redis);
        freeReplyObject(all->v[i].nodes);
    }
    for (int i = 0; i < all->n_homes; i++) {
        free(all->homes[i].fix);
    }
    free(all->v);
    free(all->homes);
}

/* ---- queues ---- */
static void find_queues_of(struct doctor *d, struct member *m)
{
    struct redis_sync before = d->redis;

    d->redis = m->redis;
    d->at = m->node->place;
    find_queues(d);
    m->redis = d->redis;
    d->redis = before;
    d->at = NULL;
    if (d->code == DOWN) {
        d->code = 0;
        m->reached = false;
        report_unreached(d, m, DOWN);
    }
}

static unsigned slot_of(const struct doctor *d, const char *queue)
{
    char key[KEYS_MAX];

    keys_of(key, d->space, queue, KEYS_DUE);
    return slot_of_key(span_of(key));
}

/* The node that an error of this one names; -1: none that is known. */
static int find_named(const struct cluster_sync *c, const struct cluster_node *asked,
                      const char *error)
{
    struct slot_place place = {.port = asked->port};
    struct slot_redirect named;

    snprintf(place.host, sizeof place.host, "%.253s", asked->host);
    if (!slot_redirect_read(&named, span_of(error), &place)) {
        return -1;
    }

    for (int i = 0; i < c->n; i++) {
        if (c->nodes[i].port == named.place.port &&
            strcmp(c->nodes[i].host, named.place.host) == 0) {
            return i;
        }
    }
    return -1;
}

/* The owner by CLUSTER SLOTS is asked for what every user may ask: it names another one if the slot
 * has moved since. */
static int ask_for_owner(struct members *all, const char *queue, int owner)
{
    char key[KEYS_MAX];

    keys_of(key, all->d->space, queue, KEYS_DUE);
    redisReply *r = member_ask(&all->v[owner], 2, (const char *[]){"ZCARD", key});
    if (r && is_error(r) && redis_error_of(span_of(r->str)) == REDIS_ERROR_MOVED) {
        owner = find_named(all->c, all->v[owner].node, r->str);
    }
    freeReplyObject(r);
    return owner;
}

void home_find(struct members *all, struct home *h)
{
    h->slot = slot_of(all->d, h->queue);
    h->owner = all->c->owners[h->slot] - 1;
    if (h->owner < 0) {
        h->why = "no node has its slot";
        return;
    }

    h->owner = ask_for_owner(all, h->queue, h->owner);
    if (h->owner < 0 || !member_has_slots(&all->v[h->owner])) {
        h->owner = -1;
        h->why = "its slot has just moved to a node that had none: run doctor again";
    } else if (!all->v[h->owner].reached) {
        h->owner = -1;
        h->why = "the master of its slot cannot be reached";
    }
}

static void report_homeless(const struct members *all)
{
    for (int i = 0; i < all->d->queues.n; i++) {
        struct finding f = {.check = "jobs", .queue = all->d->queues.names[i], .verdict = FAIL};
        if (all->homes[i].owner < 0) {
            report(all->d, f, "cannot be looked at: %s", all->homes[i].why);
        }
    }
}

static void find_homes(struct members *all)
{
    struct doctor *d = all->d;

    for (int i = 0; i < all->c->n && !d->queues_named && !d->code; i++) {
        if (all->v[i].reached && member_is_master(&all->v[i])) {
            find_queues_of(d, &all->v[i]);
        }
    }

    all->homes = calloc((size_t)d->queues.n + 1, sizeof *all->homes);
    if (!all->homes) {
        message_print("out of memory");
        d->code = INTERNAL;
    }
    for (int i = 0; i < d->queues.n && !d->code; i++) {
        struct home *h = &all->homes[all->n_homes++];
        h->queue = d->queues.names[i];
        home_find(all, h);
        look_for_keys_astray(all, h);
    }
    if (!d->code) {
        report_homeless(all);
    }
}

/* ---- masters ---- */
/* Those of its queues that can be looked at: what is left of one that is astray would be repaired
 * into the way of the rest. */
static bool queues_of(const struct members *all, int master, struct queues *own)
{
    const struct queues *queues = &all->d->queues;

    for (int i = 0; i < queues->n; i++) {
        const struct home *h = &all->homes[i];
        bool looked_at = !h->astray || !all->d->repair || all->d->half;
        if (h->owner == master && looked_at &&
            !queues_add(own, queues->names[i], strlen(queues->names[i]))) {
            return false;
        }
    }
    return true;
}

/* The name of a queue that nobody uses, and would be on this master; "": none was found. */
static void find_own_queue(const struct members *all, int master, char queue[40])
{
    for (int i = 0; i < PROBES; i++) {
        snprintf(queue, 40, "lapse-doctor-%d", i);
        if (all->c->owners[slot_of(all->d, queue)] == master + 1) {
            return;
        }
    }
    *queue = '\0';
}

/* A connection that is lost ends the checks of this node alone. */
static void report_visit(struct doctor *d, struct member *m, int code, unsigned n_bad,
                         const char *fine)
{
    struct finding f = {.at = m->node->place, .check = member_is_master(m) ? "master" : "replica"};

    if (code == DOWN) {
        m->reached = false;
        report_unreached(d, m, DOWN);
    } else if (code) {
        d->code = code;
    } else if (d->n_verdicts[WARN] + d->n_verdicts[FAIL] == n_bad) {
        report(d, f, "%s", fine);
    }
}

static void look_at_master(struct members *all, int i)
{
    struct doctor *d = all->d;
    struct member *m = &all->v[i];
    struct queues own = {.n = 0};
    struct visit v;
    unsigned n_bad = d->n_verdicts[WARN] + d->n_verdicts[FAIL];
    char own_queue[40];
    char fine[120];

    find_own_queue(all, i, own_queue);
    if (!m->reached || !queues_of(all, i, &own)) {
        report_visit(d, m, m->reached ? INTERNAL : DOWN, n_bad, "");
        queues_free(&own);
        return;
    }

    visit_begin(&v, d, &m->redis, m->node->place);
    d->queues = own;
    d->own_queue = *own_queue ? own_queue : NULL;
    check_all(d);
    m->has_clock = d->has_clock;
    m->ahead_us = d->ahead_us;
    int code = visit_end(&v, d, &m->redis);

    snprintf(fine, sizeof fine, "%u slots, %d queues, %u replicas", m->node->n_slots, own.n,
             m->node->n_replicas);
    report_visit(d, m, code, n_bad, fine);
    queues_free(&own);
}

/* It was asked for keys, and nobody uses it yet. */
static void report_unused(struct doctor *d, const struct member *m)
{
    report(d, (struct finding){.at = m->node->place, .check = "master"}, "it has no slots yet");
}

/* ---- replicas ---- */
static void look_at_replica(struct members *all, int i)
{
    struct doctor *d = all->d;
    struct member *m = &all->v[i];
    struct visit v;
    unsigned n_bad = d->n_verdicts[WARN] + d->n_verdicts[FAIL];

    visit_begin(&v, d, &m->redis, m->node->place);
    d->is_replica = true;
    m->has_clock = measure_clock(d, &m->ahead_us);
    if (!d->code) {
        check_rights(d);
        check_flags(d);
        check_memory(d);
        check_persistence(d);
        check_node_settings(d);
    }
    int code = visit_end(&v, d, &m->redis);

    report_visit(d, m, code, n_bad, "fit to become the master");
}

/* ---- all together ---- */
static void report_slots(struct members *all)
{
    struct finding f = {.check = "cluster"};
    int n_masters = 0;
    int n_replicas = 0;
    int n_unowned = 0;

    for (int i = 0; i < all->c->n; i++) {
        n_masters += all->c->nodes[i].n_slots > 0 ? 1 : 0;
        n_replicas += all->c->nodes[i].master >= 0 ? 1 : 0;
    }
    for (int slot = 0; slot < SLOT_COUNT; slot++) {
        n_unowned += all->c->owners[slot] == 0 ? 1 : 0;
    }

    if (n_unowned > 0) {
        f.verdict = FAIL;
        f.fix = "redis-cli --cluster fix HOST:PORT";
        report(all->d, f, "%d of %d slots have no node: their queues cannot be used", n_unowned,
               SLOT_COUNT);
    } else {
        report(all->d, f, "%d masters, %d replicas, and each slot has a node", n_masters,
               n_replicas);
    }
}

static void report_clocks(struct members *all)
{
    struct finding f = {.check = "clock"};
    const struct member *first = NULL;
    const struct member *last = NULL;

    for (int i = 0; i < all->c->n; i++) {
        const struct member *m = &all->v[i];
        if (m->has_clock && (!first || m->ahead_us > first->ahead_us)) {
            first = m;
        }
        if (m->has_clock && (!last || m->ahead_us < last->ahead_us)) {
            last = m;
        }
    }
    if (!first || !last) {
        return;
    }

    int64_t apart_us = first->ahead_us - last->ahead_us;
    if (apart_us > CLOCKS_APART_US) {
        f.verdict = WARN;
        f.fix = "timedatectl set-ntp true, on all machines";
        report(all->d, f,
               "that of %s is %.3f s ahead of that of %s: due jobs go by that of their master, "
               "which after a failover is another",
               first->node->place, (double)apart_us / 1e6, last->node->place);
    } else {
        report(all->d, f, "those of all nodes are within %.1f ms", (double)apart_us / 1e3);
    }
}

void check_nodes(struct doctor *d)
{
    struct members all = {.d = d, .c = d->cluster};

    all.v = calloc((size_t)d->cluster->n, sizeof *all.v);
    if (!all.v) {
        message_print("out of memory");
        d->code = INTERNAL;
        return;
    }

    d->is_cluster = true;
    d->members = &all;
    report_slots(&all);
    connect_all(&all);
    find_homes(&all);
    for (int i = 0; i < all.c->n && !d->code; i++) {
        if (all.v[i].reached && member_has_slots(&all.v[i])) {
            look_at_master(&all, i);
        } else if (all.v[i].reached && member_is_master(&all.v[i])) {
            report_unused(d, &all.v[i]);
        }
    }
    for (int i = 0; i < all.c->n && !d->code; i++) {
        if (all.v[i].reached && !member_is_master(&all.v[i])) {
            look_at_replica(&all, i);
        }
    }
    report_clocks(&all);
    d->members = NULL;
    disconnect_all(&all);
}
