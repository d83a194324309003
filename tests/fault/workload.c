/* SPDX-License-Identifier: MIT */
#include "workload.h"
#include "crew.h"
#include <criterion/criterion.h>
#include <errno.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { UP_MS = 20000, END_MS = 20000, CHECK_MS = 120000, CHECKED_PER_MS = 2, QUIET_MS = 1000 };

struct member {
    pid_t pid; /* 0: none */
    int life;
};
struct work {
    struct server *server;
    struct work_opts o;
    char dir[200];
    int fd; /* the nemesis's own lines */
    struct crew_shared *shared;
    struct member listener[WORK_CREW], producer[WORK_CREW];
    long born;
};

struct work_opts work_opts(void)
{
    return (struct work_opts){.lapse = lapse_options_init(),
                              .producers = 2,
                              .listeners = 2,
                              .jobs = 1000,
                              .delay_ms = 1000,
                              .body_len = 64,
                              .tries = LAPSE_FOREVER,
                              .backoff_ms = 50,
                              .seed = 1,
                              .turn = 1,
                              .delayed = 1000};
}

/* ---- processes ---- */
static void start(struct work *w, struct member *m, int number, bool listens)
{
    struct crew c = {.o = &w->o,
                     .shared = w->shared,
                     .number = number,
                     .seed = w->o.seed * 7919u + (unsigned)w->born++};
    pid_t parent = getpid();

    c.jobs = w->o.jobs / w->o.producers + (number < w->o.jobs % w->o.producers);
    c.per_s = w->o.per_s ? (w->o.per_s + w->o.producers - 1) / w->o.producers : 0;
    snprintf(c.proc, sizeof c.proc, "%s%d.%d", listens ? "l" : "p", number, m->life++);
    snprintf(c.path, sizeof c.path, "%s/%s.jsonl", w->dir, c.proc);
    m->pid = fork();
    cr_assert(m->pid >= 0);
    if (m->pid) {
        return;
    }

    prctl(PR_SET_PDEATHSIG, SIGKILL);

    /* a copy of the test's sockets would keep them open after the test closed them */
    for (int i = 3; i < 1024; i++) {
        close(i);
    }

    if (getppid() != parent) {
        _exit(125);
    }

    if (listens) {
        crew_listen(&c);
    }

    crew_produce(&c);
}

static long count(struct work *w, const char *set)
{
    return (long)redis_int(w->server, "ZCARD %s:{" WORK_QUEUE "}:%s", w->o.lapse.space, set);
}

static void until_listening(struct work *w)
{
    int64_t deadline = test_now_ms() + UP_MS;
    while (count(w, "listeners") < w->o.listeners) {
        cr_assert(test_now_ms() < deadline, "the listeners did not come");
        poll(NULL, 0, 5);
    }
}

static void make_dir(struct work *w)
{
    char top[160];
    const char *there = getenv("LAPSE_HISTORY");

    snprintf(top, sizeof top, there ? "%s" : "%s/history", there ? there : test_build());
    cr_assert(!mkdir(top, 0700) || errno == EEXIST, "%s: %m", top);
    snprintf(w->dir, sizeof w->dir, "%s/%d-%" PRId64, top, (int)getpid(), test_now_ms());
    cr_assert(!mkdir(w->dir, 0700), "%s: %m", w->dir);
}

struct work *work_start(struct server *s, const struct work_opts *o)
{
    struct work *w = calloc(1, sizeof *w);
    char path[300];

