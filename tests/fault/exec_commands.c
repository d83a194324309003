/* SPDX-License-Identifier: MIT */
/* F24, F25: lapse listen --exec without descriptors or processes to spare, and with commands that
 * misbehave. */
#include "fault.h"
#include "audit.h"
#include "process.h"
#include "redis.h"
#include "test.h"
#include <criterion/criterion.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long long count(struct server *s, const char *set)
{
    return redis_int(s, "ZCARD lapse:{q}:%s", set);
}

/* Waits until the queue has none waiting and none running; looks at it now and then. */
static void until_over(struct server *s, struct proc *p, void (*look)(struct proc *p),
                       int timeout_ms)
{
    int64_t end_ms = test_now_ms() + timeout_ms;

    while (redis_left(s, "lapse", "q") > 0) {
        cr_assert_lt(test_now_ms(), end_ms, "%lld wait, %lld run\n%s", count(s, "due"),
                     count(s, "run"), p->err);
        cr_assert(p->pid, "the listener ended: %d %s", p->status, p->err);
        proc_until_err(p, "no such text", 20);
        if (look) {
            look(p);
        }
    }
}

static void schedule(struct server *s, const char *id, int tries, size_t body_len, const char *body)
{
    /* as schedule.lua stores it: backoff and its maximum are 1 ms */
    unsigned char *record = calloc(1, 5 + body_len);

    cr_assert(record && tries < 128);
    memcpy(record, (unsigned char[]){1, 7, (unsigned char)tries, 1, 1}, 5);
    if (body) {
        memcpy(record + 5, body, body_len);
    }

    const char *argv[] = {"0", id, "+0", "0", (char *)record};
    freeReplyObject(redis_scriptv(s, "schedule", "lapse:{q}:due", 5, argv,
                                  (size_t[]){1, strlen(id), 2, 1, 5 + body_len}));
    free(record);
}

static struct proc *listen_under(struct server *s, const char *before, const char *after)
{
    char line[1024];
    char lapse[4096];

    cr_assert(realpath(test_build(), lapse));
    strcat(lapse, "/lapse");
    setenv("lapse", lapse, 1);
    setenv("LAPSE_URL", s->port ? s->tcp_url : s->url, 1);
    setenv("dir", s->dir, 1);
    snprintf(line, sizeof line, "%s $lapse listen q %s", before, after);
    return proc_start((const char *const[]){"/bin/sh", "-c", line, NULL});
}

static void stop(struct server *s, struct proc *p)
{
    proc_signal(p, SIGTERM);
    cr_assert_eq(proc_wait(p, 10000), 0, "status %d: %s", p->status, p->err);
    proc_free(p);
    cr_assert_eq(audit(s, "lapse", "q", NULL), 0);
    server_stop(s);
}

/* ---- F24 ---- */
enum { LEASE_MS = 6000 };
static int64_t shortest_lease_ms;
static struct server *looked_at;

/* While something is held, how long its lease still is: it must not run out. */
static void look_at_leases(struct proc *p)
{
    (void)p;
    char *first =
        redis_str(looked_at, "EVAL %s 0",
                  "local t = redis.call('TIME') local r = redis.call('ZRANGE', 'lapse:{q}:run', 0, "
                  "0, 'WITHSCORES') return r[2] and string.format('%.0f', r[2] - t[1] * 1000 - "
                  "math.floor(t[2] / 1000)) or nil");
    if (first && atoll(first) < shortest_lease_ms) {
        shortest_lease_ms = atoll(first);
    }

    free(first);
}

/* Jobs with one try each: one used up by a command that could not start would be dead. */
static void all_run_once(const char *before, const char *after, long n, size_t body_len,
                         const char *said)
{
    struct server *s = server_start_tcp(NULL);
    char claimed[40];

    looked_at = s;

    for (long i = 0; i < n; i++) {
        char id[24];
        snprintf(id, sizeof id, "j%ld", i);
        schedule(s, id, 1, body_len, NULL);
    }

    struct proc *p = listen_under(s, before, after);
    until_over(s, p, look_at_leases, 120000);
    cr_assert(strstr(p->err, said), "%s", p->err);
    cr_assert_eq(count(s, "dead"), 0);
    cr_assert_eq(redis_int(s, "HLEN lapse:{q}:jobs"), 0);
    snprintf(claimed, sizeof claimed, "claimed %ld,", n);
    proc_signal(p, SIGUSR1);
    cr_assert(proc_until_err(p, claimed, 10000), "each was not claimed once: %s", p->err);
    cr_assert_gt(shortest_lease_ms, 0, "a lease ended");
    stop(s, p);
}

