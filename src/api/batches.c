/* SPDX-License-Identifier: MIT */
/* lapse_batch_close(), lapse_batch_get(). */
#include "api/job_call.h"
#include "base/mem.h"
#include "job/keys.h"

static void on_closed(struct job_request *r, int err, const struct job_row *row)
{
    struct job_call *c = CONTAINER(r, struct job_call, script.job);

    if (!err) {
        err = job_call_read(c, row);
    }
    if (!err) {
        listener_scheduled(&c->request.handle->listener, c->request.queue, row->id, row->score_ms);
    }
    request_wrote(&c->request, r->request.sent_us);
    job_call_end(c, err);
}

int lapse_batch_close(struct lapse *l, const char *queue, const char *name, lapse_cb *fn, void *arg)
{
    struct request_spec spec = {.queue = queue, .id = name, .arg = arg};
    struct job_call *r;
    int err = job_call_about(&r, l, &spec, fn);

    if (!err) {
        r->script.job.end = on_closed;
        script_batch_close(&l->script, &r->script.job, r->request.key, r->request.id);
    }
    return err;
}

/* ---- get: as many calls as it takes ---- */
struct batch_call {
    struct request request;
    lapse_batch_fn *fn;
    struct batch_get_request script;
    struct lapse_batch batch;
    size_t cursor_len;
    char cursor[KEYS_ID_MAX];
};

static void batch_call_run(struct task *t)
{
    struct batch_call *c = CONTAINER(t, struct batch_call, request.task);
    const struct lapse_batch *answer = c->request.err ? NULL : &c->batch;

    if (c->fn) {
        c->fn(c->request.handle, c->request.err, answer, c->request.arg);
    }
}

static void batch_call_done(struct task *t, bool alive)
{
    (void)alive;
    mem_free(CONTAINER(t, struct batch_call, request.task));
}

static void batch_call_send(struct batch_call *c)
{
    struct lapse *l = c->request.handle;
    struct span cursor = {c->cursor, c->cursor_len};

    c->script.request.until_us = request_until_us(l);
    script_batch_get(&l->script, &c->script, c->request.key, c->request.id, cursor);
}

/* false: the cursor has not moved, and never would. */
static bool batch_call_go_on(struct batch_call *c, const struct batch_get_reply *reply)
{
    struct span before = {c->cursor, c->cursor_len};
    bool moved = reply->cursor.len == 0 || !span_eq(reply->cursor, before);

    c->batch.left += (uint64_t)reply->n_left;
    c->batch.dead += (uint64_t)reply->n_dead;
    c->batch.ended = (uint64_t)reply->n_ended;
    c->batch.closed = reply->closed != 0;
    if (reply->cursor.len) {
        memcpy(c->cursor, reply->cursor.at, reply->cursor.len);
    }
    c->cursor_len = reply->cursor.len;
    return moved;
}

static void on_batch(struct batch_get_request *r, int err, const struct batch_get_reply *reply)
{
    struct batch_call *c = CONTAINER(r, struct batch_call, script);

    if (!err && !batch_call_go_on(c, reply)) {
        err = LAPSE_EBROKEN;
    }

    bool is_over = c->cursor_len == 0;
    if (!err && !is_over && request_is_cut_off(&c->request)) {
        err = LAPSE_ECLOSED;
    }
    if (err || is_over) {
        request_end(&c->request, err);
    } else {
        batch_call_send(c);
    }
}

int lapse_batch_get(struct lapse *l, const char *queue, const char *name, lapse_batch_fn *fn,
                    void *arg)
{
    struct request_spec spec = {
        .size = sizeof(struct batch_call),
        .queue = queue,
        .id = name,
        .arg = arg,
        .run = batch_call_run,
        .done = batch_call_done,
    };
    void *made;

    if (!l || !queue || !keys_queue_ok(span_of(queue)) || !name || !keys_id_ok(span_of(name))) {
        return LAPSE_EINVAL;
    }
    int err = request_new(&made, l, &spec);
    if (err) {
        return err;
    }

    struct batch_call *c = made;
    c->fn = fn;
    c->script.end = on_batch;
    batch_call_send(c);

    return 0;
}
