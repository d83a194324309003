/* SPDX-License-Identifier: MIT */
/* What this user may do, and whether events reach it. Rights are asked for by redis.acl_check_cmd
 * (7.0) inside a script: it needs no right of its own as ACL DRYRUN and GETUSER do, changes
 * nothing, and leaves no line in ACL LOG. What the scripts call is taken from them when lapse is
 * built. A right that is missing there may break a script in the middle, since Redis does not roll
 * back: the job is then in no set. */
#include "doctor/doctor.h"
#include "tool_scripts.h"
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EVENT_MS = 1000 };

/* ---- rights ---- */
/* ARGV: a command and its arguments, with spaces between. -1: this Redis cannot say. */
static const char allowed[] = "if not redis.acl_check_cmd then return -1 end local words = {} for "
                              "word in string.gmatch(ARGV[1], '%S+') do words[#words + 1] = word "
                              "end return redis.acl_check_cmd(unpack(words)) and 1 or 0";

struct lacks {
    char words[600];   /* for ACL SETUSER: " +zadd +hset" */
    char scripts[300]; /* which they keep from running */
    char helps[400];   /* as words, of what only helps */
    int keys;          /* those of the space are not the user's */
};

/* 1: yes, or this Redis cannot say. */
static int may(struct doctor *d, const char *command)
{
    redisReply *r = ASK(d, d->eval, allowed, "0", command);
    int yes = !r || r->type != REDIS_REPLY_INTEGER || r->integer;
    freeReplyObject(r);
    return yes;
}

/* Once, as a shell takes it: COMMAND, in small letters, or &channel. */
static void add_word(char *out, size_t size, const char *word)
{
    char one[300];

    snprintf(one, sizeof one, *word == '&' ? " '%s'" : " +%s", word);
    for (char *c = one; *word != '&' && *c; c++) {
        *c = *c >= 'A' && *c <= 'Z' ? (char)(*c + 'a' - 'A') : *c;
    }

    size_t used = strlen(out);
    size_t len = strlen(one);
    for (const char *at = out; (at = strstr(at, one)); at++) {
        if (!at[len] || at[len] == ' ') {
            return;
        }
    }

    snprintf(out + used, size - used, "%s", one);
}

static int needed(const struct doctor *d, const struct script_needs *s)
{
    static const enum script_role roles[] = {[FOR_LISTENER] = ROLE_LISTENER,
                                             [FOR_PRODUCER] = ROLE_PRODUCER,
                                             [FOR_MONITOR] = ROLE_MONITOR};

    return s->role <= roles[d->role];
}

static void key_of(const struct doctor *d, char out[200], const char *end)
{
    snprintf(out, 200, "%s:{%s}:%s", d->space, d->n_queues ? d->queues[0] : "lapse-doctor", end);
}

/* The key twice, since acl_check_cmd of a SET without a value is the end of Redis 7.0.15: it reads
 * past its arguments.
 */
static void look_at_script(struct doctor *d, const struct script_needs *s, struct lacks *l)
{
    char key[200];
    char word[40];
    char command[500];
    int lacks = 0;

    key_of(d, key, "due");

    for (const char *at = s->commands; *at; at += strcspn(at, " ") + 1) {
        snprintf(word, sizeof word, "%.*s", (int)strcspn(at, " "), at);
        snprintf(command, sizeof command, "%s %s %s", word, key, key);
        if (!may(d, command)) {
            lacks = 1;
            add_word(l->words, sizeof l->words, word);
        }
    }

    if (lacks) {
        size_t used = strlen(l->scripts);
        snprintf(l->scripts + used, sizeof l->scripts - used, "%s%s", used ? " " : "", s->script);
    }
}

static void look_at_keys(struct doctor *d, struct lacks *l)
{
    static const char *const ends[] = {"due",      "run", "dead",      "jobs",
                                       "attempts", "seq", "listeners", "t:x"};
    char key[200];
    char command[300];

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        key_of(d, key, ends[i]);
        snprintf(command, sizeof command, "%s x 1 %s", d->eval, key);
        l->keys |= !may(d, command);
    }
}

/* A command on a key that is not the user's is refused too, whatever the command: so keys come
 * first. */
static void look_at_commands(struct doctor *d, struct lacks *l)
{
    static const char *const evals[] = {"EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO"};
    char key[200];
    char command[300];

    key_of(d, key, "due");

    for (int i = d->role == FOR_MONITOR ? 2 : 0; i < 4; i++) {
        snprintf(command, sizeof command, "%s x 1 %s", evals[i], key);
        if (!may(d, command)) {
            add_word(l->words, sizeof l->words, evals[i]);
        }
    }

    for (size_t i = 0; i < sizeof script_needs / sizeof *script_needs; i++) {
        if (needed(d, &script_needs[i])) {
            look_at_script(d, &script_needs[i], l);
        }
    }
}

