/* SPDX-License-Identifier: MIT */
#include "listen/slots.h"
#include <criterion/criterion.h>

enum { QUEUES = 4 };

static struct slots all;
static struct share shares[QUEUES];
static unsigned n_due;

static void on_backlog_due(void *arg)
{
    (void)arg;
    n_due++;
}

static void begin(unsigned max, unsigned max_of_first)
{
    slots_init(&all, max, on_backlog_due, NULL);
    for (unsigned i = 0; i < QUEUES; i++) {
        struct share_spec spec = {.max = i == 0 ? max_of_first : 0, .weight = 1};
        cr_assert_eq(share_init(&shares[i], &all, &spec), 0);
    }
    n_due = 0;
}

static void end(void)
{
    for (unsigned i = 0; i < QUEUES; i++) {
        share_end(&shares[i]);
    }
    slots_close(&all);
}

Test(slots, are_free_until_claims_and_jobs_have_them_all)
{
    begin(10, 0);
    cr_assert(slots_unused(&all));

    share_claim(&shares[0], 6);
    share_hold(&shares[1]);
    cr_assert_eq(share_free(&shares[2]), 3);

    share_claim(&shares[1], 3);
    cr_assert_eq(share_free(&shares[0]), 0);
    cr_assert_eq(share_free(&shares[2]), 0);

    share_unclaim(&shares[0], 6);
    share_unclaim(&shares[1], 3);
    share_unhold(&shares[1]);
    cr_assert(slots_unused(&all) && share_unused(&shares[0]) && share_unused(&shares[1]));
    end();
}

Test(slots, of_a_queue_stay_within_its_own_limit_and_that_of_all)
{
    begin(10, 3);
    cr_assert_eq(share_free(&shares[0]), 3);

    share_claim(&shares[0], 2);
    cr_assert_eq(share_free(&shares[0]), 1);
    cr_assert_eq(share_free(&shares[1]), 8);

    share_claim(&shares[1], 8);
    cr_assert_eq(share_free(&shares[0]), 0);

    share_unclaim(&shares[1], 8);
    share_hold(&shares[0]);
    cr_assert_eq(share_free(&shares[0]), 0);
    end();
}

Test(slots, are_shared_with_the_queues_that_wait)
{
    begin(120, 0);
    cr_assert_eq(share_fair(&shares[0]), 100, "a claim asks for no more than a call can bring");

    share_join_backlog(&shares[1], LAPSE_VIA_EVENT);
    share_join_backlog(&shares[2], LAPSE_VIA_EVENT);
    cr_assert_eq(share_fair(&shares[0]), 40);

    share_claim(&shares[3], 119);
    cr_assert_eq(share_fair(&shares[0]), 1, "one at least");
    end();
}

static unsigned order[2 * QUEUES];
static unsigned n_served;

/* Each takes a slot, and wants more. */
static void serve(struct share *s)
{
    order[n_served++] = (unsigned)(s - shares);
    share_claim(s, 1);
    share_join_backlog(s, s->via);
}

Test(slots, go_round_among_the_queues_that_wait)
{
    begin(2, 0);
    n_served = 0;
    for (unsigned i = 0; i < QUEUES; i++) {
        share_join_backlog(&shares[i], LAPSE_VIA_SWEEP);
    }

    slots_serve_backlog(&all, serve);
    cr_assert_eq(n_served, 2);
    share_unclaim(&shares[0], 1);
    share_unclaim(&shares[1], 1);
    slots_serve_backlog(&all, serve);
    cr_assert_eq(n_served, 4);

    for (unsigned i = 0; i < QUEUES; i++) {
        cr_assert_eq(order[i], i, "place %u", i);
    }
    end();
}

/* ---- a limit that queues have together ---- */
static struct cap *begin_capped(unsigned max, unsigned n_capped)
{
    struct cap *cap = cap_new(max);

    slots_init(&all, 100, on_backlog_due, NULL);
    for (unsigned i = 0; i < QUEUES; i++) {
        struct share_spec spec = {.cap = i < n_capped ? cap : NULL, .weight = 1};
        cr_assert_eq(share_init(&shares[i], &all, &spec), 0);
    }
    n_served = 0;
    return cap;
}

