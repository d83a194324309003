/* SPDX-License-Identifier: MIT */
/* lapse queues. */
#include "cli/arguments.h"
#include "cli/message.h"
#include "cli/print.h"
#include "cli/values.h"
#include "client/oneshot.h"

struct queues_command {
    struct oneshot once; /* first: send() gets this */
    const char *pattern; /* NULL: all */
};

static void on_queues_reply(struct lapse *l, int err, const struct lapse_queue *const *queues,
                            size_t n, void *arg)
{
    struct queues_command *command = arg;
    struct globals *g = command->once.g;

    (void)l;
    if (!oneshot_replied(&command->once, err, command->pattern ? command->pattern : "*", NULL)) {
        return;
    }

    if (g->text) {
        print_depth_heading();
    }
    for (size_t i = 0; i < n; i++) {
        print_queue(g, queues[i]);
    }
}

static int queues_send(struct oneshot *o)
{
    struct queues_command *command = (struct queues_command *)o;

    return oneshot_sent(o, lapse_queues(o->c.l, command->pattern, on_queues_reply, command));
}

static int queues_run(const struct command *cmd, struct globals *g, struct arguments *args)
{
    struct queues_command command = {.pattern = NULL};
    int rc = arguments_read(cmd, g, &command, args);

    if (rc || (args->n > 0 && check_queues(args->v[0]))) {
        return USAGE;
    }

    command.pattern = args->n > 0 ? args->v[0] : NULL;
    command.once.queue = command.pattern;

    return oneshot_run(&command.once, g, queues_send);
}

const struct command cmd_queues = {
    .name = "queues",
    .usage = "[PATTERN]",
    .summary = "list the queues, with their depths and settings",
    .min = 0,
    .max = 1,
    .text = "Prints one JSON object per queue that any process has scheduled or listened to, by\n"
            "name: what lapse depth prints, and the settings that have not their defaults.\n"
            "PATTERN is a name, or the beginning of names and a star.\n"
            "\n"
            "examples:\n"
            "  lapse queues\n"
            "  lapse queues 'email.*' | jq -r 'select(.late_ms > 1000).queue'\n",
    .run = queues_run,
};
