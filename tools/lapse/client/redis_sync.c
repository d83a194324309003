/* SPDX-License-Identifier: MIT */
/* INFO, TIME, PING and scripts over a blocking connection of its own, for the bench: what is
 * measured there must not go through what measures. The URL was checked by the library before, so
 * it is only taken apart here. */
#include "client/redis_sync.h"
#include "cli/message.h"
#include "cli/values.h"
#include "command.h"
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { AGAIN_US = 50000 };

int64_t monotonic_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* ---- the URL ---- */
struct place {
    char *user, *password, *host; /* in place; "": none */
    int local, port, db;
};

static int hex(char c)
{
    return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}

static char *decode(char *text)
{
    char *to = text;

    for (const char *at = text; *at; at++) {
        if (*at == '%' && at[1] && at[2]) {
            *to++ = (char)(hex(at[1]) << 4 | hex(at[2]));
            at += 2;
        } else {
            *to++ = *at;
        }
    }

    *to = '\0';
    return text;
}

/* Ends text at the mark; what is behind it, or "". */
static char *cut(char *text, int mark)
{
    char *at = strchr(text, mark);

    if (!at) {
        return strchr(text, '\0');
    }
    *at = '\0';
    return at + 1;
}

static struct place take_apart(char *url)
{
    struct place p = {.local = strncmp(url, "unix:", 5) == 0, .port = 6379};
    char *rest = strstr(url, "://") + 3;
    char *end = rest + strcspn(rest, "/");
    char *at = memchr(rest, '@', (size_t)(end - rest));

    p.user = p.password = strchr(rest, '\0');

    if (at) {
        *at = '\0';
        p.password = decode(cut(rest, ':'));
        p.user = decode(rest);
        rest = at + 1;
    }

    if (p.local) {
        char *db = cut(rest, '?');
        p.db = *db ? atoi(db + 3) : 0;
        p.host = decode(rest);
        return p;
    }

    p.db = atoi(cut(rest, '/'));

    char *port = *rest == '[' ? cut(cut(++rest, ']'), ':') : cut(rest, ':');
    p.port = *port ? atoi(port) : p.port;
    p.host = decode(rest);

    return p;
}

/* ---- the connection ---- */
/* The answer, to be freed; NULL: has said why, and *code is the exit code. */
static redisReply *ask(struct redis_sync *r, int *code, int argc, const char **argv)
{
    redisReply *reply = r->c ? redisCommandArgv(r->c, argc, argv, NULL) : NULL;

    *code = DONE;

    if (!reply) {
        message_print("%s: %s", printable(r->shown),
                      r->c ? printable(r->c->errstr) : "out of memory");
        redis_sync_close(r);
        *code = DOWN;
    } else if (reply->type == REDIS_REPLY_ERROR) {
        int denied =
            strncmp(reply->str, "NOAUTH", 6) == 0 || strncmp(reply->str, "NOPERM", 6) == 0 ||
            strncmp(reply->str, "WRONGPASS", 9) == 0 || strstr(reply->str, "invalid password");
        message_print("%s: %s: %s", printable(r->shown), printable(argv[0]), printable(reply->str));
        *code = denied ? DENIED : DOWN;
        freeReplyObject(reply);
        reply = NULL;
    }

    return reply;
}

redisReply *redis_sync_command(struct redis_sync *r, int argc, const char *const *argv,
                               const size_t *len)
{
    redisReply *reply =
        r->c ? redisCommandArgv(r->c, argc, (const char **)(uintptr_t)argv, len) : NULL;

    if (!reply) {
        message_print("%s: %s", printable(r->shown),
                      r->c ? printable(r->c->errstr) : "the connection was lost");
        redis_sync_close(r);
    }
    return reply;
}

static int tell(struct redis_sync *r, int argc, const char **argv)
{
    int code;
    freeReplyObject(ask(r, &code, argc, argv));
    return code;
}

static int log_in(struct redis_sync *r, const struct place *p)
{
    char number[16];
    int code = DONE;

    if (*p->password) {
        code = *p->user ? tell(r, 3, (const char *[]){"AUTH", p->user, p->password})
                        : tell(r, 2, (const char *[]){"AUTH", p->password});
    }

    if (!code && p->db) {
        snprintf(number, sizeof number, "%d", p->db);
        code = tell(r, 2, (const char *[]){"SELECT", number});
    }

    return code;
}

/* why: it is not there, or "" */
static int try_to_open(struct redis_sync *r, const struct place *p, struct timeval limit,
                       char why[160])
{
    redisReply *reply = NULL;
    int code = DONE;

    *why = '\0';
    r->c = p->local ? redisConnectUnixWithTimeout(p->host, limit)
                    : redisConnectWithTimeout(p->host, p->port, limit);

    if (!r->c || r->c->err) {
        snprintf(why, 160, "%s", r->c ? r->c->errstr : "out of memory");
        code = DOWN;
    } else {
        redisSetTimeout(r->c, limit);
        code = log_in(r, p);
    }

    if (!code && (reply = redisCommand(r->c, "PING")) && reply->type == REDIS_REPLY_ERROR &&
        strncmp(reply->str, "LOADING", 7) == 0) {
        snprintf(why, 160, "%s", reply->str);
        code = DOWN;
    }

    freeReplyObject(reply);

    return code;
}

