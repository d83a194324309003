/* SPDX-License-Identifier: MIT */
/* One Sentinel is asked once a second, the one that answered last. Another is asked when it does
 * not answer, or not as it should. So nothing depends on events: a pub/sub message that is lost
 * would leave us with the old master, which after a failover by hand goes on taking writes for
 * seconds, on connections that nothing cuts.
 *
 * Three questions travel together:
 *
 *   SENTINEL MASTER                   the epoch of its configuration, and whether it is in trouble:
 *                                     then the next question comes after HURRY_MS
 *   SENTINEL GET-MASTER-ADDR-BY-NAME  where the master is; after a failover this is the first that
 *                                     knows
 *   SENTINEL SENTINELS                the others, which may be all that are left one day; now and
 *                                     then
 *
 * Each failover has a greater epoch. A Sentinel that has not heard of the last one names the old
 * master, with a smaller epoch: that is not followed while the master that is known can be used.
 * Otherwise anyone is believed, since an operator may have removed the configuration and written
 * another. Where the first and the third are denied to the user, the second is all there is.
 *
 * When no Sentinel answers we go on with the master that is known. */
#include "redis/sentinel.h"
#include "redis/redis_error.h"
#include <string.h>

enum {
    ASK_MS = 1000,
    HURRY_MS = 100,
    STUBBORN_MS = 3000, /* for how long it may name a master that cannot be used */
    PATIENCE_MS = 2500, /* at first; twice as much after each round in which nobody answers. Of more
                           than 2 * ASK_MS, for else a PING is sent between the questions */
    OTHERS_EVERY = 30   /* rounds of questions */
};

/* ---- places ---- */
/* What can be looked up and logged. Anyone may answer, and no answer is trusted. */
static bool is_host(struct span text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        if (c <= ' ' || c >= 127 || strchr("/@[]?#,\\\"'", c)) {
            return false;
        }
    }
    return text.len > 0 && text.len <= ADDRESS_HOST_MAX;
}

static bool place_read(struct sentinel_place *p, struct span host, struct span port)
{
    int64_t number = 0;

    if (!is_host(host) || !span_decimal(port, 65535, &number) || number == 0) {
        return false;
    }
    memcpy(p->host, host.at, host.len);
    p->host[host.len] = '\0';
    p->port = (int)number;
    return true;
}

static bool place_eq(const struct sentinel_place *a, const struct sentinel_place *b)
{
    return a->port == b->port && strcmp(a->host, b->host) == 0;
}

static void sentinel_add(struct sentinel *s, const struct sentinel_place *p)
{
    for (unsigned i = 0; i < s->n_places; i++) {
        if (place_eq(&s->places[i], p)) {
            return;
        }
    }
    if (s->n_places < SENTINEL_PLACES) {
        s->places[s->n_places++] = *p;
    }
}

static void sentinel_go_to(struct sentinel *s, unsigned at)
{
    s->at = at;
    endpoint_set_place(&s->endpoint, s->places[at].host, s->places[at].port);
}

/* ---- the next one ---- */
static void all_are_silent(struct sentinel *s)
{
    int64_t most_ms = s->context->options.reply_ms;

    s->n_silent = 0;
    s->patience_ms = 2 * s->patience_ms < most_ms ? 2 * s->patience_ms : most_ms;
    conn_set_reply_ms(&s->conn, s->patience_ms);

    report_no_sentinel(&s->conn.report, s->master.port && !s->all_were_silent);
    s->all_were_silent = true;
}

/* Once for each connection, whether it was made or not: then at another place. */
static void sentinel_leave(struct sentinel *s)
{
    if (s->left_us == s->conn.liveness.started_us) {
        return;
    }

    s->left_us = s->conn.liveness.started_us;
    timer_stop(&s->timer);
    s->n_silent += !s->moves_on;
    s->moves_on = false;
    if (s->n_silent == s->n_places) {
        all_are_silent(s);
    }
    sentinel_go_to(s, (s->at + 1) % s->n_places);
}

