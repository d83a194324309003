/* SPDX-License-Identifier: MIT */
#include "redis/report.h"
#include "base/clock.h"
#include "redis/handshake.h"
#include "redis/redis_error.h"
#include <stdio.h>

static struct log *report_log_of(const struct report *r)
{
    return &r->endpoint->context->log;
}

const char *report_place(const struct report *r, char out[REPORT_PLACE])
{
    const struct address *a = &r->endpoint->address;

    if (a->unix_socket) {
        snprintf(out, REPORT_PLACE, "%s", a->host);
        return out;
    }

    bool has_colons = strchr(a->host, ':') != NULL;
    const char *open = has_colons ? "[" : "";
    const char *close = has_colons ? "]" : "";
    int len = snprintf(out, REPORT_PLACE, "%s%.160s%s:%d", open, a->host, close, a->port);

    if (r->hosts->n > 1 && r->hosts->next > 0) {
        snprintf(out + len, REPORT_PLACE - (size_t)len, " (%s)", r->hosts->at[r->hosts->next - 1]);
    }

    return out;
}

/* A line said that Redis cannot be used; report_up() is to say when that is over. */
static void outage_began(const struct report *r, bool written)
{
    if (written && !r->endpoint->outage_us) {
        r->endpoint->outage_us = clock_us();
    }
}

/* A subscription that fails makes jobs late, no more: LAPSE_HEALTH_NO_EVENTS is for it (watch.c).
 * Without a fence some schedules end with EALONE. */
static void report_disconnected(const struct report *r, const char *at, const char *detail)
{
    if (r->role == CONN_COMMANDS) {
        struct lapse_health report = {
            .kind = LAPSE_HEALTH_DISCONNECTED, .err = LAPSE_EDOWN, .what = at, .detail = detail};
        health_report(&r->endpoint->context->health, report);
    }
}

/* true: it is the connection to a Sentinel, or a seed, and that was reported. */
static bool report_asked(const struct report *r, const char *why)
{
    switch (r->role) {
    case CONN_SENTINEL: report_sentinel(r, why); return true;
    case CONN_SEED: report_seed(r, why); return true;
    default: return false;
    }
}

void report_cannot_connect(const struct report *r, const char *why)
{
    char at[REPORT_PLACE];

    if (report_asked(r, why)) {
        return;
    }

    report_place(r, at);
    outage_began(r, log_line(report_log_of(r), LOG_CONNECT, LOG_WARNING,
                             "cannot connect to Redis at %s: %s; trying again", at, why));
    report_disconnected(r, at, why);
}

void report_lost(const struct report *r, const char *why)
{
    char at[REPORT_PLACE];

    if (report_asked(r, why)) {
        return;
    }

    report_place(r, at);
    outage_began(r, log_line(report_log_of(r), LOG_CONNECT, LOG_WARNING,
                             "lost the connection to Redis at %s: %s; connecting again", at, why));
    report_disconnected(r, at, why);
}

void report_silent(const struct report *r)
{
    static const char *const of_what[] = {[CONN_COMMANDS] = "",
                                          [CONN_SUBSCRIPTION] = " to the subscription",
                                          [CONN_FENCE] = " to WAIT",
                                          [CONN_ENDS] = " to the subscription to ends of jobs"};
    const struct lapse_options *options = &r->endpoint->context->options;
    bool waits = r->role == CONN_FENCE;
    long long silence_ms = options->reply_ms + (waits ? options->replicas_ms : 0);
    char at[REPORT_PLACE];

    if (report_asked(r, "no answer")) {
        return;
    }

    report_place(r, at);
    outage_began(r, log_line(report_log_of(r), LOG_SILENT, LOG_WARNING,
                             "no answer from Redis at %s in %lld ms (reply_ms%s)%s; connecting "
                             "again",
                             at, silence_ms, waits ? " and replicas_ms" : "", of_what[r->role]));
    report_disconnected(r, at, "no answer");
}

/* 0: it is no matter of the user or the password. */
static int login_error(struct span error)
{
    switch (redis_error_of(error)) {
    case REDIS_ERROR_DENIED: return LAPSE_EDENIED;
    case REDIS_ERROR_NO_LOGIN:
    case REDIS_ERROR_BAD_LOGIN: return LAPSE_EAUTH;
    default: return 0;
    }
}

