/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_REGISTRY_H
#define LAPSE_REGISTRY_H
#include "base/table.h"
#include "job/keys.h"
#include "script/queue_verbs.h"

/* Enters the queues that a handle uses into the registry of its space. */
struct registry {
    struct script *script;
    char key[KEYS_MAX];
    struct node *told;  /* the Redis that was told */
    struct table names; /* of the queues that we use */
    struct list all;    /* those that Redis was told, or is being told, on this connection */
    struct list untold;
    bool denied; /* this user may not enter queues */
    struct enter_request enter;
    struct span args[SCRIPT_BATCH];
};

void registry_init(struct registry *r, struct script *script);
/* A queue is used. It is entered before what is sent in this turn, if it was not for a while.
 * Without memory it is not entered. */
void registry_use(struct registry *r, const char *queue);
/* Redis has lost the name of a queue that is used. */
void registry_enter(struct registry *r, const char *queue);
/* Was this the Redis that was told, or is it the only one? */
bool registry_is_at(const struct registry *r, const struct node *node);
/* The connection for commands is there again: Redis may have lost the names. */
void registry_up(struct registry *r);
/* Runs in each turn, before requests are sent. */
void registry_turn(struct registry *r);
/* No request is pending. */
void registry_close(struct registry *r);

#endif
