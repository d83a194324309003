/* SPDX-License-Identifier: MIT */
/* A handler in this process: what it does with a job, and what it ran. */
#ifndef HANDLER_H
#define HANDLER_H
#include "ask.h"
#include "runs.h"

enum flow_way {
    FLOW_DONE,
    FLOW_RETRY,
    FLOW_SNOOZE,
    FLOW_FAIL,
    FLOW_KEEP /* in held[], for the test to settle */
};
enum { FLOW_HELD = 10000 };

struct flow_run {
    struct flow_job job;
    struct lapse *l;
};
struct flow_handler {
    struct flow *f;
    enum flow_way way;
    int64_t delay_ms; /* of FLOW_RETRY and FLOW_SNOOZE */
    const char *reason;
    struct flow_run *runs; /* in order; the flow's to free */
    size_t n_runs;
    struct lapse_job *held[FLOW_HELD];
    size_t n_held;
    unsigned settled, errors; /* callbacks of settles; those with an error */
    int err;                  /* the last error */
};

/* f->l listens with this handler, whose f is set. */
void flow_listen(struct flow *f, const char *queue, struct flow_handler *w);
/* The same of queue "q"; schedules a job and waits until the handler has it and keeps it. */
void flow_hold(struct flow *f, struct flow_handler *w, const char *id);
lapse_handler flow_on_job; /* arg: a flow_handler */
lapse_cb flow_on_settled;  /* arg: a flow_handler */
/* Settles all that it holds, and waits. */
void flow_settle(struct flow_handler *w, enum flow_way how);

size_t flow_runs_of(const struct flow_handler *w, const char *id);
/* It ran n jobs, each once and not early. */
void flow_each_once(const struct flow_handler *w, size_t n);
/* The same of listener processes. */
void flow_runs_each_once(const struct runs *runs, long n);
#endif
