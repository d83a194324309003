/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_SCRIPT_H
#define LAPSE_SCRIPT_H
#include "redis/masters.h"
#include "script/batch.h"

/* The arguments of a call, as hiredis takes them. */
struct script_argv {
    const char **texts;
    size_t *lens;
    size_t n;
    size_t cap;
};

/* Runs scripts, each where its key is: the requests of one turn of the loop for one queue travel
 * together. */
struct script {
    struct context *context;
    struct topo *topo;
    struct order order; /* requests of one id go one after the other */

    struct list unsent;   /* the requests to be sent, in order */
    struct list aside;    /* those that cannot be sent now */
    struct list withheld; /* those that are not to be sent yet */
    struct list blocked;  /* those behind another one of their id */
    struct list refused;  /* those that repeat after the back-off */
    unsigned n_unsent;    /* in these five lists */
    unsigned n_gathered;  /* submitted since the last script_flush() */
    uint64_t n_submitted; /* so far */
    int64_t oldest_us;    /* monotonic: when the first of them came; 0: send at once */

    uint64_t aside_state;   /* of the Redis servers, when some were set aside */
    int64_t aside_until_us; /* by clock_us(): the first end of a pause of their slots */

    struct list sent; /* batches */
    struct batch_pool pool;

    struct timer check; /* of requests that were not sent in time */
    struct timer backoff;
    int64_t backoff_ms;       /* the last one */
    int64_t backoff_ended_us; /* monotonic */

    struct script_argv argv; /* of the call that is put together */
    char database[48];       /* ARGV[1]: its number, and arm_ahead_ms if there is a limit */
    char in_cluster[56];     /* the same for a node of a cluster */
    struct span holder;      /* ARGV[2] of settles: who must hold the jobs */
};

/* ENOMEM */
int script_init(struct script *s, struct topo *topo);

/* The Redis on which a queue lives, by its key. */
static inline struct node *node_of(const struct script *s, struct span key)
{
    return topo_node(s->topo, key);
}

/* The connection is closed: requests that were not sent end with ECLOSED. */
void script_close(struct script *s);

/* Takes a request on: its end() runs later, and once. */
void script_submit(struct script *s, struct script_request *r);

/* Withholds a request that was not sent. false: it was. */
bool script_withhold(struct script *s, struct script_request *r);
/* Lets a request go that was withheld. */
void script_let_go(struct script *s, struct script_request *r);

/* Takes back a request that was not sent, so that its end() does not run. false: it was sent, or
 * was not pending. */
bool script_withdraw(struct script *s, struct script_request *r);

/* Sends the script fence over the connection for it, at once, and by its text, which no Redis can
 * have forgotten. false: it was not taken. */
bool script_send_fence(struct script *s, struct node *to, struct call *call, struct span key);

/* Sends all that may go now. */
void script_flush(struct script *s);

/* It is pending, and Redis cannot have seen it: its arguments may still change. */
static inline bool script_is_unsent(const struct script_request *r)
{
    return r->pending && r->sent_us == 0;
}

/* Those that could not be sent and may now are to be sent. */
void script_fetch(struct script *s);

/* Some requests are to be sent: script_flush() must run before the loop sleeps. */
static inline bool script_has_unsent(const struct script *s)
{
    return !list_empty(&s->unsent);
}

static inline bool script_is_idle(const struct script *s)
{
    return s->n_unsent == 0 && list_empty(&s->sent);
}

#endif
