/* SPDX-License-Identifier: MIT */
#ifndef HISTOGRAM_H
#define HISTOGRAM_H
#include <stdint.h>

enum {
    HISTOGRAM_EXACT = 2048,
    HISTOGRAM_STEPS = HISTOGRAM_EXACT / 2,
    HISTOGRAM_BUCKETS = HISTOGRAM_EXACT + 26 * HISTOGRAM_STEPS
};

/* Durations: exact to 1 us below 2,048 us, to 0.1 % above; up to 38 hours. */
struct histogram {
    uint64_t n;
    int64_t min_us, max_us;
    uint32_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_add(struct histogram *h, int64_t us);
void histogram_merge(struct histogram *to, const struct histogram *from);
/* per_myriad: 9990 is p99.9. Never less than the true value. */
int64_t histogram_percentile(const struct histogram *h, unsigned per_myriad);
#endif
