/* SPDX-License-Identifier: MIT */
#ifndef CLUSTER_SYNC_H
#define CLUSTER_SYNC_H
#include "client/redis_sync.h"
#include "redis/address.h"
#include "redis/slot.h"

enum { CLUSTER_ID = 48, CLUSTER_PLACE = 264 };

/* A node of a cluster. */
struct cluster_node {
    char id[CLUSTER_ID];
    char host[256];
    int port;
    char place[CLUSTER_PLACE]; /* host:port, to be shown */
    int master;                /* of a replica: the index of its master; -1: it is one */
    unsigned n_slots;
    unsigned n_replicas;
};

/* The nodes of a cluster, as the one that was asked names them. */
struct cluster_sync {
    struct address address; /* of the URL */
    char *texts;            /* of address */
    const char *url;
    const char *shown; /* the URL, for messages */
    int64_t reply_ms;
    struct cluster_node *nodes;
    int n;
    bool knows_masters;          /* also those without slots are among them */
    uint16_t owners[SLOT_COUNT]; /* one more than the index of the master; 0: there is none */
};

/* Is it the URL of a cluster? */
bool cluster_sync_is_url(const char *url);

/* Asks the nodes of the URL in turn which nodes there are; wait_ms: as redis_sync_open() has it.
 * 0, or an exit code after it has printed why. What there is is to be closed in any case. */
int cluster_sync_open(struct cluster_sync *c, const struct lapse_options *o, int64_t wait_ms);
void cluster_sync_close(struct cluster_sync *c);

/* A connection to a node, as the user of the URL; nothing is printed. Not 0: r->why says why there
 * is none. */
int cluster_sync_connect(const struct cluster_sync *c, int node, struct redis_sync *r);
int cluster_sync_connect_to(const struct cluster_sync *c, const char *host, int port,
                            struct redis_sync *r);
#endif
