/* SPDX-License-Identifier: MIT */
#include "listen/spawn.h"
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- finding it ---- */
static bool is_program(const char *path)
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

    if (!dirs) {
        dirs = "/usr/local/bin:/usr/bin:/bin";
    }

    while (*dirs) {
        size_t len = strcspn(dirs, ":");

        /* anybody may have put a program into a folder that is relative to the current one */
        if (*dirs == '/' && asprintf(&path, "%.*s/%s", (int)len, dirs, name) >= 0) {
            if (is_program(path)) {
                return path;
            }
            free(path);
        }

        dirs += len;
        dirs += strspn(dirs, ":");
    }

    return NULL;
}

/* ---- starting it ---- */
static void change_signal(int how, int signum)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, signum);
    sigprocmask(how, &set, NULL);
}

void block_signal(int signum)
{
    change_signal(SIG_BLOCK, signum);
}

void unblock_signal(int signum)
{
    change_signal(SIG_UNBLOCK, signum);
}

/* Our handlers would run in the child, in memory that is ours. What is ignored stays so, except
 * SIGPIPE. */
static void reset_signals(void)
{
    struct sigaction by_default = {.sa_handler = SIG_DFL};

    for (int signum = 1; signum < NSIG; signum++) {
        struct sigaction action;
        if (!sigaction(signum, NULL, &action) &&
            (action.sa_handler != SIG_IGN || signum == SIGPIPE)) {
            sigaction(signum, &by_default, NULL);
        }
    }
}

/* Runs in the child, which shares our memory until it executes its program: only calls to the
 * system. Returns an errno. */
static int become_program(const struct spawn *s, pid_t parent)
{
    sigset_t none;

    reset_signals();
    setpgid(0, 0);

    /* The signal comes when the thread that called vfork() ends: the only one there is. If that was
     * before prctl(), no signal would come. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent || dup2(s->stdin_fd, 0) < 0) {
        return errno ? errno : ESRCH;
    }

    closefrom(3); /* libraries open sockets without O_CLOEXEC, and so may our parent have */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(s->path, s->argv, s->env);

    return errno;
}

/* This is how posix_spawn() works, which cannot set PDEATHSIG: we stand still until the child has
 * become its program or has failed, so our memory is not copied, and the child can write to err. No
 * signal may be handled meanwhile. */
int spawn_program(const struct spawn *s, pid_t *pid)
{
    pid_t parent = getpid();
    volatile int err = 0;
    sigset_t all;
    sigset_t before;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);

    *pid = vfork(); /* NOLINT(*.vfork,*.Vfork): see above */
    if (*pid == 0) {
        err = become_program(s, parent);
        _exit(127);
    }

    if (*pid < 0) {
        err = errno;
    } else if (err) {
        waitpid(*pid, NULL, 0);
    }

    sigprocmask(SIG_SETMASK, &before, NULL);

    return err;
}
