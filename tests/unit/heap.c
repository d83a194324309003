/* SPDX-License-Identifier: MIT */
#include "base/heap.h"
#include "unit.h"
#include <criterion/criterion.h>

enum { N = 200, STEPS = 20000 };

static int64_t first_of(const struct heap_node *n, size_t count)
{
    int64_t first = 0;

    for (size_t i = 0; i < count; i++) {
        if (n[i].at && (!first || n[i].at < first)) {
            first = n[i].at;
        }
    }
    return first;
}

Test(heap, has_the_first_of_all_on_top_whatever_is_set_moved_and_taken_out)
{
    struct heap h = {0};
    struct heap_node n[N] = {0};
    uint64_t random = 1;

    for (int i = 0; i < STEPS; i++) {
        struct heap_node *any = &n[unit_random(&random) % N];
        int64_t at = (int64_t)(unit_random(&random) % 1000) - 100;
        heap_set(&h, any, unit_random(&random) % 4 ? at : 0);
        cr_assert_eq(h.first ? h.first->at : 0, first_of(n, N), "step %d", i);
    }

    for (int i = 0; i < N; i++) {
        heap_set(&h, &n[i], 0);
    }

    cr_assert_null(h.first);
}

Test(heap, gives_all_in_order)
{
    struct heap h = {0};
    struct heap_node n[N] = {0};
    uint64_t random = 7;
    int64_t last = INT64_MIN;

    for (int i = 0; i < N; i++) {
        heap_set(&h, &n[i], (int64_t)(unit_random(&random) % 100) - 50);
    }

    while (h.first) {
        cr_assert_geq(h.first->at, last);
        last = h.first->at;
        heap_set(&h, h.first, 0);
    }

    cr_assert_eq(first_of(n, N), 0);
}

Test(heap, gives_those_of_the_same_moment_as_they_were_set)
{
    struct heap h = {0};
    struct heap_node n[N] = {0};

    for (int i = 0; i < N; i++) {
        heap_set(&h, &n[i], i % 3 ? 7 : 5);
    }
    heap_set(&h, &n[1], 7); /* it is there already */
    heap_set(&h, &n[4], 9);
    heap_set(&h, &n[4], 7); /* now it is the last */

    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < N; i++) {
            bool belongs = round == 0 ? i % 3 == 0 : i % 3 != 0;
            if (belongs && i != 4) {
                cr_assert_eq(h.first, &n[i], "round %d, node %d", round, i);
                heap_set(&h, h.first, 0);
            }
        }
    }
    cr_assert_eq(h.first, &n[4]);
}
