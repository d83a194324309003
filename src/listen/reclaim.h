/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_RESUME_H
#define LAPSE_RESUME_H
#include "listen/lease.h"

/* After a reconnect: gives back what carries our name in a queue and is not in our hands. */
struct resume {
    struct reclaim_ask ask;
    struct holder *holder;
    struct span key, name;
    uint64_t *in_hand; /* tokens, sorted */
    size_t n_in_hand;
    int64_t next_page;
    unsigned n_releasing; /* jobs on their way back */
    int64_t n_back;       /* jobs that went back */
    int err;              /* the first error of all */
    bool on;
    bool stopped; /* the queue is: nothing more goes back, for another may claim for it by now */
    void (*done)(struct resume *r, int err); /* n_back jobs went back */
};
/* Nothing may be claimed for the queue until done(): a new claim could be taken for a lost one. */
void resume_start(struct resume *r);
void resume_stop(struct resume *r);
void resume_free(struct resume *r);

#endif
