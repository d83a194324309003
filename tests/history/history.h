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
    bool running; /* a cancel that asks a job which runs to stop */
    /* NULL: not in the line; equal texts have one address */
    const char *job, *queue, *proc, *err, *payload, *what;
    const char *file;
    long line, call;
    /* Monotonic: it took effect in between. to_ns INT64_MAX: nobody knows when, if at all. */
    int64_t from_ns, to_ns;
    int64_t heard_ns; /* when its process had an answer; INT64_MAX: never */
    int64_t redis_us; /* when it took effect, by Redis's clock; 0: not in the line */
    int64_t due_ms, delay_ms, lease_until_ms, least_ms, since_ns, redis_ms;
    uint64_t token;
    long attempt, tries, created, defects, n_due, n_run, n_dead, n_jobs;
};

struct history {
    struct event *event;
    size_t n, cap;
    bool faults;      /* harm was done: claims may go unseen, leases may end */
    bool clock_fault; /* Redis's clock says nothing about the monotonic one */
    /* The monotonic clock minus Redis's: at least, at most. INT64_MIN, INT64_MAX: nothing tells. */
    int64_t offset_from_ns, offset_to_ns;
    const struct event *final;
    const struct event *rollback[64];
    size_t n_rollbacks;
};

/* ---- read.c ---- */
extern const char *const op_name[N_OPS];
bool history_read(struct history *h, const char *path); /* false: stderr says why */
/* By job, then time; events of no job come first. Call it once, when all is read. */
void history_sort(struct history *h);

/* ---- rules.c ---- */
struct tally {
    long jobs;
    long ok, info; /* enqueues that made a job, and that may have */
    long starts;
    long done, dead, stale;    /* settles that were done; jobs dead at the end; settles too late */
    long twice, expired;       /* runs again that had a reason; of these after the end of a lease */
    long asked;                /* cancels by which a job that ran was asked to stop */
    long lost_in_window;       /* enqueues that a roll back may have undone */
    int64_t window_ns;         /* the longest time from such an enqueue to the roll back */
    long searched, unsearched; /* jobs of which all orders were tried, or were too many */
    long broken;               /* rules */
    int64_t *late_us;          /* of each start: how late it was claimed */
};
struct life { /* the events of one job */
    const struct history *h;
    const struct event *event;
    size_t n;
    const char *job;
    bool rolled_back; /* some of it lies where a roll back may have undone it */
    struct tally *t;
};
/* When Redis gave the job to the handler of this start, by the monotonic clock: not before, not
 * after. */
int64_t claimed_from(const struct history *h, const struct event *start);
/* The same of a job that is due then; INT64_MAX: nothing tells. */
int64_t due_from(const struct history *h, int64_t due_ms);
int64_t claimed_to(const struct history *h, const struct event *start);
/* Reports that an invariant ("I3") does not hold, and by which events (NULL: none). */
void broken(struct life *l, const char *invariant, const struct event *a, const struct event *b,
            const char *reason);
void rules_of_all(struct history *h, struct tally *t); /* what no single job shows */
void rules_of_job(struct life *l, int64_t late_ms);

/* ---- search.c ---- */
enum { SEARCH_MOST = 63 };
/* Two calls of one process in this order, the second asked before the first was answered. */
bool asked_in_turn(const struct event *first, const struct event *second);
/* Which calls may take effect in another order than their process asked them in. */
struct leave {
    bool any;                           /* all */
    const struct event *first, *second; /* these two; NULL: none */
};
/* Is there an order of all events that the states of a job allow? 1: yes, 0: no, -1: there are too
 * many to say. */
int search(const struct life *l, struct leave leave);
#endif
