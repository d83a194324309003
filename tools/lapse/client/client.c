/* SPDX-License-Identifier: MIT */
/* The handle and its loop, and the exit code that a reply becomes.
 *
 * What is wrong with Redis is learned from the health reports of the library: a wrong password, a
 * missing permission and a Redis that may evict jobs do not get right by waiting, so on_refused()
 * may end the run at once.
 *
 * The library's log is only shown, never read. A listener may run for months beside a Redis that
 * refuses it something: a line is shown when it first comes, and again after it has not come for a
 * while, or after good news. The library itself passes on at most one a second.
 *
 * A command that asks once shows no log: the library tries again and again where people want one
 * line, now. */
#include "client/client.h"
#include "cli/message.h"
#include "cli/url_mask.h"
#include "cli/values.h"
#include <lapse_cron.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>

enum { QUIET_MS = 60000 };

/* ---- the library's log ---- */

/* Without the number of lines that were held back: "... (and 3 more like it)". */
static size_t line_len(const char *line)
{
    const char *more = strstr(line, " (and ");
    size_t len = more ? (size_t)(more - line) : strlen(line);

    return len < SHOWN_LINE ? len : SHOWN_LINE - 1;
}

/* That another script is refused for the same reason is no news. */
static const char *line_reason(const char *line)
{
    static const char refused[] = "Redis refused ";
    const char *reason = strchr(line, ':');

    return reason && strncmp(line, refused, strlen(refused)) == 0 ? reason : line;
}

/* Was it shown, and has it been coming ever since? */
static bool line_goes_on(struct client *c, const char *whole_line)
{
    int64_t now_ms = monotonic_ms();
    const char *line = line_reason(whole_line);
    size_t len = line_len(line);

    for (unsigned i = 0; i < SHOWN_LINES; i++) {
        struct shown_line *shown = &c->shown[i];
        if (strlen(shown->line) == len && memcmp(shown->line, line, len) == 0) {
            bool again = now_ms - shown->last_ms > QUIET_MS;
            shown->last_ms = now_ms;
            return !again;
        }
    }

    struct shown_line *shown = &c->shown[c->shown_next++ % SHOWN_LINES];
    snprintf(shown->line, sizeof shown->line, "%.*s", (int)len, line);
    shown->last_ms = now_ms;

    return false;
}

void client_forget_warnings(struct client *c)
{
    c->refuses_claims = false;
    memset(c->shown, 0, sizeof c->shown);
}

static bool line_is_shown(struct client *c, int level, const char *line)
{
    bool goes_on = level <= LOG_WARNING && line_goes_on(c, line);

    if (c->g->verbose) {
        return true;
    }

    return !c->one_shot && level <= LOG_NOTICE && !goes_on;
}

static void on_client_log(int level, const char *line, void *arg)
{
    struct client *c = arg;

    if (line_is_shown(c, level, line)) {
        message_print("%s", printable(line));
    }
    if (level <= LOG_WARNING) {
        snprintf(c->last_warning, sizeof c->last_warning, "%s", printable(line));
    } else if (level == LOG_NOTICE) {
        client_forget_warnings(c);
    }
}

/* ---- health ---- */
static void client_is_away(struct client *c, const struct lapse_health *h)
{
    c->away = true;
    snprintf(c->away_why, sizeof c->away_why, "%s", h->detail);
}

static void client_login_failed(struct client *c, const struct lapse_health *h)
{
    client_is_away(c, h);
    c->by_sentinel = h->by_sentinel;
    if (h->err == LAPSE_EDENIED) {
        c->no_right = true;
        c->shut_out = true;
    } else {
        c->wrong_password = true;
    }
}

static void client_script_refused(struct client *c, const struct lapse_health *h)
{
    if (h->kind == LAPSE_HEALTH_DENIED) {
        c->no_right = true;
    }
    if (strncmp(h->detail, "READONLY", strlen("READONLY")) == 0) {
        c->replica = true;
    }
    if (strcmp(h->what, "claim") == 0 || strcmp(h->what, "touch") == 0) { /* touch claims too */
        c->refuses_claims = true;
        c->refused_ms = monotonic_ms();
    }
}