static void report_login(const struct report *r, struct span error, const char *at,
                         const char *detail)
{
    int err = login_error(error);

    if (r->role == CONN_SENTINEL) {
        r->endpoint->login_err = err; /* if no other one answers: see report_no_sentinel() */
    }
    if (r->endpoint->is_spare || (r->role != CONN_COMMANDS && (r->role != CONN_SEED || !err))) {
        return;
    }
    if (!err) {
        report_disconnected(r, at, detail);
        return;
    }

    struct lapse_health report = {
        .kind = LAPSE_HEALTH_AUTH_FAILED, .err = err, .what = at, .detail = detail};
    r->endpoint->login_err = err;
    health_report(&r->endpoint->context->health, report);
}

void report_not_let_in(const struct report *r, struct span error)
{
    char at[REPORT_PLACE];
    char text[LOG_VALUE];
    bool written;

    report_place(r, at);
    log_escape(text, sizeof text, error.at, error.len);
    if (report_asked(r, text)) {
        report_login(r, error, at, text);
        return;
    }

    if (redis_error_of(error) == REDIS_ERROR_LOADING) {
        written = log_line(report_log_of(r), LOG_REFUSED, LOG_WARNING,
                           "Redis at %s is loading its data; trying again", at);
    } else {
        written = log_line(report_log_of(r), LOG_REFUSED, LOG_ERR,
                           "Redis at %s does not let us in: %s", at, text);
    }

    outage_began(r, written);
    report_login(r, error, at, text);
}

/* One line for each outage: when both connections were lost, it comes with the one for commands. */
void report_up(const struct report *r, bool again)
{
    static const char *const for_what[] = {[CONN_COMMANDS] = "",
                                           [CONN_SUBSCRIPTION] = " for expiry events",
                                           [CONN_FENCE] = " for WAIT",
                                           [CONN_ENDS] = " for ends of jobs"};
    struct endpoint *e = r->endpoint;
    struct log *log = report_log_of(r);
    char at[REPORT_PLACE];

    if (r->role == CONN_SENTINEL || r->role == CONN_SEED) {
        return; /* that it answers counts */
    }

    report_place(r, at);
    if (r->role == CONN_COMMANDS) {
        struct lapse_health report = {.kind = LAPSE_HEALTH_CONNECTED, .what = at};
        e->login_err = 0;
        health_report(&e->context->health, report);
    }

    if (!e->outage_us || !e->commands_up) {
        return;
    }

    log->last_us[LOG_AGAIN] = 0; /* nor was the line left out that began this */
    log_line(log, LOG_AGAIN, LOG_NOTICE, "connected%s to Redis at %s%s after %.1f s",
             again ? " again" : "", at, for_what[r->role],
             (double)(clock_us() - e->outage_us) / 1e6);
    e->outage_us = 0;
}

void report_too_old(const struct report *r, const char *version)
{
    char at[REPORT_PLACE];
    char text[LOG_VALUE];

    log_escape(text, sizeof text, version, strlen(version));
    log_line(report_log_of(r), LOG_VERSION, LOG_ERR,
             "Redis %d.0 or later is needed: the one at %s is version %s", REDIS_VERSION_MIN,
             report_place(r, at), text);
}

/* ---- Sentinel ---- */
void report_is_sentinel(const struct report *r)
{
    static const char detail[] = "it is a Sentinel";
    char at[REPORT_PLACE];

    report_place(r, at);
    outage_began(r, log_line(report_log_of(r), LOG_REFUSED, LOG_ERR,
                             "the server at %s is a Sentinel: give redis+sentinel://%s/MASTER as "
                             "the URL, with the name that it has for the master",
                             at, at));
    report_disconnected(r, at, detail);
}

void report_not_master(const struct report *r, const char *role)
{
    char at[REPORT_PLACE];
    char text[LOG_VALUE];
    char detail[LOG_VALUE];

    report_place(r, at);
    log_escape(text, sizeof text, role, strlen(role));
    snprintf(detail, sizeof detail, "its role is %.100s", *text ? text : "unknown");
    outage_began(r, log_line(report_log_of(r), LOG_REFUSED, LOG_WARNING,
                             "Redis at %s should be the master, as Sentinel says, and %s; asking "
                             "again",
                             at, detail));
    report_disconnected(r, at, detail);
}

