/* SPDX-License-Identifier: MIT */
/* Who writes down what a listener process does, where that outlives the process. There are two:
 * runs.h keeps runs in memory for the test to look at, journal.h writes lines for tests/history. */
#ifndef RECORDER_H
#define RECORDER_H
#include <lapse.h>

enum settle_how { SETTLE_DONE, SETTLE_RETRY, SETTLE_FAIL };
struct settle {
    enum settle_how how;
    int64_t delay_ms; /* of a retry; or LAPSE_BACKOFF */
    int64_t least_ms; /* the job does not run again earlier than after this */
};

/* All run in the process of the listener; what is NULL is not called. */
struct recorder {
    void *arg;
    void (*begin)(void *arg);
    /* a handler was called */
    void (*started)(void *arg, const struct lapse_job *job);
    /* a job is about to be settled; returns what settled() is to be given as its note */
    void *(*settling)(void *arg, const struct lapse_job *job, const struct settle *s);
    void (*settled)(void *arg, void *note, int err);
};
#endif
