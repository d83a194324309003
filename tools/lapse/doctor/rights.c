/* SPDX-License-Identifier: MIT */
/* What this user may do. Rights are asked for by redis.acl_check_cmd (7.0) inside a script: it
 * needs no right of its own as ACL DRYRUN and GETUSER do, changes nothing, and leaves no line in
 * ACL LOG. What the scripts call is taken from them when lapse is built. A right that is missing
 * there may stop a script half-way, for Redis does not roll back: then the job may be in none of
 * the sets due, run and dead. */
#include "doctor/ask.h"
#include "doctor/channels.h"
#include "doctor/checks.h"
#include "doctor/report.h"
#include "cli/message.h"
#include "tool_scripts.h"
#include <ctype.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

enum { COMMAND_BYTES = 500, WORD_BYTES = 40 };

/* clang-format off */
/* ARGV: a command and its arguments, with spaces between. Returns 1 or 0, or -1 if this Redis
 * cannot say. Redis 8 has an error for a command with too few or too many arguments: then it is
 * given as many as it takes, of these and, behind them, of the last one again. */
static const char allowed_script[] =
    "if not redis.acl_check_cmd then return -1 end "
    "local words = {} "
    "for word in string.gmatch(ARGV[1], '%S+') do words[#words + 1] = word end "
    "local known, allowed = pcall(redis.acl_check_cmd, unpack(words)) "
    "local n, refusal = 0, allowed "
    "while not known and n < 8 do "
    "n = n + 1 "
    "words[n] = words[n] or words[n - 1] "
    "known, allowed = pcall(redis.acl_check_cmd, unpack(words, 1, n)) "
    "end "
    "if not known then return {err = refusal.err or refusal} end "
    "return allowed and 1 or 0";
/* clang-format on */

/* What the user lacks, as arguments of ACL SETUSER: " +zadd +hset". */
struct missing {
    bool keys;          /* of the space */
    char commands[600]; /* that a script needs */
    char scripts[300];  /* those scripts */
    char optional[400]; /* rights without which jobs run a little later */
    bool wait;          /* without it no schedule can ask for replicas */
    char unknown[40];   /* a command of which Redis does not say whether it is allowed */
    char why[200];
};

/* Also true if this Redis does not say, as of a command that it does not know. */
static bool is_allowed(struct doctor *d, struct missing *m, const char *command)
{
    redisReply *r = ASK(d, d->eval, allowed_script, "0", command);
    bool allowed = !r || r->type != REDIS_REPLY_INTEGER || r->integer != 0;

    if (is_error(r) && !*m->unknown) {
        snprintf(m->unknown, sizeof m->unknown, "%.*s", (int)strcspn(command, " "), command);
        snprintf(m->why, sizeof m->why, "%s", printable(r->str));
    }
    freeReplyObject(r);
    return allowed;
}

static bool has_word(const char *words, const char *word)
{
    size_t len = strlen(word);

    for (const char *at = strstr(words, word); at; at = strstr(at + 1, word)) {
        if (at[len] == '\0' || at[len] == ' ') {
            return true;
        }
    }

    return false;
}

static void add_word(char *words, size_t size, const char *word)
{
    size_t used = strlen(words);

    if (!has_word(words, word)) {
        snprintf(words + used, size - used, "%s", word);
    }
}

static void add_command(char *words, size_t size, const char *command)
{
    char word[WORD_BYTES];

    snprintf(word, sizeof word, " +%s", command);
    for (char *c = word; *c; c++) {
        *c = (char)tolower((unsigned char)*c);
    }
    add_word(words, size, word);
}

static void add_channel(char *words, size_t size, const char *pattern)
{
    char word[KEYS_MAX + 8];

    snprintf(word, sizeof word, " '&%s'", pattern);
    add_word(words, size, word);
}

static void check_key(struct doctor *d, struct missing *m, const char *key)
{
    char command[COMMAND_BYTES];

    snprintf(command, sizeof command, "%s x 1 %s", d->eval, key);
    if (!is_allowed(d, m, command)) {
        m->keys = true;
    }
}

/* A command on a key that is not the user's is refused whatever the command: so keys come first. */
static void check_keys(struct doctor *d, struct missing *m)
{
    const char *queue = doctor_queue(d);
    char key[KEYS_TRIGGER_MAX];
    char none[KEYS_MAX];

    for (enum keys_part part = 0; part < KEYS_PARTS; part++) {
        keys_of(key, d->space, queue, part);
        check_key(d, m, key);
    }

    keys_none(none, span_of(key));
    check_key(d, m, none);
    keys_trigger(key, d->space, queue, "x");
    check_key(d, m, key);
}

