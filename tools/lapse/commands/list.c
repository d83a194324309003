/* SPDX-License-Identifier: MIT */
/* lapse list and depth: what lies in queues. A list is asked for in pages, so a long one is no
 * snapshot: a job that moves meanwhile may be shown twice or not at all. */
#include "cli/arguments.h"
#include "cli/message.h"
#include "cli/values.h"
#include "client/client.h"
#include "cli/print.h"
#include <stdio.h>
#include <string.h>

enum { PAGE = 100 };

struct list {
    struct oneshot q; /* first: ask() gets this */
    const char *queue;
    int only;               /* one state; 0: all */
    unsigned limit;         /* still to be printed; 0 at the start: all */
    enum lapse_state state; /* of the page asked for */
};

static int set_state(const struct opt *o, char *value, void *field)
{
    (void)o;
    for (enum lapse_state s = LAPSE_WAITING; s <= LAPSE_DEAD; s++) {
        if (strcmp(value, state_name(s)) == 0) {
            *(int *)field = (int)s;
            return 0;
        }
    }
    return usage_error("--state", value, "waiting, running or dead");
}

static const struct opt opts[] = {
    {"state", 's', "STATE", set_state, offsetof(struct list, only),
     "waiting (by due time), running (by end of lease) or\ndead (by death); without it all three, "
     "in that order"},
    {"limit", 'n', "N", set_count, offsetof(struct list, limit), "at most so many jobs; all"},
    {NULL, 0, NULL, NULL, 0, NULL},
};

static void on_page(struct lapse *l, int err, const struct lapse_job *const *jobs, size_t n,
                    void *arg);

static int ask_page(struct list *p, const struct lapse_job *after)
{
    unsigned n = p->limit < PAGE ? p->limit : PAGE;
    int err = lapse_list(p->q.c.l, p->queue, p->state, after, n, on_page, p);
    p->q.open += !err;
    return err;
}

static void on_page(struct lapse *l, int err, const struct lapse_job *const *jobs, size_t n,
                    void *arg)
{
    struct list *p = arg;

    (void)l;
    for (size_t i = 0; !err && i < n && p->limit; i++, p->limit--) {
        print_job(p->q.g, jobs[i], WITH_BODY);
    }

    /* a reader that went away (| head) wants no more pages */
    if (!err && p->limit && !fflush(stdout)) {
        if (n) {
            err = ask_page(p, jobs[n - 1]);
        } else if (!p->only && p->state != LAPSE_DEAD) {
            p->state++;
            err = ask_page(p, NULL);
        }
    }

    oneshot_replied(&p->q, err, p->queue, NULL);
}

static int ask_list(struct oneshot *q)
{
    return ask_page((struct list *)q, NULL);
}

static int run_list(const struct command *cmd, struct globals *g, struct arguments *w)
{
    struct list p = {.queue = NULL};
    int rc = arguments_read(cmd, g, &p, w);

    if (rc || (rc = check_queue(w->v[0]))) {
        return rc;
    }

    p.queue = p.q.queue = w->v[0];
    p.state = p.only ? (enum lapse_state)p.only : LAPSE_WAITING;
    if (!p.limit) {
        p.limit = (unsigned)-1;
    }

    if (g->text) {
        print_job_heading();
    }

    return oneshot_run(&p.q, g, ask_list);
}

const struct command cmd_list = {
    "list",
    "QUEUE [--state STATE] [--limit N]",
    "show the jobs of a queue",
    1,
    1,
    opts,
    "Prints one JSON object a job, as lapse get does; one whose record cannot be read has tries "
    "0,\n"
    "no body, and an error.\n"
    "\nexamples:\n"
    "  lapse list orders --limit 10\n"
    "  lapse list orders --state dead | jq -r .id\n",
    NULL,
    run_list,
};

/* ---- depth ---- */
struct depth {
    struct oneshot q; /* first: ask() gets this */
    struct arguments *w;
    int next; /* answers come in the order of the questions */
};

static void on_depth(struct lapse *l, int err, const struct lapse_depth *d, void *arg)
{
    struct depth *p = arg;
    const char *queue = p->w->v[p->next++];

    (void)l;
    if (oneshot_replied(&p->q, err, queue, NULL)) {
        print_depth(p->q.g, queue, d, p->next == 1);
    }
}

static int ask_depth(struct oneshot *q)
{
    struct depth *p = (struct depth *)q;
    int err = 0;

    p->next = 0;
    for (int i = 0; !err && i < p->w->n; i++) {
        err = lapse_depth(q->c.l, p->w->v[i], on_depth, p);
        q->open += !err;
    }
    return err;
}

static int run_depth(const struct command *cmd, struct globals *g, struct arguments *w)
{
    struct depth p = {.w = w};
    int rc = arguments_read(cmd, g, &p, w);

    for (int i = 0; !rc && i < w->n; i++) {
        rc = check_queue(w->v[i]);
    }

    if (rc) {
        return rc;
    }

    p.q.queue = w->v[0];
    return oneshot_run(&p.q, g, ask_depth);
}

const struct command cmd_depth = {
    "depth",
    "QUEUE...",
    "count the jobs of queues, and how late the oldest is",
    1,
    1000,
    NULL,
    "Prints one JSON object a queue: queue, waiting, running, dead, and late_ms: how long the\n"
    "oldest due job has been waiting.\n"
    "\nexamples:\n"
    "  lapse depth orders sessions\n"
    "  lapse depth orders | jq -e '.late_ms < 1000'\n",
    NULL,
    run_depth,
};
