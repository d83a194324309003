/* SPDX-License-Identifier: MIT */
#ifndef RUN_H
#define RUN_H
#include "bench/bench.h"

/* Runs the phases that were asked for; 0, or an exit code after it has printed why. */
int run_phases(struct bench *b);
#endif
