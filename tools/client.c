/* SPDX-License-Identifier: MIT */
/* The handle and its loop, and how an answer becomes an exit code. "Not allowed" is told from "not there" by the
 * library's log, as is a Redis that may evict jobs: a refused password ends requests like a Redis that is away, and
 * only the line with Redis's own word (WRONGPASS, NOAUTH, NOPERM) says why. A wrong password does not get right by
 * waiting, so on_refused() ends the run at once. */
#include "client.h"
#include <string.h>
#include <syslog.h>

static int has_one_of(const char *line, const char *const *words)
{
    for (; *words; words++) {
        if (strstr(line, *words)) {
            return 1;
        }
    }
    return 0;
}

static void on_log(int level, const char *line, void *arg)
{
    static const char *const password[] = {"WRONGPASS", "NOAUTH", "invalid password", "invalid username-password",
                                           NULL};
    static const char *const right[] = {"NOPERM", NULL}, *const evicts[] = {"may evict any of them", NULL};
    struct client *c = arg;
    if (level <= (c->g->verbose ? LOG_DEBUG : LOG_NOTICE)) {
        say("%s", plain(line));
    }
    c->no_right |= has_one_of(line, right);
    if ((!c->wrong_password && has_one_of(line, password)) || (!c->evicts && has_one_of(line, evicts))) {
        c->evicts = has_one_of(line, evicts);
        c->wrong_password |= !c->evicts;
        ev_async_send(c->loop, &c->refused);
    }
}

static void on_refused(struct ev_loop *loop, ev_async *w, int events)
{
    struct client *c = w->data;
    (void)loop, (void)events;
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
        say("cannot start: %s", c->loop ? lapse_strerror(err) : "no event loop");
        return err == LAPSE_EINVAL ? USAGE : INTERNAL;
    }
    return 0;
}

int client_answer(struct client *c, int err, const char *about)
{
    if (!err) {
        return DONE;
    }
    if (err == LAPSE_EREFUSED && c->no_right) {
        say("%s: not allowed: this user lacks a right that lapse needs (%s)", plain(about), plain(c->g->shown_url));
        return DENIED;
    }
    if (c->wrong_password && (err == LAPSE_EREFUSED || err == LAPSE_EDOWN || err == LAPSE_ECLOSED)) {
        say("%s: not allowed: Redis wants another user or password (%s; LAPSE_PASSWORD, --password-file)", plain(about),
            plain(c->g->shown_url));
        return DENIED;
    }
    if (err == LAPSE_EDOWN || err == LAPSE_EREFUSED) {
        say("%s: %s: %s (-u or LAPSE_URL says where it is)", plain(about), lapse_strerror(err), plain(c->g->shown_url));
    } else if (lapse_maybe(err)) {
        say("%s: %s; it may have happened: lapse get tells", plain(about), lapse_strerror(err));
    } else {
        say("%s: %s", plain(about), lapse_strerror(err));
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

void client_fail(struct client *c, int code)
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
static void question_refused(struct client *c)
{
    /* the close ends what was asked with ECLOSED, and answered() tells of the password */
    client_close(c, 0);
}

int question(struct question *q, struct globals *g, int (*ask)(struct question *q))
{
    int err = client_open(&q->c, g, question_refused);
    if (err) {
        return err;
    }
    q->g = g;
    err = ask(q);
    if (err) {
        client_fail(&q->c, client_answer(&q->c, err, q->queue));
    }
    if (!q->open) {
        client_close(&q->c, 0);
    }
    return client_run(&q->c);
}

int answered(struct question *q, int err, const char *queue, const char *id)
{
    char about[400];
    const char *shown = id && strstr(id, "://") ? typed(id) : id;
    snprintf(about, sizeof about, "%s%s%s", queue, id ? "/" : "", id ? shown : "");
    client_fail(&q->c, client_answer(&q->c, err, about));
    if (!--q->open) {
        client_close(&q->c, 0);
    }
    return !err;
}
