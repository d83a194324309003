/* SPDX-License-Identifier: MIT */
/* Times by buckets. What was counted is kept, and added to what others have counted: so no bucket
 * may ever begin or end elsewhere. */
#include "base/histogram.h"

static const uint64_t ends_us[LAPSE_BUCKETS] = {
    100,      200,      500,       1000,      2000,      5000,       10000,     20000,
    50000,    100000,   200000,    500000,    1000000,   2000000,    5000000,   10000000,
    20000000, 50000000, 100000000, 200000000, 500000000, 1000000000, UINT64_MAX};

void histogram_add_us(struct lapse_histogram *h, int64_t us)
{
    uint64_t length_us = us > 0 ? (uint64_t)us : 0;
    unsigned bucket = 0;

    while (length_us > ends_us[bucket]) {
        bucket++;
    }

    h->counts[bucket]++;
    h->n++;
    h->sum_us += length_us;
    if (length_us > h->max_us) {
        h->max_us = length_us;
    }
}

void histogram_add_all(struct lapse_histogram *h, const struct lapse_histogram *other)
{
    for (unsigned i = 0; i < LAPSE_BUCKETS; i++) {
        h->counts[i] += other->counts[i];
    }

    h->n += other->n;
    h->sum_us += other->sum_us;
    if (other->max_us > h->max_us) {
        h->max_us = other->max_us;
    }
}

uint64_t lapse_bucket_us(unsigned bucket)
{
    return bucket < LAPSE_BUCKETS ? ends_us[bucket] : UINT64_MAX;
}

/* The place of the last one is rounded up: of three times the second is half of them. */
static uint64_t place_of(uint64_t n, double part)
{
    double exact = part * (double)n;
    uint64_t place = exact > 0 ? (uint64_t)exact : 0;

    if ((double)place < exact) {
        place++;
    }

    if (place < 1) {
        return 1;
    }
    return place < n ? place : n;
}

uint64_t lapse_quantile_us(const struct lapse_histogram *h, double part)
{
    if (h->n == 0) {
        return 0;
    }

    uint64_t place = part < 1 ? place_of(h->n, part) : h->n;
    uint64_t n = 0;

    for (unsigned i = 0; i < LAPSE_BUCKETS; i++) {
        n += h->counts[i];
        if (n >= place) {
            return ends_us[i] < h->max_us ? ends_us[i] : h->max_us;
        }
    }
    return h->max_us;
}
