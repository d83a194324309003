/* SPDX-License-Identifier: MIT */
/* The recorder in memory: each call of a handler, in whatever process. */
#ifndef RUNS_H
#define RUNS_H
#include "recorder.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

struct run { /* one call of a handler */
    char queue[24], id[40];
    int64_t due_ms, claimed_us;
    int64_t started_us; /* by the wall clock, which is Redis's on this machine */
    uint64_t token;
    unsigned try_no;
    enum lapse_via via;
    pid_t pid; /* 0: its process was killed while it wrote this */
};
struct runs {
    atomic_long taken; /* places given */
    atomic_long n;     /* runs written: that in the last place need not be among them */
    long max;
    struct run run[];
};

struct runs *runs_new(long max); /* shared with every process that is forked later */
void runs_free(struct runs *r);  /* NULL is fine */
void runs_add(struct runs *r, const struct lapse_job *job);
/* The first run from place *at on, behind which *at is then; but for those that were not written to
 * the end. NULL: there is none. */
const struct run *runs_next(const struct runs *r, long *at);
long runs_of(const struct runs *r, pid_t pid); /* of one process */
/* Has no run before this one been of the same job? */
bool runs_is_first_of_job(const struct runs *r, const struct run *run);
struct recorder runs_recorder(struct runs *r);
#endif
