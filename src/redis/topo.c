/* SPDX-License-Identifier: MIT */
#include "redis/topo.h"

static struct node *topo_only(struct topo *t, struct span key)
{
    (void)key;
    return topo_first(t);
}

void topo_init(struct topo *t, struct node *only)
{
    *t =
        (struct topo){.context = only->context, .db = only->endpoint.address.db, .find = topo_only};
    list_init(&t->nodes);
    topo_add(t, only);
}

void topo_add(struct topo *t, struct node *n)
{
    list_insert(&t->nodes, &n->of_topo);
}

bool topo_any_up(const struct topo *t)
{
    LIST_EACH (i, &t->nodes) {
        if (node_up(topo_node_at(i))) {
            return true;
        }
    }
    return false;
}

int64_t topo_time_us(const struct topo *t)
{
    LIST_EACH (i, &t->nodes) {
        const struct node *n = topo_node_at(i);
        if (node_knows_time(n)) {
            return node_time_us(n);
        }
    }
    return 0;
}
