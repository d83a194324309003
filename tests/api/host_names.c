/* SPDX-License-Identifier: MIT */
/* A host name with several addresses: each is tried in its turn. */
#include "ask.h"
#include "listening.h"
#include "resolver.h"
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

static const char NAME[] = "redis.test";

static void open_by_name(struct flow *f, int64_t reply_ms)
{
    static char url[120];
    struct lapse_options opts = flow_options(f);

    snprintf(url, sizeof url, "redis://%s%s:%d", server_login(), NAME, f->server->port);
    opts.url = url;
    opts.reply_ms = reply_ms;
    f->l = flow_open(f, &opts);
}

static struct flow *start_at(const char *const *bound)
{
    struct flow *f = flow_start_tcp(FLOW_FULL, bound, NULL);
    flow_allow_log(f, "cannot connect to Redis at "); /* which may be at ::1 alone */
    flow_close(f, f->l, 0);
    return f;
}

Test(host_names, of_which_the_first_address_refuses_lead_to_the_second)
{
    static const char *const two[] = {"127.0.0.2", "127.0.0.1", NULL};
    static const char *const bound[] = {"--bind", "127.0.0.1", NULL};
    struct flow *f = start_at(bound);

    resolver_set(NAME, two);
    open_by_name(f, 5000);
    cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_ENOENT);
    cr_assert_eq(flow_logged(f, "(127.0.0.2): Connection refused; trying again"), 1);
    cr_assert_eq(resolver_lookups(), 1, "one round");
    flow_end(f, "q");
}

Test(host_names, of_both_families_lead_to_a_redis_on_ipv6_alone)
{
    place_not_with_masters("the nodes know each other by 127.0.0.1");
    place_not_by_sentinel("it names 127.0.0.1");

    static const char *const two[] = {"127.0.0.1", "::1", NULL};
    static const char *const bound[] = {"--bind", "::1", NULL};
    struct flow *f = start_at(bound);

    resolver_set(NAME, two);
    open_by_name(f, 5000);
    cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_ENOENT);
    flow_end(f, "q");
}

Test(host_names, that_are_numbers_of_ipv6_connect_and_are_logged_in_brackets)
{
    place_not_with_masters("the nodes know each other by 127.0.0.1");
    place_not_by_sentinel("it names 127.0.0.1");

    static const char *const bound[] = {"--bind", "::1", NULL};
    char url[80];
    struct flow *f = start_at(bound);
    struct lapse_options opts = flow_options(f);

    snprintf(url, sizeof url, "redis://%s[::1]:%d", server_login(), f->server->port);
    opts.url = url;
    flow_allow_log(f, "lost the connection to Redis at [::1]:");
    f->l = flow_open(f, &opts);
    cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_ENOENT);
    redis_do(f->server, "CLIENT KILL TYPE normal");
    flow_until(f, flow_stats(f->l).reconnects == 1);
    cr_assert_eq(flow_logged(f, "lost the connection to Redis at [::1]:"), 1);
    flow_end(f, "q");
}

Test(host_names, of_which_an_address_accepts_and_says_nothing_lead_to_the_next)
{
    static const char *const two[] = {"127.0.0.2", "127.0.0.1", NULL};
    static const char *const bound[] = {"--bind", "127.0.0.1", NULL};
    struct flow *f = start_at(bound);
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)f->server->port)};

    inet_pton(AF_INET, "127.0.0.2", &in.sin_addr);

    int mute = socket(AF_INET, SOCK_STREAM, 0);
    cr_assert(mute >= 0 && !bind(mute, (struct sockaddr *)&in, sizeof in) && !listen(mute, 8));
    resolver_set(NAME, two);
    flow_allow_log(f, "no answer from Redis at ");
    open_by_name(f, 300);
    flow_until(f, flow_get(f, "q", "a", NULL) == LAPSE_ENOENT);
    cr_assert_geq(flow_logged(f, "(127.0.0.2) in 300 ms"), 1);
    close(mute);
    flow_end(f, "q");
}

Test(host_names, are_looked_up_again_when_all_their_addresses_failed)
{
    static const char *const gone[] = {"127.0.0.2", "127.0.0.3", NULL};
    static const char *const moved[] = {"127.0.0.1", NULL};
    static const char *const none[] = {NULL};
    static const char *const bound[] = {"--bind", "127.0.0.1", NULL};
    struct flow *f = start_at(bound);

    resolver_set(NAME, gone);
    open_by_name(f, 5000);
    flow_until(f, resolver_lookups() == 3);
    resolver_set(NAME, none);
    flow_until(f, resolver_lookups() == 5);
    resolver_set(NAME, moved);
    cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_ENOENT);
    flow_end(f, "q");
}
