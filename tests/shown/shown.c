/* SPDX-License-Identifier: MIT */
#include "shown.h"
#include <criterion/criterion.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct lapse_options options(const struct server *s)
{
    struct lapse_options o = lapse_options_init();
    o.url = s->url;
    return o;
}

static void steady(const char *what, struct lapse_options o, struct server *s, const char *goal)
{
    enum { JOBS = 10000, EVERY_US = 1000, DELAY_MS = 1000, LONG_MS = 60000 };
    struct board *b = board_new(2 * JOBS);
    struct worker *w = worker_start(b, QUEUE, &o, WORKER_DONE);
    struct producer p;

    until_listeners(s, 1);
    producer_open(&p, s->url);
    producer_rate(&p, JOBS, EVERY_US, DELAY_MS);
    producer_wait(&p);
    until_runs(b, JOBS, LONG_MS);
    worker_end(w);

    struct tally t = tally_of(b, JOBS, 1);
    table_row(
        what, &t, "ms late, p50 p99 max: claimed %.2f %.2f %.1f, handler %.2f %.2f %.1f; goal %s",
        t.claimed[0], t.claimed[1], t.claimed[2], t.started[0], t.started[1], t.started[2], goal);
    producer_close(&p);
    worker_free(w);
    board_free(b);
}

void show_steady(void)
{
    struct server *s = server_start();
    steady("1,000/s for 10 s, one listener", options(s), s, "p50 < 0.5, p99 < 5");
    server_stop(s);
}

void show_bare(void)
{
    struct server *s = server_start();
    struct lapse_options o = options(s);
    o.flags = LAPSE_NO_ALARM;
    steady("the same, LAPSE_NO_ALARM, sweep_ms 5000", o, s, "max < 5250");
    server_stop(s);
}

void show_random(void)
{
    enum { JOBS = 100000, MOST_MS = 5000, LONG_MS = 120000 };
    struct server *s = server_start();
    struct board *b = board_new(2 * JOBS);
    struct lapse_options o = options(s);
    struct worker *w[2];
    struct producer p;

    for (int i = 0; i < 2; i++) {
        w[i] = worker_start(b, QUEUE, &o, WORKER_DONE);
    }

    until_listeners(s, 2);
    producer_open(&p, s->url);
    srandom(1);
    for (long i = 0; i < JOBS; i++) {
        producer_ask(&p, lapse_in(random() % (MOST_MS + 1)));
    }

    producer_wait(&p);
    until_runs(b, JOBS, LONG_MS);

    long first = board_of(b, w[0]->pid);
    for (int i = 0; i < 2; i++) {
        worker_end(w[i]);
        worker_free(w[i]);
    }

    struct tally t = tally_of(b, JOBS, 1);
    table_row("delays of 0 to 5 s, two listeners", &t,
              "%ld and %ld runs; ms late, p50 p99 max: %.2f %.2f %.1f; goal: each job once", first,
              b->n - first, t.claimed[0], t.claimed[1], t.claimed[2]);
    producer_close(&p);
    board_free(b);
    server_stop(s);
}

/* The time until a listener that stays has run all that the killed one held, in ms. */
static int64_t killed_once(struct tally *t)
{
    enum { JOBS = 50, LEASE_MS = 1000, SWEEP_MS = 500, LONG_MS = 30000 };
    struct server *s = server_start();
    struct board *b = board_new(4 * JOBS);
    struct lapse_options o = options(s);
    struct producer p;

    o.lease_ms = LEASE_MS;
    o.sweep_ms = SWEEP_MS;

    struct worker *holder = worker_start(b, QUEUE, &o, WORKER_HOLD);
    until_listeners(s, 1);
    producer_open(&p, s->url);
    for (long i = 0; i < JOBS; i++) {
        producer_ask(&p, lapse_in(0));
    }

    producer_wait(&p);
    until_runs(b, JOBS, LONG_MS);

    struct worker *other = worker_start(b, QUEUE, &o, WORKER_DONE);
    until_listeners(s, 2);
    poll(NULL, 0, (int)(random() % LEASE_MS)); /* at any moment between two renewals */
    worker_signal(holder, SIGKILL);

    int64_t start = test_now_ms();
    until_runs(b, 2 * JOBS, LONG_MS);

    int64_t took = test_now_ms() - start;
    worker_end(other);
    *t = tally_of(b, JOBS, 2);
    t->lost = 2 * JOBS - b->n > 0 ? 2 * JOBS - b->n : 0;
    worker_free(holder);
    worker_free(other);
    producer_close(&p);
    board_free(b);
    server_stop(s);

    return took;
}

void show_killed(void)
{
    enum { ROUNDS = 5 };
    struct tally sum = {0};
    struct tally t;
    int64_t worst = 0;

    for (int i = 0; i < ROUNDS; i++) {
        int64_t took = killed_once(&t);
        worst = took > worst ? took : worst;
        sum.jobs += t.jobs;
        sum.lost += t.lost;
        sum.twice += t.twice;
        sum.early += t.early;
    }

    table_row("kill -9 of a listener that holds 50, 5 times", &sum,
              "all ran within %lld ms; goal lease_ms 1000 + sweep_ms 500", (long long)worst);
}

/* While an fsync is under way Redis answers before it writes, and a kill -9 in that moment would
 * lose jobs. */
static void until_written(struct server *s)
{
    for (bool written = false; !written; poll(NULL, 0, 1)) {
        char *info = redis_str(s, "INFO persistence");
        written =
            strstr(info, "aof_buffer_length:0\r") && strstr(info, "aof_pending_bio_fsync:0\r");
        free(info);
    }
}

static int64_t restarted_once(struct tally *t)
{
    enum { JOBS = 1000, DELAY_MS = 1000, DOWN_MS = 2500, LONG_MS = 30000 };
    struct server *s = server_start();
    struct board *b = board_new(2 * JOBS);
    struct lapse_options o = options(s);
    struct producer p;
    struct worker *w = worker_start(b, QUEUE, &o, WORKER_DONE);

    until_listeners(s, 1);
    producer_open(&p, s->url);
    for (long i = 0; i < JOBS; i++) {
        producer_ask(&p, lapse_in(DELAY_MS + i));
    }

    producer_wait(&p);
    until_written(s);
    server_kill9(s);
    poll(NULL, 0, DOWN_MS);
    server_restart(s);

    int64_t start = test_now_ms();
    until_runs(b, JOBS, LONG_MS);

    int64_t took = test_now_ms() - start;
    worker_end(w);
    *t = tally_of(b, JOBS, 1);
    worker_free(w);
    producer_close(&p);
    board_free(b);
    server_stop(s);

    return took;
}

void show_restarted(void)
{
    enum { ROUNDS = 5 };
    struct tally sum = {0};
    struct tally t;
    int64_t worst = 0;

    for (int i = 0; i < ROUNDS; i++) {
        int64_t took = restarted_once(&t);
        worst = took > worst ? took : worst;
        sum.jobs += t.jobs;
        sum.lost += t.lost;
        sum.twice += t.twice;
        sum.early += t.early;
    }

    table_row("Redis kill -9, 1,000 due while down, 5 times", &sum,
              "all ran within %lld ms of its return; goal 1000", (long long)worst);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*show)(void);
    } figures[] = {
        {"steady", show_steady}, {"bare", show_bare},           {"random", show_random},
        {"killed", show_killed}, {"restarted", show_restarted},
    };

    table_head();

    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        for (int k = argc > 1; k < argc; k++) {
            if (k == 0 || strcmp(argv[k], figures[i].name) == 0) {
                figures[i].show();
            }
        }
    }

    return table_ok() ? 0 : 1;
}
