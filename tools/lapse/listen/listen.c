/* SPDX-License-Identifier: MIT */
/* lapse listen: when to begin, when to stop. Each job goes to one of two sinks (lines.c, exec.c),
 * which settles it; here is counted what runs, and decided which of the ends has come:
 *
 *   --count N jobs have begun                --drain: nothing that was due at the start is left
 *   HUP, TERM, INT (a second one: at once)   stdout is gone
 *   Redis refuses the login                  --no-wait, and Redis cannot be reached
 *
 * All of them are lapse_close(), which gives back what was not begun and waits for what was. */
#include "listen/listen.h"
#include "cli/arguments.h"
#include "cli/message.h"
#include "cli/stdout.h"
#include "cli/values.h"
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    TICK_MS = 50,
    PROBE_MS = 500,
    GRACE_MS = 30000,
    SLACK_MS = 2000,
    RUN_MS = 600000,
    WATCH_MS = 1000,
    DEFAULT_JOBS = 256
};

struct held { /* a job that was begun here; what its settle is about */
    struct listen *in;
    char about[330];
};

/* ---- stopping ---- */
static void stop(struct listen *in, int code, int64_t grace_ms)
{
    client_set_exit_code(&in->c, code);
    in->closing = 1;
    ev_timer_stop(in->c.loop, &in->tick);
    /* where nothing runs, a Redis that never was there has nothing to be told */
    client_close(&in->c, in->running || in->connected_ms ? grace_ms : 0);
}

void listen_stop(struct listen *in, int code)
{
    stop(in, code, in->run_ms + INT64_C(2) * (EXEC_KILL_MS + SLACK_MS));
}

/* With Redis that is not there. */
static int is_out_of_patience(const struct listen *in)
{
    int64_t wait_ms = in->g->connect_wait_ms;
    return in->no_wait || (wait_ms >= 0 && monotonic_ms() - in->opened_ms >= wait_ms);
}

/* Of several it is not known which one Redis refuses. */
static const char *about(const struct listen *in)
{
    return in->n_queues == 1 ? in->queues[0] : "listen";
}

/* What keeps a listener from ever doing its work; 0: nothing, or it has done some, and then it is
 * the administrator changing a password or a policy, or a failover, which a long-lived listener
 * outlives. */
static int obstacle(struct listen *in)
{
    struct client *c = &in->c;

    if (c->evicts && !in->begun) {
        message_print(
            "not started: jobs would be lost when memory runs short; lapse doctor tells more, "
            "--force starts all the same");
        return UNFIT;
    }

    if (client_is_denied(c)) {
        return in->connected_ms ? 0 : client_report(c, LAPSE_EREFUSED, about(in));
    }
    if (in->proven) {
        return 0;
    }

    if (c->replica) {
        message_print(
            "not started: %s is a replica, which takes no writes: give the URL of its master",
            printable(in->g->shown_url));
        return DOWN;
    }

    if (c->no_right) {
        return client_report(c, LAPSE_EREFUSED, about(in));
    }

    return c->away && !in->connected_ms && is_out_of_patience(in)
               ? client_report(c, LAPSE_EDOWN, about(in))
               : 0;
}

static void on_refused(struct client *c)
{
    struct listen *in = (struct listen *)c;
    int code = in->closing ? 0 : obstacle(in);

    if (code) {
        listen_stop(in, code);
    } else if (!in->closing) {
        struct lapse_stats s;
        lapse_stats(c->l, &s, sizeof s);
        in->claimed = s.claimed;
        ev_timer_again(in->c.loop, &in->watch);
    }
}

/* Now and then, while something is wrong or all is new. A claim that found nothing is no proof that
 * one which finds something is answered; nor is one of another queue, and what is refused is asked
 * for five times a second. */
