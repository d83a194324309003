/* SPDX-License-Identifier: MIT */
#include "bench/loop.h"
#include "cli/values.h"
#include <signal.h>

enum { GRACE_MS = 5000, LOOK_MS = 1000 };

static const ev_tstamp progress_s = 1.;

static void on_signal(struct ev_loop *ev, ev_signal *w, int events)
{
    struct bench_loop *loop = w->data;

    (void)ev;
    (void)events;
    loop->signum = w->signum;
}

static void on_loop_refused(struct client *c)
{
    struct bench_loop *loop = (struct bench_loop *)c;

    if (client_is_denied(c)) { /* everything else may pass: the library tries again */
        client_set_exit_code(c, client_report(c, LAPSE_EREFUSED, loop->queue));
        client_close(c, 0);
    }
}

static void on_progress(struct ev_loop *ev, ev_timer *w, int events)
{
    struct bench_loop *loop = w->data;

    (void)events;
    loop->print_progress(loop->progress_arg);

    /* the longer it takes, the fewer lines */
    ev_tstamp elapsed_s = ev_now(ev) - loop->progress_start_s;
    w->repeat = elapsed_s > 10 * progress_s ? elapsed_s / 10 : progress_s;
    ev_timer_again(ev, w);
}

static void start_signal(struct bench_loop *loop, ev_signal *w, int signum)
{
    ev_signal_init(w, on_signal, signum);
    w->data = loop;
    ev_signal_start(loop->client.loop, w);
}

int loop_open(struct bench_loop *loop, struct globals *g, const char *queue)
{
    loop->queue = queue;
    int code = client_open(&loop->client, g, on_loop_refused);
    if (code) {
        return code;
    }

    /* libev would reap the listeners, and the pid of a reaped one may be that of another process */
    signal(SIGCHLD, SIG_DFL);
    start_signal(loop, &loop->term, SIGTERM);
    start_signal(loop, &loop->interrupt, SIGINT);
    ev_timer_init(&loop->progress, on_progress, progress_s, progress_s);
    loop->progress.data = loop;

    return DONE;
}

bool loop_is_open(const struct bench_loop *loop)
{
    return loop->client.loop != NULL;
}

void loop_close(struct bench_loop *loop)
{
    if (!loop_is_open(loop)) {
        return;
    }

    if (loop->client.l) {
        client_close(&loop->client, GRACE_MS);
    }

    client_run(&loop->client);
    ev_signal_stop(loop->client.loop, &loop->term);
    ev_signal_stop(loop->client.loop, &loop->interrupt);
}

/* It only wakes the loop. */
static void on_every(struct ev_loop *ev, ev_timer *w, int events)
{
    (void)ev;
    (void)w;
    (void)events;
}

int loop_until(struct bench_loop *loop, int every_ms, bool (*over)(void *), void *arg)
{
    struct client *c = &loop->client;
    ev_timer every;

    ev_timer_init(&every, on_every, every_ms / 1000., every_ms / 1000.);
    if (every_ms > 0) {
        ev_now_update(c->loop);
        ev_timer_start(c->loop, &every);
    }

    while (c->l && !loop->signum && !over(arg)) {
        ev_run(c->loop, EVRUN_ONCE);
    }

    ev_timer_stop(c->loop, &every);

    if (loop->signum) {
        return 128 + loop->signum;
    }
    if (c->l) {
        return DONE;
    }

    return c->code ? c->code : DOWN;
}

static bool is_later(void *arg)
{
    const int64_t *end_ms = arg;
    return monotonic_ms() >= *end_ms;
}

int loop_wait(struct bench_loop *loop, int64_t ms)
{
    int64_t end_ms = monotonic_ms() + ms;
    return loop_until(loop, (int)(ms < LOOK_MS ? ms : LOOK_MS), is_later, &end_ms);
}

void loop_set_progress(struct bench_loop *loop, void (*print)(void *), void *arg)
{
    ev_timer_stop(loop->client.loop, &loop->progress);
    loop->print_progress = print;
    loop->progress_arg = arg;

    if (print) {
        ev_now_update(loop->client.loop);
        loop->progress_start_s = ev_now(loop->client.loop);
        ev_timer_set(&loop->progress, progress_s, progress_s);
        ev_timer_start(loop->client.loop, &loop->progress);
    }
}
