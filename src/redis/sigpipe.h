/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_SIGPIPE_H
#define LAPSE_SIGPIPE_H
#include <signal.h>
#include <stdbool.h>

/* off for this thread: before a write by somebody else */
void sigpipe_hold(sigset_t *before);
/* as it was; may_be: one may have been raised meanwhile */
void sigpipe_release(const sigset_t *before, bool may_be);

#endif
