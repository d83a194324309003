/* SPDX-License-Identifier: MIT */
/* What INFO, CONFIG GET and TIME tell. CONFIG is closed to most users, and INFO to many: what is
 * not told is no fault of Redis, and where it matters the line says whom to ask. Nothing is set
 * from here: the command that would is shown.
 */
#include "doctor/doctor.h"
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { OLDEST = 700, EVENT_BYTES = 120, FOREIGN_MANY = 10000, HZ_MUCH = 100 };

static int told(struct doctor *d, const char *check, const char *by)
{
    int is = *redis_info_field(d->info, by) != '\0';
    if (!is) {
        report(d, WARN, check, NULL, NULL, "not told: this user may not ask for INFO; ask who may");
    }
    return is;
}

/* ---- server, role ---- */
/* OLDEST: EVAL_RO came with 7.0. */
/* HELLO is open to every user that is let in. */
static const char *hello(struct doctor *d, const char *name, char out[VALUE_BYTES])
{
    redisReply *r = ASK(d, "HELLO");

    *out = '\0';
    for (size_t i = 0; r && r->type == REDIS_REPLY_ARRAY && i + 1 < r->elements; i += 2) {
        if (is_text(r->element[i]) && strcmp(r->element[i]->str, name) == 0 &&
            is_text(r->element[i + 1])) {
            snprintf(out, VALUE_BYTES, "%s", printable(r->element[i + 1]->str));
        }
    }

    freeReplyObject(r);
    return out;
}

static void server(struct doctor *d)
{
    char version[VALUE_BYTES];
    char own[VALUE_BYTES];
    char file[VALUE_BYTES];
    char mode[VALUE_BYTES];
    const char *kind = "Redis";
    const char *as = "";

    if (!*doctor_text(d, "redis_version", version)) {
        hello(d, "version", version);
    }

    if (!*doctor_text(d, "redis_mode", mode)) {
        hello(d, "mode", mode);
    }

    strcpy(own, version);

    if (*redis_info_field(d->info, "valkey_version")) {
        kind = "Valkey";
        doctor_text(d, "valkey_version", own);
    } else if (*redis_info_field(d->info, "dragonfly_version")) {
        kind = "Dragonfly";
        doctor_text(d, "dragonfly_version", own);
    } else if (strstr(doctor_text(d, "executable", file), "keydb") ||
               strstr(d->info, "\nmvcc_depth:")) {
        kind = "KeyDB";
    }

    as = strcmp(own, version) ? version : "";

    int major = atoi(version);
    int minor = strchr(version, '.') ? atoi(strchr(version, '.') + 1) : 0;
    if (!*version) {
        report(d, WARN, "server", NULL, NULL,
               "of a version that this user may not know; lapse needs Redis 7.0");
    } else if (major * 100 + minor < OLDEST) {
        report(d, FAIL, "server", NULL, "run Redis 7.0 or newer, or Valkey",
               "%s %s is too old: lapse needs 7.0", kind, printable(own));
    } else if (strcmp(mode, "cluster") == 0) {
        report(d, WARN, "server", NULL, NULL,
               "%s %s, a cluster: only queues whose slot this node owns can be used here", kind,
               printable(own));
    } else if (strcmp(kind, "Redis") && strcmp(kind, "Valkey")) {
        report(d, WARN, "server", NULL, "lapse bench", "%s %s: lapse was never tried on it", kind,
               printable(own));
    } else {
        report(d, FINE, "server", NULL, NULL, "%s %s%s%s", kind, printable(own),
               *as ? ", as Redis " : "", printable(as));
    }
}

