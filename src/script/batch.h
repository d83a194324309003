/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_BATCH_H
#define LAPSE_BATCH_H
#include "redis/node.h"
#include "script/request.h"

struct script;

/* The requests that travel in one call: of one script, and of one queue. */
struct batch {
    struct call call;
    struct list node; /* among those that were sent */
    struct script *owner;
    struct node *to; /* it was sent there */
    enum script_id script;
    bool any_holder; /* as in its requests */
    struct list requests;
    unsigned n_requests;
    size_t n_args;  /* of all requests */
    size_t n_bytes; /* of these arguments */
    bool by_text;   /* sent as a text, because Redis may not know the hash */
};

/* Batches that are kept to be used again. */
struct batch_pool {
    struct list kept;
    unsigned n_kept;
};

void batch_pool_init(struct batch_pool *pool);
void batch_pool_free(struct batch_pool *pool);

/* An empty batch; NULL: there is no memory. */
struct batch *batch_new(struct batch_pool *pool);
void batch_free(struct batch_pool *pool, struct batch *b);

/* Moves a request of a list into an empty batch, and with it those behind it that may go along. */
void batch_fill(struct batch *b, struct list *unsent, struct script_request *first);

#endif
