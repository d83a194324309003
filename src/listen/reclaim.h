/* SPDX-License-Identifier: MIT */
#ifndef LAPSE_RECLAIM_H
#define LAPSE_RECLAIM_H
#include "listen/lease.h"

/* After a reconnect: returns the jobs of a queue that Redis holds for us and that we have never
 * seen. */
struct reclaim {
    struct script *script;
    const struct leases *leases;
    struct span key;
    struct span holder; /* our name, as Redis knows it */
    void (*done)(void *arg, int err, int64_t n_returned);
    void *arg;

    bool on;
    bool stopped; /* the queue is: returns nothing more, as others may claim its jobs by now */
    struct reclaim_request page;
    int64_t next_page; /* 0: the last was asked for */
    uint64_t *known;   /* tokens of jobs that must not be returned, sorted */
    size_t n_known;
    unsigned n_returning; /* requests without an answer */
    int64_t n_returned;
    int err; /* the first of all */
};

struct reclaim_spec {
    struct script *script;
    const struct leases *leases;
    struct span key;
    struct span holder;
    void (*done)(void *arg, int err, int64_t n_returned);
    void *arg;
};

void reclaim_init(struct reclaim *r, const struct reclaim_spec *spec);

/* Until done() nothing may be claimed for the queue: a new claim could be taken for a lost one. */
void reclaim_start(struct reclaim *r);

static inline bool reclaim_on(const struct reclaim *r)
{
    return r->on;
}

/* Returns no more jobs, for good. If it is on, done() is still called. */
void reclaim_stop(struct reclaim *r);
void reclaim_free(struct reclaim *r);

#endif
