/* SPDX-License-Identifier: MIT */
/* lapse depth. */
#include "cli/arguments.h"
#include "cli/print.h"
#include "cli/values.h"
#include "client/oneshot.h"

struct depth_command {
    struct oneshot once; /* first: send() gets this */
    char **queues;
    int n_queues;
    int next; /* replies come in the order of the requests */
};

static void on_depth_reply(struct lapse *l, int err, const struct lapse_depth *d, void *arg)
{
    struct depth_command *depth = arg;
    bool is_first = depth->next == 0;
    const char *queue = depth->queues[depth->next++];

    (void)l;
    if (!oneshot_replied(&depth->once, err, queue, NULL)) {
        return;
    }

    if (is_first && depth->once.g->text) {
        print_depth_heading();
    }
    print_depth(depth->once.g, queue, d);
}

static int depth_send(struct oneshot *o)
{
    struct depth_command *depth = (struct depth_command *)o;
    int err = 0;

    depth->next = 0;
    for (int i = 0; !err && i < depth->n_queues; i++) {
        err = oneshot_sent(o, lapse_depth(o->c.l, depth->queues[i], on_depth_reply, depth));
    }

    return err;
}

static int depth_run(const struct command *cmd, struct globals *g, struct arguments *args)
{
    struct depth_command depth = {.next = 0};
    int rc = arguments_read(cmd, g, &depth, args);

    for (int i = 0; !rc && i < args->n; i++) {
        rc = check_queue(args->v[i]);
    }

    if (rc) {
        return rc;
    }

    depth.queues = args->v;
    depth.n_queues = args->n;
    depth.once.queue = args->v[0];

    return oneshot_run(&depth.once, g, depth_send);
}

const struct command cmd_depth = {
    .name = "depth",
    .usage = "QUEUE...",
    .summary = "count the jobs of queues, and show how late the oldest one is",
    .min = 1,
    .max = 1000,
    .text = "Prints one JSON object per queue: queue, waiting, running, dead, late_ms (how long\n"
            "the oldest due job has been waiting), and kept.\n"
            "\n"
            "examples:\n"
            "  lapse depth orders sessions\n"
            "  lapse depth orders | jq -e '.late_ms < 1000'\n",
    .run = depth_run,
};
