/* SPDX-License-Identifier: MIT */
/* lapse reschedule. */
#include "cli/arguments.h"
#include "cli/print.h"
#include "cli/values.h"
#include "client/oneshot.h"

struct reschedule_command {
    struct oneshot once; /* first: send() gets this */
    const char *id;
    struct when when;
};

static const struct opt reschedule_options[] = {
    {"in", 0, "DURATION", set_in, offsetof(struct reschedule_command, when),
     "due this long from now: 250ms 90s 30m 1h30m 7d"},
    {"at", 0, "TIME", set_at, offsetof(struct reschedule_command, when),
     "due at this time: 2026-12-24T18:00Z, with seconds and an offset "
     "2026-12-24T18:00:30.5+02:00, or @MS (Unix time in milliseconds); a time in the past "
     "means now"},
    {NULL, 0, NULL, NULL, 0, NULL},
};

static void on_reschedule_reply(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct reschedule_command *r = arg;

    (void)l;
    if (oneshot_replied(&r->once, err, r->once.queue, r->id)) {
        print_job(r->once.g, job, 0);
    }
}

static int reschedule_send(struct oneshot *o)
{
    struct reschedule_command *r = (struct reschedule_command *)o;

    return oneshot_sent(
        o, lapse_reschedule(o->c.l, o->queue, r->id, r->when.due, 0, on_reschedule_reply, r));
}

static int reschedule_run(const struct command *cmd, struct globals *g, struct arguments *args)
{
    struct reschedule_command r = {.id = NULL};
    int rc = arguments_read(cmd, g, &r, args);

    if (rc) {
        return rc;
    }

    r.once.queue = args->v[0];
    r.id = args->v[1];
    if (check_when(&r.when) || check_queue(r.once.queue) || check_id(r.id)) {
        return USAGE;
    }

    r.once.c.unknown_advice =
        "it may have been rescheduled. Repeat the command: if there is no such job then, it has "
        "run";

    return oneshot_run(&r.once, g, reschedule_send);
}

const struct command cmd_reschedule = {
    .name = "reschedule",
    .usage = "QUEUE ID (--in DURATION | --at TIME)",
    .summary = "change when a job is due",
    .min = 2,
    .max = 2,
    .opts = reschedule_options,
    .text = "Changes when a job is due. A dead job becomes waiting again, with all its\n"
            "tries; a running one is not changed (exit code 1). Prints the job as Redis\n"
            "stores it, as lapse schedule does.\n"
            "\n"
            "examples:\n"
            "  lapse reschedule sessions user-7 --in 20m\n"
            "  lapse reschedule webhooks hook-3 --in 0s      (run it now, even if it is dead)\n",
    .run = reschedule_run,
};