/* to_give: the pattern that the user lacks then. */
static void look_at_channel(struct doctor *d, struct lacks *l, const char *verb,
                            const char *channel, const char *to_give)
{
    char command[340];

    snprintf(command, sizeof command, "%s %s", verb, channel);
    if (!may(d, command)) {
        snprintf(command, sizeof command, "&%s", to_give);
        add_word(l->helps, sizeof l->helps, verb);
        add_word(l->helps, sizeof l->helps, command);
    }
}

static void pattern_of(const struct doctor *d, char out[300])
{
    char triggers[200];

    key_of(d, triggers, "t:*");
    if (d->g->opts.notify == LAPSE_KEYSPACE) {
        snprintf(out, 300, "__keyspace@%d__:%s", d->r.db, triggers);
    } else {
        snprintf(out, 300, "__keyevent@*__:expired");
    }
}

static void look_at_channels(struct doctor *d, struct lacks *l)
{
    char wake[200];
    char end[24];
    char pattern[300];
    char to_give[200];
    char events[300];

    pattern_of(d, pattern);
    snprintf(events, sizeof events, "%s", pattern);
    snprintf(end, sizeof end, "notice:%d", d->r.db);
    key_of(d, wake, end);
    snprintf(to_give, sizeof to_give, "%s", wake);

    if (!d->named) { /* any queue: Redis matches this one, but compares that of a PSUBSCRIBE letter
                        by letter */
        snprintf(to_give, sizeof to_give, "%s:{*}:notice:*", d->space);
        if (d->g->opts.notify == LAPSE_KEYSPACE) {
            snprintf(events, sizeof events, "__keyspace@%d__:%s:{QUEUE}:t:*", d->r.db, d->space);
        }
    }

    if (d->role != FOR_MONITOR) {
        look_at_channel(d, l, "PUBLISH", wake, to_give);
    }

    if (d->role == FOR_LISTENER) {
        look_at_channel(d, l, "SUBSCRIBE", wake, to_give);
        look_at_channel(d, l, "PSUBSCRIBE", pattern, events);
    }
}

static void user_of(struct doctor *d, char out[VALUE_BYTES])
{
    redisReply *r = ASK(d, "ACL", "WHOAMI");

    snprintf(out, VALUE_BYTES, "%s",
             is_text(r)   ? printable(r->str)
             : *d->r.user ? printable(d->r.user)
                          : "default");
    freeReplyObject(r);
}

static void tell_rights(struct doctor *d, const struct lacks *l)
{
    static const char *const roles[] = {"listener", "producer", "monitor"};
    char user[VALUE_BYTES];
    char mend[VALUE_BYTES + 1200];
    char keys[80] = "";

    user_of(d, user);
    if (l->keys) {
        snprintf(keys, sizeof keys, " '~%s:*'", d->space);
    }

    snprintf(mend, sizeof mend, "redis-cli ACL SETUSER '%s'%s%s%s",
             is_tame(user, "@:+/") ? user : "NAME", keys, l->words, l->helps);

    if (l->keys || *l->words) {
        report(d, FAIL, "rights", NULL, mend, "user %s lacks%s%s%s%s", user, keys, l->words,
               *l->scripts ? ", so these are refused, or break in the middle: " : "", l->scripts);
    } else if (*l->helps) {
        report(d, WARN, "rights", NULL, mend,
               "user %s lacks%s: alarm and sweep deliver, a little later", user, l->helps);
    } else {
        report(d, FINE, "rights", NULL, NULL, "user %s has those of a %s", user, roles[d->role]);
    }
}

void check_rights(struct doctor *d)
{
    struct lacks l = {.keys = 0};
    redisReply *r = ASK(d, d->eval, allowed, "0", "TIME");

    if (is_error(r, "NOPERM") && d->role == FOR_MONITOR) {
        freeReplyObject(r);
        d->eval = "EVAL_RO";
        r = ASK(d, d->eval, allowed, "0", "TIME");
    }

    if (is_error(r, "NOPERM")) {
        report(d, FAIL, "rights", NULL, "redis-cli ACL SETUSER NAME +eval +evalsha", "%s",
               printable(r->str));
    } else if (r && (r->type != REDIS_REPLY_INTEGER || r->integer < 0)) {
        report(d, WARN, "rights", NULL, "lapse bench", "cannot be asked for: %s",
               is_error(r, "") ? printable(r->str) : "that takes Redis 7.0");
    } else if (r) {
        look_at_keys(d, &l);
        if (!l.keys) {
            look_at_commands(d, &l);
        }
        look_at_channels(d, &l);
        if (!d->code) {
            tell_rights(d, &l);
        }
    }

    freeReplyObject(r);
}

