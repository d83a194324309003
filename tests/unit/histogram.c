/* SPDX-License-Identifier: MIT */
#include "base/histogram.h"
#include <criterion/criterion.h>

Test(histogram, has_the_buckets_1_2_5_from_100_us_to_1000_s)
{
    uint64_t end_us = 100;

    for (unsigned i = 0; i + 1 < LAPSE_BUCKETS; i++) {
        cr_expect_eq(lapse_bucket_us(i), end_us, "bucket %u", i);
        end_us = i % 3 == 1 ? end_us / 2 * 5 : end_us * 2;
    }
    cr_assert_eq(lapse_bucket_us(LAPSE_BUCKETS - 2), UINT64_C(1000000000));
    cr_assert_eq(lapse_bucket_us(LAPSE_BUCKETS - 1), UINT64_MAX);
    cr_assert_eq(lapse_bucket_us(LAPSE_BUCKETS), UINT64_MAX);
}

Test(histogram, counts_a_time_where_it_ends_its_bucket_and_not_where_it_begins_one)
{
    static const struct {
        int64_t us;
        unsigned bucket;
    } rows[] = {
        {-5, 0},          {0, 0},           {100, 0},        {101, 1},      {200, 1},
        {201, 2},         {500, 2},         {1000, 3},       {1000001, 13}, {999999999, 21},
        {1000000000, 21}, {1000000001, 22}, {INT64_MAX, 22},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct lapse_histogram h = {0};
        histogram_add_us(&h, rows[i].us);
        uint64_t us = rows[i].us > 0 ? (uint64_t)rows[i].us : 0;
        cr_expect(h.counts[rows[i].bucket] == 1 && h.n == 1 && h.sum_us == us && h.max_us == us,
                  "%ld us", (long)rows[i].us);
    }
}

Test(histogram, a_quantile_is_the_end_of_its_bucket_or_the_longest_time)
{
    struct lapse_histogram h = {0};

    cr_assert_eq(lapse_quantile_us(&h, 0.5), 0, "of none");
    histogram_add_us(&h, 120);
    cr_assert_eq(lapse_quantile_us(&h, 0.5), 120, "of one");
    histogram_add_us(&h, 130);
    histogram_add_us(&h, 30000);
    cr_assert_eq(lapse_quantile_us(&h, 0.5), 200);
    cr_assert_eq(lapse_quantile_us(&h, 0.66), 200);
    cr_assert_eq(lapse_quantile_us(&h, 0.67), 30000);
    cr_assert_eq(lapse_quantile_us(&h, 0), 200, "the shortest");
    cr_assert_eq(lapse_quantile_us(&h, -1), 200);
    cr_assert_eq(lapse_quantile_us(&h, 1), 30000);
    cr_assert_eq(lapse_quantile_us(&h, 2), 30000);
    h.max_us = 1; /* as no sum of true ones is */
    h.counts[1] = 0;
    h.counts[8] = 0;
    cr_assert_eq(lapse_quantile_us(&h, 1), 1);
}

Test(histogram, adds_another_one)
{
    struct lapse_histogram a = {0};
    struct lapse_histogram b = {0};

    histogram_add_us(&a, 100);
    histogram_add_us(&a, 7000);
    histogram_add_us(&b, 50);
    histogram_add_us(&b, 2000000000);
    histogram_add_all(&a, &b);
    cr_assert(a.n == 4 && a.sum_us == 2000007150 && a.max_us == 2000000000);
    cr_assert(a.counts[0] == 2 && a.counts[6] == 1 && a.counts[22] == 1);
    histogram_add_all(&b, &a);
    cr_assert(b.n == 6 && b.max_us == 2000000000);
}
