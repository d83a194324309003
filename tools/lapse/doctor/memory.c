/* SPDX-License-Identifier: MIT */
/* What happens when memory is short: of all of Redis, or of the buffer of one client. */
#include "doctor/ask.h"
#include "doctor/checks.h"
#include "doctor/report.h"
#include "cli/message.h"
#include <stdio.h>
#include <string.h>

enum { EVENT_BYTES = 120, SMALL_BUFFER = 1 << 20 };

static double mib(int64_t bytes)
{
    return (double)bytes / 1048576;
}

static void check_eviction(struct doctor *d)
{
    struct finding f = {
        .check = "eviction",
        .verdict = WARN,
        .fix = "redis-cli CONFIG SET maxmemory-policy noeviction",
    };
    char policy[VALUE_BYTES];

    info_text(d, "maxmemory_policy", policy);

    if (!*policy && !config_text(d, "maxmemory-policy", policy)) {
        f.fix = NULL;
        report(d, f,
               "unknown: this user may run neither INFO nor CONFIG GET; maxmemory-policy "
               "must be noeviction");
    } else if (strncmp(policy, "allkeys", 7) == 0) {
        f.verdict = FAIL;
        report(d, f,
               "%s: when memory is full, Redis deletes entire queues; listeners refuse to "
               "start",
               printable(policy));
    } else if (strcmp(policy, "noeviction") != 0) {
        report(d, f,
               "%s: when memory is full, Redis deletes the triggers of the jobs that are due "
               "soonest, which then start a little later",
               printable(policy));
    } else {
        f.verdict = FINE;
        f.fix = NULL;
        report(d, f, "%s", policy);
    }
}

static void check_used(struct doctor *d)
{
    struct finding f = {.check = "memory"};
    int64_t used = info_int(d, "used_memory");
    int64_t limit = info_int(d, "maxmemory");

    if (!info_has(d, "used_memory")) {
        f.verdict = WARN;
        report(d, f, "unknown: this user may not run INFO");
    } else if (limit && used > limit - limit / 10) {
        f.verdict = WARN;
        f.fix = "redis-cli CONFIG SET maxmemory BYTES";
        report(d, f, "%.1f of %.1f MiB used: new jobs will soon be refused; stored jobs still run",
               mib(used), mib(limit));
    } else if (limit) {
        report(d, f, "%.1f of %.1f MiB used", mib(used), mib(limit));
    } else {
        report(d, f, "%.1f MiB used, no limit", mib(used));
    }
}

/* The hard limit of "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60"; -1: this
 * user may not see it. */
static long long pubsub_limit(struct doctor *d)
{
    char limits[VALUE_BYTES];
    long long hard = -1;
    const char *pubsub = NULL;

    if (config_text(d, "client-output-buffer-limit", limits)) {
        pubsub = strstr(limits, "pubsub ");
    }

    return pubsub && sscanf(pubsub, "pubsub %lld", &hard) == 1 ? hard : -1;
}

static void check_buffers(struct doctor *d)
{
    static const char fix[] =
        "redis-cli CONFIG SET client-output-buffer-limit 'pubsub 16mb 4mb 60'";
    struct finding f = {.check = "buffers"};
    long long limit = pubsub_limit(d);
    long long events = limit / EVENT_BYTES;

    if (limit < 0) {
        report(d, f, "unknown: this user may not run CONFIG GET");
    } else if (limit == 0) {
        f.verdict = WARN;
        f.fix = fix;
        report(d, f,
               "no limit for pubsub: if a listener stops reading, its events can fill the "
               "memory of Redis");
    } else if (limit < SMALL_BUFFER) {
        f.verdict = WARN;
        f.fix = fix;
        report(d, f,
               "pubsub %.2f MiB: a burst of %lld events disconnects listeners; they reconnect "
               "and check their queues",
               mib(limit), events);
    } else {
        report(d, f, "pubsub %.0f MiB: a listener may fall %lld events behind", mib(limit), events);
    }
}

void check_memory(struct doctor *d)
{
    check_eviction(d);
    check_used(d);
    check_buffers(d);
}