static void check_evals(struct doctor *d, struct missing *m)
{
    static const char *const evals[] = {"EVAL_RO", "EVALSHA_RO", "EVAL", "EVALSHA"};
    int n = d->role == FOR_MONITOR ? 2 : 4;
    char key[KEYS_MAX];
    char command[COMMAND_BYTES];

    keys_of(key, d->space, doctor_queue(d), KEYS_DUE);
    for (int i = 0; i < n; i++) {
        snprintf(command, sizeof command, "%s x 1 %s", evals[i], key);
        if (!is_allowed(d, m, command)) {
            add_command(m->commands, sizeof m->commands, evals[i]);
        }
    }
}

static bool is_of_registry(const char *script)
{
    return strcmp(script, "enter") == 0 || strcmp(script, "names") == 0 ||
           strcmp(script, "forget") == 0;
}

/* The key is there twice because acl_check_cmd of a SET without a value crashes Redis 7.0.15: it
 * reads past its arguments. */
static void check_script(struct doctor *d, const struct script_needs *s, struct missing *m)
{
    char key[KEYS_MAX];
    bool lacks_any = false;

    if (strcmp(s->script, "heartbeat") == 0 || strcmp(s->script, "alive") == 0) {
        keys_alive(key, d->space);
    } else if (is_of_registry(s->script)) {
        keys_queues(key, d->space);
    } else {
        keys_of(key, d->space, doctor_queue(d), KEYS_DUE);
    }
    for (const char *at = s->commands; *at; at += strspn(at, " ")) {
        int len = (int)strcspn(at, " ");
        char name[WORD_BYTES];
        char command[COMMAND_BYTES];

        snprintf(name, sizeof name, "%.*s", len, at);
        snprintf(command, sizeof command, "%s %s %s", name, key, key);
        char *sub = strchr(name, '|') ? command + strcspn(command, "|") : NULL;
        if (sub) {
            *sub = ' ';
        }
        if (!is_allowed(d, m, command)) {
            lacks_any = true;
            add_command(m->commands, sizeof m->commands, name);
        }
        at += len;
    }

    if (lacks_any) {
        size_t used = strlen(m->scripts);
        snprintf(m->scripts + used, sizeof m->scripts - used, "%s%s", used ? " " : "", s->script);
    }
}

/* By which a handle learns where its queues are. */
static void check_map(struct doctor *d, struct missing *m)
{
    if (d->cluster && !is_allowed(d, m, "CLUSTER SLOTS")) {
        add_command(m->commands, sizeof m->commands, "cluster|slots");
    }
}

static void check_wait(struct doctor *d, struct missing *m)
{
    m->wait = d->role != FOR_MONITOR && !is_allowed(d, m, "WAIT 0 1");
}

static void check_scripts(struct doctor *d, struct missing *m)
{
    static const enum script_role roles[N_ROLES] = {
        [FOR_MONITOR] = ROLE_MONITOR,
        [FOR_PRODUCER] = ROLE_PRODUCER,
        [FOR_LISTENER] = ROLE_LISTENER,
    };

    for (size_t i = 0; i < sizeof script_needs / sizeof *script_needs; i++) {
        if (script_needs[i].role <= roles[d->role]) {
            check_script(d, &script_needs[i], m);
        }
    }
}

/* pattern: what the user is to be given where it lacks the right. */
static void check_channel(struct doctor *d, struct missing *m, const char *verb,
                          const char *channel, const char *pattern)
{
    char command[COMMAND_BYTES];

    snprintf(command, sizeof command, "%s %s", verb, channel);
    if (!is_allowed(d, m, command)) {
        add_command(m->optional, sizeof m->optional, verb);
        add_channel(m->optional, sizeof m->optional, pattern);
    }
}

/* Without a named queue the rights of all queues are shown. Redis matches the channel of a
 * SUBSCRIBE with the pattern, but compares the pattern of a PSUBSCRIBE with it letter by letter. */
