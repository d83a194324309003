/* SPDX-License-Identifier: MIT */
/* The handle and its loop, and the exit code that a reply becomes.
 *
 * "Permission denied" is told from "unreachable" by the library's log, and so is a Redis that may
 * evict jobs: after a wrong password requests end as if Redis were away, and only the line with the
 * error of Redis (WRONGPASS, NOAUTH, NOPERM) says why. Waiting does not make a wrong password
 * right, so on_refused() ends the run at once.
 *
 * A listener may run for months beside a Redis that refuses it something: a line is shown when it
 * first comes, and again after it has not come for a while, or after good news. The library itself
 * passes on at most one a second.
 *
 * A command that asks once shows no log: the library tries again and again where people want one
 * line, now. */
#include "client/client.h"
#include "cli/message.h"
#include "cli/url_mask.h"
#include "cli/values.h"
#include <stdio.h>
#include <string.h>
#include <syslog.h>

/* ---- the library's log ---- */
enum { QUIET_MS = 60000 };

static int has_one_of(const char *line, const char *const *words)
{
    for (; *words; words++) {
        if (strstr(line, *words)) {
            return 1;
        }
    }
    return 0;
}

static int is_away(const char *line)
{
    static const char *const words[] = {"cannot connect to Redis", "lost the connection to Redis",
                                        "does not let us in", "is loading its data", NULL};
    return has_one_of(line, words);
}

/* "cannot connect to Redis at HOST:PORT: Connection refused; trying again": what is between */
static void note_away(struct client *c, const char *line)
{
    const char *why = strstr(line, ": ");
    const char *end = strstr(line, "; ");

    c->away = 1;
    why = why ? why + 2 : line;
    snprintf(c->away_why, sizeof c->away_why, "%.*s",
             (int)(end && end > why ? end - why : (long)strlen(why)), why);
}

/* Of a script that Redis refused; a subscription that it refuses makes jobs late, no more. */
static int is_refusal(const char *line)
{
    static const char *const words[] = {"Redis refused ", "Redis broke off ", "Redis denied ",
                                        NULL};
    return has_one_of(line, words);
}

/* What is said, whichever script it is said of, and however many like it were held back. */
static size_t matter(const char *line, const char **from)
{
    const char *reason = is_refusal(line) ? strstr(line, ": ") : NULL;
    const char *more;
    *from = reason ? reason : line;
    more = strstr(*from, " (and ");
    return more ? (size_t)(more - *from) : strlen(*from);
}

/* 1: it was shown, and has been coming ever since */
static int goes_on(struct client *c, const char *line)
{
    int64_t now_ms = monotonic_ms();
    const char *from;
    size_t len = matter(line, &from);

    len = len < sizeof c->said->line ? len : sizeof c->said->line - 1;

    for (unsigned i = 0; i < SAID_MOST; i++) {
        struct said *said = &c->said[i];
        if (strlen(said->line) == len && memcmp(said->line, from, len) == 0) {
            int again = now_ms - said->last_ms > QUIET_MS;
            said->last_ms = now_ms;
            return !again;
        }
    }

    struct said *said = &c->said[c->said_next++ % SAID_MOST];
    snprintf(said->line, sizeof said->line, "%.*s", (int)len, from);
    said->last_ms = now_ms;

    return 0;
}

void client_forget_warnings(struct client *c)
{
    c->refuses_claims = 0;
    memset(c->said, 0, sizeof c->said);
}

static void show(struct client *c, int level, const char *line)
{
    int worst = c->g->verbose ? LOG_DEBUG : c->one_shot ? LOG_EMERG : LOG_NOTICE;
    int known = level <= LOG_WARNING && goes_on(c, line);

    if (level <= worst && (c->g->verbose || !known)) {
        message_print("%s", printable(line));
    }
    if (level == LOG_NOTICE) {
        client_forget_warnings(c);
    }
}

static void on_log(int level, const char *line, void *arg)
{
    static const char *const password[] = {"WRONGPASS", "NOAUTH", "invalid password",
                                           "invalid username-password", NULL};

    /* NOPERM is of a command; the others of a command inside a script: Redis 7.0, then 8 and Valkey
     */
    static const char *const right[] = {"NOPERM", "denied",
                                        "The user executing the script can't run this command",
                                        "ACL failure in script", NULL};
    static const char *const evicts[] = {"may evict any of them", NULL};
    struct client *c = arg;
    bool refused = false;

    show(c, level, line);
    if (level <= LOG_WARNING) {
        snprintf(c->error, sizeof c->error, "%s", printable(line));
    }

    /* a socket may deny it, too; without a subscription jobs are late, no more */
    if (has_one_of(line, right) && !strstr(line, "cannot connect") &&
        (is_refusal(line) || is_away(line))) {
        c->no_right = 1;
        c->shut_out |= is_away(line);
        refused = is_refusal(line);
    }

    if (is_refusal(line)) {
        if (strstr(line, "claim")) {
            c->refuses_claims = 1;
            c->refused_ms = monotonic_ms();
        }
        c->replica |= strstr(line, "READONLY") != NULL;
        refused |= c->replica;
    }

    if (!c->wrong_password && has_one_of(line, password)) {
        c->wrong_password = refused = 1;
    } else if (!c->evicts && has_one_of(line, evicts)) {
        c->evicts = refused = 1;
    } else if (is_away(line)) {
        note_away(c, line);
        refused = 1;
    }

    if (refused || c->refuses_claims) {
        ev_async_send(c->loop, &c->refused);
    }
}

/* ---- the handle ---- */
static void on_refused(struct ev_loop *loop, ev_async *w, int events)
{
    struct client *c = w->data;

    (void)loop;
    (void)events;
    if (c->l) {
        c->on_refused(c);
    }
}

