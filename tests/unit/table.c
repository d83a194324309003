/* SPDX-License-Identifier: MIT */
#include "base/table.h"
#include "allocations.h"
#include "unit.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

enum { N = 500, STEPS = 20000 };

struct item {
    struct table_node node;
    char name[16];
    bool in;
};

static struct span name_of(const struct item *item)
{
    return (struct span){item->name, strlen(item->name)};
}

static void add_and_remove(struct table *t, struct item *item)
{
    uint64_t random = 3;

    for (int i = 0; i < N; i++) {
        snprintf(item[i].name, sizeof item[i].name, "q%d", i);
    }

    for (int i = 0; i < STEPS; i++) {
        struct item *any = &item[unit_random(&random) % N];
        cr_assert_eq(table_find(t, name_of(any)), any->in ? &any->node : NULL);
        if (any->in) {
            table_remove(t, &any->node);
        } else {
            table_add(t, &any->node, name_of(any));
        }
        any->in = !any->in;
    }

    for (int i = 0; i < N; i++) {
        cr_assert_eq(table_find(t, name_of(&item[i])), item[i].in ? &item[i].node : NULL);
    }
}

Test(table, finds_what_is_in_it_and_nothing_else)
{
    static struct item item[N];
    struct table t;

    table_init(&t);
    cr_assert_null(table_find(&t, (struct span){"", 0}));
    add_and_remove(&t, item);
    table_free(&t);
    cr_assert_null(table_find(&t, name_of(&item[0])));
}

Test(table, works_without_memory_too)
{
    static struct item item[N];
    struct table t;

    alloc_install();
    alloc_fail_often(1, 1);
    table_init(&t);
    add_and_remove(&t, item);
    table_free(&t);
    cr_assert_eq(alloc_live(), 0);
}
