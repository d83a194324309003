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

bool reply_int(const struct redisReply *r, int64_t *out)
{
    struct span text;

    if (!r || r->type != REDIS_REPLY_INTEGER) {
        return reply_text(r, &text) && span_decimal(text, EXACT_MAX, out);
    }

    if (r->integer > EXACT_MAX || r->integer < -EXACT_MAX) {
        return false;
    }

    *out = r->integer;
    return true;
}

static struct span reply_span(const struct redisReply *r)
{
    return (struct span){r->str, (size_t)r->len};
}

bool reply_text(const struct redisReply *r, struct span *out)
{
    if (!r || (r->type != REDIS_REPLY_STRING && r->type != REDIS_REPLY_STATUS)) {
        return false;
    }
    *out = reply_span(r);
    return true;
}

bool reply_nil(const struct redisReply *r)
{
    return r && r->type == REDIS_REPLY_NIL;
}

bool reply_error(const struct redisReply *r, struct span *out)
{
    if (!r || r->type != REDIS_REPLY_ERROR) {
        return false;
    }
    *out = reply_span(r);
    return true;
}
