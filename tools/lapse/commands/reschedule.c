/* SPDX-License-Identifier: MIT */
/* lapse reschedule, and what is a reschedule to now: lapse requeue, of dead jobs, and lapse run. */
#include "cli/arguments.h"
#include "cli/message.h"
#include "cli/print.h"
#include "commands/many.h"
#include <limits.h>

#define IN                                                        \
    {                                                             \
        "in", 0, "DURATION", set_in, offsetof(struct many, when), \
            "due this long from now: 250ms 90s 30m 1h30m 7d"      \
    }
#define AT                                                                                         \
    {                                                                                              \
        "at", 0, "TIME", set_at, offsetof(struct many, when),                                      \
            "due at this time: 2026-12-24T18:00Z, with seconds and an offset "                     \
            "2026-12-24T18:00:30.5+02:00, or @MS (Unix time in milliseconds); a time in the past " \
            "means now"                                                                            \
    }
static const struct opt reschedule_options[] = {
    IN,
    AT,
    MANY_SPREAD,
    MANY_STATE,
    MANY_TAG,
    MANY_BATCH,
    MANY_REASON,
    MANY_BEFORE,
    MANY_LIMIT,
    MANY_RUNNING,
    {NULL, 0, NULL, NULL, 0, NULL},
};
static const struct opt requeue_options[] = {
    MANY_SPREAD,
    MANY_TAG,
    MANY_BATCH,
    MANY_REASON,
    MANY_BEFORE,
    MANY_LIMIT,
    {NULL, 0, NULL, NULL, 0, NULL},
};

/* ---- requests ---- */
static void on_reschedule_reply(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    const struct many_job *r = arg;
    struct oneshot *o = &r->many->once;

    (void)l;
    if (oneshot_replied(o, err, o->queue, r->id)) {
        print_job(o->g, job, 0);
    }
}

static int reschedule_job(struct many_job *job)
{
    struct oneshot *o = &job->many->once;
    unsigned flags = many_flags(job->many);

    return oneshot_sent(o, lapse_reschedule(o->c.l, o->queue, job->id, job->many->when.due, flags,
                                            on_reschedule_reply, job));
}

static int reschedule_all(struct many *m)
{
    struct oneshot *o = &m->once;

    return oneshot_sent(o, lapse_reschedule_all(o->c.l, o->queue, &m->where, m->when.due,
                                                m->spread_ms, many_flags(m), many_counted, m));
}

static int reschedule(struct many *m, const struct command *cmd, struct globals *g,
                      const struct arguments *args)
{
    if (m->state == LAPSE_KEPT) {
        return usage_error("--state", "kept", "names jobs that have ended: they do not wait again");
    }

    int rc = many_read(m, cmd, args);
    if (rc) {
        return rc;
    }

    m->once.c.unknown_advice =
        "it may have been rescheduled. Repeat the command: if there is no such job then, it has "
        "run";
    if (m->n_jobs == 0) {
        m->once.c.unknown_advice =
            "some jobs more may have been rescheduled. Repeat the command for the rest";
    }

    return many_run(m, g);
}

/* ---- reschedule ---- */
static int reschedule_run(const struct command *cmd, struct globals *g, struct arguments *args)
{
    struct many m = {.ask_job = reschedule_job, .ask_all = reschedule_all, .done = "rescheduled"};
    int rc = arguments_read(cmd, g, &m, args);

    if (!rc) {
        rc = check_when(&m.when);
    }
    return rc ? rc : reschedule(&m, cmd, g, args);
}

