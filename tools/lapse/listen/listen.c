/* SPDX-License-Identifier: MIT */
/* The life of a listener: when it begins, when it stops. Each job goes to lines.c or exec.c, which
 * settles it. This file counts the running jobs, and decides which end has come:
 *
 *   --count   N jobs have begun
 *   --drain   no job that was due at the start is left
 *   HUP, TERM, INT (a second one: now)
 *   stdout is gone, Redis refuses us, or it cannot be reached and is not waited for
 *
 * All of them are lapse_close(), which gives back the jobs that were not begun and waits for the
 * others. */
#include "listen/listen.h"
#include "cli/message.h"
#include "cli/print.h"
#include "cli/stdout.h"
#include "cli/values.h"
#include "listen/spawn.h"
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TICK_MS = 50, PROBE_MS = 500, WATCH_MS = 1000, CALM_WATCHES = 2 };

/* A job that was begun here, for its settle. */
struct listen_job {
    struct listen *in;
    char about[330];
};

/* ---- the end ---- */
static void listen_close(struct listen *in, int code, int64_t grace_ms)
{
    client_set_exit_code(&in->c, code);
    in->closing = true;
    ev_timer_stop(in->c.loop, &in->tick);
    ev_timer_stop(in->c.loop, &in->watch);

    /* where nothing runs, there is nothing to settle with a Redis that never was there */
    if (!in->n_running && !in->connected_ms) {
        grace_ms = 0;
    }
    client_close(&in->c, grace_ms);
}

void listen_stop(struct listen *in, int code)
{
    listen_close(in, code, in->run_ms + INT64_C(2) * (EXEC_KILL_MS + LISTEN_SLACK_MS));
}

/* Jobs in hand that nothing here will settle. */
static unsigned listen_unsettled(const struct listen *in)
{
    return in->exec.n_unsettled + in->lines.n_unsettled;
}

/* The end of the handle gives those back; where there are no others it need not be waited for. */
static void listen_close_if_nothing_runs(struct listen *in)
{
    if (in->closing && in->n_running == listen_unsettled(in)) {
        client_close(&in->c, 0);
    }
}

static void on_stdout_broken(void *arg)
{
    struct listen *in = arg;

    listen_stop(in, stdout_error_code());
    listen_close_if_nothing_runs(in);
}

static void on_left_unsettled(void *arg)
{
    struct listen_job *job = arg;

    listen_close_if_nothing_runs(job->in);
}

/* ---- what keeps it from starting ---- */
static bool is_out_of_patience(const struct listen *in)
{
    int64_t wait_ms = in->g->connect_wait_ms;

    return in->no_wait || (wait_ms >= 0 && monotonic_ms() - in->opened_ms >= wait_ms);
}

/* Of several queues it is not known which one Redis refuses. */
static const char *listen_about(const struct listen *in)
{
    return in->queues.n == 1 ? in->queues.v[0].name : "listen";
}

static void report_may_evict(const struct listen *in)
{
    const char *advice = "set maxmemory-policy noeviction, or use --force";

    if (in->g->is_private) {
        advice = "set maxmemory-policy noeviction in the configuration (--conf)";
    }
    message_print("not started: this Redis may evict jobs when its memory runs short; %s", advice);
}

static void report_replica(const struct listen *in)
{
    const char *advice = "use the URL of its master";

    if (in->g->is_private) {
        advice = "remove replicaof from the configuration (--conf)";
    }
    message_print("not started: %s is a replica, which takes no writes; %s",
                  printable(in->g->shown_url), advice);
}

/* What keeps a listener from ever doing its work: an exit code, after it has printed why, or 0. A
 * listener that has done some outlives a change of its password, of a policy, and a failover. */
