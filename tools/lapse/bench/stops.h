/* SPDX-License-Identifier: MIT */
#ifndef STOPS_H
#define STOPS_H
#include "bench/listeners.h"
#include "bench/load.h"

/* Jobs that are asked to stop while they run, one after the other: each is scheduled, a listener
 * begins it, it is cancelled, and its listener hears of that and settles it. Ends with the first
 * failure, or when nothing has happened for patience_ms. Returns 0, or an exit code if the loop was
 * ended. */
int stops_run(struct load *load, struct listeners *listeners, int64_t patience_ms);
#endif