static void on_watch(struct ev_loop *loop, ev_timer *w, int events)
{
    struct listen *in = w->data;
    struct lapse_stats s;

    (void)events;
    lapse_stats(in->c.l, &s, sizeof s);
    in->proven |= s.claimed + s.empty_claims && in->connected_ms &&
                  monotonic_ms() - in->connected_ms >= WATCH_MS;

    if (in->c.refuses_claims && s.claimed != in->claimed &&
        monotonic_ms() - in->c.refused_ms >= INT64_C(2) * WATCH_MS) {
        message_print("Redis answers claims again");
        client_forget_warnings(&in->c);
    }

    if (in->closing || (in->proven && !in->c.refuses_claims)) {
        ev_timer_stop(loop, w);
    }
}

/* Jobs in hand that nobody will settle. */
static unsigned kept(const struct listen *in)
{
    return in->exec.n_kept + in->lines.n_kept;
}

/* The end of the handle gives those back, and where there are no others there is nothing to wait
 * for. */
static void close_if_all_are_kept(struct listen *in)
{
    if (in->closing && in->running == kept(in)) {
        client_close(&in->c, 0);
    }
}

static void on_broken(void *arg)
{
    struct listen *in = arg;
    listen_stop(in, stdout_error_code());
    close_if_all_are_kept(in);
}

