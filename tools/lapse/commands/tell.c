/* SPDX-License-Identifier: MIT */
/* lapse quiet, lapse stop. */
#include "cli/arguments.h"
#include "cli/message.h"
#include "cli/print.h"
#include "cli/values.h"
#include "client/oneshot.h"

struct tell_command {
    struct oneshot once; /* first: send() gets this */
    const char *name;
    bool undo;
};

static void on_told_reply(struct lapse *l, int err, const struct lapse_listener *const *listeners,
                          size_t n, void *arg)
{
    struct tell_command *command = arg;
    struct oneshot *o = &command->once;

    (void)l;
    if (err == LAPSE_ENOENT) {
        message_print("%s: no listener of this name is alive: `lapse listeners QUEUE` shows who is",
                      printable_argument(command->name));
        client_set_exit_code(&o->c, ANSWER_NO);
        oneshot_ended(o);
        return;
    }
    if (!oneshot_replied(o, err, command->name, NULL)) {
        return;
    }

    for (size_t i = 0; i < n; i++) {
        print_told(o->g, listeners[i]);
    }
}

static int quiet_send(struct oneshot *o)
{
    struct tell_command *command = (struct tell_command *)o;

    return oneshot_sent(o,
                        lapse_quiet(o->c.l, command->name, !command->undo, on_told_reply, command));
}

static int stop_send(struct oneshot *o)
{
    struct tell_command *command = (struct tell_command *)o;

    return oneshot_sent(o, lapse_stop(o->c.l, command->name, on_told_reply, command));
}

static int tell_run(const struct command *cmd, struct globals *g, struct arguments *args)
{
    struct tell_command command = {.undo = false};
    bool stops = cmd == &cmd_stop;
    int rc = arguments_read(cmd, g, &command, args);

    if (rc || check_listener(args->v[0])) {
        return USAGE;
    }

    command.name = args->v[0];
    command.once.queue = command.name;

    return oneshot_run(&command.once, g, stops ? stop_send : quiet_send);
}

static const struct opt quiet_options[] = {
    {"undo", 0, NULL, set_switch, offsetof(struct tell_command, undo), "tell it to go on"},
    {NULL, 0, NULL, NULL, 0, NULL},
};

const struct command cmd_quiet = {
    .name = "quiet",
    .usage = "NAME [--undo]",
    .summary = "tell a listener to take no more jobs, and stay",
    .min = 1,
    .max = 1,
    .opts = quiet_options,
    .text = "NAME is as lapse listeners shows it, or without the slash and the digits: then all\n"
            "listeners of that name are told. Prints one JSON object for each: name and told. It\n"
            "hears it at once, ends the jobs that it has, and takes no others until it may\n"
            "go on; others take them. The exit code is 1 if no such listener is alive.\n"
            "\n"
            "examples:\n"
            "  lapse quiet worker-7:4711\n"
            "  lapse quiet worker-7:4711 --undo\n",
    .run = tell_run,
};

const struct command cmd_stop = {
    .name = "stop",
    .usage = "NAME",
    .summary = "tell a listener to end its jobs, and exit",
    .min = 1,
    .max = 1,
    .text =
        "NAME is as for lapse quiet. lapse listen and lapse forward do then as at SIGTERM: they\n"
        "take no new jobs, wait for those that run, and exit with 0. Another program that does\n"
        "not use lapse_on_told() stays, and only takes no more jobs.\n"
        "\n"
        "examples:\n"
        "  lapse stop worker-7:4711\n",
    .run = tell_run,
};
