/* SPDX-License-Identifier: MIT */
/* The spelling of keys and channels, as far as C knows it; the rest is in src/lua. Events come from
 * outside and are not trusted: anyone with PUBLISH can forge one, and keys of other programs may
 * hold any byte. */
#include "job/keys.h"
#include <stdio.h>
#include <string.h>

bool keys_word(const char *s, size_t max)
{
    size_t len = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");
    return len >= 1 && len <= max && !s[len];
}

bool keys_queue_ok(const char *queue)
{
    return keys_word(queue, KEYS_QUEUE_MAX);
}

bool keys_id_ok(const char *id, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (id[i] <= ' ' || id[i] > '~' || id[i] == '{' || id[i] == '}') {
            return false;
        }
    }
    return len >= 1 && len <= KEYS_ID_MAX;
}

size_t keys_due(char out[KEYS_MAX], const char *space, const char *queue)
{
    return (size_t)snprintf(out, KEYS_MAX, "%s:{%s}:due", space, queue);
}

size_t keys_wake(char out[KEYS_MAX], const char *space, const char *queue, int db)
{
    return (size_t)snprintf(out, KEYS_MAX, "%s:{%s}:notice:%d", space, queue, db);
}

size_t keys_pattern(char out[KEYS_MAX], const char *space, const char *queue, int db)
{
    return (size_t)snprintf(out, KEYS_MAX, "__keyspace@%d__:%s:{%s}:t:*", db, space, queue);
}

/* __keyevent@DB__:expired says the key, __keyspace@DB__:KEY says expired. */
static bool expired_key(struct span channel, struct span text, int db, struct span *key)
{
    char prefix[40];

    snprintf(prefix, sizeof prefix, "__keyevent@%d__:expired", db);
    if (span_is(channel, prefix)) {
        *key = text;
        return true;
    }

    snprintf(prefix, sizeof prefix, "__keyspace@%d__:", db);
    *key = channel;
    return span_skip(key, prefix) && span_is(text, "expired");
}

enum keys_event keys_event(struct span channel, struct span text, const char *space, int db,
                           struct span *queue, struct span *id)
{
    struct span key;

    if (!expired_key(channel, text, db, &key)) {
        return KEYS_FOREIGN;
    }

    if (!span_skip(&key, space) || !span_skip(&key, ":{")) {
        return KEYS_FOREIGN;
    }

    const char *end = memchr(key.at, '}', key.len);
    if (!end || end - key.at > KEYS_QUEUE_MAX) {
        return KEYS_FOREIGN;
    }

    char name[KEYS_QUEUE_MAX + 1] = "";
    *queue = (struct span){key.at, (size_t)(end - key.at)};
    memcpy(name, queue->at, queue->len);
    if (strlen(name) != queue->len || !keys_queue_ok(name)) {
        return KEYS_FOREIGN;
    }

    *id = (struct span){end, key.len - queue->len};
    if (!span_skip(id, "}:t:")) {
        return KEYS_FOREIGN;
    }

    bool canary = id->len > 2 && id->at[0] == '{' && id->at[id->len - 1] == '}';
    if (canary) {
        *id = (struct span){id->at + 1, id->len - 2};
    }

    return !keys_id_ok(id->at, id->len) ? KEYS_FOREIGN : canary ? KEYS_CANARY : KEYS_TRIGGER;
}
