/* SPDX-License-Identifier: MIT */
/* What the log says of a connection that was lost: the last line is the one that is true. */
#include "listening.h"
#include "wire.h"
#include <syslog.h>

static const char AGAIN[] = "connected again to Redis at ", EVENTS[] = "for expiry events after ";

Test(outage, that_is_over_is_logged_once_for_both_connections)
{
    struct wire x;

    wire_start(&x, FLOW_DONE, NULL);
    cr_assert_eq(flow_logged(x.f, "connected"), 0, "nothing was wrong");

    long conns = proxy_conns(x.proxy);
    proxy_drop(x.proxy);
    flow_until(x.f, proxy_conns(x.proxy) == conns + 2 && flow_stats(x.l).reconnects == 2);
    cr_assert_eq(flow_logged(x.f, AGAIN), 1);
    cr_assert_eq(flow_logged(x.f, x.proxy->url + strlen("unix://") + strlen(server_login())) >= 2,
                 1, "the place");
    flow_spin(x.f, 100);
    cr_assert_eq(flow_logged(x.f, AGAIN), 1);
    cr_assert_eq(flow_logged(x.f, EVENTS), 0);
    wire_end(&x);
}

Test(outage, of_the_subscription_alone_is_logged_when_it_is_over)
{
    struct wire x;

    wire_start(&x, FLOW_DONE, NULL);
    redis_do(x.f->server, "CLIENT KILL TYPE pubsub");
    flow_until(x.f, flow_stats(x.l).reconnects == 1 && flow_logged(x.f, AGAIN) == 1);
    cr_assert_eq(flow_logged(x.f, EVENTS), 1);
    wire_end(&x);
}

Test(outage, at_the_very_beginning_is_over_when_the_first_connection_is_up)
{
    place_not_in_cluster("the map is asked for first");

    struct flow *f = flow_bare(FLOW_FULL, NULL);

    server_kill9(f->server);
    flow_allow_log(f, "cannot connect to Redis at ");
    f->l = flow_open(f, NULL);
    flow_until(f, flow_logged(f, "cannot connect to Redis at ") > 0);
    server_restart(f->server);
    flow_until(f, flow_logged(f, "connected to Redis at ") == 1);
    cr_assert_eq(flow_logged(f, AGAIN), 0);
    flow_end(f);
}

struct last {
    char line[200];
    int level;
};

static void keep_last(int level, const char *line, void *arg)
{
    struct last *last = arg;
    last->level = level;
    snprintf(last->line, sizeof last->line, "%s", line);
}

/* A warning is held back within a second of another of its kind. So must be what takes it back, and
 * only then. */
Test(outage, that_comes_again_and_again_never_leaves_its_warning_as_the_last_word)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct proxy *proxy = proxy_start(f->server);
    struct last last = {.level = -1};
    struct lapse_options opts = flow_options(f);

    opts.url = proxy->url;
    opts.log = keep_last;
    opts.log_arg = &last;

    struct lapse *l = flow_open(f, &opts);
    struct flow_answer a = {.f = f};
    cr_assert_eq(lapse_get(l, "q", "nothing", flow_answered, &a), 0);
    cr_assert_eq(flow_wait(f, &a), LAPSE_ENOENT);

    for (unsigned i = 1; i <= 12; i++) {
        proxy_drop(proxy);
        flow_until(f, flow_stats(l).reconnects == i);
        cr_assert(strstr(last.line, AGAIN) && last.level == LOG_NOTICE, "%u: %s", i, last.line);
        flow_spin(f, 150);
    }

    flow_close(f, l, 0);
    proxy_stop(proxy);
    flow_end(f);
}
