/* SPDX-License-Identifier: MIT */
/* The textbook poller: a sorted set of ids by due time, a hash of bodies, and a script that takes
 * what is due, asked for again after every= ms, or at once after a full batch. It has no lease and
 * no retry: a crash loses what was taken.
 */
#include "bench.h"
#include <hiredis/hiredis.h>

enum { BATCH = 100, ADDS = 2 };

static const char claim[] =
    "local now = redis.call('TIME') local ids = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', "
    "now[1] * 1000 + math.floor(now[2] / 1000), 'LIMIT', 0, 100) if #ids == 0 then return {} end "
    "local bodies = redis.call('HMGET', KEYS[2], unpack(ids)) redis.call('ZREM', KEYS[1], "
    "unpack(ids)) redis.call('HDEL', KEYS[2], unpack(ids)) return {ids, bodies}";

static void put(const char *id, const char *body, int64_t due_ms)
{
    pipe_add("ZADD due %lld %s", (long long)due_ms, id);
    pipe_add("HSET jobs %s %b", id, body, (size_t)BODY_LEN);
}

static void until(long in_flight)
{
    pipe_until(in_flight * ADDS);
}

static void listen(void)
{
    int64_t every_us = arg_n("every", INT64_MIN) * 1000;
    redisReply *sha = pipe_ask("SCRIPT LOAD %s", claim);

    while (listening()) {
        redisReply *r = pipe_ask("EVALSHA %s 2 due jobs", sha->str);
        size_t n = r->elements ? r->element[0]->elements : 0;
        for (size_t i = 0; i < n; i++) {
            heard(r->element[0]->element[i]->str, r->element[0]->element[i]->len, 0, 0);
            settled();
        }
        freeReplyObject(r);
        if (n < BATCH) {
            until_us(now_us() + every_us);
        }
    }

    freeReplyObject(sha);
}

int main(int argc, char **argv)
{
    static const struct peer zset = {
        .window = 400, .open = pipe_open, .put = put, .until = until, .listen = listen};
    return bench_main(argc, argv, &zset);
}
