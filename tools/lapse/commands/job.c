/* SPDX-License-Identifier: MIT */
/* lapse cancel, reschedule, get: the three that name one job. A cancelled job is gone, so its
 * answer is what is known of it: queue and id. */
#include "cli/arguments.h"
#include "cli/message.h"
#include "cli/values.h"
#include "client/client.h"
#include "cli/json.h"
#include "cli/print.h"
#include <stdio.h>
#include <string.h>

struct one {
    struct oneshot q; /* first: ask() gets this */
    const char *queue, *id;
    struct when when;
};

static const char cancel_maybe[] =
    "it may be cancelled. Repeat it; if there is no such job then, it was cancelled or it ran, and "
    "only your own records tell which";
static const char reschedule_maybe[] =
    "it may be moved. Repeat it; if there is no such job then, it ran";

static void on_cancelled(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct one *o = arg;
    struct json j;

    (void)l;
    (void)job;
    if (!oneshot_replied(&o->q, err, o->queue, o->id)) {
        return;
    }

    if (o->q.g->text) {
        printf("%s/%s is cancelled\n", o->queue, o->id);
        return;
    }

    json_begin(&j, stdout);
    json_text(&j, "queue", o->queue);
    json_text(&j, "id", o->id);
    json_text(&j, "state", "cancelled");
    json_end(&j);
}

static void on_rescheduled(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct one *o = arg;
    (void)l;
    if (oneshot_replied(&o->q, err, o->queue, o->id)) {
        print_job(o->q.g, job, 0);
    }
}

static void on_got(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct one *o = arg;

    (void)l;
    if (!oneshot_replied(&o->q, err, o->queue, o->id)) {
        return;
    }

    if (o->q.g->text) {
        print_job_long(job);
    } else {
        print_job(o->q.g, job, WITH_BODY);
    }
}

static int ask_cancel(struct oneshot *q)
{
    struct one *o = (struct one *)q;
    int err = lapse_cancel(q->c.l, o->queue, o->id, 0, on_cancelled, o);
    q->open += !err;
    return err;
}

static int ask_reschedule(struct oneshot *q)
{
    struct one *o = (struct one *)q;
    int err = lapse_reschedule(q->c.l, o->queue, o->id, o->when.due, 0, on_rescheduled, o);
    q->open += !err;
    return err;
}

static int ask_get(struct oneshot *q)
{
    struct one *o = (struct one *)q;
    int err = lapse_get(q->c.l, o->queue, o->id, on_got, o);
    q->open += !err;
    return err;
}

static int run(const struct command *cmd, struct globals *g, struct arguments *w)
{
    struct one o = {.queue = NULL};
    int rc = arguments_read(cmd, g, &o, w);

    if (rc || (cmd == &cmd_reschedule && (rc = check_when(&o.when))) ||
        (rc = check_queue(w->v[0])) || (rc = check_id(w->v[1]))) {
        return rc;
    }

    o.queue = o.q.queue = w->v[0];
    o.id = w->v[1];
    o.q.c.maybe = cmd == &cmd_cancel       ? cancel_maybe
                  : cmd == &cmd_reschedule ? reschedule_maybe
                                           : NULL;

    return oneshot_run(&o.q, g,
                       cmd == &cmd_cancel ? ask_cancel
                       : cmd == &cmd_get  ? ask_get
                                          : ask_reschedule);
}

const struct command cmd_cancel = {
    "cancel",
    "QUEUE ID",
    "take a job back before it runs",
    2,
    2,
    NULL,
    "Removes a job that waits or is dead, for good. Prints one JSON object: queue, id, state.\n"
    "A job that is running is left alone (exit 1).\n"
    "\nexamples:\n"
    "  lapse cancel orders order-1\n"
    "  lapse cancel -- orders -rf      (-- before an id that begins with -)\n",
    NULL,
    run,
};

static const struct opt opts[] = {
    {"in", 0, "DURATION", set_in, offsetof(struct one, when),
     "due so long after Redis takes it: 250ms 90s 30m 1h30m 7d"},
    {"at", 0, "TIME", set_at, offsetof(struct one, when),
     "due then: 2026-12-24T18:00Z, T18:00:30.5+02:00, or @MS of\nUnix time; the past is now"},
    {NULL, 0, NULL, NULL, 0, NULL},
};
const struct command cmd_reschedule = {
    "reschedule",
    "QUEUE ID (--in DURATION | --at TIME)",
    "move a job's due time, earlier or later",
    2,
    2,
    opts,
    "Makes a job due then instead. A dead job waits again, its tries anew; a running one is left\n"
    "alone (exit 1). Prints the job as Redis now has it, one JSON object as lapse schedule does.\n"
    "\nexamples:\n"
    "  lapse reschedule sessions user-7 --in 20m\n"
    "  lapse reschedule webhooks hook-3 --in 0s      (run it now; also a dead one)\n",
    NULL,
    run,
};

const struct command cmd_get = {
    "get",
    "QUEUE ID",
    "show one job with its body",
    2,
    2,
    NULL,
    "Prints the job as one JSON object: queue, id, state (waiting, running or dead), due_ms, try,\n"
    "tries, token, until_ms (end of the lease, 0 unless it runs), why (it was last put back), and\n"
    "body, or body_base64 if the body is not UTF-8.\n"
    "\nexamples:\n"
    "  lapse get orders order-1\n"
    "  lapse get orders order-1 --format text\n",
    NULL,
    run,
};
