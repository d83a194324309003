/* SPDX-License-Identifier: MIT */
#include "bench.h"
#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdlib.h>

static redisContext *redis;
static long n_added;

void pipe_open(const char *at)
{
    redis = *at == '/' ? redisConnectUnix(at) : redisConnect("127.0.0.1", atoi(at));
    if (!redis || redis->err) {
        die("%s: %s", at, redis ? redis->errstr : "no memory");
    }
}

int pipe_fd(void)
{
    return redis->fd;
}

void pipe_add(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    if (redisvAppendCommand(redis, format, ap) != REDIS_OK) {
        die("%s: %s", format, redis->errstr);
    }
    va_end(ap);
    n_added++;
}

static redisReply *next(void)
{
    void *reply;

    if (redisGetReply(redis, &reply) != REDIS_OK) {
        die("Redis: %s", redis->errstr);
    }

    redisReply *r = reply;
    if (r->type == REDIS_REPLY_ERROR) {
        die("Redis: %s", r->str);
    }

    return r;
}

void pipe_until(long in_flight)
{
    for (; n_added > in_flight; n_added--) {
        freeReplyObject(next());
    }
}

redisReply *pipe_ask(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    if (redisvAppendCommand(redis, format, ap) != REDIS_OK) {
        die("%s: %s", format, redis->errstr);
    }
    va_end(ap);
    return next();
}
