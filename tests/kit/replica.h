/* SPDX-License-Identifier: MIT */
/* Replicas of a server. That the link of one is up does not say that it gets what is written from
 * now on: only a WAIT that counts it does. */
#ifndef REPLICA_H
#define REPLICA_H
#include "server.h"
#include <stdbool.h>

/* Those of a master that is to have replicas at once, and of the replicas; NULL ends them. */
extern const char *const replica_args[];

/* Follows whatever listens on the port, and need not have begun. */
struct server *replica_of_port(int port);
/* Waits until so many replicas confirm what is written. */
void replicas_confirm(struct server *master, long long n);
/* The server, which has been another master so far, becomes the only one of this. */
void replica_follow(struct server *replica, struct server *master);
/* A new one becomes the only one. */
struct server *replica_start(struct server *master);

bool redis_has_job(struct server *s, const char *queue, const char *id); /* in space lapse */
#endif
