/* SPDX-License-Identifier: MIT */
#include "job/made_id.h"
#include "job/job.h"
#include "unit.h"
#include <criterion/criterion.h>

static const int64_t NOW_US = 1790000000123456;

static bool us_of(const char *id, int64_t *us)
{
    return made_id_us(span_of(id), us);
}

Test(made_id, tells_its_time)
{
    char id[2 * MADE_ID_DIGITS + 1];
    int64_t us = 0;

    made_id_put(id, NOW_US, 0);
    cr_assert_eq(strlen(id), 22);
    cr_assert_str_eq(id + MADE_ID_DIGITS, "00000000000");
    cr_assert(us_of(id, &us));
    cr_assert_eq(us, NOW_US);

    made_id_put(id, NOW_US, UINT64_MAX);
    cr_assert_str_eq(id + MADE_ID_DIGITS, "vvvvvvvvvvv");
    cr_assert(us_of(id, &us));
    cr_assert_eq(us, NOW_US);
}

Test(made_id, sorts_by_its_time)
{
    char earlier[2 * MADE_ID_DIGITS + 1];
    char later[2 * MADE_ID_DIGITS + 1];

    made_id_put(earlier, NOW_US, UINT64_MAX);
    made_id_put(later, NOW_US + 1, 0);
    cr_assert_lt(strcmp(earlier, later), 0);
}

Test(made_id, no_other_id_is_one)
{
    static const char *const ids[] = {
        "",
        "order-1",
        "1in6ab2g40000000000000",  /* well formed, for comparison: see below */
        "1in6ab2g4000000000000",   /* a digit less */
        "1in6ab2g400000000000000", /* and one more */
        "1in6ab2g4000000000000w",
        "1IN6AB2G40000000000000",
        "00000000000vvvvvvvvvvv", /* 1970 */
    };
    int64_t us = 77;

    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        cr_expect_eq(us_of(ids[i], &us), i == 2, "%s", ids[i]);
    }
}

/* An id of a user that looks like one is most likely of the far future. */
Test(made_id, of_a_job_tells_when_it_was_created_unless_that_is_long_after_it_is_due)
{
    char id[2 * MADE_ID_DIGITS + 1];
    struct lapse_job job = {.id = id, .due_ms = NOW_US / 1000};

    made_id_put(id, NOW_US, 5);
    cr_assert_eq(lapse_job_created_ms(&job), NOW_US / 1000);
    job.due_ms -= 86400000;
    cr_assert_eq(lapse_job_created_ms(&job), NOW_US / 1000, "clocks differ");
    job.due_ms -= 1;
    cr_assert_eq(lapse_job_created_ms(&job), 0);
    job.created_ms = 5;
    cr_assert_eq(lapse_job_created_ms(&job), 5, "what Redis has kept counts");
}
