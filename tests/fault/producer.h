/* SPDX-License-Identifier: MIT */
/* A producer of workload.h, in a process of its own. */
#ifndef PRODUCER_H
#define PRODUCER_H
#include "journal.h"
#include "workload.h"

struct producer {
    const struct work_opts *opts;
    struct journal *journal;
    unsigned seed;
    long jobs;  /* it asks for so many */
    long per_s; /* 0: as fast as Redis answers */
    /* its own */
    struct ev_loop *loop;
    struct lapse *l;
    double started;
    long n_asked;   /* first calls of a job */
    long n_planned; /* calls that will be made after a while */
};

void producer_run(void *producer);
/* In a listener: schedules a job again that it has just asked to be done, as often as opts say. */
void producer_enqueue_again(void *producer, struct lapse *l, const char *id);
#endif
