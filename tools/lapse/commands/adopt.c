/* SPDX-License-Identifier: MIT */
/* lapse adopt. It asks for a page at a time, and prints what was moved before it asks for the next
 * one. */
#include "cli/arguments.h"
#include "cli/message.h"
#include "cli/print.h"
#include "cli/values.h"
#include "client/oneshot.h"
#include <limits.h>
#include <string.h>

enum { PAGE_ENTRIES = 100, NAME_BYTES = 1024 };

struct adopt_command {
    struct oneshot once; /* first: send() gets this */
    const char *group;
    const char *consumer;
    int64_t idle_ms;
    unsigned limit; /* entries still to be moved */
};

/* ---- options ---- */
static int set_name(const struct opt *o, char *value, void *field)
{
    char option[16];

    snprintf(option, sizeof option, "--%s", o->name);
    if (!*value || strlen(value) > NAME_BYTES) {
        return usage_error(option, value, "must be 1 to 1024 bytes");
    }
    return set_text(o, value, field);
}

static int set_idle(const struct opt *o, char *value, void *field)
{
    int rc = set_duration(o, value, field);

    if (!rc && *(int64_t *)field == 0) {
        return usage_error("--idle", value, "must be at least 1ms");
    }
    return rc;
}

#define AT(field) offsetof(struct adopt_command, field)
static const struct opt adopt_options[] = {
    {"group", 0, "GROUP", set_name, AT(group), "of the stream"},
    {"to", 0, "CONSUMER", set_name, AT(consumer), "of the group: who gets the entries"},
    {"idle", 0, "DURATION", set_idle, AT(idle_ms),
     "only entries that were given out so long ago, and not acknowledged since; default: 1m"},
    {"limit", 'n', "N", set_count, AT(limit), "move at most N entries; default: all"},
    {NULL, 0, NULL, NULL, 0, NULL},
};

/* ---- the requests ---- */
static void on_adopted(struct lapse *l, int err, const struct lapse_job *const *jobs, size_t n,
                       void *arg);

static int adopt_send_page(struct adopt_command *adopt, const struct lapse_job *after)
{
    struct oneshot *o = &adopt->once;
    struct lapse_adoption what = {
        .size = sizeof what,
        .group = adopt->group,
        .consumer = adopt->consumer,
        .idle_ms = adopt->idle_ms,
        .n = adopt->limit < PAGE_ENTRIES ? adopt->limit : PAGE_ENTRIES,
        .after = after,
    };

    return oneshot_sent(o, lapse_adopt(o->c.l, o->queue, &what, on_adopted, adopt));
}

static void adopt_found_no_group(struct adopt_command *adopt)
{
    message_print("%s: is not forwarded to a stream that has a group %s", adopt->once.queue,
                  printable_argument(adopt->group));
    client_set_exit_code(&adopt->once.c, ANSWER_NO);
    oneshot_ended(&adopt->once);
}

static void on_adopted(struct lapse *l, int err, const struct lapse_job *const *jobs, size_t n,
                       void *arg)
{
    struct adopt_command *adopt = arg;

    (void)l;
    for (size_t i = 0; i < n; i++) {
        print_adopted(adopt->once.g, jobs[i]);
    }
    adopt->limit -= (unsigned)n;

    /* a reader that went away, as head does, wants no more pages */
    bool printed = fflush(stdout) == 0 && !ferror(stdout);
    if (!err && printed && n == PAGE_ENTRIES && adopt->limit) {
        err = adopt_send_page(adopt, jobs[n - 1]);
    }

    if (err == LAPSE_ENOENT) {
        adopt_found_no_group(adopt);
    } else {
        oneshot_replied(&adopt->once, err, adopt->once.queue, NULL);
    }
}

static int adopt_send(struct oneshot *o)
{
    return adopt_send_page((struct adopt_command *)o, NULL);
}

static int adopt_run(const struct command *cmd, struct globals *g, struct arguments *args)
{
    struct adopt_command adopt = {.limit = 0};
    int rc = arguments_read(cmd, g, &adopt, args);

    if (rc || check_queue(args->v[0])) {
        return USAGE;
    }
    if (!adopt.group) {
        return usage_errorf("missing option --group");
    }
    if (!adopt.consumer) {
        return usage_errorf("missing option --to");
    }

    adopt.once.queue = args->v[0];
    adopt.once.c.unknown_advice = "entries may have been moved that were not printed: the consumer "
                                  "has them among its pending ones";
    if (!adopt.limit) {
        adopt.limit = UINT_MAX;
    }

    return oneshot_run(&adopt.once, g, adopt_send);
}

const struct command cmd_adopt = {
    .name = "adopt",
    .usage = "QUEUE --group GROUP --to CONSUMER [--idle DURATION] [--limit N]",
    .summary = "give entries of dead consumers of a stream to another one",
    .min = 1,
    .max = 1,
    .opts = adopt_options,
    .text =
        "Of the stream that the queue is forwarded to: gives entries that a group has given\n"
        "out, and that were not acknowledged for a while, to another consumer of the group,\n"
        "and prints one JSON object per entry: the job, the id of its entry (for XACK), and\n"
        "how often it was given out (deliveries). An entry that another program has added\n"
        "has an empty id, and an error. Then it removes the consumers of the group that have\n"
        "no entries and have asked for nothing for a day.\n"
        "\n"
        "examples:\n"
        "  lapse adopt orders --group billing --to worker-2\n"
        "  lapse adopt orders --group billing --to worker-2 --idle 10m --limit 100\n"
        "  lapse adopt orders --group billing --to judge | jq -r 'select(.deliveries > 5).id'\n",
    .run = adopt_run,
};
