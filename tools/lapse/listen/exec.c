/* SPDX-License-Identifier: MIT */
/* Child processes, one for each job. No shell is between, so no byte of a job is ever code: the
 * body goes to stdin, everything else into the environment. A child sees fds 0, 1 and 2 only,
 * whatever we or our parent have open. It leads a process group, so that what it started ends with
 * it. When we die without notice the kernel kills it (PDEATHSIG), because another process will run
 * its job; what it started itself is then out of reach.
 *
 *   PENDING --there is room--> RUNNING
 *   RUNNING --run_ms is over, lease lost, job cancelled, listener stops--> TERM_SENT
 *   TERM_SENT --5 s--> KILL_SENT
 *   any --listener stops, and it did not exit with 0--> UNSETTLED
 *
 * PENDING: the system has no processes, descriptors or memory left. The job is held and its lease
 * renewed, so that no try is used, and its slot lets nothing else be claimed. Some descriptors are
 * left to the connections to Redis.
 *
 * The number of a process is free for others once it was reaped, and so is that of a group without
 * members. Hence children are reaped by on_children_ended() alone, not by libev's handler of
 * SIGCHLD, which reaps first and calls back later: here a child that has ended is still a zombie,
 * which holds both numbers, while the rest of its group is killed; then it is reaped and forgotten
 * in one step. So whatever kill() finds in the list of children is ours. */
#include "listen/exec.h"
#include "cli/message.h"
#include "cli/values.h"
#include "listen/spawn.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* EX_DATAERR, by which a child says "never again"; after all other statuses but 0 it is retried. */
enum { STATUS_FAIL = 65 };
enum { JOB_VARIABLES = 9, VARIABLE_BYTES = 320, REASON_BYTES = 160, SPARE_FDS = 8 };
#define RETRY_S 0.2

enum stage { PENDING, RUNNING, TERM_SENT, KILL_SENT, UNSETTLED };

struct exec_child {
    struct exec_child *next, **prev;
    struct exec *x;
    struct lapse_job *job;
    void *arg;
    pid_t pid; /* 0: PENDING */
    enum stage stage;
    bool is_stopped;    /* it is ended because the listener stops, not for what it did */
    const char *reason; /* why it was ended; static */
    const char *body;   /* still to be written; the job's */
    size_t body_left;
    int64_t started_ms; /* when it got the job: run_ms counts from here */
    ev_io input;
    ev_timer check;
};

int exec_init(struct exec *x, char **argv, const struct env_options *options)
{
    x->argv = argv;
    x->first = NULL;
    x->loop = NULL;
    x->path = find_program(argv[0]);
    x->env = environment_make(options, JOB_VARIABLES, &x->env_n);

    if (!x->path) {
        exec_free(x);
        return usage_error("--exec", argv[0], "not found in PATH, or not executable");
    }
    if (!x->env) {
        exec_free(x);
        return INTERNAL;
    }

    if (!geteuid()) {
        message_print("warning: %s runs as root", printable(x->path));
    }

    return 0;
}

/* ---- the end of a child ---- */
static void child_end_input(struct exec_child *c)
{
    if (c->input.fd >= 0) {
        ev_io_stop(c->x->loop, &c->input);
        close(c->input.fd);
        c->input.fd = -1;
    }
}

static void child_free(struct exec_child *c)
{
    child_end_input(c);
    ev_timer_stop(c->x->loop, &c->check);

    *c->prev = c->next;
    if (c->next) {
        c->next->prev = c->prev;
    }

    free(c);
}

/* mail/m-1: try 2 of 2: exit status 75: dead. A listener that lost the lease does not know what
 * becomes of the job. */
static void report_failed_run(const struct lapse_job *job, const char *reason, bool is_dead)
{
    char of[24] = "";

    if (!lapse_job_until_ms(job)) {
        return;
    }

    if (lapse_job_cancelled(job)) {
        message_print("%s/%s: try %u: %s: gone", lapse_job_queue(job), lapse_job_id(job),
                      lapse_job_try(job), reason);
        return;
    }

    if (lapse_job_tries(job) != LAPSE_FOREVER) {
        snprintf(of, sizeof of, " of %u", lapse_job_tries(job));
        is_dead = is_dead || lapse_job_try(job) >= lapse_job_tries(job);
    }

    message_print("%s/%s: try %u%s: %s: %s", lapse_job_queue(job), lapse_job_id(job),
                  lapse_job_try(job), of, reason, is_dead ? "dead" : "will run again");
}

