/* SPDX-License-Identifier: MIT */
/* A blocking connection: INFO, TIME, PING and scripts, for the bench, whose figures must not go
 * through what it measures, and for the doctor. */
#include "client/redis_sync.h"
#include "client/sentinel_sync.h"
#include "cli/message.h"
#include "cli/values.h"
#include "command.h"
#include "redis/address.h"
#include "redis/redis_error.h"
#include "redis/tls.h"
#include <assert.h>
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { AGAIN_US = 50000, DIAL_S = 5 };

int64_t monotonic_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* ---- the connection ---- */
static redisReply *sync_lost(struct redis_sync *r, const char *why)
{
    snprintf(r->why, sizeof r->why, "%s", why);
    if (!r->quiet) {
        message_print("%s: %s", printable(r->shown), printable(why));
    }
    redis_sync_close(r);
    return NULL;
}

redisReply *redis_sync_command(struct redis_sync *r, int argc, const char *const *argv,
                               const size_t *len)
{
    if (!r->c) {
        return sync_lost(r, "the connection was lost");
    }

    redisReply *reply = redisCommandArgv(r->c, argc, (const char **)(uintptr_t)argv, len);
    return reply ? reply : sync_lost(r, r->c->errstr);
}

bool redis_sync_is_denial(const char *error)
{
    switch (redis_error_of(span_of(error))) {
    case REDIS_ERROR_NO_LOGIN:
    case REDIS_ERROR_BAD_LOGIN:
    case REDIS_ERROR_DENIED: return true;
    default: return false;
    }
}

/* The reply; NULL where there is none or it is an error, which it has printed, and *code is set. */
static redisReply *sync_query(struct redis_sync *r, int *code, int argc, const char *const *argv)
{
    redisReply *reply = redis_sync_command(r, argc, argv, NULL);

    *code = reply ? DONE : DOWN;

    if (reply && reply->type == REDIS_REPLY_ERROR) {
        snprintf(r->why, sizeof r->why, "%s: %s", argv[0], reply->str);
        if (!r->quiet) {
            message_print("%s: %s", printable(r->shown), printable(r->why));
        }
        *code = redis_sync_is_denial(reply->str) ? DENIED : DOWN;
        freeReplyObject(reply);
        reply = NULL;
    }

    return reply;
}

/* Sends a command whose reply says nothing. */
static int sync_do(struct redis_sync *r, int argc, const char *const *argv)
{
    int code;

    freeReplyObject(sync_query(r, &code, argc, argv));
    return code;
}

static int log_in(struct redis_sync *r, const struct address *a)
{
    char number[16];
    int code = DONE;

    if (a->user) {
        code = sync_do(r, 3, (const char *[]){"AUTH", a->user, a->password});
    } else if (a->password) {
        code = sync_do(r, 2, (const char *[]){"AUTH", a->password});
    }

    if (!code && a->db) {
        snprintf(number, sizeof number, "%d", a->db);
        code = sync_do(r, 2, (const char *[]){"SELECT", number});
    }

    return code;
}

static redisContext *sync_connect(const struct address *a, struct timeval limit)
{
    if (a->unix_socket) {
        return redisConnectUnixWithTimeout(a->host, limit);
    }
    return redisConnectWithTimeout(a->host, a->port, limit);
}

/* The handshake, on a socket that blocks. */
static bool sync_secure(redisContext *c, const struct address *a, char why[REDIS_WHY])
{
    struct tls t;
    bool good = false;

    if (tls_begin(&t, a, c)) {
        switch (tls_step(&t)) {
        case TLS_DONE: good = true; break;
        case TLS_FAILED: break;
        default: snprintf(t.why, sizeof t.why, "%s", TLS_NO_ANSWER); /* until the limit */
        }
    }

    if (!good) {
        snprintf(why, REDIS_WHY, "%s", t.why);
    }
    return good;
}

int redis_sync_try(struct redis_sync *r, const struct address *a, struct timeval limit,
                   char why[REDIS_WHY])
{
    redisReply *reply = NULL;
    int code;

    *why = '\0';
    r->c = sync_connect(a, limit);
    if (!r->c || r->c->err) {
        snprintf(why, REDIS_WHY, "%s", r->c ? r->c->errstr : "out of memory");
        return DOWN;
    }

    redisSetTimeout(r->c, limit);
    if (a->tls && !sync_secure(r->c, a, why)) {
        return DOWN;
    }
    code = log_in(r, a);
    if (code) {
        return code;
    }

    reply = redisCommand(r->c, "PING");
    if (reply && reply->type == REDIS_REPLY_ERROR &&
        redis_error_of(span_of(reply->str)) == REDIS_ERROR_LOADING) {
        snprintf(why, REDIS_WHY, "%s", reply->str);
        code = DOWN;
    }
    freeReplyObject(reply);

    return code;
}

