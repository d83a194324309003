/* SPDX-License-Identifier: MIT */
/* The handle and its loop, and how an answer becomes an exit code. "Not allowed" is told from "not
 * there" by the library's log, as is a Redis that may evict jobs: a refused password ends requests
 * like a Redis that is away, and only the line with Redis's own word (WRONGPASS, NOAUTH, NOPERM)
 * says why. A wrong password does not get right by waiting, so on_refused() ends the run at once.
 *
 * A listener may run for months beside a Redis that refuses it something: a line is shown when it
 * first comes, and again after it has not come for a while, or after good news. The library already
 * holds back all but one a second.
 *
 * A command that asks one question shows no log: the library tries again and again where people
 * want one line, now. */
#include "client/client.h"
#include "cli/message.h"
#include "cli/url_mask.h"
#include "cli/values.h"
#include <stdio.h>
#include <string.h>
#include <syslog.h>

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

void client_news_is_good(struct client *c)
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
        client_news_is_good(c);
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
    int refused = 0;

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

static void on_refused(struct ev_loop *loop, ev_async *w, int events)
{
    struct client *c = w->data;

    (void)loop;
    (void)events;
    if (c->l) {
        c->on_refused(c);
    }
}

int client_open(struct client *c, struct globals *g, void (*refused)(struct client *))
{
    int err = url_make(g);

    if (err) {
        return err;
    }

    c->g = g;
    c->code = c->wrong_password = c->no_right = c->evicts = 0;
    c->away = c->shut_out = c->said_away = c->replica = 0;
    client_news_is_good(c);
    *c->error = '\0';
    c->on_refused = refused;
    c->l = NULL;
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
    if (!c->loop || err) {
        message_print("cannot start: %s", c->loop ? lapse_strerror(err) : "no event loop");
        return err == LAPSE_EINVAL ? USAGE : INTERNAL;
    }

    return 0;
}

/* What Redis's own words explain. 0: they explain nothing. */
static int denied(struct client *c, int err, const char *about)
{
    int denied_now = err == LAPSE_EREFUSED || err == LAPSE_EDENIED || err == LAPSE_EAUTH;
    int shut = denied_now || err == LAPSE_EDOWN || err == LAPSE_ECLOSED;
    int refused = err == LAPSE_EREFUSED || err == LAPSE_EDENIED || err == LAPSE_EBROKEN ||
                  (shut && c->shut_out);

    if (refused && c->no_right) {
        const char *what = c->one_shot ? c->error : "";
        message_print("%s: not allowed: this user lacks a right%s%s (%s)%s%s", printable(about),
                      *what ? ": " : "", what, printable(c->g->shown_url),
                      strstr(what, "lapse doctor") ? "" : "; lapse doctor names all that it lacks",
                      err == LAPSE_EBROKEN
                          ? "; lapse doctor --repair mends what broke off in the middle"
                          : "");
        return DENIED;
    }

    if (shut && c->wrong_password) {
        message_print("%s: not allowed: Redis wants another user or password (%s; LAPSE_PASSWORD, "
                      "--password-file)",
                      printable(about), printable(c->g->shown_url));
        return DENIED;
    }

    return 0;
}

static void say_away(struct client *c, const char *about)
{
    if (!c->said_away) {
        message_print("%s: %s: %s%s%s (-u or LAPSE_URL says where it is)", printable(about),
                      lapse_strerror(LAPSE_EDOWN), printable(c->g->shown_url), c->away ? ": " : "",
                      c->away ? printable(c->away_why) : "");
    }
    c->said_away = c->one_shot;
}

int client_report(struct client *c, int err, const char *about)
{
    int code = err ? denied(c, err, about) : DONE;

    if (!err || code) {
        return code;
    }

    if (err == LAPSE_EDOWN || (err == LAPSE_ECLOSED && c->away)) {
        say_away(c, about);
    } else if (err == LAPSE_EREFUSED && c->one_shot && *c->error) {
        message_print("%s: %s", printable(about), c->error);
    } else if (lapse_outcome_unknown(err)) {
        message_print("%s: %s; %s", printable(about), lapse_strerror(err),
                      c->maybe ? c->maybe : "nothing was to be changed");
    } else {
        message_print("%s: %s", printable(about), lapse_strerror(err));
    }

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

int client_is_shut_out(const struct client *c)
{
    return c->wrong_password || c->shut_out;
}

void client_set_exit_code(struct client *c, int code)
{
    if (!c->code) {
        c->code = code;
    }
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

/* ---- one question, one answer ---- */
static int is_patient(const struct oneshot *q)
{
    return !client_is_shut_out(&q->c) && monotonic_ms() < q->until_ms;
}

static void question_refused(struct client *c)
{
    /* the close ends what was asked with ECLOSED, and oneshot_replied() reports the password, or
     * that Redis is not there */
    struct oneshot *q = (struct oneshot *)c;

    if (client_is_shut_out(c) || (c->away && !is_patient(q))) {
        client_close(c, 0);
    }
}

/* Asks, and ends where nothing was asked. */
static void put(struct oneshot *q)
{
    int err = q->ask(q);

    if (err) {
        client_set_exit_code(&q->c, client_report(&q->c, err, q->queue));
    }
    if (!q->open) {
        client_close(&q->c, 0);
    }
}

int oneshot_run(struct oneshot *q, struct globals *g, int (*ask)(struct oneshot *q))
{
    int err;

    q->c.one_shot = 1;
    err = client_open(&q->c, g, question_refused);
    if (err) {
        return err;
    }

    q->g = g;
    q->ask = ask;
    q->until_ms = monotonic_ms() + (g->connect_wait_ms > 0 ? g->connect_wait_ms : 0);
    put(q);
    return client_run(&q->c);
}

int oneshot_replied(struct oneshot *q, int err, const char *queue, const char *id)
{
    char about[400];
    const char *shown = id && strstr(id, "://") ? printable_argument(id) : id;

    q->open--;
    q->answered += err != LAPSE_EDOWN;

    if (err == LAPSE_EDOWN && !q->answered &&
        is_patient(q)) { /* reply_ms is over, and our patience is not */
        if (!q->open) {
            put(q);
        }
        return 0;
    }

    snprintf(about, sizeof about, "%s%s%s", queue, id ? "/" : "", id ? shown : "");
    client_set_exit_code(&q->c, client_report(&q->c, err, about));
    if (!q->open) {
        client_close(&q->c, 0);
    }

    return !err;
}
