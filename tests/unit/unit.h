/* SPDX-License-Identifier: MIT */
/* What the unit tests share. A test is a process of its own, so no clock needs to be put back. */
#ifndef UNIT_H
#define UNIT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* This program's clock_gettime() and gettimeofday() go before libc's, for lapse and libev alike;
 * timerfds know nothing of it. */
struct unit_clock {
    int64_t mono_at_us; /* the monotonic clocks stand here; 0: they run */
    int64_t slept_us;   /* the machine did: CLOCK_BOOTTIME is so much ahead of CLOCK_MONOTONIC */
    int64_t mono_add_us, wall_add_us;
};
extern struct unit_clock unit_clock;
void unit_pass_us(int64_t us); /* both clocks go on by so much */
extern bool unit_no_entropy;   /* getentropy(3) fails */

/* as hiredis reads it; the caller's to free */
struct redisReply *unit_reply(const char *resp, size_t len);
#define UNIT_REPLY(text) unit_reply(text, sizeof(text) - 1)

/* in a block of exactly that size, for ASan to see; caller's to free */
void *unit_copy(const void *bytes, size_t len);
/* the same on every run; state starts as anything */
uint64_t unit_random(uint64_t *state);

#endif
