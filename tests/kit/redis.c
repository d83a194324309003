/* SPDX-License-Identifier: MIT */
#include "redis.h"
#include "place.h"
#include "test.h"
#include <criterion/criterion.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUSY_WAIT_MS = 60000 };

/* Redis owes nothing, so what there is to read is the end: Sentinel cuts the clients of a server
 * that it promotes. */
static bool is_over(const redisContext *c)
{
    struct pollfd p = {.fd = c->fd, .events = POLLIN};

    return c->err || poll(&p, 1, 0) > 0;
}

static redisContext *connection(struct server *s)
{
    if (s->redis && is_over(s->redis)) {
        redisFree(s->redis);
        s->redis = NULL;
    }

    if (!s->redis) {
        s->redis = redis_connect(s);
    }

    return s->redis;
}

/* At the master that has the key, as the answer says. */
static redisReply *command_elsewhere(redisReply *moved, const char *format, va_list ap)
{
    const char *port = strrchr(moved->str, ':');
    redisContext *c = redisConnect("127.0.0.1", port ? atoi(port + 1) : 0);

    cr_assert(c && !c->err, "%s: no connection after %s", format, moved->str);
    freeReplyObject(moved);
    redisReply *r = redisvCommand(c, format, ap);
    cr_assert(r, "%s: %s", format, c->errstr);
    redisFree(c);
    return r;
}

static redisReply *command(struct server *s, const char *format, va_list ap)
{
    redisContext *c = connection(s);
    va_list again;

    va_copy(again, ap);
    redisReply *r = redisvCommand(c, format, ap);
    cr_assert(r, "%s: %s", format, c->errstr);
    bool moved = r->type == REDIS_REPLY_ERROR && strncmp(r->str, "MOVED ", 6) == 0;
    if (moved && place_has_masters()) {
        r = command_elsewhere(r, format, again);
    }
    va_end(again);
    return r;
}

redisReply *redis_cmd(struct server *s, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    redisReply *r = command(s, format, ap);
    va_end(ap);
    return r;
}

long long redis_int(struct server *s, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    redisReply *r = command(s, format, ap);
    va_end(ap);
    char *end = NULL;
    long long n = r->type == REDIS_REPLY_STRING ? strtoll(r->str, &end, 10) : r->integer;
    cr_assert(r->type == REDIS_REPLY_INTEGER || (r->type == REDIS_REPLY_STRING && r->len && !*end),
              "%s: not a number, but type %d: %s", format, r->type, r->str ? r->str : "");
    freeReplyObject(r);
    return n;
}

char *redis_str(struct server *s, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);

    redisReply *r = command(s, format, ap);
    va_end(ap);

    char *text = NULL;
    if (r->type == REDIS_REPLY_INTEGER) {
        cr_assert(asprintf(&text, "%lld", r->integer) > 0);
    } else if (r->type != REDIS_REPLY_NIL) {
        cr_assert(r->str, "%s: not a text, but type %d", format, r->type);
        text = strdup(r->str);
    }

    freeReplyObject(r);

    return text;
}

void redis_do(struct server *s, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    redisReply *r = command(s, format, ap);
    va_end(ap);
    cr_assert(r->type != REDIS_REPLY_ERROR, "%s: %s", format, r->str);
    freeReplyObject(r);
}

redisContext *redis_connect(struct server *s)
{
    redisContext *c = redisConnectUnix(s->socket);

    cr_assert(c && !c->err, "connect to %s: %s", s->socket, c ? c->errstr : "no memory");
    return c;
}

void redis_send(redisContext *c, const char *format, ...)
{
    va_list ap;
    int written = 0;

    va_start(ap, format);
    cr_assert_eq(redisvAppendCommand(c, format, ap), REDIS_OK);
    va_end(ap);
    while (!written) {
        cr_assert_eq(redisBufferWrite(c, &written), REDIS_OK, "%s: %s", format, c->errstr);
    }
}

redisContext *redis_monitor(struct server *s)
{
    redisContext *monitor = redis_connect(s);

    freeReplyObject(redisCommand(monitor, "MONITOR"));
    return monitor;
}

void redis_monitor_read(redisContext *monitor, struct server *s, void (*see)(void *arg, char *line),
                        void *arg)
{
    redisReply *r;

    redis_do(s, "ECHO that_is_all");
    for (bool end = false; !end; freeReplyObject(r)) {
        cr_assert_eq(redisGetReply(monitor, (void **)&r), REDIS_OK);
        end = strstr(r->str, "\"that_is_all\"") != NULL;
        see(arg, r->str);
    }
}

