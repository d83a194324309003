/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_LIVENESS_H
#define LAPSE_LIVENESS_H
#include <stdbool.h>
#include <stdint.h>

/* Whether a connection is alive. A half-open one, or one behind a proxy that acknowledges and
 * forwards nothing, looks like an idle one. So after half of reply_ms without a byte, while Redis
 * owes us nothing, it is asked for a sign of life; and after all of reply_ms without a byte, while
 * it owes us something, it is dead. Any byte counts, also of a long answer or a burst of events.
 *
 * All moments are by clock_us(). */
struct liveness {
    int64_t reply_us;     /* reply_ms */
    int64_t started_us;   /* the attempt to connect was */
    int64_t heard_us;     /* the last sign of life: a byte, or a full socket took more */
    int64_t asked_us;     /* a sign of life was asked for; 0: never */
    int64_t moved_us;     /* a full socket took more, of any connection; 0: never */
    bool deadline_passed; /* once; it counts if nothing is heard until we look again */
};

void liveness_init(struct liveness *l, int64_t reply_ms);

/* A new connection begins. */
void liveness_start(struct liveness *l);

/* Something came from Redis. */
void liveness_heard(struct liveness *l);
/* A socket that was full took more. */
void liveness_moved(struct liveness *l);
/* Did it, lately? */
bool liveness_moving(const struct liveness *l);

/* A sign of life was asked for, now. */
void liveness_asked(struct liveness *l);
/* When that was, if nothing was heard since; else 0. */
int64_t liveness_owed_since_us(const struct liveness *l);

/* When to ask for a sign of life, if Redis owes us nothing. */
int64_t liveness_ask_at_us(const struct liveness *l);
/* When to give up a connection that owes us something since then. */
int64_t liveness_deadline_us(const struct liveness *l, int64_t owed_since_us);

/* How long to wait before looking again. 0: the deadline has passed, twice; give it up. */
int64_t liveness_wait_ms(struct liveness *l, int64_t deadline_us);

#endif