void report_moved(const struct report *r, const char *sentinel)
{
    char at[REPORT_PLACE];

    report_place(r, at);
    log_line(report_log_of(r), LOG_FAILOVER, LOG_WARNING,
             "the master is now Redis at %s, says the Sentinel at %s; connecting to it", at,
             sentinel);
    report_disconnected(r, at, "the master is another");
}

/* One line for all that happens until one answers. */
static bool report_begins(const struct report *r, const char *why)
{
    struct endpoint *e = r->endpoint;

    snprintf(e->why, sizeof e->why, "%s", why);
    return !e->outage_us;
}

void report_sentinel(const struct report *r, const char *why)
{
    char at[REPORT_PLACE];

    if (report_begins(r, why)) {
        report_place(r, at);
        outage_began(r, log_line(report_log_of(r), LOG_SENTINEL, LOG_WARNING,
                                 "cannot ask the Sentinel at %s where the master is: %s; asking "
                                 "the next one",
                                 at, why));
    }
}

/* Without a master nothing can be asked; else that goes on as it is. */
void report_no_sentinel(const struct report *r, bool master_is_known)
{
    struct endpoint *e = r->endpoint;
    char at[REPORT_PLACE];
    struct lapse_health report = {
        .kind = LAPSE_HEALTH_DISCONNECTED, .err = LAPSE_EDOWN, .what = at, .detail = e->why};

    report_place(r, at);
    if (e->login_err) {
        report.kind = LAPSE_HEALTH_AUTH_FAILED;
        report.err = e->login_err;
        report.by_sentinel = true;
    }
    if (!e->commands_up) {
        health_report(&e->context->health, report);
    }
    if (master_is_known) {
        log_line(report_log_of(r), LOG_FAILOVER, LOG_WARNING,
                 "no Sentinel answers (the one at %s: %s); going on with the master that is known",
                 at, e->why);
    }
}

static void report_answers(const struct report *r, const char *who)
{
    struct endpoint *e = r->endpoint;

    if (e->outage_us) {
        log_line(report_log_of(r), LOG_AGAIN, LOG_NOTICE, "%s answers after %.1f s", who,
                 (double)(clock_us() - e->outage_us) / 1e6);
        e->outage_us = 0;
    }
}

void report_sentinel_login(const struct report *r, struct span error)
{
    r->endpoint->login_err = login_error(error);
}

void report_sentinel_answers(const struct report *r)
{
    static const char what[] = "the Sentinel at ";
    char who[sizeof what + REPORT_PLACE];
    char at[REPORT_PLACE];

    snprintf(who, sizeof who, "%s%s", what, report_place(r, at));
    report_answers(r, who);
}

/* ---- a cluster ---- */
void report_seed(const struct report *r, const char *why)
{
    char at[REPORT_PLACE];

    if (report_begins(r, why) && !r->endpoint->is_spare) {
        report_place(r, at);
        outage_began(r, log_line(report_log_of(r), LOG_CLUSTER, LOG_WARNING,
                                 "cannot ask the node at %s for the map of its cluster: %s; asking "
                                 "the next one",
                                 at, why));
    }
}

void report_no_seed(const struct report *r)
{
    struct endpoint *e = r->endpoint;
    char at[REPORT_PLACE];
    struct lapse_health report = {
        .kind = LAPSE_HEALTH_DISCONNECTED, .err = LAPSE_EDOWN, .what = at, .detail = e->why};

    report_place(r, at);
    health_report(&e->context->health, report);
}

void report_seed_answers(const struct report *r)
{
    report_answers(r, "the cluster"); /* any of its nodes */
}

void report_no_map(const struct report *r, const char *why)
{
    char at[REPORT_PLACE];

    log_line(report_log_of(r), LOG_CLUSTER, LOG_WARNING,
             "the node at %s gives no map of its cluster: %s; asking another", report_place(r, at),
             why);
}
