/* SPDX-License-Identifier: MIT */
/* Where the flows of a run have their jobs: with LAPSE_TEST_ON=cluster in a Redis Cluster of one
 * master, with =masters in one of three, each with a replica, with =sentinel on a master that a
 * Sentinel names; with =tls on one server by TLS; else on one server. */
#ifndef PLACE_H
#define PLACE_H
#include "tls.h"
#include <stdbool.h>

struct place {
    struct server *server; /* that the test looks at; of a cluster the one that has the queue q */
    const char *url;       /* by which handles find the place */
    const char *tls_ca;    /* whom they believe; NULL: the URL is none of TLS */
    struct cluster *cluster;
    struct sentinels *sentinels;
    struct keys keys;
    char text[200];
};

/* args: those of redis-server, as for server_start_opts(). tcp: the URL is one of TCP. */
struct place *place_start(const char *const *args, bool tcp);
void place_stop(struct place *p);

/* The servers that have keys: one where there is no cluster. */
int place_masters(const struct place *p);
struct server *place_master(const struct place *p, int i);

/* Are there several masters, so that another one than the server may have a key? */
bool place_has_masters(void);

/* Skip the test where its flows are not on one server; the reason is for who reads the test. */
void place_not_in_cluster(const char *why);
void place_not_with_masters(const char *why);
void place_not_by_sentinel(const char *why);
void place_not_by_tls(const char *why);
#endif
