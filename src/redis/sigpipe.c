/* SPDX-License-Identifier: MIT */
/* Nobody dies of a peer that went away, and what a host program thinks of SIGPIPE stays its own:
 * the signal is held off around a write, and taken back when the write raised it. */
#include "redis/sigpipe.h"
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <time.h>

static sigset_t only_pipe(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    return set;
}

void sigpipe_hold(sigset_t *before)
{
    sigset_t pipe = only_pipe();
    pthread_sigmask(SIG_BLOCK, &pipe, before);
}

void sigpipe_release(const sigset_t *before, bool may_be)
{
    static const struct timespec now = {0, 0};
    sigset_t pipe = only_pipe();

    if (may_be && !sigismember(before, SIGPIPE)) {
        while (sigtimedwait(&pipe, NULL, &now) < 0 && errno == EINTR) {}
    }
    pthread_sigmask(SIG_SETMASK, before, NULL);
}
