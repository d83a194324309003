/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_NODE_H
#define LAPSE_NODE_H
#include "redis/conn.h"
#include "redis/sentinel.h"
#include "redis/server_clock.h"
#include <string.h>

/* May this Redis evict jobs, by its maxmemory-policy? */
enum node_eviction { NODE_EVICTION_UNKNOWN, NODE_EVICTS_NOTHING, NODE_MAY_EVICT };

struct node;

/* What the owner of a node hears; all run from the loop. */
struct node_events {
    /* Commands can be sent, now or again. */
    void (*up)(void *arg, struct node *n);
    /* They cannot be sent any more, or the connection could not be made; may be NULL. */
    void (*down)(void *arg, struct node *n);
    /* A command was answered by an error; may be NULL. */
    void (*error)(void *arg, struct node *n, struct span error);
};

/* One Redis: its address, its connections, and what is known of it. Under Sentinel it is whichever
 * server is the master: with each failover it moves. */
struct node {
    struct list of_topo; /* among the nodes of its handle */
    struct context *context;
    struct endpoint endpoint;
    struct sentinel *sentinel; /* NULL: the URL says where it is */
    struct conn commands;
    struct conn fence; /* begun by who waits for replicas; it is never older than commands */
    struct server_clock clock;
    bool clock_is_old; /* it is that of the server before this one */
    enum node_eviction eviction;
    uint64_t scripts; /* a bit for each that it has been sent since it was connected */
    bool fence_begun;
    bool wants_copies;   /* nothing is written before they can be waited for */
    bool copies_waited;  /* they can: the fence is up, and Redis waits there */
    int copies_err;      /* why Redis does not wait; 0: it has not refused */
    bool copies_in_vain; /* too few replicas are there for what the option replicas says */
    unsigned n_holders;  /* that would miss it, besides requests */
    const struct node_events *events;
    void *arg;
};

/* ENOMEM: only node_close() may follow. */
int node_init(struct node *n, struct context *context, const struct address *address,
              const struct node_events *events, void *arg);

void node_start(struct node *n);

/* Closes the connections for commands and for the fence; what was sent and is not answered ends
 * with ELOST. */
void node_close(struct node *n);

/* EAUTH, EDENIED: it does not let us in, or no Sentinel does that would say where it is; else 0. */
int node_login_err(const struct node *n);

/* Redis said that it is a replica. true: under Sentinel there is a master elsewhere, which is
 * looked for; nothing more is sent to this one. */
bool node_is_replica(struct node *n);

/* Makes the connection for the fence, once. Whenever it is up, it goes to the same server as that
 * for commands: where that is lost, this one is made again as well. */
void node_begin_fence(struct node *n, const struct conn_events *events, void *arg);

/* Closes it for good. */
void node_end_fence(struct node *n);

static inline bool node_fence_up(const struct node *n)
{
    return n->fence_begun && conn_up(&n->fence);
}

/* May commands be sent? */
static inline bool node_up(const struct node *n)
{
    return conn_up(&n->commands);
}

/* May something be written? */
static inline bool node_may_write(const struct node *n)
{
    return node_up(n) && (!n->wants_copies || n->copies_waited);
}

/* Is it a node of a cluster, by what it says of itself? */
static inline bool node_is_in_cluster(const struct node *n)
{
    return strcmp(n->commands.handshake.hello.mode, "cluster") == 0;
}

/* Does Redis know this script, so that its hash is enough? It may forget it at any time, and does
 * when it restarts. */
static inline bool node_knows_script(const struct node *n, unsigned script)
{
    return n->scripts >> script & 1;
}

void node_learns_script(struct node *n, unsigned script);
void node_forgets_script(struct node *n, unsigned script);

/* A reply said that Redis's time was server_us; its request was sent at sent_us, by clock_us(). */
void node_heard_clock(struct node *n, int64_t sent_us, int64_t server_us);

/* Unix time by Redis's clock; before the first reply that is not known, and this is ours. */
int64_t node_time_us(const struct node *n);
/* The moment of clock_us() at which Redis's clock shows server_us. */
int64_t node_mono_us(const struct node *n, int64_t server_us);

/* When Redis reads, by its clock, what is sent now; server_clock.h says how sure that is. */
int64_t node_arrival_us(const struct node *n);
/* The moment of clock_us() at which to send what Redis is to read at server_us. */
int64_t node_send_us(const struct node *n, int64_t server_us);
/* How long a request and its reply are on their way at least. */
int64_t node_round_trip_us(const struct node *n);

static inline bool node_knows_time(const struct node *n)
{
    return n->clock.known;
}

#endif
