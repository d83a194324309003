/* SPDX-License-Identifier: MIT */
/* Child processes, one for each job. No shell is between, so no byte of a job is ever code: the
 * body goes to stdin, the rest into the environment. A child sees fds 0, 1 and 2 only, whatever we
 * or our parent have open, and of the environment what passed_on() names: what else is there may
 * be a secret, as our password is. It leads a process group, so that what it started is ended with
 * it. When we die without a word, the kernel kills it (PDEATHSIG), for its job will be another's;
 * what it started itself is then out of reach.
 *
 *   NOT_YET --there is room--> RUNNING
 *   RUNNING --run_ms is over, lease lost, listener stops--> ASKED (TERM) --5 s--> FORCED (KILL)
 *   any --listener stops, and it did not end with 0--> KEPT, unsettled
 *
 * NOT_YET: for want of processes, descriptors or memory. Its job is held, and its lease renewed,
 * so that no try is used and its slot lets nothing else be claimed. Some descriptors are left to
 * the connections to Redis.
 *
 * A number of a process is free for others once its owner was reaped, and so is that of a group
 * without members. Hence children are reaped by on_ended() alone, not by libev's handler of
 * SIGCHLD, which reaps first and tells later: there a child that has ended is still a zombie,
 * which holds both numbers, while the rest of its group is killed; then it is reaped and forgotten
 * in one step. So whatever kill() finds in the list of children is ours. */
#include "listen/exec.h"
#include "cli/message.h"
#include "cli/values.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    FAIL = 65
}; /* EX_DATAERR: what a child says by its status; all others but 0 are tried again */
enum { ENV_OURS = 6, ENV_BYTES = 320, REASON_BYTES = 160 };
enum { SPARE_FDS = 8 };
#define AGAIN_S 0.2
enum stage { NOT_YET, RUNNING, ASKED, FORCED, KEPT };

struct child {
    struct child *next, **prev;
    struct exec *x;
    struct lapse_job *job;
    void *arg;
    pid_t pid; /* 0: NOT_YET */
    enum stage stage;
    int ours;           /* it is ended because we stop, not for what it did */
    const char *reason; /* it was ended; static */
    const char *body;   /* still to be written; the job's */
    size_t body_left;
    int64_t started_ms; /* when it got the job: run_ms counts from here */
    ev_io input;
    ev_timer check;
};

