/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_CLOCK_H
#define LAPSE_CLOCK_H
#include <stdint.h>

/* Measures waiting: monotonic, and it goes on while the machine sleeps, as leases do. */
int64_t clock_us(void);
/* This machine's Unix time. Only to sort by: moments are by Redis's clock. */
int64_t clock_wall_us(void);

/* For jitter and names, not for secrets. */
uint64_t clock_random(void);

#endif
