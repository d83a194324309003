/* SPDX-License-Identifier: MIT */
/* The work that goes on while something breaks: producers and listeners in processes of their own,
 * through <lapse.h>, each of which writes down all it asks and hears; at the end a program that
 * knows nothing of lapse reads the history and says whether the invariants held
 * (tests/history/README.md). A row in short:
 *
 *     struct work_opts o = work_opts();
 *     o.jobs = fault_n(2000, 20000), o.listeners = 3, o.lapse.lease_ms = 1000;
 *     struct work *w = work_start(server, &o);
 *     while (!work_asked_all(w))
 *         work_kill(w, random() % 3), work_wait(w, 500);
 *     struct verdict v = work_end(w, 60000);
 *     fault_row("F4", ..., "%ld kills, %ld of %ld jobs ran twice", kills, v.twice, v.jobs);
 *
 * What a nemesis does that may end a lease, lose an answer or a claim is written down, by
 * work_nemesis() or by the call that does it; without any such line the checker allows no job a
 * second run. */
#ifndef WORKLOAD_H
#define WORKLOAD_H
#include "fault.h"
#include "runs.h"
#include "server.h"
#include <lapse.h>

#define WORK_QUEUE "q"
enum { WORK_CREW = 16, WORK_QUEUES_MOST = 8, WORK_QUEUE_NAME = 16 };

struct work_opts {
    struct lapse_options lapse; /* of all of them; url NULL: the server's */
    /* another way to the same Redis, as through a proxy; NULL: lapse.url */
    const char *listener_url;
    const char *producer_url;
    /* so many listeners, the last ones, go by lapse.url all the same; 0 */
    int direct;
    int producers, listeners; /* 2 and 2 */
    unsigned claims;          /* the listeners have no handlers and claim so many at once; 0 */
    int queues;               /* a job's id says its own; 1 */
    /* where the i-th queue is at the beginning and at the end; NULL: where the work is */
    struct server *(*server_of)(void *arg, int queue);
    void *arg;
    long jobs;        /* all producers together; 1000 */
    long per_s;       /* all together; 0: as fast as Redis answers */
    int64_t delay_ms; /* a job's delay is random, up to this; 1000 */
    /* a handler settles its job after a random time up to this; 0: at once */
    int64_t hold_ms;
    size_t body_len;        /* a body's length is random, up to this; 64 */
    unsigned tries;         /* LAPSE_FOREVER */
    int64_t backoff_ms;     /* 50 */
    int cancel, reschedule; /* of 1000 jobs, at a random moment of their lives; 0 */
    bool stops;             /* a cancel asks a job that runs to stop */
    int retry, fail;        /* of 1000 runs; 0 */
    /* > 0: all producers act at random on so few ids, with all verbs; 0: each job its own id */
    int ids;
    unsigned seed;   /* 1 */
    int64_t late_ms; /* I11: later than this is wrong; 0: any */
    int turn;        /* with ids: what is asked of each of three ids in one turn; 1 */
    /* of 1000 runs that are done: the handler schedules the id again, in the same turn; 0 */
    int again;
    struct runs *runs; /* each call of a handler is put there too; NULL */
    int delayed;       /* of 1000 jobs have a delay, the others are due at once; 1000 */
    int odd;           /* so many listeners, the first ones, are as odd_one says; 0 */
    struct {
        unsigned flags, max_running; /* besides those of all; 0: of all */
        /* a handler settles after this; it blocks its loop for that; 0 */
        int64_t hold_ms, block_ms;
    } odd_one;
};
struct work_opts work_opts(void);
/* The name of the i-th queue, of which the first is WORK_QUEUE, and of that of a job. */
const char *work_queue(int i, char out[WORK_QUEUE_NAME]);
const char *work_queue_of(const struct work_opts *o, const char *id, char out[WORK_QUEUE_NAME]);

struct work;
struct work *work_start(struct server *s,
                        /* returns when all listeners are known to Redis */
                        const struct work_opts *o);
void work_kill(struct work *w, int listener); /* -9, and another in its place */
/* it closes in order, and another in its place */
void work_replace(struct work *w, int listener);
void work_signal(struct work *w, int listener, int sig); /* SIGSTOP, SIGCONT */
pid_t work_pid(struct work *w, int listener);
void work_nemesis(struct work *w, const char *what); /* writes down what is done to them now */
void work_clock_fault(struct work *w);               /* Redis's clock is not this machine's */
/* Redis came back with what it had since_ms before; since_ms by test_now_ms(). Call it when Redis
 * was just killed. */
void work_rolled_back(struct work *w, int64_t since_ms);
void work_note(struct work *w, const char *what);   /* the same, but it excuses nothing */
void work_server(struct work *w, struct server *s); /* where the jobs are from now on */
void work_wait(struct work *w, int ms);             /* lets them work */
bool work_asked_all(struct work *w);                /* each producer's requests were answered */
long work_starts(struct work *w);                   /* handlers called so far */

struct verdict {
    /* enqueues: that Redis took, that may or may not have happened */
    long jobs, ok, info;
    /* cancels by which a job that ran was asked to stop */
    long asked;
    /* handlers called, settles that were done; settles refused as too late */
    long starts, done, dead, stale;
    /* runs after the first that needed one; of them after the end of a lease */
    long twice, expired;
    long searched; /* jobs of which all orders were looked at */
    /* enqueues taken back by a roll back, all within its window; and how long that was */
    long lost_in_window;
    double window_ms, late_p50_ms, late_p99_ms, late_max_ms;
};
/* Waits until all is asked and nothing is left to run, ends all, audits Redis, has the history
 * checked. What is wrong fails the test, with the history left in BUILD/history. Frees w. */
struct verdict work_end(struct work *w, int timeout_ms);
#endif
