/* SPDX-License-Identifier: MIT */
/* The clocks of a process that was started with preload/clock.so and LAPSE_CLOCK=FILE; FILE holds
 * this, and who maps it may change it at any time. CLOCK_BOOTTIME is the real one whatever is in
 * here. */
#ifndef PRELOAD_CLOCK_H
#define PRELOAD_CLOCK_H
#include <stdatomic.h>
#include <stdint.h>

struct wall_clock {
    _Atomic int64_t step_us;  /* ahead of the real one */
    _Atomic int64_t slew_ppm; /* and from since_us (monotonic) on so much faster */
    _Atomic int64_t since_us;
    /* for so long the machine was suspended: CLOCK_MONOTONIC stood still */
    _Atomic int64_t asleep_us;
};
#endif
