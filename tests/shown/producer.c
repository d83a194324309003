/* SPDX-License-Identifier: MIT */
#include "shown.h"
#include <criterion/criterion.h>
#include <ev.h>
#include <stdio.h>

enum { IN_FLIGHT = 8000 };

void producer_open(struct producer *p, const char *url)
{
    struct lapse_options o = lapse_options_init();
    *p = (struct producer){.loop = ev_loop_new(0)};
    o.url = url;
    cr_assert(p->loop && !lapse_open(&p->l, p->loop, &o));
}

static void on_scheduled(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct producer *p = arg;
    (void)l;
    (void)job;
    p->n_ok += !err;
    p->n_failed += err != 0;
}

static bool has_room(void *arg)
{
    const struct producer *p = arg;
    return p->n_asked - p->n_ok - p->n_failed < IN_FLIGHT;
}

static bool all_answered(void *arg)
{
    const struct producer *p = arg;
    return p->n_ok + p->n_failed == p->n_asked;
}

void producer_ask(struct producer *p, struct lapse_due due)
{
    struct lapse_spec s = lapse_spec_init();
    char id[24];
    char body[100] = "a hundred bytes, as everybody measures with";

    snprintf(id, sizeof id, "%ld", p->n_asked);
    s.queue = QUEUE;
    s.id = id;
    s.body = body;
    s.body_len = sizeof body;
    s.due = due;
    if (!has_room(p)) {
        loop_until(p->loop, has_room, p, 60000);
    }

    p->n_asked++;
    cr_assert(!lapse_schedule(p->l, &s, on_scheduled, p));
}

struct rate {
    struct producer *producer;
    long n, first;
    int64_t every_us, delay_ms;
    ev_tstamp start;
};

static void on_tick(struct ev_loop *loop, ev_timer *w, int events)
{
    struct rate *r = w->data;
    struct producer *p = r->producer;

    (void)loop;
    (void)events;
    double due = (ev_time() - r->start) * 1e6 / (double)r->every_us;
    while (p->n_asked - r->first < r->n && (double)(p->n_asked - r->first) < due) {
        producer_ask(p, lapse_in(r->delay_ms));
    }
}

static bool all_asked(void *arg)
{
    const struct rate *r = arg;
    return r->producer->n_asked - r->first == r->n;
}

void producer_rate(struct producer *p, long n, int64_t every_us, int64_t delay_ms)
{
    struct rate r = {p, n, p->n_asked, every_us, delay_ms, ev_time()};
    ev_timer tick;

    ev_timer_init(&tick, on_tick, 0.001, 0.001);
    tick.data = &r;
    ev_timer_start(p->loop, &tick);
    loop_until(p->loop, all_asked, &r, 120000);
    ev_timer_stop(p->loop, &tick);
}

void producer_wait(struct producer *p)
{
    loop_until(p->loop, all_answered, p, 60000);
    cr_assert_eq(p->n_failed, 0, "%ld jobs could not be scheduled", p->n_failed);
}

void producer_close(struct producer *p)
{
    lapse_abandon(p->l);
    ev_loop_destroy(p->loop);
}
