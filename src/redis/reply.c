/* SPDX-License-Identifier: MIT */
/* The only reader of redisReply. */
#include "redis/reply.h"
#include <hiredis/hiredis.h>

size_t reply_len(const struct redisReply *r)
{
    return r && r->type == REDIS_REPLY_ARRAY ? r->elements : 0;
}

const struct redisReply *reply_at(const struct redisReply *r, size_t i)
{
    return i < reply_len(r) ? r->element[i] : NULL;
}

/* No script of ours says more than Lua can count exactly; a thousand times that still is an
 * int64_t. */
#define EXACT ((int64_t)1 << 53)

bool reply_int(const struct redisReply *r, int64_t *out)
{
    if (r && r->type == REDIS_REPLY_INTEGER) {
        bool exact = r->integer <= EXACT && r->integer >= -EXACT;
        *out = exact ? r->integer : *out;
        return exact;
    }

    struct span s;
    if (!reply_text(r, &s) || s.len < 1 || s.len > 16) {
        return false;
    }

    int64_t n = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (s.at[i] < '0' || s.at[i] > '9') {
            return false;
        }
        n = n * 10 + (s.at[i] - '0');
    }

    if (n > EXACT) {
        return false;
    }

    *out = n;

    return true;
}

static struct span bytes_of(const struct redisReply *r)
{
    return (struct span){r->str, (size_t)r->len};
}

bool reply_text(const struct redisReply *r, struct span *out)
{
    if (!r || (r->type != REDIS_REPLY_STRING && r->type != REDIS_REPLY_STATUS)) {
        return false;
    }
    *out = bytes_of(r);
    return true;
}

bool reply_error(const struct redisReply *r, struct span *out)
{
    if (!r || r->type != REDIS_REPLY_ERROR) {
        return false;
    }
    *out = bytes_of(r);
    return true;
}
