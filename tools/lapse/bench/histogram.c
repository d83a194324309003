/* SPDX-License-Identifier: MIT */
/* A bucket for each microsecond up to 2,048; from there on 1,024 buckets for each doubling. A
 * merged histogram is as exact as its parts. What is below 0 counts as 0, and shows in min_us. */
#include "bench/histogram.h"

static unsigned histogram_bucket(int64_t us)
{
    uint64_t value = us < 0 ? 0 : (uint64_t)us;

    if (value < HISTOGRAM_EXACT) {
        return (unsigned)value;
    }

    /* value >> shift is 1,024 to 2,047 */
    unsigned shift = 64 - 11 - (unsigned)__builtin_clzll(value);
    unsigned bucket = shift * HISTOGRAM_STEPS + (unsigned)(value >> shift);

    return bucket < HISTOGRAM_BUCKETS ? bucket : HISTOGRAM_BUCKETS - 1;
}

/* The longest duration that falls there. */
static int64_t histogram_bucket_top(unsigned bucket)
{
    unsigned shift = 0;

    if (bucket >= HISTOGRAM_EXACT) {
        shift = (bucket - HISTOGRAM_EXACT) / HISTOGRAM_STEPS + 1;
    }

    return ((int64_t)(bucket - shift * HISTOGRAM_STEPS + 1) << shift) - 1;
}

static void histogram_widen(struct histogram *h, int64_t min_us, int64_t max_us)
{
    if (h->n == 0 || min_us < h->min_us) {
        h->min_us = min_us;
    }
    if (h->n == 0 || max_us > h->max_us) {
        h->max_us = max_us;
    }
}

void histogram_add(struct histogram *h, int64_t us)
{
    histogram_widen(h, us, us);
    h->buckets[histogram_bucket(us)]++;
    h->n++;
}

void histogram_merge(struct histogram *to, const struct histogram *from)
{
    if (from->n == 0) {
        return;
    }

    histogram_widen(to, from->min_us, from->max_us);
    to->n += from->n;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        to->buckets[i] += from->buckets[i];
    }
}

int64_t histogram_percentile(const struct histogram *h, unsigned per_myriad)
{
    uint64_t rank = (h->n * per_myriad + 9999) / 10000;
    uint64_t sum = 0;

    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        sum += h->buckets[i];
        if (sum >= rank && sum > 0) {
            return histogram_bucket_top(i) < h->max_us ? histogram_bucket_top(i) : h->max_us;
        }
    }

    return 0;
}
