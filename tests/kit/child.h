/* SPDX-License-Identifier: MIT */
/* Processes that a test forks, and memory that it shares with them. They die with the test. */
#ifndef CHILD_H
#define CHILD_H
#include <stddef.h>
#include <sys/types.h>

/* What the child does. It ends by _exit(), with 125 where this returns. */
typedef void child_fn(void *arg);

/* Of the test's descriptors the child keeps 0 to 2 and those of keep (-1 ends them; NULL: none): a
 * copy of a socket would keep it open after the test closed it. SIGTERM waits until
 * child_ready_for_sigterm(). */
pid_t child_start(child_fn *run, void *arg, const int *keep);
void child_ready_for_sigterm(void);
/* kill -9, and its end is waited for; 0: there is none */
void child_kill(pid_t pid);

/* All 0. The same for every child that is started later, and it outlives them. */
void *shared_new(size_t size);
void shared_free(void *shared, size_t size); /* NULL is fine */
#endif
