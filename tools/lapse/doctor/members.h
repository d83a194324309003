/* SPDX-License-Identifier: MIT */
#ifndef DOCTOR_MEMBERS_H
#define DOCTOR_MEMBERS_H
#include "client/cluster_sync.h"
#include "doctor/doctor.h"

struct redisReply;

/* A node of a cluster, and what was heard of it. */
struct member {
    const struct cluster_node *node;
    struct redis_sync redis;
    bool reached;
    struct redisReply *nodes; /* what it says to CLUSTER NODES; NULL: nothing */
    const char *self;         /* its own line of that; "": there is none */
    int64_t ahead_us;
    bool has_clock;
    bool keys_unknown; /* it does not say which keys it has, and that was reported */
};

/* What other masters than its owner have of the slot of a queue. */
enum rest { REST_UNKNOWN, REST_NONE, REST_ELSEWHERE };

/* A queue, and where it is. */
struct home {
    const char *queue;
    unsigned slot;
    int owner;       /* -1: none that can be asked */
    const char *why; /* of that */
    bool astray;     /* keys of it are elsewhere, and its owner does not know, or may be */
    enum rest rest;
    char *fix; /* brings its keys together, or says what to do first; NULL: none are apart; owned */
};

struct members {
    struct doctor *d;
    const struct cluster_sync *c;
    struct member *v;   /* as the nodes of c */
    struct home *homes; /* as the queues that d had when they were found */
    int n_homes;
};

/* nodes.c */
/* A replica and a master that is to get its first slot have none. */
bool member_has_slots(const struct member *m);
bool member_is_master(const struct member *m);
/* NULL: it was not reached, and is not any more. */
struct redisReply *member_ask(struct member *m, int argc, const char *const *argv);
/* Asks for CLUSTER NODES again. */
void member_read(struct member *m);
/* Where it is now. */
void home_find(struct members *all, struct home *h);

/* astray.c: asks all masters but the owner of a queue for keys of its slot. */
void look_for_keys_astray(struct members *all, struct home *h);
#endif