int redis_sync_open(struct redis_sync *r, const char *url, const char *shown, int64_t reply_ms,
                    int64_t wait_ms)
{
    struct timeval limit = {.tv_sec = reply_ms / 1000, .tv_usec = reply_ms % 1000 * 1000};
    int64_t until_ms = monotonic_ms() + wait_ms;
    char *copy = strdup(url);
    char why[160];
    int code;

    *r = (struct redis_sync){.shown = shown};
    if (!copy) {
        message_print("out of memory");
        return INTERNAL;
    }

    struct place p = take_apart(copy);
    r->db = p.db;
    snprintf(r->user, sizeof r->user, "%s", p.user);
    while ((code = try_to_open(r, &p, limit, why)) && *why && monotonic_ms() < until_ms) {
        redis_sync_close(r);
        usleep(AGAIN_US);
    }

    if (*why) {
        message_print("Redis could not be reached: %s: %s (-u or LAPSE_URL says where it is)",
                      printable(shown), printable(why));
    }

    explicit_bzero(copy, strlen(url));
    free(copy);
    if (code) {
        redis_sync_close(r);
    }

    return code;
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

static int64_t number(const char *text, const char *name)
{
    return strtoll(redis_info_field(text, name), NULL, 10);
}

static void count_calls(struct redis_info *out, const char *text)
{
    static const char start[] = "cmdstat_";

    for (const char *at = text; (at = strstr(at, start));) {
        size_t len = strcspn(at += sizeof start - 1, ":");
        int64_t calls = strncmp(at + len, ":calls=", 7) ? 0 : strtoll(at + len + 7, NULL, 10);
        int ours = len == 4 && (memcmp(at, "info", 4) == 0 || memcmp(at, "ping", 4) == 0);
        out->commands += ours ? 0 : calls;
        out->scripts += strncmp(at, "eval", 4) ? 0 : calls;
    }
}

int redis_sync_info(struct redis_sync *r, struct redis_info *out)
{
    const char *argv[] = {"INFO", "all"};
    redisReply *reply = r->c ? redisCommandArgv(r->c, 2, argv, NULL) : NULL;

    *out = (struct redis_info){.room = -1};

    if (!reply) {
        message_print("%s: %s", printable(r->shown),
                      r->c ? printable(r->c->errstr) : "the connection was lost");
        redis_sync_close(r);
        return DOWN;
    }

    if (reply->type == REDIS_REPLY_ERROR ||
        !reply->str) { /* a user without this right can do all the rest */
        freeReplyObject(reply);
        return DONE;
    }

    const char *text = reply->str;
    const char *version = redis_info_field(text, "redis_version");
    int64_t limit = number(text, "maxmemory");
    int64_t used = number(text, "used_memory");
    out->known = 1;
    out->cpu_us = (int64_t)((strtod(redis_info_field(text, "used_cpu_user"), NULL) +
                             strtod(redis_info_field(text, "used_cpu_sys"), NULL)) *
                            1e6);
    out->memory = used - number(text, "mem_clients_normal") - number(text, "mem_aof_buffer");
    out->room = limit ? limit - used
                      : number(text, "total_system_memory") - number(text, "used_memory_rss");
    out->hz = number(text, "hz");
    snprintf(out->version, sizeof out->version, "%.*s", (int)strcspn(version, "\r\n"), version);
    count_calls(out, text);
    freeReplyObject(reply);

    return DONE;
}

/* ---- TIME and PING ---- */
int redis_sync_ping(struct redis_sync *r, int64_t *us)
{
    int64_t sent = monotonic_us();
    int code = tell(r, 1, (const char *[]){"PING"});
    *us = monotonic_us() - sent;
    return code;
}

/* Redis read its clock between our question and its answer: each round trip is a bound on both
 * sides. */
int redis_sync_clock(struct redis_sync *r, int64_t *offset_us, int64_t *error_us)
{
    enum { ROUNDS = 100 };
    int64_t low = INT64_MIN;
    int64_t high = INT64_MAX;
    int code = DONE;

    for (int i = 0; i < ROUNDS && !code; i++) {
        int64_t sent = monotonic_us();
        int64_t heard;
        int64_t server;
        redisReply *reply = ask(r, &code, 1, (const char *[]){"TIME"});
        heard = monotonic_us();
        if (reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2) {
            server = strtoll(reply->element[0]->str, NULL, 10) * 1000000 +
                     strtoll(reply->element[1]->str, NULL, 10);
            low = sent - server > low ? sent - server : low;
            high = heard - server < high ? heard - server : high;
        }
        freeReplyObject(reply);
    }

    *offset_us = low + (high - low) / 2;
    *error_us = high > low ? (high - low + 1) / 2 : 1;

    return code;
}

/* ---- scripts ---- */
int redis_sync_script(struct redis_sync *r, const char *script, const char *key, int argc,
                      const char *const *argv, int n, int64_t *out)
{
    enum { MOST = 8 };
    const char *all[4 + MOST] = {"EVAL", script, "1", key};
    int code;

    for (int i = 0; i < argc && i < MOST; i++) {
        all[4 + i] = argv[i];
    }

    redisReply *reply = ask(r, &code, 4 + argc, all);
    for (int i = 0; i < n; i++) {
        out[i] = reply && reply->type == REDIS_REPLY_ARRAY && (size_t)i < reply->elements
                     ? reply->element[i]->integer
                     : 0;
    }

    freeReplyObject(reply);

    return code;
}
