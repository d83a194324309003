/* SPDX-License-Identifier: MIT */
/* The spelling of keys and channels, as far as C knows it; the rest is in src/lua. Events come from
 * outside and are not trusted: anyone with PUBLISH can forge one, and keys of other programs may
 * hold any byte. */
#include "job/keys.h"
#include <stdio.h>
#include <string.h>

static bool is_word(struct span s, size_t max)
{
    static const char bytes[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

    for (size_t i = 0; i < s.len; i++) {
        if (!memchr(bytes, s.at[i], sizeof bytes - 1)) {
            return false;
        }
    }
    return s.len >= 1 && s.len <= max;
}

static bool is_printable(struct span s, size_t max)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.at[i] <= ' ' || s.at[i] > '~' || s.at[i] == '{' || s.at[i] == '}') {
            return false;
        }
    }
    return s.len >= 1 && s.len <= max;
}

bool keys_space_ok(struct span space)
{
    return is_word(space, KEYS_SPACE_MAX);
}

bool keys_queue_ok(struct span queue)
{
    return is_word(queue, KEYS_QUEUE_MAX);
}

bool keys_queues_of(struct span pattern, struct span *beginning)
{
    if (pattern.len == 0 || pattern.at[pattern.len - 1] != '*') {
        return false;
    }

    *beginning = (struct span){pattern.at, pattern.len - 1};
    return beginning->len == 0 || keys_queue_ok(*beginning);
}

bool keys_id_ok(struct span id)
{
    return is_printable(id, KEYS_ID_MAX);
}

bool keys_name_ok(struct span name)
{
    return is_printable(name, KEYS_NAME_MAX);
}

bool keys_header_ok(struct span name)
{
    return is_printable(name, KEYS_HEADER_MAX) && !memchr(name.at, '=', name.len);
}

bool keys_tag_ok(struct span tag)
{
    return is_printable(tag, KEYS_TAG_MAX);
}

bool keys_guard_ok(struct span key, struct span queue)
{
    struct span rest = key;
    struct span before;
    struct span tag;

    if (key.len > KEYS_GUARD_MAX || memchr(key.at, ' ', key.len)) {
        return false;
    }

    return span_cut(&rest, '{', &before) && span_cut(&rest, '}', &tag) && span_eq(tag, queue);
}

bool keys_field_ok(struct span field)
{
    return field.len >= 1 && field.len <= KEYS_GUARD_MAX && !memchr(field.at, ' ', field.len);
}

const char *keys_part_name(enum keys_part part)
{
    static const char *const names[KEYS_PARTS] = {
        [KEYS_DUE] = "due",           [KEYS_RUN] = "run",
        [KEYS_DEAD] = "dead",         [KEYS_JOBS] = "jobs",
        [KEYS_ATTEMPTS] = "attempts", [KEYS_SEQ] = "seq",
        [KEYS_CONF] = "conf",         [KEYS_STREAM] = "stream",
        [KEYS_LIST] = "list",         [KEYS_LISTENERS] = "listeners",
        [KEYS_INDEX] = "index",       [KEYS_NEXT] = "next",
        [KEYS_REPORT] = "report",     [KEYS_KEPT] = "kept",
        [KEYS_ERRORS] = "errors",     [KEYS_BATCHES] = "batches",
        [KEYS_PAST] = "past",
    };
    return names[part];
}

size_t keys_of(char out[KEYS_MAX], const char *space, const char *queue, enum keys_part part)
{
    return (size_t)snprintf(out, KEYS_MAX, "%s:{%s}:%s", space, queue, keys_part_name(part));
}

size_t keys_none(char out[KEYS_MAX], struct span key)
{
    size_t len = key.len;

    while (len > 0 && key.at[len - 1] != ':') {
        len--;
    }
    return (size_t)snprintf(out, KEYS_MAX, "%.*snone", (int)len, key.at);
}

/* Takes SPACE:{QUEUE}: off the beginning of a key. */
static bool skip_queue(struct span *key, const char *space, struct span *queue)
{
    return span_skip(key, space) && span_skip(key, ":{") && span_cut(key, '}', queue) &&
           span_skip(key, ":") && keys_queue_ok(*queue);
}

