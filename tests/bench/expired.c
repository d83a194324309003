/* SPDX-License-Identifier: MIT */
/* The textbook expiry subscriber: a key with a TTL for the due moment, a hash of bodies, and a
 * handler for `expired` events. Nothing else is looked at: a job whose event is not heard never
 * runs. */
#include "bench.h"
#include <hiredis/hiredis.h>
#include <string.h>
#include <sys/time.h>

enum { COMMANDS_A_JOB = 2 };

static void expired_put(const char *id, const char *body, int64_t due_ms)
{
    int64_t for_ms = due_ms - now_us() / 1000;

    pipe_add("SET t:%s 1 PX %lld", id, (long long)(for_ms > 0 ? for_ms : 1));
    pipe_add("HSET jobs %s %b", id, body, (size_t)BODY_LEN);
}

static void expired_wait(long in_flight)
{
    pipe_wait(in_flight * COMMANDS_A_JOB);
}

static void on_expired(const char *key, size_t len)
{
    if (len < 2 || memcmp(key, "t:", 2) != 0) {
        return;
    }

    freeReplyObject(pipe_ask("HGET jobs %b", key + 2, len - 2));
    job_started(key + 2, len - 2, 0, 0);
    freeReplyObject(pipe_ask("HDEL jobs %b", key + 2, len - 2));
    job_settled();
}

/* The next message; NULL once it is late: the connection is of no use any more. */
static redisReply *next_message(redisContext *subscriber)
{
    int64_t left_us = listen_until_us() - now_us();
    struct timeval wait = {left_us / 1000000, left_us % 1000000 + 1};
    void *reply;

    redisSetTimeout(subscriber, wait);

    return redisGetReply(subscriber, &reply) == REDIS_OK ? reply : NULL;
}

static void expired_listen(void)
{
    redisContext *subscriber = redisConnectUnix(argument("at", NULL));

    if (!subscriber || subscriber->err) {
        die("Redis: %s", subscriber ? subscriber->errstr : "out of memory");
    }

    redisAppendCommand(subscriber, "PSUBSCRIBE __keyevent@*__:expired");

    while (listening()) {
        redisReply *r = next_message(subscriber);
        if (!r) {
            break;
        }
        if (r->type == REDIS_REPLY_ARRAY && r->elements == 4 &&
            strcmp(r->element[0]->str, "pmessage") == 0) {
            on_expired(r->element[3]->str, r->element[3]->len);
        }
        freeReplyObject(r);
    }

    redisFree(subscriber);
}

int main(int argc, char **argv)
{
    static const struct system expired = {
        .window = 400,
        .open = pipe_open,
        .put = expired_put,
        .wait = expired_wait,
        .listen = expired_listen,
    };
    return bench_main(argc, argv, &expired);
}