int redis_sync_open_quietly(struct redis_sync *r, const struct address *a, const char *shown,
                            int64_t reply_ms)
{
    char why[REDIS_WHY];
    int64_t us;
    int code;

    *r = (struct redis_sync){.shown = shown, .quiet = true, .port = a->port, .db = a->db};
    snprintf(r->host, sizeof r->host, "%s", a->host);
    snprintf(r->user, sizeof r->user, "%s", a->user ? a->user : "");

    code = redis_sync_try(r, a, redis_sync_limit(reply_ms), why);
    if (*why) {
        snprintf(r->why, sizeof r->why, "%s", why);
    }
    if (!code) {
        code = redis_sync_ping(r, &us);
    }
    if (code) {
        redis_sync_close(r);
    }
    return code;
}

/* ---- opening it ---- */
/* What it says of itself: its "role", its "mode"; "": nothing. */
void redis_sync_hello(struct redis_sync *r, const char *what, char out[16])
{
    redisReply *reply = redisCommand(r->c, "HELLO");
    size_t n = reply && reply->type == REDIS_REPLY_ARRAY ? reply->elements : 0;

    *out = '\0';
    for (size_t i = 0; i + 1 < n; i += 2) {
        const redisReply *name = reply->element[i];
        const redisReply *value = reply->element[i + 1];
        if (name->str && strcmp(name->str, what) == 0 && value->str) {
            snprintf(out, 16, "%s", value->str);
        }
    }
    freeReplyObject(reply);
}

static int server_try_open(struct redis_sync *r, const struct address *a, struct timeval limit,
                           char why[REDIS_WHY])
{
    char mode[16] = "";
    int code = redis_sync_try(r, a, limit, why);

    snprintf(r->host, sizeof r->host, "%s", a->host);
    r->port = a->port;
    if (!code) {
        redis_sync_hello(r, "mode", mode);
    }
    if (strcmp(mode, "sentinel") == 0) {
        message_print("%s is a Sentinel: give redis+sentinel://%s:%d/MASTER, with the name that it "
                      "has for the master",
                      printable(r->shown), printable(a->host), a->port);
        return USAGE;
    }
    return code;
}

static int sync_try(struct redis_sync *r, const struct address *a, struct timeval limit,
                    char why[REDIS_WHY])
{
    *why = '\0';
    if (a->kind == ADDRESS_SENTINEL) {
        return sentinel_sync_find(r, a, limit, why);
    }
    return server_try_open(r, a, limit, why);
}

char *redis_sync_address(struct address *a, const struct lapse_options *o, const char *url)
{
    char *texts = malloc(2 * strlen(url) + 1);

    if (!texts) {
        return NULL;
    }
    address_parse(a, url, texts); /* which the library has accepted */
    a->tls_ca = o->tls_ca;
    a->tls_cert = o->tls_cert;
    a->tls_key = o->tls_key;
    a->tls_name = o->tls_name;
    return texts;
}

void redis_sync_address_free(char *texts, const char *url)
{
    explicit_bzero(texts, 2 * strlen(url) + 1);
    free(texts);
}

struct timeval redis_sync_limit(int64_t reply_ms)
{
    return (struct timeval){.tv_sec = reply_ms / 1000, .tv_usec = reply_ms % 1000 * 1000};
}

int redis_sync_open(struct redis_sync *r, const struct lapse_options *o, const char *url,
                    const char *shown, int64_t reply_ms, int64_t wait_ms)
{
    struct timeval limit = redis_sync_limit(reply_ms);
    int64_t until_ms = monotonic_ms() + wait_ms;
    struct address a;
    char *texts = redis_sync_address(&a, o, url);
    char why[REDIS_WHY];
    int code;

    *r = (struct redis_sync){.shown = shown};
    if (!texts) {
        message_print("out of memory");
        return INTERNAL;
    }

    assert(a.kind != ADDRESS_CLUSTER);
    r->db = a.db;
    r->by_sentinel = a.kind == ADDRESS_SENTINEL;
    snprintf(r->user, sizeof r->user, "%s", a.user ? a.user : "");

    code = sync_try(r, &a, limit, why);
    while (*why && code == DOWN && monotonic_ms() < until_ms) {
        redis_sync_close(r);
        usleep(AGAIN_US);
        code = sync_try(r, &a, limit, why);
    }

    if (*why && code == DENIED) {
        message_print("%s: %s", printable(shown), printable(why));
    } else if (*why) {
        message_print("Redis could not be reached: %s: %s; set its URL with -u or LAPSE_URL",
                      printable(shown), printable(why));
    }

    redis_sync_address_free(texts, url);
    if (code) {
        redis_sync_close(r);
    }

    return code;
}

int redis_sync_dial(const struct address *a)
{
    redisContext *c = sync_connect(a, (struct timeval){.tv_sec = DIAL_S});
    int fd = -1;

    if (c && !c->err) {
        fd = redisFreeKeepFd(c);
    } else if (c) {
        redisFree(c);
    }

    return fd;
}

void redis_sync_close(struct redis_sync *r)
{
    if (r->c) {
        redisFree(r->c);
    }
    r->c = NULL;
}

