/* SPDX-License-Identifier: MIT */
/* lapse cancel. A cancelled job is gone, so what is printed is what is known of it: queue and
 * id. */
#include "cli/arguments.h"
#include "cli/json.h"
#include "cli/values.h"
#include "client/oneshot.h"

struct cancel_command {
    struct oneshot once; /* first: send() gets this */
    const char *id;
};

static void on_cancel_reply(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct cancel_command *cancel = arg;
    const char *queue = cancel->once.queue;
    struct json j;

    (void)l;
    (void)job;
    if (!oneshot_replied(&cancel->once, err, queue, cancel->id)) {
        return;
    }

    if (cancel->once.g->text) {
        printf("%s/%s cancelled\n", queue, cancel->id);
        return;
    }

    json_begin(&j, stdout);
    json_text(&j, "queue", queue);
    json_text(&j, "id", cancel->id);
    json_text(&j, "state", "cancelled");
    json_end(&j);
}

static int cancel_send(struct oneshot *o)
{
    struct cancel_command *cancel = (struct cancel_command *)o;

    return oneshot_sent(o, lapse_cancel(o->c.l, o->queue, cancel->id, 0, on_cancel_reply, cancel));
}

static int cancel_run(const struct command *cmd, struct globals *g, struct arguments *args)
{
    struct cancel_command cancel = {.id = NULL};
    int rc = arguments_read(cmd, g, &cancel, args);

    if (rc) {
        return rc;
    }

    cancel.once.queue = args->v[0];
    cancel.id = args->v[1];
    if (check_queue(cancel.once.queue) || check_id(cancel.id)) {
        return USAGE;
    }

    cancel.once.c.unknown_advice =
        "it may have been cancelled. Repeat the command: if there is no such job then, it was "
        "cancelled or has run, and only your own records show which";

    return oneshot_run(&cancel.once, g, cancel_send);
}

const struct command cmd_cancel = {
    .name = "cancel",
    .usage = "QUEUE ID",
    .summary = "remove a job before it runs",
    .min = 2,
    .max = 2,
    .text = "Removes a waiting or dead job for good and prints one JSON object: queue, id,\n"
            "state. A running job is not cancelled (exit code 1).\n"
            "\n"
            "examples:\n"
            "  lapse cancel orders order-1\n"
            "  lapse cancel -- orders -rf      (-- before an id that starts with -)\n",
    .run = cancel_run,
};
