/* SPDX-License-Identifier: MIT */
/* A history: what producers, listeners and the fault injector did and saw. README.md draws the
 * lines of its files. */
#ifndef HISTORY_H
#define HISTORY_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum op {
    ENQUEUE,
    CANCEL,
    RESCHEDULE,
    GET,
    START,
    ACK,
    NACK,
    DEAD,
    STATE,
    FINAL,
    FSCK,
    NEMESIS,
    NOTE,
    N_OPS
};
/* ASKED: not answered yet; at the end of reading it is INFO */
enum outcome { ASKED, OK, FAIL, INFO };
enum conflict { REJECT, KEEP, REPLACE };
enum state { ABSENT, WAITING, RUNNING, DIED };

struct event {
    enum op op;
    enum outcome outcome;
    enum conflict conflict;
    enum state state;
    /* NULL: not said; equal texts have one address */
    const char *job, *proc, *err, *payload, *what;
    const char *file;
    long line, call;
    /* monotonic; it took place in between; INT64_MAX: nobody knows when, if at all */
    int64_t from_ns, to_ns;
    int64_t heard_ns; /* when its asker was told something; INT64_MAX: never */
    int64_t redis_us; /* when it took place, by Redis; 0: not said */
    int64_t due_ms, delay_ms, lease_until_ms, least_ms, since_ns, redis_ms;
    uint64_t token;
    long attempt, tries, created, defects, n_due, n_run, n_dead, n_jobs;
};

struct history {
    struct event *event;
    size_t n, room;
    bool faults;       /* somebody did harm: claims may go unseen, leases may end */
    bool clock_fault;  /* Redis's clock says nothing about the monotonic one */
    int64_t offset_ns; /* monotonic minus Redis's, at most so much */
    const struct event *final;
    const struct event *rollback[64];
    size_t n_rollbacks;
};

/* ---- read.c ---- */
extern const char *const op_name[N_OPS];
bool history_read(struct history *h, const char *path); /* false: told on stderr */
/* by job, then time; those of no job first */
void history_sort(struct history *h);

/* ---- rules.c ---- */
struct tally {
    long jobs, ok, info, starts, done, dead, stale, twice, expired, lost_in_window, searched,
        unsearched, broken;
    int64_t window_ns;
    int64_t *late_us; /* of each start */
};
struct life { /* the events of one job */
    const struct history *h;
    const struct event *event;
    size_t n;
    const char *job;
    bool rolled_back; /* some of it lies where a roll back may have undone it */
    struct tally *t;
};
/* When Redis took the job for this start, monotonic: not before, not after. */
int64_t claimed_from(const struct history *h, const struct event *start);
int64_t claimed_to(const struct history *h, const struct event *start);
void broken(struct life *l, const char *invariant, const struct event *a, const struct event *b,
            const char *reason);
void rules_of_all(struct history *h, struct tally *t); /* what no single job shows */
void rules_of_job(struct life *l, int64_t late_ms);

/* ---- search.c ---- */
enum { SEARCH_MOST = 63 };
/* Of one process, two calls in the order in which it asked them: the second before it had heard of
 * the first. */
bool asked_in_turn(const struct event *first, const struct event *second);
/* What may be in another order than it was asked in. */
struct leave {
    bool any;                           /* of all pairs */
    const struct event *first, *second; /* of this one; NULL: of none */
};
/* Is there an order of these that the states of a job allow? 1: yes, 0: no, -1: too many to say. */
int search(const struct life *l, struct leave leave);
#endif
