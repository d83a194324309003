/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_HANDSHAKE_H
#define LAPSE_HANDSHAKE_H
#include "redis/transport.h"

/* The first commands on a new connection: AUTH, SELECT, PING. */
struct handshake {
    struct answer answer; /* the answers of all three come here, in order */
    unsigned left;        /* answers to come */
};

enum handshake_step { HANDSHAKE_GOES_ON, HANDSHAKE_DONE, HANDSHAKE_REFUSED };

void handshake_init(struct handshake *h,
                    void (*come)(void *owner, struct answer *a, const struct redisReply *reply));

/* Sends all of it. false: it could not be sent. */
bool handshake_begin(struct handshake *h, struct transport *t, const struct address *address);

/* Takes the next answer. HANDSHAKE_REFUSED: *error is Redis's. */
enum handshake_step handshake_take(struct handshake *h, const struct redisReply *reply,
                                   struct span *error);

/* Is the version in the answer to HELLO too old? An answer of another shape says nothing: some
 * proxies do not know HELLO. */
bool handshake_is_too_old(const struct redisReply *reply, struct span *version);

enum { REDIS_VERSION_MIN = 7 };

#endif
