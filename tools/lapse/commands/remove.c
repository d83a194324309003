/* SPDX-License-Identifier: MIT */
/* lapse remove. */
#include "cli/arguments.h"
#include "cli/json.h"
#include "cli/message.h"
#include "cli/values.h"
#include "client/oneshot.h"
#include <inttypes.h>

struct remove_command {
    struct oneshot once; /* first: send() gets this */
    bool force;
    uint64_t n; /* of calls that were cut off, too */
};

static const struct opt remove_options[] = {
    {"force", 0, NULL, set_switch, offsetof(struct remove_command, force),
     "also while listeners are alive and jobs run; what these hold is lost to them"},
    {NULL, 0, NULL, NULL, 0, NULL},
};

static void on_remove_reply(struct lapse *l, int err, uint64_t n, uint64_t n_running, void *arg)
{
    struct remove_command *command = arg;
    struct oneshot *o = &command->once;
    struct json j;

    (void)l;
    command->n += n;
    if (err == LAPSE_EBUSY) {
        message_print("%s: it has listeners, or jobs that run (%" PRIu64
                      "): `lapse listeners` shows them; stop them, or use --force",
                      o->queue, n_running);
        client_set_exit_code(&o->c, ANSWER_NO);
        oneshot_ended(o);
        return;
    }
    if (!oneshot_replied(o, err, o->queue, NULL)) {
        if (o->n_open == 0 && command->n > 0) {
            message_print("%s: before that %" PRIu64 " jobs were removed", o->queue, command->n);
        }
        return;
    }

    if (o->g->text) {
        printf("%s removed, with %" PRIu64 " jobs\n", o->queue, command->n);
        return;
    }

    json_begin(&j, stdout);
    json_text(&j, "queue", o->queue);
    json_int(&j, "removed", (int64_t)command->n);
    json_end(&j);
}

static int remove_send(struct oneshot *o)
{
    struct remove_command *command = (struct remove_command *)o;
    unsigned flags = command->force ? LAPSE_FORCE : 0;

    return oneshot_sent(o, lapse_remove(o->c.l, o->queue, flags, on_remove_reply, command));
}

static int remove_run(const struct command *cmd, struct globals *g, struct arguments *args)
{
    struct remove_command command = {.force = false};
    int rc = arguments_read(cmd, g, &command, args);

    if (rc || check_queue(args->v[0])) {
        return USAGE;
    }

    command.once.queue = args->v[0];
    command.once.c.unknown_advice =
        "some jobs may have been removed. Repeat the command for the rest";

    return oneshot_run(&command.once, g, remove_send);
}

const struct command cmd_remove = {
    .name = "remove",
    .usage = "QUEUE [--force]",
    .summary = "remove a queue: its jobs in every state, its settings and its name",
    .min = 1,
    .max = 1,
    .opts = remove_options,
    .text =
        "Prints the queue, and how many jobs were removed. All goes that Redis keeps of the\n"
        "queue, its own stream or list too. The exit code is 1, and nothing has changed, if it\n"
        "has listeners, or jobs that run. A removal that was cut off goes on when the command\n"
        "is repeated.\n"
        "\n"
        "examples:\n"
        "  lapse remove orders-2019\n",
    .run = remove_run,
};
