/* SPDX-License-Identifier: MIT */
/* lapse_calendar(), and the pause of a series; that of a queue is one of its settings. */
#include "api/series.h"
#include "script/job_verbs.h"
#include "base/mem.h"

int lapse_calendar(struct lapse *l, const char *name, lapse_next_fn *fn, void *arg)
{
    if (!l) {
        return LAPSE_EINVAL;
    }
    return l->closing ? LAPSE_ECLOSED : calendars_add(&l->calendars, name, fn, arg);
}

/* ---- pause ---- */
struct pause_call {
    struct request request;
    lapse_text_fn *fn;
    struct job_request script;
};

static void pause_call_run(struct task *t)
{
    struct pause_call *c = CONTAINER(t, struct pause_call, request.task);

    int err = c->request.err;
    const char *text = err == LAPSE_EINVAL ? "it is no series" : "";

    if (c->fn) {
        c->fn(c->request.handle, err, !err || err == LAPSE_EINVAL ? text : NULL, c->request.arg);
    }
}

static void pause_call_done(struct task *t, bool alive)
{
    (void)alive;
    mem_free(CONTAINER(t, struct pause_call, request.task));
}

static void on_paused(struct job_request *r, int err, const struct job_row *row)
{
    struct request *request = &CONTAINER(r, struct pause_call, script)->request;

    (void)row;
    request_wrote(request, r->request.sent_us);
    request_end(request, err);
}

int series_pause(struct lapse *l, const struct series_name *series, bool is_paused,
                 lapse_text_fn *fn, void *arg)
{
    struct request_spec spec = {
        .size = sizeof(struct pause_call),
        .queue = series->queue,
        .id = series->id,
        .arg = arg,
        .run = pause_call_run,
        .done = pause_call_done,
    };
    void *made;

    if (!l || !series->queue || !keys_queue_ok(span_of(series->queue)) ||
        !keys_id_ok(span_of(series->id))) {
        return LAPSE_EINVAL;
    }
    int err = request_new(&made, l, &spec);
    if (err) {
        return err;
    }

    struct pause_call *c = made;
    c->fn = fn;
    c->script.end = on_paused;
    c->script.request.until_us = request_until_us(l);
    script_pause(&l->script, &c->script, c->request.key, c->request.id, is_paused);

    return 0;
}
