/* SPDX-License-Identifier: MIT */
/* Buckets of one microsecond up to 2,048; from there on 1,024 for each doubling. Of two spreads the
 * sum is as exact as each. What is below 0 counts as 0 and shows in min_us. */
#include "bench/bench.h"

static unsigned place(int64_t us)
{
    uint64_t v = us < 0 ? 0 : (uint64_t)us;

    if (v < SPREAD_EXACT) {
        return (unsigned)v;
    }
    unsigned shift = 64 - 11 - (unsigned)__builtin_clzll(v); /* v >> shift is 1,024 to 2,047 */
    unsigned at = shift * SPREAD_STEPS + (unsigned)(v >> shift);
    return at < SPREAD_BUCKETS ? at : SPREAD_BUCKETS - 1;
}

/* The largest that falls there. */
static int64_t top(unsigned at)
{
    unsigned shift = at < SPREAD_EXACT ? 0 : (at - SPREAD_EXACT) / SPREAD_STEPS + 1;
    return ((int64_t)(at - shift * SPREAD_STEPS + 1) << shift) - 1;
}

void spread_add(struct spread *s, int64_t us)
{
    s->min_us = !s->n || us < s->min_us ? us : s->min_us;
    s->max_us = !s->n || us > s->max_us ? us : s->max_us;
    s->bucket[place(us)]++;
    s->n++;
}

void spread_merge(struct spread *to, const struct spread *from)
{
    if (!from->n) {
        return;
    }

    to->min_us = !to->n || from->min_us < to->min_us ? from->min_us : to->min_us;
    to->max_us = !to->n || from->max_us > to->max_us ? from->max_us : to->max_us;
    to->n += from->n;
    for (unsigned i = 0; i < SPREAD_BUCKETS; i++) {
        to->bucket[i] += from->bucket[i];
    }
}

int64_t spread_at(const struct spread *s, unsigned ten_thousandths)
{
    uint64_t rank = (s->n * ten_thousandths + 9999) / 10000;
    uint64_t sum = 0;

    for (unsigned i = 0; i < SPREAD_BUCKETS; i++) {
        sum += s->bucket[i];
        if (sum >= rank && sum) {
            return top(i) < s->max_us ? top(i) : s->max_us;
        }
    }

    return 0;
}
