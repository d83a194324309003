/* SPDX-License-Identifier: MIT */
/* The life of a connection.
 *
 *   DOWN --timer--> CONNECTING --connected--> HANDSHAKE --all answered, and well--> UP
 *    ^                  |                         |                                 |
 *    '---- backoff -----+---- FAILING (timer) <---+----- deadline, error, move -----'
 *
 * What hiredis 0.14.1 does, and 1.2 where it differs, which binds us here and in transport.c:
 *
 *  - A refused connect calls on_connect(ERR) with ac->err 0 (1.2: 1), and frees ac itself;
 *    on_disconnect does not run.
 *  - A lost connection calls every pending callback with NULL, then on_disconnect, then frees ac.
 *  - redisAsyncFree() within on_connect or on_disconnect is a use after free: so a connection is
 *    only freed from a timer, in the state FAILING. Elsewhere it runs the pending callbacks with
 *    NULL within our call.
 *  - A refused PSUBSCRIBE answers NULL, and leaves the reason in ac->errstr alone; the connection
 *    is gone.
 *  - An ordinary command on a connection that subscribes kills it, and the answer of PING is
 *    swallowed there (0.14.1). So each connection has one role, and a subscription's sign of life
 *    is to subscribe again.
 *  - It writes with write(2) or send(2) without MSG_NOSIGNAL: SIGPIPE is held off around each
 *    write, so that a host program does not die of a peer that went away.
 *  - Out of memory 0.14.1 sends a command whose callback it could not note: its answer would be
 *    taken for that of the next command, or abort(). So we check whether it did, and give the
 *    connection up before the command is written: tests/fault/fail_each_call.c.
 *  - It has no deadlines (1.x has, and ends the whole connection): ours are one timer a connection,
 *    see liveness.h. */
#include "redis/conn.h"
#include "base/error.h"
#include "redis/redis_error.h"

enum { DOWN_MIN_MS = 4, FULL_BYTES = 256 * 1024, SENTINELS = 3 /* or seeds, as a rule */ };

/* ---- the end of a connection ---- */
/* From the start of the last attempt to the start of the next, half of it at random. The other
 * addresses of a name are tried at once. */
static int64_t conn_wait_ms(const struct conn *c, int64_t now_us)
{
    int64_t took_ms = (now_us - c->liveness.started_us) / 1000;
    int64_t wait_ms = attempts_backoff_ms(&c->attempts);

    if (hosts_left(&c->hosts)) {
        return 0;
    }
    if (c->refused) {
        wait_ms = c->reply_ms;
    }
    return wait_ms / 2 + (int64_t)(clock_random() % (uint64_t)(wait_ms / 2 + 1)) - took_ms;
}

/* The transport is closed and all calls have ended: plans the next attempt, and tells the owner. */
static void conn_ended(struct conn *c)
{
    bool owner_had_it = c->owner_has_it;
    bool failed = !owner_had_it || c->end_reason == LAPSE_ETIMEOUT;
    int64_t now_us = clock_us();

    ASSERT(list_empty(&c->calls));

    if (c->got_reply) {
        attempts_worked(&c->attempts);
        c->got_reply = false;
    }
    if (owner_had_it) {
        hosts_restart(&c->hosts);
    }

    int64_t wait_ms = conn_wait_ms(c, now_us);
    if (!hosts_left(&c->hosts)) {
        c->attempts.n_failed++;
    }
    timer_set(&c->timer, wait_ms > DOWN_MIN_MS ? wait_ms : DOWN_MIN_MS);

    c->state = CONN_DOWN;
    c->was_refused = c->refused;
    c->refused = false;
    c->retired = false;
    c->end_reason = LAPSE_ELOST;
    c->owner_has_it = false;

    if (c->role == CONN_COMMANDS) {
        c->endpoint->commands_up = false;
    }
    if (owner_had_it) {
        c->events->down(c->arg);
    }
    if (failed && c->events->failed) {
        c->events->failed(c->arg);
    }
}

/* Gives the connection up. hiredis may be beneath us, so it is freed from the loop. */
static void conn_fail(struct conn *c, int reason)
{
    if (transport_is_open(&c->transport) && c->state != CONN_FAILING) {
        transport_stop(&c->transport);
        c->state = CONN_FAILING;
        c->end_reason = reason;
        timer_set(&c->timer, 0);
    }
}

