/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_PUBSUB_H
#define LAPSE_PUBSUB_H
#include "base/table.h"
#include "redis/conn.h"

enum { PUBSUB_NAME_MAX = 192 }; /* bytes of a channel's name, and a NUL */

/* A channel that is subscribed to; embedded in what wants to hear it. */
struct channel {
    struct list node;
    struct table_node named;
    const char *name;    /* its owner's */
    const char *pattern; /* its owner's: is subscribed to along with the channel; NULL: none */

    /* on the connection of now */
    bool asked;     /* the subscription is sent */
    bool confirmed; /* and Redis has confirmed it */
    bool leaving;   /* the end of it is sent, and not confirmed; the channel must live until then */
    bool is_left;   /* its owner uses it no more: it is ours to free */
};

struct pubsub_events {
    /* Redis has confirmed the channel and its pattern: once on each connection. */
    void (*confirmed)(void *arg, struct channel *ch);
    /* A message on the channel; from anyone, so not trusted. */
    void (*message)(void *arg, struct channel *ch, struct span text);
    /* A message that a pattern matched; likewise. */
    void (*matched)(void *arg, struct span channel, struct span text);
    /* Redis refuses to subscribe us; down() follows. */
    void (*refused)(void *arg, struct span error);
    /* The connection could not be made, or was given up because it was silent. */
    void (*failed)(void *arg);
    /* A channel that was leaving has left, or the connection is gone: it need not live any more. */
    void (*left)(void *arg, struct channel *ch);
    /* The connection is gone; no channel is confirmed. */
    void (*down)(void *arg);
};

/* The subscription to one Redis: a connection for all channels. */
struct pubsub {
    struct conn conn;
    const char *pattern; /* what is subscribed to beside the channels; NULL: nothing */
    const struct pubsub_events *events;
    void *arg;
    struct list channels;
    struct table names;  /* of the channels */
    struct list leaving; /* channels whose end is not confirmed */
    struct table leaving_names;
    unsigned n_asked; /* channels whose subscription is sent */
    /* A channel that has left, and whose subscription stays: see pubsub.c. "": none. */
    char kept[PUBSUB_NAME_MAX];
    bool started;
    bool may_not_leave; /* the user has no right to UNSUBSCRIBE */
    bool ending;        /* the connection is about to be closed: no need to unsubscribe */
};

void pubsub_init(struct pubsub *p, struct endpoint *endpoint, enum conn_role role,
                 const char *pattern, const struct pubsub_events *events, void *arg);

/* Subscribes to a channel. The first one starts the connection: who schedules only needs none. */
void pubsub_add(struct pubsub *p, struct channel *ch, const char *name, const char *pattern);
/* Ends that. While it is leaving, ch must live on. */
void pubsub_remove(struct pubsub *p, struct channel *ch);
/* Ends that, and ch may be used again at once. */
void pubsub_leave(struct pubsub *p, struct channel *ch);

/* The connection for commands is up, so this one may be made. */
void pubsub_start(struct pubsub *p);
/* From now on channels are removed because all of it ends. */
static inline void pubsub_ending(struct pubsub *p)
{
    p->ending = true;
}
void pubsub_close(struct pubsub *p);

#endif
