/* SPDX-License-Identifier: MIT */
/* F34, F35: jobs that were claimed and wait in the process for their handler: for longer than
 * run_ms, and while the machine is suspended. */
#include "listener.h"
#include "process.h"
#include "redis.h"
#include "set_clock.h"
#include "test.h"
#include "workload.h"
#include <criterion/criterion.h>
#include <ev.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- F34 ---- */
static struct verdict behind_each_other(unsigned tries, int64_t lease_ms)
{
    struct server *s = server_start();
    struct work_opts o = work_opts();

    o.jobs = 100;
    o.listeners = o.odd = 1;
    o.delay_ms = 0;
    o.tries = tries;
    o.odd_one.block_ms = fault_n(25, 100);
    o.lapse.run_ms = 30 * o.odd_one.block_ms;
    o.lapse.lease_ms = lease_ms;

    struct verdict v = work_end(work_start(s, &o), 120000);
    cr_assert_eq(v.dead, 0, "%ld of %ld jobs are dead, and %ld handlers began", v.dead, v.jobs,
                 v.starts);
    cr_assert_eq(v.starts, o.jobs, "%ld handlers began", v.starts);
    server_stop(s);

    return v;
}

Test(f34, jobs_that_wait_for_their_handler_longer_than_run_ms_all_begin, .timeout = 300)
{
    struct verdict a = behind_each_other(1, 0);
    struct verdict b = behind_each_other(1, 500);
    struct verdict c = behind_each_other(3, 0);

    fault_row("F34",
              "100 jobs of one listener, claimed together; its handler blocks for 1/30 of run_ms",
              "all begin, once, in their first try; none dead",
              "%ld + %ld + %ld began, 0 dead, %ld twice", a.starts, b.starts, c.starts,
              a.twice + b.twice + c.twice);
}

/* ---- F35 ---- */
enum { LEASE_MS = 5000, TOLD_MS = 10000 };

/* The program again, before its main(), with a clock that the test moves: its first handler blocks
 * until stdin says something, and the second job waits behind it. */
static void on_settled(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    (void)l;
    (void)job;
    (void)arg;
    printf("settled %s\n", err ? lapse_strerror(err) : "0");
}

static void on_job(struct lapse *l, struct lapse_job *job, void *arg)
{
    char go;

    (void)l;
    (void)arg;
    printf("begun %s\n", lapse_job_id(job));
    if (strcmp(lapse_job_id(job), "job-1") == 0 && read(0, &go, 1) == 1) {
        lapse_done(job, on_settled, NULL);
    }
}

__attribute__((constructor)) static void sleeper(void)
{
    struct lapse_options o = lapse_options_init();
    struct lapse *l;

    o.url = getenv("LAPSE_SLEEPER");
    if (!o.url) {
        return;
    }

    struct ev_loop *loop = ev_loop_new(0);
    setlinebuf(stdout);
    o.lease_ms = LEASE_MS;
    o.sweep_ms = 60000;
    if (!loop || lapse_open(&l, loop, &o) || lapse_listen(l, "q", NULL, on_job, NULL)) {
        _exit(125);
    }

    ev_run(loop, 0);
    _exit(126);
}

static struct proc *start_sleeper(struct server *s)
{
    char program[4096];

    snprintf(program, sizeof program, "%s/tests/fault", test_build());
    setenv("LAPSE_SLEEPER", s->url, 1);
    /* a Criterion program that finds it takes itself for a test of this one */
    unsetenv("BXFI_MAP");

    struct proc *p = proc_start((const char *const[]){program, NULL});
    unsetenv("LAPSE_SLEEPER");
    clock_not_for_others();

    return p;
}

static void schedule(struct server *s, const char *id)
{
    struct proc *p =
        proc_run(NULL, "lapse", "-u", s->url, "schedule", "q", "--id", id, "--in", "0s", NULL);
    cr_assert_eq(p->status, 0, "%s", p->err);
    proc_free(p);
}

static void until_runs(struct runs *runs, long n)
{
    for (int64_t end_ms = test_now_ms() + TOLD_MS; runs->n < n; poll(NULL, 0, 2)) {
        cr_assert_lt(test_now_ms(), end_ms, "%ld of %ld jobs run elsewhere", (long)runs->n, n);
    }
}

Test(f35, a_machine_that_was_suspended_begins_nothing_whose_lease_ended_meanwhile, .timeout = 120)
{
    char path[CLOCK_PATH];
    struct server *s = server_start();
    struct runs *runs = runs_new(10);
    struct lapse_options o = lapse_options_init();

    schedule(s, "job-1");
    schedule(s, "job-2");

    struct wall_clock *c = clock_begin(path);
    struct proc *sleeper = start_sleeper(s);
    cr_assert(proc_until_out(sleeper, "begun job-1\n", TOLD_MS), "%s", sleeper->err);
    cr_assert_eq(redis_int(s, "ZCARD lapse:{q}:run"), 2, "it has both");

    int64_t from_ms = test_now_ms();
    o.url = s->url;
    o.sweep_ms = 100;

    struct listener *other = listener_start(runs, "q", &o, LISTENER_KEEPS);
    until_runs(runs, 2);

    c->asleep_us = (test_now_ms() - from_ms) * 1000; /* for its CLOCK_MONOTONIC this was a moment */
    proc_write(sleeper, "\n", 1);
    cr_assert(proc_until_out(sleeper, "settled ", TOLD_MS), "%s", sleeper->err);
    cr_assert(!strstr(sleeper->out, "begun job-2"), "job-2 is another's, and was begun:\n%s",
              sleeper->out);
    cr_assert(strstr(sleeper->out, "settled the lease ended"), "%s", sleeper->out);
    cr_assert_eq(redis_int(s, "ZCARD lapse:{q}:run"), 2, "the other one holds both");
    fault_row(
        "F35", "a machine is suspended for longer than the lease, jobs waiting in the process",
        "nothing is begun whose lease is over by CLOCK_BOOTTIME", "none begun, the settle refused");
    proc_free(sleeper);
    listener_free(other);
    runs_free(runs);
    clock_end(c, path);
    server_stop(s);
}
