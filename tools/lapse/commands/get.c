/* SPDX-License-Identifier: MIT */
/* lapse get. */
#include "cli/arguments.h"
#include "cli/print.h"
#include "cli/values.h"
#include "client/oneshot.h"

struct get_command {
    struct oneshot once; /* first: send() gets this */
    const char *id;
};

static void on_get_reply(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct get_command *get = arg;

    (void)l;
    if (!oneshot_replied(&get->once, err, get->once.queue, get->id)) {
        return;
    }

    if (get->once.g->text) {
        print_job_long(job);
    } else {
        print_job(get->once.g, job, WITH_BODY);
    }
}

static int get_send(struct oneshot *o)
{
    struct get_command *get = (struct get_command *)o;

    return oneshot_sent(o, lapse_get(o->c.l, o->queue, get->id, on_get_reply, get));
}

static int get_run(const struct command *cmd, struct globals *g, struct arguments *args)
{
    struct get_command get = {.id = NULL};
    int rc = arguments_read(cmd, g, &get, args);

    if (rc) {
        return rc;
    }

    get.once.queue = args->v[0];
    get.id = args->v[1];
    if (check_queue(get.once.queue) || check_id(get.id)) {
        return USAGE;
    }

    return oneshot_run(&get.once, g, get_send);
}

const struct command cmd_get = {
    .name = "get",
    .usage = "QUEUE ID",
    .summary = "show a job, its body and its report",
    .min = 2,
    .max = 2,
    .text = "Prints the job as one JSON object: queue, id, state (waiting, running, dead, or kept\n"
            "after its end), due_ms, try, tries, token, until_ms (end of the lease, or until when\n"
            "it is kept; else 0), reason (why it was last put back), and body, or body_base64 if\n"
            "the body is not UTF-8. Then only what it has:\n"
            "\n"
            "  tags, headers, priority, unique, max_late_ms, late, if: as lapse schedule set them\n"
            "  cancelled   true: it runs, and was asked to stop\n"
            "  created_ms  when it was scheduled, if its schedule or its id says so\n"
            "  report      what its holder has last said of it; or report_base64\n"
            "  end         of one that is kept: done, cancelled, skipped or forwarded\n"
            "  errors      why its last five runs failed, if it keeps that: at_ms, try, reason\n"
            "  series, stage  which series has made it, and of which of its moments it is\n"
            "  stages_ms, every_ms, catch_up, last_ms, times, no_overlap: of a series\n"
            "  gathered, quiet_ms, most, age_ms: of a group, how many parts it has, its limits\n"
            "  parts       of the job of a group, instead of body; or parts_base64\n"
            "\n"
            "examples:\n"
            "  lapse get orders order-1\n"
            "  lapse get orders order-1 --format text\n",
    .run = get_run,
};
