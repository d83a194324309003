/* SPDX-License-Identifier: MIT */
#include "listen/level.h"
#include <criterion/criterion.h>

enum { SEATS = 3, SLOTS = 10 };

static const unsigned weights[SEATS] = {6, 3, 1};
static struct level level;
static struct seat seats[SEATS];

static void begin(const unsigned weight[SEATS])
{
    level_init(&level, SLOTS);
    for (unsigned i = 0; i < SEATS; i++) {
        seat_init(&seats[i], &level, weight[i]);
    }
}

static void all_wait(void)
{
    for (unsigned i = 0; i < SEATS; i++) {
        seat_set(&seats[i], SEAT_WAITS);
    }
}

static unsigned next(void)
{
    const struct seat *p = level_next(&level);

    cr_assert_not_null(p);
    return (unsigned)(p - seats);
}

/* It asks for n jobs, gets them, and wants more. */
static void take(unsigned i, unsigned n)
{
    seat_set(&seats[i], SEAT_ASKS);
    seat_set_asked(&seats[i], n);
    seat_set_asked(&seats[i], 0);
    for (unsigned k = 0; k < n; k++) {
        seat_take(&seats[i]);
    }
    seat_set(&seats[i], SEAT_WAITS);
}

Test(level, serves_one_job_at_a_time_by_weight_in_every_ten)
{
    begin(weights);
    all_wait();

    for (unsigned round = 0; round < 50; round++) {
        unsigned n[SEATS] = {0};
        for (unsigned i = 0; i < 10; i++) {
            unsigned p = next();
            n[p]++;
            take(p, 1);
        }
        for (unsigned p = 0; p < SEATS; p++) {
            cr_assert_eq(n[p], weights[p], "round %u: %u of seat %u", round, n[p], p);
        }
    }
}

Test(level, serves_those_with_the_same_pass_in_the_order_in_which_they_came)
{
    begin((unsigned[]){1, 1, 1});
    seat_set(&seats[2], SEAT_WAITS);
    seat_set(&seats[0], SEAT_WAITS);
    seat_set(&seats[1], SEAT_WAITS);

    static const unsigned order[] = {2, 0, 1, 2, 0, 1};
    for (unsigned i = 0; i < sizeof order / sizeof *order; i++) {
        cr_assert_eq(next(), order[i]);
        take(order[i], 1);
    }
}

/* Slots that are free go by weight to those that wait, and at least one to each. */
Test(level, has_room_by_the_weights_of_those_that_wait)
{
    begin(weights);
    cr_assert_eq(seat_room(&seats[2], 10), 10, "nobody waits");

    seat_set(&seats[1], SEAT_WAITS);
    cr_assert_eq(seat_room(&seats[1], 10), 10, "nobody else waits");

    all_wait();
    cr_assert_eq(seat_room(&seats[0], 10), 6);
    cr_assert_eq(seat_room(&seats[1], 10), 3);
    cr_assert_eq(seat_room(&seats[2], 10), 1);
    cr_assert_eq(seat_room(&seats[2], 9), 0);
    seat_set(&seats[0], SEAT_OUT);
    cr_assert_eq(seat_room(&seats[1], 8), 6, "as if it were alone with the third");
}

/* The window: 10 slots, and the weights are 10 together, so one job of weight 1. */
Test(level, lets_who_is_ahead_wait_for_the_claim_of_the_least)
{
    begin(weights);
    all_wait();
    seat_set(&seats[0], SEAT_ASKS);
    seat_set_asked(&seats[0], 1);

    take(1, 4); /* to 1.33, where the first is at 0.17 */
    take(2, 1);
    cr_assert_eq(next(), 2, "at 1, which is not too far");
    take(2, 1);
    cr_assert_null(level_next(&level));

    seat_set(&seats[0], SEAT_WAITS); /* it has been answered, for nothing */
    seat_set_asked(&seats[0], 0);
    cr_assert_eq(next(), 0);
}

Test(level, lets_a_claim_ask_for_no_more_than_the_window_has)
{
    begin(weights);
    all_wait();
    seat_set(&seats[0], SEAT_ASKS);
    seat_set(&seats[2], SEAT_ASKS);
    cr_assert_eq(seat_room(&seats[1], 10), 3);
    take(1, 2);
    cr_assert_eq(seat_room(&seats[1], 10), 1);
    take(1, 2);
    cr_assert_eq(seat_room(&seats[1], 10), 0);
}

/* As they came, however many jobs each takes, and however far ahead it is. */
Test(level, weighs_nothing_where_no_seat_has_a_weight)
{
    begin((unsigned[]){1, 1, 1});
    seat_set(&seats[2], SEAT_ASKS);
    seat_set(&seats[0], SEAT_WAITS);
    seat_set(&seats[1], SEAT_WAITS);

    for (unsigned i = 0; i < 100; i++) {
        cr_assert_eq(next(), i % 2);
        cr_assert_eq(seat_room(&seats[i % 2], 10), 5);
        take(i % 2, i % 2 ? 1 : 10);
    }
}

