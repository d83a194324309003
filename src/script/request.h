/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_SCRIPT_REQUEST_H
#define LAPSE_SCRIPT_REQUEST_H
#include "base/list.h"
#include "redis/reply.h"
#include "script/order.h"
#include "script_facts.h"

/* A call takes about a millisecond of Redis: it carries at most so many requests, and none after
 * the one that passes so many bytes. */
enum { SCRIPT_BATCH = 100, SCRIPT_BATCH_BYTES = 256 * 1024 };

/* A request to run a script; embedded in what waits for the answer. The texts to which it points
 * live until it has ended. */
struct script_request {
    struct list node;
    struct place place; /* among the requests of the same id */
    enum script_id script;
    struct span key; /* KEYS[1] */
    unsigned slot;   /* in a cluster: its hash slot */
    uint64_t number; /* in the order in which they were submitted */

    /* For a script that takes batches the arguments of one job, the id first; else all of them. */
    const struct span *args;
    unsigned n_args;
    struct span order_by; /* in whose order it takes effect; NULL: in that of its id */

    /* Monotonic. If it is unsent then, it ends with EDOWN; if it repeats, it is the last moment at
     * which it does. */
    int64_t until_us;
    int64_t sent_us; /* 0: Redis cannot have seen it */

    bool withheld;     /* it keeps its place, and is not sent before script_let_go() */
    bool any_holder;   /* of a settle: the token decides, and not who holds the job */
    bool repeats;      /* when it is refused, or its answer is lost: a token makes that safe */
    bool yields;       /* of one that repeats: not when it is refused, or others would wait */
    bool pending;      /* it was submitted, and has not ended */
    bool may_have_run; /* it was sent, and its answer was lost, or cannot be read */
    bool backs_off;    /* it was refused, and is repeated later */

    /* Runs exactly once. err 0: answer is the element of the reply for this request, or the whole
     * reply of a script that takes no batches. Else it is NULL. */
    void (*end)(struct script_request *r, int err, const struct redisReply *answer);
};

/* It waits for no other request: a lease of ours is to be renewed. A renewal that a user asked for
 * has its turn. */
static inline bool script_request_is_urgent(const struct script_request *r)
{
    return script_facts[r->script].urgent && !r->any_holder;
}

/* Requests of one id, or of one order_by, take effect in the order in which they were submitted. */
static inline bool script_request_is_ordered(const struct script_request *r)
{
    return script_facts[r->script].batch && !script_request_is_urgent(r);
}

static inline struct script_request *script_request_of(struct list *node)
{
    return CONTAINER(node, struct script_request, node);
}

#endif