/* What it answers cannot be used. */
static void sentinel_refuse(struct sentinel *s, const char *why)
{
    report_sentinel(&s->conn.report, why);
    attempts_garbled(&s->conn.attempts);
    conn_drop(&s->conn);
}

/* ---- answers ---- */
/* Of a map, [name, value, name, value...]. */
static bool map_text(const struct redisReply *reply, const char *name, struct span *out)
{
    for (size_t i = 0; i + 1 < reply_len(reply); i += 2) {
        struct span text;
        if (reply_text(reply_at(reply, i), &text) && span_is(text, name)) {
            return reply_text(reply_at(reply, i + 1), out);
        }
    }
    return false;
}

static bool has_word(struct span text, const char *word)
{
    return memmem(text.at, text.len, word, strlen(word)) != NULL;
}

static void sentinel_heard_master(struct sentinel *s, const struct sentinel_place *p)
{
    bool is_known = place_eq(p, &s->master);
    bool is_old = s->epoch >= 0 && s->epoch < s->master_epoch;

    if (!is_known && is_old && !s->doubted) {
        sentinel_refuse(s, "it has not heard of the last failover");
        return;
    }

    report_sentinel_answers(&s->conn.report);
    s->n_silent = 0;
    s->all_were_silent = false;
    s->master_epoch = s->epoch;

    if (!is_known) {
        s->master = *p;
        s->doubted_us = clock_us();
        s->found(s->arg, p->host, p->port);
    } else if (s->doubted && clock_us() - s->doubted_us > STUBBORN_MS * INT64_C(1000)) {
        s->doubted_us = clock_us();
        s->moves_on = true;
        conn_drop(&s->conn);
    }
}

static void on_address(struct sentinel *s, const struct redisReply *reply)
{
    struct sentinel_place place;
    struct span host;
    struct span port;
    struct span error = {.len = 0};
    char text[LOG_VALUE];
    char why[LOG_VALUE + 64];

    bool is_error = reply_error(reply, &error);
    report_sentinel_login(&s->conn.report, error);
    if (is_error) {
        log_escape(text, sizeof text, error.at, error.len);
        snprintf(why, sizeof why, "%s%s", text,
                 redis_error_of(error) == REDIS_ERROR_NO_COMMAND
                     ? " (it is no Sentinel: give redis:// for a single Redis)"
                     : "");
        sentinel_refuse(s, why);
    } else if (reply_nil(reply)) {
        snprintf(why, sizeof why, "it knows no master of the name %.100s", s->name);
        sentinel_refuse(s, why);
    } else if (reply_len(reply) == 2 && reply_text(reply_at(reply, 0), &host) &&
               reply_text(reply_at(reply, 1), &port) && place_read(&place, host, port)) {
        sentinel_heard_master(s, &place);
    } else {
        sentinel_refuse(s, "its answer is no host and port");
    }
}

static void on_state(struct sentinel *s, const struct redisReply *reply)
{
    struct span text;

    s->epoch = -1;
    if (map_text(reply, "config-epoch", &text)) {
        span_decimal(text, EXACT_MAX, &s->epoch);
    }

    s->trouble = false;
    if (map_text(reply, "flags", &text)) {
        s->trouble = has_word(text, "down") || has_word(text, "failover");
    }
}

static void on_others(struct sentinel *s, const struct redisReply *reply)
{
    for (size_t i = 0; i < reply_len(reply); i++) {
        const struct redisReply *other = reply_at(reply, i);
        struct sentinel_place place;
        struct span host;
        struct span port;

        if (map_text(other, "ip", &host) && map_text(other, "port", &port) &&
            place_read(&place, host, port)) {
            sentinel_add(s, &place);
        }
    }
}

/* ---- questions ---- */
static void sentinel_ask_in(struct sentinel *s, int64_t pause_ms)
{
    int64_t since_ms = (clock_us() - s->asked_us) / 1000;

    if (s->n_calls == 0 && conn_up(&s->conn)) {
        timer_set(&s->timer, pause_ms > since_ms ? pause_ms - since_ms : 0);
    }
}

