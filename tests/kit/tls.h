/* SPDX-License-Identifier: MIT */
/* A Redis with TLS, with keys that openssl makes for this test alone. */
#ifndef TLS_TEST_H
#define TLS_TEST_H
#include "server.h"
#include <stdio.h>

/* Is the lapse that is tested built with TLS? Else the test is skipped. */
void tls_needed(void);

/* Keys and certificates, in a folder of their own: an authority (ca), and for "localhost" and
 * 127.0.0.1 that authority's (good), one that ended yesterday (expired), one for other.test
 * (other), one that signed itself (self), one of an authority that nobody knows (foreign), and a
 * client's (client, client-key). only is what redis.conf says of a server that speaks nothing but
 * TLS, with good. */
struct keys {
    char dir[64];
    char only[96];
    char ca[96];
    char client[96];
    char client_key[96];
};
void keys_make(struct keys *k);
void keys_remove(struct keys *k);
/* Those that all tests of a run share, without only. They go with the run's TMPDIR. */
void keys_of_the_run(struct keys *k);

/* Arguments for a server that speaks TLS on that port, with that certificate; more may follow, and
 * overrule, ended by NULL. Valid until the next call. */
const char *const *tls_server_args(const struct keys *k, const char *certificate, int port,
                                   const char *const *more);

/* What only says, for the configuration of a Sentinel. */
void tls_write_only(const struct keys *k, FILE *f);
/* Give this Redis another of the certificates, for connections that come. */
void tls_give(const struct keys *k, const char *certificate, struct server *s);

#endif