Test(level, begins_to_weigh_with_the_first_weight_and_ends_with_the_last)
{
    struct seat more;

    begin((unsigned[]){1, 1, 1});
    seat_set(&seats[1], SEAT_WAITS);
    seat_set(&seats[0], SEAT_WAITS);
    seat_set(&seats[2], SEAT_ASKS);
    take(1, 100);
    take(0, 1);

    seat_init(&more, &level, 2);
    cr_assert_eq(next(), 1, "the first that waits, as before");
    take(1, 2);
    for (unsigned i = 0; i < 2; i++) {
        cr_assert_eq(next(), 0, "what was taken before does not count");
        take(0, 1);
    }
    cr_assert_eq(next(), 1);
    take(0, 5);

    seat_end(&more);
    cr_assert_eq(next(), 1);
    take(1, 1);
    cr_assert_eq(next(), 0);
    take(0, 1);
    cr_assert_eq(next(), 1);
}

Test(level, gives_no_credit_to_a_seat_that_had_no_backlog)
{
    begin((unsigned[]){1, 1, 2});
    seat_set(&seats[0], SEAT_WAITS);
    seat_set(&seats[1], SEAT_WAITS);
    for (unsigned i = 0; i < 1000; i++) {
        take(next(), 1);
    }

    seat_set(&seats[2], SEAT_WAITS);
    unsigned n = 0;
    for (unsigned i = 0; i < 100; i++) {
        n += next() == 2;
        take(next(), 1);
    }
    cr_assert_eq(n, 50, "%u", n);
}

/* What it took at once, since a slot was free, counts when it has a backlog. */
Test(level, makes_a_seat_pay_for_what_it_took_while_others_waited)
{
    begin((unsigned[]){1, 1, 2});
    seat_set(&seats[0], SEAT_WAITS);
    for (unsigned i = 0; i < 20; i++) {
        seat_take(&seats[2]);
    }
    seat_set(&seats[2], SEAT_WAITS);

    for (unsigned i = 0; i < 10; i++) { /* 20 jobs at weight 2 */
        cr_assert_eq(next(), 0, "job %u", i);
        take(0, 1);
    }
    cr_assert_eq(next(), 2);
}

Test(level, forgets_what_was_taken_when_nobody_has_a_backlog)
{
    begin((unsigned[]){1, 1, 2});
    seat_set(&seats[0], SEAT_WAITS);
    take(0, 100);
    seat_set(&seats[0], SEAT_OUT);
    cr_assert(!level_is_busy(&level));
    for (unsigned i = 0; i < 100; i++) { /* nothing is weighed now */
        seat_take(&seats[1]);
    }

    seat_set(&seats[1], SEAT_WAITS);
    seat_set(&seats[0], SEAT_WAITS);
    for (unsigned i = 0; i < 10; i++) {
        cr_assert_eq(next(), (i + 1) % 2);
        take(next(), 1);
    }
}

/* A claim that brings less than it asked for is charged for what it brings. */
Test(level, counts_jobs_and_not_slots)
{
    begin((unsigned[]){2, 1, 2});
    seat_set(&seats[0], SEAT_WAITS);
    seat_set(&seats[1], SEAT_WAITS);
    take(1, 1);
    seat_set(&seats[0], SEAT_ASKS);
    seat_set_asked(&seats[0], 6);
    cr_assert_eq(next(), 1);
    seat_set_asked(&seats[0], 0);
    seat_take(&seats[0]);
    seat_set(&seats[0], SEAT_WAITS);
    cr_assert_eq(next(), 0);
}

Test(level, knows_whether_others_wait)
{
    begin(weights);
    cr_assert(!seat_others_wait(&seats[0]));
    seat_set(&seats[0], SEAT_WAITS);
    cr_assert(!seat_others_wait(&seats[0]));
    cr_assert(seat_others_wait(&seats[1]));
    seat_set(&seats[0], SEAT_ASKS);
    cr_assert(!seat_others_wait(&seats[1]), "a slot that is free is anybody's");
}

/* It has a backlog all the same; so it may be behind, by the window and no more. */
Test(level, lets_a_seat_whose_queue_was_full_be_behind_by_the_window)
{
    begin((unsigned[]){1, 1, 2});
    seat_set(&seats[0], SEAT_WAITS);
    seat_set(&seats[1], SEAT_WAITS);
    take(0, 3);
    take(1, 3);
    seat_set(&seats[1], SEAT_OUT);
    seat_set_full(&seats[1], true);
    take(0, 2);
    seat_set(&seats[1], SEAT_WAITS);
    for (unsigned i = 0; i < 2; i++) {
        cr_assert_eq(next(), 1);
        take(1, 1);
    }
    cr_assert_eq(next(), 0);

    seat_set(&seats[1], SEAT_OUT);
    seat_set_full(&seats[1], true);
    take(0, 1000);
    seat_set(&seats[1], SEAT_WAITS);
    for (unsigned i = 0; i < SLOTS; i++) {
        cr_assert_eq(next(), 1);
        take(1, 1);
    }
    cr_assert_eq(next(), 0);
}
