/* SPDX-License-Identifier: MIT */
/* One Redis connection, on hiredis's async interface as 0.14.1 and 1.x share it. This file, login.c
 * and reply.c alone know hiredis. What was tried there and binds us (0.14.1; 1.2 where it differs):
 *
 *  - A refused connect calls on_connect(ERR) with ac->err 0 (1.2: 1) and frees ac itself;
 *    on_disconnect does not run.
 *  - A lost connection calls every pending callback with NULL, then on_disconnect, then frees ac.
 *  - redisAsyncFree() within on_connect or on_disconnect is a use after free: we free from a timer
 *    only (state FAILING). Elsewhere it runs the pending callbacks with NULL within our call.
 *  - A refused PSUBSCRIBE answers NULL and leaves the reason in ac->errstr only; the connection is
 *    gone.
 *  - An ordinary command on a connection that subscribes kills it; PING's answer is swallowed there
 *    (0.14.1). So each connection has one role, and a subscriber's heartbeat is to subscribe again.
 *  - It writes with write(2) or send(2) without MSG_NOSIGNAL: SIGPIPE is held off around each
 *    write, so that a host program does not die of a peer that went away.
 *  - Out of memory 0.14.1 sends a command whose callback it could not note: its answer would be
 *    taken for that of the next command, or abort(). So we check whether it did, and give the
 *    connection up before the command is written: tests/fault/fail_each_call.c.
 *  - It has no deadlines (1.x has, and ends the whole connection): ours are one timer a connection.
 *
 * A connection that brought nothing for half of reply_ms while no answer is due is asked for a sign
 * of life: half-open, or behind a proxy that acknowledges and forwards nothing, it looks like an
 * idle one. A connection that brought nothing for all of reply_ms while an answer is due is given
 * up. Any byte counts, of a long answer or of a burst of events too.
 *
 *   DOWN --timer--> CONNECTING --on_connect--> GREETING --all answered--> UP
 *    ^                  |           (AUTH, SELECT, PING)                   |
 *    |                  |                          |                       |
 *    '---- backoff -----+---- FAILING (timer) <----+--- deadline, error ---'
 */
#include "redis/conn.h"
#include "base/error.h"
#include "redis/login.h"
#include "redis/redis_error.h"
#include "redis/sigpipe.h"
#include <fcntl.h>
#include <hiredis/adapters/libev.h>
#include <hiredis/async.h>
#include <hiredis/hiredis.h>
#include <hiredis/sds.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>

enum { BACKOFF_MAX_MS = 500, BACKOFF_STEP_MS = 64, BACKOFF_MIN_MS = 8 };
enum { SECOND_LOOK_MS = 20, CALL_MS = 400, CALM_MS = 1000, GARBLED = 4 /* attempts */ };
enum { FULL_BYTES = 256 * 1024, OLDEST_VERSION = 7 };

static void on_timer(void *arg);

void conn_init(struct conn *c, struct endpoint *endpoint, const struct conn_events *events,
               void *arg)
{
    *c = (struct conn){.context = endpoint->context,
                       .endpoint = endpoint,
                       .events = events,
                       .arg = arg,
                       .state = CONN_DOWN,
                       .why = LAPSE_ELOST};
    list_init(&c->calls);
    timer_init(&c->timer, c->context->loop, on_timer, c);
}

static const char *reason(const struct redisAsyncContext *ac)
{
    return ac && ac->errstr && *ac->errstr ? ac->errstr
           : ac && ac->c.errstr[0]         ? ac->c.errstr
                                           : "connection closed";
}

static bool subscribes(const struct conn *c)
{
    return c->events->ask != NULL;
}

enum { PLACE = 256 };

/* Where Redis is; of a name with several addresses also the one that was tried. */
static const char *place(const struct conn *c, char out[PLACE])
{
    const struct address *u = &c->endpoint->address;

    if (u->unix_socket) {
        snprintf(out, PLACE, "%s", u->host);
        return out;
    }

    int len =
        snprintf(out, PLACE, strchr(u->host, ':') ? "[%.160s]:%d" : "%.160s:%d", u->host, u->port);
    if (c->hosts.n > 1 && c->hosts.next > 0) {
        snprintf(out + len, PLACE - (size_t)len, " (%s)", c->hosts.at[c->hosts.next - 1]);
    }

    return out;
}

