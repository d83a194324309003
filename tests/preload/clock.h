/* SPDX-License-Identifier: MIT */
/* The wall clock of a process that was started with preload/clock.so and LAPSE_CLOCK=FILE; FILE holds this, and who
 * maps it may change it at any time. A process keeps to its own monotonic clock whatever is in here. */
#ifndef PRELOAD_CLOCK_H
#define PRELOAD_CLOCK_H
#include <stdatomic.h>
#include <stdint.h>

struct wall_clock {
    _Atomic int64_t step_us;  /* ahead of the real one */
    _Atomic int64_t slew_ppm; /* and from since_us (monotonic) on so much faster */
    _Atomic int64_t since_us;
};
#endif
