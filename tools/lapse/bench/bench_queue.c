/* SPDX-License-Identifier: MIT */
/* Leaves Redis as it was. The library removes jobs but not a queue, for its counter of tokens must
 * never go back. Nobody needs the bench's queue afterwards. Only jobs that are named as those
 * of a bench are removed, and the rest only if no other job is there. */
#include "bench/bench_queue.h"
#include "bench/producer.h"
#include "cli/message.h"
#include "command.h"
#include <hiredis/hiredis.h>
#include <stdio.h>

/* clang-format off */

/* ARGV: the name of a listener. Returns 1 if it is alive. */
static const char alive_script[] =
    "local time = redis.call('TIME') "
    "local now = time[1] * 1000 + math.floor(time[2] / 1000) "
    "local ends_ms = redis.call('ZSCORE', KEYS[1], ARGV[1]) "
    "return { ends_ms and tonumber(ends_ms) > now and 1 or 0 }";

/* ARGV: the key of the records. Returns their number. */
static const char count_script[] = "return { redis.call('HLEN', ARGV[1]) }";

/* ARGV: the key of a set, rank of the first, 1 to remove ours; the keys of the records and of the
 * attempts, and what the keys of triggers begin with. Returns how many it has seen, and how many of
 * these are not ours. */
static const char page_script[] =
    "local ids = redis.call('ZRANGE', ARGV[1], ARGV[2], ARGV[2] + 499) "
    "local own, keys = {}, {} "
    "for _, id in ipairs(ids) do "
    "    if #id == 20 and string.match(id, '^bench%-%d+$') then "
    "        own[#own + 1], keys[#keys + 1] = id, ARGV[6] .. id "
    "    end "
    "end "
    "if ARGV[3] == '1' and #own > 0 then "
    "    redis.call('ZREM', ARGV[1], unpack(own)) "
    "    redis.call('HDEL', ARGV[4], unpack(own)) "
    "    redis.call('HDEL', ARGV[5], unpack(own)) "
    "    redis.call('DEL', unpack(keys)) "
    "end "
    "return { #ids, #ids - #own }";

/* ARGV: the key of the listeners, and what the keys of canaries begin with. Reads the canaries,
 * which have expired, so that Redis removes them now. */
static const char canaries_script[] =
    "for _, name in ipairs(redis.call('ZRANGE', ARGV[1], 0, -1)) do "
    "    redis.call('EXISTS', ARGV[2] .. name .. '}') "
    "end "
    "return { 0 }";

/* ARGV: the keys of the records, of the token, the listeners and the history. Returns the number of
 * jobs that are left; removes the rest if there are none. */
static const char rest_script[] =
    "local n = redis.call('HLEN', ARGV[1]) "
    "if n == 0 then redis.call('DEL', ARGV[2], ARGV[3], ARGV[4]) end "
    "return { n }";
/* clang-format on */

struct bench_queue_count {
    int64_t own, foreign;
};

void bench_queue_init(struct bench_queue *q, struct servers *servers, const char *space,
                      const char *name)
{
    space = space ? space : "lapse";
    q->servers = servers;
    q->name = name;

    for (enum keys_part part = 0; part < KEYS_PARTS; part++) {
        keys_of(q->keys[part], space, name, part);
    }
    keys_none(q->none, span_of(q->keys[KEYS_DUE]));
    keys_alive(q->alive, space);
    keys_queues(q->queues, space);
    keys_trigger(q->triggers, space, name, "");
    keys_trigger(q->canaries, space, name, "{");
}

int bench_queue_connect(struct bench_queue *q, const struct globals *g, const char *url,
                        int64_t wait_ms)
{
    const char *keys[] = {q->keys[KEYS_DUE], q->alive, q->queues, NULL};

    return servers_open(q->servers, g, url, keys, wait_ms);
}

struct redis_sync *bench_queue_server(const struct bench_queue *q)
{
    return servers_of(q->servers, q->keys[KEYS_DUE]);
}

const char *bench_queue_place(const struct bench_queue *q)
{
    return servers_place(q->servers, q->keys[KEYS_DUE]);
}

/* Two keys, as the library's scripts have them: so Redis starts none while the slot moves. */
static int queue_script(const struct bench_queue *q, const char *script, const char *const *args,
                        int n, int64_t *out)
{
    const char *keys[] = {q->keys[KEYS_DUE], q->none, NULL};

    return redis_sync_script(bench_queue_server(q), script, keys, args, n, out);
}

static int walk_set(const struct bench_queue *q, enum keys_part set, bool remove,
                    struct bench_queue_count *count)
{
    enum { SEEN, FOREIGN, NUMBERS };
    int64_t n[NUMBERS];
    int64_t first = 0;

