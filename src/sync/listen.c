/* SPDX-License-Identifier: MIT */
/* lapse_sync_listen(), lapse_sync_unlisten(). */
#include "sync/pool.h"
#include <string.h>

enum { THREADS_MAX = 10000, RUNNING_MAX = 100000, QUEUE_MAX = 65 /* with the star of a pattern */ };

/* Of struct lapse_sync_listen_options, as in the first lapse_sync.h. */
enum { SIZE_LEAST = offsetof(struct lapse_sync_listen_options, weight) };

struct listen_args {
    struct pool *pool;
    struct lapse_listen_options options;
};

static bool listen_read(struct lapse_sync_listen_options *out,
                        const struct lapse_sync_listen_options *in)
{
    const char *bytes = (const char *)in;

    *out = (struct lapse_sync_listen_options){.threads = 1};
    if (!in) {
        return true;
    }
    if (in->size < SIZE_LEAST) {
        return false;
    }
    for (size_t i = sizeof *in; i < in->size; i++) {
        if (bytes[i]) {
            return false; /* the caller is newer, and wants what we do not know */
        }
    }

    memcpy(out, in, in->size < sizeof *out ? in->size : sizeof *out);
    out->size = sizeof *out;
    out->threads = in->threads ? in->threads : 1;

    return out->threads <= THREADS_MAX && out->max_running <= RUNNING_MAX &&
           out->weight <= LAPSE_WEIGHT_MAX;
}

/* ---- in the thread of the loop ---- */
static int listen_ask(struct call *c)
{
    const struct listen_args *a = c->args;
    struct lapse_sync *s = c->sync;
    struct pool *p = a->pool;

    int err = lapse_listen(s->handle, p->queue, &a->options, pool_take, p);
    if (err) {
        return err;
    }

    pthread_mutex_lock(&s->mutex);
    list_insert(&s->pools, &p->node);
    pthread_mutex_unlock(&s->mutex);

    return CALL_OVER;
}

static int unlisten_ask(struct call *c)
{
    struct lapse_sync *s = c->sync;
    int err = lapse_unlisten(s->handle, c->args);

    if (err) {
        return err;
    }

    struct pool *p = pool_find(s, c->args);
    if (p) { /* else the queue was forwarded, which needs no thread */
        pool_stop(p);
    }

    return CALL_OVER;
}

/* ---- the calls ---- */
int lapse_sync_listen(struct lapse_sync *s, const char *queue,
                      const struct lapse_sync_listen_options *opts, lapse_sync_handler *fn,
                      void *arg)
{
    struct lapse_sync_listen_options o;
    int err = call_check(s, 0);

    if (err) {
        return err;
    }
    if (!queue || strnlen(queue, QUEUE_MAX + 1) > QUEUE_MAX || !fn || !listen_read(&o, opts)) {
        return LAPSE_EINVAL;
    }

    pools_reap(s);

    struct pool *p;
    err = pool_start(&p, s, queue, o.threads);
    if (err) {
        return err;
    }
    p->handler = fn;
    p->handler_arg = arg;

    struct listen_args args = {.pool = p,
                               .options = {.size = sizeof args.options,
                                           .max_running = o.threads,
                                           .weight = o.weight,
                                           .level = o.level}};
    if (o.max_running > o.threads) {
        args.options.max_running = o.max_running;
    }

    err = call_run(s, listen_ask, &args, 0, NULL);
    if (err) {
        pool_discard(p);
    }
    return err;
}

int lapse_sync_unlisten(struct lapse_sync *s, const char *queue)
{
    int err = call_run(s, unlisten_ask, queue, 0, NULL);

    if (!err) {
        pools_reap(s);
    }
    return err;
}
