/* SPDX-License-Identifier: MIT */
#ifndef SENTINEL_SYNC_H
#define SENTINEL_SYNC_H
#include "client/redis_sync.h"
#include "redis/address.h"

/* Connects to the master, as the Sentinels of a name it; sets host and port. why: it is not to be
 * had now; else "". */
int sentinel_sync_find(struct redis_sync *r, const struct address *a, struct timeval limit,
                       char why[REDIS_WHY]);

/* Those whom the doctor looks at, too. */
struct sentinel_sync {
    struct address address; /* of the URL */
    const char *shown;
    int64_t reply_ms;
};

/* A connection to the i-th Sentinel of the URL, or to a server as the user of the URL; nothing is
 * printed. Not 0: r->why says why there is none. */
int sentinel_sync_open(struct redis_sync *r, const struct sentinel_sync *s, unsigned i);
int sentinel_sync_open_server(struct redis_sync *r, const struct sentinel_sync *s, const char *host,
                              int port);

#endif
