/* SPDX-License-Identifier: MIT */
#include "script/tally.h"
#include <criterion/criterion.h>

Test(tally, is_sent_every_10_s_and_of_thousands_of_queues_more_rarely)
{
    static const struct {
        size_t queues;
        int64_t every_ms;
    } rows[] = {{0, 10000},    {1, 10000},    {1000, 10000},  {1001, 10010},
                {5999, 59990}, {6000, 60000}, {10000, 60000}, {SIZE_MAX / 2000, 60000}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cr_assert_eq(tally_every_ms(rows[i].queues), rows[i].every_ms, "%zu", rows[i].queues);
    }
}
