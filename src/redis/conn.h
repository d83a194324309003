/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_CONN_H
#define LAPSE_CONN_H
#include "base/list.h"
#include "redis/endpoint.h"
#include "redis/hosts.h"
#include "redis/reply.h"

/* One command on its way; embedded in what waits for it. */
struct call {
    struct list node;
    int64_t sent_us;
    bool ended;
    /* Exactly once: err 0 and the reply (which may be an error reply), or ELOST, ETIMEOUT and NULL.
     */
    void (*end)(struct call *c, int err, const struct redisReply *reply);
};

/* What the owner hears. All run from the loop. */
struct conn_events {
    void (*up)(void *arg); /* connected, logged in, Redis answers PING */
    /* was up and is not; every call has ended. A new attempt is under way */
    void (*down)(void *arg);
    /* A (p)subscribe reply or message, for a connection that subscribes. */
    void (*pushed)(void *arg, const struct redisReply *reply);
    /* It was silent: subscribe to something anew, which is answered; false: nothing to. NULL: PING
     * is for it. */
    bool (*ask)(void *arg);
};

/* One connection to Redis: it connects, logs in, and connects again, for ever. One that subscribes
 * connects while the one for commands is up: without that one nobody asks what is due. */
struct conn {
    struct context *context;
    struct endpoint *endpoint;
    const struct conn_events *events;
    void *arg;
    struct redisAsyncContext *ac; /* NULL: none just now */
    struct hosts hosts;           /* not for a Unix socket */
    enum conn_state {
        CONN_DOWN,
        CONN_CONNECTING,
        CONN_GREETING,
        CONN_UP,
        CONN_FAILING,
        CONN_CLOSED
    } state;
    struct list calls; /* sent, in order */
    /* DOWN: the next attempt. Else: when to ask for a sign of life, or to give it up */
    struct timer timer;
    int64_t since_us;   /* start of the attempt */
    int64_t reached_ms; /* how long it took to connect, the last time; 0: never was */
    int64_t heard_us;   /* the last sign of life: something was read, or a full socket took more */
    int64_t moved_us;   /* when a full socket took more; of any connection */
    int64_t calm_us;    /* when the attempts were forgotten last */
    int64_t asked_us;   /* when a sign of life was asked for; 0: never */
    int why;            /* what calls end with when the connection ends: ELOST, ETIMEOUT */
    unsigned attempts;  /* failed, in a row or within a second; of all addresses each */
    unsigned greetings; /* answers to wait for before it is up */
    bool late;          /* a deadline passed once; it counts when the socket was read since */
    bool was_up;        /* ever */
    bool answered;      /* a request, on the connection of now */
    bool refused;       /* its last attempt was, and that was said */
    bool blocked;       /* the socket is full: the rest goes when it can be written to */
    bool old;           /* the server's version is too old, and that was said */
};
void conn_init(struct conn *c, struct endpoint *endpoint, const struct conn_events *events,
               void *arg);
/* when it is down: at once. A subscription must be told so when the one for commands is up */
void conn_start(struct conn *c);
static inline bool conn_up(const struct conn *c)
{
    return c->state == CONN_UP;
}
/* So much waits for the socket that the next command had better wait where it is. */
bool conn_full(const struct conn *c);
/* It took some of what waited, lately: what waits behind that has not waited for nothing. */
static inline bool conn_moving(const struct conn *c)
{
    return c->moved_us && clock_us() - c->moved_us < c->context->settings.reply_ms * 1000;
}
/* Sends a command; false: not taken, call->end() will not run. Only when it is up. */
bool conn_send(struct conn *c, struct call *call, int argc, const char **argv, const size_t *len);
/* Sends a (p)subscribe; its answers come by pushed(). */
bool conn_subscribe(struct conn *c, const char *verb, const char *channel);
/* Writes what was sent this turn to the socket, now rather than on the next one. */
void conn_flush(struct conn *c);
/* Closes for good; calls end with why. Not to be called from events or calls. */
void conn_close(struct conn *c, int why);

#endif