static void check_channels(struct doctor *d, struct missing *m)
{
    char notice[KEYS_MAX];
    char notices[KEYS_MAX];
    char end[KEYS_MAX];
    char ends[KEYS_MAX];
    char events[KEYS_MAX];
    char events_of_queue[KEYS_MAX];

    keys_notice(notice, d->space, doctor_queue(d), d->redis.db);
    keys_ends(end, d->space, doctor_queue(d), d->redis.db);
    memcpy(notices, notice, sizeof notices);
    memcpy(ends, end, sizeof ends);
    channel_of_events(d, events);
    memcpy(events_of_queue, events, sizeof events_of_queue);

    if (!d->queues_named) {
        keys_pattern_of_notices(notices, d->space);
        keys_pattern_of_ends(ends, d->space);
        if (d->g->opts.notify == LAPSE_KEYSPACE) {
            keys_pattern(events_of_queue, d->space, "QUEUE", d->redis.db);
        }
    }

    if (d->role != FOR_MONITOR) {
        check_channel(d, m, "PUBLISH", notice, notices);
        check_channel(d, m, "PUBLISH", end, ends);
        check_channel(d, m, "SUBSCRIBE", end, ends);
    }
    if (d->role == FOR_LISTENER) {
        check_channel(d, m, "SUBSCRIBE", notice, notices);
        check_channel(d, m, "PSUBSCRIBE", events, events_of_queue);
    }
}

static void read_user(struct doctor *d, char out[VALUE_BYTES])
{
    redisReply *r = ASK(d, "ACL", "WHOAMI");

    if (is_text(r)) {
        snprintf(out, VALUE_BYTES, "%s", printable(r->str));
    } else {
        snprintf(out, VALUE_BYTES, "%s", *d->redis.user ? printable(d->redis.user) : "default");
    }

    freeReplyObject(r);
}

static void report_missing(struct doctor *d, const struct missing *m)
{
    struct finding f = {.check = "rights"};
    char user[VALUE_BYTES];
    char fix[VALUE_BYTES + 1200];
    const char *wait = m->wait ? " +wait" : "";
    char keys[80] = "";

    read_user(d, user);
    if (m->keys) {
        snprintf(keys, sizeof keys, " '~%s:*'", d->space);
    }

    f.fix = fix;
    snprintf(fix, sizeof fix, "redis-cli ACL SETUSER '%s'%s%s%s%s",
             is_shell_safe(user, "@:+/") ? user : "NAME", keys, m->commands, m->optional, wait);

    if (*m->scripts) {
        f.verdict = FAIL;
        report(d, f, "user %s lacks%s%s; these scripts are refused, or stop half-way: %s", user,
               keys, m->commands, m->scripts);
    } else if (m->keys || *m->commands) {
        f.verdict = FAIL;
        report(d, f, "user %s lacks%s%s", user, keys, m->commands);
    } else if (*m->optional) {
        f.verdict = WARN;
        report(d, f, "user %s lacks%s: alarm and sweep deliver the jobs, a little later", user,
               m->optional);
    } else if (m->wait) {
        f.verdict = WARN;
        report(d, f, "user %s lacks +wait: schedules that ask for replicas are denied", user);
    } else if (*m->unknown) {
        f.verdict = WARN;
        f.fix = NULL;
        report(d, f, "cannot be checked for %s: %s", m->unknown, m->why);
    } else {
        f.fix = NULL;
        report(d, f, "user %s has the rights of a %s", user, role_names[d->role]);
    }
}

/* Chooses d->eval. False: rights cannot be checked, which has been reported. */
static bool can_check_rights(struct doctor *d)
{
    struct finding f = {.check = "rights"};
    redisReply *r = ASK(d, d->eval, allowed_script, "0", "TIME");

    if (is_denied(r) && d->role == FOR_MONITOR) {
        freeReplyObject(r);
        d->eval = "EVAL_RO";
        r = ASK(d, d->eval, allowed_script, "0", "TIME");
    }

    bool can_check = r && r->type == REDIS_REPLY_INTEGER && r->integer >= 0;

    if (is_denied(r)) {
        f.verdict = FAIL;
        f.fix = "redis-cli ACL SETUSER NAME +eval +evalsha";
        report(d, f, "%s", printable(r->str));
    } else if (r && !can_check) {
        f.verdict = WARN;
        f.fix = "lapse bench";
        report(d, f, "cannot be checked: %s",
               is_error(r) ? printable(r->str) : "this needs Redis 7.0");
    }

    freeReplyObject(r);
    return can_check;
}

void check_rights(struct doctor *d)
{
    struct missing m = {.keys = false};

    if (!can_check_rights(d)) {
        return;
    }

    check_keys(d, &m);
    if (!m.keys) {
        check_evals(d, &m);
        check_scripts(d, &m);
        check_map(d, &m);
        check_wait(d, &m);
    }
    check_channels(d, &m);

    if (!d->code) {
        report_missing(d, &m);
    }
}
