/* SPDX-License-Identifier: MIT */
/* F36 to F40: a far Redis, whose way there is slower than the way back, whose round trip varies or
 * changes, whose clock is set or drifts. No job is lost, early or run twice. A second after each
 * change the jobs are punctual again: half of them are claimed, by Redis's clock, no more than the
 * jitter of one way and 0.5 ms late. How busy the machine is shows in PINGs that go through the
 * same proxy meanwhile: what half of them lose, besides the round trip, the jobs may lose too. */
#include "proxy.h"
#include "redis.h"
#include "set_clock.h"
#include "test.h"
#include "workload.h"
#include <criterion/criterion.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

enum { PER_S = 300, AGAIN_MS = 1000, PUNCTUAL_US = 500, LEAST_JOBS = 50, MOST_PERIODS = 50 };
enum { PING_EVERY_US = 5000, MOST_PINGS = 1 << 14 };
#ifdef __SANITIZE_ADDRESS__
enum { IS_SANITIZED = 1 }; /* several times slower: its figures say nothing */
#else
enum { IS_SANITIZED = 0 };
#endif

/* Jobs that are due in this time are to be punctual; by Redis's clock. */
struct period {
    int64_t from_ms, until_ms;
    int64_t begin_ms;            /* the same as from_ms, by test_now_ms() */
    int64_t lost_us[MOST_PINGS]; /* by PINGs, besides the round trip */
    size_t n_pings;
};

struct far {
    struct server *server;
    struct proxy *proxy;
    struct work *work;
    struct runs *runs;
    redisContext *pinged; /* through the proxy */
    long rtt_us;
    long jobs;
    struct period periods[MOST_PERIODS];
    int n_periods;
};

static int64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* ---- the run ---- */
static void far_network(struct far *f, long up_us, long down_us, long jitter_us)
{
    proxy_network(f->proxy, up_us, down_us, jitter_us);
    f->rtt_us = up_us + down_us;
}

/* Jobs are to be punctual again in a second. */
static void far_has_changed(struct far *f)
{
    struct period *p = &f->periods[f->n_periods - 1];

    p->begin_ms = test_now_ms() + AGAIN_MS;
    p->from_ms = redis_now_ms(f->server) + AGAIN_MS;
}

/* A way there and a way back, each of which may vary by jitter_us, while jobs fall due for so many
 * seconds. */
static struct far *far_start(long up_us, long down_us, long jitter_us, long seconds)
{
    struct work_opts o = work_opts();
    struct far *f = calloc(1, sizeof *f);

    cr_assert(f);
    f->server = server_start();
    f->proxy = proxy_start(f->server);
    far_network(f, up_us, down_us, jitter_us);

    f->jobs = o.jobs = PER_S * seconds;
    f->runs = o.runs = runs_new(2 * o.jobs);
    o.producers = o.listeners = 1;
    o.per_s = PER_S;
    o.listener_url = f->proxy->url;
    clock_not_for_others();
    f->pinged = redisConnectUnix(f->proxy->url + strlen("unix://"));
    cr_assert(f->pinged && !f->pinged->err);
    f->work = work_start(f->server, &o);
    prctl(PR_SET_TIMERSLACK, 1); /* ns, of the moments of PINGs */
    f->n_periods = 1;
    far_has_changed(f);

    return f;
}

/* Sends a PING that was to be sent at a moment. While it is on its way none is sent: those that
 * would have lost the rest of that time are counted too, as jobs that are due meanwhile are. */
static void far_ping(struct far *f, int64_t at_us)
{
    struct period *p = &f->periods[f->n_periods - 1];
    redisReply *reply = redisCommand(f->pinged, "PING");
    int64_t lost_us = now_us() - at_us - f->rtt_us;

    cr_assert(reply);
    freeReplyObject(reply);
    if (test_now_ms() < p->begin_ms) {
        return;
    }

    do {
        p->lost_us[p->n_pings] = lost_us;
        p->n_pings += p->n_pings < MOST_PINGS - 1;
        lost_us -= PING_EVERY_US;
    } while (lost_us > 0);
}

static void far_wait(struct far *f, int ms)
{
    for (int64_t end_ms = test_now_ms() + ms; test_now_ms() < end_ms;) {
        int64_t at_us = now_us() + PING_EVERY_US;
        struct timespec at = {at_us / 1000000, at_us % 1000000 * 1000};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
        far_ping(f, at_us);
    }
}

/* Something is about to change. */
static void far_changes(struct far *f)
{
    cr_assert_lt(f->n_periods, MOST_PERIODS);
    f->periods[f->n_periods - 1].until_ms = redis_now_ms(f->server);
    f->n_periods++;
}

/* ---- its figures ---- */
static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

struct lateness {
    int64_t p50_us, p99_us;
    int64_t lost_us; /* by half of the PINGs at least */
    long n;
};

static struct lateness period_lateness(const struct far *f, struct period *p)
{
    int64_t *late_us = calloc((size_t)f->runs->n, sizeof *late_us);
    struct lateness l = {0};

    cr_assert(late_us);
    for (long i = 0; i < f->runs->n; i++) {
        const struct run *run = &f->runs->run[i];
        if (run->due_ms >= p->from_ms && run->due_ms < p->until_ms) {
            late_us[l.n++] = run->claimed_us - run->due_ms * 1000;
        }
    }

    cr_assert_geq(l.n, LEAST_JOBS, "%ld jobs were due in %lld ms", l.n,
                  (long long)(p->until_ms - p->from_ms));
    qsort(late_us, (size_t)l.n, sizeof *late_us, by_number);
    l.p50_us = late_us[l.n / 2];
    l.p99_us = late_us[l.n * 99 / 100];
    free(late_us);