static void child_retry(struct exec_child *c, const char *reason)
{
    report_failed_run(c->job, reason, false);
    lapse_retry(c->job, LAPSE_BACKOFF, reason, c->x->settled, c->arg);
}

/* A deploy is no fault of the job: it uses no try up. */
static void child_leave_unsettled(struct exec_child *c)
{
    child_end_input(c);
    ev_timer_stop(c->x->loop, &c->check);
    c->stage = UNSETTLED;
    c->pid = 0;
    c->x->n_unsettled++;
    c->x->left_unsettled(c->arg);
}

static void child_try_again(struct exec_child *c);

/* Of a child that is RUNNING. */
static void child_terminate(struct exec_child *c, const char *reason)
{
    c->reason = reason;
    c->stage = TERM_SENT;
    kill(-c->pid, SIGTERM);
    c->check.repeat = EXEC_KILL_MS / 1000.0;
    ev_timer_again(c->x->loop, &c->check);
}

static void on_child_check(struct ev_loop *loop, ev_timer *w, int events)
{
    struct exec_child *c = w->data;

    (void)loop;
    (void)events;

    if (c->stage == PENDING) {
        child_try_again(c);
    } else if (c->stage != RUNNING) {
        c->stage = KILL_SENT;
        kill(-c->pid, SIGKILL);
    } else if (!lapse_job_until_ms(c->job)) {
        message_print("%s/%s: the lease was lost; stopping the command", lapse_job_queue(c->job),
                      lapse_job_id(c->job));
        child_terminate(c, "the lease was lost");
    } else if (monotonic_ms() - c->started_ms >= c->x->run_ms) {
        message_print("%s/%s: ran longer than run_ms (%" PRId64 " ms); stopping the command",
                      lapse_job_queue(c->job), lapse_job_id(c->job), c->x->run_ms);
        child_terminate(c, "ran longer than run_ms");
    }
}

static void child_settle(struct exec_child *c, int status)
{
    const char *prefix = c->reason ? c->reason : "";
    const char *colon = c->reason ? ": " : "";
    char reason[REASON_BYTES];
    int code = -1;

    if (WIFEXITED(status)) {
        code = WEXITSTATUS(status);
        snprintf(reason, sizeof reason, "%s%sexit status %d", prefix, colon, code);
    } else {
        snprintf(reason, sizeof reason, "%s%skilled by signal %d", prefix, colon, WTERMSIG(status));
    }

    if (code == 0) {
        lapse_done(c->job, c->x->settled, c->arg);
    } else if (code == STATUS_FAIL) {
        report_failed_run(c->job, reason, true);
        lapse_fail(c->job, reason, c->x->settled, c->arg);
    } else {
        child_retry(c, reason);
    }
}

static struct exec_child *child_of_pid(const struct exec *x, pid_t pid)
{
    struct exec_child *c = x->first;

    /* child_free() takes what it frees out of the list. */
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
    while (c && c->pid != pid) {
        c = c->next;
    }

    return c;
}

static void reap_child(struct exec *x, pid_t pid)
{
    struct exec_child *c = child_of_pid(x, pid);
    int status = 0;

    if (c && c->stage != RUNNING) {
        kill(-c->pid, SIGKILL); /* those of its group that did not obey SIGTERM */
    }

    waitpid(pid, &status, 0);

    if (c && c->is_stopped && status) {
        child_leave_unsettled(c);
    } else if (c) {
        child_settle(c, status);
        child_free(c);
    }
}

/* Reaps every child, also those that are not in the list: the program that executed us may have
 * left some. */
static void on_children_ended(struct ev_loop *loop, ev_async *w, int events)
{
    struct exec *x = w->data;
    siginfo_t info = {.si_pid = 0};

    (void)loop;
    (void)events;
    while (!waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid) {
        reap_child(x, info.si_pid);
        info.si_pid = 0;
    }
}

static struct exec *reaper;