static void on_ended(void *owner, const char *why, bool garbled)
{
    struct conn *c = owner;

    if (garbled) {
        c->got_reply = false;
        attempts_garbled(&c->attempts);
    }

    if (c->state == CONN_CONNECTING) {
        report_cannot_connect(&c->report, why);
    } else if (c->state == CONN_HANDSHAKE && *c->handshake.error) {
        report_not_let_in(&c->report, span_of(c->handshake.error));
    } else if (c->state != CONN_FAILING && !c->refused) {
        report_lost(&c->report, why);
    }

    conn_ended(c);
}

/* ---- the handshake ---- */
static bool conn_command(struct conn *c, struct answer *a, int argc, const char **argv,
                         const size_t *len)
{
    bool sent = transport_send(&c->transport, a, argc, argv, len);

    if (!sent && c->transport.stopped) {
        conn_fail(c, LAPSE_ELOST);
    }
    return sent;
}

static void conn_note_version(struct conn *c)
{
    bool too_old = hello_is_too_old(&c->handshake.hello);

    if (too_old && !c->too_old) {
        report_too_old(&c->report, c->handshake.hello.version);
    }
    c->too_old = too_old;
}

/* It is to no Redis that has jobs, but to one that says where they are. */
static bool conn_asks_where(const struct conn *c)
{
    return c->role == CONN_SENTINEL || c->role == CONN_SEED;
}

static void conn_is_up(struct conn *c)
{
    c->context->stats.reconnects += c->ever_up && !conn_asks_where(c);
    c->state = CONN_UP;
    c->owner_has_it = true;
    hosts_good(&c->hosts);
    if (c->role == CONN_COMMANDS) {
        c->endpoint->commands_up = true;
        memcpy(c->endpoint->host, c->hosts.good, sizeof c->endpoint->host);
    }

    report_up(&c->report, c->ever_up);
    c->ever_up = true;
    timer_set(&c->timer, c->reply_ms / 2);
    conn_note_version(c);

    c->events->up(c->arg);
}

/* A Sentinel is asked which server is the master; but it may be wrong, or that server too slow to
 * hear of it, and a replica would refuse all that we ask. */
static bool conn_is_at_master(const struct conn *c)
{
    bool by_sentinel = c->endpoint->address.kind == ADDRESS_SENTINEL && c->role == CONN_COMMANDS;

    return !by_sentinel || strcmp(c->handshake.hello.role, "master") == 0;
}

/* All answers of the handshake have come. */
static void conn_judge(struct conn *c)
{
    const struct handshake *h = &c->handshake;

    if (strcmp(h->hello.mode, "sentinel") == 0) {
        report_is_sentinel(&c->report);
    } else if (*h->error) {
        /* nothing was asked yet, so this is a matter for the log, and for the next attempt */
        report_not_let_in(&c->report, span_of(h->error));
    } else if (!conn_is_at_master(c)) {
        report_not_master(&c->report, h->hello.role);
    } else {
        conn_is_up(c);
        return;
    }
    conn_fail(c, LAPSE_ELOST);
}

static void on_handshake(void *owner, struct answer *a, const struct redisReply *reply)
{
    struct conn *c = owner;

    (void)a;
    if (reply && c->state == CONN_HANDSHAKE && handshake_take(&c->handshake, reply)) {
        conn_judge(c);
    }
}

static void on_connected(void *owner)
{
    struct conn *c = owner;
    const struct address *a = &c->endpoint->address;

    attempts_reached(&c->attempts, c->liveness.started_us);
    c->state = CONN_HANDSHAKE;
    if (!handshake_begin(&c->handshake, &c->transport, a, c->role == CONN_COMMANDS)) {
        report_lost(&c->report, "the first commands could not be sent");
        conn_fail(c, LAPSE_ELOST);
    }
}

/* ---- the beginning ---- */
static int64_t conn_patience_ms(const struct conn *c)
{
    unsigned n_addresses = c->hosts.n;

    if (c->state != CONN_CONNECTING) {
        return c->reply_ms;
    }
    if (conn_asks_where(c) && n_addresses < SENTINELS) {
        n_addresses = SENTINELS; /* there are others to ask */
    }
    return attempts_patience_ms(&c->attempts, n_addresses, c->reply_ms);
}