    cr_assert(w);
    w->server = s;
    w->o = *o;
    cr_assert(o->producers > 0 && o->producers <= WORK_CREW && o->listeners >= 0 &&
              o->listeners <= WORK_CREW);
    w->o.lapse.url = o->lapse.url ? o->lapse.url : s->url;
    w->o.lapse.space = o->lapse.space ? o->lapse.space : "lapse";
    make_dir(w);
    snprintf(path, sizeof path, "%s/nemesis.jsonl", w->dir);
    w->fd = history_open(path);
    w->shared =
        mmap(NULL, sizeof *w->shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert(w->shared != MAP_FAILED);
    for (int i = 0; i < o->listeners; i++) {
        start(w, &w->listener[i], i, true);
    }

    until_listening(w);
    for (int i = 0; i < o->producers; i++) {
        start(w, &w->producer[i], i, false);
    }

    return w;
}

/* ---- harm ---- */
void work_nemesis(struct work *w, const char *what)
{
    history_line(w->fd, "nemesis", "\"op\":\"nemesis\",\"what\":\"%s\"", what);
}

void work_note(struct work *w, const char *what)
{
    history_line(w->fd, "nemesis", "\"op\":\"note\",\"what\":\"%s\"", what);
}

void work_clock_fault(struct work *w)
{
    work_nemesis(w, "clock");
}

void work_rolled_back(struct work *w, int64_t since_ms)
{
    history_line(w->fd, "nemesis", "\"op\":\"nemesis\",\"what\":\"rollback\",\"since_ns\":%" PRId64,
                 since_ms * 1000000);
}

void work_signal(struct work *w, int listener, int sig)
{
    char what[32];
    snprintf(what, sizeof what, "signal %d to l%d", sig, listener);
    work_nemesis(w, what);
    cr_assert(w->listener[listener].pid && !kill(w->listener[listener].pid, sig));
}

void work_kill(struct work *w, int listener)
{
    struct member *m = &w->listener[listener];
    work_signal(w, listener, SIGKILL);
    waitpid(m->pid, NULL, 0);
    start(w, m, listener, true);
}

void work_server(struct work *w, struct server *s)
{
    w->server = s;
}

void work_wait(struct work *w, int ms)
{
    (void)w;
    poll(NULL, 0, ms);
}

pid_t work_pid(struct work *w, int listener)
{
    return w->listener[listener].pid;
}

bool work_asked_all(struct work *w)
{
    for (int i = 0; i < w->o.producers; i++) {
        int status;
        if (w->producer[i].pid &&
            waitpid(w->producer[i].pid, &status, WNOHANG) == w->producer[i].pid) {
            w->producer[i].pid = 0;
            cr_assert_eq(status, 0, "a producer ended by itself: %#x", (unsigned)status);
        }
        if (w->producer[i].pid) {
            return false;
        }
    }

    return true;
}

long work_starts(struct work *w)
{
    return w->shared->n_starts;
}

/* ---- the end ---- */
/* A handler may have asked for a job anew and ended the old one: it is in no set until that is
 * answered. What a process asked that was killed since is never answered. */
static bool has_open_calls(const struct work *w, int64_t *quiet_since_ms)
{
    static long asked;
    static long answered;

    if (asked != w->shared->n_asked || answered != w->shared->n_answered) {
        *quiet_since_ms = test_now_ms();
    }
    asked = w->shared->n_asked;
    answered = w->shared->n_answered;
    return asked > answered && test_now_ms() - *quiet_since_ms < QUIET_MS;
}

static bool is_empty(const struct work *w)
{
    return redis_left(w->server, w->o.lapse.space, WORK_QUEUE) == 0;
}

static void until_all_ran(struct work *w, int timeout_ms)
{
    int64_t deadline = test_now_ms() + timeout_ms;
    int64_t quiet_since_ms = test_now_ms();

    for (;;) {
        long asked = w->shared->n_asked;
        if (work_asked_all(w) && is_empty(w) && !has_open_calls(w, &quiet_since_ms) &&
            is_empty(w) && asked == w->shared->n_asked) {
            return;
        }
        if (test_now_ms() >= deadline) {
            fault_say("not all ran in time: %ld calls of %ld answered, %ld wait, %ld run",
                      w->shared->n_answered, w->shared->n_asked, count(w, "due"), count(w, "run"));
            return; /* the history says what is wrong */
        }
        poll(NULL, 0, 10);
    }
}

static void end_listeners(struct work *w)
{
    for (int i = 0; i < w->o.listeners; i++) {
        kill(w->listener[i].pid, SIGTERM);
    }

    int64_t deadline = test_now_ms() + END_MS;
    for (int i = 0; i < w->o.listeners; i++) {
        int status = 0;
        pid_t pid = w->listener[i].pid;
        while (waitpid(pid, &status, WNOHANG) != pid) {
            if (test_now_ms() > deadline) {
                kill(pid, SIGKILL);
                waitpid(pid, NULL, 0);
                cr_assert_fail("listener %d did not close", i);
            }
            poll(NULL, 0, 5);
        }
        cr_assert_eq(status, 0, "listener %d ended by itself: %#x", i, (unsigned)status);
    }
}

static void write_states(struct work *w)
{
    static const char *const set[] = {"due", "run", "dead"};
    static const char *const state[] = {"waiting", "running", "dead"};

    for (int i = 0; i < 3; i++) {
        redisReply *all = redis_cmd(w->server, "ZRANGE %s:{" WORK_QUEUE "}:%s 0 -1 WITHSCORES",
                                    w->o.lapse.space, set[i]);
        cr_assert_eq(all->type, REDIS_REPLY_ARRAY);
        for (size_t k = 0; k + 1 < all->elements; k += 2) {
            const char *id = all->element[k]->str;
            long long score = strtoll(all->element[k + 1]->str, NULL, 10);
            char *held =
                redis_str(w->server, "HGET %s:{" WORK_QUEUE "}:attempts %s", w->o.lapse.space, id);
            unsigned long long token = 0;
            unsigned attempt = 0;
            long long tries = 0;
            if (held) {
                sscanf(held, "1 %u %lld %llu", &attempt, &tries, &token);
            }
            history_line(w->fd, "end",
                         "\"op\":\"state\",\"job\":\"%s\",\"state\":\"%s\",\"due\":%lld,\"lease_"
                         "until\":%lld,\"attempt\":%u,\"tries\":%lld,\"token\":%llu",
                         id, state[i], score, score, attempt, tries == LAPSE_FOREVER ? 0 : tries,
                         token);
            free(held);
        }
        freeReplyObject(all);
    }

    history_line(w->fd, "end",
                 "\"op\":\"final\",\"redis_ms\":%" PRId64
                 ",\"n_due\":%ld,\"n_run\":%ld,\"n_dead\":%ld,\"n_jobs\":%lld",
                 redis_now_ms(w->server), count(w, "due"), count(w, "run"), count(w, "dead"),
                 redis_int(w->server, "HLEN %s:{" WORK_QUEUE "}:jobs", w->o.lapse.space));
    history_line(w->fd, "end", "\"op\":\"fsck\",\"defects\":%d",
                 audit(w->server, w->o.lapse.space, WORK_QUEUE, NULL));
}

static double figure(const char *text, const char *name)
{
    char key[40];
    snprintf(key, sizeof key, " %s=", name);
    const char *at = strstr(text, key);
    cr_assert(at, "the checker does not say %s:\n%s", name, text);
    return strtod(at + strlen(key), NULL);
}

static struct verdict check(struct work *w)
{
    char line[1024];
    struct verdict v;

