/* SPDX-License-Identifier: MIT */
/* One node of a cluster, whose URL a handle has: the queues that it owns work, and no others. */
#include "ask.h"
#include "cluster.h"
#include "flow.h"
#include "handler.h"

static struct flow *flow_on(const struct cluster *c, int node)
{
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct lapse_options opts = flow_options(f);

    opts.url = c->nodes[node].server->url;
    f->l = flow_open(f, &opts);
    return f;
}

/* The name of a queue that this node owns. */
static void name_queue(const struct cluster *c, int node, char name[32])
{
    for (int i = 0;; i++) {
        char key[64];
        snprintf(name, 32, "q%d", i);
        snprintf(key, sizeof key, "lapse:{%s}:due", name);
        if (cluster_of(c, key) == c->nodes[node].server) {
            return;
        }
    }
}

Test(cluster, of_half_a_queue_nothing_is_changed)
{
    struct cluster *c = cluster_start(1, 0);
    struct server *s = c->nodes[0].server;
    struct flow *f = flow_on(c, 0);

    flow_allow_log(f, "a part of the queue is missing");
    cr_assert_eq(flow_schedule(f, "q", "a", 60000, NULL), 0);
    redis_do(s, "RENAME lapse:{q}:due {q}");

    cr_assert_eq(flow_schedule(f, "q", "b", 60000, NULL), LAPSE_EHALF);
    cr_assert_eq(lapse_outcome_unknown(LAPSE_EHALF), 0);
    cr_assert(flow_logged(f, "missing here: lapse:{q}:due") > 0);
    cr_assert_eq(redis_int(s, "HLEN lapse:{q}:jobs"), 1);
    cr_assert_eq(redis_int(s, "EXISTS lapse:{q}:due"), 0);

    redis_do(s, "RENAME {q} lapse:{q}:due");
    cr_assert_eq(flow_schedule(f, "q", "b", 60000, NULL), 0);
    cr_assert_eq(redis_int(s, "HLEN lapse:{q}:jobs"), 2);
    flow_end(f);
    cluster_stop(c);
}

Test(cluster, gives_the_jobs_of_a_node_to_who_has_its_url)
{
    struct cluster *c = cluster_start(2, 0);
    struct flow *f = flow_on(c, 0);
    struct flow_handler h = {.f = f};
    char own[32];
    char other[32];

    name_queue(c, 0, own);
    name_queue(c, 1, other);
    flow_allow_log(f, "MOVED ");

    flow_listen(f, own, &h);
    cr_assert_eq(flow_schedule(f, own, "a", 100, NULL), 0);
    flow_until(f, h.settled == 1);

    cr_assert_eq(flow_schedule(f, other, "a", 100, NULL), LAPSE_EREFUSED);
    cr_assert(flow_logged(f, "give redis+cluster:// as the URL") > 0);
    flow_end(f);
    cluster_stop(c);
}
