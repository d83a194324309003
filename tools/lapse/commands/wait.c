/* SPDX-License-Identifier: MIT */
/* lapse wait. */
#include "cli/arguments.h"
#include "cli/message.h"
#include "cli/print.h"
#include "cli/values.h"
#include "client/oneshot.h"

#define NO_LIMIT_MS ((int64_t)3650 * 86400000)

struct wait_command {
    struct oneshot once; /* first: send() gets this */
    const char *id;
    int64_t timeout_ms; /* -1: no limit */
};

static const struct opt wait_options[] = {
    {"timeout", 0, "DURATION", set_duration, offsetof(struct wait_command, timeout_ms),
     "how long to wait at most; 0s: only look; default: no limit"},
    {NULL, 0, NULL, NULL, 0, NULL},
};

static void on_wait_reply(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct wait_command *wait = arg;

    (void)l;
    if (err == LAPSE_ETIMEOUT) {
        message_print("%s/%s: it has not ended", wait->once.queue, printable_argument(wait->id));
        client_set_exit_code(&wait->once.c, ANSWER_NO);
        oneshot_ended(&wait->once);
        return;
    }
    if (!oneshot_replied(&wait->once, err, wait->once.queue, wait->id)) {
        return;
    }

    if (lapse_job_state(job) == LAPSE_DEAD) {
        client_set_exit_code(&wait->once.c, ANSWER_NO);
    }
    if (wait->once.g->text) {
        print_job_long(job);
    } else {
        print_job(wait->once.g, job, WITH_BODY);
    }
}

static int wait_send(struct oneshot *o)
{
    struct wait_command *wait = (struct wait_command *)o;
    int64_t wait_ms = wait->timeout_ms < 0 ? NO_LIMIT_MS : wait->timeout_ms;

    return oneshot_sent(o, lapse_wait(o->c.l, o->queue, wait->id, wait_ms, on_wait_reply, wait));
}

static int wait_run(const struct command *cmd, struct globals *g, struct arguments *args)
{
    struct wait_command wait = {.timeout_ms = -1};
    int rc = arguments_read(cmd, g, &wait, args);

    if (rc) {
        return rc;
    }

    wait.once.queue = args->v[0];
    wait.id = args->v[1];
    if (check_queue(wait.once.queue) || check_id(wait.id)) {
        return USAGE;
    }

    return oneshot_run(&wait.once, g, wait_send);
}

const struct command cmd_wait = {
    .name = "wait",
    .usage = "QUEUE ID [--timeout DURATION]",
    .summary = "wait until a job has ended, and show what became of it",
    .min = 2,
    .max = 2,
    .opts = wait_options,
    .text = "Prints the job as lapse get does, once it has ended and is kept (lapse schedule\n"
            "--keep), or is dead. The exit code is 1 if it is dead, if it is not there, or no\n"
            "more, and if it has not ended in time. The end of a job that is kept is heard of\n"
            "at once, that of another is found within sweep_ms.\n"
            "\n"
            "examples:\n"
            "  lapse wait orders order-1 --timeout 1m | jq -r .end\n",
    .run = wait_run,
};
