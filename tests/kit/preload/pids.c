/* SPDX-License-Identifier: MIT */
/* For LD_PRELOAD: says on stderr when a process or group is signalled whose leader this process has
 * reaped already: by then the number may be another's. */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

enum { MANY = 256 };
static pid_t reaped[MANY];
static unsigned reaped_n;

static void *real(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

__attribute__((visibility("default"))) pid_t waitpid(pid_t pid, int *status, int options)
{
    pid_t (*wait_for)(pid_t, int *, int) = (pid_t(*)(pid_t, int *, int))(size_t)real("waitpid");
    pid_t ended = wait_for(pid, status, options);

    if (ended > 0) {
        reaped[reaped_n++ % MANY] = ended;
    }
    return ended;
}

__attribute__((visibility("default"))) int kill(pid_t pid, int sig)
{
    int (*signal_to)(pid_t, int) = (int (*)(pid_t, int))(size_t)real("kill");

    for (unsigned i = 0; i < MANY; i++) {
        if (reaped[i] && (pid == reaped[i] || pid == -reaped[i])) {
            dprintf(2, "signal %d to %d, which was reaped\n", sig, (int)pid);
        }
    }
    return signal_to(pid, sig);
}