/* ---- the command and its environment ---- */
static int is_program(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

char *find_program(const char *name)
{
    const char *dirs = getenv("PATH");
    char *path = NULL;

    if (strchr(name, '/')) {
        return is_program(name) ? strdup(name) : NULL;
    }

    for (dirs = dirs ? dirs : "/usr/local/bin:/usr/bin:/bin"; *dirs; dirs += *dirs == ':') {
        size_t len = strcspn(dirs, ":");
        /* what is found in a folder relative to ours is anybody's */
        if (*dirs == '/' && asprintf(&path, "%.*s/%s", (int)len, dirs, name) >= 0) {
            if (is_program(path)) {
                return path;
            }
            free(path);
        }
        dirs += len;
    }

    return NULL;
}

static int has_name(const char *variable, const char *name)
{
    size_t len = strcspn(name, "=");
    return strncmp(variable, name, len) == 0 && variable[len] == '=';
}

int set_env(const struct opt *o, char *value, void *field)
{
    static const char word[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    struct env_words *env = field;
    size_t len = strspn(value, word);

    (void)o;
    if (!len || (value[len] && value[len] != '=') || strncmp(value, "LAPSE_", 6) == 0) {
        value[strcspn(value, "=")] = '\0'; /* what is behind may be a secret */
        return usage_error("--env", value,
                           "NAME, to pass it on, or NAME=VALUE; LAPSE_ names are ours");
    }

    if (env->n == ENV_MOST) {
        return usage_error("--env", value, "at most 64");
    }

    env->v[env->n++] = value;

    return 0;
}

/* the last word about a variable; NULL: none */
static const char *word_about(const struct env_words *env, const char *variable)
{
    for (unsigned i = env->n; i; i--) {
        if (has_name(variable, env->v[i - 1])) {
            return env->v[i - 1];
        }
    }
    return NULL;
}

static int passed_on(const char *variable, const struct env_words *more)
{
    static const char *const names[] = {"HOME", "LANG",   "LANGUAGE", "LOGNAME", "SHELL",
                                        "TERM", "TMPDIR", "TZ",       "USER",    "XDG_RUNTIME_DIR"};
    const char *word = word_about(more, variable);

    if (word) {
        return !strchr(word, '=');
    }

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (has_name(variable, names[i])) {
            return 1;
        }
    }

    return strncmp(variable, "LC_", 3) == 0;
}

static void make_env(struct exec *x, const struct env_words *more)
{
    static char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

    if (!word_about(more, path)) {
        x->env[x->env_n++] = path;
    }

    for (char **e = environ; *e; e++) {
        if (passed_on(*e, more)) {
            x->env[x->env_n++] = *e;
        }
    }

    for (unsigned i = 0; i < more->n; i++) {
        if (strchr(more->v[i], '=') && word_about(more, more->v[i]) == more->v[i]) {
            x->env[x->env_n++] = (char *)(uintptr_t)more->v[i];
        }
    }
}

int exec_init(struct exec *x, char **argv, const struct env_words *more)
{
    size_t n = 0;

    x->argv = argv;
    x->first = NULL;
    x->loop = NULL;
    while (environ[n]) {
        n++;
    }

    x->path = find_program(argv[0]);
    x->env = malloc((n + 1 + more->n + ENV_OURS + 1) * sizeof *x->env);
    x->env_n = 0;

    if (!x->path || !x->env) {
        exec_free(x);
        return x->path
                   ? INTERNAL
                   : usage_error("--exec", argv[0], "no such program in PATH, or not executable");
    }

    if (!geteuid()) {
        message_print("warning: %s runs as root", printable(x->path));
    }

    make_env(x, more);

    return 0;
}

/* ---- the end of a child ---- */
static void end_input(struct child *c)
{
    if (c->input.fd >= 0) {
        ev_io_stop(c->x->loop, &c->input);
        close(c->input.fd);
        c->input.fd = -1;
    }
}

static void forget(struct child *c)
{
    end_input(c);
    ev_timer_stop(c->x->loop, &c->check);
    *c->prev = c->next;
    if (c->next) {
        c->next->prev = c->prev;
    }
    free(c);
}

/* mail/m-1: try 2 of 2: exit status 75: dead. Who lost the lease does not know what becomes of the
 * job. */
static void say_verdict(const struct lapse_job *job, const char *reason, int is_last)
{
    char of[24] = "";

    if (lapse_job_tries(job) != LAPSE_FOREVER) {
        snprintf(of, sizeof of, " of %u", lapse_job_tries(job));
        is_last |= lapse_job_try(job) >= lapse_job_tries(job);
    }

    if (lapse_job_until_ms(job)) {
        message_print("%s/%s: try %u%s: %s: %s", lapse_job_queue(job), lapse_job_id(job),
                      lapse_job_try(job), of, reason, is_last ? "dead" : "it runs again");
    }
}

/* What could not begin goes back. */
static void give_up(struct child *c, const char *reason)
{
    say_verdict(c->job, reason, 0);
    lapse_retry(c->job, LAPSE_BACKOFF, reason, c->x->settled, c->arg);
    forget(c);
}

/* A deploy is no fault of the job: it uses no try up. */
static void keep(struct child *c)
{
    end_input(c);
    ev_timer_stop(c->x->loop, &c->check);
    c->stage = KEPT;
    c->pid = 0;
    c->x->n_kept++;
    c->x->kept(c->arg);
}

static void try_again(struct child *c);

static void ask_to_end(struct child *c, const char *reason)
{
    if (c->stage == NOT_YET) {
        give_up(c, reason);
    } else if (c->stage == RUNNING) {
        c->reason = reason;
        c->stage = ASKED;
        kill(-c->pid, SIGTERM);
        c->check.repeat = EXEC_KILL_MS / 1000.0;
        ev_timer_again(c->x->loop, &c->check);
    }
}

static void on_check(struct ev_loop *loop, ev_timer *w, int events)
{
    struct child *c = w->data;

    (void)loop;
    (void)events;

    if (c->stage == NOT_YET) {
        try_again(c);
    } else if (c->stage != RUNNING) {
        c->stage = FORCED;
        kill(-c->pid, SIGKILL);
    } else if (!lapse_job_until_ms(c->job)) {
        message_print("%s/%s: its lease is lost; the command is ended", lapse_job_queue(c->job),
                      lapse_job_id(c->job));
        ask_to_end(c, "the lease was lost");
    } else if (monotonic_ms() - c->started_ms >= c->x->run_ms) {
        message_print("%s/%s: it ran for run_ms (%" PRId64 " ms); the command is ended",
                      lapse_job_queue(c->job), lapse_job_id(c->job), c->x->run_ms);
        ask_to_end(c, "it ran for run_ms");
    }
}

static void settle(struct child *c, int status)
{
    char reason[REASON_BYTES];
    const char *prefix = c->reason ? c->reason : "";
    const char *colon = c->reason ? ": " : "";
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;

    if (code >= 0) {
        snprintf(reason, sizeof reason, "%s%sexit status %d", prefix, colon, code);
    } else {
        snprintf(reason, sizeof reason, "%s%skilled by signal %d", prefix, colon, WTERMSIG(status));
    }

    if (code == 0) {
        lapse_done(c->job, c->x->settled, c->arg);
    } else if (code == FAIL) {
        say_verdict(c->job, reason, 1);
        lapse_fail(c->job, reason, c->x->settled, c->arg);
    } else {
        say_verdict(c->job, reason, 0);
        lapse_retry(c->job, LAPSE_BACKOFF, reason, c->x->settled, c->arg);
    }
}

static struct child *find_child(const struct exec *x, pid_t pid)
{
    struct child *c = x->first;
    /* what forget() freed it has taken out of the list. NOLINTNEXTLINE(clang-analyzer-unix.Malloc)
     */
    while (c && c->pid != pid) {
        c = c->next;
    }
    return c;
}

/* Each that has ended, those too that are not of the list: who called exec for us may have left
 * some. */
static void on_ended(struct ev_loop *loop, ev_async *w, int events)
{
    struct exec *x = w->data;
    siginfo_t info = {.si_pid = 0};

    (void)loop;
    (void)events;

    while (!waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid) {
        struct child *c = find_child(x, info.si_pid);
        int status = 0;
        if (c && c->stage != RUNNING) {
            kill(-c->pid, SIGKILL); /* those of its group that did not obey */
        }
        waitpid(info.si_pid, &status, 0);
        if (c && c->ours && status) {
            keep(c);
        } else if (c) {
            settle(c, status);
            forget(c);
        }
        info.si_pid = 0;
    }
}

static struct exec *reaper;

static void on_sigchld(int signum)
{
    (void)signum;
    ev_async_send(reaper->loop, &reaper->ended);
}

void unblock_signal(int signum)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, signum);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void watch_sigchld(void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART | SA_NOCLDSTOP};
    sigemptyset(&action.sa_mask);
    sigaction(SIGCHLD, &action, NULL);
}

