/* SPDX-License-Identifier: MIT */
#include "redis/hosts.h"
#include "resolver.h"
#include "unit.h"
#include <criterion/criterion.h>
#include <string.h>

static void expect(struct hosts *h, const char *address)
{
    const char *why = "";
    const char *got = hosts_next(h, "redis.test", &why);
    cr_assert(got && strcmp(got, address) == 0, "%s, not %s", got ? got : why, address);
}

Test(hosts, come_in_the_order_of_the_resolver_each_once_and_then_again)
{
    static const char *const all[] = {"127.0.0.2", "::1", "127.0.0.2", "127.0.0.1", NULL};
    struct hosts h = {.n = 0};

    resolver_set("redis.test", all);
    for (int round = 1; round <= 2; round++) {
        expect(&h, "127.0.0.2");
        cr_assert(hosts_left(&h));
        expect(&h, "::1");
        expect(&h, "127.0.0.1");
        cr_assert(!hosts_left(&h));
        cr_assert_eq(resolver_lookups(), round);
    }
}

Test(hosts, begin_with_the_one_that_was_good_while_it_is_still_there)
{
    static const char *const all[] = {"127.0.0.1", "127.0.0.2", "127.0.0.3", NULL};
    static const char *const others[] = {"127.0.0.1", "127.0.0.3", NULL};
    struct hosts h = {.n = 0};

    hosts_good(&h); /* of a Unix socket: nothing was looked up */
    resolver_set("redis.test", all);
    expect(&h, "127.0.0.1");
    expect(&h, "127.0.0.2");
    hosts_good(&h);
    hosts_restart(&h);
    expect(&h, "127.0.0.2");
    expect(&h, "127.0.0.1");
    expect(&h, "127.0.0.3");
    resolver_set("redis.test", others);
    expect(&h, "127.0.0.1");
    expect(&h, "127.0.0.3");
}

Test(hosts, are_eight_at_most)
{
    static const char *const many[] = {"127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4",
                                       "127.0.0.5", "127.0.0.6", "127.0.0.7", "127.0.0.8",
                                       "127.0.0.9", NULL};
    struct hosts h = {.n = 0};

    resolver_set("redis.test", many);
    for (int i = 0; i < HOSTS_MAX; i++) {
        expect(&h, many[i]);
    }

    expect(&h, "127.0.0.1");
}

Test(hosts, that_do_not_exist_are_none_for_a_reason)
{
    static const char *const none[] = {NULL};
    const char *why = NULL;
    struct hosts h = {.n = 0};

    resolver_set("redis.test", none);
    cr_assert(!hosts_next(&h, "redis.test", &why) && why && *why);
    cr_assert(!hosts_left(&h));
}
