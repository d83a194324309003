/* SPDX-License-Identifier: MIT */
/* A wall clock of one's own, which a test sets while the programs that go by it run. */
#ifndef SET_CLOCK_H
#define SET_CLOCK_H
#include "preload/clock.h"

enum { CLOCK_PATH = 64 };

/* Programs that are started from now on go by it. */
struct wall_clock *clock_begin(char path[CLOCK_PATH]);
/* Those that are started from now on go by the machine's again. */
void clock_not_for_others(void);
/* From now on it is so many millionths too fast. */
void clock_slew(struct wall_clock *c, int64_t ppm);
void clock_end(struct wall_clock *c, char path[CLOCK_PATH]);
#endif
