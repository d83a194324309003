/* SPDX-License-Identifier: MIT */
/* A Redis Cluster of the test's own: nodes from redis.conf, which know each other from their start
 * by a nodes.conf that is written for each. The masters come first; each has the same number of
 * replicas. It is up when all nodes say so and every replica has what its master wrote, 2 s after
 * the start: until then a node takes no writes. */
#ifndef CLUSTER_H
#define CLUSTER_H
#include "tls.h"
#include <stdbool.h>

enum { CLUSTER_NODES = 12, CLUSTER_SLOTS = 16384, CLUSTER_TIMEOUT_MS = 2000, CLUSTER_URL = 400 };

struct cluster_node {
    struct server *server;
    char id[48];
    int bus_port;
    char arguments[3][64]; /* those of server that differ from node to node */
    const char *args[SERVER_ARGS];
};

struct cluster {
    int n_masters;
    int n;                   /* nodes */
    const struct keys *keys; /* of nodes that speak TLS only; NULL: they do not */
    char dir[64];
    struct cluster_node nodes[CLUSTER_NODES];
};

/* n_replicas: of each master. */
struct cluster *cluster_start(int n_masters, int n_replicas);
/* args: further ones of each node, which must live as long as the cluster; NULL ends them, and may
 * stand for none. */
struct cluster *cluster_start_opts(int n_masters, int n_replicas, const char *const *args);
/* They speak nothing but TLS. The keys must live as long as the cluster. */
struct cluster *cluster_start_tls(int n_masters, int n_replicas, const struct keys *keys);
/* NULL is fine. */
void cluster_stop(struct cluster *c);

/* The URL of all nodes. login: "", or "USER:PASSWORD@". */
void cluster_url(const struct cluster *c, const char *login, char out[CLUSTER_URL]);

int cluster_slot(const struct cluster *c, const char *key);
int cluster_slot_of_queue(const struct cluster *c, const char *queue); /* in the space "lapse" */
bool cluster_is_master(struct server *s);                              /* as it says itself */
/* The node that owns a slot, as this node sees it, and its place in nodes. */
int cluster_owner(const struct cluster *c, const struct server *asked, int slot);
/* The node that owns the slot of a key now, as most masters see it. */
struct server *cluster_of(const struct cluster *c, const char *key);
/* All nodes that run agree that this node owns the slot. */
void cluster_agrees(const struct cluster *c, int slot, int owner);

/* A slot moves to another master: in three steps, and whole. */
void cluster_move_begin(const struct cluster *c, int slot, int to);
/* Moves at most so many of its keys; returns how many it found. */
int cluster_move_keys(const struct cluster *c, int slot, int to, int limit);
void cluster_move_end(const struct cluster *c, int slot, int to);
void cluster_move(const struct cluster *c, int slot, int to);

/* A replica takes the place of its master, which knows of it (CLUSTER FAILOVER). */
void cluster_failover(const struct cluster *c, int replica);
/* Returns when the old master is a replica, and says from now on that its heir owns the slot. It
 * may forget that for a second: it has heard on one connection that the heir is a master, and reads
 * on another what the heir, then a replica, had answered before; so it takes the slots from it. */
void cluster_hands_over(const struct cluster *c, int old, int slot, int heir);
#endif
