/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_WATCH_H
#define LAPSE_WATCH_H
#include "base/table.h"
#include "job/keys.h"
#include "listen/alarm.h"
#include "listen/canary.h"
#include "listen/membership.h"
#include "redis/pubsub.h"

/* What is known of expiry events of one Redis: of all queues alike, since they have one
 * subscription. */
enum events_state {
    EVENTS_ARRIVE,  /* that is assumed at first */
    EVENTS_SILENT,  /* we are subscribed, and hear none */
    EVENTS_REFUSED, /* Redis refused to subscribe us, and none was heard since */
    EVENTS_CUT      /* the connection for them failed, and that for commands did not */
};

/* What is heard of the registry of queues. */
struct names_events {
    /* A name is new in it. Nothing is sure of that. */
    void (*added)(void *arg, struct span queue);
    /* What was published before was not heard. */
    void (*subscribed)(void *arg);
    /* What is published now is not heard. */
    void (*unsubscribed)(void *arg);
};

/* What the watches of all queues share. */
struct watches {
    struct context *context;
    struct script *script;
    const char *member_name; /* ours, in all queues */
    struct memberships memberships;
    struct table names; /* of the queues that are subscribed to */

    const struct names_events *names_events; /* NULL: nobody wants to hear of the registry */
    void *names_arg;

    /* the channel of no queue: of the registry, and of what listeners are told */
    struct channel wake;
    char wake_name[KEYS_MAX];
    struct ear *wake_at;   /* where it is subscribed to; NULL: nowhere */
    struct ear *first_ear; /* if no queue brings another */
};

/* What the watches of all queues of one Redis share: the subscription to it. */
struct ear {
    struct watches *watches;
    struct node *node;
    struct pubsub pubsub;
    enum events_state events;
    struct canary canary;
    struct watch *canary_of; /* among the triggers of this queue it is set; NULL: of none */
    struct list all;         /* watches */
};

/* member_name is not copied. */
void watches_init(struct watches *ws, struct script *script, const char *member_name);
/* told(arg, ...) is called when we were told something else than before. */
void watches_on_told(struct watches *ws, void (*told)(void *arg, enum lapse_told what), void *arg);
/* From now on tells what is heard of the registry; nothing if an option switches that off. */
void watches_hear_names(struct watches *ws, const struct names_events *events, void *arg);
/* The channel of no queue is heard where no queue is any more: from now on, here. */
void watches_move_wake(struct watches *ws, struct ear *to);
/* All ears are closed. */
void watches_close(struct watches *ws);
/* No watch is left. */
void watches_free(struct watches *ws);

/* The first one of all is kept for as long as ws. */
void ear_init(struct ear *e, struct watches *ws, struct node *node);
/* The connection for commands is there again. */
void ear_up(struct ear *e);
/* The handle closes: channels need not be unsubscribed one by one. */
void ear_drain(struct ear *e);
/* It has no watches any more, or nothing is sent any more. */
void ear_close(struct ear *e);

/* Does nobody hear anything by it? */
static inline bool ear_is_unused(const struct ear *e)
{
    return list_empty(&e->all) && e->watches->wake_at != e;
}

struct watch_events {
    /* The queue may have a job, whosever it is and whenever it is due. */
    void (*heard)(void *arg);
    /* A job may be due that is ours to claim. The id is well-formed, and nothing else is sure. */
    void (*named)(void *arg, struct span id, enum lapse_via via);
    /* The settings of the queue have changed. */
    void (*configured)(void *arg);
    /* A running job may be asked to stop. The id is well-formed, and nothing else is sure. */
    void (*stop)(void *arg, struct span id, uint64_t token);
    /* The queue is subscribed to: what was published before was not heard. */
    void (*subscribed)(void *arg);
    /* The subscription is gone: what is published now is not heard. */
    void (*unsubscribed)(void *arg);
    /* After watch_stop(): something of the watch that was pending is not any more. */
    void (*ended)(void *arg);
};

/* What we hear of one queue, and which of it is for us. */
struct watch {
    struct list node;
    struct watches *watches;
    struct ear *ear;
    const char *queue; /* its owner's */
    const struct watch_events *events;
    void *arg;

    bool subscribes; /* not switched off by an option */
    struct channel channel;
    struct table_node named;
    char notices[KEYS_MAX];  /* the channel of the queue's notices */
    char triggers[KEYS_MAX]; /* the pattern of its events, where that of all queues is not used */

    struct membership membership;
    struct alarm *alarm; /* of the queue: it gets to know what is heard */
    bool free_slots;
};

struct watch_spec {
    struct ear *ear;
    const char *queue; /* not copied */
    struct span key;
    struct alarm *alarm;
    const struct watch_events *events;
    void *arg;
};

void watch_start(struct watch *w, const struct watch_spec *spec);
/* Another Redis has the queue now. */
void watch_move(struct watch *w, struct ear *to);

/* Reads who listens to the queue, if that was long ago. */
void watch_verify(struct watch *w);
/* Whether we can take jobs of the queue. */
void watch_set_free_slots(struct watch *w, bool any);

/* Do we hear its events and notices? */
bool watch_is_subscribed(const struct watch *w);
/* Is it for us to run this job? */
bool watch_owns(const struct watch *w, struct span id);
/* No other listener of the queue is before us. */
bool watch_is_first(const struct watch *w);

/* The queue has no handler any more: leaves the other listeners, and unsubscribes. */
void watch_stop(struct watch *w);
/* The handle ends: nothing is sent any more. */
void watch_end(struct watch *w);
void watch_free(struct watch *w);

/* Is there anything that was sent and has not ended? */
bool watch_pending(const struct watch *w);

#endif