/* ---- INFO ---- */
const char *redis_info_field(const char *text, const char *name)
{
    size_t len = strlen(name);

    for (const char *at = text; (at = strstr(at, name)); at += len) {
        if ((at == text || at[-1] == '\n') && at[len] == ':') {
            return at + len + 1;
        }
    }

    return "";
}

static int64_t info_number(const char *text, const char *name)
{
    return strtoll(redis_info_field(text, name), NULL, 10);
}

static int64_t info_seconds_us(const char *text, const char *name)
{
    return (int64_t)(strtod(redis_info_field(text, name), NULL) * 1e6);
}

/* Lines such as cmdstat_eval:calls=12,usec=... */
static void info_calls(struct redis_info *out, const char *text)
{
    static const char start[] = "cmdstat_";

    for (const char *at = text; (at = strstr(at, start));) {
        at += sizeof start - 1;
        size_t len = strcspn(at, ":");
        bool is_ours = len == 4 && (memcmp(at, "info", 4) == 0 || memcmp(at, "ping", 4) == 0);
        int64_t calls = 0;

        if (strncmp(at + len, ":calls=", 7) == 0) {
            calls = strtoll(at + len + 7, NULL, 10);
        }
        if (!is_ours) {
            out->commands += calls;
        }
        if (strncmp(at, "eval", 4) == 0) {
            out->scripts += calls;
        }
    }
}

static void info_read(struct redis_info *out, const char *text)
{
    const char *version = redis_info_field(text, "redis_version");
    int64_t limit = info_number(text, "maxmemory");
    int64_t used = info_number(text, "used_memory");

    out->known = true;
    out->cpu_us = info_seconds_us(text, "used_cpu_user") + info_seconds_us(text, "used_cpu_sys");
    out->memory =
        used - info_number(text, "mem_clients_normal") - info_number(text, "mem_aof_buffer");
    out->hz = info_number(text, "hz");
    snprintf(out->version, sizeof out->version, "%.*s", (int)strcspn(version, "\r\n"), version);
    info_calls(out, text);

    if (limit) {
        out->room = limit - used;
    } else {
        out->room = info_number(text, "total_system_memory") - info_number(text, "used_memory_rss");
    }
}

int redis_sync_info(struct redis_sync *r, struct redis_info *out)
{
    redisReply *reply = redis_sync_command(r, 2, (const char *[]){"INFO", "all"}, NULL);

    *out = (struct redis_info){.room = -1};
    if (!reply) {
        return DOWN;
    }

    /* a user who may not run INFO can still do everything else */
    if (reply->type != REDIS_REPLY_ERROR && reply->str) {
        info_read(out, reply->str);
    }
    freeReplyObject(reply);

    return DONE;
}

/* ---- TIME and PING ---- */
int redis_sync_ping(struct redis_sync *r, int64_t *us)
{
    int64_t sent_us = monotonic_us();
    int code = sync_do(r, 1, (const char *[]){"PING"});

    *us = monotonic_us() - sent_us;
    return code;
}

/* Redis read its clock between the request and the reply: each round trip bounds the offset on both
 * sides. */
int redis_sync_clock(struct redis_sync *r, int64_t *offset_us, int64_t *error_us)
{
    enum { ROUNDS = 100 };
    int64_t low = INT64_MIN;
    int64_t high = INT64_MAX;
    int code = DONE;

    for (int i = 0; i < ROUNDS && !code; i++) {
        int64_t sent_us = monotonic_us();
        redisReply *reply = sync_query(r, &code, 1, (const char *[]){"TIME"});
        int64_t heard_us = monotonic_us();

        if (reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2) {
            int64_t server_us = strtoll(reply->element[0]->str, NULL, 10) * 1000000 +
                                strtoll(reply->element[1]->str, NULL, 10);
            low = sent_us - server_us > low ? sent_us - server_us : low;
            high = heard_us - server_us < high ? heard_us - server_us : high;
        }
        freeReplyObject(reply);
    }

    *offset_us = low + (high - low) / 2;
    *error_us = high > low ? (high - low + 1) / 2 : 1;

    return code;
}

/* ---- scripts ---- */
int redis_sync_script(struct redis_sync *r, const char *script, const char *const *keys,
                      const char *const *args, int n, int64_t *out)
{
    enum { START = 3, MOST = 8 };
    const char *argv[START + MOST] = {"EVAL", script};
    char n_keys[16];
    int argc = START;
    int code;

    while (*keys && argc < START + MOST) {
        argv[argc++] = *keys++;
    }
    snprintf(n_keys, sizeof n_keys, "%d", argc - START);
    argv[2] = n_keys;
    while (*args && argc < START + MOST) {
        argv[argc++] = *args++;
    }

    redisReply *reply = sync_query(r, &code, argc, argv);

    for (int i = 0; i < n; i++) {
        out[i] = 0;
        if (reply && reply->type == REDIS_REPLY_ARRAY && (size_t)i < reply->elements) {
            out[i] = reply->element[i]->integer;
        }
    }
    freeReplyObject(reply);

    return code;
}