    cr_assert_gt(p->n_pings, 0);
    qsort(p->lost_us, p->n_pings, sizeof *p->lost_us, by_number);
    l.lost_us = p->lost_us[p->n_pings / 2];

    return l;
}

static void none_early(const struct far *f)
{
    for (long i = 0; i < f->runs->n; i++) {
        const struct run *run = &f->runs->run[i];
        cr_assert_geq(run->claimed_us, run->due_ms * 1000, "job %s was early", run->id);
    }
}

/* Waits until all jobs have run, and leaves a line of the table. */
static void far_end(struct far *f, const char *row, const char *fault, long jitter_us)
{
    struct lateness worst = {.p50_us = -1};
    double most_ms = (double)(jitter_us + PUNCTUAL_US) / 1000;
    bool kept = true;
    char goal[100];

    while (!work_asked_all(f->work)) {
        far_wait(f, 1);
    }
    f->periods[f->n_periods - 1].until_ms = redis_now_ms(f->server);

    struct verdict v = work_end(f->work, 60000);
    cr_assert(v.ok == f->jobs && v.done == f->jobs, "%ld of %ld jobs done", v.done, f->jobs);
    cr_assert_eq(v.twice, 0);
    none_early(f);

    for (int i = 0; i < f->n_periods; i++) {
        struct lateness l = period_lateness(f, &f->periods[i]);
        worst = l.p50_us > worst.p50_us ? l : worst;
        kept = kept && l.p50_us <= jitter_us + PUNCTUAL_US + l.lost_us;
        fault_say("%s: %s: %ld jobs claimed, p50 %.2f p99 %.2f ms late; PINGs lost %.2f ms", row,
                  fault, l.n, (double)l.p50_us / 1000, (double)l.p99_us / 1000,
                  (double)l.lost_us / 1000);
    }

    cr_assert(IS_SANITIZED || kept, "%s: half of the jobs are %.2f ms late or more, not %.1f",
              fault, (double)worst.p50_us / 1000, most_ms);
    snprintf(goal, sizeof goal,
             "none lost, early or twice; p50 at most %.1f ms late a second later", most_ms);
    fault_row(row, fault, goal,
              "%ld jobs: none lost, early or twice; claimed p50 %.2f, p99 %.2f ms late at worst, "
              "while PINGs lost %.2f ms",
              v.jobs, (double)worst.p50_us / 1000, (double)worst.p99_us / 1000,
              (double)worst.lost_us / 1000);

    redisFree(f->pinged);
    runs_free(f->runs);
    proxy_stop(f->proxy);
    server_stop(f->server);
    free(f);
}

/* ---- F36, F37 ---- */
Test(f36, a_way_there_that_is_slower_than_the_way_back_makes_no_job_late, .timeout = 300)
{
    struct far *f = far_start(11000, 1000, 0, fault_n(4, 60));
    far_end(f, "F36", "the way to Redis takes 11 ms, the way back 1 ms", 0);
}

Test(f36, a_way_back_that_is_slower_than_the_way_there_makes_no_job_late, .timeout = 300)
{
    struct far *f = far_start(1000, 11000, 0, fault_n(4, 60));
    far_end(f, "F36", "the way to Redis takes 1 ms, the way back 11 ms", 0);
}

Test(f37, a_round_trip_that_varies_by_half_makes_jobs_late_by_no_more_than_one_way_varies,
     .timeout = 300)
{
    struct far *f = far_start(5000, 5000, 2500, fault_n(4, 60));
    far_end(f, "F37", "a round trip of 10 +- 5 ms", 2500);
}

/* ---- F38, F39 ---- */
static void clock_row(const char *row, const char *fault, void (*change)(struct wall_clock *, int),
                      long changes)
{
    enum { EACH_S = 3 };
    char path[CLOCK_PATH];
    struct wall_clock *c = clock_begin(path);
    struct far *f = far_start(500, 500, 0, EACH_S * (changes + 1));

    work_clock_fault(f->work);
    for (int i = 0; i < changes; i++) {
        far_wait(f, EACH_S * 1000);
        far_changes(f);
        change(c, i);
        far_has_changed(f);
    }

    far_end(f, row, fault, 0);
    clock_end(c, path);
}

static void step(struct wall_clock *c, int nth)
{
    c->step_us += nth % 2 ? -1000000 : 1000000;
}

Test(f38, a_clock_of_redis_that_is_set_by_a_second_makes_jobs_late_for_a_second_at_most,
     .timeout = 300)
{
    clock_row("F38", "Redis's clock is set by a second, forward and back, while jobs fall due",
              step, fault_n(2, 20));
}

static void drift(struct wall_clock *c, int nth)
{
    clock_slew(c, nth % 2 ? -500 : 500);
}

Test(f39, a_clock_of_redis_that_drifts_makes_no_job_late, .timeout = 300)
{
    clock_row("F39", "Redis's clock is 500 ppm too fast, then too slow, while jobs fall due", drift,
              fault_n(2, 20));
}

/* ---- F40 ---- */
Test(f40, a_round_trip_that_changes_makes_jobs_late_for_a_second_at_most, .timeout = 300)
{
    enum { EACH_S = 3 };
    const long changes = fault_n(2, 20);
    struct far *f = far_start(500, 500, 0, EACH_S * (changes + 1));

    for (int i = 0; i < changes; i++) {
        long way_us = i % 2 ? 500 : 25000;
        far_wait(f, EACH_S * 1000);
        far_changes(f);
        far_network(f, way_us, way_us, 0);
        far_has_changed(f);
    }

    far_end(f, "F40", "the round trip changes from 1 to 50 ms, and back", 0);
}
