/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_SYNC_SHARED_H
#define LAPSE_SYNC_SHARED_H
#include "base/list.h"
#include <ev.h>
#include <lapse_sync.h>
#include <pthread.h>
#include <sys/types.h>

enum { SYNC_SURROUNDED = 256 }; /* a power of two */

/* What the threads of callers, the workers and the thread of the loop share. */
struct lapse_sync {
    pid_t pid;         /* of the process that opened it */
    int64_t reply_ms;  /* options */
    int64_t copies_ms; /* how long copies are waited for at most */
    bool wants_copies; /* of all that is written */
    int wake_fd;       /* an eventfd: calls are listed */
    pthread_t thread;  /* of the loop */

    /* only that thread uses these, as long as it runs */
    struct ev_loop *loop;
    ev_io wake;
    struct lapse *handle; /* NULL: it has closed */
    struct list settling; /* settles whose answers are to come */
    lapse_sync_health_fn *health_fn;
    void *health_arg;
    lapse_sync_event_fn *event_fn;
    void *event_arg;
    lapse_sync_told_fn *told_fn;
    void *told_arg;

    /* what is called around handlers: that thread adds to it, and a worker reads what its job is to
     * pass, which was there when the job came */
    struct arounds {
        unsigned n;
        struct around {
            lapse_sync_before_fn *before; /* one of the two may be NULL */
            lapse_sync_after_fn *after;
            void *arg;
        } of[LAPSE_AROUND_MAX];
    } arounds;

    pthread_mutex_t mutex;  /* of all that follows */
    pthread_cond_t changed; /* something that lapse_sync_close() waits for */
    struct list listed;     /* calls that the loop has not seen yet, in order */
    struct list spares;     /* a call for each job that a thread has, so that it can be settled */
    struct list surrounded[SYNC_SURROUNDED]; /* likewise, of jobs with functions around their
                                                handlers: by the job */
    struct list pools;
    unsigned n_callers; /* threads that wait in a call */
    bool closing;       /* nothing but settles is asked any more */
    bool closed;        /* the handle has */
    bool quitting;      /* the thread of the loop is to end */
};

#endif