static int listen_obstacle(struct listen *in)
{
    struct client *c = &in->c;

    if (c->evicts && !in->n_begun) {
        report_may_evict(in);
        return UNFIT;
    }

    if (client_is_denied(c)) {
        return in->connected_ms ? 0 : client_report(c, LAPSE_EREFUSED, listen_about(in));
    }

    if (in->proven) {
        return 0;
    }

    if (c->replica) {
        report_replica(in);
        return DOWN;
    }

    if (c->no_right) {
        return client_report(c, LAPSE_EREFUSED, listen_about(in));
    }

    if (c->away && !in->connected_ms && is_out_of_patience(in)) {
        return client_report(c, LAPSE_EDOWN, listen_about(in));
    }

    return 0;
}

static void listen_refused(struct client *c)
{
    struct listen *in = (struct listen *)c;
    struct lapse_stats s;
    int code;

    if (in->closing) {
        return;
    }

    code = listen_obstacle(in);
    if (code) {
        listen_stop(in, code);
        return;
    }

    lapse_stats(c->l, &s, sizeof s);
    in->claimed = s.claimed;
    in->n_calm = 0;
    ev_timer_again(in->c.loop, &in->watch);
}

/* Runs now and then while something is wrong, or all is new. A listener enters the registry of its
 * queues as soon as it is connected, and asks again a few times a second for what it was refused.
 * So a calm second shows that Redis serves it, also where there are no jobs to claim. */
static void on_listen_watch(struct ev_loop *loop, ev_timer *w, int events)
{
    struct listen *in = w->data;
    struct lapse_stats s;
    int64_t now_ms = monotonic_ms();

    (void)events;
    lapse_stats(in->c.l, &s, sizeof s);

    in->n_calm = in->connected_ms ? in->n_calm + 1 : 0;
    if (in->n_calm >= CALM_WATCHES) {
        in->proven = true;
    }

    if (in->c.refuses_claims && s.claimed != in->claimed &&
        now_ms - in->c.refused_ms >= INT64_C(2) * WATCH_MS) {
        message_print("Redis accepts claims again");
        client_forget_warnings(&in->c);
    }

    if (in->proven && !in->c.refuses_claims) {
        ev_timer_stop(loop, w);
    }
}

/* ---- statistics ---- */
static void print_lateness(const struct lapse *l)
{
    struct lapse_histogram h;

    for (int via = LAPSE_VIA_EVENT; lapse_lateness(l, (enum lapse_via)via, &h) == 0; via++) {
        if (h.n) {
            message_print("late by %s: %" PRIu64 " job%s, p50 %g ms, p99 %g ms, max %g ms",
                          via_name((enum lapse_via)via), h.n, h.n == 1 ? "" : "s",
                          (double)lapse_quantile_us(&h, 0.5) / 1000,
                          (double)lapse_quantile_us(&h, 0.99) / 1000, (double)h.max_us / 1000);
        }
    }
}

