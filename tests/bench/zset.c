/* SPDX-License-Identifier: MIT */
/* The textbook poller: a sorted set of ids by due time, a hash of bodies, and a script that takes
 * the due jobs, run again after EVERY ms, or at once after a full batch. It has no lease and no
 * retry: a crash loses the jobs it took. Its listen takes every= besides. */
#include "bench.h"
#include <hiredis/hiredis.h>

enum { BATCH = 100, COMMANDS_A_JOB = 2 };

/* clang-format off */
static const char claim[] =
    "local now = redis.call('TIME') "
    "local now_ms = now[1] * 1000 + math.floor(now[2] / 1000) "
    "local ids = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now_ms, 'LIMIT', 0, 100) "
    "if #ids == 0 then return {} end "
    "local bodies = redis.call('HMGET', KEYS[2], unpack(ids)) "
    "redis.call('ZREM', KEYS[1], unpack(ids)) "
    "redis.call('HDEL', KEYS[2], unpack(ids)) "
    "return {ids, bodies}";
/* clang-format on */

static void zset_put(const char *id, const char *body, int64_t due_ms)
{
    pipe_add("ZADD due %lld %s", (long long)due_ms, id);
    pipe_add("HSET jobs %s %b", id, body, (size_t)BODY_LEN);
}

static void zset_wait(long in_flight)
{
    pipe_wait(in_flight * COMMANDS_A_JOB);
}

static void zset_listen(void)
{
    int64_t every_us = argument_required("every") * 1000;
    redisReply *sha = pipe_ask("SCRIPT LOAD %s", claim);

    while (listening()) {
        redisReply *r = pipe_ask("EVALSHA %s 2 due jobs", sha->str);
        size_t n = r->elements ? r->element[0]->elements : 0;

        for (size_t i = 0; i < n; i++) {
            const redisReply *id = r->element[0]->element[i];
            job_started(id->str, id->len, 0, 0);
            job_settled();
        }

        freeReplyObject(r);
        if (n < BATCH) {
            sleep_until_us(now_us() + every_us);
        }
    }

    freeReplyObject(sha);
}

int main(int argc, char **argv)
{
    static const struct system zset = {
        .window = 400,
        .open = pipe_open,
        .put = zset_put,
        .wait = zset_wait,
        .listen = zset_listen,
    };
    return bench_main(argc, argv, &zset);
}