    snprintf(line, sizeof line, "exec '%s/history-check' --late-ms %" PRId64 " '%s'/*.jsonl",
             test_build(), w->o.late_ms, w->dir);

    struct proc *p = proc_start((const char *const[]){"/bin/sh", "-c", line, NULL});
    int status = proc_wait(p, CHECK_MS + (int)(w->o.jobs / CHECKED_PER_MS));
    cr_assert_eq(status, 0, "the history in %s (%d):\n%s%s", w->dir, status, p->out, p->err);

    const char *out = strstr(p->out, "jobs=");
    cr_assert(out, "%s", p->out);
    v.jobs = strtol(out + 5, NULL, 10);
#define LAPSE_X(name) v.name = (long)figure(out, #name)
    LAPSE_X(ok), LAPSE_X(info), LAPSE_X(starts), LAPSE_X(done), LAPSE_X(dead), LAPSE_X(stale),
        LAPSE_X(twice);
    LAPSE_X(expired), LAPSE_X(lost_in_window), LAPSE_X(searched);
#undef LAPSE_X
    v.window_ms = figure(out, "window_ms");
    v.late_p50_ms = figure(out, "late_p50_ms");
    v.late_p99_ms = figure(out, "late_p99_ms");
    v.late_max_ms = figure(out, "late_max_ms");
    fault_say("%s", out);
    proc_free(p);

    return v;
}

struct verdict work_end(struct work *w, int timeout_ms)
{
    until_all_ran(w, timeout_ms);
    end_listeners(w);

    for (int i = 0; i < w->o.producers; i++) {
        if (w->producer[i].pid) {
            kill(w->producer[i].pid, SIGKILL);
            waitpid(w->producer[i].pid, NULL, 0);
        }
    }

    write_states(w);
    close(w->fd);

    struct verdict v = check(w);
    if (!getenv("LAPSE_KEEP_HISTORY")) {
        test_dir_remove(w->dir);
    }

    munmap(w->shared, sizeof *w->shared);
    free(w);

    return v;
}
