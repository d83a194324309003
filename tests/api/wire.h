/* SPDX-License-Identifier: MIT */
/* What the tests of delivery share: waiting for what happens outside of this loop, and a listener
 * behind a bad wire. */
#ifndef WIRE_H
#define WIRE_H
#include "flow.h"
#include "runs.h"

/* Turns the loop until cond holds, and looks every few ms: cond may change without an event in this
 * loop. */
#define flow_poll(f, cond)                                            \
    for (int64_t flow_end_ms = test_now_ms() + FLOW_WAIT_MS; !(cond); \
         flow_turn(f, test_now_ms() + FLOW_POLL_MS))                  \
    cr_assert(test_now_ms() < flow_end_ms, "never came true: %s", #cond)
enum { FLOW_POLL_MS = 3 };
/* turns the loop so long, to show that something does not happen */
void flow_spin(struct flow *f, int64_t for_ms);

struct lapse_stats flow_stats(struct lapse *l);
/* can a listener in this mode have heard of a job so? */
bool flow_via_ok(enum flow_mode mode, enum lapse_via via);
void flow_until_listeners(struct flow *f, const char *queue, long long n); /* in the registry */
/* of the listener of that name */
unsigned flow_rank(struct flow *f, const char *queue, const char *name);
/* f->l, which listens, has heard all that Redis published so far; it counts one foreign event more.
 */
void flow_heard(struct flow *f);
/* Nothing of f->l is on its way: what its questions and their answers led to has been asked, and
 * answered. */
void flow_calm(struct flow *f);
int64_t flow_score(struct flow *f, const char *queue, const char *set, const char *id);
/* Runs of w, each in time and each once, all of them n jobs. */
void flow_each_once(const struct flow_worker *w, size_t n);
/* The same of a board; the claims of one job do not overlap. */
void flow_runs_each_once(const struct runs *runs, long n);

/* A listener behind a proxy: its connection for commands can be cut while its subscription goes on,
 * if it has one. */
struct wire {
    struct flow *f; /* f->l goes to Redis directly */
    struct proxy *proxy;
    struct lapse *l; /* the listener */
    bool subscribes;
    struct flow_worker w;
};
/* Listens to queue "q", and is in its registry when this returns, but with LAPSE_NO_EVENTS. */
void wire_start(struct wire *x, enum flow_policy policy, flow_tweak *tweak);
/* its commands, or their answers, after so many bytes */
void wire_cut(struct wire *x, enum proxy_way way, long bytes);
/* the connection for commands; it is gone on return */
void wire_lose(struct wire *x);
void wire_end(struct wire *x);
#endif
