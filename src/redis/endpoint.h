/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_ENDPOINT_H
#define LAPSE_ENDPOINT_H
#include "base/context.h"
#include "redis/address.h"
#include "redis/hosts.h"

/* What a connection is for. On those that subscribe other commands are not allowed, and on one that
 * waits for replicas they would wait as well. Who waits for ends of jobs need not be a listener,
 * nor have the right to hear what listeners do: so that is a subscription of its own. */
enum conn_role { CONN_COMMANDS, CONN_SUBSCRIPTION, CONN_FENCE, CONN_ENDS };

/* Where a Redis is, and whether it can be used: shared by all connections to it. */
struct endpoint {
    struct context *context;
    struct address address; /* its texts are the handle's */
    bool commands_up;       /* the connection for commands is */
    char host[HOSTS_TEXT];  /* where it is or was last; "": nowhere, or to a Unix socket */
    int login_err;     /* EAUTH, EDENIED: it did not let us in when it was last asked; else 0 */
    int64_t outage_us; /* when the log said that it cannot be used; 0: it can, or it said so */
};

#endif
