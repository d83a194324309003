/* SPDX-License-Identifier: MIT */
/* Scenes: ends, calls from within callbacks, lost connections, several handles. */
#include "torture.h"
#include <stdio.h>

static void some(struct torture *t, int n, int64_t delay_ms)
{
    for (int i = 0; i < n; i++) {
        char id[16];
        snprintf(id, sizeof id, "j%d", t->n++);
        t_schedule(t, "q", id, delay_ms);
    }
}

static void ran(struct torture *t)
{
    t_until(t, t_ran(t));
    t_wait(t);
}

/* ---- ends ---- */
static void close_with_requests_waiting(struct torture *t)
{
    struct lapse *l = t_open(t);
    some(t, 10, HOUR);
    t_close(t, l, 1000);
    t_all_closed(t);
}

static void close_while_connecting(struct torture *t)
{
    struct lapse *l = t_open(t);
    t->want = LAPSE_ECLOSED;
    t_get(t, "q", "a");
    t_close(t, l, 0);
    t_all_closed(t);
}

static void close_while_listening(struct torture *t)
{
    t_open(t);
    t_handle(t, "q", 0, t_done);
    t_handle(t, "r", 0, t_done);
    some(t, 4, HOUR);
    t_wait(t);
    t_close(t, t->l, 1000);
    t_all_closed(t);
}

static void close_and_settle_within_the_grace(struct torture *t)
{
    struct lapse *l = t_open(t);

    t_handle(t, "q", 0, t_keep);
    some(t, 3, 0);
    ran(t);
    t_close(t, l, 5000);
    t_settle_held(t);
    t_all_closed(t);
}

static void close_and_settle_too_late(struct torture *t)
{
    t_open(t);
    t_handle(t, "q", 0, t_keep);
    some(t, 3, 0);
    ran(t);
    t_close(t, t->l, 0);
    t_all_closed(t);
    for (unsigned i = 0; i < t->n_held; i++) {
        T_ASSERT(lapse_job_id(t->held[i]));
    }

    t_drop_held(t);
}

static void close_in_the_middle_of_everything(struct torture *t)
{
    struct lapse *l = t_open(t);

    t_handle(t, "q", 3, t_keep);
    t_handle(t, "r", 0, t_done);
    some(t, 5, 0);
    t_until(t, t_ran(t) || t->n_held);
    t->want = ANY;
    t_list(t, "q", LAPSE_WAITING, NULL, 5);
    t->want = ANY;
    t_depth(t, "q");
    t_close(t, l, 0);
    t_all_closed(t);
    t_drop_held(t);
}

static void abandon_with_jobs_held(struct torture *t)
{
    t_open(t);
    t_handle(t, "q", 0, t_keep);
    some(t, 2, 0);
    ran(t);
    t_abandon(t, t->l);
    t_drop_held(t);
}

/* ---- from within ---- */
static void then_ask(struct torture *t)
{
    t_get(t, "q", "j0");
    t_depth(t, "q");
    t_cancel(t, "q", "j0");
}
static void ask_in_an_answer(struct torture *t)
{
    t_open(t);
    t->then = then_ask;
    some(t, 1, HOUR);
    t_wait(t);
}

static void then_close(struct torture *t)
{
    t_close(t, t->l, 1000);
}
static void close_in_an_answer(struct torture *t)
{
    t_open(t);
    t->then = then_close;
    some(t, 3, HOUR);
    t_until(t, !t->l);
    t_all_closed(t);
}

static void then_abandon(struct torture *t)
{
    t_abandon(t, t->l);
}
static void abandon_in_an_answer(struct torture *t)
{
    t_open(t);
    t->then = then_abandon;
    some(t, 3, HOUR);
    t_until(t, !t->l);
}

static void then_open(struct torture *t)
{
    t_open(t);
}
static void open_in_an_answer(struct torture *t)
{
    t_open(t);
    t->then = then_open;
    some(t, 1, HOUR);
    t_wait(t);
    t_until(t, t->handles[1]);
}

static void then_listen(struct torture *t)
{
    t_handle(t, "q", 0, t_done);
}
static void listen_in_an_answer(struct torture *t)
{
    t_open(t);
    t->then = then_listen;
    some(t, 2, 0);
    t_wait(t);
    ran(t);
}

static void then_nest(struct torture *t)
{
    some(t, 1, HOUR);
    unsigned want = t->answered + 1;
    t_until(t, t->answered >= want);
}
static void nest_the_loop_in_an_answer(struct torture *t)
{
    t_open(t);
    t->then = then_nest;
    some(t, 1, HOUR);
    t_wait(t);
}

static void asks(struct torture *t, struct lapse_job *job)
{
    if (t->runs == 1) {
        some(t, 2, 0);
        t_get(t, "q", "j0");
        t->want = LAPSE_EBUSY;
        t_cancel(t, "q", "j0");
        t_keep(t, job);
    } else {
        t_done(t, job);
    }
}
static void ask_in_a_handler(struct torture *t)
{
    t_open(t);
    t_handle(t, "q", 0, asks);
    some(t, 1, 0);
    ran(t);
}

static void stops(struct torture *t, struct lapse_job *job)
{
    t_stop(t, "q");
    t_handle(t, "q", 0, t_done);
    t_done(t, job);
}
static void change_the_handler_in_a_handler(struct torture *t)
{
    t_open(t);
    t_handle(t, "q", 0, stops);
    some(t, 3, 0);
    ran(t);
}

static void settles_the_last(struct torture *t, struct lapse_job *job)
{
    t_settle_held(t);
    t_keep(t, job);
}
static void settle_another_in_a_handler(struct torture *t)
{
    t_open(t);
    t_handle(t, "q", 0, settles_the_last);
    some(t, 4, 0);
    ran(t);
}

