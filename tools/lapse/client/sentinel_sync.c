/* SPDX-License-Identifier: MIT */
/* Where the master is, by the Sentinels of a URL: asked once, one after the other. */
#include "client/sentinel_sync.h"
#include "command.h"
#include "redis/redis_error.h"
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Why a Sentinel's answer is none; "": it is one, and host and port are set. */
static void sentinel_read(const redisReply *reply, const char *master, struct redis_sync *r,
                          char why[REDIS_WHY])
{
    *why = '\0';
    if (!reply) {
        snprintf(why, REDIS_WHY, "no answer");
    } else if (reply->type == REDIS_REPLY_ERROR) {
        bool is_redis = redis_error_of(span_of(reply->str)) == REDIS_ERROR_NO_COMMAND;
        snprintf(why, REDIS_WHY, "%s%s", reply->str,
                 is_redis ? " (it is no Sentinel: give redis:// for a single Redis)" : "");
    } else if (reply->type == REDIS_REPLY_NIL) {
        snprintf(why, REDIS_WHY, "it knows no master of the name %s", master);
    } else if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 && reply->element[0]->str &&
               reply->element[1]->str && strlen(reply->element[0]->str) < sizeof r->host) {
        strcpy(r->host, reply->element[0]->str);
        r->port = atoi(reply->element[1]->str);
    } else {
        snprintf(why, REDIS_WHY, "its answer is no host and port");
    }
}

/* The address of a Sentinel: as that of a Redis. */
static struct address sentinel_address(const struct address *a, const struct address_place *at)
{
    struct address one = *a;

    one.kind = ADDRESS_REDIS;
    one.host = at->host;
    one.port = at->port;
    one.db = 0;
    one.user = a->sentinel_user;
    one.password = a->sentinel_password;
    return one;
}

/* Asks one. why: as above. */
static int sentinel_ask(struct redis_sync *r, const struct address *a, const struct address *one,
                        struct timeval limit, char why[REDIS_WHY])
{
    bool quiet = r->quiet;

    r->quiet = true; /* what it would print goes into why */
    int code = redis_sync_try(r, one, limit, why);
    r->quiet = quiet;

    if (code && !*why) {
        snprintf(why, REDIS_WHY, "%s", r->why);
    } else if (!code) {
        redisReply *reply = redisCommand(r->c, "SENTINEL GET-MASTER-ADDR-BY-NAME %s", a->master);
        sentinel_read(reply, a->master, r, why);
        if (reply && reply->type == REDIS_REPLY_ERROR && redis_sync_is_denial(reply->str)) {
            code = DENIED;
        }
        freeReplyObject(reply);
    }
    redis_sync_close(r);

    return code;
}

/* Asks one after the other. why: none of them said where the master is, and this is the last one's
 * reason. */
static int sentinel_ask_all(struct redis_sync *r, const struct address *a, struct timeval limit,
                            char why[REDIS_WHY])
{
    int code = DOWN;

    for (unsigned i = 0; i < a->n_seeds; i++) {
        const struct address_place *seed = &a->seeds[i];
        struct address one = sentinel_address(a, seed);
        char text[REDIS_WHY];

        code = sentinel_ask(r, a, &one, limit, text);
        if (!*text) {
            *why = '\0';
            return DONE;
        }
        snprintf(why, REDIS_WHY, "Sentinel %.200s:%d: %.400s", seed->host, seed->port, text);
    }

    return code ? code : DOWN;
}

int sentinel_sync_find(struct redis_sync *r, const struct address *a, struct timeval limit,
                       char why[REDIS_WHY])
{
    struct address master = *a;
    char role[16];
    int64_t us;
    int code = sentinel_ask_all(r, a, limit, why);

    if (code) {
        return code;
    }

    master.host = r->host;
    master.port = r->port;
    code = redis_sync_try(r, &master, limit, why);
    if (code) {
        return code;
    }

    redis_sync_hello(r, "role", role);
    if (!*role) {
        code = redis_sync_ping(r, &us); /* does it let us in? */
    }
    if (code) {
        return code;
    }
    if (strcmp(role, "master") != 0) {
        snprintf(why, REDIS_WHY, "Sentinel calls %.200s:%d the master, and its role is %s", r->host,
                 r->port, *role ? role : "unknown");
        return DOWN;
    }
    return DONE;
}

/* ---- for the doctor ---- */
int sentinel_sync_open(struct redis_sync *r, const struct sentinel_sync *s, unsigned i)
{
    struct address one = sentinel_address(&s->address, &s->address.seeds[i]);

    return redis_sync_open_quietly(r, &one, s->shown, s->reply_ms);
}

int sentinel_sync_open_server(struct redis_sync *r, const struct sentinel_sync *s, const char *host,
                              int port)
{
    struct address one = s->address;

    one.kind = ADDRESS_REDIS;
    one.host = (char *)(uintptr_t)host;
    one.port = port;
    return redis_sync_open_quietly(r, &one, s->shown, s->reply_ms);
}
