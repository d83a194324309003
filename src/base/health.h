/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_HEALTH_H
#define LAPSE_HEALTH_H
#include "base/log.h"
#include "base/task.h"

enum { HEALTH_WHAT = 256 /* bytes */ };

/* A report that waits for its turn. There is one for each kind: a second one of the same kind takes
 * its place, so reporting allocates nothing and cannot fail. */
struct health_report {
    struct task task;
    struct health *health;
    bool pending;
    unsigned in_a_row;
    struct lapse_health report;
    char what[HEALTH_WHAT];
    char detail[LOG_VALUE];
};

struct health {
    struct task_queue *tasks;
    struct lapse *handle;
    lapse_health_fn *fn; /* NULL: reports are dropped */
    void *arg;
    struct health_report reports[LAPSE_HEALTH_KINDS];
};

/* Copies what and detail; NULL is "". */
void health_report(struct health *h, struct lapse_health report);

#endif