static const char *conn_dial(struct conn *c)
{
    const struct address *a = &c->endpoint->address;
    const char *host = NULL;
    const char *why = NULL;

    if (c->role == CONN_FENCE) {
        host = c->endpoint->host;
    } else if (!a->unix_socket) {
        host = hosts_next(&c->hosts, a->host, &why);
        if (!host) {
            return why;
        }
    }
    return transport_connect(&c->transport, a, host);
}

static void conn_attempt(struct conn *c)
{
    const char *error = conn_dial(c);

    liveness_start(&c->liveness); /* looking the name up may have taken long */

    if (error) {
        report_cannot_connect(&c->report, error);
        conn_ended(c);
        return;
    }

    c->state = CONN_CONNECTING;
    timer_set(&c->timer, conn_patience_ms(c));
}

/* ---- is it alive? ---- */
static void on_readable(void *owner)
{
    liveness_heard(&((struct conn *)owner)->liveness);
}

static void on_moved(void *owner)
{
    liveness_moved(&((struct conn *)owner)->liveness);
}

static bool conn_ask_for_life(struct conn *c)
{
    const char *ping = "PING";

    if (c->role == CONN_SUBSCRIPTION || c->role == CONN_ENDS) {
        return c->events->ask(c->arg);
    }
    return conn_command(c, NULL, 1, &ping, NULL);
}

/* Answers come in order, so the oldest call is owed for longest; 0: nothing is owed. */
static int64_t conn_owed_since_us(const struct conn *c)
{
    if (list_empty(&c->calls)) {
        return liveness_owed_since_us(&c->liveness);
    }
    return CONTAINER(c->calls.next, struct call, node)->sent_us;
}

/* When to look again, or to give it up. Asks for a sign of life when it is time to. */
static int64_t conn_deadline_us(struct conn *c)
{
    struct liveness *l = &c->liveness;
    int64_t now_us = clock_us();

    if (c->state != CONN_UP) {
        return l->started_us + conn_patience_ms(c) * 1000;
    }

    int64_t owed_since_us = conn_owed_since_us(c);
    if (!owed_since_us && liveness_ask_at_us(l) > now_us) {
        return liveness_ask_at_us(l);
    }

    if (!owed_since_us) {
        owed_since_us = now_us;
        if (conn_ask_for_life(c)) {
            liveness_asked(l);
        }
    }

    return liveness_deadline_us(l, owed_since_us);
}

static void conn_look(struct conn *c)
{
    int64_t deadline_us = conn_deadline_us(c);

    if (c->state == CONN_FAILING) {
        return;
    }

    int64_t wait_ms = liveness_wait_ms(&c->liveness, deadline_us);
    if (wait_ms > 0) {
        timer_set(&c->timer, wait_ms);
        return;
    }

    if (c->state == CONN_CONNECTING) {
        report_cannot_connect(&c->report, transport_lacks(&c->transport));
    } else {
        report_silent(&c->report);
    }
    conn_fail(c, LAPSE_ETIMEOUT);
}

/* May an attempt begin? */
static bool conn_may_begin(const struct conn *c)
{
    switch (c->role) {
    case CONN_COMMANDS:
    case CONN_SENTINEL: return true;
    case CONN_SEED: return c->endpoint->is_asked;
    default: return c->endpoint->commands_up;
    }
}

static void on_timer(void *arg)
{
    struct conn *c = arg;

    switch (c->state) {
    case CONN_DOWN:
        if (conn_may_begin(c)) {
            conn_attempt(c);
        }
        break;
    case CONN_FAILING:
        transport_close(&c->transport); /* ends the calls */
        conn_ended(c);
        break;
    default: conn_look(c);
    }
}

/* ---- calls and messages ---- */
static void on_reply(void *owner, struct answer *a, const struct redisReply *reply)
{
    struct conn *c = owner;
    struct call *call = CONTAINER(a, struct call, answer);
    struct span error;

    c->got_reply = c->got_reply || reply;
    ASSERT(!call->ended);
    call->ended = true;
    list_remove(&call->node);
    if (c->events->error && reply && reply_error(reply, &error)) {
        c->events->error(c->arg, error);
    }
    call->end(call, reply ? 0 : c->end_reason, reply);
    if (reply && c->retired && list_empty(&c->calls)) {
        conn_fail(c, LAPSE_ELOST);
    }
}

