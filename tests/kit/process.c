/* SPDX-License-Identifier: MIT */
#include "process.h"
#include "test.h"
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct proc *proc_start(const char *const *argv)
{
    char path[4096];
    bool ours = strcmp(argv[0], "lapse") == 0 || strncmp(argv[0], "examples/", 9) == 0;

    if (ours) {
        snprintf(path, sizeof path, "%s/%s", test_build(), argv[0]);
    } else {
        snprintf(path, sizeof path, "%s", argv[0]);
    }

    struct proc *p = calloc(1, sizeof *p);
    cr_assert(p);

    int in[2];
    int out[2];
    int err[2];
    cr_assert(!pipe2(in, O_CLOEXEC) && !pipe2(out, O_CLOEXEC) && !pipe2(err, O_CLOEXEC));

    pid_t parent = getpid();
    p->pid = fork();
    cr_assert(p->pid >= 0);

    if (p->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGHUP, SIG_DFL); /* the shell that runs the tests may ignore them */
        signal(SIGINT, SIG_DFL);
        signal(SIGPIPE, SIG_DFL); /* proc_write() ignores it, and exec would keep that */
        dup2(in[0], 0);
        dup2(out[1], 1);
        dup2(err[1], 2);
        if (getppid() == parent) {
            execvp(path, (char *const *)(uintptr_t)argv);
        }
        _exit(127);
    }

    close(in[0]);
    close(out[1]);
    close(err[1]);
    p->in = in[1];
    p->out_fd = out[0];
    p->err_fd = err[0];
    p->status = -1;
    p->out = calloc(1, 1);
    p->err = calloc(1, 1);
    cr_assert(p->out && p->err);

    return p;
}

static void pipe_take(int *fd, char **text, size_t *len)
{
    char *more = realloc(*text, *len + 4096 + 1);

    cr_assert(more);
    *text = more;
    ssize_t n = read(*fd, more + *len, 4096);
    if (n <= 0) {
        close(*fd);
        *fd = -1;
        n = 0;
    }

    *len += (size_t)n;
    more[*len] = 0;
}

static bool proc_turn(struct proc *p, int64_t deadline) /* false: too late */
{
    int64_t left = deadline - test_now_ms();

    if (left <= 0) {
        return false;
    }

    struct pollfd fds[2] = {{p->out_fd, POLLIN, 0}, {p->err_fd, POLLIN, 0}};

    /* its end shows in no pipe while a child of its own holds them open: look now and then */
    poll(fds, 2, left < 5 ? (int)left : 5);
    if (p->out_fd >= 0 && fds[0].revents) {
        pipe_take(&p->out_fd, &p->out, &p->out_len);
    }

    if (p->err_fd >= 0 && fds[1].revents) {
        pipe_take(&p->err_fd, &p->err, &p->err_len);
    }

    return true;
}

static void proc_reap(struct proc *p)
{
    int status;
    if (p->pid && waitpid(p->pid, &status, WNOHANG) == p->pid) {
        p->pid = 0;
        p->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
}

/* What it wrote before it ended is in the pipes still. */
static void proc_drain(struct proc *p)
{
    struct pollfd fds[2];

    do {
        fds[0] = (struct pollfd){p->out_fd, POLLIN, 0};
        fds[1] = (struct pollfd){p->err_fd, POLLIN, 0};
        if (poll(fds, 2, 0) <= 0) {
            return;
        }
        if (fds[0].revents) {
            pipe_take(&p->out_fd, &p->out, &p->out_len);
        }
        if (fds[1].revents) {
            pipe_take(&p->err_fd, &p->err, &p->err_len);
        }
    } while (p->out_fd >= 0 || p->err_fd >= 0);
}

static bool proc_until(struct proc *p, char **where, const char *text, int timeout_ms)
{
    int64_t deadline = test_now_ms() + timeout_ms;

    while (!strstr(*where, text)) {
        proc_reap(p);
        if (!p->pid) {
            proc_drain(p);
            return strstr(*where, text);
        }
        if (!proc_turn(p, deadline)) {
            return false;
        }
    }

    return true;
}

bool proc_until_out(struct proc *p, const char *text, int timeout_ms)
{
    return proc_until(p, &p->out, text, timeout_ms);
}

bool proc_until_err(struct proc *p, const char *text, int timeout_ms)
{
    return proc_until(p, &p->err, text, timeout_ms);
}

int proc_wait(struct proc *p, int timeout_ms)
{
    int64_t deadline = test_now_ms() + timeout_ms;

    for (proc_reap(p); p->pid && proc_turn(p, deadline); proc_reap(p)) {
        ;
    }
    proc_drain(p);
    return p->status;
}

void proc_write(struct proc *p, const void *data, size_t len)
{
    signal(SIGPIPE, SIG_IGN); /* the program may end without reading all */
    for (const char *at = data; len > 0;) {
        ssize_t n = write(p->in, at, len);
        if (n < 0) {
            cr_assert(errno == EPIPE, "write: %m");
            return;
        }
        at += n;
        len -= (size_t)n;
    }
}

void proc_close_in(struct proc *p)
{
    if (p->in >= 0) {
        close(p->in);
    }
    p->in = -1;
}

void proc_signal(struct proc *p, int sig)
{
    if (p->pid) {
        kill(p->pid, sig);
    }
}

struct proc *proc_run(const char *in, const char *arg0, ...)
{
    const char *argv[64] = {arg0};
    va_list ap;

    va_start(ap, arg0);
    for (size_t n = 1; (argv[n] = va_arg(ap, const char *)); n++) {
        cr_assert(n < 63);
    }

    va_end(ap);

    struct proc *p = proc_start(argv);
    if (in) {
        proc_write(p, in, strlen(in));
    }

    proc_close_in(p);
    proc_wait(p, PROC_WAIT_MS);

    return p;
}

void proc_free(struct proc *p)
{
    if (!p) {
        return;
    }

    if (p->pid) {
        kill(p->pid, SIGKILL);
        waitpid(p->pid, NULL, 0);
    }

    proc_close_in(p);
    if (p->out_fd >= 0) {
        close(p->out_fd);
    }

    if (p->err_fd >= 0) {
        close(p->err_fd);
    }

    free(p->out);
    free(p->err);
    free(p);
}
