/* SPDX-License-Identifier: MIT */
/* The registry: the names of the queues that are used. */
#include "handler.h"

static const char QUEUES[] = "lapse:{}:queues";

static long long entered(struct flow *f)
{
    return redis_int(f->server, "ZCARD %s", QUEUES);
}

Test(registry, a_schedule_enters_its_queue_once)
{
    struct flow *f = flow_start(FLOW_FULL);

    cr_assert_eq(flow_schedule(f, "q", "a", 3600000, NULL), 0);
    flow_poll(f, entered(f) == 1);
    long long before = flow_scripts(f);
    cr_assert_eq(flow_schedule(f, "q", "b", 3600000, NULL), 0);
    cr_assert_eq(flow_scripts(f) - before, 1);
    flow_end(f, "q");
}

Test(registry, a_listener_enters_its_queue)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_listen(f, "q", &w);
    flow_poll(f, entered(f) == 1);
    flow_end(f, "q");
}

Test(registry, who_may_not_enter_a_queue_schedules_to_it_with_one_warning)
{
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct lapse_options opts = flow_options(f);
    char url[160];

    redis_do(f->server, "ACL SETUSER one on >secret ~lapse:{q}:* ~lapse:{p}:* &* +@all");
    snprintf(url, sizeof url, "unix://one:secret@%s", f->server->socket);
    opts.url = url;
    flow_allow_log(f, "enter");
    f->l = flow_open(f, &opts);
    cr_assert_eq(flow_schedule(f, "q", "a", 3600000, NULL), 0);
    flow_until(f, flow_logged(f, "enter") == 1);
    cr_assert_eq(flow_schedule(f, "p", "a", 3600000, NULL), 0);
    cr_assert_eq(flow_schedule(f, "p", "b", 3600000, NULL), 0);
    cr_assert_eq(flow_logged(f, "enter"), 1);
    cr_assert_eq(entered(f), 0);
    flow_end(f, "q", "p");
}
