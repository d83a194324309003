/* SPDX-License-Identifier: MIT */
/* lapse kill. */
#include "cli/arguments.h"
#include "cli/print.h"
#include "cli/values.h"
#include "client/oneshot.h"

struct kill_command {
    struct oneshot once; /* first: send() gets this */
    const char *id;
    const char *reason;
};

static const struct opt kill_options[] = {
    {"reason", 0, "TEXT", set_text, offsetof(struct kill_command, reason),
     "kept with the job, which shows it; at most 200 bytes"},
    {NULL, 0, NULL, NULL, 0, NULL},
};

static void on_kill_reply(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct kill_command *kill = arg;

    (void)l;
    if (oneshot_replied(&kill->once, err, kill->once.queue, kill->id)) {
        print_job(kill->once.g, job, 0);
    }
}

static int kill_send(struct oneshot *o)
{
    struct kill_command *kill = (struct kill_command *)o;

    return oneshot_sent(o,
                        lapse_kill(o->c.l, o->queue, kill->id, kill->reason, on_kill_reply, kill));
}

static int kill_run(const struct command *cmd, struct globals *g, struct arguments *args)
{
    struct kill_command kill = {.id = NULL};
    int rc = arguments_read(cmd, g, &kill, args);

    if (rc) {
        return rc;
    }

    kill.once.queue = args->v[0];
    kill.id = args->v[1];
    if (check_queue(kill.once.queue) || check_id(kill.id)) {
        return USAGE;
    }

    kill.once.c.unknown_advice = "it may be dead. Repeat the command: it prints the job as it is";

    return oneshot_run(&kill.once, g, kill_send);
}

const struct command cmd_kill = {
    .name = "kill",
    .usage = "QUEUE ID [--reason TEXT]",
    .summary = "make a waiting job dead, so that it does not run",
    .min = 2,
    .max = 2,
    .opts = kill_options,
    .text = "Makes a waiting job dead, and prints it as lapse reschedule does. It stays until it\n"
            "is rescheduled or cancelled. A dead job stays as it is; a running one is not\n"
            "changed (exit code 1).\n"
            "\n"
            "examples:\n"
            "  lapse kill webhooks hook-3 --reason 'the customer has gone'\n",
    .run = kill_run,
};
