/* SPDX-License-Identifier: MIT */
#ifndef PRIVATE_REDIS_H
#define PRIVATE_REDIS_H
#include "client/private_folder.h"
#include "dev/janitor.h"

enum { PRIVATE_PATH = 120, PRIVATE_URL = 320 };

/* A redis-server of ours. */
struct private_server {
    char dir[PRIVATE_PATH]; /* its data, its log and its socket */
    int port;               /* of a node of a cluster, on 127.0.0.1; 0: it has a socket alone */
    int bus_port;
};

/* A redis-server, or a cluster of them, in a folder of its own; all are gone when this process
 * is. */
struct private_redis {
    struct janitor janitor;
    char dir[PRIVATE_FOLDER_BYTES];
    char url[PRIVATE_URL];
    struct private_server servers[JANITOR_SERVERS];
    int n;
    int n_running;
};

/* conf: NULL: the usual one; 0, or an exit code after they have printed why. */
int private_redis_start(struct private_redis *r, const char *conf);
/* 3 masters, and a replica of each. They listen on 127.0.0.1, so they have a password. */
int private_cluster_start(struct private_redis *r, const char *conf);
void private_redis_stop(struct private_redis *r); /* waits until everything is gone */

/* ---- of both ---- */
/* Makes the folder, and in it the configuration that all servers read; more: further lines of it.
 * 0, or an exit code after it has printed why. */
int private_redis_prepare(struct private_redis *r, const char *conf, const char *more);
/* Starts the servers that r names. Likewise. */
int private_redis_launch(struct private_redis *r);
void private_redis_pause(void); /* between two looks whether they are ready */
/* Prints that they did not start, and what this one said of it, or the first; stops them, and
 * returns DOWN. */
int private_redis_give_up(struct private_redis *r, int which);
/* Who has ended, as janitor_heard() has it. */
int private_redis_heard(struct private_redis *r);
#endif
