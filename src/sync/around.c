/* SPDX-License-Identifier: MIT */
/* lapse_sync_around(): what is called before and after each handler.
 *
 * Jobs that join a line when there are such functions are surrounded. The call that will settle one
 * is no spare: it is found by its job, and knows which functions that has passed. A worker calls
 * those before the handler. Those after it are called by the loop, since the thread that has
 * settled the job may have given up; lapse_around() says when, and lends the job.
 *
 * It says so of each surrounded job, once, and before the handle has closed. If nobody has settled
 * it by then, the handle has given it back by itself. Its holder does not know, and has the job
 * still: so the functions hear of it when that settles it. */
#include "sync/around.h"
#include "base/error.h"
#include <time.h>

static int64_t now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* ---- surrounded jobs ---- */
static size_t around_place(const struct lapse_job *job)
{
    uint64_t spread = (uint64_t)(uintptr_t)job * 0x9e3779b97f4a7c15u;

    return spread >> 32 & (SYNC_SURROUNDED - 1);
}

bool around_is(const struct call *c)
{
    return c->passage.n_ahead > 0;
}

void around_begin(struct call *c)
{
    struct lapse_sync *s = c->sync;

    if (s->arounds.n > 0) {
        c->passage.n_ahead = s->arounds.n;
        pthread_mutex_lock(&s->mutex);
        list_insert(&s->surrounded[around_place(c->job)], &c->passage.node);
        pthread_mutex_unlock(&s->mutex);
    }
}

struct call *around_find(const struct lapse_sync *s, const struct lapse_job *job)
{
    const struct list *place = &s->surrounded[around_place(job)];

    LIST_EACH (i, place) {
        struct call *c = CONTAINER(i, struct call, passage.node);
        if (c->job == job) {
            return c;
        }
    }

    return NULL;
}

void arounds_free(struct lapse_sync *s)
{
    for (size_t at = 0; at < SYNC_SURROUNDED; at++) {
        for (struct list *i; (i = list_pop(&s->surrounded[at]));) {
            call_free(CONTAINER(i, struct call, passage.node));
        }
    }
}

/* ---- there ---- */
void around_turn(struct call *c)
{
    c->passage.ran_us = now_us() - c->passage.began_us;
}

static bool around_is_given_back(const struct call *c)
{
    pthread_mutex_lock(&c->sync->mutex);
    bool given_back = c->passage.given_back;
    pthread_mutex_unlock(&c->sync->mutex);

    return given_back;
}

bool around_may_begin(const struct lapse_job *job)
{
    return lapse_job_until_ms(job) != 0 && !lapse_job_cancelled(job);
}

/* A function before may block, so each is followed by the question whether the job may go on. */
enum around_entered around_enter(struct call *c)
{
    struct lapse_sync *s = c->sync;
    struct passage *p = &c->passage;

    p->began_us = now_us();
    while (around_may_begin(c->job) && !around_is_given_back(c)) {
        if (p->n == p->n_ahead) {
            return AROUND_HANDLER;
        }

        const struct around *a = &s->arounds.of[p->n++];
        if (a->before && a->before(s, c->job, a->arg)) {
            return AROUND_TAKEN;
        }
    }

    around_turn(c);
    return AROUND_BACK;
}

/* ---- and back ---- */
void around_end(struct call *c, int err)
{
    static const enum lapse_how hows[] = {
        [CALL_DONE] = LAPSE_HOW_DONE,       [CALL_RETRY] = LAPSE_HOW_RETRY,
        [CALL_SNOOZE] = LAPSE_HOW_SNOOZE,   [CALL_FAIL] = LAPSE_HOW_FAIL,
        [CALL_RELEASE] = LAPSE_HOW_RELEASE, [CALL_FORGET] = 0};
    struct lapse_sync *s = c->sync;
    struct passage *p = &c->passage;

    while (p->n > 0) {
        const struct around *a = &s->arounds.of[--p->n];
        if (a->after) {
            a->after(s, c->job, hows[c->settle], err, p->ran_us, a->arg);
        }
    }

    pthread_mutex_lock(&s->mutex);
    list_remove(&p->node);
    pthread_mutex_unlock(&s->mutex);
}

/* Of each job that came when there were functions. Where there is no call for it, no thread has
 * begun it, and it has gone back. */
static void on_after(struct lapse *l, const struct lapse_job *job, enum lapse_how how, int err,
                     int64_t ran_us, void *arg)
{
    struct lapse_sync *s = arg;

    (void)l;
    (void)how;
    (void)err;
    (void)ran_us;

    pthread_mutex_lock(&s->mutex);
    struct call *c = around_find(s, job);
    bool is_settled = c && c->passage.is_settled;
    if (c && !is_settled) {
        c->passage.given_back = true;
    }
    pthread_mutex_unlock(&s->mutex);

    if (is_settled) {
        int answer = c->passage.err;
        around_end(c, answer);
        call_end(c, answer);
    }
}

/* ---- the call ---- */
static int around_ask(struct call *c)
{
    struct lapse_sync *s = c->sync;
    const struct around *around = c->args;

    if (s->arounds.n == LAPSE_AROUND_MAX) {
        return LAPSE_EFULL;
    }
    if (s->arounds.n == 0) {
        int err = lapse_around(s->handle, NULL, on_after, s);
        ASSERT(!err); /* the handle is open, and this is its first */
    }

    s->arounds.of[s->arounds.n++] = *around;
    return CALL_OVER;
}

int lapse_sync_around(struct lapse_sync *s, lapse_sync_before_fn *before,
                      lapse_sync_after_fn *after, void *arg)
{
    struct around around = {.before = before, .after = after, .arg = arg};

    if (!before && !after) {
        return LAPSE_EINVAL;
    }

    return call_run(s, around_ask, &around, 0, NULL);
}