Test(slots, of_queues_with_one_limit_stay_within_it_together)
{
    struct cap *cap = begin_capped(5, 3);

    share_claim(&shares[0], 3);
    share_hold(&shares[1]);
    cr_assert_eq(share_free(&shares[0]), 1);
    cr_assert_eq(share_free(&shares[2]), 1);
    cr_assert_eq(share_free(&shares[3]), 96, "it is none of them");
    share_claim(&shares[2], 1);
    cr_assert_eq(share_free(&shares[1]), 0);
    share_unhold(&shares[1]);
    cr_assert_eq(share_free(&shares[1]), 1);

    cap_release(cap);
    end();
}

/* As serve(), where one is free. */
static void serve_free(struct share *s)
{
    if (share_free(s) > 0) {
        serve(s);
    } else {
        share_join_backlog(s, s->via);
    }
}

/* Each slot is of who has waited for longest, and is lost to nobody. */
Test(slots, of_one_limit_go_round_among_the_queues_that_wait_for_it)
{
    struct cap *cap = begin_capped(1, QUEUES);

    share_claim(&shares[0], 1);
    for (unsigned i = 1; i < QUEUES; i++) {
        share_join_backlog(&shares[i], LAPSE_VIA_EVENT);
    }
    slots_serve_backlog(&all, serve_free);
    cr_assert_eq(n_served, 0);

    for (unsigned i = 0; i < 2 * QUEUES; i++) {
        share_unclaim(&shares[i == 0 ? 0 : order[i - 1]], 1);
        slots_serve_backlog(&all, serve_free);
        cr_assert_eq(n_served, i + 1);
        cr_assert_eq(order[i], 1 + i % (QUEUES - 1), "place %u", i);
    }

    cap_release(cap);
    end();
}

static void leave(struct share *s)
{
    order[n_served++] = (unsigned)(s - shares);
}

/* As where its gate is closed, or it is stopped. */
Test(slots, of_one_limit_that_a_queue_does_not_take_are_the_next_ones)
{
    struct cap *cap = begin_capped(1, QUEUES);

    share_claim(&shares[0], 1);
    for (unsigned i = 1; i < QUEUES; i++) {
        share_join_backlog(&shares[i], LAPSE_VIA_EVENT);
    }
    share_leave_backlog(&shares[1]);
    share_unclaim(&shares[0], 1);
    slots_serve_backlog(&all, leave);
    cr_assert_eq(n_served, 2);
    cr_assert(order[0] == 2 && order[1] == 3);

    share_claim(&shares[0], 1);
    share_join_backlog(&shares[1], LAPSE_VIA_EVENT);
    share_join_backlog(&shares[2], LAPSE_VIA_EVENT);
    share_unclaim(&shares[0], 1);
    share_leave_backlog(&shares[1]);
    slots_serve_backlog(&all, leave);
    cr_assert_eq(n_served, 3);
    cr_assert_eq(order[2], 2);

    cap_release(cap);
    end();
}

Test(slots, that_change_are_news_for_queues_that_wait_and_no_others)
{
    begin(10, 0);
    share_claim(&shares[0], 1);
    share_unclaim(&shares[0], 1);
    cr_assert_eq(n_due, 0);

    share_join_backlog(&shares[1], LAPSE_VIA_EVENT);
    share_hold(&shares[0]);
    cr_assert_eq(n_due, 1);

    share_leave_backlog(&shares[1]);
    share_unhold(&shares[0]);
    cr_assert_eq(n_due, 1);
    end();
}

Test(slots, are_owed_to_the_others_that_wait)
{
    begin(10, 0);
    cr_assert(!share_others_wait(&shares[0]));

    share_join_backlog(&shares[0], LAPSE_VIA_EVENT);
    cr_assert(!share_others_wait(&shares[0]));
    cr_assert(share_others_wait(&shares[1]));

    share_join_backlog(&shares[1], LAPSE_VIA_EVENT);
    cr_assert(share_others_wait(&shares[0]));
    end();
}

