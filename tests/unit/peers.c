/* SPDX-License-Identifier: MIT */
#include "listen/peers.h"
#include <criterion/criterion.h>

/* In the order of their ranks. */
static void are_in_order(const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < n; k++) {
            int order = peer_order(span_of(names[i]), span_of(names[k]));
            int expected = (i > k) - (i < k);
            cr_expect_eq((order > 0) - (order < 0), expected, "%s, %s: %d", names[i], names[k],
                         order);
        }
    }
}

Test(peers, are_ranked_by_the_last_sixteen_bytes_of_their_names)
{
    static const char *const names[] = {
        "a/523456789abcdef", /* its last sixteen begin with the slash */
        "z/0a23456789abcdef", "m/5023456789abcdef", "B/5123456789abcdef",
        "a/aa23456789abcdef", "b/f023456789abcdef",
    };

    are_in_order(names, sizeof names / sizeof *names);
}

/* None of ours do; all the same no two have one place, and no locale matters. */
Test(peers, that_end_alike_are_ranked_by_all_their_bytes)
{
    static const char *const names[] = {
        "5023456789abcdef",
        "B/5023456789abcdef",
        "a-/5023456789abcdef",
        "a/5023456789abcdef",
    };

    are_in_order(names, sizeof names / sizeof *names);
}

Test(peers, of_short_names_have_an_order_too)
{
    static const char *const names[] = {"", "0", "a", "aa", "b"};

    are_in_order(names, sizeof names / sizeof *names);
}