/* A line of the log said that Redis cannot be used; connected() is to take that back. */
static void in_trouble(struct conn *c, bool written)
{
    if (written && !c->endpoint->outage_us) {
        c->endpoint->outage_us = clock_us();
    }
}

/* One line for each outage: when both connections were lost, it comes with the one for commands. */
static void connected(struct conn *c)
{
    struct log *log = &c->context->log;
    struct endpoint *endpoint = c->endpoint;
    char at[PLACE];

    endpoint->commands_up = endpoint->commands_up || !subscribes(c);
    if (!subscribes(c)) {
        endpoint->login_err = 0;
        health_report(&c->context->health,
                      (struct lapse_health){.kind = LAPSE_HEALTH_CONNECTED, .what = place(c, at)});
    }
    if (!endpoint->outage_us || !endpoint->commands_up) {
        return;
    }

    log->last_us[LOG_AGAIN] = 0; /* what it takes back was not held back either */
    log_line(log, LOG_AGAIN, LOG_NOTICE, "connected%s to Redis at %s%s after %.1f s",
             c->was_up ? " again" : "", place(c, at), subscribes(c) ? " for expiry events" : "",
             (double)(clock_us() - endpoint->outage_us) / 1e6);
    endpoint->outage_us = 0;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* From the start of one attempt to the start of the next, on average. The first comes at once, and
 * no more than ten in a second; a name's other addresses come at once, too. */
static int64_t backoff_ms(const struct conn *c)
{
    int64_t wait = c->attempts ? BACKOFF_STEP_MS * (int64_t)least(c->attempts, BACKOFF_MAX_MS)
                               : BACKOFF_MIN_MS;

    if (c->why == LAPSE_EREFUSED) {
        return c->context->settings.reply_ms;
    }
    return least(wait, BACKOFF_MAX_MS);
}

/* The context is gone, or is about to be freed by hiredis: all its callbacks have run. */
static void ended(struct conn *c)
{
    bool was_up = c->state == CONN_UP || (c->state == CONN_FAILING && c->greetings == 0);
    int64_t now = clock_us();
    int64_t took_ms = (now - c->since_us) / 1000;

    ASSERT(list_empty(&c->calls));

    /* what answered is back at once, but not again and again: something between us may cut off
     * certain answers */
    if (c->answered && now - c->calm_us > CALM_MS * INT64_C(1000)) {
        c->attempts = 0;
        c->calm_us = now;
    }

    if (was_up) {
        hosts_restart(&c->hosts);
    }

    int64_t wait_ms = 0;
    if (!hosts_left(&c->hosts)) {
        wait_ms = backoff_ms(c);
        wait_ms = wait_ms / 2 + (int64_t)(clock_random() % (uint64_t)(wait_ms / 2 + 1)) - took_ms;
        c->attempts++;
    }

    timer_set(&c->timer, wait_ms > BACKOFF_MIN_MS / 2 ? wait_ms : BACKOFF_MIN_MS / 2);

    c->ac = NULL;
    c->state = CONN_DOWN;
    c->refused = c->why == LAPSE_EREFUSED;
    c->why = LAPSE_ELOST;
    c->endpoint->commands_up = c->endpoint->commands_up && subscribes(c);
    if (was_up) {
        c->events->down(c->arg);
    }
}

/* From the loop: hiredis may be beneath us. */
static void fail(struct conn *c, int why)
{
    if (c->ac && c->state != CONN_FAILING) {
        c->state = CONN_FAILING;
        c->why = why;
        timer_set(&c->timer, 0);
    }
}

static void call_end(struct call *call, int err, const struct redisReply *reply)
{
    ASSERT(!call->ended);
    call->ended = true;
    list_remove(&call->node);
    call->end(call, err, reply);
}

static void on_reply(struct redisAsyncContext *ac, void *reply, void *arg)
{
    struct conn *c = ac->data;
    c->answered = c->answered || reply;
    call_end(arg, reply ? 0 : c->why, reply);
}

/* A subscription that fails makes jobs late, no more: LAPSE_HEALTH_NO_EVENTS tells of it. */
static void report_disconnected(const struct conn *c, const char *at, const char *detail)
{
    if (!subscribes(c)) {
        health_report(&c->context->health, (struct lapse_health){.kind = LAPSE_HEALTH_DISCONNECTED,
                                                                 .err = LAPSE_EDOWN,
                                                                 .what = at,
                                                                 .detail = detail});
    }
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

static void report_login(const struct conn *c, struct span error, const char *at,
                         const char *detail)
{
    int err = login_error(error);

    if (subscribes(c)) {
        return;
    }
    if (!err) {
        report_disconnected(c, at, detail);
        return;
    }

    c->endpoint->login_err = err;
    health_report(&c->context->health,
                  (struct lapse_health){
                      .kind = LAPSE_HEALTH_AUTH_FAILED, .err = err, .what = at, .detail = detail});
}

/* Nothing was asked before Redis let us in, so a refusal here is a matter for the log, and for the
 * next attempt. */
static void not_let_in(struct conn *c, struct span error)
{
    struct log *log = &c->context->log;
    char at[PLACE];
    char text[LOG_VALUE];

    place(c, at);
    log_escape(text, sizeof text, error.at, error.len);

    bool written;
    if (redis_error_of(error) == REDIS_ERROR_LOADING) {
        written = log_line(log, LOG_REFUSED, LOG_WARNING,
                           "Redis at %s is loading its data; trying again", at);
    } else {
        written =
            log_line(log, LOG_REFUSED, LOG_ERR, "Redis at %s does not let us in: %s", at, text);
    }

    in_trouble(c, written);
    report_login(c, error, at, text);
    fail(c, LAPSE_ELOST);
}

static bool command(struct conn *c, redisCallbackFn *fn, void *arg, int argc, const char **argv,
                    const size_t *len)
{
    const redisCallback *last = c->ac->replies.tail;
    bool sent = redisAsyncCommandArgv(c->ac, fn, arg, argc, argv, len) == REDIS_OK;
    bool noted = c->ac->replies.tail != last;

    if (sent && !noted) {
        fail(c, LAPSE_ELOST);
    }
    return sent && noted;
}

/* ["server", "redis", "version", "7.0.15", ...]; every user may ask. An answer of another shape, or
 * none, tells nothing: some proxies do not know HELLO. */
static void on_hello(struct redisAsyncContext *ac, void *reply, void *arg)
{
    struct conn *c = ac->data;
    struct span name;
    struct span version = {"", 0};

    (void)arg;

    for (size_t i = 0; i + 1 < reply_len(reply) && !version.len; i += 2) {
        if (reply_text(reply_at(reply, i), &name) && span_is(name, "version")) {
            reply_text(reply_at(reply, i + 1), &version);
        }
    }

    bool old = version.len > 1 && version.at[0] > '0' && version.at[0] < '0' + OLDEST_VERSION &&
               version.at[1] == '.';
    if (old && !c->old) {
        char at[PLACE];
        char text[LOG_VALUE];
        log_line(&c->context->log, LOG_VERSION, LOG_ERR,
                 "Redis %d.0 or later is needed: the one at %s is version %s", OLDEST_VERSION,
                 place(c, at), log_escape(text, sizeof text, version.at, version.len));
    }

    c->old = old;
}

static void on_greeting(struct redisAsyncContext *ac, void *reply, void *arg)
{
    struct conn *c = ac->data;
    struct span error;
    const char *hello = "HELLO";

    (void)arg;
    if (!reply || c->state != CONN_GREETING) {
        return;
    }

    if (reply_error(reply, &error)) {
        /* NOPERM for PING is fine: the user is logged in, and merely may not PING */
        if (c->greetings > 1 || redis_error_of(error) != REDIS_ERROR_DENIED) {
            not_let_in(c, error);
            return;
        }
    }

    if (--c->greetings == 0) {
        c->context->stats.reconnects += c->was_up;
        c->state = CONN_UP;
        hosts_good(&c->hosts);
        connected(c);
        c->was_up = true;
        timer_set(&c->timer, c->context->settings.reply_ms / 2);
        if (!subscribes(c)) {
            command(c, on_hello, NULL, 1, &hello, NULL);
        }
        c->events->up(c->arg);
    }
}

static void greet(struct conn *c)
{
    const struct address *u = &c->endpoint->address;
    char db[12];
    const char *select[] = {"SELECT", db};
    const char *ping = "PING"; /* of LOADING, MASTERDOWN we hear before work depends on it */

    c->state = CONN_GREETING;
    c->greetings = 1u + (u->password != NULL) + (u->db != 0);
    snprintf(db, sizeof db, "%d", u->db);
    if ((u->password && !login_send(c->ac, u, on_greeting)) ||
        (u->db && !command(c, on_greeting, NULL, 2, select, NULL)) ||
        !command(c, on_greeting, NULL, 1, &ping, NULL)) {
        fail(c, LAPSE_ELOST);
    }
}

static void failed(struct conn *c, const char *why)
{
    char at[PLACE];
    in_trouble(c, log_line(&c->context->log, LOG_CONNECT, LOG_WARNING,
                           "cannot connect to Redis at %s: %s; trying again", place(c, at), why));
    report_disconnected(c, at, why);
}

static void on_connect(const struct redisAsyncContext *ac, int status)
{
    struct conn *c = ac->data;
    int one = 1;
    unsigned patience = (unsigned)c->context->settings.reply_ms;

    if (c->state != CONN_CONNECTING) {
        return; /* it is being freed: 1.x says so here too */
    }

    if (status != REDIS_OK) {
        failed(c, reason(ac));
        ended(c);
        return;
    }

    if (!c->endpoint->address.unix_socket) {
        setsockopt(ac->c.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        /* what is not acknowledged is not kept longer than we wait, nor after we gave it up */
        setsockopt(ac->c.fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &patience, sizeof patience);
    }

    c->reached_ms = (clock_us() - c->since_us) / 1000 + 1;
    greet(c);
}

static void on_disconnect(const struct redisAsyncContext *ac, int status)
{
    struct conn *c = ac->data;
    char at[PLACE];

    if (c->state == CONN_CLOSED) {
        return;
    }

    if (ac->err == REDIS_ERR_PROTOCOL) { /* what talks so will again: it is not back at once */
        c->answered = false;
        c->attempts = c->attempts < GARBLED ? GARBLED : c->attempts;
    }

    if (c->state != CONN_FAILING && c->why != LAPSE_EREFUSED && status != REDIS_OK) {
        in_trouble(c, log_line(&c->context->log, LOG_CONNECT, LOG_WARNING,
                               "lost the connection to Redis at %s: %s; connecting again",
                               place(c, at), reason(ac)));
        report_disconnected(c, at, reason(ac));
    }

    ended(c);
}

/* What waits for the socket. hiredis moves all of it at each write, so it must not become much. */
static size_t unwritten(const struct conn *c)
{
    return c->ac && c->ac->c.obuf ? sdslen(c->ac->c.obuf) : 0;
}

bool conn_full(const struct conn *c)
{
    return unwritten(c) >= FULL_BYTES;
}

/* A socket that was full and takes more shows that somebody reads at the other end. One that takes
 * what fits into it shows nothing. */
static void write_out(struct redisAsyncContext *ac)
{
    struct conn *c = ac->data;
    size_t had = unwritten(c);
    sigset_t before;

    sigpipe_hold(&before);
    redisAsyncHandleWrite(ac);
    sigpipe_release(&before, !c->ac);

    size_t left = unwritten(c);
    if (c->ac && c->blocked && left < had) {
        c->heard_us = c->moved_us = clock_us();
        c->late = false;
    }

    c->blocked = left > 0;
}

/* FAILING: what hiredis forgot must not be written, nor its answer read. */
static void on_ready(struct ev_loop *loop, ev_io *io, int events)
{
    struct redisAsyncContext *ac = ((redisLibevEvents *)io->data)->context;
    struct conn *c = ac->data;

    (void)loop;
    if (c->state != CONN_FAILING && events & EV_WRITE) {
        write_out(ac);
    } else if (c->state != CONN_FAILING) {
        c->heard_us = clock_us();
        c->late = false;
        redisAsyncHandleRead(ac);
    }
}

/* A SYN that is lost goes out again after 1, 2, 4 s: who was reached before is called anew instead.
 * Now and then with more patience, for the way may have become longer. */
static int64_t patience_ms(const struct conn *c)
{
    int64_t all = c->context->settings.reply_ms;
    int64_t call = CALL_MS + 4 * c->reached_ms;
    bool now_and_then = c->attempts >= 8 && (c->attempts & (c->attempts - 1)) == 0;

    if (now_and_then) {
        call = c->attempts < 64 ? 2 * call : all;
    }

    if (c->state != CONN_CONNECTING) {
        return all;
    }

    if (!c->reached_ms) {
        call = c->hosts.n > 1 && all / c->hosts.n > CALL_MS ? all / c->hosts.n : all;
    }

    return least(call, all);
}

static struct redisAsyncContext *dial(struct conn *c, const char **why)
{
    const struct address *u = &c->endpoint->address;

    *why = "out of memory";
    if (u->unix_socket) {
        return redisAsyncConnectUnix(u->host);
    }

    const char *host = hosts_next(&c->hosts, u->host, why);
    if (!host) {
        return NULL;
    }

    *why = "out of memory";
    return redisAsyncConnect(host, u->port);
}

static void attempt(struct conn *c)
{
    const char *why;
    struct redisAsyncContext *ac = dial(c, &why);

    c->since_us = c->heard_us = clock_us(); /* looking the name up may have taken long */

    if (!ac || ac->err) {
        failed(c, ac ? reason(ac) : why);
        if (ac) {
            redisAsyncFree(ac);
        }
        ended(c);
        return;
    }

    fcntl(ac->c.fd, F_SETFD, FD_CLOEXEC);
    redisLibevAttach(c->context->loop, ac);
    ev_set_cb(&((redisLibevEvents *)ac->ev.data)->rev, on_ready);
    ev_set_cb(&((redisLibevEvents *)ac->ev.data)->wev, on_ready);
    ac->data = c;
    c->ac = ac;
    c->state = CONN_CONNECTING;
    c->greetings = 1;
    c->late = c->answered = c->blocked = false;
    c->asked_us = 0;
    redisAsyncSetConnectCallback(ac, on_connect);
    redisAsyncSetDisconnectCallback(ac, on_disconnect);
    timer_set(&c->timer, patience_ms(c));
}

/* When the oldest thing that Redis owes us was asked; 0: nothing. Answers come in order, so that
 * one is first. */
static int64_t owed_since_us(const struct conn *c)
{
    int64_t asked_us = c->asked_us > c->heard_us ? c->asked_us : 0;
    return list_empty(&c->calls) ? asked_us : CONTAINER(c->calls.next, struct call, node)->sent_us;
}

/* When to look again, or to give it up; monotonic. Asks for a sign of life when it is time to. */
static int64_t deadline_us(struct conn *c)
{
    int64_t all = c->context->settings.reply_ms * 1000;
    int64_t now = clock_us();
    int64_t since;
    const char *ping = "PING";

    if (c->state != CONN_UP) {
        return c->since_us + patience_ms(c) * 1000;
    }

    since = owed_since_us(c);
    if (!since && c->heard_us + all / 2 > now) {
        return c->heard_us + all / 2;
    }

    if (!since) {
        since = now;
        c->asked_us =
            (c->events->ask ? c->events->ask(c->arg) : command(c, NULL, NULL, 1, &ping, NULL)) ? now
                                                                                               : 0;
    }

    return (c->heard_us + all > since + all / 2 ? c->heard_us + all : since + all / 2) -
           SECOND_LOOK_MS * INT64_C(1000);
}

static void on_deadline(struct conn *c)
{
    int64_t left = (deadline_us(c) - clock_us() + 999) / 1000;
    char at[PLACE];

    if (c->state == CONN_FAILING) {
        return;
    }

    if (left > 0) {
        c->late = false;
        timer_set(&c->timer, left);
    } else if (!c->late) {
        /* it may be us who slept: the answer may lie in the socket */
        c->late = true;
        timer_set(&c->timer, SECOND_LOOK_MS);
    } else if (c->state == CONN_CONNECTING) {
        failed(c, "no answer");
        fail(c, LAPSE_ETIMEOUT);
    } else {
        in_trouble(c,
                   log_line(&c->context->log, LOG_SILENT, LOG_WARNING,
                            "no answer from Redis at %s in %lld ms (reply_ms)%s; connecting again",
                            place(c, at), (long long)c->context->settings.reply_ms,
                            subscribes(c) ? " to the subscription" : ""));
        report_disconnected(c, at, "no answer");
        fail(c, LAPSE_ETIMEOUT);
    }
}

static void on_timer(void *arg)
{
    struct conn *c = arg;

    if (c->state == CONN_DOWN && (c->endpoint->commands_up || !subscribes(c))) {
        attempt(c);
    } else if (c->state == CONN_DOWN) {
        return; /* conn_start() goes on */
    } else if (c->state == CONN_FAILING) {
        struct redisAsyncContext *ac = c->ac;
        bool connected = ac->c.flags & REDIS_CONNECTED;
        redisAsyncFree(ac); /* ends the calls, and runs on_disconnect if it was connected */
        if (!connected && c->ac == ac) {
            ended(c);
        }
    } else {
        on_deadline(c);
    }
}

void conn_start(struct conn *c)
{
    if (c->state == CONN_DOWN && !timer_on(&c->timer)) { /* an attempt that is put off stays so */
        timer_set(&c->timer, 0);
    }
}

bool conn_send(struct conn *c, struct call *call, int argc, const char **argv, const size_t *len)
{
    ASSERT(c->state == CONN_UP);
    if (!command(c, on_reply, call, argc, argv, len)) {
        return false;
    }

    call->ended = false;
    call->sent_us = clock_us();
    list_insert(&c->calls, &call->node);
    return true;
}

/* hiredis keeps the refusal of a subscription as if it were an error of its own. */
static bool refuses_login(const char *errstr)
{
    return errstr && login_error(span_of(errstr));
}

static void on_push(struct redisAsyncContext *ac, void *reply, void *arg)
{
    struct conn *c = ac->data;
    char text[LOG_VALUE];

    (void)arg;

    if (reply) {
        c->answered = true;
        c->events->pushed(c->arg, reply);
    } else if (c->state == CONN_UP && c->why != LAPSE_EREFUSED && refuses_login(ac->errstr)) {
        c->why =
            LAPSE_EREFUSED; /* hiredis gives the connection up, and calls us for each channel */
        c->context->stats.missed_events++;
        health_report(&c->context->health, (struct lapse_health){.kind = LAPSE_HEALTH_NO_EVENTS,
                                                                 .err = LAPSE_EDENIED,
                                                                 .detail = ac->errstr});
        if (!c->refused) {
            log_line(&c->context->log, LOG_SUBSCRIBE, LOG_ERR,
                     "Redis refuses the subscription: %s; alarm and sweep go on without events",
                     log_escape(text, sizeof text, ac->errstr, strlen(ac->errstr)));
        }
    }
}

bool conn_subscribe(struct conn *c, const char *verb, const char *channel)
{
    return c->state == CONN_UP &&
           redisAsyncCommand(c->ac, on_push, NULL, "%s %s", verb, channel) == REDIS_OK;
}

void conn_flush(struct conn *c)
{
    if (c->ac && c->state == CONN_UP && !c->blocked &&
        ((redisLibevEvents *)c->ac->ev.data)->writing) {
        write_out(c->ac);
    }
}

void conn_close(struct conn *c, int why)
{
    struct redisAsyncContext *ac = c->ac;

    c->ac = NULL;
    c->state = CONN_CLOSED;
    c->why = why;
    timer_stop(&c->timer);
    if (ac) {
        redisAsyncFree(ac); /* ends the calls */
    }

    ASSERT(list_empty(&c->calls));
}
