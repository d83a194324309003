/* SPDX-License-Identifier: MIT */
/* The calls of lapse.h that ask Redis for something and are answered once, each with arguments that
 * suit, so that a test can say of all of them what happens when something is amiss. */
#ifndef CALLS_H
#define CALLS_H
#include "ask.h"

/* Each but CALL_READS writes something: where the queue is empty, or has the job a, which waits. */
enum call_kind { CALL_READS, CALL_MAKES, CALL_CHANGES };

/* In an order in which each finds what it asks for, in queue q of a Redis that was empty. */
struct api_call {
    const char *name;
    int (*make)(struct lapse *l, struct flow_answer *a); /* a->f is set; returns the call's error */
    int answer;                                          /* the error of its callback */
    enum call_kind kind;
};
extern const struct api_call api_calls[];
extern const size_t n_api_calls;
#endif
