/* SPDX-License-Identifier: MIT */
/* lapse_claim(), lapse_claim_id(). */
#include "api/request.h"
#include "base/mem.h"
#include "job/keys.h"

struct claim_call {
    struct request request;
    lapse_claim_fn *fn;
    struct pull pull;
    struct lapse_job *jobs[SCRIPT_BATCH];
    unsigned n;
};

/* What a handle that closes has claimed it has given back by now. */
static void claim_call_run(struct task *t)
{
    struct claim_call *c = CONTAINER(t, struct claim_call, request.task);
    struct lapse *l = c->request.handle;
    int err = c->request.err;

    if (err == LAPSE_EALONE) {
        leases_release(&c->pull.leases);
    }
    c->n = leases_give(&c->pull.leases, c->jobs);
    if (c->n == 0 && !err && l->closing) {
        err = LAPSE_ECLOSED;
    }

    c->fn(l, err, c->jobs, c->n, c->request.arg);
}

static void claim_call_done(struct task *t, bool alive)
{
    struct claim_call *c = CONTAINER(t, struct claim_call, request.task);
    (void)alive;

    leases_given(c->jobs, c->n);
    mem_free(c);
}

static void on_pull_ended(struct pull *p, int err)
{
    struct claim_call *c = CONTAINER(p, struct claim_call, pull);

    if (p->n_got > 0) {
        request_wrote(&c->request, p->claimed_us);
    }
    request_end(&c->request, err);
}

/* pull: how many jobs, and for how long it waits. */
static int claim_call_new(struct lapse *l, struct request_spec spec, const struct pull *pull,
                          lapse_claim_fn *fn)
{
    void *made;

    spec.size = sizeof(struct claim_call);
    spec.run = claim_call_run;
    spec.done = claim_call_done;
    int err = request_new(&made, l, &spec);
    if (err) {
        return err;
    }

    struct claim_call *c = made;
    c->fn = fn;
    c->pull.n = pull->n;
    c->pull.wait_ms = pull->wait_ms;
    c->pull.id = c->request.id;
    c->pull.end = on_pull_ended;

    err = listener_pull(&l->listener, c->request.queue, &c->pull);
    if (err) {
        request_drop(&c->request);
    }

    return err;
}

int lapse_claim(struct lapse *l, const char *queue, unsigned n, int64_t wait_ms, lapse_claim_fn *fn,
                void *arg)
{
    struct request_spec spec = {.queue = queue, .id = "", .arg = arg};
    struct pull pull = {.n = n, .wait_ms = wait_ms};

    if (!l || !queue || !keys_queue_ok(span_of(queue)) || n < 1 || n > SCRIPT_BATCH ||
        wait_ms < 0 || wait_ms > LAPSE_WAIT_MAX_MS || !fn) {
        return LAPSE_EINVAL;
    }

    return claim_call_new(l, spec, &pull, fn);
}

int lapse_claim_id(struct lapse *l, const char *queue, const char *id, lapse_claim_fn *fn,
                   void *arg)
{
    struct request_spec spec = {.queue = queue, .id = id, .arg = arg};
    struct pull pull = {.n = 1};

    if (!l || !queue || !keys_queue_ok(span_of(queue)) || !id || !keys_id_ok(span_of(id)) || !fn) {
        return LAPSE_EINVAL;
    }

    return claim_call_new(l, spec, &pull, fn);
}
