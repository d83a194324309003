/* SPDX-License-Identifier: MIT */
/* lapse doctor: looks at Redis as this user, and prints for each check whether all is well and
 * which command would correct it. Where this user may not look, it says so and goes on. Nothing but
 * --repair changes anything that lasts. Checks are declared in checks.h, a file for each theme;
 * ask.h is how they ask Redis, report.h how they print. */
#include "doctor/doctor.h"
#include "doctor/ask.h"
#include "doctor/checks.h"
#include "doctor/report.h"
#include "cli/arguments.h"
#include "cli/message.h"
#include "cli/url_mask.h"
#include "cli/values.h"
#include "client/cluster_sync.h"
#include <hiredis/hiredis.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPLY_MS = 5000 };

const char *const role_names[N_ROLES] = {
    [FOR_MONITOR] = "monitor",
    [FOR_PRODUCER] = "producer",
    [FOR_LISTENER] = "listener",
};

int64_t doctor_reply_ms(const struct doctor *d)
{
    return d->g->opts.reply_ms ? d->g->opts.reply_ms : REPLY_MS;
}

const char *doctor_queue(const struct doctor *d)
{
    if (d->queues.n > 0) {
        return d->queues.names[0];
    }
    return d->own_queue ? d->own_queue : "lapse-doctor";
}

void doctor_read_info(struct doctor *d)
{
    redisReply *r = ASK(d, "INFO", "all");

    if (is_denied(r)) {
        freeReplyObject(r);
        r = ASK(d, "INFO", "memory"); /* which a listener may run */
    }

    d->info = strdup(is_text(r) ? r->str : "");
    freeReplyObject(r);
    if (!d->info) {
        message_print("out of memory");
        d->code = INTERNAL;
    }
}

void check_all(struct doctor *d)
{
    static void (*const checks[])(struct doctor *) = {
        check_server,  check_rights,   check_events, check_memory, check_persistence,
        check_cluster, check_sentinel, check_clock,  check_jobs,   check_dead,
        check_parts,   check_settings, check_expiry,
    };

    for (size_t i = 0; i < sizeof checks / sizeof *checks && !d->code; i++) {
        checks[i](d);
    }
}

static void run_checks(struct doctor *d)
{
    doctor_read_info(d);
    if (!d->queues_named && !d->code) {
        find_queues(d);
    }
    check_all(d);
}

static int doctor_connect_to_cluster(struct doctor *d)
{
    d->cluster->url = d->url;
    d->cluster->shown = d->g->shown_url;
    d->cluster->reply_ms = doctor_reply_ms(d);
    return cluster_sync_open(d->cluster, &d->g->opts, d->g->connect_wait_ms);
}

static int doctor_connect(struct doctor *d)
{
    int code = url_make(d->g);
    if (code) {
        return code;
    }

    d->url = strdup(d->g->secret_url);
    url_wipe(d->g);
    if (!d->url) {
        message_print("out of memory");
        return INTERNAL;
    }

    if (cluster_sync_is_url(d->url)) {
        d->cluster = calloc(1, sizeof *d->cluster);
        if (!d->cluster) {
            message_print("out of memory");
            return INTERNAL;
        }
        return doctor_connect_to_cluster(d);
    }

    /* doctor_free() frees it; NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
    return redis_sync_open(&d->redis, &d->g->opts, d->url, d->g->shown_url, doctor_reply_ms(d),
                           d->g->connect_wait_ms);
}

int doctor_connect_again(const struct doctor *d, struct redis_sync *r)
{
    if (!d->cluster) {
        return redis_sync_open(r, &d->g->opts, d->url, d->redis.shown, doctor_reply_ms(d), 0);
    }

    return cluster_sync_connect_to(d->cluster, d->redis.host, d->redis.port, r);
}

static int doctor_run(struct doctor *d)
{
    int code = doctor_connect(d);
    if (code) {
        return code;
    }

    d->space = d->g->opts.space ? d->g->opts.space : "lapse";
    if (d->cluster) {
        check_nodes(d);
    } else {
        run_checks(d);
    }
    if (d->code) {
        return d->code;
    }
    report_summary(d);

    return d->n_verdicts[FAIL] > 0 ? ANSWER_NO : DONE;
}

static void doctor_free(struct doctor *d)
{
    redis_sync_close(&d->redis);
    if (d->cluster) { /* which has the URL still */
        cluster_sync_close(d->cluster);
    }
    free(d->cluster);
    if (d->url) {
        explicit_bzero(d->url, strlen(d->url));
    }
    free(d->url);
    free(d->info);
    queues_free(&d->queues);
}

