/* SPDX-License-Identifier: MIT */
/* lapse_abandon(): everything is freed at once, and no callback runs; also in a forked child,
 * whose parent goes on. */
#include "allocations.h"
#include "audit.h"
#include "handler.h"
#include "listening.h"
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HOUR = 3600000 };

static void abandon(struct flow *f)
{
    lapse_abandon(f->l);
    flow_forget(f, f->l);
}

FLOW_ALL_MODES(abandon, frees_all_and_runs_no_callback)
{
    struct flow *f = flow_bare(mode, NULL);
    long live = alloc_live();

    redis_do(f->server, "FLUSHALL"); /* its connection is open now */

    int fds = fds_open();
    for (int turns = 0; turns < 12;
         turns++) { /* while it connects, while it asks, while it holds jobs */
        struct flow_handler w = {.way = FLOW_KEEP};
        struct flow_answer a = {.f = f};
        struct lapse_spec s = flow_job_spec("q", NULL, 0);
        f->l = flow_open(f, NULL);
        flow_listen(f, "q", &w);
        cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &a), 0);
        for (int i = 0; i < turns; i++) {
            flow_turn(f, test_now_ms() + 20);
        }
        cr_assert_eq(lapse_get(f->l, "q", "a", flow_answered, &a), 0);
        abandon(f);
        unsigned calls = a.calls;
        cr_assert_eq(fds_open(), fds);
        ev_run(f->loop, 0); /* nothing of it is left in the loop */
        cr_assert_eq(a.calls, calls);
        while (w.n_held) {
            lapse_done(w.held[--w.n_held], flow_on_settled, &w);
        }
        cr_assert_eq(w.settled, 0);
        cr_assert_eq(alloc_live(), live);
        flow_poll(f, flow_is_alone(f)); /* before, what it had sent may not have come */
        redis_do(f->server, "FLUSHALL");
    }

    flow_end(f);
}

/* What is asked when a listener begins ends with the handle. */
Test(abandon, before_redis_has_said_whether_it_evicts_jobs_leaves_nothing_in_the_loop)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};

    cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_ENOENT);
    server_signal(f->server, SIGSTOP);
    flow_listen(f, "q", &w);
    flow_turn(f, test_now_ms() + 20); /* it is asked */
    abandon(f);
    cr_assert_not(ev_run(f->loop, EVRUN_NOWAIT), "watchers of it are active");
    server_signal(f->server, SIGCONT);
    flow_end(f, "q");
}

Test(abandon, tells_redis_nothing)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};
    struct lapse_spec s = flow_job_spec("q", "b", HOUR);

    flow_hold(f, &w, "a");
    flow_heard(f);
    flow_calm(f); /* it has entered */

    char *dump = flow_dump(f);
    long long before = flow_scripts(f);
    cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &w), 0);
    lapse_done(w.held[0], flow_on_settled, &w);
    abandon(f);
    cr_assert_eq(flow_scripts(f), before);

    char *now = flow_dump(f);
    cr_assert_str_eq(now, dump);
    free(dump);
    free(now);
    flow_end(f, "q");
}

/* What a child does that was forked in the middle of everything. */
static void in_child(struct flow *f)
{
    pid_t pid = fork();

    cr_assert_geq(pid, 0);
    if (pid == 0) {
        lapse_abandon(f->l);
        _exit(alloc_live() == f->n_live ? 0 : 1);
    }

    int status;
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %d", status);
}

FLOW_ALL_MODES(abandon, in_a_forked_child_leaves_the_parent_all_it_had)
{
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow_answer a[10];

    in_child(f);
    flow_listen(f, "q", &w);
    in_child(f);

    for (int i = 0; i < 10; i++) {
        struct lapse_spec s = flow_job_spec("q", NULL, 20 * i);
        a[i] = (struct flow_answer){.f = f};
        cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &a[i]), 0);
        in_child(f);
        flow_turn(f, test_now_ms() + 5);
    }

    while (w.settled < 10) {
        in_child(f);
        cr_assert(flow_turn(f, test_now_ms() + 2000));
    }

    cr_assert_eq(w.errors, 0);
    for (int i = 0; i < 10; i++) {
        cr_assert(a[i].calls == 1 && !a[i].err);
    }

    struct lapse_stats s;
    lapse_stats(f->l, &s, sizeof s);
    cr_assert(s.reconnects == 0 && s.done == 10);
    flow_end(f, "q");
}
