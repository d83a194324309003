/* SPDX-License-Identifier: MIT */
/* The command line of lapse listen, and what it makes of its options; lapse dev shares the
 * latter. */
#include "cli/arguments.h"
#include "cli/message.h"
#include "cli/values.h"
#include "listen/listen.h"
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

enum { GRACE_MS = 30000, RUN_MS = 600000, DEFAULT_JOBS = 256 };

#define AT(field) offsetof(struct listen, field)
static const struct opt listen_options[] = {
    {"jobs", 'j', "N", set_count, AT(max_jobs),
     "run at most N jobs at once; default 256, with --exec one per CPU"},
    {"exec", 0, NULL, set_switch, AT(exec_given), "run the command after -- for each job"},
    {"env", 0, "NAME[=VALUE]", set_env, AT(env),
     "pass a variable of the listener on to the command, or set it; may be repeated"},
    {"strict", 0, NULL, set_switch, AT(strict),
     "serve a queue only when those named before it have no due jobs left"},
    {"count", 'n', "N", set_count, AT(count), "stop after N jobs"},
    {"drain", 0, NULL, set_switch, AT(drain), "stop when all jobs that are due now have run"},
    {"no-wait", 0, NULL, set_switch, AT(no_wait),
     "exit with 69 if Redis cannot be reached at the start; short for --connect-wait 0s"},
    {"force", 0, NULL, set_switch, AT(force),
     "listen even if Redis may evict jobs (maxmemory-policy allkeys-*)"},
    {"grace", 0, "DURATION", set_duration, AT(grace_ms),
     "how long SIGTERM waits for running jobs, or for the reader of stdout; default 30s"},
    {NULL, 0, NULL, NULL, 0, NULL},
};

static unsigned cpus(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);

    return n > 0 ? (unsigned)n : 1;
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

static int listen_prepare_exec(struct listen *in)
{
    if (!in->argv) {
        return 0;
    }
    if (!*in->argv) {
        return usage_errorf("missing argument CMD; usage: --exec -- CMD ARG...");
    }

    extend_run_ms(in);

    return exec_init(&in->exec, in->argv, &in->env);
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

    int n_queues = args->n;
    if (in->exec_given) {
        n_queues = args->n_before_dashes;
        in->argv = args->v + args->n_before_dashes;
    }

    int rc = weighted_read(&in->queues, args->v, n_queues, in->strict);
    if (!rc) {
        rc = set_jobs_at_once(in);
    }
    if (!rc) {
        message_set_nonblocking();
        rc = listen_prepare_exec(in);
    }
    if (rc) {
        weighted_free(&in->queues);
    }

    return rc;
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

    if (!in.queues.n) {
        listen_free(&in);
        return usage_errorf("missing argument QUEUE; usage: lapse listen QUEUE... --exec -- CMD "
                            "ARG...");
    }

    return listen_run(&in);
}

const struct command cmd_listen = {
    .name = "listen",
    .usage = "QUEUE[:WEIGHT]... [--strict] [-j N] [--count N | --drain] [--force] [--exec -- CMD "
             "ARG...]",
    .summary = "run jobs when they are due",
    .min = 1,
    .max = INT_MAX,
    .opts = listen_options,
    .text = "Prints one JSON object per due job: queue, id, body (body_base64 if it is not\n"
            "UTF-8), due_ms, late_ms (by Redis's clock, three decimals), try, token, and via\n"
            "(touch, event, notice, alarm or sweep: what showed that it is due); of the job of\n"
            "a group parts instead of body, a list, or parts_base64. A job is done\n"
            "when its line is written; a job whose line cannot be written goes back to the\n"
            "queue and uses no try. While nobody reads stdout, jobs are held and their leases\n"
            "renewed.\n"
            "\n"
            "While more jobs are due than may run at once, queues take them in turn, or by\n"
            "their weights, 1 to 1000: of mail:6 sms:3 log:1, 60, 30 and 10 of 100. With\n"
            "--strict the first that has due jobs is served, in the order given.\n"
            "\n"
            "A name that ends in a star is all queues of that beginning, those that are there\n"
            "and those that come, but for those that are named too, or have a longer such name.\n"
            "Each of them has its weight. Quote it, or the shell may take it for files.\n"
            "\n"
            "With --exec, CMD runs for each job, without a shell, in a process group of its\n"
            "own: the body on stdin, and LAPSE_QUEUE LAPSE_ID LAPSE_TRY LAPSE_TOKEN\n"
            "LAPSE_DUE_MS LAPSE_LATE_MS in its environment, and of a job of a series\n"
            "LAPSE_SERIES and LAPSE_STAGE, which moment it is; of that of a group also\n"
            "LAPSE_PARTS, how many there are on stdin, each behind its length: 7 bits a byte,\n"
            "the low ones first, bit 8 set on all but the last. Of the listener's own it\n"
            "gets HOME LANG LANGUAGE LC_* LOGNAME SHELL TERM TMPDIR TZ USER XDG_RUNTIME_DIR\n"
            "and what --env names; its PATH is the default of the system. Its exit status\n"
            "decides what becomes of the job:\n"
            "  0      done\n"
            "  65     dead, never run again\n"
            "  other  run again after its backoff; 75 is meant for that\n"
            "The status is kept as the reason (see lapse get), and each failed run is\n"
            "logged. After run_ms (-o run_ms=10m) the group gets SIGTERM, and 5 s later\n"
            "SIGKILL. While the system has no processes or descriptors left, jobs are held\n"
            "and no others are claimed.\n"
            "\n"
            "At the start it exits with 77 if Redis denies the login or a permission, and\n"
            "with 69 on a replica. Once it has run jobs it outlives both, and logs when\n"
            "Redis begins to refuse something.\n"
            "\n"
            "SIGTERM, SIGINT and SIGHUP make it take no new jobs, wait for the running ones\n"
            "and exit with 0; a second SIGTERM or SIGINT makes it quit at once. A job whose\n"
            "command is stopped so, or at the end of --grace, goes back to the queue and\n"
            "uses no try. If the listener is killed, its commands are killed too, but not\n"
            "what they started. SIGUSR1 prints statistics to stderr, and how late jobs\n"
            "were by each hint; so does the end with -v. Log lines that stderr does not\n"
            "take at once are dropped and counted.\n"
            "\n"
            "examples:\n"
            "  lapse listen orders | while read -r job; do ...; done\n"
            "  lapse listen mail sms -j 8 --exec -- /usr/local/bin/deliver --quiet\n"
            "  lapse listen mail:6 sms:3 log:1\n"
            "  lapse listen 'email.*'\n"
            "  lapse listen reports --drain      (from cron: run what is due now and exit)\n",
    .exits = "  78     not started: Redis may evict jobs (maxmemory-policy allkeys-*)\n"
             "  128+N  stopped at once by a second signal, of number N\n",
    .run = listen_command_run,
};
