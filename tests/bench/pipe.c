/* SPDX-License-Identifier: MIT */
#include "bench.h"
#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdlib.h>

static redisContext *redis;
static long n_in_flight;

void pipe_open(const char *address)
{
    if (*address == '/') {
        redis = redisConnectUnix(address);
    } else {
        redis = redisConnect("127.0.0.1", atoi(address));
    }

    if (!redis || redis->err) {
        die("%s: %s", address, redis ? redis->errstr : "out of memory");
    }
}

static void pipe_append(const char *format, va_list ap)
{
    if (redisvAppendCommand(redis, format, ap) != REDIS_OK) {
        die("%s: %s", format, redis->errstr);
    }
}

void pipe_add(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    pipe_append(format, ap);
    va_end(ap);
    n_in_flight++;
}

static redisReply *pipe_reply(void)
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

void pipe_wait(long in_flight)
{
    while (n_in_flight > in_flight) {
        freeReplyObject(pipe_reply());
        n_in_flight--;
    }
}

redisReply *pipe_ask(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    pipe_append(format, ap);
    va_end(ap);

    return pipe_reply();
}
