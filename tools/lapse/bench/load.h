/* SPDX-License-Identifier: MIT */
#ifndef LOAD_H
#define LOAD_H
#include "bench/histogram.h"
#include "bench/producer.h"

/* Jobs that a phase schedules, and what became of the requests. */
struct load {
    struct producer *producer;

    /* set by the phase */
    uint64_t n;
    struct lapse_due due;
    bool spaced;                /* each is due one ms after the one before */
    bool one_by_one;            /* each waits for the answer to the one before */
    unsigned per_second;        /* of load_at_rate() */
    int64_t at_least_us;        /* how long it should take */
    int64_t late_after_us;      /* monotonic: a job stored after it is late; 0: never */
    struct histogram *answered; /* how long each answer took, one by one; NULL: not measured */

    /* results */
    uint64_t asked, stored, failed, late;
    int64_t start_us, last_answer_us; /* monotonic */
    int err;                          /* the first */

    bool stopped;   /* it asks no more */
    bool open_loop; /* answers do not cause the next requests */
    int64_t asked_us;
};

/* Schedules as fast as answers come, or one by one, until the first failure. Both return 0, or an
 * exit code if the loop was ended. */
int load_in_bulk(struct load *load);
/* Schedules each job at its time, whatever became of those before. */
int load_at_rate(struct load *load);
/* Jobs stored a second. */
int64_t load_rate(const struct load *load);
#endif