static void print_stats(struct listen *in)
{
    struct lapse_stats s;
    char line[1024];
    size_t len = 0;

    lapse_stats(in->c.l, &s, sizeof s);

#define LAPSE_X(name, text)                                                                  \
    len += (size_t)snprintf(line + len, sizeof line - len, "%s%s %" PRIu64, len ? ", " : "", \
                            #name, s.name);
    LAPSE_STATS(LAPSE_X)
#undef LAPSE_X

    message_print("%s; running here %u", line, in->n_running);
    print_lateness(in->c.l);
}

static void on_listen_end(struct client *c)
{
    if (c->g->verbose) {
        print_stats((struct listen *)c);
    }
}

/* ---- signals ---- */
static void on_usr1(struct ev_loop *loop, ev_signal *w, int events)
{
    (void)loop;
    (void)events;
    print_stats(w->data);
}

static void on_listen_grace_over(struct ev_loop *loop, ev_timer *w, int events)
{
    struct listen *in = w->data;

    (void)loop;
    (void)events;
    exec_stop(&in->exec);
    if (in->lines.n_jobs) {
        lines_give_up(&in->lines, "nobody reads it");
    }
}

/* No command may go on when its job is given back, so each is waited for; a third signal does not
 * wait. */
static void listen_quit(struct listen *in, int code)
{
    if (in->quitting) {
        _exit(code);
    }

    message_print("quitting now; returning %u running job%s to the queue", in->n_running,
                  in->n_running == 1 ? "" : "s");
    in->quitting = code;
    exec_kill(&in->exec);
    if (in->argv) {
        listen_close_if_nothing_runs(in);
    } else {
        client_close(&in->c, 0);
    }
}

/* Takes no new jobs, and waits for those that run. how: to end that. */
static void listen_drain(struct listen *in, const char *how)
{
    if (in->draining) {
        return;
    }
    in->draining = true;

    if (in->n_running) {
        message_print("waiting for %u running job%s; %s to quit now", in->n_running,
                      in->n_running == 1 ? "" : "s", how);
    }

    ev_timer_stop(in->c.loop, &in->tick);
    ev_timer_init(&in->tick, on_listen_grace_over, (double)in->grace_ms / 1000, 0);
    listen_close(in, 0, in->grace_ms + EXEC_KILL_MS + LISTEN_SLACK_MS);
    ev_timer_start(in->c.loop, &in->tick);
}

/* A first signal does what is done already: who sends it may not know that. */
static void on_told(struct lapse *l, enum lapse_told what, void *arg)
{
    struct listen *in = arg;

    (void)l;
    if (what == LAPSE_TOLD_STOP && !in->closing) {
        listen_drain(in, "send SIGTERM twice");
    }
}

/* HUP is often not alone: after TERM from an init, twice from a shell and its terminal. So it does
 * not count as a second signal. */
static void on_stop_signal(struct ev_loop *loop, ev_signal *w, int events)
{
    struct listen *in = w->data;

    (void)loop;
    (void)events;
    if (w->signum != SIGHUP && in->n_signals++) {
        listen_quit(in, 128 + w->signum);
    } else {
        listen_drain(in, "send the signal again");
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
static bool hangup_is_ignored(void)
{
    struct sigaction action;

    return sigaction(SIGHUP, NULL, &action) || action.sa_handler == SIG_IGN;
}

static void watch_signals(struct listen *in)
{
    watch_signal(in, &in->term, SIGTERM, on_stop_signal);
    watch_signal(in, &in->interrupt, SIGINT, on_stop_signal);
    watch_signal(in, &in->usr1, SIGUSR1, on_usr1);
    if (!hangup_is_ignored()) {
        watch_signal(in, &in->hangup, SIGHUP, on_stop_signal);
    }
}

/* ---- --drain ---- */
static void drain_check(struct listen *in);

/* Late for longer than we have been here: it was due when we came. */
static bool is_due_since_the_start(const struct listen *in, const struct lapse_depth *d)
{
    return d->late_ms && d->late_ms >= in->asked_ms - in->connected_ms;
}

static void drain_answered(struct listen *in, bool has_due)
{
    in->n_depths--;
    in->has_due = in->has_due || has_due;
    if (!in->n_depths && !in->has_due && !in->closing) {
        listen_stop(in, 0);
    }
}

static void on_drain_depth(struct lapse *l, int err, const struct lapse_depth *d, void *arg)
{
    struct listen *in = arg;

    (void)l;
    drain_answered(in, err || is_due_since_the_start(in, d));
}

static void on_drain_queues(struct lapse *l, int err, const struct lapse_queue *const *queues,
                            size_t n, void *arg)
{
    struct listen *in = arg;
    bool has_due = err;
    uint64_t most = 0;

    (void)l;
    for (size_t i = 0; i < n; i++) {
        const struct lapse_depth *d = queues[i]->depth;
        if (!is_due_since_the_start(in, d)) {
            continue;
        }
        has_due = true;
        if (d->waiting >= most) {
            most = d->waiting;
            snprintf(in->due_queue, sizeof in->due_queue, "%s", queues[i]->name);
        }
    }
    drain_answered(in, has_due);
}

static void on_due_queue_depth(struct lapse *l, int err, const struct lapse_depth *d, void *arg)
{
    struct listen *in = arg;

    (void)l;
    in->n_depths--;
    if (!err && !is_due_since_the_start(in, d)) {
        *in->due_queue = '\0';
        drain_check(in);
    }
}

static int drain_ask(struct listen *in, const char *queue)
{
    if (is_pattern(queue)) {
        return lapse_queues(in->c.l, queue, on_drain_queues, in);
    }
    return lapse_depth(in->c.l, queue, on_drain_depth, in);
}

/* A pattern may have thousands of queues: while one of them is known to have what was due, only
 * that one is looked at. */
static void drain_check(struct listen *in)
{
    if (in->n_depths || in->closing) {
        return;
    }

    in->asked_ms = monotonic_ms();
    if (*in->due_queue) {
        in->n_depths = lapse_depth(in->c.l, in->due_queue, on_due_queue_depth, in) == 0;
        return;
    }

    in->has_due = false;
    for (int i = 0; i < in->queues.n; i++) {
        if (drain_ask(in, in->queues.v[i].name)) {
            in->has_due = true;
        } else {
            in->n_depths++;
        }
    }
}

/* ---- jobs ---- */
static void on_job_settled(struct lapse *l, int err, const struct lapse_job *lent, void *arg)
{
    struct listen_job *job = arg;
    struct listen *in = job->in;

    (void)l;
    (void)lent;
    in->n_running--;
    if (err) {
        message_print("%s: %s; it may run again", job->about, lapse_strerror(err));
    }
    free(job);

    if (listen_unsettled(in)) {
        listen_close_if_nothing_runs(in);
    }

    if (in->drain && in->connected_ms) {
        drain_check(in);
    }
}

static void on_due_job(struct lapse *l, struct lapse_job *due, void *arg)
{
    struct listen *in = arg;
    struct listen_job *job = malloc(sizeof *job);

    (void)l;
    if (!job) {
        lapse_retry(due, LAPSE_BACKOFF, "the listener is out of memory", NULL, NULL);
        return;
    }

    job->in = in;
    snprintf(job->about, sizeof job->about, "%s/%s", lapse_job_queue(due), lapse_job_id(due));
    in->n_begun++;
    in->n_running++;

    if (in->argv) {
        exec_start(&in->exec, due, job);
    } else {
        lines_add_job(&in->lines, due, job);
    }

    if (in->n_begun == in->count) {
        listen_stop(in, 0);
    }
}

/* ---- the start ---- */
static void listen_connected(struct listen *in)
{
    in->connected_ms = monotonic_ms();
    if (in->g->verbose) {
        message_print("listening on %s", printable(in->g->shown_url));
    }

    if (in->drain) {
        in->tick.repeat = TICK_MS / 1000.0;
        ev_timer_again(in->c.loop, &in->tick);
        drain_check(in);
    }
}

static void listen_probed(struct listen *in, int err)
{
    if (in->closing) {
        return;
    }

    if (!err) {
        listen_connected(in);
    } else if (is_out_of_patience(in) || (err == LAPSE_EDENIED && in->c.no_right)) {
        listen_stop(in, client_report(&in->c, err, listen_about(in)));
    } else {
        ev_timer_again(in->c.loop, &in->tick);
    }
}

static void on_probed(struct lapse *l, int err, const struct lapse_depth *d, void *arg)
{
    (void)l;
    (void)d;
    listen_probed(arg, err);
}

static void on_probed_registry(struct lapse *l, int err, const struct lapse_queue *const *queues,
                               size_t n, void *arg)
{
    (void)l;
    (void)queues;
    (void)n;
    listen_probed(arg, err);
}

/* Asks for anything, to hear when Redis is there; and for a pattern, whether we may read the
 * registry. */
static void listen_probe(struct listen *in)
{
    int err = 0;

    ev_timer_stop(in->c.loop, &in->tick);
    if (in->queues.n && is_pattern(in->queues.v[0].name)) {
        err = lapse_queues(in->c.l, "-", on_probed_registry, in);
    } else if (in->queues.n) {
        err = lapse_depth(in->c.l, in->queues.v[0].name, on_probed, in);
    }

    if (err) {
        listen_stop(in, client_report(&in->c, err, in->queues.v[0].name));
    }
}

static void on_listen_tick(struct ev_loop *loop, ev_timer *w, int events)
{
    struct listen *in = w->data;

    (void)loop;
    (void)events;
    if (in->connected_ms) {
        drain_check(in);
    } else {
        listen_probe(in);
    }
}

static void on_event(struct lapse *l, enum lapse_event what, const struct lapse_job *job, void *arg)
{
    struct listen *in = arg;

    (void)l;
    if (what == LAPSE_EVENT_CANCEL) {
        exec_cancel(&in->exec, job);
    }
}

static void init_sinks(struct listen *in)
{
    in->lines.loop = in->c.loop;
    in->lines.g = in->g;
    in->lines.settled = on_job_settled;
    in->lines.broken = on_stdout_broken;
    in->lines.broken_arg = in;
    lines_init(&in->lines);

    in->exec.loop = in->c.loop;
    in->exec.settled = on_job_settled;
    in->exec.run_ms = in->run_ms;
    in->exec.left_unsettled = on_left_unsettled;
    if (in->argv) {
        exec_begin(&in->exec);
    }
}

static int listen_to(struct listen *in, int i)
{
    const struct weighted_queue *q = &in->queues.v[i];
    struct lapse_listen_options o = {.size = sizeof o, .weight = q->weight};

    if (in->strict) {
        o.level = (unsigned)i;
    }

    int err = lapse_listen(in->c.l, q->name, &o, on_due_job, in);
    if (err) {
        listen_stop(in, client_report(&in->c, err, q->name));
    }

    return err;
}

static void listen_begin(struct listen *in)
{
    int err = 0;

    ev_timer_init(&in->tick, on_listen_tick, 0, PROBE_MS / 1000.0);
    in->tick.data = in;
    ev_timer_init(&in->watch, on_listen_watch, 0, WATCH_MS / 1000.0);
    in->watch.data = in;
    ev_timer_again(in->c.loop, &in->watch);

    init_sinks(in);
    watch_signals(in);
    lapse_on_told(in->c.l, on_told, in);
    if (in->argv) {
        lapse_on_event(in->c.l, on_event, in);
    }

    for (int i = 0; !err && i < in->queues.n; i++) {
        err = listen_to(in, i);
    }

    if (!err) {
        listen_probe(in);
    }
}

/* The exit code, after it has printed what became of the jobs that were not settled. */
static int listen_conclude(const struct listen *in, int code)
{
    unsigned stopped = in->exec.n_unsettled;
    unsigned unsettled = listen_unsettled(in);
    unsigned late = in->n_running > unsettled ? in->n_running - unsettled : 0;

    if (stopped) {
        const char *plural = stopped == 1 ? "" : "s";
        message_print("stopped %u unfinished command%s; returning the job%s to the queue without "
                      "using a try, if Redis can be reached",
                      stopped, plural, plural);
    }

    if (in->quitting) {
        return in->quitting;
    }

    if (late) {
        message_print("%u job%s not settled in time; returning to the queue without using a try, "
                      "if Redis can be reached",
                      late, late == 1 ? "" : "s");
        if (!code) {
            code = in->argv ? DOWN : OUTPUT;
        }
    }

    return code;
}

void listen_free(struct listen *in)
{
    exec_free(&in->exec);
    weighted_free(&in->queues);
}

int listen_run(struct listen *in)
{
    int code = client_open(&in->c, in->g, listen_refused);

    if (code) {
        listen_free(in);
        return code;
    }

    in->c.on_end = on_listen_end;
    in->opened_ms = monotonic_ms();
    listen_begin(in);
    code = client_run(&in->c);
    code = listen_conclude(in, code);

    lines_free(&in->lines);
    listen_free(in);
    ev_timer_stop(in->c.loop, &in->tick);
    ev_timer_stop(in->c.loop, &in->watch);
    block_signal(SIGUSR1); /* it only asks, and would end us now */
    ev_signal_stop(in->c.loop, &in->term);
    ev_signal_stop(in->c.loop, &in->interrupt);
    ev_signal_stop(in->c.loop, &in->hangup);
    ev_signal_stop(in->c.loop, &in->usr1);

    return code;
}
