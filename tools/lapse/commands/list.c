/* SPDX-License-Identifier: MIT */
/* lapse list. It asks for a page at a time, so a long list is no snapshot: a job that moves
 * meanwhile may be shown twice or not at all. */
#include "cli/arguments.h"
#include "cli/message.h"
#include "cli/print.h"
#include "cli/values.h"
#include "client/oneshot.h"
#include <limits.h>

enum { PAGE_JOBS = 100 };

struct list_command {
    struct oneshot once;    /* first: send() gets this */
    int only;               /* one state; 0: all */
    unsigned limit;         /* jobs still to be printed */
    enum lapse_state state; /* of the page that was asked for */
    const char *tag;        /* NULL: jobs of a state */
    const char *batch;      /* likewise */
    bool series;            /* only these */
};

static const struct opt list_options[] = {
    {"state", 's', "STATE", set_state, offsetof(struct list_command, only),
     "waiting (by due time), running (by end of lease), dead (by time of death) or kept (by until "
     "when it is); default: the first three, in this order"},
    {"tag", 0, "TAG", set_tag, offsetof(struct list_command, tag),
     "those with this tag, in any state but kept, by their ids"},
    {"batch", 0, "NAME", set_batch, offsetof(struct list_command, batch),
     "those of this batch, likewise"},
    {"series", 0, NULL, set_switch, offsetof(struct list_command, series),
     "those that are a series, by their ids"},
    {"limit", 'n', "N", set_count, offsetof(struct list_command, limit),
     "print at most N jobs; default: all"},
    {NULL, 0, NULL, NULL, 0, NULL},
};

static void on_list_page(struct lapse *l, int err, const struct lapse_job *const *jobs, size_t n,
                         void *arg);

static int list_send_page(struct list_command *list, const struct lapse_job *after)
{
    struct oneshot *o = &list->once;
    unsigned n = list->limit < PAGE_JOBS ? list->limit : PAGE_JOBS;

    if (list->tag) {
        return oneshot_sent(
            o, lapse_list_tag(o->c.l, o->queue, list->tag, after, n, on_list_page, list));
    }
    if (list->batch) {
        return oneshot_sent(
            o, lapse_list_batch(o->c.l, o->queue, list->batch, after, n, on_list_page, list));
    }
    return oneshot_sent(o, lapse_list(o->c.l, o->queue, list->state, after, n, on_list_page, list));
}

/* After the last page of a state comes the first of the next one. */
static int list_send_next(struct list_command *list, const struct lapse_job *last)
{
    if (last) {
        return list_send_page(list, last);
    }

    if (list->only || list->tag || list->batch || list->state == LAPSE_DEAD) {
        return 0;
    }

    list->state++;
    return list_send_page(list, NULL);
}

static void on_list_page(struct lapse *l, int err, const struct lapse_job *const *jobs, size_t n,
                         void *arg)
{
    struct list_command *list = arg;

    (void)l;
    if (!err) {
        for (size_t i = 0; i < n && list->limit; i++, list->limit--) {
            print_job(list->once.g, jobs[i], WITH_BODY);
        }

        /* a reader that went away, as head does, wants no more pages */
        if (list->limit && !fflush(stdout)) {
            err = list_send_next(list, n ? jobs[n - 1] : NULL);
        }
    }

    oneshot_replied(&list->once, err, list->once.queue, NULL);
}

static int list_send(struct oneshot *o)
{
    return list_send_page((struct list_command *)o, NULL);
}

/* At most one of them says which jobs. */
static int check_kinds(const struct list_command *list)
{
    int n = (list->only != 0) + (list->tag != NULL) + (list->batch != NULL) + list->series;

    if (n > 1) {
        return usage_errorf("--state, --tag, --batch and --series: use only one of them");
    }
    return 0;
}

static int list_run(const struct command *cmd, struct globals *g, struct arguments *args)
{
    struct list_command list = {.limit = 0};
    int rc = arguments_read(cmd, g, &list, args);

    if (rc || check_queue(args->v[0])) {
        return USAGE;
    }

    if (check_kinds(&list)) {
        return USAGE;
    }
    if (list.series) {
        list.only = LAPSE_SERIES;
    }

    list.once.queue = args->v[0];
    list.state = list.only ? (enum lapse_state)list.only : LAPSE_WAITING;
    if (!list.limit) {
        list.limit = UINT_MAX;
    }

    if (g->text) {
        print_job_heading();
    }

    return oneshot_run(&list.once, g, list_send);
}

const struct command cmd_list = {
    .name = "list",
    .usage = "QUEUE [--state STATE | --tag TAG | --batch NAME | --series] [--limit N]",
    .summary = "list the jobs of a queue",
    .min = 1,
    .max = 1,
    .opts = list_options,
    .text = "Prints one JSON object per job, as lapse get does. A job whose record cannot be\n"
            "read has tries 0, no body, and an error.\n"
            "\n"
            "examples:\n"
            "  lapse list orders --limit 10\n"
            "  lapse list orders --state dead | jq -r .id\n"
            "  lapse list orders --state kept\n"
            "  lapse list orders --tag customer-7\n"
            "  lapse list orders --batch import-7\n"
            "  lapse list orders --series\n",
    .run = list_run,
};
