/* SPDX-License-Identifier: MIT */
#include "child.h"
#include <criterion/criterion.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STDERR = 2, DESCRIPTORS = 1024, BROKE_OFF = 125 };

static void mask_sigterm(int how)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(how, &set, NULL);
}

static bool is_kept(int fd, const int *keep)
{
    for (; keep && *keep >= 0; keep++) {
        if (*keep == fd) {
            return true;
        }
    }
    return false;
}

pid_t child_start(child_fn *run, void *arg, const int *keep)
{
    pid_t parent = getpid();

    mask_sigterm(SIG_BLOCK);

    pid_t pid = fork();
    cr_assert(pid >= 0, "fork: %m");

    if (pid > 0) {
        mask_sigterm(SIG_UNBLOCK);
        return pid;
    }

    prctl(PR_SET_PDEATHSIG, SIGKILL);

    for (int fd = STDERR + 1; fd < DESCRIPTORS; fd++) {
        if (!is_kept(fd, keep)) {
            close(fd);
        }
    }

    /* the test may have ended before prctl() */
    if (getppid() == parent) {
        run(arg);
    }

    _exit(BROKE_OFF);
}

void child_ready_for_sigterm(void)
{
    mask_sigterm(SIG_UNBLOCK);
}

void child_kill(pid_t pid)
{
    if (pid > 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
}

void *shared_new(size_t size)
{
    int flags = MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE;
    void *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, -1, 0);

    cr_assert(shared != MAP_FAILED, "mmap: %m");
    return shared;
}

void shared_free(void *shared, size_t size)
{
    if (shared) {
        munmap(shared, size);
    }
}
