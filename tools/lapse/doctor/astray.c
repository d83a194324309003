/* SPDX-License-Identifier: MIT */
/* Keys of a queue that other masters than its owner have.
 *
 * Where both have some, redis-cli --cluster fix makes that one the owner which has more. The other
 * one deletes what it has if it hears of the new owner before redis-cli has told it (Redis 7.0 to
 * 8.0: clusterUpdateSlotsConfigWith()). It does not if the slot is not its own, and it takes no
 * owner from others while it imports the slot: so both are done first. */
#include "doctor/ask.h"
#include "doctor/checks.h"
#include "doctor/members.h"
#include "doctor/report.h"
#include "cli/message.h"
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLACE_TEXT = CLUSTER_PLACE + 160 };

/* -1: it does not say; why then says why. */
static int64_t count_keys(struct member *m, unsigned slot, char why[REDIS_WHY])
{
    char number[16];
    int64_t n = -1;

    snprintf(number, sizeof number, "%u", slot);
    redisReply *r = member_ask(m, 3, (const char *[]){"CLUSTER", "COUNTKEYSINSLOT", number});
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

static bool is_safe(const struct cluster_node *node)
{
    return is_shell_safe(node->host, ":") && is_shell_safe(node->id, "");
}

static bool all_masters_reached(const struct members *all)
{
    for (int i = 0; i < all->c->n; i++) {
        if (member_is_master(&all->v[i]) && !all->v[i].reached) {
            return false;
        }
    }
    return true;
}

static bool may_ask_all(const struct members *all)
{
    for (int i = 0; i < all->c->n; i++) {
        const struct member *m = &all->v[i];
        if (member_is_master(m) && (!*m->self || m->keys_unknown)) {
            return false;
        }
    }
    return all->c->knows_masters;
}

/* What to do where it is not known which masters have keys. queue: "" for all. A master that was
 * replaced, and does not come back, is one of the cluster until it is forgotten. */
static void find_out(const struct members *all, const char *queue, char fix[FIX_TOGETHER])
{
    const char *space = *queue ? " " : "";

    if (!all_masters_reached(all)) {
        snprintf(fix, FIX_TOGETHER,
                 "start the masters that cannot be reached or, if one is gone for good, run "
                 "CLUSTER FORGET with its id on every node; then run lapse doctor%s%s again",
                 space, queue);
    } else if (!may_ask_all(all)) {
        snprintf(fix, FIX_TOGETHER,
                 "run lapse doctor%s%s as a user with +cluster|nodes +cluster|countkeysinslot",
                 space, queue);
    } else {
        snprintf(fix, FIX_TOGETHER, "run lapse doctor%s%s again", space, queue);
    }
}

/* The command that brings the keys together; "": none can be named. n_own: how many the owner has.
 * redis-cli does nothing while a master is away, and the slot would be without an owner until it is
 * back. */
static void together(const struct members *all, const struct home *h, const struct member *other,
                     int64_t n_own, char fix[FIX_TOGETHER])
{
    const struct cluster_node *own = all->v[h->owner].node;
    const struct cluster_node *at = other->node;

    *fix = '\0';
    if (n_own < 0 || !all_masters_reached(all)) {
        find_out(all, h->queue, fix);
    } else if (!is_safe(own) || !is_safe(at)) {
        if (n_own == 0) {
            snprintf(fix, FIX_TOGETHER, "redis-cli --cluster fix HOST:PORT");
        }
    } else if (n_own > 0) {
        snprintf(fix, FIX_TOGETHER,
                 "redis-cli -h %s -p %d CLUSTER DELSLOTS %u; "
                 "redis-cli -h %s -p %d CLUSTER SETSLOT %u IMPORTING %s; "
                 "redis-cli --cluster fix %s:%d",
                 own->host, own->port, h->slot, own->host, own->port, h->slot, at->id, at->host,
                 at->port);
    } else if (is_open(other, h->slot, "<")) {
        snprintf(fix, FIX_TOGETHER, "redis-cli --cluster fix %s:%d", at->host, at->port);
    } else {
        snprintf(fix, FIX_TOGETHER,
                 "redis-cli -h %s -p %d CLUSTER SETSLOT %u IMPORTING %s; "
                 "redis-cli --cluster fix %s:%d",
                 at->host, at->port, h->slot, own->id, at->host, at->port);
    }
}

/* Keeps the command for what else is found of the queue. */
static void keep_fix(struct home *h, const char *fix)
{
    if (!h->fix) {
        h->fix = strdup(fix);
    }
}

/* What there is to do for a queue of which another master has keys. */
struct plan {
    int64_t n_own; /* how many the owner has; -1: why says why that is not known */
    char why[REDIS_WHY];
    char fix[FIX_TOGETHER];
    char cost[PLACE_TEXT]; /* what is to be known before the command is run, or "" */
};

static void plan_make(struct plan *p, const struct members *all, const struct home *h,
                      const struct member *other)
{
    struct member *owner = &all->v[h->owner];

    p->n_own = count_keys(owner, h->slot, p->why);
    owner->keys_unknown |= p->n_own < 0;
    together(all, h, other, p->n_own, p->fix);
    p->cost[0] = '\0';
    if (strstr(p->fix, "DELSLOTS")) {
        snprintf(p->cost, sizeof p->cost,
                 "; until the commands have ended the slot has no owner, and with "
                 "cluster-require-full-coverage yes %s refuses all of its queues",
                 owner->node->place);
    }
}

static const char *plan_fix(const struct plan *p)
{
    return *p->fix ? p->fix : NULL;
}

static void report_astray(struct members *all, struct home *h, const struct member *other,
                          int64_t n)
{
    const struct member *owner = &all->v[h->owner];
    struct finding f = {.check = "slots", .queue = h->queue, .verdict = FAIL};
    struct plan p;
    char unknown[PLACE_TEXT + REDIS_WHY] = "";

    plan_make(&p, all, h, other);
    if (p.n_own < 0) {
        snprintf(unknown, sizeof unknown, "; unknown is how many are on %s: %s", owner->node->place,
                 printable(p.why));
    }
    keep_fix(h, p.fix);
    h->astray = true;
    h->rest = REST_ELSEWHERE;
    f.fix = plan_fix(&p);
    report(all->d, f,
           "%" PRId64
           " keys of its slot %u are left on %s, and its owner, %s, knows of no move: it "
           "looks new there, or is half a queue; stop who uses it, for what they make there "
           "would be in the way%s%s",
           n, h->slot, other->node->place, owner->node->place, p.cost, unknown);
}

/* Of the rest of a queue it is not known where it is; what was found stays found. */
static void be_unsure(struct home *h)
{
    if (h->rest != REST_ELSEWHERE) {
        h->rest = REST_UNKNOWN;
    }
}

/* Where only one of both has keys, the command of the slot's own line is as good. */
static void report_moving(struct members *all, struct home *h, const struct member *other,
                          int64_t n)
{
    const struct member *owner = &all->v[h->owner];
    struct finding f = {.check = "slots", .queue = h->queue, .verdict = WARN};
    struct plan p;

    be_unsure(h);
    plan_make(&p, all, h, other);
    if (p.n_own == 0) {
        return;
    }

    keep_fix(h, p.fix);
    f.fix = plan_fix(&p);
    if (p.n_own > 0) {
        report(all->d, f,
               "its slot %u moves: %" PRId64 " keys are on %s, and %" PRId64
               " on %s; if the move has broken off, finish it%s",
               h->slot, p.n_own, owner->node->place, n, other->node->place, p.cost);
    } else {
        report(all->d, f,
               "its slot %u moves: %" PRId64 " keys are on %s, and unknown is how many on %s: %s",
               h->slot, n, other->node->place, owner->node->place, printable(p.why));
    }
}

/* A repair of what is left of a queue would be in the way of the rest: one of which it is not known
 * whether it is whole is left alone. A master without slots that is dead may never come back, and
 * as a rule it was replaced by one that has all of it. */
static void doubt(struct members *all, struct home *h, const struct member *other, const char *why)
{
    struct finding f = {.check = "slots", .queue = h->queue, .verdict = FAIL};
    char fix[QUEUE_LEN + 80];

    bool may_go_on = !other->reached && !member_has_slots(other);

    be_unsure(h);
    if (h->astray || !all->d->repair || all->d->half || may_go_on) {
        return;
    }

    h->astray = true;
    snprintf(fix, sizeof fix, "if no slot was being moved, lapse doctor %s --repair --half",
             h->queue);
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
static bool has_moved_meanwhile(struct members *all, struct home *h, struct member *other)
{
    int owner = h->owner;

    member_read(&all->v[owner]);
    member_read(other);
    home_find(all, h);
    return h->owner != owner || is_open(&all->v[owner], h->slot, ">");
}

static void look_for_keys_on(struct members *all, struct home *h, struct member *m)
{
    const struct member *owner = &all->v[h->owner];
    char why[REDIS_WHY];
    int64_t n = count_keys(m, h->slot, why);

    if (n < 0) {
        report_keys_unknown(all->d, m, why);
        doubt(all, h, m, why);
    } else if (n > 0 && !*owner->self) {
        doubt(all, h, m, "they may be on their way, for CLUSTER NODES is refused");
    } else if (n > 0 && is_open(owner, h->slot, ">")) {
        report_moving(all, h, m, n);
    } else if (n > 0 && has_moved_meanwhile(all, h, m)) {
        h->rest = REST_UNKNOWN;
        free(h->fix); /* it may name another owner */
        h->fix = NULL;
    } else if (n > 0) {
        report_astray(all, h, m, n);
    }
}

void look_for_keys_astray(struct members *all, struct home *h)
{
    h->rest = all->c->knows_masters ? REST_NONE : REST_UNKNOWN;
    for (int i = 0; i < all->c->n && h->owner >= 0; i++) {
        if (i != h->owner && member_is_master(&all->v[i])) {
            look_for_keys_on(all, h, &all->v[i]);
        }
    }
}

/* ---- open slots ---- */
/* Has the line of the queue of this slot said it? */
static bool was_reported(const struct members *all, unsigned slot)
{
    for (int i = 0; i < all->n_homes; i++) {
        if (all->homes[i].slot == slot && all->homes[i].fix) {
            return true;
        }
    }
    return false;
}

/* As count_keys(); the node that is looked at is asked on the connection that d has. One that is
 * lost is reported when its node is looked at. */
static int64_t count_keys_of(struct doctor *d, struct member *m, unsigned slot)
{
    struct member here = *m;
    char why[REDIS_WHY];
    bool reached = m->reached;
    int64_t n;

    if (m->node->place == d->at) {
        here.redis = d->redis;
        n = count_keys(&here, slot, why);
        d->redis = here.redis;
    } else {
        n = count_keys(m, slot, why);
    }
    m->keys_unknown |= n < 0 && m->reached;
    m->reached = reached;
    return n;
}

enum parted { IS_WHOLE, IS_PARTED, IS_UNKNOWN };

/* Have two masters keys of the slot? Without an owner there is none that would delete what it
 * has. */
static enum parted look_for_parts(struct doctor *d, unsigned slot, char fix[FIX_TOGETHER])
{
    const struct members *all = d->members;
    struct home h = {.queue = "", .slot = slot, .owner = all->c->owners[slot] - 1};
    const struct member *other = NULL;
    int64_t n_own = 0;
    int n_with_keys = 0;

    for (int i = 0; i < all->c->n; i++) {
        struct member *m = &all->v[i];
        int64_t n = member_is_master(m) ? count_keys_of(d, m, slot) : 0;
        if (n < 0) {
            return IS_UNKNOWN;
        }
        n_own = i == h.owner ? n : n_own;
        other = i != h.owner && n > 0 ? m : other;
        n_with_keys += n > 0 ? 1 : 0;
    }
    if (!all->c->knows_masters) {
        return IS_UNKNOWN;
    }
    if (n_with_keys < 2 || h.owner < 0) {
        return IS_WHOLE;
    }
    if (n_own == 0) {
        return IS_UNKNOWN; /* it has another owner by now */
    }
    together(all, &h, other, n_own, fix);
    return IS_PARTED;
}

/* Of [SLOT->-NODE] and [SLOT-<-NODE]. redis-cli --cluster fix closes all that are open, so it is
 * named only if it can lose keys of none. */
int fix_open(struct doctor *d, const char *line, char fix[FIX_TOGETHER])
{
    char parted[FIX_TOGETHER];
    int n_parted = 0;
    const char *end = line + strcspn(line, "\n");

    if (!d->members) {
        snprintf(fix, FIX_TOGETHER, "lapse doctor with the URL of the cluster");
        return 0;
    }

    cluster_fix(d, fix);
    while ((line = memchr(line, '[', (size_t)(end - line)))) {
        unsigned slot = (unsigned)strtoul(++line, NULL, 10) % SLOT_COUNT;
        enum parted state = look_for_parts(d, slot, parted);
        if (state == IS_UNKNOWN) {
            find_out(d->members, "", fix);
            return 0;
        }
        if (state == IS_PARTED && n_parted++ == 0) {
            snprintf(fix, FIX_TOGETHER, "%s", was_reported(d->members, slot) ? "" : parted);
        }
    }
    return n_parted;
}

/* ---- half a queue ---- */
static const struct home *home_of(const struct members *all, const char *queue)
{
    for (int i = 0; all && i < all->n_homes; i++) {
        if (strcmp(all->homes[i].queue, queue) == 0) {
            return &all->homes[i];
        }
    }
    return NULL;
}

/* Neither cause can be left out, nor that both nodes have keys. */
static void report_half_of_two(struct doctor *d, struct finding f, const struct home *h,
                               const char *missing)
{
    char finish[FIX_TOGETHER];
    char fix[FIX_TOGETHER + QUEUE_LEN * 2 + 160];

    if (h && h->fix && *h->fix) {
        snprintf(finish, sizeof finish, "%s", h->fix);
    } else if (d->members) {
        find_out(d->members, f.queue, finish);
    } else {
        snprintf(finish, sizeof finish,
                 "lapse doctor %s with the URL of the cluster, which asks all masters", f.queue);
    }
    snprintf(fix, sizeof fix, "%s; if no slot was being moved, lapse doctor %s --repair --half",
             finish, f.queue);
    f.fix = fix;
    report(d, f,
           "a part of it is on another node, or a script broke off half-way: missing here is %s",
           missing);
}

bool report_half(struct doctor *d, const char *check, const char *queue, const char *error)
{
    struct finding f = {.check = check, .queue = queue, .verdict = FAIL};
    const struct home *h = home_of(d->members, queue);
    struct span missing = span_of(error);
    char repair[QUEUE_LEN + 40];

    if (!span_skip(&missing, "LAPSE EHALF ")) {
        return false;
    }

    if (h && h->rest == REST_NONE) {
        snprintf(repair, sizeof repair, "lapse doctor %s --repair --half", queue);
        f.fix = repair;
        report(d, f,
               "no other master has keys of its slot, so a script broke off half-way, or they are "
               "lost: missing here is %s",
               printable(missing.at));
    } else if (h && h->rest == REST_ELSEWHERE) {
        f.fix = h->fix && *h->fix ? h->fix : NULL;
        report(d, f, "a part of it is on another node: missing here is %s", printable(missing.at));
    } else {
        report_half_of_two(d, f, h, printable(missing.at));
    }
    return true;
}
