/* SPDX-License-Identifier: MIT */
/* lapse_depth() and lapse_list(). */
#include "api/request.h"
#include "base/mem.h"

/* ---- depth ---- */
struct depth_request {
    struct request request;
    lapse_depth_fn *fn;
    struct queue_ask ask;
    struct lapse_depth depth;
};

static void depth_request_run(struct task *t)
{
    struct depth_request *r = CONTAINER(t, struct depth_request, request.task);
    const struct lapse_depth *answer = r->request.err ? NULL : &r->depth;

    if (r->fn) {
        r->fn(r->request.handle, r->request.err, answer, r->request.arg);
    }
}

static void depth_request_done(struct task *t, bool alive)
{
    (void)alive;
    mem_free(CONTAINER(t, struct depth_request, request.task));
}

static void on_depth(struct queue_ask *a, int err)
{
    struct depth_request *r = CONTAINER(a, struct depth_request, ask);

    r->depth = (struct lapse_depth){
        .waiting = (uint64_t)a->n[0],
        .running = (uint64_t)a->n[1],
        .dead = (uint64_t)a->n[2],
        .late_ms = a->n[3],
    };
    request_end(&r->request, err);
}

int lapse_depth(struct lapse *l, const char *queue, lapse_depth_fn *fn, void *arg)
{
    struct request_spec spec = {
        .size = sizeof(struct depth_request),
        .queue = queue,
        .id = "",
        .arg = arg,
        .run = depth_request_run,
        .done = depth_request_done,
    };
    void *made;

    if (!l || !queue || !keys_queue_ok(span_of(queue))) {
        return LAPSE_EINVAL;
    }
    int err = request_new(&made, l, &spec);
    if (err) {
        return err;
    }

    struct depth_request *r = made;
    r->fn = fn;
    r->ask.end = on_depth;
    r->ask.ask.until_us = request_until_us(l);
    store_depth(&l->script, &r->ask, r->request.key);

    return 0;
}

/* ---- list ---- */
struct list_request {
    struct request request;
    lapse_list_fn *fn;
    struct list_ask ask;
    enum lapse_state state;
    unsigned limit;
    unsigned n;
    struct lapse_job *jobs[SCRIPT_BATCH];
};

static void list_request_run(struct task *t)
{
    struct list_request *r = CONTAINER(t, struct list_request, request.task);
    bool failed = r->request.err != 0;
    const struct lapse_job *const *jobs = (const struct lapse_job *const *)r->jobs;

    if (!r->fn) {
        return;
    }
    if (failed) {
        r->fn(r->request.handle, r->request.err, NULL, 0, r->request.arg);
    } else {
        r->fn(r->request.handle, 0, jobs, r->n, r->request.arg);
    }
}

static void list_request_done(struct task *t, bool alive)
{
    struct list_request *r = CONTAINER(t, struct list_request, request.task);
    (void)alive;

    for (unsigned i = 0; i < r->n; i++) {
        mem_free(r->jobs[i]);
    }
    mem_free(r);
}

static int add_row(struct list_request *r, const struct redisReply *rows, size_t i)
{
    struct job_row row;

    if (!store_list_row(rows, i, &row) || r->n >= r->limit) {
        return LAPSE_EBROKEN;
    }

    struct lapse_job *job = mem_new(sizeof *job, job_texts_len(r->request.queue, &row, true));
    if (!job) {
        return LAPSE_ENOMEM;
    }

    job_fill(job, r->request.queue, &row, (char *)(job + 1), true);
    r->jobs[r->n++] = job;

    return 0;
}

/* A script stops at so many bytes: then the rest of the page is asked for from there on. */
static void ask_for_the_rest(struct list_request *r)
{
    const struct lapse_job *last = r->jobs[r->n - 1];
    struct span after = {last->id, strlen(last->id)};

    store_list(&r->request.handle->script, &r->ask, r->request.key, r->state, r->limit - r->n,
               last->score_ms, after);
}

static void on_list(struct list_ask *a, int err, const struct redisReply *rows, size_t n, bool more)
{
    struct list_request *r = CONTAINER(a, struct list_request, ask);

    for (size_t i = 0; i < n && !err; i++) {
        err = add_row(r, rows, i);
    }

    if (!err && more && n && r->n < r->limit && !r->request.handle->ended) {
        ask_for_the_rest(r);
    } else {
        request_end(&r->request, err);
    }
}

static bool page_is_valid(enum lapse_state state, unsigned n)
{
    return state >= LAPSE_WAITING && state <= LAPSE_DEAD && n >= 1 && n <= SCRIPT_BATCH;
}

int lapse_list(struct lapse *l, const char *queue, enum lapse_state state,
               const struct lapse_job *after, unsigned n, lapse_list_fn *fn, void *arg)
{
    struct request_spec spec = {
        .size = sizeof(struct list_request),
        .queue = queue,
        .id = after ? after->id : "",
        .arg = arg,
        .run = list_request_run,
        .done = list_request_done,
    };
    void *made;

    if (!l || !queue || !keys_queue_ok(span_of(queue)) || !page_is_valid(state, n)) {
        return LAPSE_EINVAL;
    }
    int err = request_new(&made, l, &spec);
    if (err) {
        return err;
    }

    struct list_request *r = made;
    r->fn = fn;
    r->state = state;
    r->limit = n;
    r->ask.end = on_list;
    r->ask.ask.until_us = request_until_us(l);
    store_list(&l->script, &r->ask, r->request.key, state, n, after ? after->score_ms : 0,
               r->request.id);

    return 0;
}
