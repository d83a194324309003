/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_PEERS_H
#define LAPSE_PEERS_H
#include "base/table.h"
#include "job/keys.h"
#include "script/queue_verbs.h"

enum { PEER_NAME_MAX = KEYS_NAME_MAX + 32 };

/* A listener, maybe ours: it lives while it is alive, or a queue names it. */
struct peer {
    struct list node;
    struct table_node named;
    bool quiet;       /* it takes no jobs, as it was told */
    bool alive;       /* as far as we know. One that we have not asked Redis about is */
    bool ever_listed; /* Redis has named it among the live ones */
    bool listed;      /* it did so when it last named them */
    int64_t since_us; /* by clock_us(): when we heard of it, or it died */
    unsigned n_queues;
    char name[];
};

struct peers_events {
    /* Others are alive now. */
    void (*changed)(void *arg);
    /* Redis had forgotten that we are alive: others may have removed us from our queues. */
    void (*forgotten)(void *arg);
    /* We were told something else than before. */
    void (*told)(void *arg, enum lapse_told what);
};

/* The listeners of all queues on one Redis. It knows which are alive, and ours says so too. */
struct peers {
    struct context *context;
    struct script *script;
    struct span name; /* ours, as Redis knows it */
    const struct peers_events *events;
    void *arg;

    char key[KEYS_MAX];
    struct list all;
    struct table names;
    unsigned n_entered; /* queues in which we are a member, or want to be */
    enum lapse_told told;
    int64_t version; /* of the names that Redis has listed last; 0: they are to be listed again */

    struct heartbeat_request heartbeat;
    bool lives;    /* the last heartbeat said so, and not that we end */
    bool was_told; /* Redis answered that it knows */
    bool ended;
    struct timer timer;

    /* by clock_us(); 0: never */
    int64_t asked_us; /* the last heartbeat */
    int64_t next_us;
};

void peers_init(struct peers *ps, struct script *script, struct span name,
                const struct peers_events *events, void *arg);
/* No membership uses it any more. */
void peers_close(struct peers *ps);

/* We are about to enter a queue, or do not want to be in it any more. While we want to be in any,
 * be it that we have left it as no slot is free, heartbeats say that we are alive; the first one is
 * asked for at once, so Redis gets it before our name in a queue. */
void peers_enter(struct peers *ps);
void peers_leave(struct peers *ps);
/* It may be that this listener was told something. */
void peers_look(struct peers *ps, struct span name);
/* The connection for commands is there again. */
void peers_up(struct peers *ps);
/* No heartbeat is sent any more: Redis forgets us when the last one ends. */
void peers_stop(struct peers *ps);

/* A queue names this listener. NULL: out of memory. */
struct peer *peers_use(struct peers *ps, struct span name);
void peers_release(struct peers *ps, struct peer *p);

static inline struct span peer_name(const struct peer *p)
{
    return p->named.name;
}

/* Which of two names comes first in a queue: < 0, 0 or > 0. */
int peer_order(struct span a, struct span b);

/* It died so long ago that no queue needs to name it. */
bool peer_is_gone(const struct peer *p);

#endif
