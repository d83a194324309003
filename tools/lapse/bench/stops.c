/* SPDX-License-Identifier: MIT */
#include "bench/stops.h"
#include "bench/loop.h"
#include "cli/values.h"
#include "client/redis_sync.h"
#include <stdio.h>

enum { LOOK_MS = 1, ID_MAX = 32 };

struct stops {
    struct load *load;
    struct listeners *listeners;
    int64_t patience_ms, since_ms;
    char id[ID_MAX]; /* of the job that is stored, and was not asked to stop; "": there is none */
    bool in_flight;  /* a request is not answered */
};

static void stops_fail(struct stops *s, int err)
{
    s->load->err = s->load->err ? s->load->err : err;
}

static void on_stop_asked(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct stops *s = arg;

    (void)l;
    (void)job;
    s->in_flight = false;
    if (err) {
        stops_fail(s, err);
    }
}

static void on_stop_stored(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct stops *s = arg;

    (void)l;
    s->in_flight = false;
    s->load->last_answer_us = monotonic_us();
    if (err) {
        s->load->failed++;
        stops_fail(s, err);
        return;
    }

    s->load->stored++;
    snprintf(s->id, sizeof s->id, "%s", lapse_job_id(job));
}

static void ask_to_stop(struct stops *s)
{
    const struct producer *p = s->load->producer;

    listeners_are_asked(s->listeners, monotonic_us());
    int err = lapse_cancel(p->loop->client.l, p->queue, s->id, LAPSE_RUNNING_TOO, on_stop_asked, s);
    if (err) {
        stops_fail(s, err);
        return;
    }

    s->id[0] = '\0';
    s->in_flight = true;
}

static void store_next(struct stops *s)
{
    int err = producer_schedule(s->load->producer, s->load->due, on_stop_stored, s);

    if (err) {
        stops_fail(s, err);
        return;
    }

    s->load->asked++;
    s->in_flight = true;
}

/* Does what is next, if that is possible now. */
static bool stops_are_over(void *arg)
{
    struct stops *s = arg;
    const struct load *load = s->load;
    bool is_settled = listeners_settled(s->listeners) >= load->stored;
    bool is_begun = listeners_ran(s->listeners) >= load->stored;
    uint64_t asked = load->asked;

    if (load->err || s->in_flight) {
        return load->err != 0;
    }
    if (*s->id && is_begun) {
        ask_to_stop(s);
    } else if (!*s->id && is_settled && load->asked < load->n) {
        store_next(s);
    } else if (!*s->id && is_settled) {
        return true;
    }

    if (load->asked != asked || s->in_flight) {
        s->since_ms = monotonic_ms();
    }
    return monotonic_ms() - s->since_ms > s->patience_ms;
}

int stops_run(struct load *load, struct listeners *listeners, int64_t patience_ms)
{
    struct stops s = {.load = load, .listeners = listeners, .patience_ms = patience_ms};

    s.since_ms = monotonic_ms();
    load->start_us = load->last_answer_us = monotonic_us();
    return loop_until(load->producer->loop, LOOK_MS, stops_are_over, &s);
}