Test(slots, of_its_own_that_are_full_keep_a_queue_out_of_the_backlog_until_one_is_free)
{
    begin(10, 1);
    share_hold(&shares[0]);
    share_join_backlog(&shares[0], LAPSE_VIA_ALARM);
    cr_assert_eq(all.backlog.n_waiting, 0);

    share_unhold(&shares[0]);
    cr_assert_eq(all.backlog.n_waiting, 1);
    cr_assert_eq(shares[0].via, LAPSE_VIA_ALARM);
    cr_assert_eq(n_due, 1);
    end();
}

Test(slots, are_wanted_once_however_many_hints_come)
{
    begin(10, 0);
    share_join_backlog(&shares[0], LAPSE_VIA_EVENT);
    share_join_backlog(&shares[0], LAPSE_VIA_SWEEP);
    cr_assert_eq(all.backlog.n_waiting, 1);
    cr_assert_eq(shares[0].via, LAPSE_VIA_SWEEP);

    share_leave_backlog(&shares[0]);
    share_leave_backlog(&shares[0]);
    cr_assert_eq(all.backlog.n_waiting, 0);
    end();
}

Test(slots, of_a_queue_that_asks_are_those_it_wants_however_many_it_holds)
{
    begin(10, 0);
    share_want(&shares[0], 0);
    cr_assert_eq(share_free(&shares[0]), 0);

    share_want(&shares[0], 4);
    cr_assert_eq(share_free(&shares[0]), 4);
    share_claim(&shares[0], 3);
    cr_assert_eq(share_free(&shares[0]), 1);
    share_unclaim(&shares[0], 3);
    for (int i = 0; i < 3; i++) {
        share_hold(&shares[0]);
    }
    cr_assert_eq(share_free(&shares[0]), 4);

    share_want(&shares[0], 20);
    cr_assert_eq(share_free(&shares[0]), 7, "those of all are its limit too");
    share_claim(&shares[0], 7);
    share_want(&shares[0], 2);
    cr_assert_eq(share_free(&shares[0]), 0);
    end();
}

Test(slots, that_a_queue_did_not_want_serve_its_hint_when_it_wants_some)
{
    begin(10, 0);
    share_want(&shares[0], 0);
    share_join_backlog(&shares[0], LAPSE_VIA_EVENT);
    cr_assert_eq(all.backlog.n_waiting, 0);
    share_want(&shares[0], 1);
    cr_assert_eq(all.backlog.n_waiting, 1);
    cr_assert_eq(n_due, 1);
    end();
}

/* ---- many jobs ---- */
/* Queues that have jobs without end, on a Redis that answers a claim after some steps, and handlers
 * that take some steps for a job. */
enum { SIM_STEPS = 512, SIM_QUEUES = 3, SIM_JOBS = 100000 };

static struct sim {
    unsigned way;                 /* of a claim, in steps */
    unsigned lengths[SIM_QUEUES]; /* of a job */
    unsigned answers[SIM_QUEUES]; /* the step at which its claim is answered; 0: none is sent */
    unsigned n_asked[SIM_QUEUES];
    unsigned ends[SIM_QUEUES][SIM_STEPS]; /* jobs that end then, step by step, in a ring */
    unsigned taken[SIM_QUEUES];
    unsigned n_taken;
    unsigned step;
} sim;

static void sim_serve(struct share *s)
{
    unsigned i = (unsigned)(s - shares);

    cr_assert_eq(sim.answers[i], 0);
    sim.n_asked[i] = share_fair(s);
    sim.answers[i] = sim.step + sim.way;
    share_ask(s, sim.n_asked[i]);
}

static void sim_answer(unsigned i)
{
    struct share *s = &shares[i];

    sim.answers[i] = 0;
    share_unclaim(s, sim.n_asked[i]);
    for (unsigned k = 0; k < sim.n_asked[i] && sim.n_taken < SIM_JOBS; k++) {
        share_hold(s);
        sim.taken[i]++;
        sim.n_taken++;
        sim.ends[i][(sim.step + sim.lengths[i]) % SIM_STEPS]++;
    }
    share_note_more(s);
    share_join_backlog(s, LAPSE_VIA_SWEEP);
    share_answered(s);
}

