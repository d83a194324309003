/* SPDX-License-Identifier: MIT */
/* Worker threads.
 *
 * A job comes from the loop, joins the line, and is begun by the next thread that is free. With its
 * call it moves: from the line to the spares, and from there to the loop when it is settled; the
 * call of a surrounded job is found by the job, and is no spare. What
 * is claimed at a time is bounded by max_running of the queue, which is the number of threads if
 * the user does not set it higher. So by default nobody waits in the line for longer than a thread
 * needs to wake up.
 *
 * A thread cannot join itself, and a handler may stop its own queue. So a pool that was stopped
 * stays among the pools until all its threads have ended, and the next call that has to do with
 * pools frees it. */
#include "sync/pool.h"
#include "sync/around.h"
#include "sync/settle.h"
#include <string.h>

static _Thread_local const struct lapse_sync *pool_of_this_thread;

bool pools_have_this_thread(const struct lapse_sync *s)
{
    return pool_of_this_thread == s;
}

/* ---- a worker ---- */
/* With the mutex held: waits for the next job. NULL: the pool is stopping. */
static struct call *pool_wait(struct pool *p)
{
    while (list_empty(&p->line) && !p->stopping) {
        pthread_cond_wait(&p->more, &p->sync->mutex);
    }

    struct list *first = list_pop(&p->line);
    return first ? CONTAINER(first, struct call, node) : NULL;
}

/* The job may have waited in the line for long. */
static void pool_run(struct pool *p, struct call *c)
{
    struct lapse_sync *s = p->sync;
    struct lapse_job *job = c->job;

    if (!around_may_begin(job)) {
        settle_post_release(c);
        return;
    }

    enum around_entered entered = AROUND_HANDLER;
    if (around_is(c)) {
        entered = around_enter(c);
    } else {
        pthread_mutex_lock(&s->mutex);
        list_insert(&s->spares, &c->node);
        pthread_mutex_unlock(&s->mutex);
    }

    switch (entered) {
    case AROUND_HANDLER: p->handler(s, job, p->handler_arg); break;
    case AROUND_TAKEN: break;
    case AROUND_BACK: settle_post_release(c); break;
    }
}

static void *pool_work(void *arg)
{
    struct pool *p = arg;
    struct lapse_sync *s = p->sync;

    pool_of_this_thread = s;
    pthread_mutex_lock(&s->mutex);
    for (struct call *c; (c = pool_wait(p));) {
        pthread_mutex_unlock(&s->mutex);
        pool_run(p, c);
        pthread_mutex_lock(&s->mutex);
    }

    p->n_alive--;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->mutex);

    return NULL;
}

/* ---- life ---- */
static void pool_free(struct pool *p)
{
    for (unsigned i = 0; i < p->n_threads; i++) {
        pthread_join(p->threads[i], NULL);
    }

    pthread_cond_destroy(&p->more);
    lapse_allocate(p, 0);
}

static void pool_halt(struct pool *p)
{
    p->stopping = true;
    pthread_cond_broadcast(&p->more);
}

void pool_discard(struct pool *p)
{
    pthread_mutex_lock(&p->sync->mutex);
    pool_halt(p);
    pthread_mutex_unlock(&p->sync->mutex);
    pool_free(p);
}

static bool pool_start_thread(struct pool *p)
{
    if (pthread_create(&p->threads[p->n_threads], NULL, pool_work, p) != 0) {
        return false;
    }

    p->n_threads++;
    return true;
}

int pool_start(struct pool **out, struct lapse_sync *s, const char *queue, unsigned n_threads)
{
    size_t queue_size = strlen(queue) + 1;
    size_t threads_size = n_threads * sizeof(pthread_t);
    struct pool *p = lapse_allocate(NULL, sizeof *p + threads_size + queue_size);

    if (!p) {
        return LAPSE_ENOMEM;
    }

    memset(p, 0, sizeof *p);
    p->sync = s;
    p->queue = memcpy((char *)p->threads + threads_size, queue, queue_size);
    p->n_alive = n_threads;
    list_init(&p->node);
    list_init(&p->line);
    call_condition(&p->more);

    while (p->n_threads < n_threads) {
        if (!pool_start_thread(p)) {
            pool_discard(p);
            return LAPSE_ENOMEM;
        }
    }

    *out = p;
    return 0;
}

void pools_reap(struct lapse_sync *s)
{
    struct list ended;

    list_init(&ended);
    pthread_mutex_lock(&s->mutex);
    LIST_EACH (i, &s->pools) {
        struct pool *p = CONTAINER(i, struct pool, node);
        if (p->stopping && p->n_alive == 0) {
            list_remove(i);
            list_insert(&ended, i);
        }
    }
    pthread_mutex_unlock(&s->mutex);

    for (struct list *i; (i = list_pop(&ended));) {
        pool_free(CONTAINER(i, struct pool, node));
    }
}

bool pools_ended(const struct lapse_sync *s)
{
    LIST_EACH (i, &s->pools) {
        if (CONTAINER(i, struct pool, node)->n_alive > 0) {
            return false;
        }
    }

    return true;
}

/* ---- the loop ---- */
void pool_take(struct lapse *l, struct lapse_job *job, void *arg)
{
    struct pool *p = arg;
    struct call *c = call_new(p->sync);
    (void)l;

    if (!c) {
        lapse_release(job, NULL, NULL);
        return;
    }

    c->job = job;
    around_begin(c);
    pthread_mutex_lock(&p->sync->mutex);
    list_insert(&p->line, &c->node);
    pthread_cond_signal(&p->more);
    pthread_mutex_unlock(&p->sync->mutex);
}

struct pool *pool_find(struct lapse_sync *s, const char *queue)
{
    struct pool *found = NULL;

    pthread_mutex_lock(&s->mutex);
    LIST_EACH (i, &s->pools) {
        struct pool *p = CONTAINER(i, struct pool, node);
        if (!p->stopping && (!queue || strcmp(p->queue, queue) == 0)) {
            found = p;
        }
    }
    pthread_mutex_unlock(&s->mutex);

    return found;
}

void pool_stop(struct pool *p)
{
    struct list line;

    list_init(&line);
    pthread_mutex_lock(&p->sync->mutex);
    pool_halt(p);
    list_move(&line, &p->line);
    pthread_mutex_unlock(&p->sync->mutex);

    for (struct list *i; (i = list_pop(&line));) {
        settle_release(CONTAINER(i, struct call, node));
    }
}