size_t keys_group(char out[KEYS_TRIGGER_MAX], const char *space, const char *queue, const char *id)
{
    return (size_t)snprintf(out, KEYS_TRIGGER_MAX, "%s:{%s}:p:%s", space, queue, id);
}

bool keys_group_of(struct span key, const char *space, struct span *queue, struct span *id)
{
    struct span name;

    if (!skip_queue(&key, space, &name) || !span_skip(&key, "p:")) {
        return false;
    }

    *queue = name;
    *id = key;
    return true;
}

bool keys_queue_of(struct span key, const char *space, struct span *queue)
{
    struct span name;

    if (!skip_queue(&key, space, &name)) {
        return false;
    }

    for (enum keys_part part = 0; part < KEYS_PARTS; part++) {
        if (span_is(key, keys_part_name(part))) {
            *queue = name;
            return true;
        }
    }
    return false;
}

size_t keys_trigger(char out[KEYS_TRIGGER_MAX], const char *space, const char *queue,
                    const char *id)
{
    return (size_t)snprintf(out, KEYS_TRIGGER_MAX, "%s:{%s}:t:%s", space, queue, id);
}

size_t keys_canary(char out[KEYS_TRIGGER_MAX], const char *space, const char *queue,
                   const char *name)
{
    return (size_t)snprintf(out, KEYS_TRIGGER_MAX, "%s:{%s}:t:{%s}", space, queue, name);
}

size_t keys_alive(char out[KEYS_MAX], const char *space)
{
    return (size_t)snprintf(out, KEYS_MAX, "%s:{}:alive", space);
}

size_t keys_queues(char out[KEYS_MAX], const char *space)
{
    return (size_t)snprintf(out, KEYS_MAX, "%s:{}:queues", space);
}

size_t keys_wake(char out[KEYS_MAX], const char *space, int db)
{
    return (size_t)snprintf(out, KEYS_MAX, "%s:{}:wake:%d", space, db);
}

size_t keys_notice(char out[KEYS_MAX], const char *space, const char *queue, int db)
{
    return (size_t)snprintf(out, KEYS_MAX, "%s:{%s}:notice:%d", space, queue, db);
}

size_t keys_ends(char out[KEYS_MAX], const char *space, const char *queue, int db)
{
    return (size_t)snprintf(out, KEYS_MAX, "%s:{%s}:ends:%d", space, queue, db);
}

size_t keys_pattern(char out[KEYS_MAX], const char *space, const char *queue, int db)
{
    return (size_t)snprintf(out, KEYS_MAX, "__keyspace@%d__:%s:{%s}:t:*", db, space, queue);
}

size_t keys_pattern_of_parts(char out[KEYS_MAX], const char *space)
{
    return (size_t)snprintf(out, KEYS_MAX, "%s:{*}:[^t]*", space);
}

size_t keys_pattern_of_groups(char out[KEYS_MAX], const char *space)
{
    return (size_t)snprintf(out, KEYS_MAX, "%s:{*}:p:*", space);
}

size_t keys_pattern_of_notices(char out[KEYS_MAX], const char *space)
{
    return (size_t)snprintf(out, KEYS_MAX, "%s:{*}:notice:*", space);
}

size_t keys_pattern_of_ends(char out[KEYS_MAX], const char *space)
{
    return (size_t)snprintf(out, KEYS_MAX, "%s:{*}:ends:*", space);
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

struct keys_event keys_event(struct span channel, struct span text, const char *space, int db)
{
    struct keys_event none = {.kind = KEYS_FOREIGN};
    struct keys_event event = {.kind = KEYS_TRIGGER};
    struct span rest;

    if (!expired_key(channel, text, db, &rest) || !span_skip(&rest, space)) {
        return none;
    }
    if (!span_skip(&rest, ":{") || !span_cut(&rest, '}', &event.queue)) {
        return none;
    }
    if (!span_skip(&rest, ":t:")) {
        return none;
    }

    event.id = rest;
    if (rest.len > 2 && rest.at[0] == '{' && rest.at[rest.len - 1] == '}') {
        event.kind = KEYS_CANARY;
        event.id = (struct span){rest.at + 1, rest.len - 2};
    }

    return keys_queue_ok(event.queue) && keys_id_ok(event.id) ? event : none;
}
