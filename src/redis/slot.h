/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_SLOT_H
#define LAPSE_SLOT_H
#include "base/span.h"

/* Of a Redis Cluster: a key belongs to one of 16384 hash slots, and each of these to a node. */
enum {
    SLOT_COUNT = 16384,
    SLOT_HOST = 254 /* bytes of a host's name, with its NUL */
};

/* The slot of a key: that of what stands between its first brace and the next closing one, if there
 * is anything, or else of all of it. */
unsigned slot_of_key(struct span key);

/* Where a node is. */
struct slot_place {
    char host[SLOT_HOST];
    int port;
};

bool slot_place_eq(const struct slot_place *a, const struct slot_place *b);
/* A host that is missing or empty is that of asked. A node that does not know its own name says
 * "?", and is nowhere: false. */
bool slot_place_set_host(struct slot_place *p, struct span host, const struct slot_place *asked);

/* What an error says of a key that is not, or will not be, where it was looked for. */
struct slot_redirect {
    bool asks; /* ASK, of a slot that is moving; else MOVED */
    unsigned slot;
    struct slot_place place;
};

/* "MOVED 3999 127.0.0.1:6381", or ASK. asked: who said so. false: it is no such error, or
 * makes no sense. */
bool slot_redirect_read(struct slot_redirect *r, struct span error, const struct slot_place *asked);

#endif
