/* SPDX-License-Identifier: MIT */
/* A listener behind a proxy: its connection for commands can be cut while its subscription, if it
 * has one, goes on. */
#ifndef WIRE_H
#define WIRE_H
#include "handler.h"
#include "proxy.h"

struct wire {
    struct flow *f; /* f->l goes to Redis directly */
    struct proxy *proxy;
    struct lapse *l; /* the listener */
    bool subscribes;
    struct flow_handler w;
};

/* Listens to the queue "q". Returns when it is registered, unless its flags are LAPSE_NO_EVENTS. */
void wire_start(struct wire *x, enum flow_way way, flow_tweak *tweak);
/* Cuts its commands, or their answers, after so many bytes. */
void wire_cut(struct wire *x, enum proxy_way way, long bytes);
/* Cuts the connection for commands; it is gone on return. */
void wire_lose(struct wire *x);
void wire_end(struct wire *x);
#endif
