/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_SYNC_SETTLE_H
#define LAPSE_SYNC_SETTLE_H
#include "sync/call.h"

/* Gives back a job that a thread should not begin, and does not wait. The call is no spare. */
void settle_post_release(struct call *c);

/* ---- in the thread of the loop ---- */
/* The same. */
void settle_release(struct call *c);
/* The handle has closed: what settles it has not answered are of jobs that were given back. */
void settles_end(struct lapse_sync *s);

#endif
