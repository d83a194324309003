/* SPDX-License-Identifier: MIT */
/* What listeners have heard, and what they know of each other. */
#ifndef LISTENING_H
#define LISTENING_H
#include "flow.h"

struct lapse_stats flow_stats(struct lapse *l);
/* May a listener in this mode have learnt of a job this way? */
bool flow_via_ok(enum flow_mode mode, enum lapse_via via);

/* Waits until so many are registered. */
void flow_until_listeners(struct flow *f, const char *queue, long long n);
/* Waits until so many say that they are alive. */
void flow_until_alive(struct flow *f, long long n);
/* How often any has said so. */
long long flow_heartbeats(struct flow *f);
unsigned flow_rank(struct flow *f, const char *queue, const char *name);

/* Waits until f->l, which listens, has heard all that Redis published so far. It counts one foreign
 * event more. */
void flow_heard(struct flow *f);
/* Waits until nothing of f->l is on its way: what its requests and their answers led to has been
 * asked, and answered. */
void flow_calm(struct flow *f);
#endif
