/* SPDX-License-Identifier: MIT */
/* What of the jobs outlives a crash. */
#include "doctor/ask.h"
#include "doctor/checks.h"
#include "doctor/report.h"
#include "cli/message.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SILENT_S = 5 };

static void report_no_log(struct doctor *d)
{
    struct finding f = {.check = "persistence", .fix = "redis-cli CONFIG SET appendonly yes"};
    char save[VALUE_BYTES];
    bool known = config_text(d, "save", save);
    int64_t changes = info_int(d, "rdb_changes_since_last_save");
    int64_t age_s = (int64_t)time(NULL) - info_int(d, "rdb_last_save_time");

    if (known && !*save) {
        f.verdict = FAIL;
        report(d, f, "off: when Redis stops, all jobs are lost");
    } else {
        f.verdict = WARN;
        report(d, f,
               "snapshots only: a crash loses all changes since the last one (now %" PRId64
               " changes in %" PRId64 " s)",
               changes, age_s > 0 ? age_s : 0);
    }
}

static void report_log(struct doctor *d)
{
    struct finding f = {.check = "persistence"};
    char sync[VALUE_BYTES];

    if (!config_text(d, "appendfsync", sync)) {
        report(d, f,
               "append-only file; this user may not see appendfsync: unless it is always, a "
               "crash may lose the last moments");
    } else if (strcmp(sync, "no") == 0) {
        f.verdict = WARN;
        f.fix = "redis-cli CONFIG SET appendfsync everysec";
        report(d, f,
               "append-only file, never synced: a power failure may lose what the kernel has "
               "not written yet, often 30 s");
    } else if (strcmp(sync, "always") == 0) {
        report(d, f, "append-only file, appendfsync always: no acknowledged write is lost");
    } else {
        report(d, f,
               "append-only file, appendfsync %s: a power failure may lose the last second or two",
               printable(sync));
    }
}

static void check_log(struct doctor *d)
{
    struct finding f = {.check = "persistence"};
    char status[VALUE_BYTES];

    info_text(d, "aof_last_write_status", status);

    if (!info_has(d, "aof_enabled")) {
        f.verdict = WARN;
        report(d, f, "unknown: this user may not run INFO");
    } else if (!info_int(d, "aof_enabled")) {
        report_no_log(d);
    } else if (strcmp(status, "err") == 0) {
        f.verdict = FAIL;
        f.fix = "free space on its disk; redis-cli INFO persistence";
        report(d, f, "Redis cannot write its append-only file");
    } else {
        report_log(d);
    }
}

/* How many replicas a write needs; INFO shows only that it needs any. */
static int64_t replicas_needed(struct doctor *d, bool *known)
{
    char text[VALUE_BYTES];

    *known = config_text(d, "min-replicas-to-write", text);
    if (*known) {
        return strtoll(text, NULL, 10);
    }

    return info_has(d, "min_slaves_good_slaves") ? 1 : 0;
}

static void report_no_replica(struct doctor *d)
{
    struct finding f = {.check = "replicas", .verdict = WARN};
    char place[CLUSTER_PLACE];
    char fix[CLUSTER_PLACE + 80];

    cluster_place(d, place);
    snprintf(fix, sizeof fix, "redis-cli --cluster add-node NEW:PORT %s --cluster-slave", place);
    f.fix = fix;
    report(d, f, "none: when this master dies, its queues are gone until it is back");
}

/* A line of INFO: "slave0:ip=127.0.0.1,port=6380,state=online,offset=28,lag=1". One that waits for
 * the data of the master, or loads them, has another state. One that has become silent is online
 * until repl-timeout is over: all others say once a second what they have. */
