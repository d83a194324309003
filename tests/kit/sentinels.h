/* SPDX-License-Identifier: MIT */
/* A master, its replicas and Sentinels that watch them, each a true process on 127.0.0.1. */
#ifndef SENTINELS_H
#define SENTINELS_H
#include "tls.h"
#include <stdbool.h>

enum { SENTINELS_MOST = 3 };

struct sentinels {
    struct server *redis[SENTINELS_MOST]; /* the first is the master to begin with */
    unsigned n_redis;
    struct server *sentinel[SENTINELS_MOST];
    unsigned n;
    char tls_ports[SENTINELS_MOST][8];
    const struct keys *keys; /* of processes that speak TLS only; NULL: they do not */
    char url[200];           /* of all of them */
};

/* Replicas and Sentinels may be fewer than 3, and the last of them know each other. With password
 * not NULL the Sentinels want it. down_ms: for how long a master is silent before they call it
 * down. */
struct sentinels *sentinels_start(unsigned n_redis, unsigned n_sentinels, const char *password,
                                  int down_ms);
/* args: those of each redis-server, as for server_start_opts(). */
struct sentinels *sentinels_start_opts(unsigned n_redis, unsigned n_sentinels, const char *password,
                                       int down_ms, const char *const *args);
/* All of them speak nothing but TLS. The keys must live as long as they. */
struct sentinels *sentinels_start_tls(unsigned n_redis, unsigned n_sentinels,
                                      const struct keys *keys);
/* Where the master is, by the first Sentinel that runs; 0: it says none. */
int sentinels_master_port(struct sentinels *s);
/* The same by all that run; 0: they do not agree, so that a failover is under way. */
int sentinels_agreed_port(struct sentinels *s);
/* The server there. */
struct server *sentinels_master(struct sentinels *s);
/* The master hands over to a replica, though nothing is wrong with it. */
void sentinels_fail_over(struct sentinels *s);
/* All replicas follow the master, and the Sentinels agree on it: a failover may begin. */
bool sentinels_are_settled(struct sentinels *s);
void sentinels_stop(struct sentinels *s);
#endif
