/* SPDX-License-Identifier: MIT */
/* F23 for the program: strace makes the nth system call of a command fail, from its first breath
 * on. */
#include "fault.h"
#include "audit.h"
#include "process.h"
#include "redis.h"
#include "test.h"
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const faults[] = {
    "read:EINTR",
    "read:EAGAIN",
    "read:EIO",
    "read:ECONNRESET",
    "write:EINTR",
    "write:EAGAIN",
    "write:EPIPE",
    "write:ECONNRESET",
    "write:ENOSPC",
    "connect:EINTR",
    "connect:ECONNREFUSED",
    "connect:ENOMEM",
    "socket:EMFILE",
    "socket:ENFILE",
    "socket:ENOMEM",
    "epoll_wait:EINTR",
    "epoll_ctl:ENOMEM",
    "epoll_ctl:ENOSPC",
    "epoll_create1:EMFILE",
    "epoll_create1:ENOMEM",
    "eventfd2:EMFILE",
    "eventfd2:ENOMEM",
    "pipe2:EMFILE",
    "pipe2:ENFILE",
    "clone3:EAGAIN",
    "clone3:ENOMEM",
    "clone:EAGAIN",
    "vfork:EAGAIN",
    "openat:EMFILE",
    "openat:ENOMEM",
    "openat:EACCES",
    "mmap:ENOMEM",
    "brk:ENOMEM",
    "fcntl:EINTR",
    "fcntl:EMFILE",
    "timerfd_create:EMFILE",
    "timerfd_create:ENOMEM",
    "close:EINTR",
    "close:EIO",
    "prlimit64:EPERM",
    "setsockopt:ENOMEM",
    "getsockopt:ENOBUFS",
    "socketpair:EMFILE",
};
enum { FAULTS = sizeof faults / sizeof *faults, JOBS = 4 };

