/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_TRANSPORT_H
#define LAPSE_TRANSPORT_H
#include "redis/address.h"
#include "redis/reply.h"
#include "redis/tls.h"
#include <ev.h>

/* What waits for an answer; embedded in what asked for it. */
struct answer {
    /* With reply NULL there is none: the connection is gone. A subscription's runs many times. */
    void (*come)(void *owner, struct answer *a, const struct redisReply *reply);
};

/* What the owner hears. All run from the loop, and none may close the transport. */
struct transport_events {
    /* The connection is made, and is encrypted where it is to be. */
    void (*connected)(void *owner);
    /* It could not be made, or is gone; all answers have come. garbled: it did not speak like
     * Redis. */
    void (*ended)(void *owner, const char *why, bool garbled);
    /* Something came from Redis, and is about to be read. */
    void (*readable)(void *owner);
    /* The socket was full, and took more. */
    void (*moved)(void *owner);
};

/* Bytes to one Redis and answers back: one connection, which is made once. The only user of
 * hiredis's connections; what it does to them is in conn.c. */
struct transport {
    const struct transport_kind *kind;
    struct ev_loop *loop;
    int64_t reply_ms; /* what Redis has not acknowledged for so long is not kept by the kernel */
    const struct transport_events *events;
    void *owner;
    const struct address *address; /* of now; its owner's */
    struct redisAsyncContext *ac;  /* NULL: closed */
    struct tls tls;
    bool securing;   /* connected, and in the handshake of TLS */
    bool stopped;    /* nothing is read or written any more: it waits to be closed */
    bool blocked;    /* the socket is full: the rest goes when it can be written to */
    char error[128]; /* why the last one could not be begun */
};

void transport_init(struct transport *t, struct ev_loop *loop, int64_t reply_ms,
                    const struct transport_events *events, void *owner);

/* Begins to connect; host is an address as a number, and of no meaning for a Unix socket. The
 * address must last as long as the connection. Returns NULL, or why that cannot be; no event
 * follows then. */
const char *transport_connect(struct transport *t, const struct address *a, const char *host);

/* Sends AUTH, as the first thing on a connection that was just made. The password is left in no
 * memory that is freed, and never in front of what encrypts: each kind of transport has its own way
 * to send it. false: it could not be sent. */
bool transport_auth(struct transport *t, struct answer *a, const char *user, const char *password);

/* Sends a command; a may be NULL. false: it was not taken, and no answer comes. If the transport is
 * stopped by then, it must be closed. */
bool transport_send(struct transport *t, struct answer *a, int argc, const char **argv,
                    const size_t *len);

/* Sends a (p)subscribe or the end of one; what comes on that channel goes to a. */
bool transport_subscribe(struct transport *t, struct answer *a, const char *verb,
                         const char *channel);

/* Writes what was sent now, rather than when the loop finds that the socket can be written to. */
void transport_flush(struct transport *t);

/* The bytes that wait for the socket. hiredis moves them all at each write, so they must not become
 * many. */
size_t transport_unwritten(const struct transport *t);

/* Why hiredis is about to end the connection. That a subscription is refused is nowhere else. */
struct span transport_reason(const struct transport *t);

/* What an attempt waits for, when it is given up: as a part of a line. */
const char *transport_lacks(const struct transport *t);

/* Reads and writes nothing more. */
void transport_stop(struct transport *t);

/* All answers that are still to come come with NULL, within the call; ended() does not run. Not to
 * be called from an event or an answer. */
void transport_close(struct transport *t);

static inline bool transport_is_open(const struct transport *t)
{
    return t->ac != NULL;
}

#endif
