/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_ENDPOINT_H
#define LAPSE_ENDPOINT_H
#include "base/context.h"
#include "base/list.h"
#include "redis/address.h"
#include "redis/hosts.h"
#include <stdio.h>

/* What a connection is for: to a Redis, or to ask a Sentinel or a seed. On those that subscribe
 * other commands are not allowed, and on one that waits for replicas they would wait as well. Who
 * waits for ends of jobs need not be a listener, nor have the right to hear what listeners do: so
 * that is a subscription of its own. */
enum conn_role {
    CONN_COMMANDS,
    CONN_SUBSCRIPTION,
    CONN_FENCE,
    CONN_ENDS,
    CONN_SENTINEL,
    CONN_SEED
};

/* Where a Redis is, and whether it can be used: shared by all connections to it. */
struct endpoint {
    struct context *context;
    struct address address;          /* its texts are the handle's, or said below */
    struct list conns;               /* all connections to it */
    char said[ADDRESS_HOST_MAX + 1]; /* the host, where it is not in the URL */
    bool commands_up;      /* the connection for commands is; of a Sentinel's: that to the master */
    bool is_asked;         /* of a seed's: it is wanted */
    bool is_spare;         /* of a seed's: others answer, so its failure is not reported */
    char host[HOSTS_TEXT]; /* where it is or was last; "": nowhere, or to a Unix socket */
    int login_err;         /* EAUTH, EDENIED: it did not let us in when it was last asked; else 0 */
    int64_t outage_us;     /* when the log said that it cannot be used; 0: it can, or it said so */
    char why[LOG_VALUE];   /* of a Sentinel, or a seed: why the last one could not be asked */
};

static inline void endpoint_init(struct endpoint *e, struct context *context,
                                 const struct address *address)
{
    *e = (struct endpoint){.context = context, .address = *address};
    list_init(&e->conns);
}

/* It is elsewhere; its connections are its owner's to move. */
static inline void endpoint_set_place(struct endpoint *e, const char *host, int port)
{
    snprintf(e->said, sizeof e->said, "%s", host);
    e->address.host = e->said;
    e->address.port = port;
}

#endif
