/* SPDX-License-Identifier: MIT */
/* A Redis with TLS, with keys that openssl makes for this test alone. */
#ifndef TLS_TEST_H
#define TLS_TEST_H
#include "server.h"

/* Is the lapse that is tested built with TLS? Else the test is skipped. */
void tls_needed(void);

/* Keys and certificates, in a folder of their own: an authority (ca), and for "localhost" and
 * 127.0.0.1 that authority's (good), one that ended yesterday (expired), one for other.test
 * (other), one that signed itself (self), one of an authority that nobody knows (foreign), and a
 * client's (client, client-key). */
struct keys {
    char dir[64];
    char ca[96];
    char client[96];
    char client_key[96];
};
void keys_make(struct keys *k);
void keys_remove(struct keys *k);

/* Arguments for a server that speaks TLS on that port, with that certificate; more may follow, and
 * overrule, ended by NULL. Valid until the next call. */
const char *const *tls_server_args(const struct keys *k, const char *certificate, int port,
                                   const char *const *more);

#endif