Test(f24, without_descriptors_or_processes_jobs_are_held_and_none_is_lost, .timeout = 300)
{
    const long n = fault_n(60, 1000);
    /* does not fit into the pipe, so its end stays open while the command runs */
    const size_t big = 100000;
    char processes[200];
    char after[80];
    const char *remark = " (RLIMIT_NPROC not tried: not root)";
    long n_limited = 0;

    /* the last of the forty is held for longer than a lease */
    shortest_lease_ms = LEASE_MS;
    snprintf(after, sizeof after, "-j 40 -o lease_ms=%d --exec -- sleep %s", LEASE_MS,
             fault_full() ? "0.2" : "2");
    all_run_once("ulimit -n 32; exec", after, n, big, "Too many open files");

    if (geteuid() == 0) { /* as a user who has no other processes */
        remark = "";
        n_limited = n;
        snprintf(processes, sizeof processes,
                 "exec setpriv --reuid %d --regid 65534 --clear-groups prlimit --nproc=6",
                 50000 + getpid() % 10000);
        all_run_once(processes, after, n, 10, "Resource temporarily unavailable");
    }

    fault_row("F24", "ulimit -n 32; RLIMIT_NPROC 6", "no new claims, leases kept, 0 lost",
              "%ld + %ld jobs with one try each, 40 held at once: all ran once, 0 dead, leases of "
              "%d s never under %lld ms%s",
              n, n_limited, LEASE_MS / 1000, (long long)shortest_lease_ms, remark);
}

/* ---- F25 ---- */
static long peak_kb;

static long zombies_of(pid_t pid)
{
    char path[64];
    char state;
    size_t len;
    long n = 0;

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);

    char *children = test_read_file(path, &len);
    for (char *rest = children, *child; (child = strtok_r(rest, " ", &rest));) {
        snprintf(path, sizeof path, "/proc/%.20s/stat", child);
        FILE *f = fopen(path, "r"); /* it may be gone by now */
        if (f && fscanf(f, "%*d (%*[^)]) %c", &state) == 1 && state == 'Z') {
            n++;
        }
        if (f) {
            fclose(f);
        }
    }

    free(children);

    return n;
}

static void look_at_process(struct proc *p)
{
    char path[64];
    size_t len;

    snprintf(path, sizeof path, "/proc/%d/status", (int)p->pid);
    char *status = test_read_file(path, &len);
    char *peak = strstr(status, "VmHWM:");
    if (peak) {
        peak_kb = atol(peak + 6) > peak_kb ? atol(peak + 6) : peak_kb;
    }

    free(status);
}

enum { TRIES = 2, RUN_MS = 6000, KILL_MS = RUN_MS + 5000 };
/* The body is the command's program. Each run is a line in runs: the id, the time it began and its
 * group. */
