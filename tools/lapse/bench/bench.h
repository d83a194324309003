/* SPDX-License-Identifier: MIT */
#ifndef BENCH_H
#define BENCH_H
#include "cli/arguments.h"
#include "cli/message.h"
#include "cli/url_mask.h"
#include "cli/values.h"
#include "client/client.h"
#include "client/redis_sync.h"
#include <stdio.h>
#include <sys/types.h>

/* ---- bench_spread.c: many durations in little room ---- */
enum {
    SPREAD_EXACT = 2048,
    SPREAD_STEPS = SPREAD_EXACT / 2,
    SPREAD_BUCKETS = SPREAD_EXACT + 26 * SPREAD_STEPS
};
struct spread { /* to the microsecond below 2,048 us, to 0.1 % above; up to 38 hours */
    uint64_t n;
    int64_t min_us, max_us;
    uint32_t bucket[SPREAD_BUCKETS];
};
void spread_add(struct spread *s, int64_t us);
void spread_merge(struct spread *to, const struct spread *from);
/* 9990: p99.9; never less than it was */
int64_t spread_at(const struct spread *s, unsigned ten_thousandths);

/* ---- bench_keys.c: the queue as it lies in Redis, and how it is left ---- */
#define BENCH_ID "bench-%014llu" /* 20 bytes; what is named otherwise is not ours */
enum { BENCH_ID_START = 6, BENCH_ID_BYTES = 20, BENCH_KEY_BYTES = 160 };
/* 0: it holds nothing but our own */
int keys_check(struct redis_sync *r, const char *key, const char *queue);
/* whose events are confirmed */
int keys_listeners(struct redis_sync *r, const char *key, int64_t *n);
/* before the listeners leave */
int keys_canaries(struct redis_sync *r, const char *key);
/* our own, and the queue if that was all */
int keys_erase(struct redis_sync *r, const char *key, const char *queue);

/* ---- bench_crew.c: listeners, each a process ---- */
struct slot { /* written by one listener */
    int32_t ready;
    uint64_t early, twice, foreign, allocs;
    int64_t settled_us; /* monotonic, of the last settle */
    struct lapse_stats stats;
    struct spread claimed, started;
};
struct shared {
    int64_t offset_us; /* our monotonic clock less Redis's */
    uint64_t first;    /* number of the first job */
    struct slot slot[];
};
struct crew {
    unsigned n;
    uint64_t jobs; /* that each can tell apart */
    pid_t *pids;
    struct shared *shared; /* and after the slots a bit for each job: it ran */
    size_t bytes;
    int gate, leash,
        /* our ends of pipes: closed to start them, and to stop them; ends with the last; -1: none
         */
        alive;
};
struct bench;
/* before the first connection; they wait */
int crew_fork(struct bench *b, struct crew *c, uint64_t jobs);
int crew_start(struct bench *b, struct crew *c, uint64_t first); /* and waits until all listen */
void crew_stop(struct bench *b, struct crew *c);
uint64_t crew_done(const struct crew *c);
uint64_t crew_ran(const struct crew *c); /* jobs that ran at all */
int64_t crew_cpu_us(const struct crew *c);
int64_t crew_rss_kb(const struct crew *c); /* the highest peak */

/* ---- bench_ask.c: the producer ---- */
struct ask {
    struct bench *b;
    const char *what; /* for progress; NULL: none */
    uint64_t n;
    struct lapse_due due;
    int apart;             /* each is due one ms after the one before */
    int one_by_one;        /* each after the answer to the one before */
    unsigned per_second;   /* of ask_rate() */
    int64_t at_least_us;   /* what it should take */
    int64_t late_us;       /* monotonic: what is stored after it is late; 0: never */
    struct spread *waited; /* for each answer, one by one; NULL: not measured */
    /* what became of it */
    uint64_t asked, stored, failed, late;
    /* of the first question, the last answer, the last question */
    int64_t start_us, last_us, sent_us;
    int err;             /* the first */
    int over, open_loop; /* over: asks no more */
};
int ask_many(struct ask *a); /* as fast as they go, or one by one, until the first failure */
int ask_rate(struct ask *a); /* open loop: each at its time, whatever became of those before */
int64_t ask_per_second(const struct ask *a);

/* ---- bench_run.c: what is measured ---- */
struct mark { /* counters at one moment */
    struct redis_info info;
    int64_t us, listeners_us, producer_us;
    struct lapse_stats stats;
    uint64_t allocs;
};
struct part {
    int on;
    struct crew crew;
    struct ask ask;
    struct mark from, to;
    /* foreign: jobs of the queue that are not of this part */
    uint64_t settled, lost, twice, early, foreign;
    struct spread claimed, started;
    int64_t clock_error_us, rss_kb;
    int64_t settled_us; /* monotonic, of the last settle */
    int64_t settle_us;  /* from when the first was due to the last settle */
    int64_t ping_us;    /* the longest, of another client */
};
struct bench {
    struct client c; /* first: on_refused gets this */
    struct globals *g;
    struct redis_sync redis;
    /* what was asked for */
    const char *queue;
    unsigned rate, waiting, listeners, burst;
    unsigned schedule;
    int body;
    int64_t duration_ms, delay_ms, idle_ms;
    /* what is going on */
    char key[BENCH_KEY_BYTES], name[32];
    char *secret;  /* the URL; ours, wiped */
    char *bytes;   /* a body */
    uint64_t next; /* number of the next job */
    int signum;
    ev_signal term, interrupt;
    struct redis_info now; /* of the start */
    int64_t stored_per_s;  /* so far; 0: not known */
    /* what came out */
    struct part fill, idle, many, single, steady, salvo;
    struct spread answers, pings;
};
/* Runs the loop, looking at least every so many ms (0: when something happens). 0, or an exit code:
 * stopped, or closed.
 */
int bench_until(struct bench *b, int every_ms, int (*over)(void *arg), void *arg);
int run_fill(struct bench *b);
int run_idle(struct bench *b);
int run_schedule(struct bench *b);
int run_rate(struct bench *b);
int run_burst(struct bench *b);

/* ---- bench_print.c ---- */
void print_bench(const struct bench *b);
void print_bench_json(const struct bench *b);
#endif
