/* SPDX-License-Identifier: MIT */
/* Where there is nothing to do, or nothing that can be done, the loop sleeps: its turns are
 * counted, and the scripts that Redis ran. */
#include "handler.h"
#include "loop.h"
#include <signal.h>

enum { HOUR = 3600000, FOR_MS = 600 };

/* loop_for()'s own timer is one turn of them. */
static void sleeps(struct flow *f, unsigned turns, long long scripts)
{
    long long before = f->server->pid ? flow_scripts(f) : 0;
    unsigned from = ev_iteration(f->loop);

    loop_for(f->loop, FOR_MS);
    unsigned n = ev_iteration(f->loop) - from;
    cr_assert_leq(n, turns, "%u turns of the loop", n);
    if (f->server->pid) {
        cr_assert_leq(flow_scripts(f) - before, scripts, "%lld scripts", flow_scripts(f) - before);
    }
}

/* Until a listener has sent all that it sends when it starts. */
static void settle_down(struct flow *f)
{
    loop_for(f->loop, 400);
}

static void no_sweep(struct lapse_options *opts)
{
    opts->sweep_ms = 24 * HOUR;
}

Test(idle, an_open_handle_that_asks_nothing)
{
    place_not_by_sentinel("it is asked once a second");
    place_not_in_cluster("once a second it looks whether a master is used still");

    struct flow *f = flow_start(FLOW_FULL);
    cr_assert_eq(flow_schedule(f, "q", "a", HOUR, NULL), 0);
    settle_down(f);
    sleeps(f, 3, 0);
    flow_end(f, "q");
}

FLOW_ALL_MODES(idle, a_listener_whose_jobs_are_due_later)
{
    struct flow *f = flow_start_opts(mode, NULL, no_sweep);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_listen(f, "q", &w);
    for (int i = 0; i < 20; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, HOUR + i, NULL), 0);
    }

    cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    flow_until(f, w.settled == 1);
    settle_down(f);
    sleeps(f, 12, 3); /* in MUTE and STILL it looks whether events come by now */
    flow_end(f, "q");
}

FLOW_ALL_MODES(idle, a_listener_with_its_hands_full_and_more_jobs_due)
{
    struct flow *f = flow_start_opts(mode, NULL, no_sweep);
    struct flow_handler w = {.f = f, .way = FLOW_KEEP};
    struct lapse_listen_options two = {.size = sizeof two, .max_running = 2};

    for (int i = 0; i < 300; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    }

    cr_assert_eq(lapse_listen(f->l, "q", &two, flow_on_job, &w), 0);
    flow_until(f, w.n_held == 2);
    settle_down(f);
    sleeps(f, 12, 3);
    cr_assert_eq(w.n_runs, 2);
    w.way = FLOW_DONE;
    flow_settle(&w, FLOW_DONE);
    flow_until(f, w.settled == 300);
    flow_end(f, "q");
}

Test(idle, two_listeners_and_jobs_due_later)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);
    struct flow_handler w[2] = {{.way = FLOW_DONE}, {.way = FLOW_DONE}};
    struct lapse_options opts = flow_options(f);

    no_sweep(&opts);
    flow_listen(f, "q", &w[0]);
    f->l = flow_open(f, &opts);
    flow_listen(f, "q", &w[1]);
    for (int i = 0; i < 20; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, HOUR + i, NULL), 0);
    }

    settle_down(f);
    sleeps(f, 12, 2);
    flow_end(f, "q");
}

Test(idle, a_handler_that_holds_a_job)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);
    struct flow_handler w = {.way = FLOW_KEEP};

    flow_listen(f, "q", &w);
    cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    flow_until(f, w.n_held == 1);
    settle_down(f);
    sleeps(f, 8, 2);
    flow_settle(&w, FLOW_DONE);
    flow_end(f, "q");
}

/* What Redis acknowledged it still has when it comes back. With appendfsync everysec it would not:
 * while the last sync is under way it keeps what it writes to itself, for two seconds at most, and
 * a kill -9 takes that away. */
