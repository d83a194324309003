/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_SLOT_MAP_H
#define LAPSE_SLOT_MAP_H
#include "redis/reply.h"
#include "redis/slot.h"

/* Which node of a Redis Cluster has which keys. Nothing here asks anybody: this reads what nodes
 * say, and trusts none of it. */
enum { SLOT_NODES_MAX = 1000 }; /* as many as a cluster can have */

struct slot_map {
    uint16_t owner[SLOT_COUNT]; /* one more than its index in places; 0: nobody, or not known */
    struct slot_place *places;
    unsigned n_places;
};

/* A map that knows no owner is all zeros. */
void slot_map_free(struct slot_map *m);

/* What slot_map_read() says where there was no memory. */
extern const char slot_map_no_memory[];

/* Reads the reply to CLUSTER SLOTS. A node that is shown without a host has the one of asked.
 * NULL: all is as it says now; else why nothing of it was taken. */
const char *slot_map_read(struct slot_map *m, const struct redisReply *reply,
                          const struct slot_place *asked);

/* Has each slot the same owner, and has each an owner that it has in the other? */
bool slot_map_eq(const struct slot_map *a, const struct slot_map *b);

/* The owner of a slot; NULL: nobody, or it is not known. */
const struct slot_place *slot_map_owner(const struct slot_map *m, unsigned slot);

/* A node has said that a slot belongs to another one. false: there is no memory, or are too many
 * nodes. */
bool slot_map_set(struct slot_map *m, unsigned slot, const struct slot_place *place);

#endif
