/* SPDX-License-Identifier: MIT */
/* lapse_history(): one script reads the rows that Redis keeps, and each is added to the step in
 * which it begins. */
#include "api/request.h"
#include "base/mem.h"
#include "script/queue_verbs.h"

struct history_call {
    struct request request;
    lapse_history_fn *fn;
    struct history_request script;
    int64_t from_ms;
    int64_t step_ms; /* 0: of all time */
    size_t n;
    struct lapse_past *steps;
    const struct lapse_past **rows; /* the same */
};

static void history_call_run(struct task *t)
{
    struct history_call *c = CONTAINER(t, struct history_call, request.task);

    if (!c->fn) {
        return;
    }
    if (c->request.err) {
        c->fn(c->request.handle, c->request.err, NULL, 0, c->request.arg);
    } else {
        c->fn(c->request.handle, 0, c->rows, c->n, c->request.arg);
    }
}

static void history_call_done(struct task *t, bool alive)
{
    struct history_call *c = CONTAINER(t, struct history_call, request.task);
    (void)alive;

    mem_free(c->steps);
    mem_free(c->rows);
    mem_free(c);
}

/* ---- the answer ---- */
static bool history_add_row(struct history_call *c, const struct past_row *row)
{
    if (row->from_ms < c->from_ms) {
        return false;
    }

    uint64_t i = (uint64_t)(row->from_ms - c->from_ms) / (uint64_t)c->step_ms;
    return i < c->n && past_add(&c->steps[i], row->counts);
}

static int history_read(struct history_call *c, const struct history_reply *reply)
{
    struct past_row row;

    if (c->step_ms == 0) {
        c->steps[0].from_ms = reply->since_ms;
        c->steps[0].to_ms = reply->now_us / 1000;
        return past_add(&c->steps[0], reply->all) ? 0 : LAPSE_EDATA;
    }

    for (size_t i = 0; i < reply->n_jobs; i++) {
        if (!script_past_row(reply, i, &row)) {
            return LAPSE_EBROKEN;
        }
        if (!history_add_row(c, &row)) {
            return LAPSE_EDATA;
        }
    }
    return 0;
}

static void on_history(struct history_request *r, int err, const struct history_reply *reply)
{
    struct history_call *c = CONTAINER(r, struct history_call, script);

    if (!err) {
        err = history_read(c, reply);
    }
    for (size_t i = 0; i < c->n; i++) {
        c->steps[i].claimed = c->steps[i].late[0].n;
    }

    request_end(&c->request, err);
}

/* ---- the call ---- */
/* How many steps there are, and where the first one begins; 0: it is no such time. */
static size_t history_steps(int64_t *from_ms, int64_t to_ms, int64_t step_ms)
{
    if (step_ms == 0) {
        return *from_ms == 0 && to_ms == 0;
    }
    if (step_ms < 0 || step_ms % LAPSE_STEP_MIN_MS || *from_ms < 0 || to_ms <= *from_ms ||
        to_ms > EXACT_MAX) {
        return 0;
    }

    *from_ms -= *from_ms % step_ms;
    int64_t n = (to_ms - *from_ms - 1) / step_ms + 1;
    return n <= LAPSE_STEPS_MAX ? (size_t)n : 0;
}

static int history_make_steps(struct history_call *c)
{
    c->steps = mem_new(c->n * sizeof *c->steps, 0);
    c->rows = mem_new(c->n * sizeof *c->rows, 0);
    if (!c->steps || !c->rows) {
        return LAPSE_ENOMEM;
    }

    for (size_t i = 0; i < c->n; i++) {
        c->steps[i].from_ms = c->from_ms + (int64_t)i * c->step_ms;
        c->steps[i].to_ms = c->steps[i].from_ms + c->step_ms;
        c->rows[i] = &c->steps[i];
    }
    return 0;
}

int lapse_history(struct lapse *l, const char *queue, int64_t from_ms, int64_t to_ms,
                  int64_t step_ms, lapse_history_fn *fn, void *arg)
{
    struct request_spec spec = {
        .size = sizeof(struct history_call),
        .queue = queue,
        .id = "",
        .arg = arg,
        .run = history_call_run,
        .done = history_call_done,
    };
    size_t n = history_steps(&from_ms, to_ms, step_ms);
    void *made;

    if (!l || !queue || !keys_queue_ok(span_of(queue)) || n == 0) {
        return LAPSE_EINVAL;
    }
    int err = request_new(&made, l, &spec);
    if (err) {
        return err;
    }

    struct history_call *c = made;
    c->fn = fn;
    c->from_ms = from_ms;
    c->step_ms = step_ms;
    c->n = n;
    err = history_make_steps(c);
    if (err) {
        mem_free(c->steps);
        mem_free(c->rows);
        request_drop(&c->request);
        return err;
    }

    c->script.end = on_history;
    c->script.request.until_us = request_until_us(l);
    int64_t end_ms = from_ms + (int64_t)n * step_ms; /* of all time: no rows */
    script_history(&l->script, &c->script, c->request.key, from_ms, end_ms);

    return 0;
}
