/* SPDX-License-Identifier: MIT */
/* lapse batch. */
#include "cli/arguments.h"
#include "cli/json.h"
#include "cli/message.h"
#include "cli/print.h"
#include "cli/values.h"
#include "client/oneshot.h"
#include <inttypes.h>

struct batch_command {
    struct oneshot once; /* first: send() gets this */
    const char *name;
    bool closes;
};

static const struct opt batch_options[] = {
    {"close", 0, NULL, set_switch, offsetof(struct batch_command, closes),
     "close it: its own job, whose id is NAME, is due when all others have ended"},
    {NULL, 0, NULL, NULL, 0, NULL},
};

static void print_batch(const struct batch_command *batch, const struct lapse_batch *b)
{
    const char *queue = batch->once.queue;
    struct json j;

    if (batch->once.g->text) {
        printf("%s %s: %" PRIu64 " wait or run, %" PRIu64 " dead, %" PRIu64 " ended, %s\n", queue,
               batch->name, b->left, b->dead, b->ended, b->closed ? "closed" : "not closed");
        return;
    }

    json_begin(&j, stdout);
    json_text(&j, "queue", queue);
    json_text(&j, "batch", batch->name);
    json_int(&j, "left", (int64_t)b->left);
    json_int(&j, "dead", (int64_t)b->dead);
    json_int(&j, "ended", (int64_t)b->ended);
    json_bool(&j, "closed", b->closed);
    json_end(&j);
}

static void on_batch_reply(struct lapse *l, int err, const struct lapse_batch *b, void *arg)
{
    struct batch_command *batch = arg;

    (void)l;
    if (oneshot_replied(&batch->once, err, batch->once.queue, batch->name)) {
        print_batch(batch, b);
    }
}

/* Why it cannot be closed; NULL: that is no matter of its own job. */
static const char *refusal(int err)
{
    switch (err) {
    case LAPSE_ENOENT:
        return "the batch has no job of its own: schedule one whose --id is its name";
    case LAPSE_EBUSY: return "the batch's own job has begun, or is dead";
    case LAPSE_EENDED: return "the batch's own job has ended";
    case LAPSE_EINVAL: return "the batch's own job is a series or a group";
    default: return NULL;
    }
}

static void on_close_reply(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct batch_command *batch = arg;
    struct oneshot *o = &batch->once;

    (void)l;
    if (refusal(err)) {
        message_print("%s/%s: %s", o->queue, batch->name, refusal(err));
        client_set_exit_code(&o->c, ANSWER_NO);
        oneshot_ended(o);
        return;
    }
    if (oneshot_replied(&batch->once, err, batch->once.queue, batch->name)) {
        print_job(batch->once.g, job, 0);
    }
}

static int batch_send(struct oneshot *o)
{
    struct batch_command *batch = (struct batch_command *)o;

    if (batch->closes) {
        return oneshot_sent(
            o, lapse_batch_close(o->c.l, o->queue, batch->name, on_close_reply, batch));
    }
    return oneshot_sent(o, lapse_batch_get(o->c.l, o->queue, batch->name, on_batch_reply, batch));
}

static int batch_run(const struct command *cmd, struct globals *g, struct arguments *args)
{
    struct batch_command batch = {.name = NULL};
    int rc = arguments_read(cmd, g, &batch, args);

    if (rc) {
        return rc;
    }

    batch.once.queue = args->v[0];
    batch.name = args->v[1];
    if (check_queue(batch.once.queue) || check_id(batch.name)) {
        return USAGE;
    }
    if (batch.closes) {
        batch.once.c.unknown_advice =
            "it may be closed. Repeat the command: that changes nothing then";
    }

    return oneshot_run(&batch.once, g, batch_send);
}

const struct command cmd_batch = {
    .name = "batch",
    .usage = "QUEUE NAME [--close]",
    .summary = "show how far a batch is, or close it: then its own job runs when all have ended",
    .min = 2,
    .max = 2,
    .opts = batch_options,
    .text =
        "The jobs that were scheduled with --batch NAME are a batch. Prints one JSON object:\n"
        "queue, batch, left (jobs that wait or run), dead, ended (how many have left it), and\n"
        "closed. With --close it prints the batch's own job instead, the one with the id NAME,\n"
        "which is to be scheduled before. That waits until all others are done, cancelled,\n"
        "skipped or forwarded, and runs then; at the latest when it was due before. A dead job\n"
        "holds the batch open until it is requeued and done, or cancelled.\n"
        "\n"
        "examples:\n"
        "  lapse schedule mails --batch nightly --in 0s 'to: a@example.org'\n"
        "  lapse schedule mails --id nightly --in 7d 'tell who has not got one'\n"
        "  lapse batch mails nightly --close\n"
        "  lapse batch mails nightly\n",
    .run = batch_run,
};