static void client_clear(struct client *c, struct globals *g)
{
    c->g = g;
    c->l = NULL;
    c->code = 0;
    c->wrong_password = false;
    c->no_right = false;
    c->evicts = false;
    c->away = false;
    c->shut_out = false;
    c->said_away = false;
    c->replica = false;
    *c->error = '\0';
    client_forget_warnings(c);
}

int client_open(struct client *c, struct globals *g, void (*refused)(struct client *))
{
    int err = url_make(g);

    if (err) {
        return err;
    }

    client_clear(c, g);
    c->on_refused = refused;
    c->loop = ev_default_loop(0);
    g->opts.log = on_log;
    g->opts.log_arg = c;

    if (c->loop) {
        ev_async_init(&c->refused, on_refused);
        c->refused.data = c;
        ev_async_start(c->loop, &c->refused);
        ev_unref(c->loop);
        err = lapse_open(&c->l, c->loop, &g->opts);
    }

    url_wipe(g);

    if (!c->loop) {
        message_print("cannot start: no event loop");
        return INTERNAL;
    }
    if (err) {
        message_print("cannot start: %s", lapse_strerror(err));
        return err == LAPSE_EINVAL ? USAGE : INTERNAL;
    }

    return 0;
}

static void on_closed(void *arg)
{
    struct client *c = arg;

    if (c->on_end) {
        c->on_end(c);
    }
    c->l = NULL;
    ev_break(c->loop, EVBREAK_ALL);
}

void client_close(struct client *c, int64_t grace_ms)
{
    if (c->l) {
        lapse_close(c->l, grace_ms, on_closed, c);
    }
}

int client_run(struct client *c)
{
    while (c->l) {
        ev_run(c->loop, 0);
    }

    ev_ref(c->loop);
    ev_async_stop(c->loop, &c->refused);

    return c->code;
}

/* ---- errors and exit codes ---- */
void client_set_exit_code(struct client *c, int code)
{
    if (!c->code) {
        c->code = code;
    }
}

bool client_is_denied(const struct client *c)
{
    return c->wrong_password || c->shut_out;
}

static void report_missing_permission(const struct client *c, int err, const char *about)
{
    const char *line = c->one_shot ? c->error : "";
    const char *colon = *line ? ": " : "";
    const char *doctor = "; lapse doctor lists all that are missing";
    const char *repair = "";

    if (strstr(line, "lapse doctor")) {
        doctor = "";
    }
    if (err == LAPSE_EBROKEN) {
        repair = "; the script stopped half-way: run lapse doctor --repair";
    }

    message_print("%s: permission denied: this user lacks a permission%s%s (%s)%s%s",
                  printable(about), colon, line, printable(c->g->shown_url), doctor, repair);
}

static void report_wrong_password(const struct client *c, const char *about)
{
    const char *advice = "set LAPSE_PASSWORD or use --password-file";

    if (c->g->is_private) {
        advice = "lapse dev connects without one: remove requirepass from the configuration "
                 "(--conf)";
    }

    message_print("%s: permission denied: the user or password is wrong or missing (%s); %s",
                  printable(about), printable(c->g->shown_url), advice);
}

/* Reports what the errors of Redis explain; false: they explain nothing. */
static bool report_denied(const struct client *c, int err, const char *about)
{
    bool is_denial = err == LAPSE_EREFUSED || err == LAPSE_EDENIED || err == LAPSE_EAUTH;
    bool no_access = is_denial || err == LAPSE_EDOWN || err == LAPSE_ECLOSED;
    bool no_permission = err == LAPSE_EREFUSED || err == LAPSE_EDENIED || err == LAPSE_EBROKEN ||
                         (no_access && c->shut_out);

    if (no_permission && c->no_right) {
        report_missing_permission(c, err, about);
        return true;
    }

    if (no_access && c->wrong_password) {
        report_wrong_password(c, about);
        return true;
    }

    return false;
}

static void report_unreachable(struct client *c, const char *about)
{
    const char *colon = c->away ? ": " : "";
    const char *why = c->away ? c->away_why : "";
    const char *advice = "; set its URL with -u or LAPSE_URL";

    if (c->one_shot && c->said_away) {
        return;
    }

    if (c->g->is_private) {
        advice = "";
    }

    message_print("%s: %s: %s%s%s%s", printable(about), lapse_strerror(LAPSE_EDOWN),
                  printable(c->g->shown_url), colon, printable(why), advice);
    c->said_away = true;
}

static int exit_code_of(int err)
{
    switch (err) {
    case LAPSE_ENOENT:
    case LAPSE_EEXIST:
    case LAPSE_EBUSY: return ANSWER_NO;
    case LAPSE_EINVAL: return USAGE;
    case LAPSE_ENOMEM:
    case LAPSE_EDATA: return INTERNAL;
    default: return DOWN;
    }
}

int client_report(struct client *c, int err, const char *about)
{
    if (!err) {
        return DONE;
    }

    if (report_denied(c, err, about)) {
        return DENIED;
    }

    if (err == LAPSE_EDOWN || (err == LAPSE_ECLOSED && c->away)) {
        report_unreachable(c, about);
    } else if (err == LAPSE_EREFUSED && c->one_shot && *c->error) {
        message_print("%s: %s", printable(about), c->error);
    } else if (lapse_outcome_unknown(err)) {
        message_print("%s: %s; %s", printable(about), lapse_strerror(err),
                      c->unknown_advice ? c->unknown_advice
                                        : "the command changes nothing and can be repeated");
    } else {
        message_print("%s: %s", printable(about), lapse_strerror(err));
    }

    return exit_code_of(err);
}
