/* SPDX-License-Identifier: MIT */
/* A listener behind a bad wire: its connection for commands can be cut while its subscription goes on. */
#ifndef WIRE_H
#define WIRE_H
#include "flow.h"

struct wire {
    struct flow *f; /* f->l goes to Redis directly */
    struct proxy *proxy;
    struct lapse *l; /* the listener behind it */
    struct flow_worker w;
};
/* Listens to queue "q" and is in its registry when this returns. */
void wire_start(struct wire *x, enum flow_policy policy, flow_tweak *tweak);
void wire_cut(struct wire *x, enum proxy_way way, long bytes); /* what it asks Redis, after so many bytes more */
void wire_end(struct wire *x);

struct lapse_stats flow_stats(struct lapse *l);
void flow_until_listeners(struct flow *f, const char *queue, long long n);
#endif