static void closes(struct torture *t, struct lapse_job *job)
{
    t_done(t, job);
    t_close(t, t->l, 1000);
}
static void close_in_a_handler(struct torture *t)
{
    t_open(t);
    t_handle(t, "q", 1, closes);
    some(t, 3, 0);
    t_until(t, !t->l || t_ran(t));
    t_all_closed(t);
}

static void abandons(struct torture *t, struct lapse_job *job)
{
    t_keep(t, job);
    t_abandon(t, t->l);
}
static void abandon_in_a_handler(struct torture *t)
{
    t_open(t);
    t_handle(t, "q", 0, abandons);
    some(t, 3, 0);
    t_until(t, !t->l || t_ran(t));
    t_drop_held(t);
}

static void nests(struct torture *t, struct lapse_job *job)
{
    t_done(t, job);
    if (t->runs == 1) {
        t_until(t, t->settled);
    }
}
static void nest_the_loop_in_a_handler(struct torture *t)
{
    t_open(t);
    t_handle(t, "q", 0, nests);
    some(t, 3, 0);
    ran(t);
}

/* ---- lost connections: what Redis does to them is no lie either ---- */
static void lose(struct torture *t, const char *type)
{
    T_REDIS(t, "CLIENT KILL TYPE %s", type);
}

static void lose_the_connection_when_idle(struct torture *t)
{
    t_open(t);
    some(t, 1, HOUR);
    t_wait(t);
    lose(t, "normal");
    t->want = ANY;
    some(t, 1, HOUR);
    t->want = ANY;
    t_depth(t, "q");
    t_wait(t);
}

static void lose_the_subscription(struct torture *t)
{
    t_open(t);
    t_handle(t, "q", 0, t_done);
    some(t, 1, 0);
    ran(t);
    lose(t, "pubsub");
    some(t, 2, 20);
    ran(t);
}

static void lose_both_with_jobs_held(struct torture *t)
{
    t_open(t);
    t_handle(t, "q", 0, t_keep);
    some(t, 3, 0);
    ran(t);
    lose(t, "pubsub");
    lose(t, "normal");
    t_settle_held(t);
    t_wait(t);
    some(t, 2, 0);
    ran(t);
}

static void lose_the_scripts(struct torture *t)
{
    t_open(t);
    t_handle(t, "q", 0, t_done);
    some(t, 2, 0);
    ran(t);
    T_REDIS(t, "SCRIPT FLUSH");
    some(t, 3, 0);
    t->want = LAPSE_ENOENT;
    t_get(t, "q", "j0");
    ran(t);
}

static void lose_the_connection_in_a_burst(struct torture *t)
{
    t_open(t);
    t_handle(t, "q", 0, t_done);
    some(t, 30, 10);
    t_wait(t);
    lose(t, "normal");
    ran(t);
}

/* ---- several handles ---- */
static void one_asks_another_listens(struct torture *t)
{
    struct lapse *asker = t_open(t);
    struct lapse *listener = t_open(t);

    t->l = listener;
    t_handle(t, "q", 0, t_done);
    t->l = asker;
    some(t, 5, 5);
    ran(t);
}

static void two_listen_to_one_queue(struct torture *t)
{
    struct lapse *first = t_open(t);
    struct lapse *second = t_open(t);

    t_handle(t, "q", 0, t_done);
    t->l = second;
    t_handle(t, "q", 0, t_done);
    t->l = first;
    some(t, 10, 10);
    ran(t);
}

static void one_leaves_two_stay(struct torture *t)
{
    struct lapse *l[3];

    for (int i = 0; i < 3; i++) {
        l[i] = t_open(t);
        t->l = l[i];
        t_handle(t, "q", 0, t_done);
    }

    t->l = l[1];
    some(t, 6, 30);
    t_wait(t);
    t_close(t, l[0], 1000);
    ran(t);
}

static void open_and_close_crosswise(struct torture *t)
{
    struct lapse *first = t_open(t);
    struct lapse *second = t_open(t);

    some(t, 1, HOUR);
    t_close(t, first, 1000);
    t->l = second;
    some(t, 1, HOUR);
    t->l = t_open(t);
    some(t, 1, HOUR);
    t_close(t, second, 1000);
    t_wait(t);
}

const struct scene scenes_life[] = {
    SCENE(close_with_requests_waiting),
    SCENE(close_while_connecting),
    SCENE(close_while_listening),
    SCENE(close_and_settle_within_the_grace),
    SCENE(close_and_settle_too_late),
    SCENE(close_in_the_middle_of_everything),
    SCENE(abandon_with_jobs_held),
    SCENE(ask_in_an_answer),
    SCENE(close_in_an_answer),
    SCENE(abandon_in_an_answer),
    SCENE(open_in_an_answer),
    SCENE(listen_in_an_answer),
    SCENE(nest_the_loop_in_an_answer),
    SCENE(ask_in_a_handler),
    SCENE(change_the_handler_in_a_handler),
    SCENE(settle_another_in_a_handler),
    SCENE(close_in_a_handler),
    SCENE(abandon_in_a_handler),
    SCENE(nest_the_loop_in_a_handler),
    SCENE(lose_the_connection_when_idle),
    SCENE(lose_the_subscription),
    SCENE(lose_both_with_jobs_held),
    SCENE(lose_the_scripts),
    SCENE(lose_the_connection_in_a_burst),
    SCENE(one_asks_another_listens),
    SCENE(two_listen_to_one_queue),
    SCENE(one_leaves_two_stay),
    SCENE(open_and_close_crosswise),
    {NULL, NULL, false},
};