void exec_begin(struct exec *x)
{
    ev_async_init(&x->ended, on_ended);
    x->ended.data = x;
    ev_async_start(x->loop, &x->ended);
    ev_unref(x->loop); /* it keeps no loop going */
    reaper = x;
    watch_sigchld(on_sigchld);
    unblock_signal(SIGCHLD);
}

/* ---- the start of a child ---- */
static void feed(struct child *c, int fd)
{
    ssize_t n = c->body_left ? write(fd, c->body, c->body_left) : 0;

    if (n > 0) {
        c->body += n;
        c->body_left -= (size_t)n;
    } else if (n < 0 && errno != EAGAIN && errno != EINTR) {
        c->body_left =
            0; /* EPIPE: it does not want to read; what it thinks of the job is its exit status */
    }
}

static void on_input(struct ev_loop *loop, ev_io *w, int events)
{
    struct child *c = w->data;

    (void)loop;
    (void)events;
    feed(c, w->fd);
    if (!c->body_left) {
        end_input(c);
    }
}

static void fill_env(struct exec *x, const struct lapse_job *job, char ours[ENV_OURS][ENV_BYTES])
{
    int64_t late_us = lapse_job_claimed_us(job) - lapse_job_due_ms(job) * 1000;

    snprintf(ours[0], ENV_BYTES, "LAPSE_QUEUE=%s", lapse_job_queue(job));
    snprintf(ours[1], ENV_BYTES, "LAPSE_ID=%s", lapse_job_id(job));
    snprintf(ours[2], ENV_BYTES, "LAPSE_TRY=%u", lapse_job_try(job));
    snprintf(ours[3], ENV_BYTES, "LAPSE_TOKEN=%" PRIu64, lapse_job_token(job));
    snprintf(ours[4], ENV_BYTES, "LAPSE_DUE_MS=%" PRId64, lapse_job_due_ms(job));
    snprintf(ours[5], ENV_BYTES, "LAPSE_LATE_MS=%.3f", (double)late_us / 1000);
    for (size_t i = 0; i < ENV_OURS; i++) {
        x->env[x->env_n + i] = ours[i];
    }

    x->env[x->env_n + ENV_OURS] = NULL;
}