static const struct command {
    const char *name;
    const char *argv[16];
    const char *out; /* what it must have printed where it says 0 */
} commands[] = {
    {"schedule", {"schedule", "q", "--id", "new", "--in", "1h", "body"}, "\"id\":\"new\""},
    {"get", {"get", "q", "old"}, "\"id\":\"old\""},
    {"list", {"list", "q"}, "\"id\":\"old\""},
    {"depth", {"depth", "q"}, "\"waiting\":"},
    {"cancel", {"cancel", "q", "old"}, "\"id\":\"old\""},
    {"reschedule", {"reschedule", "q", "old", "--in", "2h"}, "\"id\":\"old\""},
    {"listen", {"listen", "q", "-n", "4", "--no-wait", "-o", "lease_ms=1s"}, "\"id\":\"run3\""},
    {"exec",
     {"listen", "q", "-n", "4", "-j", "2", "--no-wait", "-o", "lease_ms=1s", "--exec", "--", "sh",
      "-c", "echo ran $LAPSE_ID"},
     "ran run3"},
    {"bench", {"bench", "b", "--schedule", "20"}, "stored"},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

struct tally {
    long runs, fired, libev;
};

static bool does_jobs(const struct command *c)
{
    return strcmp(c->argv[0], "listen") == 0;
}

static void plain(int want, const char *const *argv)
{
    struct proc *p = proc_start(argv);
    proc_close_in(p);
    cr_assert_eq(proc_wait(p, 20000), want, "%s %s: %d: %s", argv[0], argv[1], p->status, p->err);
    proc_free(p);
}
#define PLAIN(...) plain(0, (const char *const[]){"lapse", __VA_ARGS__, NULL})

static void prepare(struct server *s, const struct command *c)
{
    redis_do(s, "FLUSHALL");
    PLAIN("schedule", "q", "--id", "old", "--in", "1h");
    for (int i = 0; does_jobs(c) && i < JOBS; i++) {
        char id[8];
        snprintf(id, sizeof id, "run%d", i);
        PLAIN("schedule", "q", "--id", id, "--in", "0s", "--tries", "forever", "--backoff", "1ms");
    }
}

/* Each job of a listener that did not come to its end, or had to give one back, runs in the
 * next. */
static void check_jobs(struct server *s, const struct command *c, const struct proc *p)
{
    bool done[JOBS];
    int left = 0;

    for (int i = 0; i < JOBS; i++) {
        char text[32];
        snprintf(text, sizeof text,
                 strcmp(c->name, "exec") == 0 ? "ran run%d\n" : "\"id\":\"run%d\"", i);
        done[i] = strstr(p->out, text) != NULL;
        bool there = redis_int(s, "HEXISTS lapse:{q}:jobs run%d", i);
        cr_assert(done[i] || there, "run%d is lost", i);
        left += there;
    }

    char n[16];
    snprintf(n, sizeof n, "%d", left);
    if (left) {
        PLAIN("listen", "q", "-n", n, "-o", "lease_ms=300ms", "-o", "sweep_ms=50ms");
    }

    cr_assert_eq(redis_int(s, "HLEN lapse:{q}:jobs"), 1);
}

static long lines_of(const char *file, const char *with)
{
    char *said = test_read_file(file, NULL);
    long n = 0;

    for (const char *at = said; (at = strstr(at, with)); at++) {
        n++;
    }
    free(said);
    return n;
}

/* libev's signal handlers wake its loop by an eventfd: no write to that can fail, and where epoll
 * refuses to watch it libev aborts, or never hears of a child's end. */
static bool cannot_be(const struct command *c, const char *fault)
{
    return strcmp(c->name, "exec") == 0 &&
           (strncmp(fault, "write:", 6) == 0 || strncmp(fault, "epoll_ctl:", 10) == 0);
}

/* mmap() and brk() of the dynamic loader come first: it does crash where they fail. */
static int first_place(struct server *s, const char *call)
{
    char file[128];
    char program[4096];
    char trace[64];

    if (strcmp(call, "mmap") != 0 && strcmp(call, "brk") != 0) {
        return 1;
    }

    snprintf(file, sizeof file, "%s/strace", s->dir);
    snprintf(program, sizeof program, "%s/lapse", test_build());
    snprintf(trace, sizeof trace, "trace=%s", call);
    plain(0, (const char *const[]){"strace", "-qq", "-o", file, "-e", trace, program, "--version",
                                   NULL});

    return 1 + (int)lines_of(file, "\n");
}

static bool one(struct tally *t, struct server *s, const struct command *c, const char *fault,
                int nth)
{
    char file[128];
    char trace[64];
    char inject[128];
    char program[4096];
    int colon = (int)strcspn(fault, ":");

    snprintf(file, sizeof file, "%s/strace", s->dir);
    snprintf(program, sizeof program, "%s/lapse", test_build());
    snprintf(trace, sizeof trace, "trace=%.*s", colon, fault);
    snprintf(inject, sizeof inject, "inject=%.*s:error=%s:when=%d", colon, fault, fault + colon + 1,
             nth);

    const char *argv[32] = {"strace", "-qq", "-o", file, "-e", trace, "-e", inject, program};
    size_t n = 9;
    for (size_t i = 0; c->argv[i]; i++) {
        argv[n++] = c->argv[i];
    }

    prepare(s, c);

    struct proc *p = proc_start(argv);
    proc_close_in(p);

    int status = proc_wait(p, 30000);
    /* it has no way to return an error, and aborts */
    bool libev = status == 134 && strstr(p->err, "libev");
    t->libev += libev;
    cr_assert((status >= 0 && status < 128) || libev, "%s, %s the %d. time: status %d: %s", c->name,
              fault, nth, status, p->err);
    cr_assert(status || strstr(p->out, c->out), "%s, %s the %d. time: status 0, but only: %s",
              c->name, fault, nth, p->out);
    if (strcmp(c->name, "schedule") == 0 && !status) {
        cr_assert(redis_int(s, "HEXISTS lapse:{q}:jobs new"), "%s the %d. time: it is not stored",
                  fault, nth);
    }

    if (does_jobs(c)) {
        check_jobs(s, c, p);
    }

    cr_assert_eq(audit(s, "lapse", "q", "b", NULL), 0, "%s, %s the %d. time", c->name, fault, nth);
    proc_free(p);

    return lines_of(file, "(INJECTED)") > 0;
}

Test(f23, each_system_call_of_each_command_may_fail, .timeout = 3600)
{
    struct server *s = server_start();
    struct tally t = {0, 0, 0};
    long every = fault_n(24, 1);

    setenv("LAPSE_URL", s->url, 1);
    /* LeakSanitizer traces too, and there can be only one */
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1);

    const char *only = getenv("LAPSE_SCENARIO");
    for (size_t c = 0; c < COMMANDS; c++) {
        for (size_t f = 0; f < FAULTS; f++) {
            bool fired = (c * FAULTS + f) % (size_t)every == 0 &&
                         !cannot_be(&commands[c], faults[f]) &&
                         (!only || strcmp(only, commands[c].name) == 0);
            char call[32] = "";
            memcpy(call, faults[f], strcspn(faults[f], ":"));
            for (int nth = fired ? first_place(s, call) : 0, step = 1; fired; nth += step, step++) {
                fired = one(&t, s, &commands[c], faults[f], nth);
                t.runs++;
                t.fired += fired;
            }
        }
        if (fault_full()) {
            fault_say("lapse %s: %ld runs, %ld faults so far", commands[c].name, t.runs, t.fired);
        }
    }

    server_stop(s);
    fault_row(
        "F23", "a system call of the program fails", "the same",
        "%d commands, %d errors, %ld calls failed: no crash but %ld of libev itself, no job lost",
        (int)COMMANDS, (int)FAULTS, t.fired, t.libev);
}
