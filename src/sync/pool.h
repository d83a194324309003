/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_SYNC_POOL_H
#define LAPSE_SYNC_POOL_H
#include "sync/call.h"

/* The threads that run the handler of one queue, and the line of jobs that wait for one of them. */
struct pool {
    struct list node; /* of the pools, from when the queue is listened to */
    struct lapse_sync *sync;
    lapse_sync_handler *handler;
    void *handler_arg;

    /* under the mutex */
    struct list line; /* calls with a job that no thread has begun */
    pthread_cond_t more;
    bool stopping;
    unsigned n_alive; /* threads that have not ended */

    unsigned n_threads;
    const char *queue; /* behind the threads */
    pthread_t threads[];
};

/* Starts the threads. ENOMEM. */
int pool_start(struct pool **out, struct lapse_sync *s, const char *queue, unsigned n_threads);
/* Of one that has no jobs: stops the threads, and frees it. */
void pool_discard(struct pool *p);
/* Frees the pools that were stopped and whose threads have all ended. */
void pools_reap(struct lapse_sync *s);
/* Is this thread one of them? */
bool pools_have_this_thread(const struct lapse_sync *s);

/* ---- in the thread of the loop ---- */
/* A handler of lapse.h: the job joins the line of the pool, which is arg. */
void pool_take(struct lapse *l, struct lapse_job *job, void *arg);
/* The pool of a queue that is listened to; of any queue, if that is NULL. NULL: there is none. */
struct pool *pool_find(struct lapse_sync *s, const char *queue);
/* The threads end as soon as they have no handler to run; the line goes back. */
void pool_stop(struct pool *p);

/* Under the mutex: have all threads of all pools ended? */
bool pools_ended(const struct lapse_sync *s);

#endif
