/* SPDX-License-Identifier: MIT */
/* A listener in a process of its own. What it measures it writes to shared memory, so a job costs
 * no system call besides those of the library. */
#include "bench/listener.h"
#include "bench/producer.h"
#include "client/client.h"
#include "client/redis_sync.h"
#include <stdlib.h>

enum { GRACE_MS = 2000, BITS = 64 };

struct listener {
    struct client client; /* first: the callbacks get it */
    struct listener_task task;
    ev_io leash;
    ev_prepare publish;
    struct lapse_job *held; /* until it is asked to stop */
};

static uint64_t *n_allocs; /* an allocator has no argument */

static void *count_allocs(void *old, size_t size)
{
    if (size == 0) {
        free(old);
        return NULL;
    }

    ++*n_allocs;
    return realloc(old, size);
}

/* Whether this job ran before, in any listener. */
static bool mark_as_run(const struct listener_task *task, uint64_t job)
{
    uint64_t bit = UINT64_C(1) << job % BITS;
    return __atomic_fetch_or(&task->ran[job / BITS], bit, __ATOMIC_RELAXED) & bit;
}

static void count_job(const struct listener_task *task, const char *id)
{
    uint64_t number;
    bool is_ours = producer_number_of(id, &number) && number >= task->first_job &&
                   number - task->first_job < task->n_jobs;

    if (!is_ours) {
        task->figures->foreign++;
    } else if (mark_as_run(task, number - task->first_job)) {
        task->figures->twice++;
    }
}

static void on_bench_job(struct lapse *l, struct lapse_job *job, void *arg)
{
    const struct listener_task *task = &((struct listener *)arg)->task;
    struct listener_figures *figures = task->figures;
    int64_t started_us = monotonic_us() - task->clock_offset_us;
    int64_t claimed_us = lapse_job_claimed_us(job);
    int64_t due_us = lapse_job_due_ms(job) * 1000;

    (void)l;
    histogram_add(&figures->claimed, claimed_us - due_us);
    histogram_add(&figures->started, started_us - due_us);
    if (claimed_us < due_us) {
        figures->early++;
    }

    count_job(task, lapse_job_id(job));
    if (task->asked_us) {
        ((struct listener *)arg)->held = job;
    } else {
        lapse_done(job, NULL, NULL);
    }
}

static void on_bench_event(struct lapse *l, enum lapse_event what, const struct lapse_job *job,
                           void *arg)
{
    struct listener *listener = arg;
    const struct listener_task *task = &listener->task;
    int64_t asked_us = __atomic_load_n(task->asked_us, __ATOMIC_ACQUIRE);

    (void)l;
    if (what == LAPSE_EVENT_CANCEL && job == listener->held) {
        histogram_add(&task->figures->heard, monotonic_us() - asked_us);
        lapse_done(listener->held, NULL, NULL);
    }
}

static void on_prepare(struct ev_loop *loop, ev_prepare *w, int events)
{
    struct listener *listener = w->data;
    struct listener_figures *figures = listener->task.figures;
    struct lapse_stats now;

    (void)loop;
    (void)events;
    if (!listener->client.l) {
        return;
    }

    lapse_stats(listener->client.l, &now, sizeof now);
    if (now.done > figures->stats.done) {
        figures->last_settled_us = monotonic_us();
    }

    __atomic_thread_fence(__ATOMIC_RELEASE);
    figures->stats = now;
}

static void on_leash(struct ev_loop *loop, ev_io *w, int events)
{
    struct listener *listener = w->data;

    (void)events;
    ev_io_stop(loop, w);
    client_close(&listener->client, GRACE_MS);
}

static void on_listener_refused(struct client *c)
{
    if (client_is_denied(c)) {
        client_close(c, 0);
    }
}

static void listener_fail(struct listener *listener, int err)
{
    struct client *c = &listener->client;
    client_set_exit_code(c, client_report(c, err, listener->task.queue));
    client_close(c, 0);
}

static void on_listener_ready(struct lapse *l, int err, const struct lapse_depth *depth, void *arg)
{
    struct listener *listener = arg;

    (void)l;
    (void)depth;
    if (err) {
        listener_fail(listener, err);
    } else {
        __atomic_store_n(&listener->task.figures->ready, 1, __ATOMIC_RELEASE);
    }
}

int listener_run(const struct listener_task *task)
{
    struct listener listener = {.task = *task};
    struct client *c = &listener.client;

    n_allocs = &task->figures->allocs;
    lapse_set_allocator(count_allocs);
    task->g->url = task->url;
    int code = client_open(c, task->g, on_listener_refused);
    if (code) {
        return code;
    }

    ev_io_init(&listener.leash, on_leash, task->leash, EV_READ);
    ev_prepare_init(&listener.publish, on_prepare);
    listener.leash.data = &listener;
    listener.publish.data = &listener;
    ev_io_start(c->loop, &listener.leash);
    ev_prepare_start(c->loop, &listener.publish);

    /* it is ready when Redis has answered a request that was sent after the listener's own */
    if (task->asked_us) {
        lapse_on_event(c->l, on_bench_event, &listener);
    }
    int err = lapse_listen(c->l, task->queue, NULL, on_bench_job, &listener);
    if (!err) {
        err = lapse_depth(c->l, task->queue, on_listener_ready, &listener);
    }
    if (err) {
        listener_fail(&listener, err);
    }

    return client_run(c);
}
