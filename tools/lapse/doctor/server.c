/* SPDX-License-Identifier: MIT */
/* What serves here, and in which role. */
#include "doctor/ask.h"
#include "doctor/checks.h"
#include "doctor/report.h"
#include "cli/message.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OLDEST = 700 }; /* EVAL_RO came with 7.0 */

struct server_version {
    const char *kind;        /* "Valkey" */
    char own[VALUE_BYTES];   /* its own version */
    char redis[VALUE_BYTES]; /* the version of Redis that it is compatible with */
    char mode[VALUE_BYTES];
};

static void read_version(struct doctor *d, struct server_version *v)
{
    char executable[VALUE_BYTES];

    if (!*info_text(d, "redis_version", v->redis)) {
        hello_text(d, "version", v->redis);
    }
    if (!*info_text(d, "redis_mode", v->mode)) {
        hello_text(d, "mode", v->mode);
    }

    v->kind = "Redis";
    strcpy(v->own, v->redis);
    info_text(d, "executable", executable);

    if (info_has(d, "valkey_version")) {
        v->kind = "Valkey";
        info_text(d, "valkey_version", v->own);
    } else if (info_has(d, "dragonfly_version")) {
        v->kind = "Dragonfly";
        info_text(d, "dragonfly_version", v->own);
    } else if (strstr(executable, "keydb") || strstr(d->info, "\nmvcc_depth:")) {
        v->kind = "KeyDB";
    }
}

/* 702 of "7.2.4". */
static int version_number(const char *version)
{
    const char *dot = strchr(version, '.');
    int minor = dot ? atoi(dot + 1) : 0;
    return atoi(version) * 100 + minor;
}

static bool is_tested(const struct server_version *v)
{
    return strcmp(v->kind, "Redis") == 0 || strcmp(v->kind, "Valkey") == 0;
}

static void check_version(struct doctor *d)
{
    struct finding f = {.check = "server"};
    struct server_version v;

    read_version(d, &v);
    d->is_cluster = strcmp(v.mode, "cluster") == 0;
    const char *own = printable(v.own);

    if (!*v.redis) {
        f.verdict = WARN;
        report(d, f, "unknown version: this user may not run INFO; lapse needs Redis 7.0 or later");
    } else if (version_number(v.redis) < OLDEST) {
        f.verdict = FAIL;
        f.fix = "upgrade to Redis 7.0 or later, or to Valkey";
        report(d, f, "%s %s is too old: lapse needs 7.0 or later", v.kind, own);
    } else if (d->is_cluster && !d->cluster) {
        f.verdict = WARN;
        f.fix = "lapse -u redis+cluster://HOST:PORT doctor";
        report(d, f, "%s %s, a cluster: only queues whose slot this node owns can be used", v.kind,
               own);
    } else if (!is_tested(&v)) {
        f.verdict = WARN;
        f.fix = "lapse bench";
        report(d, f, "%s %s: lapse has not been tested with it", v.kind, own);
    } else if (strcmp(v.own, v.redis) != 0) {
        report(d, f, "%s %s, compatible with Redis %s", v.kind, own, printable(v.redis));
    } else {
        report(d, f, "%s %s", v.kind, own);
    }
}

/* A command that uses the master instead. INFO repeats whatever the replica is configured with. */
static const char *use_master(const struct doctor *d, char out[VALUE_BYTES])
{
    char host[VALUE_BYTES];
    int64_t port = info_int(d, "master_port");

    info_text(d, "master_host", host);
    if (!is_shell_safe(host, ":") || strlen(host) > 253 || port < 1 || port > 65535) {
        return "lapse -u URL, with the URL of its master";
    }

    if (strchr(host, ':')) {
        /* quoted, for a shell may take the brackets of an IPv6 address for a pattern */
        snprintf(out, VALUE_BYTES, "lapse -u 'redis://[%.253s]:%" PRId64 "'", host, port);
    } else {
        snprintf(out, VALUE_BYTES, "lapse -u redis://%.253s:%" PRId64, host, port);
    }

    return out;
}

static void check_role(struct doctor *d)
{
    struct finding f = {.check = "role"};
    char role[VALUE_BYTES];
    char fix[VALUE_BYTES];

    if (!*info_text(d, "role", role)) {
        hello_text(d, "role", role);
    }

    d->is_replica = strcmp(role, "slave") == 0 || strcmp(role, "replica") == 0;

    if (d->is_replica) {
        f.verdict = FAIL;
        f.fix = use_master(d, fix);
        report(d, f, "a replica: it refuses writes, and publishes no expiry events");
    } else if (*role) {
        report(d, f, "master");
    } else {
        f.verdict = WARN;
        report(d, f, "unknown: this user may not run INFO");
    }
}

void check_server(struct doctor *d)
{
    check_version(d);
    check_role(d);
}
