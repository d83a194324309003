/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_TLS_H
#define LAPSE_TLS_H
#include "redis/address.h"
#include <stddef.h>

struct redisContext;
struct ssl_st;

/* What a lapse without TLS lacks. */
#define TLS_NEEDS                                                                               \
    "this lapse was built without TLS, which needs hiredis 1.0 or later with hiredis_ssl, and " \
    "OpenSSL (Debian 13: libhiredis-dev and libssl-dev); or a tunnel such as stunnel, and "     \
    "redis://"

/* One of the options was given, and not the other. */
#define TLS_PAIR "tls_cert and tls_key: one needs the other"

/* Redis was not heard in the handshake. */
#define TLS_NO_ANSWER "no answer to the hello of TLS; is this a port for TLS?"

/* TLS on one connection: the handshake, and what goes past hiredis. All knowledge of OpenSSL and of
 * hiredis_ssl is in tls.c. The certificate of the server, its chain and its name are always
 * checked. */
struct tls {
    struct ssl_st *ssl; /* hiredis's to free; NULL: none */
    char expected[256]; /* the name that the certificate must have, to be shown */
    char why[640];      /* why it failed */
};

enum tls_step { TLS_READ, TLS_WRITE, TLS_DONE, TLS_FAILED };

/* Was lapse built with TLS? */
bool tls_built(void);

/* Begins the handshake on a socket that is connected, and gives hiredis what it is to read and
 * write through, which frees it with c. May wait where c blocks. The files are read now, so one
 * that was replaced counts from the next connection on. false: t->why says why that cannot be. */
bool tls_begin(struct tls *t, const struct address *a, struct redisContext *c);

/* Goes on with the handshake: until the socket can be read, or written to, or it is done and the
 * server is who it should be, or has failed, for t->why. May raise SIGPIPE, as all that follows. */
enum tls_step tls_step(struct tls *t);

/* Writes all of it, encrypted; false: it could not. Only before hiredis has anything to write, and
 * where lapse is built with TLS. */
bool tls_write(struct tls *t, const void *bytes, size_t len);

/* What went wrong is noted for a thread: forgets what was, and says what is; NULL: nothing. */
void tls_forget_errors(void);
const char *tls_error(struct tls *t);

#endif
