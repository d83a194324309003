/* SPDX-License-Identifier: MIT */
#include "base/list.h"
#include <criterion/criterion.h>
#include <stdio.h>

struct item {
    char pad; /* the node is not at the start: CONTAINER() has something to do */
    struct list node;
    char name;
};
static struct item item[4] = {{.name = 'a'}, {.name = 'b'}, {.name = 'c'}, {.name = 'd'}};
static struct list head, other;

static struct item *of(struct list *node)
{
    return CONTAINER(node, struct item, node);
}

/* The names in order, and that the way back is the same. */
static const char *names(struct list *l)
{
    static char out[4][16];
    static unsigned turn;
    char *to = out[turn++ % 4];
    size_t n = 0;
    size_t back = 0;

    for (struct list *i = l->next; i != l && n < 15; i = i->next) {
        cr_expect_eq(i->next->prev, i);
        to[n++] = of(i)->name;
    }

    to[n] = '\0';
    for (struct list *i = l->prev; i != l && back < 15; i = i->prev) {
        cr_expect_eq(of(i)->name, to[n - ++back]);
    }

    cr_expect_eq(n, back);
    cr_expect_eq(l->next->prev, l);
    cr_expect_eq(l->prev->next, l);

    return to;
}

static void fill(void)
{
    list_init(&head);
    list_init(&other);
    for (int i = 0; i < 4; i++) {
        list_insert(&head, &item[i].node);
    }
}

Test(list, a_new_one_is_empty)
{
    list_init(&head);
    cr_expect(list_empty(&head));
    cr_expect_null(list_pop(&head));
    cr_expect_str_eq(names(&head), "");
}

Test(list, inserted_before_the_head_is_at_the_end)
{
    fill();
    cr_expect_not(list_empty(&head));
    cr_expect_str_eq(names(&head), "abcd");
}

Test(list, inserted_before_a_node_is_there)
{
    list_init(&head);
    list_insert(&head, &item[0].node);
    list_insert(&item[0].node, &item[1].node);
    list_insert(&item[0].node, &item[2].node);
    list_insert(head.next, &item[3].node);
    cr_expect_str_eq(names(&head), "dbca");
}

Test(list, pops_the_oldest_until_there_is_none)
{
    fill();
    for (int i = 0; i < 4; i++) {
        struct list *n = list_pop(&head);
        cr_assert_eq(n, &item[i].node);
        cr_expect(list_empty(n), "what was popped is in no list");
    }
    cr_expect_null(list_pop(&head));
    cr_expect(list_empty(&head));
}

Test(list, removes_first_last_middle_and_only)
{
    fill();
    list_remove(&item[0].node);
    cr_expect_str_eq(names(&head), "bcd");
    list_remove(&item[2].node);
    cr_expect_str_eq(names(&head), "bd");
    list_remove(&item[3].node);
    cr_expect_str_eq(names(&head), "b");
    list_remove(&item[1].node);
    cr_expect(list_empty(&head));
    list_remove(&item[1].node);
    cr_expect(list_empty(&item[1].node), "removing what is in no list does nothing");
}

Test(list, a_removed_node_may_come_back)
{
    fill();
    list_remove(&item[1].node);
    list_insert(&head, &item[1].node);
    cr_expect_str_eq(names(&head), "acdb");
}

Test(list, moves_all_to_the_end_of_another)
{
    fill();
    list_remove(&item[0].node);
    list_insert(&other, &item[0].node);
    list_move(&other, &head);
    cr_expect_str_eq(names(&other), "abcd");
    cr_expect(list_empty(&head));
    list_move(&head, &other);
    cr_expect_str_eq(names(&head), "abcd");
    cr_expect(list_empty(&other));
}

Test(list, moving_nothing_changes_nothing)
{
    fill();
    list_move(&head, &other);
    cr_expect_str_eq(names(&head), "abcd");
    cr_expect(list_empty(&other));
    list_init(&head);
    list_move(&head, &other);
    cr_expect(list_empty(&head) && list_empty(&other));
}

Test(list, each_passes_all_in_order)
{
    char seen[8] = "";
    size_t n = 0;

    fill();
    LIST_EACH (i, &head) {
        seen[n++] = of(i)->name;
    }

    cr_expect_str_eq(seen, "abcd");
    list_init(&head);
    LIST_EACH (i, &head) {
        cr_expect(false, "there is none");
    }
}

/* Of the four, those whose bit is set are removed in passing. */
Test(list, each_lets_the_current_one_go)
{
    for (unsigned gone = 0; gone < 16; gone++) {
        char seen[8] = "";
        char kept[8] = "";
        size_t n = 0;
        size_t k = 0;
        fill();
        LIST_EACH (i, &head) {
            seen[n++] = of(i)->name;
            if (gone >> (of(i) - item) & 1) {
                list_remove(i);
                list_insert(&other, i);
            } else {
                kept[k++] = of(i)->name;
            }
        }
        cr_expect_str_eq(seen, "abcd", "gone %u", gone);
        cr_expect_str_eq(names(&head), kept, "gone %u", gone);
        cr_expect_eq(strlen(names(&other)), 4 - k, "gone %u", gone);
    }
}