static bool is_in_step(const char *line)
{
    char text[400];

    snprintf(text, sizeof text, "%.*s", (int)strcspn(line, "\r\n"), line);
    size_t digits = strspn(text + strlen("slave"), "0123456789");
    const char *lag = strstr(text, ",lag=");
    return digits > 0 && text[strlen("slave") + digits] == ':' && strstr(text, ",state=online,") &&
           lag && strtoll(lag + strlen(",lag="), NULL, 10) <= SILENT_S;
}

static unsigned replicas_in_step(const struct doctor *d)
{
    unsigned n = 0;

    for (const char *at = d->info; (at = strstr(at, "\nslave")); at++) {
        n += is_in_step(at + 1);
    }
    return n;
}

/* What -o replicas=N asks for; Redis keeps nothing of the options of a handle. A master that is cut
 * off can then acknowledge nothing, whatever min-replicas-to-write is. */
static void report_asked(struct doctor *d, unsigned in_step)
{
    struct finding f = {.check = "replicas"};
    unsigned asked = d->g->opts.replicas;

    if (in_step < asked) {
        f.verdict = FAIL;
        f.fix = "connect more, or lower the option replicas of listeners and producers";
        report(d, f,
               "%u in step, and the option replicas asks for %u: what is written is answered "
               "EALONE, and no handler begins",
               in_step, asked);
    } else if (in_step == asked) {
        f.verdict = WARN;
        f.fix = "one replica more";
        report(d, f,
               "%u in step, and the option replicas asks for %u: while one of them is away, or has "
               "become the master, what is written is answered EALONE, and no handler begins",
               in_step, asked);
    } else {
        report(d, f, "%u in step, and the option replicas asks for %u", in_step, asked);
    }
}

static void check_replicas(struct doctor *d)
{
    struct finding f = {.check = "replicas"};
    int64_t connected = info_int(d, "connected_slaves");
    int64_t good = info_int(d, "min_slaves_good_slaves");
    bool known;
    int64_t needed = replicas_needed(d, &known);
    bool too_few = d->g->opts.replicas > replicas_in_step(d);
    bool just_enough = connected > 0 && connected <= needed;

    if (!info_has(d, "connected_slaves")) {
        f.verdict = WARN;
        report(d, f, "unknown: this user may not run INFO");
    } else if (needed && good < needed) {
        f.verdict = FAIL;
        f.fix = "connect more, or redis-cli CONFIG SET min-replicas-to-write 0";
        report(d, f, "%" PRId64 " of %" PRId64 " needed are connected: every write is refused",
               good, needed);
    } else if (just_enough && !too_few) {
        f.verdict = WARN;
        f.fix = "one replica more, or redis-cli CONFIG SET min-replicas-to-write 0";
        report(d, f,
               "%" PRId64 " connected, and a write needs %" PRId64 " of them: after a failover the "
               "new master has one fewer, and refuses every write",
               connected, needed);
    } else if (d->g->opts.replicas > 0) {
        report_asked(d, replicas_in_step(d));
    } else if (connected == 0 && d->is_cluster) {
        report_no_replica(d);
    } else if (connected == 0) {
        report(d, f, "none");
    } else if (known && !needed && connected == 1) {
        f.verdict = WARN;
        f.fix = "a second replica, and then redis-cli CONFIG SET min-replicas-to-write 1";
        report(d, f,
               "1 connected, and a write does not need it: what a master acknowledges while it is "
               "cut off is lost in a failover");
    } else if (known && !needed) {
        f.verdict = WARN;
        f.fix = "redis-cli CONFIG SET min-replicas-to-write 1";
        report(d, f,
               "%" PRId64 " connected, but a write needs none of them: what a master acknowledges "
               "while it is cut off is lost in a failover (with min-replicas-max-lag 2: the last "
               "2 s)",
               connected);
    } else {
        report(d, f,
               "%" PRId64 " connected; notify-keyspace-events and users are not replicated: "
               "configure them there too",
               connected);
    }
}

void check_persistence(struct doctor *d)
{
    check_log(d);
    if (!d->is_replica) {
        check_replicas(d);
    }
}