static void on_client_health(struct lapse *l, const struct lapse_health *h, void *arg)
{
    struct client *c = arg;
    (void)l;

    switch (h->kind) {
    case LAPSE_HEALTH_CONNECTED: c->away = false; return;
    case LAPSE_HEALTH_DISCONNECTED: client_is_away(c, h); break;
    case LAPSE_HEALTH_AUTH_FAILED: client_login_failed(c, h); break;
    case LAPSE_HEALTH_DENIED:
    case LAPSE_HEALTH_REFUSED: client_script_refused(c, h); break;
    case LAPSE_HEALTH_MAY_EVICT: c->evicts = true; break;
    default: return;
    }

    if (c->l) {
        c->on_refused(c);
    }
}

/* ---- the handle ---- */
static void client_clear(struct client *c, struct globals *g)
{
    c->g = g;
    c->l = NULL;
    c->code = 0;
    c->wrong_password = false;
    c->by_sentinel = false;
    c->no_right = false;
    c->evicts = false;
    c->away = false;
    c->shut_out = false;
    c->said_away = false;
    c->replica = false;
    *c->last_warning = '\0';
    client_forget_warnings(c);
}

/* Its listeners keep the series of cron lines going. */
static int client_know_cron(struct client *c)
{
#ifdef LAPSE_WITH_CRON
    int err = lapse_cron(c->l);
    if (err) {
        message_print("cannot start: cron lines: %s", lapse_strerror(err));
        return INTERNAL;
    }
#endif
    (void)c;
    return 0;
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
    g->opts.log = on_client_log;
    g->opts.log_arg = c;

    if (c->loop) {
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

    lapse_on_health(c->l, on_client_health, c);
    return client_know_cron(c);
}

static void on_handle_closed(void *arg)
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
        lapse_close(c->l, grace_ms, on_handle_closed, c);
    }
}

int client_run(struct client *c)
{
    while (c->l) {
        ev_run(c->loop, 0);
    }

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
    const char *line = c->one_shot ? c->last_warning : "";
    const char *colon = *line ? ": " : "";
    const char *doctor = "; lapse doctor lists all that are missing";
    const char *repair = "";
    const char *who = "this user";

    if (*line && !c->shut_out) {
        doctor = ""; /* the line names it */
    }
    if (c->shut_out && c->by_sentinel) {
        who = "the user for the Sentinels (sentinel_user of the URL, or their default)";
        doctor = "; there it needs +ping +sentinel|get-master-addr-by-name +sentinel|master "
                 "+sentinel|sentinels +sentinel|replicas";
    }
    if (err == LAPSE_EBROKEN) {
        repair = "; the script stopped half-way: run lapse doctor --repair";
    }

    message_print("%s: permission denied: %s lacks a permission%s%s (%s)%s%s", printable(about),
                  who, colon, line, printable(c->g->shown_url), doctor, repair);
}

static void report_wrong_password(const struct client *c, const char *about)
{
    const char *advice = "set LAPSE_PASSWORD or use --password-file";
    const char *of_whom = "";

    if (c->by_sentinel) {
        of_whom = " for the Sentinels";
        advice = "give them in the URL: ?sentinel_password=PASSWORD, or "
                 "?sentinel_user=USER&sentinel_password=PASSWORD";
    }
    if (c->g->is_private) {
        advice = "lapse dev connects without one: remove requirepass from the configuration "
                 "(--conf)";
    }

    message_print("%s: permission denied: the user or password%s is wrong or missing (%s); %s",
                  printable(about), of_whom, printable(c->g->shown_url), advice);
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
    case LAPSE_EBUSY:
    case LAPSE_EGONE:
    case LAPSE_EENDED: return ANSWER_NO;
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
    } else if ((err == LAPSE_EREFUSED || err == LAPSE_EHALF) && c->one_shot && *c->last_warning) {
        message_print("%s: %s", printable(about), c->last_warning);
    } else if (err == LAPSE_EALONE) {
        message_print("%s: %s: %s", printable(about), lapse_strerror(err), c->last_warning);
    } else if (lapse_outcome_unknown(err)) {
        message_print("%s: %s; %s", printable(about), lapse_strerror(err),
                      c->unknown_advice ? c->unknown_advice
                                        : "the command changes nothing and can be repeated");
    } else {
        message_print("%s: %s", printable(about), lapse_strerror(err));
    }

    return exit_code_of(err);
}