static void on_end(struct call *c, int err, const struct redisReply *reply)
{
    struct sentinel_call *call = CONTAINER(c, struct sentinel_call, call);
    struct sentinel *s = call->sentinel;

    s->n_calls--;
    if (err || !conn_up(&s->conn)) {
        return; /* down() follows, or an answer before this one was refused */
    }

    if (call == &s->state) {
        on_state(s, reply);
    } else if (call == &s->address) {
        on_address(s, reply);
    } else {
        on_others(s, reply);
    }
    sentinel_ask_in(s, s->doubted || s->trouble ? HURRY_MS : ASK_MS);
}

static void sentinel_send(struct sentinel *s, struct sentinel_call *call, const char *what)
{
    const char *argv[] = {"SENTINEL", what, s->name};

    s->n_calls += conn_up(&s->conn) && conn_send(&s->conn, &call->call, 3, argv, NULL);
}

static void on_time(void *arg)
{
    struct sentinel *s = arg;

    if (s->n_calls > 0) {
        return;
    }

    s->asked_us = clock_us();
    sentinel_send(s, &s->state, "MASTER");
    sentinel_send(s, &s->address, "GET-MASTER-ADDR-BY-NAME");
    if (s->n_rounds++ % OTHERS_EVERY == 0) {
        sentinel_send(s, &s->others, "SENTINELS");
    }
    sentinel_ask_in(s, ASK_MS); /* if there was no memory */
}

void sentinel_doubt(struct sentinel *s)
{
    if (!s->doubted) {
        s->doubted = true;
        s->doubted_us = clock_us();
    }
    sentinel_ask_in(s, HURRY_MS);
}

void sentinel_trust(struct sentinel *s)
{
    s->doubted = false;
}

/* ---- the connection ---- */
static void on_up(void *arg)
{
    struct sentinel *s = arg;

    s->n_rounds = 0;
    on_time(s);
}

static void on_down(void *arg)
{
    sentinel_leave(arg);
}

/* The other addresses of a name are tried before. */
static void on_failed(void *arg)
{
    struct sentinel *s = arg;

    if (!hosts_left(&s->conn.hosts)) {
        sentinel_leave(s);
    }
}

/* ---- life ---- */
void sentinel_init(struct sentinel *s, struct context *context, const struct address *address,
                   void (*found)(void *arg, const char *host, int port), void *arg)
{
    static const struct conn_events events = {.up = on_up, .down = on_down, .failed = on_failed};
    struct address of_one = *address;
    struct sentinel_call *calls[] = {&s->state, &s->address, &s->others};

    *s = (struct sentinel){.context = context, .name = address->master, .found = found, .arg = arg};
    for (unsigned i = 0; i < address->n_seeds; i++) {
        const struct address_place *seed = &address->seeds[i];
        struct sentinel_place place = {.port = seed->port};
        snprintf(place.host, sizeof place.host, "%s", seed->host);
        sentinel_add(s, &place);
    }
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        calls[i]->sentinel = s;
        calls[i]->call.end = on_end;
    }

    of_one.kind = ADDRESS_REDIS;
    of_one.db = 0;
    of_one.user = address->sentinel_user;
    of_one.password = address->sentinel_password;
    endpoint_init(&s->endpoint, context, &of_one);
    sentinel_go_to(s, 0);

    s->epoch = -1;
    timer_init(&s->timer, context->loop, on_time, s);
    conn_init(&s->conn, &s->endpoint, CONN_SENTINEL, &events, s);
    s->patience_ms = PATIENCE_MS;
    if (s->patience_ms > context->options.reply_ms) {
        s->patience_ms = context->options.reply_ms;
    }
    conn_set_reply_ms(&s->conn, s->patience_ms);
}

void sentinel_start(struct sentinel *s)
{
    conn_start(&s->conn);
}

void sentinel_close(struct sentinel *s)
{
    timer_stop(&s->timer);
    conn_close(&s->conn, LAPSE_ELOST);
}