static bool refuses_subscription(struct span error)
{
    switch (redis_error_of(error)) {
    case REDIS_ERROR_DENIED:
    case REDIS_ERROR_NO_LOGIN: return true;
    default: return false;
    }
}

/* hiredis gives the connection up when a subscription is refused, and comes here for each channel.
 * */
static void on_push(void *owner, struct answer *a, const struct redisReply *reply)
{
    struct conn *c = owner;
    struct span error = transport_reason(&c->transport);

    (void)a;
    if (reply) {
        c->got_reply = true;
        c->events->pushed(c->arg, reply);
    } else if (c->state == CONN_UP && !c->refused && refuses_subscription(error)) {
        c->refused = true;
        c->events->refused(c->arg, error);
    }
}

/* ---- what the owner calls ---- */
void conn_init(struct conn *c, struct endpoint *endpoint, enum conn_role role,
               const struct conn_events *events, void *arg)
{
    static const struct transport_events transport_events = {on_connected, on_ended, on_readable,
                                                             on_moved};
    struct context *context = endpoint->context;
    int64_t reply_ms = context->options.reply_ms;
    int64_t silence_ms = reply_ms;

    if (role == CONN_FENCE) {
        silence_ms += context->options.replicas_ms;
    }

    *c = (struct conn){
        .context = context, .endpoint = endpoint, .role = role, .events = events, .arg = arg};
    c->report = (struct report){.endpoint = endpoint, .role = role, .hosts = &c->hosts};
    c->reply_ms = reply_ms;
    c->end_reason = LAPSE_ELOST;
    c->push.come = on_push;
    list_init(&c->calls);
    list_insert(&endpoint->conns, &c->of_endpoint);
    timer_init(&c->timer, context->loop, on_timer, c);
    handshake_init(&c->handshake, on_handshake);
    liveness_init(&c->liveness, silence_ms);
    transport_init(&c->transport, context->loop, reply_ms, &transport_events, c);
}

void conn_start(struct conn *c)
{
    if (c->state == CONN_DOWN && !timer_on(&c->timer)) { /* an attempt that is put off stays so */
        timer_set(&c->timer, 0);
    }
}

bool conn_send(struct conn *c, struct call *call, int argc, const char **argv, const size_t *len)
{
    ASSERT(conn_up(c));
    call->answer.come = on_reply;
    if (!conn_command(c, &call->answer, argc, argv, len)) {
        return false;
    }

    call->ended = false;
    call->sent_us = clock_us();
    list_insert(&c->calls, &call->node);
    return true;
}

bool conn_subscribe(struct conn *c, const char *verb, const char *channel)
{
    return conn_up(c) && transport_subscribe(&c->transport, &c->push, verb, channel);
}

bool conn_full(const struct conn *c)
{
    return transport_unwritten(&c->transport) >= FULL_BYTES;
}

void conn_flush(struct conn *c)
{
    if (c->state == CONN_UP) {
        transport_flush(&c->transport);
    }
}

void conn_drop(struct conn *c)
{
    conn_fail(c, LAPSE_ELOST);
}

void conn_retire(struct conn *c)
{
    if (list_empty(&c->calls)) {
        conn_fail(c, LAPSE_ELOST);
    } else {
        c->retired = c->state == CONN_UP;
    }
}

void conn_move(struct conn *c)
{
    static const struct hosts none;

    c->hosts = none;
    c->attempts.n_failed = 0;
    if (c->state != CONN_DOWN) {
        conn_fail(c, LAPSE_ELOST);
    } else if (timer_on(&c->timer)) {
        timer_set(&c->timer, 0);
    }
}

void conn_set_reply_ms(struct conn *c, int64_t reply_ms)
{
    c->reply_ms = reply_ms;
    c->liveness.reply_us = reply_ms * 1000;
}

void conn_close(struct conn *c, int reason)
{
    c->state = CONN_CLOSED;
    list_remove(&c->of_endpoint);
    c->end_reason = reason;
    timer_stop(&c->timer);
    transport_close(&c->transport); /* ends the calls */
    ASSERT(list_empty(&c->calls));
}