static void on_sigchld(int signum)
{
    (void)signum;
    ev_async_send(reaper->loop, &reaper->ended);
}

static void watch_sigchld(void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART | SA_NOCLDSTOP};

    sigemptyset(&action.sa_mask);
    sigaction(SIGCHLD, &action, NULL);
}

void exec_begin(struct exec *x)
{
    ev_async_init(&x->ended, on_children_ended);
    x->ended.data = x;
    ev_async_start(x->loop, &x->ended);
    ev_unref(x->loop); /* it keeps no loop going */
    reaper = x;
    watch_sigchld(on_sigchld);
    unblock_signal(SIGCHLD);
}

/* ---- the start of a child ---- */
static void child_feed(struct exec_child *c, int fd)
{
    ssize_t n = 0;

    if (c->body_left) {
        n = write(fd, c->body, c->body_left);
    }

    if (n > 0) {
        c->body += n;
        c->body_left -= (size_t)n;
    } else if (n < 0 && errno != EAGAIN && errno != EINTR) {
        /* EPIPE: it does not want to read; only its exit status counts */
        c->body_left = 0;
    }
}

static void on_child_input(struct ev_loop *loop, ev_io *w, int events)
{
    struct exec_child *c = w->data;

    (void)loop;
    (void)events;
    child_feed(c, w->fd);
    if (!c->body_left) {
        child_end_input(c);
    }
}

/* Appends the variables of the job to the environment of the commands. */
static void add_job_variables(struct exec *x, const struct lapse_job *job,
                              char v[JOB_VARIABLES][VARIABLE_BYTES])
{
    int64_t late_us = lapse_job_claimed_us(job) - lapse_job_due_ms(job) * 1000;

    snprintf(v[0], VARIABLE_BYTES, "LAPSE_QUEUE=%s", lapse_job_queue(job));
    snprintf(v[1], VARIABLE_BYTES, "LAPSE_ID=%s", lapse_job_id(job));
    snprintf(v[2], VARIABLE_BYTES, "LAPSE_TRY=%u", lapse_job_try(job));
    snprintf(v[3], VARIABLE_BYTES, "LAPSE_TOKEN=%" PRIu64, lapse_job_token(job));
    snprintf(v[4], VARIABLE_BYTES, "LAPSE_DUE_MS=%" PRId64, lapse_job_due_ms(job));
    snprintf(v[5], VARIABLE_BYTES, "LAPSE_LATE_MS=%.3f", (double)late_us / 1000);

    size_t n = 6;
    if (*lapse_job_series(job)) {
        snprintf(v[n++], VARIABLE_BYTES, "LAPSE_SERIES=%s", lapse_job_series(job));
        snprintf(v[n++], VARIABLE_BYTES, "LAPSE_STAGE=%u", lapse_job_stage(job));
    }
    if (lapse_job_parts(job)) {
        snprintf(v[n++], VARIABLE_BYTES, "LAPSE_PARTS=%u", lapse_job_parts(job));
    }

    for (size_t i = 0; i < n; i++) {
        x->env[x->env_n + i] = v[i];
    }
    x->env[x->env_n + n] = NULL;
}

static void child_watch(struct exec_child *c, int input)
{
    struct exec *x = c->x;

    c->stage = RUNNING;
    ev_io_init(&c->input, on_child_input, input, EV_WRITE);
    c->input.data = c;
    c->check.repeat = x->run_ms < 2000 ? (double)x->run_ms / 4000 : 0.5;
    ev_timer_again(x->loop, &c->check);

    if (c->body_left) {
        ev_io_start(x->loop, &c->input);
    } else {
        child_end_input(c);
    }
}

/* 0, or an errno; ends may be open then as well. */
static int open_pipe(int ends[2])
{
    struct rlimit limit;

    if (pipe2(ends, O_CLOEXEC)) {
        return errno;
    }

    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    if (!getrlimit(RLIMIT_NOFILE, &limit) && (rlim_t)ends[1] + SPARE_FDS >= limit.rlim_cur) {
        return EMFILE;
    }

    return 0;
}

