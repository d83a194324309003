/* SPDX-License-Identifier: MIT */
/* The textbook expiry subscriber: a key with a TTL for the moment, a hash of bodies, and a handler
 * for `expired` events. It has no truth to look at: an event that nobody heard is a job that never
 * runs. */
#include "bench.h"
#include <hiredis/hiredis.h>
#include <string.h>
#include <sys/time.h>

enum { ADDS = 2 };

static void put(const char *id, const char *body, int64_t due_ms)
{
    int64_t for_ms = due_ms - now_us() / 1000;
    pipe_add("SET t:%s 1 PX %lld", id, (long long)(for_ms > 0 ? for_ms : 1));
    pipe_add("HSET jobs %s %b", id, body, (size_t)BODY_LEN);
}

static void until(long in_flight)
{
    pipe_until(in_flight * ADDS);
}

static void on_expired(const char *key, size_t len)
{
    if (len < 2 || memcmp(key, "t:", 2) != 0) {
        return;
    }
    freeReplyObject(pipe_ask("HGET jobs %b", key + 2, len - 2));
    heard(key + 2, len - 2, 0, 0);
    freeReplyObject(pipe_ask("HDEL jobs %b", key + 2, len - 2));
    settled();
}

static void listen(void)
{
    redisContext *sub = redisConnectUnix(arg("at", NULL));

    if (!sub || sub->err) {
        die("Redis: %s", sub ? sub->errstr : "no memory");
    }

    redisAppendCommand(sub, "PSUBSCRIBE __keyevent@*__:expired");

    while (listening()) {
        int64_t left_us = listen_until_us() - now_us();
        struct timeval wait = {left_us / 1000000, left_us % 1000000 + 1};
        void *reply;
        redisSetTimeout(sub, wait);
        if (redisGetReply(sub, &reply) != REDIS_OK) {
            break; /* it is late: this connection is of no use any more */
        }
        redisReply *r = reply;
        if (r->type == REDIS_REPLY_ARRAY && r->elements == 4 &&
            strcmp(r->element[0]->str, "pmessage") == 0) {
            on_expired(r->element[3]->str, r->element[3]->len);
        }
        freeReplyObject(r);
    }

    redisFree(sub);
}

int main(int argc, char **argv)
{
    static const struct peer expired = {
        .window = 400, .open = pipe_open, .put = put, .until = until, .listen = listen};
    return bench_main(argc, argv, &expired);
}
