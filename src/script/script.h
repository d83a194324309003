/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_SCRIPT_H
#define LAPSE_SCRIPT_H
#include "redis/node.h"
#include "script/order.h"
#include "script_ids.h"

/* of one call: about a millisecond of Redis */
enum { SCRIPT_BATCH = 100, SCRIPT_BATCH_BYTES = 256 * 1024 };

/* One thing asked of a script; embedded in what waits for the answer. Its texts live as long as it
 * is asked. */
struct ask {
    struct list node;
    struct place place; /* among the requests of the same id */
    enum script_id script;
    struct span key; /* KEYS[1] */
    /* of one job, the id first; or all of the script's when it takes no batches */
    const struct span *args;
    unsigned n_args;
    /* monotonic. Still unsent then: EDOWN. One that repeats is repeated until then */
    int64_t until_us;
    int64_t sent_us; /* 0: Redis cannot have seen it */
    /* when its answer is lost or refused: safe for a settle, because of its token */
    bool repeats;
    bool maybe; /* it was sent, and its answer was lost: Redis may have done it */
    bool asked;
    bool rests; /* it was refused, and is repeated later */
    /* Exactly once. err 0: the answer to it (of a script that takes no batches: the whole reply,
     * now first). Else NULL. */
    void (*end)(struct ask *a, int err, const struct redisReply *answer);
};

/* The scripts on one connection: what is asked in one turn of the loop travels together. */
struct script {
    struct context *context;
    struct node *node;
    struct order order;  /* requests of one id go one after the other */
    struct list asks;    /* to be sent, in order */
    struct list waiting; /* behind another request of their id */
    /* Redis refused them, or broke off: they repeat when the rest is over */
    struct list resting;
    unsigned n_asks;     /* in these three lists */
    int64_t oldest_us;   /* monotonic: when the first of them came; 0: send at once */
    struct list batches; /* sent */
    struct list spare;   /* batches to use again */
    unsigned n_spare;
    struct timer retry;
    struct timer rest;
    int64_t rest_ms, rested_us; /* how long the last rest was, and when it was over */
    struct span *args;          /* of the call being put together */
    const char **argv;
    size_t *lens;
    size_t room;
    struct span holder; /* ARGV[2] of settles: whose the jobs must be */
    char fixed[48];     /* ARGV[1]: the database, and arm_ahead_ms if there is one */
};
int script_init(struct script *s, struct node *node);
void script_ask(struct script *s, struct ask *a);
/* Takes back what was not sent yet; false: it was. end() does not run. */
bool script_unask(struct script *s, struct ask *a);
/* It is asked and not sent: Redis cannot have seen it, and its arguments may still change. */
static inline bool script_unsent(const struct ask *a)
{
    return a->asked && a->sent_us == 0;
}
static inline bool script_idle(const struct script *s)
{
    return s->n_asks == 0 && list_empty(&s->batches);
}
/* Some requests wait to be sent: script_flush() must run before the loop sleeps. */
static inline bool script_waits(const struct script *s)
{
    return !list_empty(&s->asks);
}
/* Sends all that may go now. */
void script_flush(struct script *s);
/* the connection is closed: what was not sent ends with ECLOSED */
void script_close(struct script *s);

#endif
