/* SPDX-License-Identifier: MIT */
/* The command line of lapse listen, and what it makes of its options; lapse dev shares the
 * latter. */
#include "cli/arguments.h"
#include "cli/message.h"
#include "cli/values.h"
#include "listen/listen.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { GRACE_MS = 30000, RUN_MS = 600000, DEFAULT_JOBS = 256 };

#define AT(field) offsetof(struct listen, field)
static const struct opt listen_options[] = {
    {"jobs", 'j', "N", set_count, AT(max_jobs),
     "at most so many at once; 256, with --exec one per CPU"},
    {"exec", 0, NULL, set_switch, AT(exec_given), "run the command after -- for each job"},
    {"env", 0, "NAME[=VALUE]", set_env, AT(env),
     "a variable for the command, ours or this; may be repeated"},
    {"count", 'n', "N", set_count, AT(count), "stop when N jobs have run"},
    {"drain", 0, NULL, set_switch, AT(drain), "stop when all that is due now has run"},
    {"no-wait", 0, NULL, set_switch, AT(no_wait),
     "stop (exit 69) if Redis is not there at the start; short\n"
     "for --connect-wait 0s"},
    {"force", 0, NULL, set_switch, AT(force),
     "also where Redis may evict jobs (maxmemory-policy allkeys-*)"},
    {"grace", 0, "DURATION", set_duration, AT(grace_ms),
     "after TERM, wait so long for running jobs, or for who\n"
     "reads stdout; 30s"},
    {NULL, 0, NULL, NULL, 0, NULL},
};

static unsigned cpus(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);

    return n > 0 ? (unsigned)n : 1;
}

static int check_queues(const struct listen *in)
{
    for (int i = 0; i < in->n_queues; i++) {
        if (check_queue(in->queues[i])) {
            return USAGE;
        }
        for (int k = 0; k < i; k++) {
            if (strcmp(in->queues[k], in->queues[i]) == 0) {
                return usage_error("queue", in->queues[i], "is named twice");
            }
        }
    }

    return 0;
}

/* How many jobs may run at once, never more than are to run in all; 0: what the library says. */
static unsigned jobs_at_once(const struct listen *in)
{
    unsigned most = in->max_jobs;

    if (!most) {
        most = in->g->opts.max_running;
    }
    if (!most && in->exec_given) {
        most = cpus();
    }

    if (in->count && in->count < (most ? most : DEFAULT_JOBS)) {
        most = in->count;
    }

    return most;
}

static int set_jobs_at_once(const struct listen *in)
{
    unsigned most = jobs_at_once(in);
    char number[16];

    snprintf(number, sizeof number, "%u", most);
    if (most && lapse_options_set(&in->g->opts, "max_running", number)) {
        return usage_error("--jobs", number, "must be a whole number from 1 to 100000");
    }

    return 0;
}

/* A command that is ended at run_ms must have exited and been settled while the job is still
 * ours. */
static void extend_run_ms(struct listen *in)
{
    int64_t most = INT64_C(366) * 24 * 3600 * 1000;
    int64_t longer = in->run_ms + EXEC_KILL_MS + LISTEN_SLACK_MS;

    in->g->opts.run_ms = longer < most ? longer : most;
}

int listen_prepare(struct listen *in, struct globals *g, struct arguments *args)
{
    in->g = g;
    in->run_ms = g->opts.run_ms ? g->opts.run_ms : RUN_MS;
    if (in->grace_ms < 0) {
        in->grace_ms = GRACE_MS;
    }
    if (in->force) {
        g->opts.flags |= LAPSE_MAY_EVICT;
    }

    in->queues = args->v;
    in->n_queues = args->n;
    if (in->exec_given) {
        in->n_queues = args->n_before_dashes;
        in->argv = args->v + args->n_before_dashes;
    }

    if (check_queues(in) || set_jobs_at_once(in)) {
        return USAGE;
    }

    message_set_nonblocking();
    if (!in->argv) {
        return 0;
    }

    if (!*in->argv) {
        return usage_errorf("missing argument CMD; usage: --exec -- CMD ARG...");
    }

    extend_run_ms(in);

    return exec_init(&in->exec, in->argv, &in->env);
}

static int listen_command_run(const struct command *cmd, struct globals *g, struct arguments *args)
{
    struct listen in = {.grace_ms = -1};
    int rc = arguments_read(cmd, g, &in, args);

    if (!rc) {
        rc = listen_prepare(&in, g, args);
    }
    if (rc) {
        return rc;
    }

    if (!in.n_queues) {
        exec_free(&in.exec);
        return usage_errorf("missing argument QUEUE; usage: lapse listen QUEUE... --exec -- CMD "
                            "ARG...");
    }

    return listen_run(&in);
}

const struct command cmd_listen = {
    .name = "listen",
    .usage = "QUEUE... [-j N] [--count N | --drain] [--force] [--exec -- CMD ARG...]",
    .summary = "run jobs when they are due",
    .min = 1,
    .max = INT_MAX,
    .opts = listen_options,
    .text =
        "Prints one JSON object for each due job: queue, id, body (body_base64 if it is not "
        "UTF-8),\n"
        "due_ms, late_ms (by Redis's clock, three decimals), try, token, via (event, notice, alarm "
        "or\n"
        "sweep: what told that it is due). A job is done when its line is written; one whose line\n"
        "could not be written goes back, its try not counted. Where nobody reads, jobs are held "
        "and "
        "their leases renewed;\n"
        "lines of the log are lost then, and counted.\n"
        "\n"
        "With --exec, CMD runs for each job, without a shell, in a process group of its own: the "
        "body\n"
        "on stdin, and LAPSE_QUEUE LAPSE_ID LAPSE_TRY LAPSE_TOKEN LAPSE_DUE_MS LAPSE_LATE_MS in "
        "its\n"
        "environment. Of ours it gets HOME LANG LANGUAGE LC_* LOGNAME SHELL TERM TMPDIR TZ USER\n"
        "XDG_RUNTIME_DIR and what --env names; its PATH is the system's. Its exit status is the "
        "verdict:\n"
        "  0 done    65 never run it again (dead)    anything else, as 75: run it again, by its "
        "backoff\n"
        "The status is the reason (lapse get shows it), and a run that failed is logged with its "
        "try.\n"
        "After run_ms (-o run_ms=10m) the group gets TERM, and 5 s later KILL. Where the system "
        "has "
        "no\n"
        "more processes or descriptors, jobs are held until it has, and no others are claimed.\n"
        "\n"
        "It exits at the start with 77 where Redis refuses it a right or its password, and with 69 "
        "on "
        "a\n"
        "replica. Once it has worked it outlives both; what Redis refuses is logged when it "
        "begins.\n"
        "\n"
        "TERM, INT and HUP take no new jobs, wait for those that run, and exit 0; a second TERM or "
        "INT\n"
        "leaves at once. A job whose command is ended by that, or by the end of --grace, goes "
        "back, "
        "its\n"
        "try not counted. If the listener is killed, so are its commands, but not what they "
        "started "
        "in\n"
        "turn. USR1 prints the statistics to stderr, -v also at the end.\n"
        "\nexamples:\n"
        "  lapse listen orders | while read -r job; do ...; done\n"
        "  lapse listen mail sms -j 8 --exec -- /usr/local/bin/deliver --quiet\n"
        "  lapse listen reports --drain          (from cron: what is due now, then exit)\n",
    .exits = "  78  not started: this Redis may evict jobs (maxmemory-policy allkeys-*)\n"
             "  128 and more: a second signal of that number less 128\n",
    .run = listen_command_run,
};
