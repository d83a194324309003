/* SPDX-License-Identifier: MIT */
#include "base/health.h"
#include <stdio.h>

const char *lapse_health_name(enum lapse_health_kind kind)
{
    switch (kind) {
#define LAPSE_X(name, text) \
    case LAPSE_HEALTH_##name: return #name;
        LAPSE_HEALTH(LAPSE_X)
#undef LAPSE_X
    default: return "unknown";
    }
}

static void health_report_run(struct task *t)
{
    struct health_report *r = CONTAINER(t, struct health_report, task);
    struct health *h = r->health;

    r->pending = false;
    if (h->fn) {
        h->fn(h->handle, &r->report, h->arg);
    }
}

static void health_report_done(struct task *t, bool alive)
{
    (void)t; /* it is a part of the handle */
    (void)alive;
}

void health_report(struct health *h, struct lapse_health report)
{
    struct health_report *r = &h->reports[report.kind];

    if (report.kind == LAPSE_HEALTH_CONNECTED) {
        for (size_t i = 0; i < LAPSE_HEALTH_KINDS; i++) {
            h->reports[i].in_a_row = 0;
        }
    }
    r->in_a_row++;
    if (!h->fn) {
        return;
    }

    snprintf(r->what, sizeof r->what, "%s", report.what ? report.what : "");
    snprintf(r->detail, sizeof r->detail, "%s", report.detail ? report.detail : "");
    r->report = report;
    r->report.what = r->what;
    r->report.detail = r->detail;
    r->report.in_a_row = r->in_a_row;

    if (r->pending) {
        list_remove(&r->task.node); /* the last report heard must be the last that is true */
    }
    r->pending = true;
    r->health = h;
    r->task = (struct task){.run = health_report_run, .done = health_report_done};
    task_queue_push(h->tasks, &r->task);
}
