/* SPDX-License-Identifier: MIT */
#ifndef PRODUCER_H
#define PRODUCER_H
#include <lapse.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bench_loop;

/* Schedules the jobs of the bench, which are numbered through all phases and all have one body. */
struct producer {
    struct bench_loop *loop;
    const char *queue;
    char *body;
    size_t body_len;
    uint64_t next; /* number of the next job */
};

/* False: out of memory. queue must live as long as the producer. */
bool producer_init(struct producer *p, struct bench_loop *loop, const char *queue, size_t body_len);
void producer_free(struct producer *p);
/* As lapse_schedule(). */
int producer_schedule(struct producer *p, struct lapse_due due, lapse_cb *fn, void *arg);
/* The number of the job with that id; false: it is not of a bench. */
bool producer_number_of(const char *id, uint64_t *number);
#endif
