/* SPDX-License-Identifier: MIT */
/* Turning an event loop until something is true. */
#ifndef LOOP_H
#define LOOP_H
#include <stdbool.h>
#include <stdint.h>

struct ev_loop;

/* One turn, which ends at end_ms (of test_now_ms()) at the latest. false: it is past that, and the
 * loop was not turned. */
bool loop_turn(struct ev_loop *loop, int64_t end_ms);
/* Did it become true? */
bool loop_until(struct ev_loop *loop, bool (*cond)(void *arg), void *arg, int timeout_ms);
bool is_true(void *flag); /* such a cond: *(bool *)flag */
/* Only to show that something does not happen. */
void loop_for(struct ev_loop *loop, int ms);
#endif