redisContext *redis_busy(struct server *s)
{
    redisContext *busy = redis_connect(s);
    int64_t end_ms = test_now_ms() + BUSY_WAIT_MS;

    /* no other script runs within the transaction, so none is busy but this one */
    redis_send(busy, "MULTI");
    redis_send(busy, "CONFIG SET busy-reply-threshold 20");
    redis_send(busy, "EVAL %s 0", "while true do end");
    redis_send(busy, "CONFIG SET busy-reply-threshold 5000");
    redis_send(busy, "EXEC");

    for (bool is_busy = false; !is_busy;) {
        cr_assert_lt(test_now_ms(), end_ms, "Redis never said BUSY");
        redisReply *r = redis_cmd(s, "PING");
        is_busy = r->type == REDIS_REPLY_ERROR && strncmp(r->str, "BUSY ", 5) == 0;
        freeReplyObject(r);
    }
    return busy;
}

void redis_not_busy(struct server *s, redisContext *busy)
{
    redis_do(s, "SCRIPT KILL");
    for (int type = 0; type != REDIS_REPLY_ARRAY;) { /* that of EXEC is the last */
        redisReply *r = NULL;

        cr_assert_eq(redisGetReply(busy, (void **)&r), REDIS_OK, "%s", busy->errstr);
        type = r->type;
        cr_assert_neq(type, REDIS_REPLY_ERROR, "%s", r->str);
        freeReplyObject(r);
    }
    redisFree(busy);
}

int64_t redis_now_ms(struct server *s)
{
    redisReply *r = redis_cmd(s, "TIME");

    cr_assert(r->type == REDIS_REPLY_ARRAY && r->elements == 2);
    int64_t ms =
        strtoll(r->element[0]->str, NULL, 10) * 1000 + strtoll(r->element[1]->str, NULL, 10) / 1000;
    freeReplyObject(r);
    return ms;
}

long long redis_clients(struct server *s)
{
    static const char name[] = "connected_clients:";
    char *info = redis_str(s, "INFO clients");
    const char *at = info ? strstr(info, name) : NULL;

    cr_assert(at, "INFO does not say %s", name);
    long long n = strtoll(at + strlen(name), NULL, 10);
    free(info);
    return n;
}

redisReply *redis_scriptv(struct server *s, const char *name, const char *key, size_t argc,
                          const char *const *argv, const size_t *len)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/lua/%s.lua", test_build(), name);

    size_t text_len;
    char *text = test_read_file(path, &text_len);

    char none[200];
    snprintf(none, sizeof none, "%.*snone", (int)(strrchr(key, ':') + 1 - key), key);

    const char *all[5 + argc];
    size_t all_len[5 + argc];
    all[0] = "EVAL", all[1] = text, all[2] = "2", all[3] = key, all[4] = none;
    for (size_t i = 0; i < argc; i++) {
        all[5 + i] = argv[i];
    }
    for (size_t i = 0; i < 5 + argc; i++) {
        all_len[i] = len && i >= 5 ? len[i - 5] : strlen(all[i]);
    }
    all_len[1] = text_len;

    redisContext *c = connection(s);
    redisReply *r = redisCommandArgv(c, (int)(5 + argc), all, all_len);
    cr_assert(r, "%s.lua: %s", name, c->errstr);
    free(text);

    return r;
}

redisReply *redis_script(struct server *s, const char *name, const char *key, ...)
{
    const char *argv[64];
    size_t n = 0;
    va_list ap;

    va_start(ap, key);
    for (const char *arg; (arg = va_arg(ap, const char *));) {
        cr_assert(n < 64);
        argv[n++] = arg;
    }

    va_end(ap);
    return redis_scriptv(s, name, key, n, argv, NULL);
}

long long redis_left(struct server *s, const char *space, const char *queue)
{
    return redis_int(s, "EVAL %s 2 %s:{%s}:due %s:{%s}:run",
                     "return redis.call('ZCARD', KEYS[1]) + redis.call('ZCARD', KEYS[2])", space,
                     queue, space, queue);
}

/* The number behind a text in a section of INFO; 0: the text is not there. */
static long long info_number(struct server *s, const char *section, const char *text)
{
    char *info = redis_str(s, "INFO %s", section);
    const char *at = info ? strstr(info, text) : NULL;
    long long n = at ? atoll(at + strlen(text)) : 0;

    free(info);
    return n;
}

long long redis_calls(struct server *s, const char *command)
{
    char name[64];

    snprintf(name, sizeof name, "cmdstat_%s:calls=", command);
    return info_number(s, "commandstats", name);
}

static void until_log_is_written(struct server *s)
{
    int64_t end_ms = test_now_ms() + 20000;

    while (info_number(s, "persistence", "aof_rewrite_in_progress:") ||
           info_number(s, "persistence", "aof_rewrite_scheduled:")) {
        cr_assert_lt(test_now_ms(), end_ms, "Redis does not rewrite its log");
        poll(NULL, 0, 1);
    }
}

void redis_rewrite_log(struct server *s)
{
    until_log_is_written(s); /* by another rewrite */
    redis_do(s, "BGREWRITEAOF");
    until_log_is_written(s);
}

long long redis_errors(struct server *s, const char *error)
{
    char name[64];

    snprintf(name, sizeof name, "errorstat_%s:count=", error);
    return info_number(s, "errorstats", name);
}