static struct flow *listener_without_redis(struct flow_handler *w, int sig)
{
    static const char *const always[] = {"--appendfsync", "always", NULL};
    struct flow *f = flow_start_opts(FLOW_FULL, always, no_sweep);

    flow_allow_log(f, "Redis");
    flow_listen(f, "q", w);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, i == 2 ? 300 : 0, NULL), 0);
    }

    flow_until(f, w->n_runs == 2); /* held, or settled */

    if (sig == SIGKILL) {
        server_kill9(f->server);
    } else {
        server_signal(f->server, sig);
    }

    return f;
}

Test(idle, without_redis)
{
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow *f = listener_without_redis(&w, SIGKILL);

    for (int i = 0; i < 5; i++) {
        cr_assert_eq(lapse_get(f->l, "q", "a", NULL, NULL), 0);
    }

    settle_down(f);
    sleeps(f, 60, 0); /* a connection is tried, a request waits */
    server_restart(f->server);
    flow_until(f, w.settled == 3);
    flow_end(f, "q");
}

Test(idle, without_redis_and_with_jobs_in_hand)
{
    struct flow_handler w = {.way = FLOW_KEEP};
    struct flow *f = listener_without_redis(&w, SIGKILL);

    settle_down(f);
    lapse_done(w.held[--w.n_held], flow_on_settled, &w);
    sleeps(f, 60, 0);
    server_restart(f->server);
    flow_until(f, w.settled == 1 && w.n_held == 2);
    flow_settle(&w, FLOW_DONE);
    cr_assert_eq(w.errors, 0);
    flow_end(f, "q");
}

Test(idle, while_redis_says_nothing)
{
    struct flow_handler w = {.way = FLOW_KEEP};
    struct flow *f = listener_without_redis(&w, SIGSTOP);

    for (int i = 0; i < 5; i++) {
        cr_assert_eq(lapse_get(f->l, "q", "a", NULL, NULL), 0);
    }

    lapse_done(w.held[--w.n_held], flow_on_settled, &w);
    loop_for(f->loop, 300);

    unsigned from = ev_iteration(f->loop);
    loop_for(f->loop, FOR_MS);
    cr_assert_leq(ev_iteration(f->loop) - from, 30);
    server_signal(f->server, SIGCONT);
    flow_until(f, w.settled == 1 && w.n_held == 2);
    flow_settle(&w, FLOW_DONE);
    flow_end(f, "q");
}

Test(idle, while_redis_refuses_everything)
{
    place_not_by_sentinel("a replica is not used");
    place_not_in_cluster("REPLICAOF is not allowed");

    struct flow_handler w = {.way = FLOW_KEEP};
    struct flow *f = listener_without_redis(&w, SIGCONT);

    flow_until(f, w.n_held == 3);
    redis_do(f->server, "REPLICAOF 127.0.0.1 1");
    lapse_done(w.held[--w.n_held], flow_on_settled, &w);
    settle_down(f);
    sleeps(f, 30, 15); /* a settle is repeated each 150 ms, a claim each 200 */
    redis_do(f->server, "REPLICAOF NO ONE");
    flow_until(f, w.settled == 1);
    flow_settle(&w, FLOW_DONE);
    cr_assert_eq(w.errors, 0);
    flow_end(f, "q");
}

static void give_up(struct ev_loop *loop, ev_timer *w, int events)
{
    (void)events;
    *(bool *)w->data = true;
    ev_break(loop, EVBREAK_ALL);
}

Test(idle, the_loop_does_not_end_while_a_handle_is_open)
{
    struct flow *f = flow_start(FLOW_FULL);
    ev_timer timer;

    for (int connected = 0; connected < 2; connected++) {
        bool over = false;
        ev_timer_init(&timer, give_up, 0.05, 0.);
        timer.data = &over;
        ev_timer_start(f->loop, &timer);
        ev_unref(f->loop); /* the timer does not keep it */
        ev_run(f->loop, 0);
        ev_ref(f->loop);
        cr_assert(over);
        cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_ENOENT);
    }

    flow_end(f, "q");
}
