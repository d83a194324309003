/* SPDX-License-Identifier: MIT */
#include "redis/handshake.h"
#include "redis/redis_error.h"
#include <stdio.h>
#include <string.h>

void handshake_init(struct handshake *h,
                    void (*come)(void *owner, struct answer *a, const struct redisReply *reply))
{
    *h = (struct handshake){.answer = {come}};
}

static bool handshake_send(struct handshake *h, struct transport *t, enum handshake_command what,
                           int argc, const char **argv)
{
    h->sent[h->n_sent++] = what;
    return transport_send(t, &h->answer, argc, argv, NULL);
}

static bool handshake_log_in(struct handshake *h, struct transport *t, const struct address *a)
{
    if (!a->password) {
        return true;
    }
    h->sent[h->n_sent++] = HANDSHAKE_AUTH;
    return transport_auth(t, &h->answer, a->user, a->password);
}

bool handshake_begin(struct handshake *h, struct transport *t, const struct address *address,
                     bool asks)
{
    char db[12];
    const char *select[] = {"SELECT", db};
    const char *hello = "HELLO";
    const char *ping = "PING"; /* LOADING and MASTERDOWN are heard before work depends on it */

    *h = (struct handshake){.answer = h->answer};
    snprintf(db, sizeof db, "%d", address->db);

    if (!handshake_log_in(h, t, address)) {
        return false;
    }
    if (address->db != 0 && !handshake_send(h, t, HANDSHAKE_SELECT, 2, select)) {
        return false;
    }
    if (asks && !handshake_send(h, t, HANDSHAKE_HELLO, 1, &hello)) {
        return false;
    }
    return handshake_send(h, t, HANDSHAKE_PING, 1, &ping);
}

/* NOPERM for PING is fine: the user is logged in, and merely may not PING. */
static bool is_refusal(enum handshake_command command, struct span error)
{
    switch (command) {
    case HANDSHAKE_HELLO: return false;
    case HANDSHAKE_PING: return redis_error_of(error) != REDIS_ERROR_DENIED;
    default: return true;
    }
}

/* After a refusal the other answers are taken, too: they may tell why. */
bool handshake_take(struct handshake *h, const struct redisReply *reply)
{
    enum handshake_command command = h->sent[h->n_answered++];
    struct span error;

    if (command == HANDSHAKE_HELLO) {
        hello_read(&h->hello, reply);
    }
    if (reply_error(reply, &error) && is_refusal(command, error) && !*h->error) {
        snprintf(h->error, sizeof h->error, "%.*s", (int)error.len, error.at);
    }
    return h->n_answered == h->n_sent;
}

/* ["server", "redis", "version", "7.0.15", ...] */
void hello_read(struct hello *h, const struct redisReply *reply)
{
    const struct {
        const char *name;
        char *to;
        size_t size;
    } fields[] = {
        {"version", h->version, sizeof h->version},
        {"mode", h->mode, sizeof h->mode},
        {"role", h->role, sizeof h->role},
    };

    *h = (struct hello){.version = ""};
    for (size_t i = 0; i + 1 < reply_len(reply); i += 2) {
        struct span name;
        struct span value;

        if (!reply_text(reply_at(reply, i), &name) || !reply_text(reply_at(reply, i + 1), &value)) {
            continue;
        }
        for (size_t k = 0; k < sizeof fields / sizeof *fields; k++) {
            if (span_is(name, fields[k].name)) {
                snprintf(fields[k].to, fields[k].size, "%.*s", (int)value.len, value.at);
            }
        }
    }
}

bool hello_is_too_old(const struct hello *h)
{
    const char *version = h->version;

    return version[0] > '0' && version[0] < '0' + REDIS_VERSION_MIN && version[1] == '.';
}