struct birth { /* all that a child needs to become its program */
    const struct exec *x;
    int stdin_fd;
    pid_t parent;
};

/* Ours would run in the child, in memory that is ours. What is ignored stays so, but for SIGPIPE.
 */
static void default_signals(void)
{
    struct sigaction action;
    struct sigaction plain = {.sa_handler = SIG_DFL};

    for (int n = 1; n < NSIG; n++) {
        if (!sigaction(n, NULL, &action) && (action.sa_handler != SIG_IGN || n == SIGPIPE)) {
            sigaction(n, &plain, NULL);
        }
    }
}

/* In the child, which has our memory until it is its program: no call but to the system. Returns an
 * errno. */
static int become(const struct birth *b)
{
    sigset_t none;

    default_signals();
    setpgid(0, 0);

    /* of the thread that called vfork(): the only one there is. If it died before, nobody would
     * tell. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != b->parent || dup2(b->stdin_fd, 0) < 0) {
        return errno ? errno : ESRCH;
    }

    closefrom(3); /* libraries open sockets without O_CLOEXEC, and so may our parent have */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(b->x->path, b->x->argv, b->x->env);

    return errno;
}

/* As posix_spawn() does it, which has no word for PDEATHSIG: we stand still until the child is its
 * program or has failed, so it costs no copy of our memory, and err is the child's word. No signal
 * may be handled meanwhile. 0 or an errno. */
static int spawn(struct exec *x, const struct lapse_job *job, int stdin_fd, pid_t *pid)
{
    char ours[ENV_OURS][ENV_BYTES];
    struct birth b = {x, stdin_fd, getpid()};
    volatile int err = 0;
    sigset_t all;
    sigset_t before;

    fill_env(x, job, ours);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);

    *pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork,clang-analyzer-unix.Vfork):
                       see above */
    if (*pid == 0) {
        err = become(&b);
        _exit(127);
    }

    if (*pid < 0) {
        err = errno;
    } else if (err) {
        waitpid(*pid, NULL, 0); /* it ended before it was one of ours */
    }

    sigprocmask(SIG_SETMASK, &before, NULL);

    return err;
}

