/* SPDX-License-Identifier: MIT */
/* The way of a question from a thread to the loop, and of the answer back.
 *
 *   LISTED ---the loop takes it---> ASKING ---ask() returns---> ASKED ---answer---> ENDED
 *      |                                                          |
 *      '-- given up: taken off the list                           '-- given up: left to the loop,
 *                                                                     which frees it at its end
 *
 * The arguments stay where the caller has them: while the loop reads them the caller does not give
 * up. A settle is never taken off the list, as its job must be settled.
 *
 * One mutex is enough: it is held for a few assignments at a time, and never while lapse or the
 * user's code runs. The loop is woken by an eventfd. libev's ev_async_send() would do the same, by
 * means that race detectors do not understand. */
#include "sync/call.h"
#include "base/error.h"
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

/* By how much lapse itself may be late to say that Redis has not answered within reply_ms. */
enum { REPLY_SLACK_MS = 1000 };

static _Thread_local const struct lapse_sync *loop_of_this_thread;

/* ---- life ---- */
void call_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

struct call *call_new(struct lapse_sync *s)
{
    struct call *c = lapse_allocate(NULL, sizeof *c);

    if (!c) {
        return NULL;
    }

    memset(c, 0, sizeof *c);
    c->sync = s;
    list_init(&c->node);
    list_init(&c->settling);
    list_init(&c->passage.node);
    call_condition(&c->progress);

    return c;
}

void call_free(struct call *c)
{
    pthread_cond_destroy(&c->progress);
    lapse_allocate(c, 0);
}

/* ---- the caller ---- */
void calls_wake(const struct lapse_sync *s)
{
    uint64_t one = 1;
    ssize_t written = write(s->wake_fd, &one, sizeof one);

    (void)written; /* it fails only if the loop has been woken 2^64 times and has not looked */
}

int call_check(const struct lapse_sync *s, int64_t timeout_ms)
{
    if (!s || timeout_ms < 0 || timeout_ms > TIMEOUT_MAX_MS || loop_of_this_thread == s) {
        return LAPSE_EINVAL;
    }

    return s->pid == getpid() ? 0 : LAPSE_ECLOSED;
}

int64_t call_patience_ms(const struct lapse_sync *s)
{
    int64_t copies_ms = s->wants_copies ? s->copies_ms : 0;

    return s->reply_ms + copies_ms + REPLY_SLACK_MS;
}

int64_t call_all_ms(int64_t timeout_ms)
{
    return timeout_ms ? timeout_ms : TIMEOUT_MAX_MS;
}

static struct timespec call_deadline(const struct lapse_sync *s, int64_t timeout_ms)
{
    int64_t wait_ms = timeout_ms ? timeout_ms : call_patience_ms(s);
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += wait_ms / 1000;
    t.tv_nsec += wait_ms % 1000 * 1000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }

    return t;
}

/* Returns whether the loop is to be woken. */
static bool call_list(struct call *c)
{
    struct list *listed = &c->sync->listed;
    bool first = list_empty(listed);

    list_insert(listed, &c->node);
    return first;
}

void call_post(struct call *c)
{
    struct lapse_sync *s = c->sync;

    c->left = true;
    pthread_mutex_lock(&s->mutex);
    bool first = call_list(c);
    pthread_mutex_unlock(&s->mutex);

    if (first) {
        calls_wake(s);
    }
}

static void call_give_up(struct call *c)
{
    c->gives_up = true;
    while (c->state == CALL_ASKING) {
        pthread_cond_wait(&c->progress, &c->sync->mutex);
    }

    if (c->state == CALL_LISTED && !c->job) {
        list_remove(&c->node);
        c->state = CALL_ENDED;
        c->err = LAPSE_ETIMEOUT;
    } else if (c->state != CALL_ENDED) {
        c->left = true;
    }
}

int call_wait(struct call *c, int64_t timeout_ms)
{
    struct lapse_sync *s = c->sync;
    struct timespec deadline = call_deadline(s, timeout_ms);
    int waited = 0;

    s->n_callers++;
    if (call_list(c)) {
        pthread_mutex_unlock(&s->mutex);
        calls_wake(s);
        pthread_mutex_lock(&s->mutex);
    }

    while (c->state != CALL_ENDED && waited == 0) {
        waited = pthread_cond_timedwait(&c->progress, &s->mutex, &deadline);
    }
    if (c->state != CALL_ENDED) {
        call_give_up(c);
    }

    bool left = c->left;
    int err = left ? LAPSE_ETIMEOUT : c->err;

    s->n_callers--;
    if (s->closing) {
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->mutex);
    if (!left) {
        call_free(c);
    }

    return err;
}

/* of_job: by who holds one. */
static int call_run_as(struct lapse_sync *s, const struct call *what, bool of_job,
                       int64_t timeout_ms)
{
    int err = call_check(s, timeout_ms);

    if (err) {
        return err;
    }
    struct call *c = call_new(s);
    if (!c) {
        return LAPSE_ENOMEM;
    }

    c->ask = what->ask;
    c->args = what->args;
    c->out = what->out;

    pthread_mutex_lock(&s->mutex);
    if (s->closing && !of_job) {
        pthread_mutex_unlock(&s->mutex);
        call_free(c);
        return LAPSE_ECLOSED;
    }

    return call_wait(c, timeout_ms);
}

int call_run(struct lapse_sync *s, int (*ask)(struct call *c), const void *args, int64_t timeout_ms,
             void *out)
{
    return call_run_as(s, &(struct call){.ask = ask, .args = args, .out = out}, false, timeout_ms);
}

int call_run_held(struct lapse_sync *s, int (*ask)(struct call *c), const void *args,
                  int64_t timeout_ms)
{
    return call_run_as(s, &(struct call){.ask = ask, .args = args}, true, timeout_ms);
}

/* ---- the loop ---- */
void calls_begin(struct lapse_sync *s)
{
    loop_of_this_thread = s;
}

void *call_out(struct call *c)
{
    pthread_mutex_lock(&c->sync->mutex);
    return c->left ? NULL : c->out;
}

void call_ended(struct call *c, int err)
{
    struct lapse_sync *s = c->sync;
    bool left = c->left;

    ASSERT(c->state == CALL_ASKING || c->state == CALL_ASKED);
    c->state = CALL_ENDED;
    c->err = err;
    pthread_cond_signal(&c->progress);
    pthread_mutex_unlock(&s->mutex);

    if (left) {
        call_free(c);
    }
}

void call_end(struct call *c, int err)
{
    call_out(c);
    call_ended(c, err);
}

static int call_ask(struct call *c)
{
    if (!c->sync->handle && !c->job) {
        return LAPSE_ECLOSED;
    }

    return c->ask(c);
}

static void call_asked(struct call *c)
{
    pthread_mutex_lock(&c->sync->mutex);
    c->state = CALL_ASKED;
    if (c->gives_up) {
        pthread_cond_signal(&c->progress);
    }
    pthread_mutex_unlock(&c->sync->mutex);
}

void calls_ask(struct lapse_sync *s)
{
    struct list calls;

    list_init(&calls);
    pthread_mutex_lock(&s->mutex);
    list_move(&calls, &s->listed);
    LIST_EACH (i, &calls) {
        CONTAINER(i, struct call, node)->state = CALL_ASKING;
    }
    pthread_mutex_unlock(&s->mutex);

    for (struct list *i; (i = list_pop(&calls));) {
        struct call *c = CONTAINER(i, struct call, node);
        int err = call_ask(c);

        if (err) {
            call_end(c, err == CALL_OVER ? 0 : err);
        } else {
            call_asked(c);
        }
    }
}