/* ---- events ---- */
enum heard { HEARD, SILENT, REFUSED };

static int starts(const redisReply *r, size_t n, const char *word)
{
    return r && r->type == REDIS_REPLY_ARRAY && r->elements == n && is_text(r->element[0]) &&
           strcmp(r->element[0]->str, word) == 0;
}

static int is_ours(const redisReply *r, const char *key)
{
    return starts(r, 4, "pmessage") && is_text(r->element[2]) && is_text(r->element[3]) &&
           (strcmp(r->element[3]->str, key) == 0 ||
            (strstr(r->element[2]->str, key) && strcmp(r->element[3]->str, "expired") == 0));
}

/* Reading it after its moment makes Redis expire it and say so. */
static enum heard expire(struct doctor *d, const char *key, char *why)
{
    redisReply *r = ASK(d, "SET", key, "1", "PX", "1");
    enum heard is = is_error(r, "") || !r ? REFUSED : SILENT;

    if (is_error(r, "")) {
        snprintf(why, VALUE_BYTES, "SET: %s", printable(r->str));
    }

    freeReplyObject(r);
    for (int there = is == SILENT, tries = 0; there && tries < 1000; tries++) {
        usleep(1000);
        r = ASK(d, "EXISTS", key);
        there = r && r->type == REDIS_REPLY_INTEGER && r->integer;
        freeReplyObject(r);
    }

    return is;
}

static enum heard listen_for(struct doctor *d, struct redis_sync *ear, const char *pattern,
                             const char *key, char *why)
{
    struct timeval limit = {EVENT_MS / 1000, 0};
    redisReply *r = redis_sync_command(ear, 2, (const char *const[]){"PSUBSCRIBE", pattern}, NULL);
    void *next = NULL;
    enum heard is = starts(r, 3, "psubscribe") ? SILENT : REFUSED;

    if (is_error(r, "")) {
        snprintf(why, VALUE_BYTES, "PSUBSCRIBE: %s", printable(r->str));
    }

    freeReplyObject(r);
    is = is == SILENT ? expire(d, key, why) : is;

    if (is == SILENT && !redisSetTimeout(ear->c, limit)) {
        for (int64_t end = monotonic_ms() + EVENT_MS; is == SILENT && monotonic_ms() < end;) {
            if (redisGetReply(ear->c, &next) != REDIS_OK) {
                break;
            }
            is = is_ours(next, key) ? HEARD : SILENT;
            freeReplyObject(next);
        }
    }

    return is;
}

static void flags_to_set(const struct doctor *d, const char *now, char out[VALUE_BYTES])
{
    char kind = d->g->opts.notify == LAPSE_KEYSPACE ? 'K' : 'E';
    snprintf(out, VALUE_BYTES, "redis-cli CONFIG SET notify-keyspace-events %.200s%.*s%s", now,
             strchr(now, kind) ? 0 : 1, &kind, strpbrk(now, "xA") ? "" : "x");
}

void check_events(struct doctor *d)
{
    struct redis_sync ear;
    char name[64];
    char key[200];
    char pattern[300];
    char now[VALUE_BYTES];
    char mend[VALUE_BYTES];
    char why[VALUE_BYTES] = "";

    if (d->replica || d->role != FOR_LISTENER) {
        return; /* a replica publishes none, and it was said */
    }

    snprintf(name, sizeof name, "t:{doctor:%d:%lld}", (int)getpid(), (long long)monotonic_us());
    key_of(d, key, name);
    pattern_of(d, pattern);
    d->code = redis_sync_open(&ear, d->secret, d->r.shown, doctor_patience_ms(d), 0);
    if (d->code) {
        return;
    }

    enum heard is = listen_for(d, &ear, pattern, key, why);
    int known = doctor_config(d, "notify-keyspace-events", now);
    int set = 0;
    redis_sync_close(&ear);
    if (d->code) {
        return;
    }

    flags_to_set(d, is_tame(now, "$@") ? now : "", mend);
    set =
        known && strpbrk(now, "xA") && strchr(now, d->g->opts.notify == LAPSE_KEYSPACE ? 'K' : 'E');

    if (is == HEARD) {
        report(d, FINE, "events", NULL, NULL, "a key expired, and its event came%s%s",
               known ? ": notify-keyspace-events " : "", now);
    } else if (is == REFUSED) {
        report(d, WARN, "events", NULL, NULL,
               "cannot be tried: %s; alarm and sweep deliver, a little later",
               *why ? why : "no answer");
    } else {
        report(d, WARN, "events", NULL, set ? "redis-cli ACL GETUSER, and its channels" : mend,
               "a key expired, and no event came (notify-keyspace-events %s): alarm and sweep "
               "deliver, a little later",
               !known ? "this user may not ask for"
               : *now ? now
                      : "\"\"");
    }
}
