/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_SYNC_AROUND_H
#define LAPSE_SYNC_AROUND_H
#include "sync/call.h"

enum around_entered {
    AROUND_HANDLER, /* its handler is next */
    AROUND_TAKEN,   /* a function has the job, and with it the call that will settle it */
    AROUND_BACK,    /* it must not go on: it is to go back, if the handle has not seen to that */
};

/* Whether a thread may begin what is next for a job. Not if its lease has ended, as another process
 * may have it; nor if it is asked to stop. */
bool around_may_begin(const struct lapse_job *job);
/* Calls the functions before the handler of a surrounded job. */
enum around_entered around_enter(struct call *c);
/* The run of a job is over, as it is settled. */
void around_turn(struct call *c);

/* ---- under the mutex ---- */
/* The call that will settle a surrounded job; NULL: it is no such job. */
struct call *around_find(const struct lapse_sync *s, const struct lapse_job *job);
/* Frees the calls of those that nobody has settled. */
void arounds_free(struct lapse_sync *s);

/* ---- in the thread of the loop ---- */
/* A job joins a line: it is surrounded, if there are functions. */
void around_begin(struct call *c);
bool around_is(const struct call *c);
/* A surrounded job is settled, and is no more: calls the functions after its handler. */
void around_end(struct call *c, int err);

#endif
