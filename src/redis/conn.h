/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_CONN_H
#define LAPSE_CONN_H
#include "base/list.h"
#include "redis/attempts.h"
#include "redis/handshake.h"
#include "redis/liveness.h"
#include "redis/report.h"

/* One command on its way; embedded in what waits for it. */
struct call {
    struct list node;
    struct answer answer;
    int64_t sent_us; /* by clock_us() */
    bool ended;
    /* Runs once: with err 0 and the reply, which may be an error reply; or with ELOST, ETIMEOUT and
     * NULL. */
    void (*end)(struct call *c, int err, const struct redisReply *reply);
};

/* What the owner of a connection hears. All run from the loop. */
struct conn_events {
    /* It is connected and logged in, and Redis answers. */
    void (*up)(void *arg);
    /* It was up and is not; every call has ended. The next attempt is planned. */
    void (*down)(void *arg);
    /* The connection could not be made, or was given up because it was silent; may be NULL. */
    void (*failed)(void *arg);
    /* The answer to a call is this error; end() of the call follows. May be NULL. */
    void (*error)(void *arg, struct span error);

    /* These are for a subscription, and NULL for others. */

    /* A reply to a (p)subscribe, or a message. */
    void (*pushed)(void *arg, const struct redisReply *reply);
    /* Redis refuses to subscribe us; down() follows. */
    void (*refused)(void *arg, struct span error);
    /* The connection was silent, and cannot be PINGed: something is to be subscribed to again,
     * which is answered. false: there is nothing. */
    bool (*ask)(void *arg);
};

enum conn_state {
    CONN_DOWN,       /* waits for the next attempt; all others also for the commands to be up */
    CONN_CONNECTING, /* connect(2) is under way, or the handshake of TLS */
    CONN_HANDSHAKE,  /* AUTH, SELECT and PING are sent, and not all answered */
    CONN_UP,
    CONN_FAILING, /* given up, and freed when the loop comes to its timer */
    CONN_CLOSED   /* for good */
};

/* One connection to Redis. It connects, logs in, and connects again whenever it is lost. */
struct conn {
    /* whose it is */
    struct context *context;
    struct endpoint *endpoint;
    struct list of_endpoint; /* among its connections */
    enum conn_role role;
    int64_t reply_ms; /* how long an answer may take */
    const struct conn_events *events;
    void *arg;
    struct report report;

    /* where it stands. The timer starts the next attempt, frees what has failed, or looks whether
     * the connection is alive. */
    enum conn_state state;
    struct timer timer;
    struct hosts hosts; /* not for a Unix socket */
    struct attempts attempts;
    bool ever_up;     /* so that the next time is a reconnect */
    bool was_refused; /* the last attempt ended by a refusal to subscribe us */

    /* the connection of now */
    struct transport transport;
    struct handshake handshake;
    struct liveness liveness;
    struct answer push;
    struct list calls; /* sent and not answered, in order */
    int end_reason;    /* what they end with when the connection does: ELOST, ETIMEOUT */
    bool owner_has_it; /* up() has run, and down() has not */
    bool got_reply;
    bool refused; /* to subscribe */
    bool retired; /* nothing more is sent, and it is given up when all calls are answered */
    bool too_old; /* the version of Redis was, and the log says so; of any connection */
};

void conn_init(struct conn *c, struct endpoint *endpoint, enum conn_role role,
               const struct conn_events *events, void *arg);

/* Connects at once, when it is down and no attempt is planned. Of those to a Redis only the one for
 * commands is made while that is down: the owner of another one calls again when it is up. A fence
 * goes to the very address to which the commands go. */
void conn_start(struct conn *c);

/* May something be sent? */
static inline bool conn_up(const struct conn *c)
{
    return c->state == CONN_UP && !c->retired;
}

/* Sends a command on a connection that is up. false: it was not taken, and call->end() does not
 * run. */
bool conn_send(struct conn *c, struct call *call, int argc, const char **argv, const size_t *len);

/* Sends a (p)subscribe, or the end of one; its answers come to pushed(). */
bool conn_subscribe(struct conn *c, const char *verb, const char *channel);

/* Does so much wait for the socket that the next command had better wait where it is? */
bool conn_full(const struct conn *c);
/* Has a full socket taken more, lately? Then what waits behind it does so with reason. */
static inline bool conn_moving(const struct conn *c)
{
    return liveness_moving(&c->liveness);
}

/* Writes what was sent in this turn of the loop now, rather than in the next. */
void conn_flush(struct conn *c);

/* Gives up the connection of now; calls end with ELOST. It is made again. */
void conn_drop(struct conn *c);

/* The same, but calls that are on their way are answered first. */
void conn_retire(struct conn *c);

/* The endpoint is elsewhere. The connection of now, if it is there or begun, is given up at once,
 * and made again there. */
void conn_move(struct conn *c);

/* How long an answer may take from now on, instead of reply_ms. */
void conn_set_reply_ms(struct conn *c, int64_t reply_ms);

/* Closes it for good; calls end with reason. Not to be called from its events or calls. */
void conn_close(struct conn *c, int reason);

#endif
