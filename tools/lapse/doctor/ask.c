/* SPDX-License-Identifier: MIT */
#include "doctor/ask.h"
#include "cli/message.h"
#include "redis/redis_error.h"
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

redisReply *ask_redis(struct doctor *d, int argc, const char *const *argv, const size_t *len)
{
    if (d->code) {
        return NULL;
    }

    redisReply *r = redis_sync_command(&d->redis, argc, argv, len);
    if (!r) {
        d->code = DOWN;
    }

    return r;
}

bool is_error(const redisReply *r)
{
    return r && r->type == REDIS_REPLY_ERROR;
}

bool is_denied(const redisReply *r)
{
    return is_error(r) && redis_error_of(span_of(r->str)) == REDIS_ERROR_DENIED;
}

const char *explain_error(const char *error, char out[VALUE_BYTES])
{
    enum redis_error kind = redis_error_of(span_of(error));

    if (kind == REDIS_ERROR_MOVING) {
        snprintf(out, VALUE_BYTES, "%s (%s)", redis_error_advice(kind), printable(error));
    } else {
        snprintf(out, VALUE_BYTES, "%s", printable(error));
    }
    return out;
}

bool is_text(const redisReply *r)
{
    return r && (r->type == REDIS_REPLY_STRING || r->type == REDIS_REPLY_STATUS) && r->str;
}

bool is_text_of(const redisReply *r, const char *text)
{
    return is_text(r) && strcmp(r->str, text) == 0;
}

bool info_has(const struct doctor *d, const char *name)
{
    return *redis_info_field(d->info, name) != '\0';
}

int64_t info_int(const struct doctor *d, const char *name)
{
    return strtoll(redis_info_field(d->info, name), NULL, 10);
}

const char *info_text(const struct doctor *d, const char *name, char out[VALUE_BYTES])
{
    const char *field = redis_info_field(d->info, name);
    int len = (int)(strcspn(field, "\r\n") % VALUE_BYTES);

    snprintf(out, VALUE_BYTES, "%.*s", len, field);
    return out;
}

const char *hello_text(struct doctor *d, const char *name, char out[VALUE_BYTES])
{
    redisReply *r = ASK(d, "HELLO");
    size_t n = r && r->type == REDIS_REPLY_ARRAY ? r->elements : 0;

    *out = '\0';
    for (size_t i = 0; i + 1 < n; i += 2) {
        if (is_text_of(r->element[i], name) && is_text(r->element[i + 1])) {
            snprintf(out, VALUE_BYTES, "%s", printable(r->element[i + 1]->str));
        }
    }

    freeReplyObject(r);
    return out;
}

bool config_text(struct doctor *d, const char *name, char out[VALUE_BYTES])
{
    redisReply *r = ASK(d, "CONFIG", "GET", name);
    bool known = r && r->type == REDIS_REPLY_ARRAY && r->elements == 2 && is_text(r->element[1]);

    *out = '\0';
    if (known) {
        snprintf(out, VALUE_BYTES, "%s", printable(r->element[1]->str));
    }

    freeReplyObject(r);
    return known;
}
