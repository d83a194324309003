/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_SLOT_MAP_H
#define LAPSE_SLOT_MAP_H
#include "redis/reply.h"

/* Which node of a Redis Cluster has which keys. A key belongs to one of 16384 hash slots, and each
 * of these to a node. Nothing here asks anybody: this reads what nodes say, and trusts none of it.
 */
enum {
    SLOT_COUNT = 16384,
    SLOT_HOST = 254,      /* bytes of a host's name, with its NUL */
    SLOT_NODES_MAX = 1000 /* as many as a cluster can have */
};

/* Where a node is. */
struct slot_place {
    char host[SLOT_HOST];
    int port;
};

bool slot_place_eq(const struct slot_place *a, const struct slot_place *b);

struct slot_map {
    uint16_t owner[SLOT_COUNT]; /* one more than its index in places; 0: nobody, or not known */
    struct slot_place *places;
    unsigned n_places;
};

/* The slot of a key: that of what stands between its first brace and the next closing one, if there
 * is anything, or else of all of it. */
unsigned slot_of_key(struct span key);

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

/* What an error says of a key that is not, or will not be, where it was looked for. */
struct slot_redirect {
    bool asks; /* ASK, of a slot that is moving; else MOVED */
    unsigned slot;
    struct slot_place place;
};

/* "MOVED 3999 127.0.0.1:6381", or ASK. asked: as above. false: it is no such error, or makes no
 * sense. */
bool slot_redirect_read(struct slot_redirect *r, struct span error, const struct slot_place *asked);

#endif