static void print_stats(struct listen *in)
{
    struct lapse_stats s;
    char line[1024];
    int n = 0;

    lapse_stats(in->c.l, &s, sizeof s);
#define LAPSE_X(name, text) \
    n += snprintf(line + n, sizeof line - (size_t)n, "%s%s %" PRIu64, n ? ", " : "", #name, s.name);
    LAPSE_STATS(LAPSE_X)
#undef LAPSE_X
    message_print("%s; running here %u", line, in->running);
}

static void on_end(struct client *c)
{
    if (c->g->verbose) {
        print_stats((struct listen *)c);
    }
}

static void on_usr1(struct ev_loop *loop, ev_signal *w, int events)
{
    (void)loop;
    (void)events;
    print_stats(w->data);
}

static void on_grace_over(struct ev_loop *loop, ev_timer *w, int events)
{
    struct listen *in = w->data;

    (void)loop;
    (void)events;
    exec_stop(&in->exec);
    if (in->lines.n) {
        lines_give_up(&in->lines, "it is not read");
    }
}

static void on_kept(void *arg)
{
    close_if_all_are_kept(((struct held *)arg)->in);
}

/* No command may run on when its job is given back, so each is waited for; whom that takes too long
 * signals again. */
static void leave(struct listen *in, int code)
{
    if (in->leaving) {
        _exit(code);
    }

    message_print("leaving at once; what runs (%u) goes back", in->running);
    in->leaving = code;
    exec_kill(&in->exec);
    if (in->argv) {
        close_if_all_are_kept(in);
    } else {
        client_close(&in->c, 0);
    }
}

static void on_stop_signal(struct ev_loop *loop, ev_signal *w, int events)
{
    struct listen *in = w->data;

    (void)events;

    /* HUP comes in company: after TERM from an init, twice from a shell and its terminal */
    if (w->signum != SIGHUP && in->signals++) {
        leave(in, 128 + w->signum);
        return;
    }

    if (in->draining++) {
        return;
    }

    if (in->running) {
        message_print("waiting for what runs (%u); once more to leave at once", in->running);
    }

    ev_timer_stop(loop, &in->tick);
    ev_timer_init(&in->tick, on_grace_over, (double)in->grace_ms / 1000, 0);
    stop(in, 0, in->grace_ms + EXEC_KILL_MS + SLACK_MS);
    ev_timer_start(loop, &in->tick);
}

/* ---- --drain ---- */
static void on_depth(struct lapse *l, int err, const struct lapse_depth *d, void *arg)
{
    struct listen *in = arg;

    (void)l;
    in->asked--;

    /* late for longer than we have been here: it was due when we came */
    in->due |= err || (d->late_ms && d->late_ms >= in->asked_ms - in->connected_ms);
    if (!in->asked && !in->due && !in->closing) {
        listen_stop(in, 0);
    }
}

static void probe(struct listen *in);

static void look_around(struct listen *in)
{
    if (in->asked || in->closing) {
        return;
    }

    in->due = 0;
    in->asked_ms = monotonic_ms();
    for (int i = 0; i < in->n_queues; i++) {
        if (lapse_depth(in->c.l, in->queues[i], on_depth, in)) {
            in->due = 1;
        } else {
            in->asked++;
        }
    }
}

static void on_tick(struct ev_loop *loop, ev_timer *w, int events)
{
    struct listen *in = w->data;

    (void)loop;
    (void)events;
    if (in->connected_ms) {
        look_around(in);
    } else {
        probe(in);
    }
}

/* ---- jobs ---- */
static void on_settled(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct held *held = arg;
    struct listen *in = held->in;

    (void)l;
    (void)job;
    in->running--;
    if (err) {
        message_print("%s: %s; it may run again", held->about, lapse_strerror(err));
    }

    free(held);
    if (kept(in)) {
        close_if_all_are_kept(in);
    }

    if (in->drain && in->connected_ms) {
        look_around(in);
    }
}

static void on_job(struct lapse *l, struct lapse_job *job, void *arg)
{
    struct listen *in = arg;
    struct held *held = malloc(sizeof *held);

    (void)l;
    if (!held) {
        lapse_retry(job, LAPSE_BACKOFF, "the listener is out of memory", NULL, NULL);
        return;
    }

    held->in = in;
    snprintf(held->about, sizeof held->about, "%s/%s", lapse_job_queue(job), lapse_job_id(job));
    in->begun++;
    in->running++;

    if (in->argv) {
        exec_start(&in->exec, job, held);
    } else {
        lines_add(&in->lines, job, held);
    }

    if (in->begun == in->count) {
        listen_stop(in, 0);
    }
}

/* ---- the start ---- */
static void on_probed(struct lapse *l, int err, const struct lapse_depth *d, void *arg)
{
    struct listen *in = arg;

    (void)l;
    (void)d;
    if (in->closing) {
        return;
    }

    if (!err) {
        in->connected_ms = monotonic_ms();
        if (in->g->verbose) {
            message_print("listening on %s", printable(in->g->shown_url));
        }
        in->tick.repeat = in->drain ? TICK_MS / 1000.0 : 0; /* 0 stops it */
        ev_timer_again(in->c.loop, &in->tick);
        if (in->drain) {
            look_around(in);
        }
    } else if (is_out_of_patience(in) || (err == LAPSE_EDENIED && in->c.no_right)) {
        listen_stop(in, client_report(&in->c, err, about(in)));
    } else {
        ev_timer_again(in->c.loop, &in->tick);
    }
}

static void probe(struct listen *in)
{
    int err = in->n_queues ? lapse_depth(in->c.l, in->queues[0], on_probed, in) : 0;
    ev_timer_stop(in->c.loop, &in->tick);
    if (err) {
        listen_stop(in, client_report(&in->c, err, in->queues[0]));
    }
}

static void watch_signal(struct listen *in, ev_signal *w, int signum,
                         void (*fn)(struct ev_loop *, ev_signal *, int))
{
    ev_signal_init(w, fn, signum);
    w->data = in;
    ev_signal_start(in->c.loop, w);
    unblock_signal(signum);
}

/* Under nohup it is ignored, and stays so. */
static int hears_hangup(void)
{
    struct sigaction action;
    return !sigaction(SIGHUP, NULL, &action) && action.sa_handler != SIG_IGN;
}

static void begin(struct listen *in)
{
    int err = 0;

    in->lines.loop = in->exec.loop = in->c.loop;
    in->lines.settled = in->exec.settled = on_settled;
    in->lines.g = in->g;
    in->lines.broken = on_broken;
    in->lines.broken_arg = in;
    in->exec.run_ms = in->run_ms;
    in->exec.kept = on_kept;
    lines_init(&in->lines);
    ev_timer_init(&in->tick, on_tick, 0, PROBE_MS / 1000.0);
    in->tick.data = in;
    ev_timer_init(&in->watch, on_watch, 0, WATCH_MS / 1000.0);
    in->watch.data = in;
    ev_timer_again(in->c.loop, &in->watch);
    watch_signal(in, &in->term, SIGTERM, on_stop_signal);
    watch_signal(in, &in->interrupt, SIGINT, on_stop_signal);
    watch_signal(in, &in->usr1, SIGUSR1, on_usr1);
    if (hears_hangup()) {
        watch_signal(in, &in->hangup, SIGHUP, on_stop_signal);
    }

    if (in->argv) {
        exec_begin(&in->exec);
    }

    for (int i = 0; !err && i < in->n_queues; i++) {
        err = lapse_listen(in->c.l, in->queues[i], NULL, on_job, in);
        if (err) {
            listen_stop(in, client_report(&in->c, err, in->queues[i]));
        }
    }

    if (!err) {
        probe(in);
    }
}

int listen_run(struct listen *in)
{
    int code = client_open(&in->c, in->g, on_refused);

    if (code) {
        exec_free(&in->exec);
        return code;
    }

    in->c.on_end = on_end;
    in->opened_ms = monotonic_ms();
    begin(in);
    code = client_run(&in->c);

    if (in->exec.n_kept) {
        message_print(
            "ended by us before they were through: %u; they go back, no try used, if Redis hears "
            "it",
            in->exec.n_kept);
    }

    if (in->leaving) {
        code = in->leaving;
    } else if (in->running > kept(in)) {
        message_print("not settled in time: %u; they go back, no try used, if Redis hears it",
                      in->running - kept(in));
        code = code ? code : in->argv ? DOWN : OUTPUT;
    }

    lines_free(&in->lines);
    exec_free(&in->exec);
    ev_timer_stop(in->c.loop, &in->tick);
    ev_timer_stop(in->c.loop, &in->watch);
    ev_signal_stop(in->c.loop, &in->term);
    ev_signal_stop(in->c.loop, &in->interrupt);
    ev_signal_stop(in->c.loop, &in->hangup);
    ev_signal_stop(in->c.loop, &in->usr1);

    return code;
}

/* ---- the command line ---- */
#define AT(field) offsetof(struct listen, field)
const struct opt listen_opts[] = {
    {"jobs", 'j', "N", set_count, AT(jobs),
     "at most so many at once; 256, with --exec one per CPU"},
    {"exec", 0, NULL, set_switch, AT(exec_given), "run the command after -- for each job"},
    {"env", 0, "NAME[=VALUE]", set_env, AT(env),
     "a variable for the command, ours or this; may be repeated"},
    {"count", 'n', "N", set_count, AT(count), "stop when N jobs have run"},
    {"drain", 0, NULL, set_switch, AT(drain), "stop when all that is due now has run"},
    {"no-wait", 0, NULL, set_switch, AT(no_wait),
     "stop (exit 69) if Redis is not there at the start; short\nfor --connect-wait 0s"},
    {"force", 0, NULL, set_switch, AT(force),
     "also where Redis may evict jobs (maxmemory-policy allkeys-*)"},
    {"grace", 0, "DURATION", set_duration, AT(grace_ms),
     "after TERM, wait so long for running jobs, or for who\nreads stdout; 30s"},
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
                return usage_error("queue", in->queues[i], "it is named twice");
            }
        }
    }

    return 0;
}

