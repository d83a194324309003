/* SPDX-License-Identifier: MIT */
#include "listen/backlog.h"
#include "allocations.h"
#include <criterion/criterion.h>
#include <lapse.h>

enum { SEATS = 4, SLOTS = 10 };

static struct backlog backlog;
static struct seat seats[SEATS];

static void begin(const unsigned level[SEATS])
{
    backlog_init(&backlog, SLOTS);
    for (unsigned i = 0; i < SEATS; i++) {
        cr_assert_eq(backlog_add(&backlog, &seats[i], 1, level[i]), 0);
    }
}

static void end(void)
{
    for (unsigned i = 0; i < SEATS; i++) {
        backlog_remove(&backlog, &seats[i]);
    }
    backlog_close(&backlog);
    cr_assert_null(backlog.busy.first);
    cr_assert(!backlog_waits(&backlog));
}

/* -1: none. */
static int next(void)
{
    struct seat *p = backlog_next(&backlog);

    if (!p) {
        return -1;
    }
    p->served = false;
    return (int)(p - seats);
}

/* They have waited for longer than a turn of the loop. */
static void all_wait(void)
{
    for (unsigned i = 0; i < SEATS; i++) {
        backlog_join(&backlog, &seats[i]);
    }
    backlog_end_round(&backlog);
}

static void ask(int i)
{
    cr_assert_eq(next(), i);
    backlog_ask(&backlog, &seats[i]);
}

/* The answer to its claim: with or without more. */
static void answer(int i, bool more)
{
    if (more) {
        backlog_note_more(&seats[i]);
        backlog_join(&backlog, &seats[i]);
    }
    backlog_answered(&backlog, &seats[i]);
}

Test(backlog, serves_levels_in_the_order_of_their_numbers)
{
    begin((unsigned[]){7, 0, UINT32_MAX, 3});
    all_wait();

    static const int order[SEATS] = {1, 3, 0, 2};
    for (unsigned i = 0; i < SEATS; i++) {
        ask(order[i]);
        answer(order[i], false);
    }
    cr_assert_eq(next(), -1);
    end();
}

Test(backlog, serves_no_level_while_a_queue_before_it_waits_or_asks)
{
    begin((unsigned[]){0, 1, 1, 2});
    all_wait();

    for (unsigned i = 0; i < 100; i++) {
        ask(0);
        cr_assert_eq(next(), -1, "its claim may have left some");
        answer(0, true);
    }
    ask(0);
    answer(0, false);
    ask(1);
    cr_assert_eq(next(), 2, "the other one of the same level");
    backlog_join(&backlog, &seats[0]);
    cr_assert_eq(next(), 0);
    end();
}

Test(backlog, keeps_a_free_slot_from_those_that_come_after_who_waits_or_asks)
{
    begin((unsigned[]){1, 1, 0, 2});
    backlog_join(&backlog, &seats[0]);
    backlog_end_round(&backlog);

    cr_assert(!backlog_goes_before(&backlog, &seats[0]));
    cr_assert(backlog_goes_before(&backlog, &seats[1]));
    cr_assert(!backlog_goes_before(&backlog, &seats[2]));
    cr_assert(backlog_goes_before(&backlog, &seats[3]));

    ask(0);
    cr_assert(!backlog_goes_before(&backlog, &seats[1]));
    cr_assert(!backlog_goes_before(&backlog, &seats[2]));
    cr_assert(backlog_goes_before(&backlog, &seats[3]));
    answer(0, false);
    cr_assert(!backlog_goes_before(&backlog, &seats[3]));
    end();
}

/* Or a queue that hears of jobs all the time would keep out those of later levels, where its claims
 * take long: it has found a slot each time. */
Test(backlog, of_who_is_served_in_the_turn_in_which_it_came_is_none)
{
    begin((unsigned[]){0, 1, 1, 1});
    backlog_join(&backlog, &seats[1]);
    backlog_end_round(&backlog);

    backlog_join(&backlog, &seats[0]);
    ask(0);
    cr_assert_eq(next(), 1);
    answer(0, true); /* now it is known to have more */
    ask(0);
    cr_assert_eq(next(), -1);
    end();
}

Test(backlog, is_left_by_who_is_served_and_asks_for_nothing)
{
    begin((unsigned[]){0, 1, 1, 1});
    all_wait();
    struct seat *p = backlog_next(&backlog);
    cr_assert_eq(p, &seats[0]);
    backlog_served(&backlog, p);
    cr_assert_eq(next(), 1);
    end();
}

Test(backlog, serves_each_once_in_a_round_even_if_it_joins_at_once)
{
    begin((unsigned[]){0, 0, 0, 0});
    all_wait();

    for (int i = 0; i < SEATS; i++) {
        struct seat *p = backlog_next(&backlog);
        cr_assert_eq(p, &seats[i]);
        backlog_join(&backlog, p);
        backlog_join(&backlog, p);
        backlog_served(&backlog, p);
    }
    cr_assert_null(backlog_next(&backlog));
    backlog_end_round(&backlog);
    cr_assert_eq(backlog.n_waiting, SEATS);
    cr_assert_eq(next(), 0);
    end();
}

Test(backlog, of_who_leaves_keeps_nobody_waiting)
{
    begin((unsigned[]){0, 1, 2, 3});
    all_wait();
    backlog_leave(&backlog, &seats[0]);
    ask(1);
    cr_assert_eq(next(), -1);
    backlog_leave(&backlog, &seats[1]);
    cr_assert_eq(next(), 2);
    backlog_remove(&backlog, &seats[2]);
    cr_assert_eq(next(), 3);
    cr_assert_eq(backlog_add(&backlog, &seats[2], 1, 2), 0);
    end();
}

Test(backlog, has_a_level_for_as_long_as_a_seat_is_of_it)
{
    alloc_install();
    long before = alloc_live();

    begin((unsigned[]){5, 5, 6, 6});
    cr_assert_eq(seats[0].level, seats[1].level);
    cr_assert_neq(seats[0].level, seats[2].level);
    cr_assert_eq(alloc_live(), before + 2);
    backlog_remove(&backlog, &seats[0]);
    backlog_remove(&backlog, &seats[1]);
    cr_assert_eq(alloc_live(), before + 1);
    cr_assert_eq(backlog_add(&backlog, &seats[0], 1, 5), 0);
    cr_assert_eq(backlog_add(&backlog, &seats[1], 1, 6), 0);
    end();
    cr_assert_eq(alloc_live(), before);
}
