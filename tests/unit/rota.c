/* SPDX-License-Identifier: MIT */
#include "listen/rota.h"
#include "script/request.h"
#include <criterion/criterion.h>

struct item {
    struct list turn;
    unsigned looks;
};

/* Looks at those of a turn; returns how many they were. */
static unsigned look(struct rota *r)
{
    struct list *items = rota_turn(r);
    unsigned n = 0;

    LIST_EACH (i, items) {
        CONTAINER(i, struct item, turn)->looks++;
        n++;
    }
    return n;
}

Test(rota, looks_at_each_once_a_round_and_never_at_more_than_a_batch)
{
    enum { N = ROTA_TURNS * SCRIPT_BATCH };
    static struct item items[N];
    struct rota r;

    rota_init(&r);
    for (int i = 0; i < N; i++) {
        rota_add(&r, &items[i].turn);
    }
    for (unsigned round = 1; round <= 3; round++) {
        for (int i = 0; i < ROTA_TURNS; i++) {
            cr_assert_eq(look(&r), (unsigned)SCRIPT_BATCH);
        }
        for (int i = 0; i < N; i++) {
            cr_assert_eq(items[i].looks, round);
        }
    }
}

Test(rota, of_few_is_one_turn_and_the_first_comes_after_a_whole_round)
{
    static struct item items[SCRIPT_BATCH];
    struct rota r;

    rota_init(&r);
    for (int i = 0; i < SCRIPT_BATCH; i++) {
        rota_add(&r, &items[i].turn);
    }
    for (int i = 1; i < ROTA_TURNS; i++) {
        cr_assert_eq(look(&r), 0u);
    }
    cr_assert_eq(look(&r), (unsigned)SCRIPT_BATCH);
}

Test(rota, of_more_than_a_round_grows_evenly)
{
    enum { N = 3 * ROTA_TURNS * SCRIPT_BATCH };
    static struct item items[N];
    struct rota r;

    rota_init(&r);
    for (int i = 0; i < N; i++) {
        rota_add(&r, &items[i].turn);
    }
    for (int i = 0; i < N; i++) {
        list_remove(&items[i].turn);
        if (i % 2) {
            rota_add(&r, &items[i].turn);
        }
    }
    unsigned all = 0;
    for (int i = 0; i < ROTA_TURNS; i++) {
        unsigned n = look(&r);
        cr_assert_geq(n, (unsigned)SCRIPT_BATCH);
        cr_assert_leq(n, 2u * SCRIPT_BATCH);
        all += n;
    }
    cr_assert_eq(all, (unsigned)N / 2);
}
