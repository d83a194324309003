/* SPDX-License-Identifier: MIT */
/* F47: a replica is stopped while schedules wait for it. Those that do not are answered as ever. */
#include "ask.h"
#include "fault.h"
#include "replica.h"
#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

enum { HOUR = 3600000, WAITING = 100, PLAIN_MAX = 10000 };

static void patient(struct lapse_options *o)
{
    o->replicas_ms = 600000;
}

static void on_scheduled(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    (void)l;
    (void)job;
    cr_assert_eq(err, 0, "schedule: %s", lapse_strerror(err));
    ++*(unsigned *)arg;
}

static double now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

Test(f47, a_stopped_replica_holds_up_no_schedule_that_does_not_wait_for_it, .timeout = 300)
{
    static double took_ms[PLAIN_MAX];
    struct flow *f = flow_start_tcp(FLOW_FULL, replica_args, patient);
    struct server *replica = replica_start(f->server);
    size_t n = (size_t)fault_n(1000, PLAIN_MAX);
    unsigned answered = 0;

    server_signal(replica, SIGSTOP);
    for (int i = 0; i < WAITING; i++) {
        struct lapse_spec s = flow_job_spec("q", NULL, HOUR);
        s.replicas = 1;
        cr_assert_eq(lapse_schedule(f->l, &s, on_scheduled, &answered), 0);
    }

    for (size_t i = 0; i < n; i++) {
        double from_ms = now_ms();
        cr_assert_eq(flow_schedule(f, "q", NULL, HOUR, NULL), 0);
        took_ms[i] = now_ms() - from_ms;
    }
    cr_assert_eq(answered, 0);

    server_signal(replica, SIGCONT);
    flow_until(f, answered == WAITING);
    qsort(took_ms, n, sizeof *took_ms, by_size);
    fault_row("F47", "a replica is stopped while 100 schedules wait for it",
              "10,000 that do not wait are answered, p99 within 5 ms",
              "%zu were answered in p50 %.2f, p99 %.2f, max %.1f ms; then all 100", n,
              took_ms[n / 2], took_ms[n * 99 / 100], took_ms[n - 1]);
    server_stop(replica);
    flow_end(f, "q");
}