static const struct {
    const char *id, *program, *why;
    int64_t ends_ms; /* by TERM, or by KILL; 0: by itself */
} commands[] = {
    {"exits-1", "exit 1", "exit status 1", 0},
    {"segfaults", "kill -SEGV $$", "killed by signal 11", 0},
    {"kills-itself", "kill -9 $$", "killed by signal 9", 0},
    {"closes-pipes", "exec <&- >&- 2>&-; exit 1", "exit status 1", 0},
    {"hangs", "exec sleep 1000", "ran longer than run_ms: killed by signal 15", RUN_MS},
    {"leaves-a-child", "sleep 1000 & exec sleep 1000",
     "ran longer than run_ms: killed by signal 15", RUN_MS},
    {"ignores-term", "trap '' TERM; while :; do sleep 1000; done",
     "ran longer than run_ms: killed by signal 9", KILL_MS},
    {"stops-itself", "kill -STOP $$", "ran longer than run_ms: killed by signal 9", KILL_MS},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static long runs_of_job(const char *runs, const char *id, int64_t start_ms[TRIES])
{
    long n = 0;
    size_t len = strlen(id);

    for (const char *at = runs; *at; at = strchr(at, '\n') + 1) {
        if (strncmp(at, id, len) == 0 && at[len] == ' ') {
            if (n < TRIES) {
                start_ms[n] = atoll(at + len + 1);
            }
            n++;
        }
    }

    return n;
}

static int64_t check_runs(struct server *s)
{
    char path[128];
    size_t len;
    int64_t start[TRIES];
    int64_t latest = 0;

    snprintf(path, sizeof path, "%s/runs", s->dir);

    char *runs = test_read_file(path, &len);
    for (int i = 0; i < COMMANDS; i++) {
        const char *id = commands[i].id;
        cr_assert_eq(runs_of_job(runs, id, start), TRIES, "%s: not %d runs\n%s", id, TRIES, runs);
        int64_t ms = start[1] - start[0];
        if (commands[i].ends_ms && ms - commands[i].ends_ms > latest) {
            latest = ms - commands[i].ends_ms;
        }
        char *held = redis_str(s, "HGET lapse:{q}:attempts %s", id);
        cr_assert(strstr(held, " 2 2 ") && strstr(held, commands[i].why), "%s: %s", id, held);
        free(held);
    }

    free(runs);

    return latest;
}

static void end_listener(struct proc *p)
{
    look_at_process(p);
    cr_assert_eq(zombies_of(p->pid), 0);
    proc_signal(p, SIGTERM);
    cr_assert_eq(proc_wait(p, 10000), 0, "status %d: %s", p->status, p->err);
    proc_free(p);
}

static void in_shell(const char *line, const char *wrong)
{
    cr_assert_eq(system(line), 0, "%s", wrong);
}

/* What a command prints goes to the listener's own stdout, whose reader sets the pace. */
static void flood(struct server *s, long mib)
{
    char program[64];
    char path[80];
    size_t len;

    snprintf(program, sizeof program, "head -c %ldM /dev/zero", mib);
    schedule(s, "floods", 1, strlen(program), program);

    struct proc *p =
        listen_under(s, "mkfifo $dir/out; wc -c < $dir/out > $dir/count & exec > $dir/out; exec",
                     "--exec -- sh");
    until_over(s, p, look_at_process, 120000);
    end_listener(p);
    in_shell("timeout 10 sh -c 'until test -s $dir/count; do :; done'", "it was not counted");
    snprintf(path, sizeof path, "%s/count", s->dir);

    char *bytes = test_read_file(path, &len);
    cr_assert_eq(atol(bytes), mib << 20);
    free(bytes);
}

Test(f25, commands_that_misbehave_use_their_tries_and_leave_nothing, .timeout = 300)
{
    const long mib = fault_n(256, 1024);
    struct server *s = server_start();

    peak_kb = 0;
    for (int i = 0; i < COMMANDS; i++) {
        schedule(s, commands[i].id, TRIES, strlen(commands[i].program), commands[i].program);
    }

    struct proc *p =
        listen_under(s, "exec",
                     "-j 9 -o run_ms=6s -o lease_ms=9s --env dir --exec -- sh -c 'p=$(cat); echo "
                     "\"$LAPSE_ID $(date +%s%3N) $$\" >> $dir/runs; eval \"$p\"'");
    until_over(s, p, look_at_process, 60000);
    cr_assert_eq(count(s, "dead"), COMMANDS, "%lld are dead\n%s", count(s, "dead"), p->err);
    end_listener(p);

    int64_t latest_ms = check_runs(s);
    in_shell("for g in $(cut -d ' ' -f 3 $dir/runs); do timeout 10 sh -c \"while kill -s 0 -- -$g "
             "2> /dev/null; do :; done\" || exit 1; done",
             "a process of a command is left");
    flood(s, mib);
    if (!strstr(test_build(), "asan")) {
        cr_assert_leq(peak_kb, 64 << 10);
    }

    cr_assert_eq(audit(s, "lapse", "q", NULL), 0);
    server_stop(s);
    fault_row("F25", "commands exit 1, crash, hang, ignore TERM, flood stdout, close pipes",
              "tries exact; killed at timeout <= +1 s; RSS <= 64 MB; 0 zombies",
              "%d commands x %d tries: exact; TERM (or KILL 5 s later) + %lld ms; %ld MiB of "
              "flood; RSS %ld KiB; 0 zombies",
              COMMANDS, TRIES, (long long)latest_ms, mib, peak_kb);
}
