/* SPDX-License-Identifier: MIT */
/* A cluster by its URL: each master in turn, with the queues that it has; each replica, as what it
 * would be if it took its master's place; and what only all of them together show. */
#include "doctor/ask.h"
#include "doctor/checks.h"
#include "doctor/report.h"
#include "doctor/visit.h"
#include "cli/message.h"
#include "client/cluster_sync.h"
#include "job/keys.h"
#include "redis/redis_error.h"
#include "redis/slot.h"
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLOCKS_APART_US = 100000, PROBES = 2000 };

/* A node, and what was heard of it. */
struct member {
    const struct cluster_node *node;
    struct redis_sync redis;
    bool reached;
    redisReply *nodes; /* what it says to CLUSTER NODES; NULL: nothing */
    const char *self;  /* its own line of that; "": there is none */
    int64_t ahead_us;
    bool has_clock;
    bool keys_unknown; /* it does not say which keys it has, and that was reported */
};

/* A queue, and where it is. */
struct home {
    unsigned slot;
    int owner;       /* -1: none that can be asked */
    const char *why; /* of that */
    bool astray;     /* keys of it are elsewhere, and its owner does not know, or may be */
};

struct members {
    struct doctor *d;
    const struct cluster_sync *c;
    struct member *v;   /* as the nodes of c */
    struct home *homes; /* as d->queues */
};

static bool is_master(const struct member *m)
{
    return m->node->master < 0;
}

static redisReply *ask_member(struct member *m, int argc, const char *const *argv)
{
    redisReply *r = m->reached ? redis_sync_command(&m->redis, argc, argv, NULL) : NULL;

    m->reached = r != NULL;
    return r;
}

/* ---- connections ---- */
static void report_unreached(struct doctor *d, const struct member *m, int code)
{
    struct finding f = {.at = m->node->place, .check = "replica", .verdict = WARN};

    if (is_master(m)) {
        f.check = "master";
        f.verdict = FAIL;
    }
    if (code == DENIED) {
        f.verdict = FAIL;
        report(d, f, "it does not let this user in: %s; users are not replicated",
               printable(m->redis.why));
    } else if (is_master(m)) {
        report(d, f, "cannot be reached: %s; the queues of its %u slots wait",
               printable(m->redis.why), m->node->n_slots);
    } else {
        report(d, f, "cannot be reached: %s", printable(m->redis.why));
    }
}

/* "[5461->-ID]" is a slot that moves from it to another, "[5461-<-ID]" one that comes. */
static void read_self(struct member *m)
{
    freeReplyObject(m->nodes);
    m->nodes = ask_member(m, 2, (const char *[]){"CLUSTER", "NODES"});

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
        read_self(m);
    }
}

