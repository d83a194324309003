/* SPDX-License-Identifier: MIT */
#include "redis/handshake.h"
#include "redis/redis_error.h"
#include <stdio.h>

void handshake_init(struct handshake *h,
                    void (*come)(void *owner, struct answer *a, const struct redisReply *reply))
{
    *h = (struct handshake){.answer = {come}};
}

bool handshake_begin(struct handshake *h, struct transport *t, const struct address *address)
{
    char db[12];
    const char *select[] = {"SELECT", db};
    const char *ping = "PING"; /* LOADING and MASTERDOWN are heard before work depends on it */

    h->left = 1;
    snprintf(db, sizeof db, "%d", address->db);

    if (address->password) {
        h->left++;
        if (!transport_auth(t, &h->answer, address->user, address->password)) {
            return false;
        }
    }

    if (address->db != 0) {
        h->left++;
        if (!transport_send(t, &h->answer, 2, select, NULL)) {
            return false;
        }
    }

    return transport_send(t, &h->answer, 1, &ping, NULL);
}

/* NOPERM for PING is fine: the user is logged in, and merely may not PING. */
enum handshake_step handshake_take(struct handshake *h, const struct redisReply *reply,
                                   struct span *error)
{
    bool is_ping = h->left == 1;

    if (reply_error(reply, error) && !(is_ping && redis_error_of(*error) == REDIS_ERROR_DENIED)) {
        return HANDSHAKE_REFUSED;
    }

    h->left--;
    return h->left == 0 ? HANDSHAKE_DONE : HANDSHAKE_GOES_ON;
}

/* ["server", "redis", "version", "7.0.15", ...] */
bool handshake_is_too_old(const struct redisReply *reply, struct span *version)
{
    struct span name;

    *version = span_of("");
    for (size_t i = 0; i + 1 < reply_len(reply) && version->len == 0; i += 2) {
        if (reply_text(reply_at(reply, i), &name) && span_is(name, "version")) {
            reply_text(reply_at(reply, i + 1), version);
        }
    }

    return version->len > 1 && version->at[0] > '0' && version->at[0] < '0' + REDIS_VERSION_MIN &&
           version->at[1] == '.';
}
