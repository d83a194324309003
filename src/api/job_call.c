/* SPDX-License-Identifier: MIT */
#include "api/job_call.h"
#include "base/error.h"
#include "base/mem.h"

static void job_call_run(struct task *t)
{
    struct job_call *c = CONTAINER(t, struct job_call, request.task);

    c->job.replicas = c->request.copies.n_replicas;
    if (c->fn) {
        c->fn(c->request.handle, c->request.err, c->answer, c->request.arg);
    }
}

static void job_call_done(struct task *t, bool alive)
{
    struct job_call *c = CONTAINER(t, struct job_call, request.task);
    (void)alive;

    mem_free(c->body);
    mem_free(c);
}

int job_call_new(struct job_call **out, struct lapse *l, const struct request_spec *spec,
                 lapse_cb *fn)
{
    struct request_spec how = *spec;
    void *made;

    how.size = how.size ? how.size : sizeof **out;
    how.run = job_call_run;
    how.done = job_call_done;
    int err = request_new(&made, l, &how);
    if (err) {
        return err;
    }

    *out = made;
    (*out)->fn = fn;

    return 0;
}

int job_call_about(struct job_call **out, struct lapse *l, const struct request_spec *spec,
                   lapse_cb *fn)
{
    if (!l || !spec->queue || !keys_queue_ok(span_of(spec->queue)) || !spec->id ||
        !keys_id_ok(span_of(spec->id))) {
        return LAPSE_EINVAL;
    }

    int err = job_call_new(out, l, spec, fn);
    if (!err) {
        (*out)->script.job.request.until_us = request_until_us(l);
    }
    return err;
}

static bool names_the_job(const struct job_call *c, const struct job_row *row)
{
    return c->by_key || span_eq(row->id, c->request.id);
}

int job_call_read(struct job_call *c, const struct job_row *row)
{
    if (!names_the_job(c, row)) {
        return LAPSE_EBROKEN;
    }

    job_fill(&c->job, c->request.queue, row, c->request.texts, false);
    return 0;
}

int job_call_read_with_body(struct job_call *c, const struct job_row *row)
{
    if (!names_the_job(c, row)) {
        return LAPSE_EBROKEN;
    }

    c->body = mem_new(0, job_texts_len(c->request.queue, row, true));
    if (!c->body) {
        return LAPSE_ENOMEM;
    }

    job_fill(&c->job, c->request.queue, row, c->body, true);
    return 0;
}

void job_call_end(struct job_call *c, int err)
{
    c->answer = err ? NULL : &c->job;
    request_end(&c->request, err);
}