/* The command that goes to its master instead. INFO says whatever the replica was told. */
static const char *to_master(const struct doctor *d, char out[VALUE_BYTES])
{
    char host[VALUE_BYTES];
    int64_t port = doctor_int(d, "master_port");

    doctor_text(d, "master_host", host);
    if (!is_tame(host, ":") || strlen(host) > 253 || port < 1 || port > 65535) {
        return "lapse -u URL, of its master";
    }

    /* in quotes, for a shell may take the brackets of an IPv6 address for a pattern */
    snprintf(out, VALUE_BYTES,
             strchr(host, ':') ? "lapse -u 'redis://[%s]:%" PRId64 "'"
                               : "lapse -u redis://%s:%" PRId64,
             host, port);

    return out;
}

static void role(struct doctor *d)
{
    char is[VALUE_BYTES];
    char mend[VALUE_BYTES];

    if (!*doctor_text(d, "role", is)) {
        hello(d, "role", is);
    }

    d->replica = strcmp(is, "slave") == 0 || strcmp(is, "replica") == 0;

    if (d->replica) {
        report(d, FAIL, "role", NULL, to_master(d, mend),
               "a replica: it takes no writes, and publishes no expiry");
    } else if (*is) {
        report(d, FINE, "role", NULL, NULL, "master");
    } else {
        report(d, WARN, "role", NULL, NULL, "not told");
    }
}

void check_server(struct doctor *d)
{
    server(d);
    role(d);
}

/* ---- eviction, memory, buffers ---- */
#define MIB(bytes) ((double)(bytes) / 1048576)
static void eviction(struct doctor *d)
{
    static const char set[] = "redis-cli CONFIG SET maxmemory-policy noeviction";
    char policy[VALUE_BYTES];

    doctor_text(d, "maxmemory_policy", policy);

    if (!*policy && !doctor_config(d, "maxmemory-policy", policy)) {
        report(d, WARN, "eviction", NULL, NULL,
               "not told: this user may ask neither for INFO nor CONFIG; maxmemory-policy must be "
               "noeviction");
    } else if (strncmp(policy, "allkeys", 7) == 0) {
        report(d, FAIL, "eviction", NULL, set,
               "%s: a full Redis drops whole queues; listeners do not start here",
               printable(policy));
    } else if (strcmp(policy, "noeviction")) {
        report(d, WARN, "eviction", NULL, set,
               "%s: a full Redis drops the triggers of the soonest jobs; their alarm is late",
               printable(policy));
    } else {
        report(d, FINE, "eviction", NULL, NULL, "%s", policy);
    }
}

static void memory(struct doctor *d)
{
    if (told(d, "memory", "used_memory")) {
        int64_t used = doctor_int(d, "used_memory");
        int64_t limit = doctor_int(d, "maxmemory");
        if (limit && used > limit - limit / 10) {
            report(d, WARN, "memory", NULL, "redis-cli CONFIG SET maxmemory BYTES",
                   "%.1f of %.1f MiB are used: soon new jobs are refused; those that are there "
                   "still run",
                   MIB(used), MIB(limit));
        } else if (limit) {
            report(d, FINE, "memory", NULL, NULL, "%.1f of %.1f MiB are used", MIB(used),
                   MIB(limit));
        } else {
            report(d, FINE, "memory", NULL, NULL, "%.1f MiB are used, without a limit", MIB(used));
        }
    }
}

/* "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60" */
static void buffers(struct doctor *d)
{
    char limits[VALUE_BYTES];
    long long hard;
    long long soft;
    long long seconds;
    int known = doctor_config(d, "client-output-buffer-limit", limits);
    const char *at = known ? strstr(limits, "pubsub ") : NULL;

    if (!at || sscanf(at, "pubsub %lld %lld %lld", &hard, &soft, &seconds) != 3) {
        report(d, FINE, "buffers", NULL, NULL, "not told: this user may not ask for CONFIG");
    } else if (!hard) {
        report(d, WARN, "buffers", NULL,
               "redis-cli CONFIG SET client-output-buffer-limit 'pubsub 16mb 4mb 60'",
               "pubsub has no limit: a listener that stands still fills Redis's memory with its "
               "events");
    } else if (hard < 1 << 20) {
        report(
            d, WARN, "buffers", NULL,
            "redis-cli CONFIG SET client-output-buffer-limit 'pubsub 16mb 4mb 60'",
            "pubsub %.2f MiB: a burst of %lld events cuts listeners off; they come back and look",
            MIB(hard), hard / EVENT_BYTES);
    } else {
        report(d, FINE, "buffers", NULL, NULL, "pubsub %.0f MiB: a listener may lag by %lld events",
               MIB(hard), hard / EVENT_BYTES);
    }
}

