/* SPDX-License-Identifier: MIT */
/* lapse cancel. A cancelled job is gone, so what is printed is what is known of it: queue and id.
 * So it is of one that runs and was asked to stop: it is gone soon. */
#include "cli/arguments.h"
#include "cli/json.h"
#include "cli/print.h"
#include "commands/many.h"
#include <limits.h>

static const struct opt cancel_options[] = {
    MANY_STATE,  MANY_TAG,   MANY_BATCH,   MANY_REASON,
    MANY_BEFORE, MANY_LIMIT, MANY_RUNNING, {NULL, 0, NULL, NULL, 0, NULL},
};

static void on_cancel_reply(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    const struct many_job *cancel = arg;
    struct oneshot *o = &cancel->many->once;
    struct json j;

    (void)l;
    if (!oneshot_replied(o, err, o->queue, cancel->id)) {
        return;
    }

    bool is_asked = lapse_job_state(job) == LAPSE_RUNNING;
    if (o->g->text) {
        printf("%s/%s %s\n", o->queue, cancel->id, is_asked ? "asked to stop" : "cancelled");
        return;
    }

    json_begin(&j, stdout);
    json_text(&j, "queue", o->queue);
    json_text(&j, "id", cancel->id);
    json_text(&j, "state", is_asked ? state_name(LAPSE_RUNNING) : "cancelled");
    json_end(&j);
}

static int cancel_job(struct many_job *job)
{
    struct oneshot *o = &job->many->once;
    unsigned flags = many_flags(job->many);

    return oneshot_sent(o, lapse_cancel(o->c.l, o->queue, job->id, flags, on_cancel_reply, job));
}

static int cancel_all(struct many *m)
{
    struct oneshot *o = &m->once;
    unsigned flags = many_flags(m);

    return oneshot_sent(o, lapse_cancel_all(o->c.l, o->queue, &m->where, flags, many_counted, m));
}

static int cancel_run(const struct command *cmd, struct globals *g, struct arguments *args)
{
    struct many cancel = {.ask_job = cancel_job, .ask_all = cancel_all, .done = "cancelled"};
    int rc = arguments_read(cmd, g, &cancel, args);

    if (!rc) {
        rc = many_read(&cancel, cmd, args);
    }
    if (rc) {
        return rc;
    }

    cancel.once.c.unknown_advice =
        "it may have been cancelled. Repeat the command: if there is no such job then, it was "
        "cancelled or has run, and only your own records show which; of one that was scheduled "
        "with --keep the repeat tells";
    if (cancel.n_jobs == 0) {
        cancel.once.c.unknown_advice =
            "some jobs more may have been cancelled. Repeat the command for the rest";
    }

    return many_run(&cancel, g);
}

const struct command cmd_cancel = {
    .name = "cancel",
    .usage = "QUEUE (ID... | [--state STATE] [--tag TAG] [--batch NAME] [--reason TEXT] "
             "[--before TIME] [--limit N]) [--running]",
    .summary = "remove jobs before they run",
    .min = 1,
    .max = INT_MAX,
    .opts = cancel_options,
    .text =
        "Removes waiting or dead jobs for good. Of each id it prints one JSON object: queue,\n"
        "id, state; one that is running, or is not there, is not cancelled (exit code 1).\n"
        "One that was scheduled with --keep is kept then, and to cancel it again succeeds; if\n"
        "it ran, it has ended (exit code 1). --state kept removes what is known of such jobs.\n"
        "With --state or --tag it removes all jobs of a state, or with a tag, or some of\n"
        "them, and prints one JSON object: queue, cancelled (how many), running (how many run,\n"
        "and were left). With --running a job that runs is asked to stop, and its state is\n"
        "running; lapse listen --exec ends its command. Of a selection these are counted that\n"
        "were not asked before.\n"
        "\n"
        "examples:\n"
        "  lapse cancel orders order-1 order-2\n"
        "  lapse cancel videos video-9 --running\n"
        "  lapse cancel -- orders -rf      (-- before an id that starts with -)\n"
        "  lapse cancel orders --state waiting\n"
        "  lapse cancel orders --tag customer-7\n"
        "  lapse cancel webhooks --state dead --reason 'HTTP 410' --before 2026-11-01T00:00Z\n",
    .run = cancel_run,
};
