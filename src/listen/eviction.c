/* SPDX-License-Identifier: MIT */
/* Asked on each connection, before the first job is taken; and each second while the answer is bad,
 * so that who mends it need not restart us. An answer that does not come, or may not be asked for,
 * is no reason to stand still. */
#include "listen/eviction.h"
#include "base/error.h"

enum { AGAIN_MS = 1000 };

static void send(struct policy *p)
{
    if (!p->ask.ask.asked) {
        p->ask.ask.until_us = clock_us() + p->context->settings.reply_ms * 1000;
        store_eviction(p->script, &p->ask, (struct span){p->key, strlen(p->key)});
    }
}

static void on_again(void *arg)
{
    struct policy *p = arg;
    if (node_up(p->script->node)) {
        send(p);
    }
}

static void on_answer(struct queue_ask *a, int err)
{
    struct policy *p = CONTAINER(a, struct policy, ask);
    bool barred = policy_bars(p);
    bool refused = err_is_refusal(err) || err == LAPSE_EBROKEN;

    if (err && !refused) {
        return; /* the connection is gone: the next one asks */
    }

    p->known = true;

    if (!err && a->n[0] && !p->evicts) {
        log_line(&p->context->log, LOG_POLICY, LOG_ERR,
                 "takes no jobs: this Redis may evict any of them (maxmemory-policy allkeys-...; "
                 "CONFIG SET maxmemory-policy noeviction, or LAPSE_MAY_EVICT)");
        health_report(&p->context->health, (struct lapse_health){.kind = LAPSE_HEALTH_MAY_EVICT});
    } else if (!err && !a->n[0] && p->evicts) {
        log_line(&p->context->log, LOG_KEEPS, LOG_NOTICE,
                 "takes jobs: this Redis does not evict them any more");
        health_report(&p->context->health, (struct lapse_health){.kind = LAPSE_HEALTH_NO_EVICTION});
    }

    p->evicts = err ? p->evicts : a->n[0] != 0;

    if (p->evicts) {
        timer_set(&p->again, AGAIN_MS);
    } else if (barred) {
        p->cleared(p->arg);
    }
}

void policy_init(struct policy *p, struct context *context, struct script *script,
                 void (*cleared)(void *arg), void *arg)
{
    *p = (struct policy){.context = context, .script = script, .cleared = cleared, .arg = arg};
    p->known = (context->settings.flags & LAPSE_MAY_EVICT) != 0;
    p->ask.end = on_answer;
    timer_init(&p->again, context->loop, on_again, p);
}

void policy_ask(struct policy *p, struct span key)
{
    if (!(p->context->settings.flags & LAPSE_MAY_EVICT) && node_up(p->script->node) &&
        !p->ask.ask.asked) {
        memcpy(p->key, key.at, key.len);
        p->key[key.len] = '\0';
        send(p);
    }
}

void policy_close(struct policy *p)
{
    timer_stop(&p->again);
}
