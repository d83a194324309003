/* SPDX-License-Identifier: MIT */
/* What Redis's errors mean: a code for the caller, and a line for ops that says what to do. */
#include "redis/redis_error.h"
#include <string.h>

bool refusal_is(struct span s, const char *word)
{
    size_t len = strlen(word);
    return s.len >= len && memcmp(s.at, word, len) == 0;
}

/* What the refusals that ops can mend mean, by the first word of Redis's error. */
static const char *advice(struct span error)
{
    static const struct {
        const char *word, *text;
    } rows[] = {
        {"OOM", "it is out of memory: raise maxmemory; due jobs still run"},
        {"READONLY", "it is a replica: give the URL of the master"},
        {"LOADING", "it is loading its data; this passes"},
        {"BUSY", "a script runs too long there; SCRIPT KILL ends it"},
        {"MISCONF", "it cannot write to its disk"},
        {"NOREPLICAS", "too few replicas are connected (min-replicas-to-write)"},
        {"NOPERM", "denied to this user; `lapse doctor` lists the rights"},
        {"ERR The user executing the script",
         "denied to this user; `lapse doctor` lists the rights"},
        {"ERR ACL failure in script", "denied to this user; `lapse doctor` lists the rights"},
        {"NOAUTH", "the URL needs a password"},
        {"WRONGTYPE", "a key of ours was written by another program"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (refusal_is(error, rows[i].word)) {
            return rows[i].text;
        }
    }

    return "see its documentation";
}

static bool find(struct span s, const char *text, struct span *after)
{
    const char *at = memmem(s.at, s.len, text, strlen(text));
    if (at) {
        *after = (struct span){at + strlen(text), (size_t)(s.at + s.len - at) - strlen(text)};
    }
    return at != NULL;
}

/* The command that this user may not run; as Redis says it from 7.2 on, and as guard() of
 * lua/lib/answer.lua makes up for 7.0. "" when nobody says. */
static bool denied_in_script(struct span error, char command[LOG_VALUE])
{
    struct span name;
    struct span rest;

    *command = '\0';

    if (find(error, "can't run this command or subcommand", &rest)) {
        if (refusal_is(rest, ": ")) {
            log_escape(command, LOG_VALUE, rest.at + 2, rest.len - 2);
        }
        return true;
    }

    if (find(error, "has no permissions to run the '", &name) && !refusal_is(error, "NOPERM")) {
        const char *end = memchr(name.at, '\'', name.len);
        log_escape(command, LOG_VALUE, name.at, end ? (size_t)(end - name.at) : 0);
        return true;
    }

    return false;
}

/* Redis 6 lacks a command that we need; its own message would add the whole script. */
static bool unknown(struct span error)
{
    struct span rest;
    return refusal_is(error, "ERR unknown command") && find(error, "EVAL_RO", &rest);
}

/* It is a matter of rights: of the command itself, or of a command or a key within the script as
 * Redis 7.0, and as 7.2 and later say it. */
static bool is_denial(struct span error)
{
    return refusal_is(error, "NOPERM") || refusal_is(error, "ERR The user executing the script") ||
           refusal_is(error, "ERR ACL failure in script");
}

static int refusal_error(bool denied, bool broken)
{
    if (broken) {
        return LAPSE_EBROKEN;
    }

    return denied ? LAPSE_EDENIED : LAPSE_EREFUSED;
}

int refusal_code(struct context *context, const char *script, struct span error)
{
    struct log *log = &context->log;
    static const char doctor[] = "`lapse doctor` lists the rights";
    char text[LOG_VALUE];
    char command[LOG_VALUE];
    bool broken = refusal_is(error, "LAPSE EBROKEN");
    bool denied = denied_in_script(error, command);
    const char *what = *command ? command : "a command";

    log_escape(text, sizeof text, error.at, error.len);

    if (denied && broken) {
        log_line(log, LOG_REFUSED, LOG_ERR,
                 "Redis broke off in the middle of %s: it denied %s to this user (some of it may "
                 "have happened; %s)",
                 script, what, doctor);
    } else if (denied) {
        log_line(log, LOG_REFUSED, LOG_ERR, "Redis denied %s, which `%s` needs, to this user; %s",
                 what, script, doctor);
    } else if (unknown(error)) {
        log_line(log, LOG_REFUSED, LOG_ERR,
                 "Redis refused %s: it does not know EVAL_RO; Redis 7.0 or later is needed",
                 script);
    } else {
        log_line(log, LOG_REFUSED, LOG_ERR, "Redis %s %s: %s (%s)",
                 broken ? "broke off in the middle of" : "refused", script, text,
                 broken ? "some of it may have happened" : advice(error));
    }

    struct lapse_health report = {
        .kind = denied || is_denial(error) ? LAPSE_HEALTH_DENIED : LAPSE_HEALTH_REFUSED,
        .err = refusal_error(denied || is_denial(error), broken),
        .what = script,
        .detail = text,
    };
    health_report(&context->health, report);

    return report.err;
}