static void sim_turn(void)
{
    sim.step++;
    for (unsigned i = 0; i < SIM_QUEUES; i++) {
        unsigned *n_ends = &sim.ends[i][sim.step % SIM_STEPS];
        for (; *n_ends > 0; --*n_ends) {
            share_unhold(&shares[i]);
        }
        if (sim.answers[i] == sim.step) {
            sim_answer(i);
        }
    }
    slots_serve_backlog(&all, sim_serve);
}

static void sim_begin(unsigned max, const unsigned weights[SIM_QUEUES],
                      const unsigned lengths[SIM_QUEUES], unsigned way)
{
    sim = (struct sim){.way = way};
    slots_init(&all, max, on_backlog_due, NULL);
    for (unsigned i = 0; i < SIM_QUEUES; i++) {
        struct share_spec spec = {.weight = weights[i]};
        cr_assert_eq(share_init(&shares[i], &all, &spec), 0);
        sim.lengths[i] = lengths[i];
        share_join_backlog(&shares[i], LAPSE_VIA_SWEEP);
    }
    backlog_end_round(&all.backlog); /* no slot was free in the turn in which they came */
}

static void sim_run(void)
{
    while (sim.n_taken < SIM_JOBS) {
        sim_turn();
    }
    for (unsigned i = 0; i < SIM_QUEUES; i++) {
        share_end(&shares[i]);
    }
    slots_close(&all);
}

/* None is further from its part than by the window, what is asked for and not there yet, and a
 * job. */
static void sim_is_by_weight(const unsigned weights[SIM_QUEUES])
{
    unsigned sum = weights[0] + weights[1] + weights[2];

    for (unsigned i = 0; i < SIM_QUEUES; i++) {
        double part = (double)SIM_JOBS * weights[i] / sum;
        double most = 2.0 * weights[i] * all.max / sum + weights[i];
        double off = sim.taken[i] > part ? sim.taken[i] - part : part - sim.taken[i];
        cr_assert_leq(off, most, "%u slots, %u %u %u, way %u: %u of queue %u instead of %.0f",
                      all.max, sim.lengths[0], sim.lengths[1], sim.lengths[2], sim.way,
                      sim.taken[i], i, part);
    }
}

static void are_given_by_weight_of(unsigned all)
{
    static const unsigned weights[SIM_QUEUES] = {6, 3, 1};
    static const unsigned ways[] = {1, 20};
    static const unsigned lengths[][SIM_QUEUES] = {
        {1, 1, 1}, {40, 1, 1}, {1, 40, 1}, {1, 1, 40}, {30, 6, 2}};

    for (unsigned l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        for (unsigned w = 0; w < sizeof ways / sizeof *ways; w++) {
            sim_begin(all, weights, lengths[l], ways[w]);
            sim_run();
            sim_is_by_weight(weights);
        }
    }
}

Test(slots, of_which_there_are_256_are_given_by_weight_however_long_jobs_take)
{
    are_given_by_weight_of(256);
}

Test(slots, of_which_there_are_10_are_given_by_weight_however_long_jobs_take)
{
    are_given_by_weight_of(10);
}

Test(slots, of_which_there_is_one_are_given_by_weight_however_long_jobs_take)
{
    are_given_by_weight_of(1);
}

Test(slots, are_given_by_weight_at_the_ends_of_what_a_weight_may_be)
{
    static const unsigned weights[SIM_QUEUES] = {1000, 1, 999};
    static const unsigned lengths[SIM_QUEUES] = {1, 2, 3};

    sim_begin(10, weights, lengths, 1);
    sim_run();
    sim_is_by_weight(weights);
}

/* With one slot in all, each is full while it has that. */
Test(slots, are_given_by_weight_to_queues_that_are_at_their_own_limits_time_and_again)
{
    static const unsigned weights[SIM_QUEUES] = {6, 3, 1};
    static const unsigned lengths[SIM_QUEUES] = {1, 2, 3};

    for (unsigned max = 1; max <= 4; max++) {
        sim_begin(max, weights, lengths, 1);
        for (unsigned i = 0; i < SIM_QUEUES; i++) {
            shares[i].max = max;
        }
        sim_run();
        sim_is_by_weight(weights);
    }
}
