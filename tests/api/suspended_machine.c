/* SPDX-License-Identifier: MIT */
/* A machine that sleeps: CLOCK_MONOTONIC stands still meanwhile, CLOCK_BOOTTIME and Redis's clock
 * go on. */
#include "handler.h"
#include "listening.h"
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int64_t slept_ms;

/* Goes before libc's, for lapse and libev alike. */
int clock_gettime(clockid_t id, struct timespec *t)
{
    long err = syscall(SYS_clock_gettime, id, t);
    if (id == CLOCK_BOOTTIME) {
        t->tv_sec += slept_ms / 1000;
    }
    return (int)err;
}

struct sleeper {
    struct flow_handler w;
    int64_t sleep_ms;
};

/* The machine sleeps while the first handler runs. */
static void sleep_in_the_first(struct lapse *l, struct lapse_job *job, void *arg)
{
    struct sleeper *s = arg;
    if (s->w.n_runs == 0) {
        slept_ms += s->sleep_ms;
    }
    flow_on_job(l, job, &s->w);
}

static void short_lease(struct lapse_options *opts)
{
    opts->lease_ms = 20000;
    opts->reply_ms = 60000;
}

Test(suspended_machine, nothing_is_begun_whose_lease_ended_while_the_machine_slept)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, short_lease);
    struct sleeper s = {.w = {.f = f, .way = FLOW_DONE}, .sleep_ms = 25000};

    flow_allow_log(f, "the lease of job");
    flow_allow_log(f, "the clock of Redis"); /* it did not sleep with us */
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    }

    cr_assert_eq(lapse_listen(f->l, "q", NULL, sleep_in_the_first, &s), 0);
    flow_until(f, s.w.settled == 2);
    cr_assert_eq(s.w.n_runs, 2);
    cr_assert_eq(flow_stats(f->l).claimed, 3, "the second was begun by the claim of before");
    cr_assert_eq(s.w.runs[1].job.try_no, 1);
    flow_end(f, "q");
}

Test(suspended_machine, no_lease_is_renewed_that_ended_while_the_machine_slept)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, short_lease);
    struct flow_handler w = {.way = FLOW_KEEP};

    flow_allow_log(f, "the lease of job");
    flow_allow_log(f, "the clock of Redis");
    flow_hold(f, &w, "a");

    int64_t until_ms = flow_score(f, "q", "run", "a");
    slept_ms = 25000;
    cr_assert_eq(lapse_extend(w.held[0], 600000), LAPSE_EGONE);
    flow_until(f, lapse_job_until_ms(w.held[0]) == 0);
    cr_assert_eq(flow_score(f, "q", "run", "a"), until_ms, "it was renewed");
    flow_settle(&w, FLOW_DONE); /* no other listener has it, so this is still in time */
    cr_assert_eq(w.err, 0);
    flow_end(f, "q");
}
