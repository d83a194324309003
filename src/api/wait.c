/* SPDX-License-Identifier: MIT */
/* lapse_wait(): gets the job each time that it may have ended, until it has. */
#include "api/job_call.h"
#include "base/error.h"

struct wait {
    struct job_call call;
    struct end_waiter waiter;
    struct timer limit;
    bool asking;  /* a get is under way */
    bool again;   /* and the job may have ended since */
    bool is_over; /* it is no waiter any more, and ends with the next answer */
    bool is_closed;
};

static void wait_end(struct wait *w, int err)
{
    timer_stop(&w->limit);
    if (!w->is_over) {
        ends_remove(&w->waiter);
    }
    job_call_end(&w->call, err);
}

/* Redis has not said what became of the job, and may do so later. */
static bool goes_on(int err)
{
    return err == LAPSE_EDOWN || err == LAPSE_ELOST || err == LAPSE_ETIMEOUT;
}

static bool has_ended(const struct job_row *row)
{
    return row->state == LAPSE_DEAD || row->state == LAPSE_KEPT;
}

static void on_got(struct job_request *r, int err, const struct job_row *row);

static void wait_ask(struct wait *w)
{
    struct job_call *c = &w->call;
    struct lapse *l = c->request.handle;

    w->asking = true;
    w->again = false;
    c->script.job = (struct job_request){.end = on_got};
    c->script.job.request.until_us = request_until_us(l);
    script_get(&l->script, &c->script.job, c->request.key, c->request.id);
}

static void on_got(struct job_request *r, int err, const struct job_row *row)
{
    struct wait *w = CONTAINER(r, struct wait, call.script.job);

    w->asking = false;
    if (!err && has_ended(row)) {
        wait_end(w, job_call_read_with_body(&w->call, row));
    } else if (w->is_closed) {
        wait_end(w, LAPSE_ECLOSED);
    } else if (err && !goes_on(err)) {
        wait_end(w, err);
    } else if (!err && w->again) {
        wait_ask(w);
    } else if (w->is_over) {
        wait_end(w, err ? LAPSE_EDOWN : LAPSE_ETIMEOUT);
    }
}

static void wait_look(struct wait *w)
{
    if (w->asking) {
        w->again = true;
    } else {
        wait_ask(w);
    }
}

static void on_look(struct end_waiter *waiter)
{
    wait_look(CONTAINER(waiter, struct wait, waiter));
}

/* It may have ended since the last look. */
static void on_limit(void *arg)
{
    struct wait *w = arg;

    ends_remove(&w->waiter);
    w->is_over = true;
    wait_look(w);
}

/* A get that is under way is answered first. */
static void on_closed(struct end_waiter *waiter)
{
    struct wait *w = CONTAINER(waiter, struct wait, waiter);

    timer_stop(&w->limit);
    w->is_over = true;
    w->is_closed = true;
    if (!w->asking) {
        wait_end(w, LAPSE_ECLOSED);
    }
}

int lapse_wait(struct lapse *l, const char *queue, const char *id, int64_t wait_ms, lapse_cb *fn,
               void *arg)
{
    struct request_spec spec = {.size = sizeof(struct wait), .queue = queue, .id = id, .arg = arg};
    struct job_call *c;

    if (wait_ms < 0 || wait_ms > JOB_TEN_YEARS_MS) {
        return LAPSE_EINVAL;
    }
    int err = job_call_about(&c, l, &spec, fn);
    if (err) {
        return err;
    }

    struct wait *w = CONTAINER(c, struct wait, call);
    timer_init(&w->limit, l->context.loop, on_limit, w);
    w->waiter = (struct end_waiter){.look = on_look, .closed = on_closed};
    w->is_over = wait_ms == 0;

    if (!w->is_over) {
        err = ends_add(&l->ends, &w->waiter, c->request.queue, c->request.id);
    }
    if (err) {
        request_drop(&c->request);
        return err;
    }
    if (!w->is_over) {
        timer_set(&w->limit, wait_ms);
    }

    wait_ask(w);
    return 0;
}
