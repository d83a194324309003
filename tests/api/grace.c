/* SPDX-License-Identifier: MIT */
/* The grace: what a listener leaves, another claims, however much else is answered
 * meanwhile. No sweep comes to help. */
#include "listener.h"
#include "handler.h"
#include "listening.h"
#include <signal.h>

enum { FIRST = 100, EVERY_MS = 2, NO_SWEEP_MS = 600000 };

/* A listener that does its work, and a stream of jobs that are due at once, without a pause. */
struct stream {
    struct flow *f;
    struct lapse *l, *producer;
    struct flow_handler w;
    ev_timer timer;
    unsigned n, answered;
};

static struct lapse_options patient(struct flow *f, const char *name)
{
    struct lapse_options opts = flow_options(f);
    opts.sweep_ms = NO_SWEEP_MS;
    opts.name = name;
    return opts;
}

static void on_scheduled(struct lapse *l, int err, const struct lapse_job *job, void *s)
{
    (void)l;
    (void)job;
    cr_assert_eq(err, 0);
    ((struct stream *)s)->answered++;
}

static void on_time(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct stream *s = timer->data;
    char id[32];

    (void)loop;
    (void)events;
    snprintf(id, sizeof id, "stream-%u", s->n++);
    struct lapse_spec spec = flow_job_spec("q", id, 0);
    cr_assert_eq(lapse_schedule(s->producer, &spec, on_scheduled, s), 0);
}

static void stream_listen(struct stream *s, enum flow_mode mode)
{
    *s = (struct stream){.f = flow_bare(mode, NULL), .w = {.way = FLOW_DONE}};
    struct lapse_options opts = patient(s->f, "works");
    s->producer = flow_open(s->f, NULL);
    s->f->l = s->l = flow_open(s->f, &opts);
    flow_listen(s->f, "q", &s->w);
    flow_until_listeners(s->f, "q", 1);
}

/* Then the jobs called first, half of which the other one owns. */
static void stream_start(struct stream *s, int64_t delay_ms)
{
    ev_timer_init(&s->timer, on_time, 0., EVERY_MS / 1000.);
    s->timer.data = s;
    ev_timer_start(s->f->loop, &s->timer);
    s->f->l = s->producer;
    for (unsigned i = 0; i < FIRST; i++) {
        char id[32];
        snprintf(id, sizeof id, "first-%u", i);
        cr_assert_eq(flow_schedule(s->f, "q", id, delay_ms, NULL), 0);
    }
}

static long long waiting(struct flow *f)
{
    return redis_int(f->server, "EVAL %s 0",
                     "local n = 0 for i = 0, 99 do if redis.call('ZSCORE', 'lapse:{q}:due', "
                     "'first-' .. i) then n = n + 1 end end return n");
}

static void stream_end(struct stream *s)
{
    flow_poll(s->f, waiting(s->f) == 0);
    ev_timer_stop(s->f->loop, &s->timer);
    flow_until(s->f, s->answered == s->n);
    flow_poll(s->f, flow_count(s->f, "q", "due") == 0);
}

/* All but so many, which another has. */
static void stream_all_ran(struct stream *s, unsigned but)
{
    flow_until(s->f, s->w.settled == FIRST + s->n - but);
    cr_assert_eq(s->w.errors, 0);
    flow_each_once(&s->w, FIRST + s->n - but);
}

static struct listener *other_process(struct stream *s, struct runs *runs, enum listener_way way)
{
    struct lapse_options opts = patient(s->f, "other");

    opts.log = NULL;
    struct listener *w = listener_start(runs, "q", &opts, way);
    flow_until_listeners(s->f, "q", 2);
    flow_spin(s->f, 300); /* until both know of each other */
    return w;
}

static void beside_one_that_gets(int sig)
{
    struct stream s;
    struct runs *runs = runs_new(10000);

    stream_listen(&s, FLOW_FULL);

    struct listener *other = other_process(&s, runs, LISTENER_SETTLES);
    listener_signal(other, sig);
    stream_start(&s, 0);
    stream_end(&s);
    cr_assert_eq(runs->n, 0);
    stream_all_ran(&s, 0);
    listener_free(other);
    runs_free(runs);
    flow_end(s.f, "q");
}

Test(grace, of_the_jobs_of_a_stopped_listener_is_kept_amid_a_steady_stream)
{
    beside_one_that_gets(SIGSTOP);
}

Test(grace, of_the_jobs_of_a_killed_listener_is_kept_amid_a_steady_stream)
{
    beside_one_that_gets(SIGKILL);
}

/* It claimed some jobs before its handler began, and no other listener can have these until the
 * lease is over. */
Test(grace, of_the_jobs_of_a_listener_whose_handler_blocks_is_kept_amid_a_steady_stream)
{
    struct stream s;
    struct runs *runs = runs_new(10000);

    stream_listen(&s, FLOW_FULL);
    struct listener *other = other_process(&s, runs, LISTENER_BLOCKS);
    stream_start(&s, 0);
    flow_poll(s.f, runs->n == 1);
    stream_end(&s);
    cr_assert_eq(runs->n, 1);
    listener_free(other);
    runs_free(runs);
    flow_end(s.f, "q");
}

Test(grace, of_the_jobs_of_a_full_listener_is_kept_amid_a_steady_stream)
{
    struct stream s;
    struct flow_handler full = {.way = FLOW_KEEP};

    stream_listen(&s, FLOW_FULL);

    struct lapse_options opts = patient(s.f, "other");
    opts.max_running = 1;
    s.f->l = flow_open(s.f, &opts);
    flow_listen(s.f, "q", &full);
    flow_until_listeners(s.f, "q", 2);
    flow_spin(s.f, 300);
    stream_start(&s, 0);
    flow_until(s.f, full.n_held == 1);
    stream_end(&s);
    flow_settle(&full, FLOW_DONE);
    flow_each_once(&full, 1);
    stream_all_ran(&s, 1);
    flow_end(s.f, "q");
}

/* Redis expires nothing by itself, and the one without an alarm touches nothing: the other
 * has to. */
Test(grace, of_delayed_jobs_is_kept_beside_a_listener_without_an_alarm_amid_a_steady_stream)
{
    struct stream s;
    struct flow_handler deaf = {.way = FLOW_DONE};

    stream_listen(&s, FLOW_STILL);

    struct lapse_options opts = patient(s.f, "other");
    opts.flags = LAPSE_NO_ALARM;
    s.f->l = flow_open(s.f, &opts);
    flow_listen(s.f, "q", &deaf);
    flow_until_listeners(s.f, "q", 2);
    flow_spin(s.f, 300);
    stream_start(&s, 50);
    flow_until(s.f, deaf.n_runs > 0);
    stream_end(&s);
    flow_until(s.f, deaf.settled + s.w.settled == FIRST + s.n);
    cr_assert_gt(deaf.n_runs, 0);
    flow_each_once(&deaf, deaf.n_runs);
    flow_each_once(&s.w, s.w.n_runs);
    flow_end(s.f, "q");
}
