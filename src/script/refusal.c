/* SPDX-License-Identifier: MIT */
/* Reads what Redis answered when a script failed, and says in the log what can be done about it. */
#include "script/refusal.h"
#include "redis/redis_error.h"
#include <string.h>

struct refusal {
    enum redis_error kind;
    bool broken;             /* the script had already written */
    struct span missing;     /* keys of half a queue that are not there; at NULL: it is whole */
    bool denied_within;      /* the script may run, but a command that it calls was denied */
    char command[LOG_VALUE]; /* that command, in capitals; "" if Redis does not name it */
};

static bool find_text(struct span s, const char *text, struct span *after)
{
    const char *at = memmem(s.at, s.len, text, strlen(text));

    if (!at) {
        return false;
    }

    size_t skipped = (size_t)(at - s.at) + strlen(text);
    *after = (struct span){s.at + skipped, s.len - skipped};
    return true;
}

static void refusal_name(char command[LOG_VALUE], struct span name)
{
    log_escape(command, LOG_VALUE, name.at, name.len);
    for (char *c = command; *c; c++) {
        if (*c >= 'a' && *c <= 'z') {
            *c = (char)(*c - 'a' + 'A');
        }
    }
}

/* Redis names the command from 7.2 on, in small letters; for 7.0 lua/lib/answer.lua does. */
static bool find_denied_command(struct span error, char command[LOG_VALUE])
{
    struct span rest;
    struct span name;

    *command = '\0';

    if (find_text(error, "can't run this command or subcommand", &rest)) {
        if (span_skip(&rest, ": ")) {
            refusal_name(command, rest);
        }
        return true;
    }

    if (find_text(error, "has no permissions to run the '", &rest) &&
        !span_starts(error, "NOPERM")) {
        if (span_cut(&rest, '\'', &name)) {
            refusal_name(command, name);
        }
        return true;
    }

    return false;
}

static struct refusal refusal_read(struct span error)
{
    struct refusal r = {.kind = redis_error_of(error)};

    find_text(error, "LAPSE EHALF ", &r.missing); /* a function may put words of its own before */
    r.broken = span_starts(error, "LAPSE EBROKEN");
    r.denied_within = find_denied_command(error, r.command);
    if (r.denied_within) {
        r.kind = REDIS_ERROR_DENIED;
    }
    return r;
}

/* Redis 6 does not know EVAL_RO; its own message would have the whole script in it. */
static bool is_too_old(const struct refusal *r, struct span error)
{
    struct span rest;
    return r->kind == REDIS_ERROR_NO_COMMAND && find_text(error, "EVAL_RO", &rest);
}

/* No other command of ours is younger than the oldest Redis that will do. */
static bool lacks_waitaof(const struct refusal *r, const char *script)
{
    return r->kind == REDIS_ERROR_NO_COMMAND && strcmp(script, "WAITAOF") == 0;
}

/* The move of its slot broke off, and the owner does not know; or a script broke off. */
static void refusal_log_half(struct log *log, const struct refusal *r, const char *script)
{
    char missing[LOG_VALUE];

    log_line(log, LOG_REFUSED, LOG_ERR,
             "%s was refused: a part of the queue is missing here: %s; the move of its slot or a "
             "script broke off, and `lapse doctor`, with the URL of the cluster, says what to do",
             script, log_escape(missing, sizeof missing, r->missing.at, r->missing.len));
}

static void refusal_log(struct log *log, const struct refusal *r, const char *script,
                        struct span error, const char *text)
{
    static const char doctor[] = "`lapse doctor` lists the rights";
    const char *command = *r->command ? r->command : "a command";

    if (r->missing.at) {
        refusal_log_half(log, r, script);
    } else if (r->denied_within && r->broken) {
        log_line(log, LOG_REFUSED, LOG_ERR,
                 "Redis broke off in the middle of %s: it denied %s to this user (some of it may "
                 "have happened; %s)",
                 script, command, doctor);
    } else if (r->denied_within) {
        log_line(log, LOG_REFUSED, LOG_ERR, "Redis denied %s, which `%s` needs, to this user; %s",
                 command, script, doctor);
    } else if (is_too_old(r, error)) {
        log_line(log, LOG_REFUSED, LOG_ERR,
                 "Redis refused %s: it does not know EVAL_RO; Redis 7.0 or later is needed",
                 script);
    } else if (lacks_waitaof(r, script)) {
        log_line(log, LOG_REFUSED, LOG_ERR,
                 "Redis refused WAITAOF: it does not know it; Redis 7.2 or later, or Valkey, is "
                 "needed");
    } else if (r->broken) {
        log_line(log, LOG_REFUSED, LOG_ERR,
                 "Redis broke off in the middle of %s: %s (some of it may have happened)", script,
                 text);
    } else {
        log_line(log, LOG_REFUSED, LOG_ERR, "Redis refused %s: %s (%s)", script, text,
                 redis_error_advice(r->kind));
    }
}

int refusal_unasked_code(struct context *context, const char *script, struct span error)
{
    struct refusal r = refusal_read(error);
    char text[LOG_VALUE];

    log_line(&context->log, LOG_UNASKED, LOG_WARNING, "Redis refused %s: %s (%s)", script,
             log_escape(text, sizeof text, error.at, error.len), redis_error_advice(r.kind));
    if (r.broken) {
        return LAPSE_EBROKEN;
    }
    return r.kind == REDIS_ERROR_DENIED ? LAPSE_EDENIED : LAPSE_EREFUSED;
}

int refusal_code(struct context *context, const char *script, struct span error)
{
    struct refusal r = refusal_read(error);
    char text[LOG_VALUE];

    log_escape(text, sizeof text, error.at, error.len);
    refusal_log(&context->log, &r, script, error, text);

    struct lapse_health report = {
        .kind = LAPSE_HEALTH_REFUSED, .err = LAPSE_EREFUSED, .what = script, .detail = text};
    if (r.kind == REDIS_ERROR_DENIED) {
        report.kind = LAPSE_HEALTH_DENIED;
        report.err = LAPSE_EDENIED;
    }
    if (r.broken) {
        report.err = LAPSE_EBROKEN;
    } else if (r.missing.at) {
        report.err = LAPSE_EHALF;
    }
    health_report(&context->health, report);

    return report.err;
}