void check_memory(struct doctor *d)
{
    eviction(d);
    memory(d);
    buffers(d);
}

/* ---- persistence, replicas ---- */
static void no_log(struct doctor *d)
{
    char save[VALUE_BYTES];
    int known = doctor_config(d, "save", save);
    int64_t age = doctor_int(d, "rdb_last_save_time");
    int64_t changes = doctor_int(d, "rdb_changes_since_last_save");
    static const char set[] = "redis-cli CONFIG SET appendonly yes";

    age = (int64_t)time(NULL) - age;

    if (known && !*save) {
        report(d, FAIL, "persistence", NULL, set,
               "nothing is kept: when Redis stops, all jobs are lost");
    } else {
        report(d, WARN, "persistence", NULL, set,
               "snapshots alone: a crash loses what came since the last one (now %" PRId64
               " changes of %" PRId64 " s), and nothing is said of what fell due meanwhile",
               changes, age > 0 ? age : 0);
    }
}

static void persistence(struct doctor *d)
{
    char sync[VALUE_BYTES];
    char status[VALUE_BYTES];

    if (!told(d, "persistence", "aof_enabled")) {
        return;
    }

    if (!doctor_int(d, "aof_enabled")) {
        no_log(d);
    } else if (strcmp(doctor_text(d, "aof_last_write_status", status), "err") == 0) {
        report(d, FAIL, "persistence", NULL, "free its disk; redis-cli INFO persistence",
               "Redis cannot write its append-only file");
    } else if (!doctor_config(d, "appendfsync", sync)) {
        report(d, FINE, "persistence", NULL, NULL,
               "append-only file; how often it is synced this user may not ask: unless always, a "
               "crash may lose the last moments");
    } else if (strcmp(sync, "no") == 0) {
        report(d, WARN, "persistence", NULL, "redis-cli CONFIG SET appendfsync everysec",
               "append-only file, never synced: a power cut may lose what the kernel had not "
               "written, often 30 s");
    } else {
        report(d, FINE, "persistence", NULL, NULL, "append-only file, appendfsync %s: %s",
               printable(sync),
               strcmp(sync, "always") ? "a power cut may lose the last second or two"
                                      : "nothing that was answered is lost");
    }
}

static void replicas(struct doctor *d)
{
    char text[VALUE_BYTES];

    if (d->replica || !told(d, "replicas", "connected_slaves")) {
        return;
    }

    int64_t n = doctor_int(d, "connected_slaves");
    int64_t good = doctor_int(d, "min_slaves_good_slaves");
    int64_t min;
    int known = doctor_config(d, "min-replicas-to-write", text);
    min = known                                                  ? strtoll(text, NULL, 10)
          : *redis_info_field(d->info, "min_slaves_good_slaves") ? 1
                                                                 : 0;

    if (min && good < min) {
        report(d, FAIL, "replicas", NULL,
               "redis-cli CONFIG SET min-replicas-to-write 0, or connect more",
               "%" PRId64 " of at least %" PRId64 " are there: every write is refused", good, min);
    } else if (!n) {
        report(d, FINE, "replicas", NULL, NULL, "none");
    } else if (known && !min) {
        report(d, WARN, "replicas", NULL, "redis-cli CONFIG SET min-replicas-to-write 1",
               "%" PRId64 " connected, and none need have a write: what a cut-off master goes on "
               "answering is lost in the failover (with min-replicas-max-lag 2: of 2 s)",
               n);
    } else {
        report(
            d, FINE, "replicas", NULL, NULL,
            "%" PRId64
            " connected; notify-keyspace-events and users are not replicated: set them there too",
            n);
    }
}

