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
        share_init(&shares[i], &all, i == 0 ? max_of_first : 0);
    }
    n_due = 0;
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
}

Test(slots, of_its_own_that_are_full_keep_a_queue_out_of_the_backlog_until_one_is_free)
{
    begin(10, 1);
    share_hold(&shares[0]);
    share_join_backlog(&shares[0], LAPSE_VIA_ALARM);
    cr_assert_eq(all.n_backlog, 0);

    share_unhold(&shares[0]);
    cr_assert_eq(all.n_backlog, 1);
    cr_assert_eq(shares[0].via, LAPSE_VIA_ALARM);
    cr_assert_eq(n_due, 1);
}

Test(slots, are_wanted_once_however_many_hints_come)
{
    begin(10, 0);
    share_join_backlog(&shares[0], LAPSE_VIA_EVENT);
    share_join_backlog(&shares[0], LAPSE_VIA_SWEEP);
    cr_assert_eq(all.n_backlog, 1);
    cr_assert_eq(shares[0].via, LAPSE_VIA_SWEEP);

    share_leave_backlog(&shares[0]);
    share_leave_backlog(&shares[0]);
    cr_assert_eq(all.n_backlog, 0);
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
}

Test(slots, that_a_queue_did_not_want_serve_its_hint_when_it_wants_some)
{
    begin(10, 0);
    share_want(&shares[0], 0);
    share_join_backlog(&shares[0], LAPSE_VIA_EVENT);
    cr_assert_eq(all.n_backlog, 0);
    share_want(&shares[0], 1);
    cr_assert_eq(all.n_backlog, 1);
    cr_assert_eq(n_due, 1);
}
