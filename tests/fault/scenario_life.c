/* SPDX-License-Identifier: MIT */
/* Scenes: ends, calls from within callbacks, lost connections, several handles. */
#include "scenario.h"
#include <stdio.h>

static void some(struct play *p, int n, int64_t delay_ms)
{
    for (int i = 0; i < n; i++) {
        char id[16];
        snprintf(id, sizeof id, "j%d", p->n++);
        play_schedule(p, "q", id, delay_ms);
    }
}

static void ran(struct play *p)
{
    play_until(p, play_ran(p));
    play_wait(p);
}

/* ---- ends ---- */
static void close_with_requests_waiting(struct play *p)
{
    struct lapse *l = play_open(p);
    some(p, 10, HOUR);
    play_close(p, l, 1000);
    play_all_closed(p);
}

static void close_while_connecting(struct play *p)
{
    struct lapse *l = play_open(p);
    p->want = LAPSE_ECLOSED;
    play_get(p, "q", "a");
    play_close(p, l, 0);
    play_all_closed(p);
}

static void close_while_listening(struct play *p)
{
    play_open(p);
    play_handle(p, "q", 0, play_done);
    play_handle(p, "r", 0, play_done);
    some(p, 4, HOUR);
    play_wait(p);
    play_close(p, p->l, 1000);
    play_all_closed(p);
}

static void close_and_settle_within_the_grace(struct play *p)
{
    struct lapse *l = play_open(p);

    play_handle(p, "q", 0, play_keep);
    some(p, 3, 0);
    ran(p);
    play_close(p, l, 5000);
    play_settle_held(p);
    play_all_closed(p);
}

static void close_and_settle_too_late(struct play *p)
{
    play_open(p);
    play_handle(p, "q", 0, play_keep);
    some(p, 3, 0);
    ran(p);
    play_close(p, p->l, 0);
    play_all_closed(p);
    for (unsigned i = 0; i < p->n_held; i++) {
        PLAY_ASSERT(lapse_job_id(p->held[i]));
    }

    play_drop_held(p);
}

static void close_in_the_middle_of_everything(struct play *p)
{
    struct lapse *l = play_open(p);

    play_handle(p, "q", 3, play_keep);
    play_handle(p, "r", 0, play_done);
    some(p, 5, 0);
    play_until(p, play_ran(p) || p->n_held);
    p->want = ANY;
    play_list(p, "q", LAPSE_WAITING, NULL, 5);
    p->want = ANY;
    play_depth(p, "q");
    play_close(p, l, 0);
    play_all_closed(p);
    play_drop_held(p);
}

static void abandon_with_jobs_held(struct play *p)
{
    play_open(p);
    play_handle(p, "q", 0, play_keep);
    some(p, 2, 0);
    ran(p);
    play_abandon(p, p->l);
    play_drop_held(p);
}

/* ---- from within ---- */
static void then_ask(struct play *p)
{
    play_get(p, "q", "j0");
    play_depth(p, "q");
    play_cancel(p, "q", "j0");
}

static void ask_in_an_answer(struct play *p)
{
    play_open(p);
    p->then = then_ask;
    some(p, 1, HOUR);
    play_wait(p);
}

static void then_close(struct play *p)
{
    play_close(p, p->l, 1000);
}

static void close_in_an_answer(struct play *p)
{
    play_open(p);
    p->then = then_close;
    some(p, 3, HOUR);
    play_until(p, !p->l);
    play_all_closed(p);
}

static void then_abandon(struct play *p)
{
    play_abandon(p, p->l);
}

static void abandon_in_an_answer(struct play *p)
{
    play_open(p);
    p->then = then_abandon;
    some(p, 3, HOUR);
    play_until(p, !p->l);
}

static void then_open(struct play *p)
{
    play_open(p);
}

static void open_in_an_answer(struct play *p)
{
    play_open(p);
    p->then = then_open;
    some(p, 1, HOUR);
    play_wait(p);
    play_until(p, p->handles[1]);
}

static void then_listen(struct play *p)
{
    play_handle(p, "q", 0, play_done);
}

static void listen_in_an_answer(struct play *p)
{
    play_open(p);
    p->then = then_listen;
    some(p, 2, 0);
    play_wait(p);
    ran(p);
}

static void then_nest(struct play *p)
{
    some(p, 1, HOUR);
    unsigned want = p->answered + 1;
    play_until(p, p->answered >= want);
}

static void nest_the_loop_in_an_answer(struct play *p)
{
    play_open(p);
    p->then = then_nest;
    some(p, 1, HOUR);
    play_wait(p);
}

static void asks(struct play *p, struct lapse_job *job)
{
    if (p->runs == 1) {
        some(p, 2, 0);
        play_get(p, "q", "j0");
        p->want = LAPSE_EBUSY;
        play_cancel(p, "q", "j0");
        play_keep(p, job);
    } else {
        play_done(p, job);
    }
}

static void ask_in_a_handler(struct play *p)
{
    play_open(p);
    play_handle(p, "q", 0, asks);
    some(p, 1, 0);
    ran(p);
}

static void stops(struct play *p, struct lapse_job *job)
{
    play_stop(p, "q");
    play_handle(p, "q", 0, play_done);
    play_done(p, job);
}

static void change_the_handler_in_a_handler(struct play *p)
{
    play_open(p);
    play_handle(p, "q", 0, stops);
    some(p, 3, 0);
    ran(p);
}

static void settles_the_last(struct play *p, struct lapse_job *job)
{
    play_settle_held(p);
    play_keep(p, job);
}

static void settle_another_in_a_handler(struct play *p)
{
    play_open(p);
    play_handle(p, "q", 0, settles_the_last);
    some(p, 4, 0);
    ran(p);
}