static void disconnect_all(struct members *all)
{
    for (int i = 0; i < all->c->n; i++) {
        redis_sync_close(&all->v[i].redis);
        freeReplyObject(all->v[i].nodes);
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
    redisReply *r = ask_member(&all->v[owner], 2, (const char *[]){"ZCARD", key});
    if (r && is_error(r) && redis_error_of(span_of(r->str)) == REDIS_ERROR_MOVED) {
        owner = find_named(all->c, all->v[owner].node, r->str);
    }
    freeReplyObject(r);
    return owner;
}

static struct home find_home(struct members *all, const char *queue)
{
    struct home h = {.slot = slot_of(all->d, queue)};

    h.owner = all->c->owners[h.slot] - 1;
    if (h.owner < 0) {
        h.why = "no node has its slot";
        return h;
    }

    h.owner = ask_for_owner(all, queue, h.owner);
    if (h.owner < 0 || !is_master(&all->v[h.owner])) {
        h.owner = -1;
        h.why = "its slot has just moved to a node that was no master: run doctor again";
    } else if (!all->v[h.owner].reached) {
        h.owner = -1;
        h.why = "the master of its slot cannot be reached";
    }
    return h;
}

/* ---- keys that are where no move explains it ---- */
/* -1: it does not say; why then says why. */
static int64_t count_keys(struct member *m, unsigned slot, char why[REDIS_WHY])
{
    char number[16];
    int64_t n = -1;

    snprintf(number, sizeof number, "%u", slot);
    redisReply *r = ask_member(m, 3, (const char *[]){"CLUSTER", "COUNTKEYSINSLOT", number});
    if (r && r->type == REDIS_REPLY_INTEGER) {
        n = r->integer;
    }
    snprintf(why, REDIS_WHY, "%s", r && is_error(r) ? r->str : m->redis.why);
    freeReplyObject(r);
    return n;
}

/* Is the slot open there, in this direction? */
static bool is_open(const struct member *m, unsigned slot, const char *direction)
{
    char text[24];

    snprintf(text, sizeof text, "[%u-%s-", slot, direction);
    return strstr(m->self, text) != NULL;
}

static void report_astray(struct doctor *d, const char *queue, const struct home *h,
                          const struct member *owner, const struct member *other, int64_t n)
{
    struct finding f = {.check = "slots", .queue = queue, .verdict = FAIL};
    const struct cluster_node *at = other->node;
    char fix[900];
    bool is_safe = is_shell_safe(at->host, "") && is_shell_safe(owner->node->id, "");

    f.fix = fix;
    if (!is_safe) {
        snprintf(fix, sizeof fix, "redis-cli --cluster fix HOST:PORT");
    } else if (is_open(other, h->slot, "<")) {
        snprintf(fix, sizeof fix, "redis-cli --cluster fix %s:%d", at->host, at->port);
    } else {
        snprintf(fix, sizeof fix,
                 "redis-cli -h %s -p %d CLUSTER SETSLOT %u IMPORTING %s; "
                 "redis-cli --cluster fix %s:%d",
                 at->host, at->port, h->slot, owner->node->id, at->host, at->port);
    }
    report(d, f,
           "%" PRId64
           " keys of its slot %u are left on %s, and its owner, %s, knows of no move: it "
           "looks new there, or is half a queue; stop who uses it, for what they make there "
           "would be in the way",
           n, h->slot, at->place, owner->node->place);
}

/* A repair of what is left of a queue would be in the way of the rest: one of which it is not known
 * whether it is whole is left alone. */
static void doubt(struct members *all, int queue, const struct member *other, const char *why)
{
    const char *name = all->d->queues.names[queue];
    struct home *h = &all->homes[queue];
    struct finding f = {.check = "slots", .queue = name, .verdict = FAIL};
    char fix[QUEUE_LEN + 80];

    if (h->astray || !all->d->repair || all->d->half) {
        return;
    }

    h->astray = true;
    snprintf(fix, sizeof fix, "if no slot was being moved, lapse doctor %s --repair --half", name);
    f.fix = fix;
    report(all->d, f, "is not repaired: unknown is whether keys of its slot %u are left on %s: %s",
           h->slot, other->node->place, printable(why));
}

static void report_keys_unknown(struct doctor *d, struct member *m, const char *why)
{
    struct finding f = {.at = m->node->place, .check = "slots", .verdict = WARN};

    if (m->reached && !m->keys_unknown) {
        m->keys_unknown = true;
        report(d, f, "unknown is whether keys of slots of others are left on it: %s",
               printable(why));
    }
}

/* A move may have begun, or ended, since the nodes were asked what they say of themselves. */
static bool has_moved_meanwhile(struct members *all, int queue, struct member *other)
{
    struct home *h = &all->homes[queue];
    bool was_astray = h->astray;
    int owner = h->owner;

    read_self(&all->v[owner]);
    read_self(other);
    *h = find_home(all, all->d->queues.names[queue]);
    h->astray = was_astray;
    return h->owner != owner || is_open(&all->v[owner], h->slot, ">");
}

static void look_for_keys_on(struct members *all, int queue, struct member *m)
{
    struct home *h = &all->homes[queue];
    const struct member *owner = &all->v[h->owner];
    char why[REDIS_WHY];
    int64_t n = count_keys(m, h->slot, why);

    if (n < 0) {
        report_keys_unknown(all->d, m, why);
        doubt(all, queue, m, why);
    } else if (n > 0 && !*owner->self) {
        doubt(all, queue, m, "they may be on their way, for CLUSTER NODES is refused");
    } else if (n > 0 && !is_open(owner, h->slot, ">") && !has_moved_meanwhile(all, queue, m)) {
        h->astray = true;
        report_astray(all->d, all->d->queues.names[queue], h, owner, m, n);
    }
}

static void look_for_keys_astray(struct members *all, int queue)
{
    const struct home *h = &all->homes[queue];

    for (int i = 0; i < all->c->n && h->owner >= 0; i++) {
        if (i != h->owner && is_master(&all->v[i])) {
            look_for_keys_on(all, queue, &all->v[i]);
        }
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
        if (all->v[i].reached && is_master(&all->v[i])) {
            find_queues_of(d, &all->v[i]);
        }
    }

    all->homes = calloc((size_t)d->queues.n + 1, sizeof *all->homes);
    if (!all->homes) {
        message_print("out of memory");
        d->code = INTERNAL;
    }
    for (int i = 0; i < d->queues.n && !d->code; i++) {
        all->homes[i] = find_home(all, d->queues.names[i]);
        look_for_keys_astray(all, i);
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
    struct finding f = {.at = m->node->place, .check = is_master(m) ? "master" : "replica"};

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
    int n_unowned = 0;

    for (int i = 0; i < all->c->n; i++) {
        n_masters += all->c->nodes[i].master < 0 ? 1 : 0;
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
               all->c->n - n_masters);
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
    if (!first) {
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
    report_slots(&all);
    connect_all(&all);
    find_homes(&all);
    for (int i = 0; i < all.c->n && !d->code; i++) {
        if (all.v[i].reached && is_master(&all.v[i])) {
            look_at_master(&all, i);
        }
    }
    for (int i = 0; i < all.c->n && !d->code; i++) {
        if (all.v[i].reached && !is_master(&all.v[i])) {
            look_at_replica(&all, i);
        }
    }
    report_clocks(&all);
    disconnect_all(&all);
}
