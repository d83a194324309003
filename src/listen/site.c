/* SPDX-License-Identifier: MIT */
/* Where there is one Redis, there is one site, from the beginning to the end. In a cluster each
 * master that has a queue of ours is one, and the first is nowhere: the queues whose master is not
 * known yet are there. */
#include "listen/site.h"
#include "base/mem.h"

static void sites_enter(struct sites *ss, struct site *s, struct node *node)
{
    s->node = node;
    s->was_up = node_up(node);
    node->n_holders++;
    alarms_init(&s->alarms, node);
    eviction_init(&s->eviction, ss->script, node, ss->events, ss->arg);
    ear_init(&s->ear, ss->watches, node);
    list_insert(&ss->all, &s->of_sites);
}

void sites_init(struct sites *ss, struct script *script, struct watches *watches,
                const struct eviction_events *events, void *arg)
{
    *ss = (struct sites){.script = script, .watches = watches, .events = events, .arg = arg};
    list_init(&ss->all);
    sites_enter(ss, &ss->first, topo_first(script->topo));
}

struct site *sites_find(const struct sites *ss, const struct node *node)
{
    LIST_EACH (i, &ss->all) {
        if (site_of(i)->node == node) {
            return site_of(i);
        }
    }
    return NULL;
}

struct site *sites_of_key(struct sites *ss, struct span key)
{
    struct node *node = node_of(ss->script, key);
    struct site *s = sites_find(ss, node);

    if (!s) {
        s = mem_new(sizeof *s, 0);
        if (s) {
            sites_enter(ss, s, node);
        }
    }
    return s;
}

static void site_close(struct site *s)
{
    eviction_close(&s->eviction);
    alarms_close(&s->alarms);
    ear_close(&s->ear);
}

static void site_free(struct site *s)
{
    list_remove(&s->of_sites);
    s->node->n_holders--;
    mem_free(s);
}

static bool site_is_unused(const struct site *s)
{
    bool pending = s->ear.canary.pending || eviction_is_pending(&s->eviction);

    return s->n_queues == 0 && ear_is_unused(&s->ear) && !pending;
}

void sites_let_go(struct sites *ss, struct node *node)
{
    struct site *s = sites_find(ss, node);

    if (s && s != &ss->first && site_is_unused(s)) {
        site_close(s);
        site_free(s);
    }
}

void site_up(struct site *s)
{
    s->was_up = true;
    ear_up(&s->ear);
    alarms_up(&s->alarms);
}

void sites_drain(struct sites *ss)
{
    LIST_EACH (i, &ss->all) {
        ear_drain(&site_of(i)->ear);
    }
}

void sites_close(struct sites *ss)
{
    LIST_EACH (i, &ss->all) {
        site_close(site_of(i));
    }
}

void sites_free(struct sites *ss)
{
    list_remove(&ss->first.of_sites);
    LIST_EACH (i, &ss->all) {
        site_free(site_of(i));
    }
}
