/* SPDX-License-Identifier: MIT */
#ifndef SERVERS_H
#define SERVERS_H
#include "client/cluster_sync.h"
#include "client/redis_sync.h"
#include "command.h"

/* Whom the bench asks beside the library: one Redis, which a Sentinel may have named, or the
 * masters of a cluster. */
struct servers {
    bool is_cluster;
    struct redis_sync one; /* without a cluster */
    struct cluster_sync cluster;
    struct redis_sync *masters; /* as the nodes of the cluster; replicas are not connected to */
};

/* Connects to those that have these keys, which end with NULL, and if possible to all others.
 * wait_ms: as redis_sync_open() has it. 0, or an exit code after it has printed why. What there is
 * is to be closed in any case. */
int servers_open(struct servers *s, const struct globals *g, const char *url,
                 const char *const *keys, int64_t wait_ms);
void servers_close(struct servers *s);
/* The URL, for messages, is elsewhere now. */
void servers_show(struct servers *s, const char *shown);

/* Which server has a key, and how it is called in a cluster. */
struct redis_sync *servers_of(struct servers *s, const char *key);
const char *servers_place(const struct servers *s, const char *key);
int servers_count(const struct servers *s);

/* What the masters but one have used of their CPUs so far; false: not all of them say so, or there
 * is no cluster. */
bool servers_cpu_of_others(struct servers *s, const struct redis_sync *one, int64_t *us);
#endif