static void closes(struct play *p, struct lapse_job *job)
{
    play_done(p, job);
    play_close(p, p->l, 1000);
}

static void close_in_a_handler(struct play *p)
{
    play_open(p);
    play_handle(p, "q", 1, closes);
    some(p, 3, 0);
    play_until(p, !p->l || play_ran(p));
    play_all_closed(p);
}

static void abandons(struct play *p, struct lapse_job *job)
{
    play_keep(p, job);
    play_abandon(p, p->l);
}

static void abandon_in_a_handler(struct play *p)
{
    play_open(p);
    play_handle(p, "q", 0, abandons);
    some(p, 3, 0);
    play_until(p, !p->l || play_ran(p));
    play_drop_held(p);
}

static void nests(struct play *p, struct lapse_job *job)
{
    play_done(p, job);
    if (p->runs == 1) {
        play_until(p, p->settled);
    }
}

static void nest_the_loop_in_a_handler(struct play *p)
{
    play_open(p);
    play_handle(p, "q", 0, nests);
    some(p, 3, 0);
    ran(p);
}

/* ---- lost connections: what Redis does to them is no lie either ---- */
static void lose(struct play *p, const char *type)
{
    PLAY_REDIS(p, "CLIENT KILL TYPE %s", type);
}

static void lose_the_connection_when_idle(struct play *p)
{
    play_open(p);
    some(p, 1, HOUR);
    play_wait(p);
    lose(p, "normal");
    p->want = ANY;
    some(p, 1, HOUR);
    p->want = ANY;
    play_depth(p, "q");
    play_wait(p);
}

static void lose_the_subscription(struct play *p)
{
    play_open(p);
    play_handle(p, "q", 0, play_done);
    some(p, 1, 0);
    ran(p);
    lose(p, "pubsub");
    some(p, 2, 20);
    ran(p);
}

static void lose_both_with_jobs_held(struct play *p)
{
    play_open(p);
    play_handle(p, "q", 0, play_keep);
    some(p, 3, 0);
    ran(p);
    lose(p, "pubsub");
    lose(p, "normal");
    play_settle_held(p);
    play_wait(p);
    some(p, 2, 0);
    ran(p);
}

static void lose_the_scripts(struct play *p)
{
    play_open(p);
    play_handle(p, "q", 0, play_done);
    some(p, 2, 0);
    ran(p);
    PLAY_REDIS(p, "SCRIPT FLUSH");
    some(p, 3, 0);
    p->want = LAPSE_ENOENT;
    play_get(p, "q", "j0");
    ran(p);
}

static void lose_the_connection_in_a_burst(struct play *p)
{
    play_open(p);
    play_handle(p, "q", 0, play_done);
    some(p, 30, 10);
    play_wait(p);
    lose(p, "normal");
    ran(p);
}

/* ---- several handles ---- */
static void one_asks_another_listens(struct play *p)
{
    struct lapse *asker = play_open(p);
    struct lapse *listener = play_open(p);

    p->l = listener;
    play_handle(p, "q", 0, play_done);
    p->l = asker;
    some(p, 5, 5);
    ran(p);
}

static void two_listen_to_one_queue(struct play *p)
{
    struct lapse *first = play_open(p);
    struct lapse *second = play_open(p);

    play_handle(p, "q", 0, play_done);
    p->l = second;
    play_handle(p, "q", 0, play_done);
    p->l = first;
    some(p, 10, 10);
    ran(p);
}

static void one_leaves_two_stay(struct play *p)
{
    struct lapse *l[3];

    for (int i = 0; i < 3; i++) {
        l[i] = play_open(p);
        p->l = l[i];
        play_handle(p, "q", 0, play_done);
    }

    p->l = l[1];
    some(p, 6, 30);
    play_wait(p);
    play_close(p, l[0], 1000);
    ran(p);
}

static void open_and_close_crosswise(struct play *p)
{
    struct lapse *first = play_open(p);
    struct lapse *second = play_open(p);

    some(p, 1, HOUR);
    play_close(p, first, 1000);
    p->l = second;
    some(p, 1, HOUR);
    p->l = play_open(p);
    some(p, 1, HOUR);
    play_close(p, second, 1000);
    play_wait(p);
}

const struct scenario scenarios_life[] = {
    SCENARIO(close_with_requests_waiting),
    SCENARIO(close_while_connecting),
    SCENARIO(close_while_listening),
    SCENARIO(close_and_settle_within_the_grace),
    SCENARIO(close_and_settle_too_late),
    SCENARIO(close_in_the_middle_of_everything),
    SCENARIO(abandon_with_jobs_held),
    SCENARIO(ask_in_an_answer),
    SCENARIO(close_in_an_answer),
    SCENARIO(abandon_in_an_answer),
    SCENARIO(open_in_an_answer),
    SCENARIO(listen_in_an_answer),
    SCENARIO(nest_the_loop_in_an_answer),
    SCENARIO(ask_in_a_handler),
    SCENARIO(change_the_handler_in_a_handler),
    SCENARIO(settle_another_in_a_handler),
    SCENARIO(close_in_a_handler),
    SCENARIO(abandon_in_a_handler),
    SCENARIO(nest_the_loop_in_a_handler),
    SCENARIO(lose_the_connection_when_idle),
    SCENARIO(lose_the_subscription),
    SCENARIO(lose_both_with_jobs_held),
    SCENARIO(lose_the_scripts),
    SCENARIO(lose_the_connection_in_a_burst),
    SCENARIO(one_asks_another_listens),
    SCENARIO(two_listen_to_one_queue),
    SCENARIO(one_leaves_two_stay),
    SCENARIO(open_and_close_crosswise),
    {NULL, NULL, false},
};