/* A command that is ended at run_ms must be gone, and its verdict told, while the job is still
 * ours. */
static void make_room_for_kill(struct listen *in)
{
    int64_t most = INT64_C(366) * 24 * 3600 * 1000;
    int64_t longer = in->run_ms + EXEC_KILL_MS + SLACK_MS;
    in->g->opts.run_ms = longer < most ? longer : most;
}

/* never more at once than are to run in all */
static int check_jobs(const struct listen *in)
{
    char number[16];
    unsigned set = in->g->opts.max_running;
    unsigned most = in->jobs ? in->jobs : set ? set : in->exec_given ? cpus() : 0;

    if (in->count && (!most || in->count < most)) {
        most = in->count < DEFAULT_JOBS || most ? in->count : DEFAULT_JOBS;
    }

    snprintf(number, sizeof number, "%u", most);
    return most && lapse_options_set(&in->g->opts, "max_running", number)
               ? usage_error("--jobs", number, "a whole number from 1 to 100000")
               : 0;
}

int listen_check(struct listen *in, struct globals *g, struct arguments *w)
{
    int rc;

    in->g = g;
    g->opts.flags |= in->force ? LAPSE_MAY_EVICT : 0;
    in->grace_ms = in->grace_ms < 0 ? GRACE_MS : in->grace_ms;
    in->run_ms = g->opts.run_ms ? g->opts.run_ms : RUN_MS;
    in->queues = w->v;
    in->n_queues = in->exec_given ? w->n_before_dashes : w->n;
    in->argv = in->exec_given ? w->v + w->n_before_dashes : NULL;
    if ((rc = check_queues(in)) || (rc = check_jobs(in))) {
        return rc;
    }

    message_set_nonblocking();
    if (!in->argv) {
        return 0;
    }

    if (!*in->argv) {
        message_print("--exec: the command is missing: --exec -- CMD ARG...");
        return USAGE;
    }

    make_room_for_kill(in);

    return exec_init(&in->exec, in->argv, &in->env);
}

