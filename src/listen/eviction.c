/* SPDX-License-Identifier: MIT */
/* Redis is asked on each connection, and each second while it may evict jobs: when that is changed,
 * claims begin without a restart. Where Redis does not answer, or this user may not ask, jobs are
 * claimed all the same. */
#include "listen/eviction.h"
#include "base/error.h"

enum { AGAIN_MS = 1000 };

static void on_again(void *arg)
{
    struct eviction *e = arg;
    e->events->again(e->arg, e);
}

static void eviction_set(struct eviction *e, bool may_evict)
{
    struct context *c = e->context;
    bool might_evict = eviction_possible(e);

    if (may_evict && !might_evict) {
        log_line(&c->log, LOG_EVICTION, LOG_ERR,
                 "takes no jobs: this Redis may evict any of them (maxmemory-policy allkeys-...; "
                 "CONFIG SET maxmemory-policy noeviction, or LAPSE_MAY_EVICT)");
        health_report(&c->health, (struct lapse_health){.kind = LAPSE_HEALTH_MAY_EVICT});
    } else if (!may_evict && might_evict) {
        log_line(&c->log, LOG_NO_EVICTION, LOG_NOTICE,
                 "takes jobs: this Redis does not evict them any more");
        health_report(&c->health, (struct lapse_health){.kind = LAPSE_HEALTH_NO_EVICTION});
    }

    e->node->eviction = may_evict ? NODE_MAY_EVICT : NODE_EVICTS_NOTHING;
}

static void on_answer(struct eviction_request *r, int err, const struct eviction_reply *reply)
{
    struct eviction *e = CONTAINER(r, struct eviction, query);
    bool forbade = eviction_forbids_claims(e);

    bool is_elsewhere =
        node_of(e->script, span_of(e->key)) != e->node; /* so it is another's answer */
    bool is_unknown = err && !err_is_refusal(err) && err != LAPSE_EBROKEN;

    if (e->closed) {
        return; /* no timer may follow */
    }
    if (is_elsewhere || is_unknown) {
        timer_set(&e->again, AGAIN_MS); /* if the connection is gone, the next one asks before */
        return;
    }

    if (!err) {
        eviction_set(e, reply->may_evict != 0);
    } else if (!eviction_known(e)) {
        eviction_set(e, false);
    }

    if (eviction_possible(e)) {
        timer_set(&e->again, AGAIN_MS);
    } else if (forbade) {
        e->events->allowed(e->arg);
    }
}

void eviction_init(struct eviction *e, struct script *script, struct node *node,
                   const struct eviction_events *events, void *arg)
{
    struct context *c = script->context;

    *e = (struct eviction){
        .context = c, .script = script, .node = node, .events = events, .arg = arg};
    if (c->options.flags & LAPSE_MAY_EVICT) {
        node->eviction = NODE_EVICTS_NOTHING; /* or we do not mind */
    }
    e->query.end = on_answer;
    timer_init(&e->again, c->loop, on_again, e);
}

void eviction_check(struct eviction *e, struct span key)
{
    bool is_allowed = (e->context->options.flags & LAPSE_MAY_EVICT) != 0;

    if (is_allowed || !node_up(e->node) || e->query.request.pending) {
        return;
    }

    memcpy(e->key, key.at, key.len);
    e->key[key.len] = '\0';
    e->query.request.until_us = clock_us() + e->context->options.reply_ms * 1000;
    script_eviction(e->script, &e->query, span_of(e->key));
}

void eviction_close(struct eviction *e)
{
    e->closed = true;
    timer_stop(&e->again);
}
