/* SPDX-License-Identifier: MIT */
#ifndef PHASE_H
#define PHASE_H
#include "bench/histogram.h"
#include "bench/listeners.h"
#include "bench/load.h"
#include "bench/snapshot.h"

/* One part of a run, with listeners of its own if it needs any, so that their counts, their memory
 * and their CPU time are of this part alone. */
struct phase {
    const char *name; /* of its JSON members */
    bool on;          /* it was run */
    struct listeners listeners;
    struct load load;
    struct snapshot before, after;

    /* results */
    uint64_t settled, lost, twice, early;
    uint64_t foreign; /* jobs in the queue that are not of this phase */
    struct histogram claimed, started, heard;
    int64_t clock_error_us, rss_kib;
    int64_t last_settled_us; /* monotonic */
    int64_t settling_us;     /* from the first due moment to the last settle */
    int64_t longest_ping_us; /* of another client */
};

/* Reads what the listeners measured; to be called when they have stopped. */
void phase_collect(struct phase *p);
bool phase_is_broken(const struct phase *p); /* a job was lost, early, or ran twice */
int64_t phase_settled_per_s(const struct phase *p);
/* In thousandths. */
int64_t phase_bytes_per_job(const struct phase *p);
struct costs phase_costs(const struct phase *p, uint64_t jobs);
#endif
