/* SPDX-License-Identifier: MIT */
/* What the cluster of this node says of itself, and how it is configured. */
#include "doctor/ask.h"
#include "doctor/checks.h"
#include "doctor/report.h"
#include "cli/message.h"
#include "job/keys.h"
#include "redis/slot.h"
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A queue of so many jobs stands still for seconds while its slot moves, with the defaults of
 * Redis; with ten times as many it cannot be moved any more. */
enum { TIMEOUT_MAX_MS = 5000, LARGE = 250000 };

void cluster_place(const struct doctor *d, char out[CLUSTER_PLACE])
{
    const char *host = d->redis.host;

    if (d->redis.port == 0 || !is_shell_safe(host, ":")) {
        snprintf(out, CLUSTER_PLACE, "HOST:PORT");
    } else {
        snprintf(out, CLUSTER_PLACE, "%s:%d", host, d->redis.port);
    }
}

void cluster_fix(const struct doctor *d, char out[FIX_COMMAND])
{
    char place[CLUSTER_PLACE];

    cluster_place(d, place);
    snprintf(out, FIX_COMMAND, "redis-cli --cluster fix %s", place);
}

/* ---- slots ---- */
/* Reports that all is well; false: something is to be reported first, and was. */
static bool check_coverage(struct doctor *d, const char *info)
{
    char fix[FIX_COMMAND];
    struct finding f = {.check = "slots", .verdict = FAIL, .fix = fix};
    int64_t n_assigned = strtoll(redis_info_field(info, "cluster_slots_assigned"), NULL, 10);
    int64_t n_ok = strtoll(redis_info_field(info, "cluster_slots_ok"), NULL, 10);

    cluster_fix(d, fix);
    if (n_assigned < SLOT_COUNT) {
        report(d, f, "%" PRId64 " of %d have no node: their queues cannot be used",
               SLOT_COUNT - n_assigned, SLOT_COUNT);
        return false;
    }
    if (n_ok < SLOT_COUNT) {
        f.fix = NULL;
        report(d, f, "%" PRId64 " of %d are those of nodes that do not answer", SLOT_COUNT - n_ok,
               SLOT_COUNT);
        return false;
    }
    return true;
}

/* In the line of this node each open slot is [SLOT->-NODE] or [SLOT-<-NODE]. Returns how many there
 * are, and names the first few. */
static int list_open(const char *nodes, char *out, size_t size)
{
    enum { SHOWN = 5 };
    const char *at = strstr(nodes, "myself");
    const char *end = at ? at + strcspn(at, "\n") : nodes;
    int n = 0;

    *out = '\0';
    for (; at && (at = memchr(at, '[', (size_t)(end - at))); at++) {
        int digits = (int)strspn(at + 1, "0123456789");
        size_t used = strlen(out);
        if (n++ < SHOWN) {
            snprintf(out + used, size - used, "%s%.*s", used ? " " : "", digits, at + 1);
        }
    }
    return n;
}

static void check_open(struct doctor *d)
{
    struct finding f = {.check = "slots"};
    redisReply *r = ASK(d, "CLUSTER", "NODES");
    char open[80];
    char fix[FIX_TOGETHER];

    if (d->code) {
        return;
    }
    if (!is_text(r)) {
        f.verdict = WARN;
        report(d, f, "all have a node; unknown is which are moving: CLUSTER NODES is refused");
    } else if (list_open(r->str, open, sizeof open) > 0) {
        f.verdict = WARN;
        bool several = fix_open(d, strstr(r->str, "myself"), fix) > 1;
        f.fix = *fix ? fix : NULL;
        report(d, f, "open at this node: %s; their queues stand still until the move is finished%s",
               open,
               several ? "; keys of several are on two nodes: run what is before redis-cli "
                         "--cluster fix for each of them first, and then that once"
                       : "");
    } else {
        report(d, f, "all have a node, and none of this node is moving");
    }
    freeReplyObject(r);
}

static void check_slots(struct doctor *d)
{
    redisReply *r = ASK(d, "CLUSTER", "INFO");

    if (is_text(r)) {
        /* by the URL of a cluster that is looked at for all nodes together */
        if (d->cluster || check_coverage(d, r->str)) {
            check_open(d);
        }
    } else if (r) {
        report(d, (struct finding){.check = "slots", .verdict = WARN},
               "unknown: this user may not run CLUSTER INFO");
    }
    freeReplyObject(r);
}

/* ---- settings ---- */
static void check_full_coverage(struct doctor *d)
{
    struct finding f = {.check = "coverage"};
    char value[VALUE_BYTES];

    if (!config_text(d, "cluster-require-full-coverage", value)) {
        report(d, f, "unknown: this user may not run CONFIG GET");
    } else if (strcmp(value, "no") != 0) {
        f.verdict = WARN;
        f.fix = "redis-cli CONFIG SET cluster-require-full-coverage no";
        report(d, f, "required: while a master is away, the queues of all others are refused, too");
    } else {
        report(d, f, "not required: a master that is away takes no queue along but its own");
    }
}

static void check_timeout(struct doctor *d)
{
    struct finding f = {.check = "timeout"};
    char value[VALUE_BYTES];

    if (!config_text(d, "cluster-node-timeout", value)) {
        report(d, f, "unknown: this user may not run CONFIG GET");
        return;
    }

    double seconds = strtod(value, NULL) / 1000;
    if (seconds * 1000 > TIMEOUT_MAX_MS) {
        f.verdict = WARN;
        f.fix = "redis-cli CONFIG SET cluster-node-timeout 5000";
        report(d, f, "%.1f s: about %.0f s after the death of a master its queues go on", seconds,
               1.5 * seconds);
    } else {
        report(d, f, "%.1f s", seconds);
    }
}

/* ---- queues ---- */
static void check_size(struct doctor *d, const char *queue)
{
    struct finding f = {.check = "size", .queue = queue, .verdict = WARN};
    char key[KEYS_MAX];

    keys_of(key, d->space, queue, KEYS_DUE);
    redisReply *r = ASK(d, "ZCARD", key);
    if (r && r->type == REDIS_REPLY_INTEGER && r->integer > LARGE) {
        report(d, f,
               "%lld jobs wait: while its slot moves the queue stands still for seconds, and of "
               "some millions it cannot be moved; split it, or set arm_ahead_ms to 1m",
               r->integer);
    }
    freeReplyObject(r);
}

void check_node_settings(struct doctor *d)
{
    check_full_coverage(d);
    check_timeout(d);
}

void check_cluster(struct doctor *d)
{
    if (!d->is_cluster) {
        return;
    }

    check_slots(d);
    check_node_settings(d);
    for (int i = 0; i < d->queues.n && !d->code; i++) {
        check_size(d, d->queues.names[i]);
    }
}
