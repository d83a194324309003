/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_HANDSHAKE_H
#define LAPSE_HANDSHAKE_H
#include "redis/transport.h"

/* What a server says of itself: the answer to HELLO, which every user may ask. "": nothing, for
 * some proxies do not know HELLO. */
struct hello {
    char version[24];
    char mode[16]; /* "standalone", "sentinel", "cluster" */
    char role[16]; /* "master", "replica" */
};

enum handshake_command { HANDSHAKE_AUTH, HANDSHAKE_SELECT, HANDSHAKE_HELLO, HANDSHAKE_PING };

/* The first commands on a new connection. */
struct handshake {
    struct answer answer; /* the answers of all come here, in order */
    enum handshake_command sent[4];
    unsigned n_sent;
    unsigned n_answered;
    struct hello hello; /* if it was asked */
    char error[256];    /* Redis's, the first; "": it lets us in */
};

void handshake_init(struct handshake *h,
                    void (*come)(void *owner, struct answer *a, const struct redisReply *reply));

/* Sends all of it; asks: with HELLO. false: it could not be sent. */
bool handshake_begin(struct handshake *h, struct transport *t, const struct address *address,
                     bool asks);

/* Takes the next answer. true: it was the last one. */
bool handshake_take(struct handshake *h, const struct redisReply *reply);

void hello_read(struct hello *h, const struct redisReply *reply);
bool hello_is_too_old(const struct hello *h);

enum { REDIS_VERSION_MIN = 7 };

#endif