const struct command cmd_reschedule = {
    .name = "reschedule",
    .usage =
        "QUEUE (ID... | [--state STATE] [--tag TAG] [--batch NAME] [--reason TEXT] "
        "[--before TIME] [--limit N]) (--in DURATION | --at TIME) [--spread DURATION] [--running]",
    .summary = "change when jobs are due",
    .min = 1,
    .max = INT_MAX,
    .opts = reschedule_options,
    .text = "Changes when jobs are due. A dead job becomes waiting again, with all its tries. Of\n"
            "each id it prints the job as Redis stores it, as lapse schedule does; one that is\n"
            "running, or is not there, is not changed (exit code 1). With --state or --tag it\n"
            "changes all jobs of a state, or with a tag, or some of them, and prints one JSON\n"
            "object: queue, rescheduled (how many; those that are due then in any case do not\n"
            "count), running (how many run, and were left). With --running a job that runs waits\n"
            "again after its run, however that ends, with all its tries; its state is running\n"
            "until then.\n"
            "\n"
            "examples:\n"
            "  lapse reschedule sessions user-7 --in 20m\n"
            "  lapse reschedule mails --state waiting --before 2026-12-24T18:00Z --in 1h --spread "
            "10m\n",
    .run = reschedule_run,
};

/* ---- requeue ---- */
/* Between the look and the reschedule a dead job can only be cancelled, replaced or made due: it is
 * not made due by mistake where it was none. */
static void on_look_reply(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct many_job *r = arg;
    struct oneshot *o = &r->many->once;

    (void)l;
    if (!err && lapse_job_state(job) != LAPSE_DEAD) {
        message_print("%s/%s: the job is %s, not dead", o->queue, r->id,
                      state_name(lapse_job_state(job)));
        client_set_exit_code(&o->c, ANSWER_NO);
        oneshot_ended(o);
        return;
    }

    if (!err) {
        err = reschedule_job(r);
    }
    oneshot_replied(o, err, o->queue, r->id);
}

static int requeue_job(struct many_job *job)
{
    struct oneshot *o = &job->many->once;

    return oneshot_sent(o, lapse_get(o->c.l, o->queue, job->id, on_look_reply, job));
}

static int requeue_run(const struct command *cmd, struct globals *g, struct arguments *args)
{
    struct many m = {
        .ask_job = requeue_job,
        .ask_all = reschedule_all,
        .done = "requeued",
        .where = {.state = LAPSE_DEAD},
    };
    int rc = arguments_read(cmd, g, &m, args);

    return rc ? rc : reschedule(&m, cmd, g, args);
}

const struct command cmd_requeue = {
    .name = "requeue",
    .usage = "QUEUE [ID... | [--tag TAG] [--batch NAME] [--reason TEXT] [--before TIME] "
             "[--limit N] [--spread DURATION]]",
    .summary = "run dead jobs again, now",
    .min = 1,
    .max = INT_MAX,
    .opts = requeue_options,
    .text = "Makes dead jobs wait again, with all their tries, due now. Of each id it prints the\n"
            "job, as lapse reschedule does; one that is not dead is not changed (exit code 1).\n"
            "Without ids it takes all dead jobs of the queue, or some of them, and prints one\n"
            "JSON object: queue, requeued (how many), running (0). A job that dies again\n"
            "meanwhile stays dead.\n"
            "\n"
            "examples:\n"
            "  lapse requeue webhooks hook-3\n"
            "  lapse requeue webhooks --tag customer-7\n"
            "  lapse requeue webhooks --reason 'HTTP 503' --spread 10m\n",
    .run = requeue_run,
};

/* ---- run ---- */
static int run_run(const struct command *cmd, struct globals *g, struct arguments *args)
{
    struct many m = {.ask_job = reschedule_job};
    int rc = arguments_read(cmd, g, &m, args);

    return rc ? rc : reschedule(&m, cmd, g, args);
}

const struct command cmd_run = {
    .name = "run",
    .usage = "QUEUE ID...",
    .summary = "make jobs due now, whenever they are due",
    .min = 2,
    .max = INT_MAX,
    .text = "Makes jobs due now, as lapse reschedule --in 0s does: a listener runs them. A dead\n"
            "one has all its tries again; one that is running, or is not there, is not changed\n"
            "(exit code 1).\n"
            "\n"
            "examples:\n"
            "  lapse run reports monthly-7\n",
    .run = run_run,
};
