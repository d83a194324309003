/* SPDX-License-Identifier: MIT */
/* lapse kill. Its --reason is what the jobs get, so that of a selection has another name. */
#include "cli/arguments.h"
#include "cli/message.h"
#include "cli/print.h"
#include "commands/many.h"
#include <limits.h>

static const struct opt kill_options[] = {
    {"reason", 0, "TEXT", set_text, offsetof(struct many, why),
     "kept with each job, which shows it, up to 200 bytes"},
    {"state", 's', "STATE", set_state, offsetof(struct many, state),
     "all jobs that wait: waiting is the only state"},
    {"tag", 0, "TAG", set_tag, offsetof(struct many, tag), "all jobs that wait and have this tag"},
    {"batch", 0, "NAME", set_batch, offsetof(struct many, batch),
     "all jobs that wait and are of this batch"},
    {"with-reason", 0, "TEXT", set_text, offsetof(struct many, reason),
     "of these, those whose reason so far has this part, as lapse list shows it"},
    {"before", 0, "TIME", set_before, offsetof(struct many, before_ms),
     "of these, those that are due before this time: as --at of lapse schedule"},
    MANY_LIMIT,
    {NULL, 0, NULL, NULL, 0, NULL},
};

static void on_kill_reply(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    const struct many_job *kill = arg;
    struct oneshot *o = &kill->many->once;

    (void)l;
    if (oneshot_replied(o, err, o->queue, kill->id)) {
        print_job(o->g, job, 0);
    }
}

static int kill_job(struct many_job *job)
{
    struct oneshot *o = &job->many->once;
    const char *why = job->many->why;

    return oneshot_sent(o, lapse_kill(o->c.l, o->queue, job->id, why, on_kill_reply, job));
}

static int kill_all(struct many *m)
{
    struct oneshot *o = &m->once;

    return oneshot_sent(o, lapse_kill_all(o->c.l, o->queue, &m->where, m->why, many_counted, m));
}

static int kill_run(const struct command *cmd, struct globals *g, struct arguments *args)
{
    struct many kill = {.ask_job = kill_job,
                        .ask_all = kill_all,
                        .done = "killed",
                        .reason_option = "--with-reason"};
    int rc = arguments_read(cmd, g, &kill, args);

    if (!rc && kill.state && kill.state != LAPSE_WAITING) {
        return usage_errorf("--state is waiting: no other jobs are killed");
    }
    if (!rc) {
        rc = many_read(&kill, cmd, args);
    }
    if (rc) {
        return rc;
    }

    kill.once.c.unknown_advice = "it may be dead. Repeat the command: it prints the job as it is";
    if (kill.n_jobs == 0) {
        kill.once.c.unknown_advice = "more jobs may be dead. Repeat the command for the rest";
    }

    return many_run(&kill, g);
}

const struct command cmd_kill = {
    .name = "kill",
    .usage = "QUEUE (ID... | [--state waiting] [--tag TAG] [--batch NAME] [--with-reason TEXT] "
             "[--before TIME] [--limit N]) [--reason TEXT]",
    .summary = "make waiting jobs dead, so that they do not run",
    .min = 1,
    .max = INT_MAX,
    .opts = kill_options,
    .text = "Makes waiting jobs dead, and prints them as lapse reschedule does. They stay until\n"
            "they are rescheduled or cancelled. A dead job stays as it is; a running one is not\n"
            "changed (exit code 1).\n"
            "With --state waiting, --tag or --batch it kills all jobs that wait, or those of them\n"
            "with a tag or of a batch, or some, and prints one JSON object: queue, killed (how\n"
            "many), running (how many run, and were left).\n"
            "\n"
            "examples:\n"
            "  lapse kill webhooks hook-3 --reason 'the customer has gone'\n"
            "  lapse kill webhooks --tag customer-7 --reason 'the customer has gone'\n"
            "  lapse kill webhooks --state waiting --with-reason 'HTTP 410'\n",
    .run = kill_run,
};
