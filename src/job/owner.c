/* SPDX-License-Identifier: MIT */
#include "job/owner.h"

#define PRIME INT64_C(4294967291)
#define FACTOR INT64_C(1664525)

/* Four bytes of a text, the first the highest; zeros stand behind its end. */
static int64_t word_at(struct span s, size_t at)
{
    int64_t word = 0;

    for (size_t i = at; i < at + 4; i++) {
        word = word * 256 + (i < s.len ? (unsigned char)s.at[i] : 0);
    }

    return word;
}

int64_t owner_of(struct span id, int64_t n_members)
{
    int64_t hash = 0;

    for (size_t at = 0; at < id.len; at += 4) {
        hash = (hash * FACTOR + word_at(id, at)) % PRIME;
    }

    hash = hash * FACTOR % PRIME;
    hash = hash * FACTOR % PRIME;
    return hash * n_members / PRIME;
}
