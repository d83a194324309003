/* SPDX-License-Identifier: MIT */
/* Whether expiry events reach this user: a key of its own expires, and the event is waited for. */
#include "doctor/ask.h"
#include "doctor/channels.h"
#include "doctor/checks.h"
#include "doctor/report.h"
#include "cli/message.h"
#include "cli/values.h"
#include "redis/redis_error.h"
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { EXPIRY_MS = 1000 };

enum event_result {
    RECEIVED,
    MISSED,
    REFUSED,
    MOVING, /* the slot of the queue, so that no key of it can be made */
};
struct event_test {
    enum event_result result;
    char error[VALUE_BYTES]; /* of REFUSED and MOVING */
};

void channel_of_events(const struct doctor *d, char out[KEYS_MAX])
{
    if (d->g->opts.notify == LAPSE_KEYSPACE) {
        keys_pattern(out, d->space, doctor_queue(d), d->redis.db);
    } else {
        memcpy(out, KEYS_EXPIRED, sizeof KEYS_EXPIRED);
    }
}

/* "pmessage", and so on: a push of n elements. */
static bool is_push(const redisReply *r, size_t n, const char *kind)
{
    return r && r->type == REDIS_REPLY_ARRAY && r->elements == n && is_text_of(r->element[0], kind);
}

static bool is_event_of(const redisReply *r, const char *key)
{
    if (!is_push(r, 4, "pmessage") || !is_text(r->element[2]) || !is_text(r->element[3])) {
        return false;
    }

    const char *channel = r->element[2]->str;
    const char *message = r->element[3]->str;
    bool is_keyspace = strstr(channel, key) && strcmp(message, "expired") == 0;

    return is_keyspace || strcmp(message, key) == 0;
}

static void refuse(struct event_test *t, const char *command, const redisReply *r)
{
    bool is_moving = is_error(r) && redis_error_of(span_of(r->str)) == REDIS_ERROR_MOVING;

    t->result = is_moving ? MOVING : REFUSED;
    snprintf(t->error, sizeof t->error, "%s: %s", command,
             is_error(r) ? printable(r->str) : "unexpected reply");
}

static bool subscribe_to_events(struct redis_sync *subscriber, const char *pattern,
                                struct event_test *t)
{
    const char *argv[] = {"PSUBSCRIBE", pattern};
    redisReply *r = redis_sync_command(subscriber, 2, argv, NULL);
    bool ok = is_push(r, 3, "psubscribe");

    if (!ok) {
        refuse(t, "PSUBSCRIBE", r);
    }

    freeReplyObject(r);
    return ok;
}

static bool key_exists(struct doctor *d, const char *key)
{
    redisReply *r = ASK(d, "EXISTS", key);
    bool exists = r && r->type == REDIS_REPLY_INTEGER && r->integer != 0;

    freeReplyObject(r);
    return exists;
}

/* Reading the key after its moment makes Redis expire it at once. */
static bool expire_key(struct doctor *d, const char *key, struct event_test *t)
{
    redisReply *r = ASK(d, "SET", key, "1", "PX", "1");
    bool ok = r && !is_error(r);

    if (!ok) {
        refuse(t, "SET", r);
    }

    freeReplyObject(r);
    for (int ms = 0; ok && ms < EXPIRY_MS; ms++) {
        usleep(1000);
        if (!key_exists(d, key)) {
            break;
        }
    }

    return ok;
}

/* Redis has published the event, if at all, before it said that the key is gone; so the event is
 * read before the answer to a PING that follows, however slow both sides are. */
static void read_event(struct redis_sync *subscriber, const char *key, struct event_test *t)
{
    bool is_answered = false;

    t->result = MISSED;
    redisAppendCommand(subscriber->c, "PING");
    while (t->result == MISSED && !is_answered) {
        void *push = NULL;
        if (redisGetReply(subscriber->c, &push) != REDIS_OK) {
            t->result = REFUSED;
            snprintf(t->error, sizeof t->error, "PING: %s", printable(subscriber->c->errstr));
            return;
        }
        if (is_event_of(push, key)) {
            t->result = RECEIVED;
        }
        is_answered = is_error(push) || is_push(push, 2, "pong");
        freeReplyObject(push);
    }
}