static int run(const struct command *cmd, struct globals *g, struct arguments *w)
{
    struct listen in = {.grace_ms = -1};
    int rc = arguments_read(cmd, g, &in, w);

    if (rc || (rc = listen_check(&in, g, w))) {
        return rc;
    }

    if (!in.n_queues) {
        message_print("listen: a queue is missing: lapse listen QUEUE... --exec -- CMD ARG...");
        exec_free(&in.exec);
        return USAGE;
    }

    return listen_run(&in);
}

const struct command cmd_listen = {
    "listen",
    "QUEUE... [-j N] [--count N | --drain] [--force] [--exec -- CMD ARG...]",
    "run jobs when they are due",
    1,
    INT_MAX,
    listen_opts,
    "Prints one JSON object for each due job: queue, id, body (body_base64 if it is not UTF-8),\n"
    "due_ms, late_ms (by Redis's clock, three decimals), try, token, via (event, notice, alarm or\n"
    "sweep: what told that it is due). A job is done when its line is written; one whose line\n"
    "could not be written goes back, its try not counted. Where nobody reads, jobs are held and "
    "their leases renewed;\n"
    "lines of the log are lost then, and counted.\n"
    "\n"
    "With --exec, CMD runs for each job, without a shell, in a process group of its own: the body\n"
    "on stdin, and LAPSE_QUEUE LAPSE_ID LAPSE_TRY LAPSE_TOKEN LAPSE_DUE_MS LAPSE_LATE_MS in its\n"
    "environment. Of ours it gets HOME LANG LANGUAGE LC_* LOGNAME SHELL TERM TMPDIR TZ USER\n"
    "XDG_RUNTIME_DIR and what --env names; its PATH is the system's. Its exit status is the "
    "verdict:\n"
    "  0 done    65 never run it again (dead)    anything else, as 75: run it again, by its "
    "backoff\n"
    "The status is the reason (lapse get shows it), and a run that failed is logged with its try.\n"
    "After run_ms (-o run_ms=10m) the group gets TERM, and 5 s later KILL. Where the system has "
    "no\n"
    "more processes or descriptors, jobs are held until it has, and no others are claimed.\n"
    "\n"
    "It exits at the start with 77 where Redis refuses it a right or its password, and with 69 on "
    "a\n"
    "replica. Once it has worked it outlives both; what Redis refuses is logged when it begins.\n"
    "\n"
    "TERM, INT and HUP take no new jobs, wait for those that run, and exit 0; a second TERM or "
    "INT\n"
    "leaves at once. A job whose command is ended by that, or by the end of --grace, goes back, "
    "its\n"
    "try not counted. If the listener is killed, so are its commands, but not what they started "
    "in\n"
    "turn. USR1 prints the statistics to stderr, -v also at the end.\n"
    "\nexamples:\n"
    "  lapse listen orders | while read -r job; do ...; done\n"
    "  lapse listen mail sms -j 8 --exec -- /usr/local/bin/deliver --quiet\n"
    "  lapse listen reports --drain          (from cron: what is due now, then exit)\n",
    "  78  not started: this Redis may evict jobs (maxmemory-policy allkeys-*)\n"
    "  128 and more: a second signal of that number less 128\n",
    run,
};
