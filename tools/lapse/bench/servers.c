/* SPDX-License-Identifier: MIT */
/* In a cluster the keys that are of no queue have slots of their own, so up to three masters are
 * needed; of the others only the CPU time is read. A map is asked for once: what moves after that
 * is found by the next servers_open(). */
#include "bench/servers.h"
#include "cli/message.h"
#include "redis/slot.h"
#include <stdlib.h>

enum { REPLY_MS = 5000 };

static bool is_master(const struct servers *s, int node)
{
    return s->cluster.nodes[node].n_slots > 0;
}

/* Its node; -1: none has it. */
static int servers_owner(const struct servers *s, const char *key)
{
    return (int)s->cluster.owners[slot_of_key(span_of(key))] - 1;
}

static int servers_connect(struct servers *s, int node)
{
    struct redis_sync *r = &s->masters[node];

    if (r->c) {
        return DONE;
    }

    int code = cluster_sync_connect(&s->cluster, node, r);
    if (!code) {
        r->quiet = false;
    }
    r->shown = s->cluster.nodes[node].place;
    return code;
}

static int servers_connect_for(struct servers *s, const char *key)
{
    int node = servers_owner(s, key);

    if (node < 0) {
        message_print("no master of the cluster has the slot of %s", key);
        return DOWN;
    }

    int code = servers_connect(s, node);
    if (code) {
        message_print("%s, which has %s: %s", s->cluster.nodes[node].place, key,
                      printable(s->masters[node].why));
    }
    return code;
}

static int servers_open_cluster(struct servers *s, const struct globals *g, const char *const *keys,
                                int64_t wait_ms)
{
    int code = cluster_sync_open(&s->cluster, &g->opts, wait_ms);

    if (code) {
        return code;
    }

    s->masters = calloc((size_t)s->cluster.n, sizeof *s->masters);
    if (!s->masters) {
        message_print("out of memory");
        return INTERNAL;
    }

    for (; *keys && !code; keys++) {
        code = servers_connect_for(s, *keys);
    }
    for (int i = 0; i < s->cluster.n && !code; i++) {
        if (is_master(s, i)) {
            servers_connect(s, i);
        }
    }
    return code;
}

int servers_open(struct servers *s, const struct globals *g, const char *url,
                 const char *const *keys, int64_t wait_ms)
{
    int64_t reply_ms = g->opts.reply_ms ? g->opts.reply_ms : REPLY_MS;

    *s = (struct servers){.is_cluster = cluster_sync_is_url(url)};
    if (!s->is_cluster) {
        return redis_sync_open(&s->one, &g->opts, url, g->shown_url, reply_ms, wait_ms);
    }

    s->cluster.url = url;
    s->cluster.shown = g->shown_url;
    s->cluster.reply_ms = reply_ms;
    return servers_open_cluster(s, g, keys, wait_ms);
}

void servers_close(struct servers *s)
{
    redis_sync_close(&s->one);
    for (int i = 0; s->masters && i < s->cluster.n; i++) {
        redis_sync_close(&s->masters[i]);
    }
    free(s->masters);
    s->masters = NULL;
    if (s->is_cluster) {
        cluster_sync_close(&s->cluster);
    }
    s->is_cluster = false;
}

void servers_show(struct servers *s, const char *shown)
{
    s->one.shown = shown;
    s->cluster.shown = shown;
}

struct redis_sync *servers_of(struct servers *s, const char *key)
{
    return s->is_cluster ? &s->masters[servers_owner(s, key)] : &s->one;
}

const char *servers_place(const struct servers *s, const char *key)
{
    return s->is_cluster ? s->cluster.nodes[servers_owner(s, key)].place : "";
}

int servers_count(const struct servers *s)
{
    int n = 0;

    for (int i = 0; i < s->cluster.n; i++) {
        n += is_master(s, i) ? 1 : 0;
    }
    return n;
}

bool servers_cpu_of_others(struct servers *s, const struct redis_sync *one, int64_t *us)
{
    bool known = s->is_cluster;

    *us = 0;
    for (int i = 0; i < s->cluster.n && known; i++) {
        struct redis_sync *r = &s->masters[i];
        struct redis_info info;

        if (r == one || !is_master(s, i)) {
            continue;
        }
        known = r->c && !redis_sync_info(r, &info) && info.known;
        *us += known ? info.cpu_us : 0;
    }
    return known;
}
