/* SPDX-License-Identifier: MIT */
#include "handler.h"

void flow_on_settled(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct flow_handler *w = arg;
    cr_assert(l && !job);
    w->settled++;
    if (err != 0) {
        w->errors++;
    }
    w->err = err ? err : w->err;
}

static void handler_settle(struct flow_handler *w, struct lapse_job *job, enum flow_way how)
{
    switch (how) {
    case FLOW_DONE: lapse_done(job, flow_on_settled, w); break;
    case FLOW_RETRY: lapse_retry(job, w->delay_ms, w->reason, flow_on_settled, w); break;
    case FLOW_SNOOZE: lapse_snooze(job, w->delay_ms, w->reason, flow_on_settled, w); break;
    case FLOW_FAIL: lapse_fail(job, w->reason, flow_on_settled, w); break;
    case FLOW_KEEP: cr_assert(w->n_held < FLOW_HELD); w->held[w->n_held++] = job;
    }
}

void flow_on_job(struct lapse *l, struct lapse_job *job, void *arg)
{
    struct flow_handler *w = arg;

    if (!(w->n_runs & (w->n_runs + 1))) { /* 0, 1, 3, 7...: full */
        w->runs = flow_keep(w->f, w->runs, w->n_runs * sizeof *w->runs,
                            (2 * w->n_runs + 1) * sizeof *w->runs);
    }

    cr_assert(l);
    flow_copy(w->f, &w->runs[w->n_runs].job, job);
    w->runs[w->n_runs++].l = l;
    handler_settle(w, job, w->way);
}

void flow_listen(struct flow *f, const char *queue, struct flow_handler *w)
{
    w->f = f;
    cr_assert_eq(lapse_listen(f->l, queue, NULL, flow_on_job, w), 0);
}

void flow_hold(struct flow *f, struct flow_handler *w, const char *id)
{
    flow_listen(f, "q", w);
    cr_assert_eq(flow_schedule(f, "q", id, 0, NULL), 0);
    flow_until(f, w->n_held == 1);
}

void flow_settle(struct flow_handler *w, enum flow_way how)
{
    unsigned want = w->settled + (unsigned)w->n_held;
    while (w->n_held) {
        handler_settle(w, w->held[--w->n_held], how);
    }
    flow_until(w->f, w->settled >= want);
}

size_t flow_runs_of(const struct flow_handler *w, const char *id)
{
    size_t n = 0;
    for (size_t i = 0; i < w->n_runs; i++) {
        if (strcmp(w->runs[i].job.id, id) == 0) {
            n++;
        }
    }
    return n;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void flow_each_once(const struct flow_handler *w, size_t n)
{
    const char **ids = calloc(n + 1, sizeof *ids);

    cr_assert(ids);
    cr_assert_eq(w->n_runs, n, "%zu runs of %zu jobs", w->n_runs, n);
    for (size_t i = 0; i < n; i++) {
        const struct flow_job *job = &w->runs[i].job;
        cr_assert_geq(job->claimed_us, job->due_ms * 1000, "%s ran early", job->id);
        cr_assert_eq(job->try_no, 1);
        ids[i] = job->id;
    }

    qsort(ids, n, sizeof *ids, by_text);
    for (size_t i = 1; i < n; i++) {
        cr_assert(strcmp(ids[i - 1], ids[i]) != 0, "%s ran more than once", ids[i]);
    }
    free(ids);
}

static int by_id(const void *a, const void *b)
{
    const struct run *x = a;
    const struct run *y = b;
    int c = strcmp(x->queue, y->queue);
    return c ? c : strcmp(x->id, y->id);
}

void flow_runs_each_once(const struct runs *runs, long n)
{
    cr_assert_eq(runs->n, n, "%ld runs of %ld jobs", (long)runs->n, n);

    struct run *sorted = malloc((size_t)n * sizeof *sorted);
    cr_assert(sorted);
    memcpy(sorted, runs->run, (size_t)n * sizeof *sorted);
    qsort(sorted, (size_t)n, sizeof *sorted, by_id);

    for (long i = 0; i < n; i++) {
        const struct run *r = &sorted[i];
        cr_assert(!i || by_id(r - 1, r), "%s ran more than once", r->id);
        cr_assert_geq(r->claimed_us, r->due_ms * 1000, "%s ran early", r->id);
    }

    free(sorted);
}
