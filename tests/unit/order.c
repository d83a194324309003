/* SPDX-License-Identifier: MIT */
#include "script/order.h"
#include "allocations.h"
#include "unit.h"
#include <criterion/criterion.h>

enum { MANY = 5000 };

static struct order lines;

static void start(void)
{
    alloc_install();
    cr_assert_eq(order_init(&lines), 0);
}

static void end(void)
{
    order_free(&lines);
    cr_assert_eq(alloc_live(), 0);
}

TestSuite(order, .init = start, .fini = end);

Test(order, requests_of_one_id_go_one_after_the_other_as_they_came)
{
    struct place p[5];

    for (int i = 0; i < 5; i++) {
        cr_assert_eq(order_enter(&lines, &p[i], 7), i == 0);
    }

    for (int i = 0; i < 5; i++) {
        cr_assert(p[i].first);
        cr_assert_eq(order_leave(&lines, &p[i]), i < 4 ? &p[i + 1] : NULL);
    }

    cr_assert_eq(lines.n_lines, 0);
}

Test(order, one_that_waits_may_leave_and_the_others_close_up)
{
    struct place p[4];

    for (int i = 0; i < 4; i++) {
        order_enter(&lines, &p[i], 7);
    }

    cr_assert_null(order_leave(&lines, &p[3])); /* the last */
    cr_assert_null(order_leave(&lines, &p[1]));
    cr_assert_not(order_enter(&lines, &p[3], 7)); /* and comes again */
    cr_assert_eq(order_leave(&lines, &p[0]), &p[2]);
    cr_assert_eq(order_leave(&lines, &p[2]), &p[3]);
    cr_assert_null(order_leave(&lines, &p[3]));
}

/* hashes that fall into one bucket, and many more lines than there are buckets */
Test(order, ids_do_not_wait_for_each_other_however_many_there_are)
{
    static struct place p[MANY];
    static struct place behind[MANY];

    for (uint32_t i = 0; i < MANY; i++) {
        cr_assert(order_enter(&lines, &p[i], i << 8));
    }

    cr_assert_eq(lines.n_lines, MANY);
    cr_assert_geq(lines.n_buckets, MANY);
    for (uint32_t i = 0; i < MANY; i++) {
        cr_assert_not(order_enter(&lines, &behind[i], i << 8));
    }

    for (uint32_t i = 0; i < MANY; i++) {
        cr_assert_eq(order_leave(&lines, &p[i]), &behind[i]);
    }

    for (uint32_t i = MANY; i-- > 0;) {
        cr_assert_null(order_leave(&lines, &behind[i]));
    }

    cr_assert_eq(lines.n_lines, 0);
}

Test(order, goes_on_without_memory_for_more_buckets)
{
    static struct place p[MANY];

    alloc_fail(1);
    for (uint32_t i = 0; i < MANY; i++) {
        cr_assert(order_enter(&lines, &p[i], i));
    }

    cr_assert(alloc_has_failed());
    for (uint32_t i = 0; i < MANY; i++) {
        order_leave(&lines, &p[i]);
    }
}
