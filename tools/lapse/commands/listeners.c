/* SPDX-License-Identifier: MIT */
/* lapse listeners. */
#include "cli/arguments.h"
#include "cli/print.h"
#include "cli/values.h"
#include "client/oneshot.h"

static void on_listeners_reply(struct lapse *l, int err,
                               const struct lapse_listener *const *listeners, size_t n, void *arg)
{
    struct oneshot *o = arg;

    (void)l;
    if (!oneshot_replied(o, err, o->queue, NULL)) {
        return;
    }

    if (o->g->text) {
        print_listener_heading();
    }
    for (size_t i = 0; i < n; i++) {
        print_listener(o->g, o->queue, listeners[i]);
    }
}

static int listeners_send(struct oneshot *o)
{
    return oneshot_sent(o, lapse_listeners(o->c.l, o->queue, on_listeners_reply, o));
}

static int listeners_run(const struct command *cmd, struct globals *g, struct arguments *args)
{
    struct oneshot once = {.queue = NULL};
    int rc = arguments_read(cmd, g, &once, args);

    if (rc || check_queue(args->v[0])) {
        return USAGE;
    }

    once.queue = args->v[0];
    return oneshot_run(&once, g, listeners_send);
}

const struct command cmd_listeners = {
    .name = "listeners",
    .usage = "QUEUE",
    .summary = "list who listens to a queue, and how many of its jobs each holds",
    .min = 1,
    .max = 1,
    .text =
        "Prints one JSON object per listener that is alive: queue, name, since_ms (when it\n"
        "entered), member, held (how many jobs of the queue it runs), and told: go on, quiet or\n"
        "stop. Behind them come those that hold jobs and are no members: they hear no events of\n"
        "the queue, have had no free slot for a second, or only claim. A listener that has died\n"
        "counts as alive for up to 15 s.\n"
        "\n"
        "examples:\n"
        "  lapse listeners orders\n"
        "  lapse listeners orders | jq -s 'map(.held) | add'\n",
    .run = listeners_run,
};
