/* SPDX-License-Identifier: MIT */
/* lapse claim. The jobs stay leased when it ends, and are settled by their tokens. Those that could
 * not be printed are given back. A signal ends it as soon as it has left the other listeners of the
 * queue: else they would count on it until it is known to be dead. A second one ends it at once. */
#include "cli/arguments.h"
#include "cli/message.h"
#include "cli/print.h"
#include "cli/values.h"
#include "client/oneshot.h"
#include <signal.h>

enum {
    MOST_JOBS = 100,
    LEASE_MIN_MS = 100,
    LEASE_MAX_MS = 86400000,
    GRACE_MS = 1000 /* to leave the other listeners of the queue */
};

struct claim_command {
    struct oneshot once; /* first: send() gets this */
    const char *id;      /* NULL: the oldest that are due */
    unsigned n;
    int64_t wait_ms;
    int64_t lease_ms;
    ev_signal term;
    ev_signal interrupt;
    int signum; /* that ends it; 0: none */
};

/* ---- options ---- */
static int set_most(const struct opt *o, char *value, void *field)
{
    (void)o;
    if (parse_count(value, MOST_JOBS, field)) {
        return usage_error("--limit", value, "must be a whole number from 1 to 100");
    }
    return 0;
}

static int set_wait(const struct opt *o, char *value, void *field)
{
    int64_t *ms = field;
    int rc = set_duration(o, value, field);

    if (!rc && *ms > LAPSE_WAIT_MAX_MS) {
        return usage_error("--wait", value, "must be at most 1d");
    }
    return rc;
}

static int set_claim_lease(const struct opt *o, char *value, void *field)
{
    int64_t *ms = field;
    int rc = set_duration(o, value, field);

    if (!rc && (*ms < LEASE_MIN_MS || *ms > LEASE_MAX_MS)) {
        return usage_error("--lease", value, "must be 100ms to 1d");
    }
    return rc;
}

#define AT(field) offsetof(struct claim_command, field)
static const struct opt claim_options[] = {
    {"limit", 'n', "N", set_most, AT(n), "claim at most N jobs, 1 to 100; default: 1"},
    {"id", 0, "ID", set_text, AT(id), "claim this job, if it is due"},
    {"wait", 0, "DURATION", set_wait, AT(wait_ms),
     "how long to wait for a job that is due; default: 0s"},
    {"lease", 0, "DURATION", set_claim_lease, AT(lease_ms),
     "how long they are claimed for, 100ms to 1d; default: the option lease_ms, 30s"},
    {NULL, 0, NULL, NULL, 0, NULL},
};

/* ---- signals ---- */
static void claim_unwatch_signals(struct claim_command *claim)
{
    ev_signal_stop(claim->once.c.loop, &claim->term);
    ev_signal_stop(claim->once.c.loop, &claim->interrupt);
}

static void on_end_signal(struct ev_loop *loop, ev_signal *w, int events)
{
    struct claim_command *claim = w->data;
    (void)loop, (void)events;

    claim->signum = w->signum;
    claim_unwatch_signals(claim);
    client_close(&claim->once.c, GRACE_MS);
}

/* One that its parent ignores stays ignored: so a shell starts what runs in the background. */
static void claim_watch_signal(struct claim_command *claim, ev_signal *w)
{
    struct sigaction now;

    if (sigaction(w->signum, NULL, &now) == 0 && now.sa_handler != SIG_IGN) {
        ev_signal_start(claim->once.c.loop, w);
    }
}

static void claim_init_signal(struct claim_command *claim, ev_signal *w, int signum)
{
    ev_signal_init(w, on_end_signal, signum);
    w->data = claim;
}

/* As if it had not been watched. */
static void claim_end_by_signal(const struct claim_command *claim)
{
    if (claim->signum) {
        fflush(stdout);
        signal(claim->signum, SIG_DFL);
        raise(claim->signum);
    }
}

/* ---- the request ---- */
static void print_claimed(const struct globals *g, struct lapse_job *const *jobs, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (g->text) {
            print_job_long(jobs[i]);
        } else {
            print_job(g, jobs[i], WITH_BODY);
        }
    }
}

