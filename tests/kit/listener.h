/* SPDX-License-Identifier: MIT */
/* Listeners in processes of their own, to be stopped and killed; what they see goes to a
 * recorder. */
#ifndef LISTENER_H
#define LISTENER_H
#include "recorder.h"
#include "runs.h"
#include <stdbool.h>
#include <sys/types.h>

/* What its handler does with a job. */
enum listener_way {
    LISTENER_SETTLES,
    LISTENER_KEEPS,
    LISTENER_DIES,   /* kill -9 of its own process */
    LISTENER_BLOCKS, /* never returns */
};

struct listener_plan {
    const char *queues; /* names with a space between */
    struct lapse_options lapse;
    struct recorder recorder;
    enum listener_way way;
    unsigned claims; /* it has no handler, and claims so many jobs at once, in a loop; 0 */
    /* what follows is of LISTENER_SETTLES; all 0: a job is done as soon as it runs */
    int64_t block_ms;                    /* a handler blocks its loop for so long */
    int64_t hold_least_ms, hold_most_ms; /* and settles at a random time in between */
    int retry, fail;                     /* of 1000 runs, at random; the others are done */
    int64_t backoff_ms;                  /* a retry waits for so long at most */
    unsigned seed;                       /* of all that is random */
    bool may_be_refused;                 /* a settle that hears an error is no failure */
    /* it was asked that this job is done; or NULL */
    void (*done)(void *arg, struct lapse *l, const char *id);
    void *arg;
};

struct listener {
    pid_t pid; /* 0: ended and reaped */
    struct listener_ctl *ctl;
};

/* What the plan points to must live for the call only. */
struct listener *listener_start_plan(const struct listener_plan *plan);
/* The same in short. opts: its url and all else. */
struct listener *listener_start(struct runs *r, const char *queues,
                                const struct lapse_options *opts, enum listener_way way);
void listener_signal(struct listener *x, int sig); /* SIGKILL: and waits until it is gone */
/* Asks it to close, and waits 20 s at most. 0: it ended by itself, and no settle failed. */
int listener_exit(struct listener *x);
long listener_claimed(const struct listener *x); /* jobs, until it was asked to close */
void listener_free(struct listener *x);          /* kills what still runs; NULL is fine */
#endif
