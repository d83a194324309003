/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_POLICY_H
#define LAPSE_POLICY_H
#include "script/verbs.h"

/* Whether this Redis keeps what it is given: no job is taken from one that may evict any of our
 * keys. */
struct policy {
    struct context *context;
    struct script *script;
    void (*cleared)(void *arg); /* from now on jobs may be taken */
    void *arg;
    struct queue_ask ask;
    struct timer again;
    char key[KEYS_MAX];
    bool known, evicts;
};
void policy_init(struct policy *p, struct context *context, struct script *script,
                 void (*cleared)(void *arg), void *arg);
void policy_ask(struct policy *p, struct span key); /* key: of any queue */
static inline bool policy_bars(const struct policy *p)
{
    return !p->known || p->evicts;
}
void policy_close(struct policy *p);

#endif
