/* SPDX-License-Identifier: MIT */
/* F33: an unclaimed job whose listener is killed, stopped, full or busy is claimed by another one
 * within the grace (50 ms) and its lag. All jobs are due at once, so no trigger announces them,
 * unless a test says otherwise. */
#include "workload.h"
#include "redis.h"
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>

enum { PHASE_MS = 800, SECONDS = 3, RATES = 4, P99_MS = 150 };
#ifdef __SANITIZE_ADDRESS__
enum { IS_SANITIZED = 1 }; /* several times slower: its figures say nothing */
#else
enum { IS_SANITIZED = 0 };
#endif
static const long rates[RATES] = {5, 50, 200, 1000};

struct harm {
    const char *what;
    void (*set)(struct work_opts *o);
    void (*strike)(struct work *w, int listener); /* each in its turn; NULL: it goes on by itself */
    long brief_rate;                              /* the only one of the short form */
};

static void kill_it(struct work *w, int listener)
{
    work_kill(w, listener);
    work_wait(w, PHASE_MS);
}

static void stop_it(struct work *w, int listener)
{
    work_signal(w, listener, SIGSTOP);
    work_wait(w, PHASE_MS);
    work_signal(w, listener, SIGCONT);
}

static void of_four(struct work_opts *o)
{
    o->listeners = 4;
}

/* Who slept longer than its lease has lost it, and what it holds is run again. */
static void of_four_with_short_leases(struct work_opts *o)
{
    o->listeners = 4;
    o->lapse.lease_ms = 500;
    o->lapse.sweep_ms = 1000;
}

static void full(struct work_opts *o)
{
    o->odd = 1;
    o->odd_one.max_running = 1;
    o->odd_one.hold_ms = 1000;
}

static void busy_with_itself(struct work_opts *o)
{
    o->odd = 1;
    o->odd_one.max_running = 1;
    o->odd_one.block_ms = 500;
}

/* Jobs with a delay beside many at once, when only a touch makes Redis say that they are due. */
static void cannot_touch(struct work_opts *o)
{
    o->listeners = 3;
    o->odd = 1;
    o->odd_one.flags = LAPSE_NO_ALARM;
    o->delayed = 100;
    o->delay_ms = 1000;
}

static struct verdict run(const struct harm *harm, long per_s)
{
    struct server *s = server_start();
    struct work_opts o = work_opts();
    long seconds = fault_n(SECONDS, 20);

    o.per_s = per_s;
    o.jobs = per_s * seconds;
    o.delay_ms = 0;
    harm->set(&o);
    if (o.odd_one.flags) {
        redis_do(s, "DEBUG SET-ACTIVE-EXPIRE 0");
    }

    struct work *w = work_start(s, &o);
    for (int i = 0; !work_asked_all(w); i++) {
        if (harm->strike) {
            harm->strike(w, i % o.listeners);
        } else {
            work_wait(w, 10);
        }
    }

    struct verdict v = work_end(w, 60000);
    server_stop(s);

    return v;
}

static void at_each_rate(const struct harm *harm)
{
    char reached[240];
    int len = 0;
    bool kept = true;

    for (int i = 0; i < RATES; i++) {
        if (!fault_full() && rates[i] != harm->brief_rate) {
            continue;
        }
        struct verdict v = run(harm, rates[i]);
        len += snprintf(reached + len, sizeof reached - (size_t)len, "%s%ld/s: %.1f %.1f %.0f",
                        len ? "; " : "", rates[i], v.late_p50_ms, v.late_p99_ms, v.late_max_ms);
        fault_say("f33: %s, %ld/s: late p50 %.1f p99 %.1f max %.1f ms", harm->what, rates[i],
                  v.late_p50_ms, v.late_p99_ms, v.late_max_ms);
        kept = kept && (IS_SANITIZED || v.late_p99_ms <= P99_MS);
    }

    cr_assert(kept, "%s: p50 p99 max ms late: %s", harm->what, reached);
    fault_row("F33", harm->what, "none lost; p99 at most 150 ms late", "p50, p99, max ms late: %s",
              reached);
}

Test(f33, unclaimed_jobs_of_a_killed_listener_are_late_by_the_grace, .timeout = 300)
{
    at_each_rate(&(struct harm){"kill -9 of each of 4 listeners in turn", of_four_with_short_leases,
                                kill_it, 200});
}

Test(f33, unclaimed_jobs_of_a_stopped_listener_are_late_by_the_grace, .timeout = 300)
{
    at_each_rate(&(struct harm){"SIGSTOP of each of 4 listeners in turn", of_four, stop_it, 200});
}

Test(f33, jobs_of_a_listener_that_sleeps_longer_than_its_lease_are_late_by_the_grace,
     .timeout = 300)
{
    at_each_rate(&(struct harm){"SIGSTOP of each of 4 listeners in turn, for longer than its lease",
                                of_four_with_short_leases, stop_it, 200});
}

Test(f33, jobs_of_a_full_listener_are_late_by_the_grace, .timeout = 300)
{
    at_each_rate(
        &(struct harm){"one of 2 listeners is full: max_running 1, jobs of 1 s", full, NULL, 200});
}

Test(f33, jobs_of_a_listener_whose_handler_blocks_are_late_by_the_grace, .timeout = 300)
{
    at_each_rate(&(struct harm){"one of 2 listeners blocks its loop for 500 ms a job",
                                busy_with_itself, NULL, 200});
}

Test(f33, jobs_with_a_delay_are_in_time_where_one_listener_of_three_cannot_touch, .timeout = 300)
{
    at_each_rate(&(struct harm){
        "one of 3 listeners is no_alarm; one job of 10 has a delay; no active expiry", cannot_touch,
        NULL, 1000});
}
