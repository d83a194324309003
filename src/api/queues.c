/* SPDX-License-Identifier: MIT */
/* lapse_depth() and lapse_list(). */
#include "api/request.h"
#include "script/queue_verbs.h"
#include "base/mem.h"

/* ---- depth ---- */
struct depth_call {
    struct request request;
    lapse_depth_fn *fn;
    struct depth_request script;
    struct lapse_depth depth;
};

static void depth_call_run(struct task *t)
{
    struct depth_call *r = CONTAINER(t, struct depth_call, request.task);
    const struct lapse_depth *answer = r->request.err ? NULL : &r->depth;

    if (r->fn) {
        r->fn(r->request.handle, r->request.err, answer, r->request.arg);
    }
}

static void depth_call_done(struct task *t, bool alive)
{
    (void)alive;
    mem_free(CONTAINER(t, struct depth_call, request.task));
}

static void on_depth(struct depth_request *r, int err, const struct depth_reply *reply)
{
    struct depth_call *c = CONTAINER(r, struct depth_call, script);

    if (!err) {
        c->depth = (struct lapse_depth){
            .waiting = (uint64_t)reply->waiting,
            .running = (uint64_t)reply->running,
            .dead = (uint64_t)reply->dead,
            .late_ms = reply->backlog_ms,
        };
    }
    request_end(&c->request, err);
}

int lapse_depth(struct lapse *l, const char *queue, lapse_depth_fn *fn, void *arg)
{
    struct request_spec spec = {
        .size = sizeof(struct depth_call),
        .queue = queue,
        .id = "",
        .arg = arg,
        .run = depth_call_run,
        .done = depth_call_done,
    };
    void *made;

    if (!l || !queue || !keys_queue_ok(span_of(queue))) {
        return LAPSE_EINVAL;
    }
    int err = request_new(&made, l, &spec);
    if (err) {
        return err;
    }

    struct depth_call *r = made;
    r->fn = fn;
    r->script.end = on_depth;
    r->script.request.until_us = request_until_us(l);
    script_depth(&l->script, &r->script, r->request.key);

    return 0;
}

/* ---- list ---- */
struct list_call {
    struct request request;
    lapse_list_fn *fn;
    struct list_request script;
    enum lapse_state state;
    unsigned limit;
    unsigned n;
    struct lapse_job *jobs[SCRIPT_BATCH];
};

static void list_call_run(struct task *t)
{
    struct list_call *r = CONTAINER(t, struct list_call, request.task);
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

static void list_call_done(struct task *t, bool alive)
{
    struct list_call *r = CONTAINER(t, struct list_call, request.task);
    (void)alive;

    for (unsigned i = 0; i < r->n; i++) {
        mem_free(r->jobs[i]);
    }
    mem_free(r);
}

static int add_row(struct list_call *r, const struct list_reply *reply, size_t i)
{
    struct job_row row;

    if (!script_listed_job(reply, i, &row) || r->n >= r->limit) {
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
static void ask_for_the_rest(struct list_call *r)
{
    const struct lapse_job *last = r->jobs[r->n - 1];
    struct list_page page = {
        .state = r->state,
        .limit = r->limit - r->n,
        .after_score_ms = last->score_ms,
        .after_id = {last->id, strlen(last->id)},
    };

    script_list(&r->request.handle->script, &r->script, r->request.key, &page);
}

static void on_list(struct list_request *r, int err, const struct list_reply *reply)
{
    struct list_call *c = CONTAINER(r, struct list_call, script);
    unsigned n_before = c->n;

    for (size_t i = 0; !err && i < reply->n_jobs; i++) {
        err = add_row(c, reply, i);
    }

    bool progress = c->n > n_before;
    if (!err && reply->more && progress && c->n < c->limit && !c->request.handle->ended) {
        ask_for_the_rest(c);
    } else {
        request_end(&c->request, err);
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
        .size = sizeof(struct list_call),
        .queue = queue,
        .id = after ? after->id : "",
        .arg = arg,
        .run = list_call_run,
        .done = list_call_done,
    };
    void *made;

    if (!l || !queue || !keys_queue_ok(span_of(queue)) || !page_is_valid(state, n)) {
        return LAPSE_EINVAL;
    }
    int err = request_new(&made, l, &spec);
    if (err) {
        return err;
    }

    struct list_call *r = made;
    r->fn = fn;
    r->state = state;
    r->limit = n;
    r->script.end = on_list;
    r->script.request.until_us = request_until_us(l);

    struct list_page page = {
        .state = state,
        .limit = n,
        .after_score_ms = after ? after->score_ms : 0,
        .after_id = r->request.id,
    };
    script_list(&l->script, &r->script, r->request.key, &page);

    return 0;
}