/* ---- the command line ---- */
static int set_role(const struct opt *o, char *value, void *field)
{
    (void)o;
    for (unsigned i = 0; i < N_ROLES; i++) {
        if (strcmp(value, role_names[i]) == 0) {
            *(unsigned *)field = i;
            return DONE;
        }
    }

    return usage_error("--for", value, "listener, producer or monitor");
}

static const struct opt opts[] = {
    {"repair", 0, NULL, set_switch, offsetof(struct doctor, repair),
     "repair inconsistent jobs; deletes none"},
    {"half", 0, NULL, set_switch, offsetof(struct doctor, half),
     "with --repair: repair a queue in a cluster, too, of which a part\n"
     "seems or may be on another node; not while a slot moves"},
    {"for", 0, "ROLE", set_role, offsetof(struct doctor, role),
     "check the rights of a listener (the default), a producer\n"
     "(schedule, cancel, reschedule, kill, get, list, depth, queues) or a\n"
     "monitor (get, list, depth, queues, listeners)"},
    {NULL, 0, NULL, NULL, 0, NULL},
};

static int add_named_queues(struct doctor *d, const struct arguments *args)
{
    for (int i = 0; i < args->n; i++) {
        int code = check_queue(args->v[i]);
        if (code) {
            return code;
        }
        if (queues_have(&d->queues, args->v[i])) {
            continue;
        }
        if (!queues_add(&d->queues, args->v[i], strlen(args->v[i]))) {
            message_print("out of memory");
            return INTERNAL;
        }
    }

    d->queues_named = args->n > 0;
    return DONE;
}

static int run_doctor(const struct command *cmd, struct globals *g, struct arguments *args)
{
    struct doctor d = {.g = g, .eval = "EVAL", .role = FOR_LISTENER};
    int code = arguments_read(cmd, g, &d, args);

    if (!code) {
        code = add_named_queues(&d, args);
    }
    if (!code) {
        code = doctor_run(&d);
    }

    doctor_free(&d);

    return code;
}

const struct command cmd_doctor = {
    "doctor",
    "[QUEUE...] [--repair [--half]] [--for ROLE]",
    "check that Redis is configured correctly and that every job is consistent",
    0,
    INT_MAX,
    opts,
    "Looks at Redis as the user of the URL, and prints a line for each check: OK, WARN (jobs\n"
    "still run: later, or not after a crash) or FAIL, with the command that corrects it; at the\n"
    "end how many there are of each. Without QUEUE it finds the queues itself. What this user may\n"
    "not see is a WARN at most.\n"
    "\n"
    "checks: server, role, rights (a script that lacks one may stop half-way), events (a key\n"
    "of its own expires, and its event is waited for), eviction, memory, buffers,\n"
    "persistence, replicas (with -o replicas=N also whether N are in step), of a node of\n"
    "a cluster also slots (each has a node, and none is moving), coverage, timeout and size\n"
    "(of queues that are too large to be moved), under Sentinel also sentinel and replica\n"
    "(each one, as this user: what would be wrong if it were the master), clock, jobs (each\n"
    "is in exactly one state and has a record), series (of queues with some whose calendar no\n"
    "listener knows, so that they have no next moment), dead (of queues that have 10,000 or\n"
    "more dead jobs), parts (of groups that are gone), settings (of queues that have any),\n"
    "expiry (how late Redis would expire a key that nobody reads).\n"
    "\n"
    "With the URL of a cluster it looks at each master in turn, and at each replica as at one "
    "that\n"
    "would take its place. The checks cluster (has each slot a node?) and clock are then of all\n"
    "nodes together, and slots names queues whose keys are on a node that does not own their "
    "slot.\n"
    "Of a node that is fit it says no more than that.\n"
    "\n"
    "It may run beside listeners: jobs are checked in small batches, each at one moment. --repair\n"
    "keeps a job that has a live lease, or is yet to run, in that one state; whatever is left of\n"
    "others becomes a dead job that says what was found (lapse list QUEUE --state dead):\n"
    "reschedule it or cancel it. In a cluster a queue may have lost a part to another node, when\n"
    "the node died from which its slot was being moved. Such a queue is refused (EHALF) until the\n"
    "commands that slots names have finished the move; repairing it before would strand that "
    "part.\n"
    "A script that broke off half-way (EBROKEN) may leave what looks the same, and --half repairs\n"
    "it. Which of both it is, doctor says if it can ask all masters.\n"
    "\nexamples:\n"
    "  lapse doctor\n"
    "  lapse doctor orders --repair\n"
    "  lapse doctor --json | jq -r 'select(.verdict == \"FAIL\").fix'\n",
    "  1   also: a check failed\n",
    run_doctor,
};