static void watch(struct child *c, int input)
{
    struct exec *x = c->x;

    c->stage = RUNNING;
    ev_io_init(&c->input, on_input, input, EV_WRITE);
    c->input.data = c;
    c->check.repeat = x->run_ms < 2000 ? (double)x->run_ms / 4000 : 0.5;
    ev_timer_again(x->loop, &c->check);
    if (c->body_left) {
        ev_io_start(x->loop, &c->input);
    } else {
        end_input(c);
    }
}

static int open_pipe(int ends[2])
{
    struct rlimit most;

    if (pipe2(ends, O_CLOEXEC)) {
        return errno;
    }
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    return !getrlimit(RLIMIT_NOFILE, &most) && (rlim_t)ends[1] + SPARE_FDS >= most.rlim_cur ? EMFILE
                                                                                            : 0;
}

/* 0 or an errno */
static int start(struct child *c)
{
    int ends[2] = {-1, -1};
    int err = open_pipe(ends);

    c->body = lapse_job_body(c->job, &c->body_left);
    if (!err) {
        feed(c, ends[1]); /* the pipe holds most bodies whole */
        err = spawn(c->x, c->job, ends[0], &c->pid);
    }

    if (ends[0] >= 0) {
        close(ends[0]);
    }

    if (!err) {
        watch(c, ends[1]);
        return 0;
    }

    if (ends[1] >= 0) {
        close(ends[1]);
    }

    c->pid = 0;

    return err;
}

static int passes(int err)
{
    return err == EAGAIN || err == ENOMEM || err == EMFILE || err == ENFILE;
}

static void cannot_start(struct child *c, int err)
{
    char reason[REASON_BYTES];
    snprintf(reason, sizeof reason, "cannot start %s: %s", printable(c->x->path), strerror(err));
    give_up(c, reason);
}

static void try_again(struct child *c)
{
    int err = start(c);
    if (err && (!passes(err) || !lapse_job_until_ms(c->job) ||
                monotonic_ms() - c->started_ms >= c->x->run_ms)) {
        cannot_start(c, err);
    }
}

void exec_start(struct exec *x, struct lapse_job *job, void *arg)
{
    struct child *c = calloc(1, sizeof *c);

    if (!c) {
        lapse_retry(job, LAPSE_BACKOFF, "the listener is out of memory", x->settled, arg);
        return;
    }

    *c = (struct child){
        .next = x->first, .prev = &x->first, .x = x, .job = job, .arg = arg, .input.fd = -1};
    if (c->next) {
        c->next->prev = &c->next;
    }

    x->first = c;
    c->started_ms = monotonic_ms();
    ev_timer_init(&c->check, on_check, 0, AGAIN_S);
    c->check.data = c;

    int err = start(c);
    if (err && passes(err)) {
        message_print("%s/%s: cannot start %s yet: %s", lapse_job_queue(job), lapse_job_id(job),
                      printable(x->path), strerror(err));
        ev_timer_again(x->loop, &c->check);
    } else if (err) {
        cannot_start(c, err);
    }
}

void exec_stop(struct exec *x)
{
    for (struct child *c = x->first; c; c = c->next) {
        if (c->stage == NOT_YET) {
            keep(c);
        } else if (c->stage == RUNNING) {
            c->ours = 1;
            ask_to_end(c, "the listener stops");
        }
    }
}

void exec_kill(struct exec *x)
{
    exec_stop(x);
    for (struct child *c = x->first; c; c = c->next) {
        if (c->pid) {
            c->stage = FORCED;
            kill(-c->pid, SIGKILL);
        }
    }
}

void exec_free(struct exec *x)
{
    while (x->first) {
        if (x->first->pid) {
            kill(-x->first->pid, SIGKILL);
        }
        lapse_done(x->first->job, NULL, NULL); /* cut loose by the close: this only frees it */
        free(x->first->arg);
        forget(x->first);
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