void check_kept(struct doctor *d)
{
    persistence(d);
    replicas(d);
}

/* ---- clock ---- */
static int64_t real_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* Of several round trips the shortest says most. */
void check_clock(struct doctor *d)
{
    enum { ROUNDS = 10, MUCH_US = 500000 };
    int64_t best = INT64_MAX;
    int64_t ahead = 0;

    for (int i = 0; i < ROUNDS; i++) {
        int64_t sent = real_us();
        int64_t heard;
        redisReply *r = ASK(d, "TIME");
        heard = real_us();
        if (r && r->type == REDIS_REPLY_ARRAY && r->elements == 2 && is_text(r->element[0]) &&
            is_text(r->element[1]) && heard - sent < best) {
            best = heard - sent;
            ahead = strtoll(r->element[0]->str, NULL, 10) * 1000000 +
                    strtoll(r->element[1]->str, NULL, 10) - (sent + best / 2);
        }
        freeReplyObject(r);
    }

    if (d->code) {
        return;
    }

    if (best == INT64_MAX) {
        report(d, WARN, "clock", NULL, NULL,
               "not told: this user may not ask for TIME, which every script does");
    } else if (ahead > MUCH_US || ahead < -MUCH_US) {
        report(d, WARN, "clock", NULL, "timedatectl set-ntp true, on both machines",
               "Redis's clock is %.3f s %s this machine's: lapse goes by Redis's, so what you "
               "compute here (--at) is %s",
               (double)(ahead < 0 ? -ahead : ahead) / 1e6, ahead < 0 ? "behind" : "ahead of",
               ahead < 0 ? "late" : "early");
    } else {
        report(d, FINE, "clock", NULL, NULL, "%.1f ms from this machine's", (double)ahead / 1e3);
    }
}

/* ---- expiry, hz ---- */
static int64_t expiring(const struct doctor *d)
{
    int64_t n = 0;
    for (const char *at = d->info; (at = strstr(at, ",expires=")); at++) {
        n += strtoll(at + 9, NULL, 10);
    }
    return n;
}

/* Redis looks at 20 keys a turn, hz turns a second, and 5 more for each step of its effort. */
void check_expiry(struct doctor *d)
{
    char text[VALUE_BYTES];

    if (!told(d, "expiry", "hz")) {
        return;
    }

    int64_t all = expiring(d);
    int64_t hz = doctor_int(d, "hz");
    int64_t effort;
    int64_t others = all > d->waiting ? all - d->waiting : 0;
    effort = doctor_config(d, "active-expire-effort", text) ? strtoll(text, NULL, 10) : 1;

    double late = hz > 0 ? (double)all / (double)(hz * (20 + 5 * (effort - 1))) : 0;
    if (d->g->opts.flags & LAPSE_NO_ALARM && late > 1) {
        report(d, WARN, "expiry", NULL, "leave no_alarm away",
               "with no_alarm a job would be heard of up to %.1f s late, or by the sweep: %" PRId64
               " keys expire, hz %" PRId64,
               late, all, hz);
    } else if (others > FOREIGN_MANY && d->g->opts.notify == LAPSE_KEYEVENT) {
        report(
            d, WARN, "expiry", NULL,
            "-o notify=keyspace for all listeners; lapse doctor -o notify=keyspace tells the flags",
            "%" PRId64 " expiring keys are not ours, and each listener hears of each", others);
    } else if (hz > HZ_MUCH) {
        report(d, WARN, "expiry", NULL, "redis-cli CONFIG SET hz 10",
               "hz %" PRId64 " burns CPU, and lapse has no use for it", hz);
    } else {
        report(d, FINE, "expiry", NULL, NULL,
               "%" PRId64 " expiring keys (%" PRId64 " not ours), hz %" PRId64
               ": Redis alone would say so up to %.1f s late; listeners touch them in time",
               all, others, hz, late);
    }
}
