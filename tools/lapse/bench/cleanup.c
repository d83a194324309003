/* SPDX-License-Identifier: MIT */
/* Leaves Redis as it was. The library removes jobs but not a queue: its counter stays, so that
 * tokens grow for ever. The bench's queue is nobody's afterwards, so here, and nowhere else outside
 * src/lua, its keys are spelled. Only jobs that are named as ours are removed, and the rest only if
 * no other job is there. */
#include "bench/bench.h"
#include <string.h>

#define BASE "local base = string.sub(KEYS[1], 1, -4) "

/* records, live listeners */
static const char look[] =
    BASE "local t = redis.call('TIME') local now = string.format('(%.0f', t[1] * 1000 + "
         "math.floor(t[2] / 1000)) return { redis.call('HLEN', base .. 'jobs'), "
         "redis.call('ZCOUNT', base .. 'listeners', now, '+inf') }";

/* ARGV: set, place of the first, 1 to remove. Looked at, not ours. */
static const char page[] = BASE
    "local ids = redis.call('ZRANGE', base .. ARGV[1], ARGV[2], ARGV[2] + 499) local own, keys = "
    "{}, {} for _, id in ipairs(ids) do   if #id == 20 and string.match(id, '^bench%-%d+$') then   "
    "  own[#own + 1], keys[#keys + 1] = id, base .. 't:' .. id   end end if ARGV[3] == '1' and "
    "#own > 0 then   redis.call('ZREM', base .. ARGV[1], unpack(own))   redis.call('HDEL', base .. "
    "'jobs', unpack(own))   redis.call('HDEL', base .. 'attempts', unpack(own))   "
    "redis.call('DEL', "
    "unpack(keys)) end return { #ids, #ids - #own }";

/* Reads the listeners' canaries, which have expired, so that they do not lie about until Redis
 * comes by. */
static const char canaries[] =
    BASE "for _, name in ipairs(redis.call('ZRANGE', base .. 'listeners', 0, -1)) do   "
         "redis.call('EXISTS', base .. 't:{' .. name .. '}') end return { 0 }";

/* jobs that are left */
static const char rest[] =
    BASE "local n = redis.call('HLEN', base .. 'jobs') if n == 0 then redis.call('DEL', base .. "
         "'seq', base .. 'listeners') end return { n }";

static const char *const sets[] = {"due", "run", "dead"};

static int walk(struct redis_sync *r, const char *key, int remove, int64_t *own, int64_t *foreign)
{
    enum { SEEN, OTHERS };
    int code = DONE;

    *own = *foreign = 0;

    for (int i = 0; i < 3 && !code; i++) {
        int64_t n[2] = {1};
        int64_t first = 0;
        while (n[SEEN] && !code && (remove || !*foreign)) {
            char at[24];
            snprintf(at, sizeof at, "%lld", (long long)first);
            code = redis_sync_script(r, page, key,
                                     (const char *[]){sets[i], at, remove ? "1" : "0", NULL}, 2, n);
            first += remove ? n[OTHERS] : n[SEEN];
            *own += n[SEEN] - n[OTHERS];
            *foreign += n[OTHERS];
        }
    }

    return code;
}

int keys_check(struct redis_sync *r, const char *key, const char *queue)
{
    enum { RECORDS, LISTENERS };
    int64_t n[2];
    int64_t own;
    int64_t foreign;
    int code = redis_sync_script(r, look, key, NULL, 2, n);

    if (!code) {
        code = walk(r, key, 0, &own, &foreign);
    }

    if (code) {
        return code;
    }
    if (n[LISTENERS]) {
        return usage_error("queue", queue,
                           "somebody listens there: name one that is not in use, or none");
    }

    if (foreign || own != n[RECORDS]) {
        return usage_error("queue", queue,
                           "it holds jobs that are not of lapse bench: name an empty one, or none");
    }

    if (own) {
        message_print("queue %s: %lld jobs of a bench that was killed are removed",
                      printable(queue), (long long)own);
        code = keys_erase(r, key, queue);
    }

    return code;
}

int keys_listeners(struct redis_sync *r, const char *key, int64_t *n)
{
    int64_t both[2];
    int code = redis_sync_script(r, look, key, NULL, 2, both);
    *n = both[1];
    return code;
}

int keys_canaries(struct redis_sync *r, const char *key)
{
    int64_t none;
    return redis_sync_script(r, canaries, key, NULL, 1, &none);
}

int keys_erase(struct redis_sync *r, const char *key, const char *queue)
{
    int64_t own;
    int64_t foreign;
    int64_t left;
    int code = walk(r, key, 1, &own, &foreign);

    if (!code) {
        code = redis_sync_script(r, rest, key, NULL, 1, &left);
    }

    if (!code && left) {
        message_print("queue %s: %lld jobs are not of lapse bench, and stay", printable(queue),
                      (long long)left);
    }

    return code;
}
