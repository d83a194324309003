/* SPDX-License-Identifier: MIT */
/* The figures that the README promises, measured: `make shown`. What is wrong on any machine (a job
 * lost, run twice or early) fails; how late jobs were is only printed, for it depends on the
 * machine. */
#ifndef SHOWN_H
#define SHOWN_H
#include "worker.h"

#define QUEUE "shown"

/* ---- producer.c ---- */
struct producer {
    struct ev_loop *loop;
    struct lapse *l;
    long n_asked, n_ok, n_failed;
};
void producer_open(struct producer *p, const char *url);
/* the next job; its id is its number */
void producer_ask(struct producer *p, struct lapse_due due);
/* n jobs, one each every_us */
void producer_rate(struct producer *p, long n, int64_t every_us, int64_t delay_ms);
/* until all are answered */
void producer_wait(struct producer *p);
void producer_close(struct producer *p);

/* ---- table.c ---- */
struct tally {
    long jobs, lost, twice, early;
    double claimed[3], started[3]; /* ms late: half of all, 99 of 100, the worst */
};
/* Of jobs 0 to jobs-1. runs: how many each may have had (1, or 2 where a holder was killed). */
struct tally tally_of(const struct board *b, long jobs, unsigned runs);
void table_head(void);
void table_row(const char *what, const struct tally *t, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
bool table_ok(void); /* no row had a job lost, twice or early */

/* ---- what all figures do ---- */
void until_runs(const struct board *b, long n, int timeout_ms);
void until_listeners(struct server *s, long n);

void show_steady(void);
void show_bare(void);
void show_random(void);
void show_killed(void);
void show_restarted(void);
#endif