static void test_events(struct doctor *d, struct event_test *t)
{
    struct redis_sync subscriber;
    char name[64];
    char key[KEYS_TRIGGER_MAX];
    char pattern[KEYS_MAX];

    snprintf(name, sizeof name, "doctor:%d:%lld", (int)getpid(), (long long)monotonic_us());
    keys_canary(key, d->space, doctor_queue(d), name);
    channel_of_events(d, pattern);

    int code = doctor_connect_again(d, &subscriber);
    if (code && d->cluster) { /* the first one is there, and the other checks go on */
        t->result = REFUSED;
        snprintf(t->error, sizeof t->error, "%.200s", printable(subscriber.why));
        return;
    }
    d->code = code;
    if (d->code) {
        return;
    }

    if (subscribe_to_events(&subscriber, pattern, t) && expire_key(d, key, t)) {
        read_event(&subscriber, key, t);
    }

    redis_sync_close(&subscriber);
}

/* The flags of others are kept. */
static void flags_command(const struct doctor *d, const char *flags, char out[VALUE_BYTES])
{
    bool keyspace = d->g->opts.notify == LAPSE_KEYSPACE;
    const char *kind = keyspace ? "K" : "E";
    const char *expired = strpbrk(flags, "xA") ? "" : "x";

    if (strstr(flags, kind)) {
        kind = "";
    }
    snprintf(out, VALUE_BYTES, "redis-cli CONFIG SET notify-keyspace-events %.200s%s%s", flags,
             kind, expired);
}

static bool flags_are_set(const struct doctor *d, const char *flags)
{
    char kind = d->g->opts.notify == LAPSE_KEYSPACE ? 'K' : 'E';
    return strpbrk(flags, "xA") && strchr(flags, kind);
}

static void report_missed(struct doctor *d, const char *flags, bool known)
{
    struct finding f = {.check = "events", .verdict = WARN};
    char fix[VALUE_BYTES];

    flags_command(d, is_shell_safe(flags, "$@") ? flags : "", fix);
    f.fix = fix;
    if (known && flags_are_set(d, flags)) {
        f.fix = "redis-cli ACL GETUSER NAME; its channels must allow this subscription";
    }

    const char *shown = *flags ? flags : "\"\"";
    report(d, f,
           "a key expired, but its event did not arrive (notify-keyspace-events %s): alarm and "
           "sweep deliver the jobs, a little later",
           known ? shown : "is unknown, for this user may not run CONFIG GET");
}

void check_flags(struct doctor *d)
{
    struct finding f = {.check = "events", .verdict = WARN};
    char flags[VALUE_BYTES];
    char fix[VALUE_BYTES];

    if (d->role != FOR_LISTENER) {
        return;
    }
    if (!config_text(d, "notify-keyspace-events", flags)) {
        report(d, f, "notify-keyspace-events is unknown: this user may not run CONFIG GET");
        return;
    }
    if (flags_are_set(d, flags)) {
        return;
    }

    flags_command(d, is_shell_safe(flags, "$@") ? flags : "", fix);
    f.fix = fix;
    report(
        d, f,
        "notify-keyspace-events %s: when it is the master, no event arrives, and alarm and sweep "
        "deliver the jobs, a little later",
        *flags ? flags : "\"\"");
}

void check_events(struct doctor *d)
{
    struct finding f = {.check = "events"};
    struct event_test t = {.result = MISSED};
    char flags[VALUE_BYTES];

    if (d->is_replica || d->role != FOR_LISTENER) {
        return; /* a replica publishes none, as its role's line says */
    }

    test_events(d, &t);
    bool known = config_text(d, "notify-keyspace-events", flags);
    if (d->code) {
        return;
    }

    switch (t.result) {
    case RECEIVED:
        if (known) {
            report(d, f, "a key expired, and its event arrived: notify-keyspace-events %s", flags);
        } else {
            report(d, f, "a key expired, and its event arrived");
        }
        break;
    case REFUSED:
        f.verdict = WARN;
        report(d, f, "cannot be tested: %s; alarm and sweep deliver the jobs, a little later",
               t.error);
        break;
    case MOVING:
        f.verdict = WARN;
        report(d, f,
               "cannot be tested while the slot of queue %s is moving to another node: run doctor "
               "again when it has moved (%s)",
               doctor_queue(d), t.error);
        break;
    case MISSED: report_missed(d, flags, known); break;
    }
}