static void claim_is_unfit(struct claim_command *claim)
{
    message_print("%s: no jobs are claimed: this Redis may evict any of them (maxmemory-policy "
                  "allkeys-*); see lapse doctor, or claim them all the same with -o "
                  "flags=may_evict",
                  claim->once.queue);
    client_set_exit_code(&claim->once.c, UNFIT);
}

static void on_claim_reply(struct lapse *l, int err, struct lapse_job *const *jobs, size_t n,
                           void *arg)
{
    struct claim_command *claim = arg;

    (void)l;
    if (err && claim->signum) {
        oneshot_ended(&claim->once);
        return;
    }
    if (err && claim->once.c.evicts) {
        claim_is_unfit(claim);
        err = 0;
    }
    if (!oneshot_replied(&claim->once, err, claim->once.queue, claim->id)) {
        return;
    }
    if (n == 0) {
        client_set_exit_code(&claim->once.c, ANSWER_NO);
        return;
    }

    print_claimed(claim->once.g, jobs, n);
    bool printed = fflush(stdout) == 0 && !ferror(stdout);
    for (size_t i = 0; i < n; i++) {
        if (printed) {
            lapse_forget(jobs[i]);
        } else {
            lapse_release(jobs[i], NULL, NULL);
        }
    }
}

static int claim_send(struct oneshot *o)
{
    struct claim_command *claim = (struct claim_command *)o;
    int err;

    claim_watch_signal(claim, &claim->term);
    claim_watch_signal(claim, &claim->interrupt);
    if (claim->id) {
        err = lapse_claim_id(o->c.l, o->queue, claim->id, on_claim_reply, claim);
    } else {
        err = lapse_claim(o->c.l, o->queue, claim->n, claim->wait_ms, on_claim_reply, claim);
    }

    return oneshot_sent(o, err);
}

/* No run of a job is to end before its lease. */
static void claim_set_lease(const struct claim_command *claim, struct globals *g)
{
    if (claim->lease_ms) {
        g->opts.lease_ms = claim->lease_ms;
    }
    if (g->opts.lease_ms) {
        g->opts.run_ms = g->opts.lease_ms;
    }
}

static int claim_run(const struct command *cmd, struct globals *g, struct arguments *args)
{
    struct claim_command claim = {.id = NULL};
    int rc = arguments_read(cmd, g, &claim, args);

    if (rc) {
        return rc;
    }

    claim.once.queue = args->v[0];
    if (check_queue(claim.once.queue) || (claim.id && check_id(claim.id))) {
        return USAGE;
    }
    if (claim.id && (claim.n || claim.wait_ms)) {
        return usage_error("--id", claim.id,
                           "is one job, and does not wait: use it without "
                           "--limit and --wait");
    }

    claim.n = claim.n ? claim.n : 1;
    claim.once.grace_ms = GRACE_MS;
    claim.once.c.unknown_advice = "jobs may have been claimed: those are due again when their "
                                  "leases end";
    claim_set_lease(&claim, g);
    claim_init_signal(&claim, &claim.term, SIGTERM);
    claim_init_signal(&claim, &claim.interrupt, SIGINT);

    rc = oneshot_run(&claim.once, g, claim_send);
    if (claim.once.c.loop) {
        claim_unwatch_signals(&claim);
    }
    claim_end_by_signal(&claim);

    return rc;
}

const struct command cmd_claim = {
    .name = "claim",
    .usage = "QUEUE [--limit N | --id ID] [--wait DURATION] [--lease DURATION]",
    .summary = "take jobs that are due, to settle them by their tokens",
    .min = 1,
    .max = 1,
    .opts = claim_options,
    .text = "Claims jobs that are due and prints one JSON object per job, as lapse get does.\n"
            "They are this caller's until their leases end (until_ms): settle each with its\n"
            "token by lapse done, retry, fail or release, or make its lease longer by lapse\n"
            "renew. What is not settled runs again. Exit code 1: no job is due.\n"
            "\n"
            "examples:\n"
            "  lapse claim orders --wait 1m --lease 5m\n"
            "  lapse claim orders --id order-1\n"
            "  job=$(lapse claim orders --wait 1m) &&\n"
            "    work \"$(echo \"$job\" | jq -r .body)\" &&\n"
            "    lapse done orders $(echo \"$job\" | jq -r '.id, .token')\n",
    .run = claim_run,
};
