/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_SYNC_CALL_H
#define LAPSE_SYNC_CALL_H
#include "sync/shared.h"

enum call_settle {
    CALL_DONE,
    CALL_RETRY,
    CALL_SNOOZE,
    CALL_FAIL,
    CALL_RELEASE,
    CALL_FORGET,
};

enum {
    CALL_OVER = 1,     /* what ask() returns if it has the answer already */
    CALL_REASON = 202, /* one byte more than lapse keeps, so that it sees where to cut */
};

#define TIMEOUT_MAX_MS ((int64_t)3652 * 86400 * 1000)

/* The way of a job through the functions of lapse_sync_around(). */
struct passage {
    struct list node; /* of the surrounded */
    unsigned n_ahead; /* those that it is to pass; 0: it is not surrounded */
    unsigned n;       /* those that it has entered, and not left */
    int64_t began_us, ran_us;
    bool given_back; /* under the mutex: by the handle, as that closes; its holder has it still */

    /* only the thread of the loop uses these */
    bool is_settled; /* lapse has the job */
    int err;         /* what that answered */
};

/* What a thread asks of lapse, until it is answered. The loop may be in it after the thread has
 * given up, so it is an allocation of its own. */
struct call {
    struct list node; /* of the list that waits for the loop, of the spares, or of a pool's line */
    struct lapse_sync *sync;

    /* Runs in the thread of the loop. 0: the answer will come, and end the call. CALL_OVER, or an
     * error: it is over. */
    int (*ask)(struct call *c);
    const void *args; /* the caller's, until ask() has returned */
    void *out;        /* the caller's, for call_out(); or NULL */

    enum { CALL_LISTED, CALL_ASKING, CALL_ASKED, CALL_ENDED } state;
    bool gives_up; /* the caller waits for nothing but the end of ask() */
    bool left;     /* the caller has given up: the call is freed at its end */
    int err;
    pthread_cond_t progress; /* for the caller */

    /* of a job that a thread has, or is to get; NULL: it is no such call */
    struct lapse_job *job;
    struct list settling;
    struct passage passage;
    enum call_settle settle;
    int64_t delay_ms;
    char reason[CALL_REASON];
};

/* NULL: out of memory. */
struct call *call_new(struct lapse_sync *s);
void call_free(struct call *c);

/* May this thread ask this? EINVAL, ECLOSED. */
int call_check(const struct lapse_sync *s, int64_t timeout_ms);
/* What a timeout_ms of 0 stands for. */
int64_t call_patience_ms(const struct lapse_sync *s);
/* The timeout_ms of a call that asks more than once: 0 is as long as it takes. Each request has its
 * own time to be answered, so all of it ends. */
int64_t call_all_ms(int64_t timeout_ms);
/* Makes a call, and waits for its end. */
int call_run(struct lapse_sync *s, int (*ask)(struct call *c), const void *args, int64_t timeout_ms,
             void *out);
/* The same for who holds a job: while lapse_sync_close() waits for handlers, too. */
int call_run_held(struct lapse_sync *s, int (*ask)(struct call *c), const void *args,
                  int64_t timeout_ms);
/* The same of a call that is there, with the mutex held; releases the mutex, and frees the call. */
int call_wait(struct call *c, int64_t timeout_ms);
/* Lists a call that no thread waits for. */
void call_post(struct call *c);

/* ---- in the thread of the loop ---- */
/* This thread is the one of the loop. */
void calls_begin(struct lapse_sync *s);
/* Asks what is listed. */
void calls_ask(struct lapse_sync *s);
/* Takes the mutex, and returns where the answer belongs; NULL: nobody waits for it. call_ended()
 * must follow, and releases the mutex. */
void *call_out(struct call *c);
void call_ended(struct call *c, int err);
/* Both, without an answer. */
void call_end(struct call *c, int err);

void calls_wake(const struct lapse_sync *s);
/* A condition whose waits go by the monotonic clock. */
void call_condition(pthread_cond_t *condition);

#endif