/* 0, or an errno. */
static int child_start(struct exec_child *c)
{
    struct exec *x = c->x;
    char variables[JOB_VARIABLES][VARIABLE_BYTES];
    int ends[2] = {-1, -1};
    int err = open_pipe(ends);

    c->body = lapse_job_body(c->job, &c->body_left);
    if (!err) {
        struct spawn s = {x->path, x->argv, x->env, ends[0]};
        child_feed(c, ends[1]); /* most bodies fit into the pipe */
        add_job_variables(x, c->job, variables);
        err = spawn_program(&s, &c->pid);
    }

    if (ends[0] >= 0) {
        close(ends[0]);
    }

    if (!err) {
        child_watch(c, ends[1]);
        return 0;
    }

    if (ends[1] >= 0) {
        close(ends[1]);
    }
    c->pid = 0;

    return err;
}

static bool is_temporary(int err)
{
    return err == EAGAIN || err == ENOMEM || err == EMFILE || err == ENFILE;
}

static void child_cannot_start(struct exec_child *c, int err)
{
    char reason[REASON_BYTES];

    snprintf(reason, sizeof reason, "cannot start %s: %s", printable(c->x->path), strerror(err));
    child_retry(c, reason);
    child_free(c);
}

static void child_try_again(struct exec_child *c)
{
    int err = child_start(c);
    bool is_too_late =
        !lapse_job_until_ms(c->job) || monotonic_ms() - c->started_ms >= c->x->run_ms;

    if (err && (is_too_late || !is_temporary(err))) {
        child_cannot_start(c, err);
    }
}

void exec_start(struct exec *x, struct lapse_job *job, void *arg)
{
    struct exec_child *c = calloc(1, sizeof *c);
    int err;

    if (!c) {
        lapse_retry(job, LAPSE_BACKOFF, "the listener is out of memory", x->settled, arg);
        return;
    }

    c->x = x;
    c->job = job;
    c->arg = arg;
    c->input.fd = -1;
    c->started_ms = monotonic_ms();
    ev_timer_init(&c->check, on_child_check, 0, RETRY_S);
    c->check.data = c;

    c->next = x->first;
    c->prev = &x->first;
    x->first = c;
    if (c->next) {
        c->next->prev = &c->next;
    }

    err = child_start(c);
    if (err && is_temporary(err)) {
        message_print("%s/%s: cannot start %s yet: %s; trying again", lapse_job_queue(job),
                      lapse_job_id(job), printable(x->path), strerror(err));
        ev_timer_again(x->loop, &c->check);
    } else if (err) {
        child_cannot_start(c, err);
    }
}

/* ---- asked to stop ---- */
void exec_cancel(struct exec *x, const struct lapse_job *job)
{
    struct exec_child *c = x->first;

    while (c && c->job != job) {
        c = c->next;
    }

    if (c && c->stage == PENDING) {
        lapse_release(c->job, x->settled, c->arg);
        child_free(c);
    } else if (c && c->stage == RUNNING) {
        message_print("%s/%s: was cancelled; stopping the command", lapse_job_queue(job),
                      lapse_job_id(job));
        child_terminate(c, "was cancelled");
    }
}

/* ---- the end of all ---- */
void exec_stop(struct exec *x)
{
    for (struct exec_child *c = x->first; c; c = c->next) {
        if (c->stage == PENDING) {
            child_leave_unsettled(c);
        } else if (c->stage == RUNNING) {
            c->is_stopped = true;
            child_terminate(c, "the listener is stopping");
        }
    }
}

void exec_kill(struct exec *x)
{
    exec_stop(x);
    for (struct exec_child *c = x->first; c; c = c->next) {
        if (c->pid) {
            c->stage = KILL_SENT;
            kill(-c->pid, SIGKILL);
        }
    }
}

void exec_free(struct exec *x)
{
    struct exec_child *next;

    for (struct exec_child *c = x->first; c; c = next) {
        next = c->next;
        if (c->pid) {
            kill(-c->pid, SIGKILL);
        }
        lapse_done(c->job, NULL, NULL); /* after the close this only frees it */
        free(c->arg);
        child_free(c);
    }

    if (reaper == x) {
        watch_sigchld(SIG_DFL);
        reaper = NULL;
        ev_ref(x->loop);
        ev_async_stop(x->loop, &x->ended);
    }

    free(x->path);
    free(x->env);
    x->path = NULL;
    x->env = NULL;
}