    do {
        char rank[24];
        const char *args[] = {
            q->keys[set], rank, remove ? "1" : "0", q->keys[KEYS_JOBS], q->keys[KEYS_ATTEMPTS],
            q->triggers,  NULL};
        snprintf(rank, sizeof rank, "%lld", (long long)first);

        int code = queue_script(q, page_script, args, NUMBERS, n);
        if (code) {
            return code;
        }

        first += remove ? n[FOREIGN] : n[SEEN];
        count->own += n[SEEN] - n[FOREIGN];
        count->foreign += n[FOREIGN];
    } while (n[SEEN] > 0 && (remove || count->foreign == 0));

    return DONE;
}

static int walk_queue(const struct bench_queue *q, bool remove, struct bench_queue_count *count)
{
    static const enum keys_part sets[] = {KEYS_DUE, KEYS_RUN, KEYS_DEAD};

    *count = (struct bench_queue_count){0, 0};

    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        int code = walk_set(q, sets[i], remove, count);
        if (code) {
            return code;
        }
        if (count->foreign > 0 && !remove) {
            break;
        }
    }

    return DONE;
}

static int count_records(const struct bench_queue *q, int64_t *n)
{
    const char *args[] = {q->keys[KEYS_JOBS], NULL};

    return queue_script(q, count_script, args, 1, n);
}

int bench_queue_count_listeners(const struct bench_queue *q, int64_t *n)
{
    const char *argv[] = {"ZRANGE", q->keys[KEYS_LISTENERS], "0", "-1"};
    const char *keys[] = {q->alive, NULL};
    struct redis_sync *server = bench_queue_server(q);
    redisReply *names = redis_sync_command(server, 4, argv, NULL);
    int code = names ? DONE : DOWN;

    *n = 0;
    if (names && names->type == REDIS_REPLY_ERROR) {
        message_print("%s: ZRANGE: %s", printable(server->shown), printable(names->str));
        code = DOWN;
    }
    for (size_t i = 0; names && i < names->elements && !code; i++) {
        const char *args[] = {names->element[i]->str, NULL};
        int64_t is_alive = 0;
        code = redis_sync_script(servers_of(q->servers, q->alive), alive_script, keys, args, 1,
                                 &is_alive);
        *n += is_alive;
    }

    freeReplyObject(names);
    return code;
}

int bench_queue_check(const struct bench_queue *q)
{
    struct bench_queue_count count;
    int64_t records;
    int64_t listeners;
    int code = count_records(q, &records);

    if (!code) {
        code = bench_queue_count_listeners(q, &listeners);
    }
    if (!code) {
        code = walk_queue(q, false, &count);
    }
    if (code) {
        return code;
    }

    if (listeners > 0) {
        return usage_error("queue", q->name,
                           "it has listeners: name one that is not in use, or none");
    }
    if (count.foreign > 0 || count.own != records) {
        return usage_error("queue", q->name,
                           "it holds jobs that are not of lapse bench: name an empty one, or none");
    }
    if (count.own == 0) {
        return DONE;
    }

    message_print("queue %s: removing %lld jobs of a bench that was killed", printable(q->name),
                  (long long)count.own);

    return bench_queue_erase(q);
}

void bench_queue_expire_canaries(const struct bench_queue *q)
{
    const char *args[] = {q->keys[KEYS_LISTENERS], q->canaries, NULL};
    int64_t nothing;

    queue_script(q, canaries_script, args, 1, &nothing);
}

/* The queue is in the registry since the first job. A user who may not write there has not entered
 * it. */
static void queue_forget(const struct bench_queue *q)
{
    const char *argv[] = {"ZREM", q->queues, q->name};
    redisReply *reply = redis_sync_command(servers_of(q->servers, q->queues), 3, argv, NULL);

    if (reply) {
        freeReplyObject(reply);
    }
}

int bench_queue_erase(const struct bench_queue *q)
{
    const char *args[] = {q->keys[KEYS_JOBS], q->keys[KEYS_SEQ], q->keys[KEYS_LISTENERS],
                          q->keys[KEYS_PAST], NULL};
    struct bench_queue_count count;
    int64_t left;
    int code = walk_queue(q, true, &count);

    if (!code) {
        code = queue_script(q, rest_script, args, 1, &left);
    }

    if (!code && left == 0) {
        queue_forget(q);
    }
    if (!code && left > 0) {
        message_print("queue %s: %lld jobs are not of lapse bench, and stay", printable(q->name),
                      (long long)left);
    }

    return code;
}
