/* SPDX-License-Identifier: MIT */
/* F26: the leases of a dead process end, and twenty processes contend for its jobs. */
#include "listener.h"
#include "handler.h"
#include "fault.h"
#include <signal.h>

enum { SWEEPERS = 4, LISTENERS = 16, ALL = SWEEPERS + LISTENERS };

static void schedule_all(struct flow *f, long n, unsigned tries, const char *kind)
{
    struct flow_answer *a = calloc((size_t)n, sizeof *a);

    for (long i = 0; i < n; i++) {
        char id[32];
        snprintf(id, sizeof id, "%s%ld", kind, i);
        struct lapse_spec s = flow_job_spec("q", id, 0);
        s.tries = tries;
        a[i].f = f;
        cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &a[i]), 0);
    }

    for (long i = 0; i < n; i++) {
        cr_assert_eq(flow_wait(f, &a[i]), 0);
    }

    free(a);
}

/* n jobs that a process held until its end, and m more that it held for the last time. */
static void leave_behind(struct flow *f, long n, long m)
{
    struct lapse_options opts = flow_options(f);
    struct runs *runs = runs_new(n + m);

    opts.log = NULL;
    opts.lease_ms = 6000; /* none ends before all are held */
    opts.max_running = 100000;
    schedule_all(f, n, 3, "again");
    schedule_all(f, m, 1, "last");

    struct listener *dead = listener_start(runs, "q", &opts, LISTENER_KEEPS);
    flow_poll(f, runs->n == n + m);
    listener_signal(dead, SIGKILL);
    listener_free(dead);
    runs_free(runs);
    flow_poll(f, redis_int(f->server, "ZCOUNT lapse:{q}:run %lld +inf",
                           (long long)redis_now_ms(f->server)) == 0);
}

static int64_t contend(long n, long m)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct runs *runs = runs_new(2 * n);
    struct listener *w[ALL];
    long claimed = 0;

    flow_allow_log(f, "no answer from Redis"); /* it has twenty others to answer */
    leave_behind(f, n, m);

    struct lapse_options opts = flow_options(f);
    opts.log = NULL;

    int64_t start_ms = test_now_ms();
    for (int i = 0; i < ALL; i++) {
        opts.sweep_ms = i < SWEEPERS ? 10 : 1000;
        w[i] = listener_start(runs, "q", &opts, LISTENER_SETTLES);
    }

    for (int64_t end_ms = test_now_ms() + 60000; runs->n < n || flow_count(f, "q", "dead") < m;
         flow_turn(f, test_now_ms() + 10)) {
        cr_assert(test_now_ms() < end_ms, "%ld of %ld ran, %lld of %ld died", (long)runs->n, n,
                  flow_count(f, "q", "dead"), m);
    }

    int64_t ms = test_now_ms() - start_ms;
    for (int i = 0; i < ALL; i++) {
        cr_assert_eq(listener_exit(w[i]), 0, "a settle was refused");
        claimed += listener_claimed(w[i]);
        listener_free(w[i]);
    }

    flow_runs_each_once(runs, n); /* so no two held one at a time */
    for (long i = 0; i < n; i++) {
        cr_assert_eq(runs->run[i].try_no, 2, "%s: try %u", runs->run[i].id, runs->run[i].try_no);
    }

    cr_assert_eq(flow_count(f, "q", "dead"), m);
    cr_assert_eq(claimed, n, "something was claimed in vain");
    runs_free(runs);
    flow_end(f, "q");

    return ms;
}

Test(f26, of_ten_thousand_ended_leases_each_is_taken_back_once_however_many_sweep, .timeout = 600)
{
    const long rounds = fault_n(1, 20);
    const long n = 10000;
    const long m = 1000;
    int64_t longest_ms = 0;

    for (long i = 0; i < rounds; i++) {
        int64_t ms = contend(n, m);
        longest_ms = ms > longest_ms ? ms : longest_ms;
    }

    fault_row("F26", "4 sweepers and 16 listeners contend for 10,000 ended leases",
              "tries +1 each, 0 overlap",
              "%ld x (%ld + %ld of a last try): tries +1 each, 0 overlap, all ran within %.1f s of "
              "the start",
              rounds, n, m, (double)longest_ms / 1000);
}
