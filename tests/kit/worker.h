/* SPDX-License-Identifier: MIT */
/* Listeners in processes of their own, and what they saw: in shared memory, so that it outlives who
 * is killed. */
#ifndef WORKER_H
#define WORKER_H
#include "support.h"
#include <lapse.h>
#include <stdatomic.h>

struct run { /* one call of a handler */
    char queue[24], id[40];
    int64_t due_ms, claimed_us;
    int64_t started_us; /* by the wall clock, which is Redis's on this machine */
    uint64_t token;
    unsigned try_no;
    enum lapse_via via;
    pid_t pid;
};
struct board {
    atomic_long taken, n; /* places given, runs written */
    long max;
    struct run run[];
};
struct board *board_new(long max); /* shared with every process forked later */
void board_free(struct board *b);  /* NULL is fine */
void board_note(struct board *b, const struct lapse_job *job);
long board_of(const struct board *b, pid_t pid); /* runs of one process */

/* What its handler does with a job; DIES: kill -9 itself; BLOCKS: never returns. */
enum worker_way { WORKER_DONE, WORKER_HOLD, WORKER_DIES, WORKER_BLOCKS };
struct worker {
    pid_t pid; /* 0: ended and reaped */
    struct worker_ctl *ctl;
};
/* Listens to queues (names with a space between). opts: its url and all else; must live for the
 * call only. */
struct worker *worker_start(struct board *b, const char *queues, const struct lapse_options *opts,
                            enum worker_way way);
void worker_way(struct worker *w, enum worker_way way); /* for jobs from now on */
void worker_signal(struct worker *w, int sig);          /* SIGKILL: and waits until it is gone */
/* asks it to close and waits: 0, if it ended by itself and all its settles heard 0 */
int worker_end(struct worker *w);
long worker_claimed(const struct worker *w); /* jobs, until it was asked to close */
void worker_free(struct worker *w);          /* kills what still runs; NULL is fine */
#endif
