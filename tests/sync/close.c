/* SPDX-License-Identifier: MIT */
/* The end of a handle with threads: what it waits for, what it gives back, what calls return. */
#include "waiting.h"
#include <sys/wait.h>
#include <unistd.h>

struct closing {
    struct lapse_sync *s;
    int64_t grace_ms;
    pthread_t thread;
    atomic_bool closed;
};

static void *close_it(void *arg)
{
    struct closing *c = arg;

    lapse_sync_close(c->s, c->grace_ms);
    c->closed = true;
    return NULL;
}

static void start_closing(struct closing *c, struct lapse_sync *s, int64_t grace_ms)
{
    *c = (struct closing){.s = s, .grace_ms = grace_ms};
    cr_assert_eq(pthread_create(&c->thread, NULL, close_it, c), 0);
}

/* Another handle of the same Redis, to look at it and to end the test with. */
static void replace(struct waiting *w)
{
    w->s = waiting_open(w);
}

Test(close, waits_for_handlers_and_lets_them_settle)
{
    struct waiting w;
    struct worker k;
    struct closing c;

    waiting_start(&w);
    worker_init(&k, DONE);
    k.blocks = true;
    cr_assert_eq(listen_with(w.s, &k, 3, 0), 0);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(schedule(w.s, NULL, 0), 0);
    }
    wait_until(k.inside == 3);

    start_closing(&c, w.s, HOUR);
    replace(&w);
    cr_assert_not(c.closed);
    k.blocks = false;
    pthread_join(c.thread, NULL);
    cr_assert(k.settled == 3 && k.err == 0);
    cr_assert_eq(depth_of(w.s, "q").running, 0);
    waiting_end(&w, "q");
}

Test(close, gives_back_at_once_what_no_thread_has_begun)
{
    struct waiting w;
    struct worker k;
    struct worker next;
    struct closing c;

    waiting_start(&w);
    worker_init(&k, DONE);
    k.blocks = true;
    cr_assert_eq(listen_with(w.s, &k, 1, 6), 0);
    for (int i = 0; i < 6; i++) {
        cr_assert_eq(schedule(w.s, NULL, 0), 0);
    }
    wait_until(k.inside == 1 && depth_of(w.s, "q").running == 6);

    start_closing(&c, w.s, HOUR);
    replace(&w);
    worker_init(&next, DONE);
    cr_assert_eq(listen_with(w.s, &next, 1, 0), 0);
    wait_until(next.ended == 5);
    cr_assert_eq(next.last_try, 1);
    cr_assert(k.began == 1 && !c.closed);
    k.blocks = false;
    pthread_join(c.thread, NULL);
    cr_assert_eq(k.settled, 1);
    waiting_end(&w, "q");
}

Test(close, after_the_grace_a_job_goes_back_uncounted_and_its_handler_hears_egone)
{
    struct waiting w;
    struct worker k;
    struct worker next;
    struct closing c;

    waiting_start(&w);
    worker_init(&k, DONE);
    k.blocks = true;
    cr_assert_eq(listen_with(w.s, &k, 1, 0), 0);
    cr_assert_eq(schedule(w.s, "a", 0), 0);
    wait_until(k.inside == 1);

    start_closing(&c, w.s, 0);
    replace(&w);
    worker_init(&next, DONE);
    cr_assert_eq(listen_with(w.s, &next, 1, 0), 0);
    wait_until(next.ended == 1);
    cr_assert(next.last_try == 1 && next.settled == 1);
    cr_assert_not(c.closed, "its handler still runs");
    k.blocks = false;
    pthread_join(c.thread, NULL);
    cr_assert_eq(k.err, LAPSE_EGONE, "%s", lapse_strerror(k.err));
    waiting_end(&w, "q");
}

Test(close, a_job_that_nobody_settled_is_readable_and_freed_by_the_user)
{
    struct waiting w;
    struct worker k;

    waiting_start(&w);
    worker_keep_one(&k, w.s);
    lapse_sync_close(w.s, 0);
    cr_assert_str_eq(lapse_job_id(k.kept[0]), "a");
    lapse_sync_free(k.kept[0]);

    replace(&w);
    wait_until(depth_of(w.s, "q").waiting == 1);
    waiting_end(&w, "q");
}

static void schedule_while_closing(struct lapse_sync *s, struct lapse_job *job, void *arg)
{
    struct worker *k = arg;

    k->began++;
    while (k->blocks) {
        wait_a_little();
    }
    k->err = schedule(s, "more", HOUR);
    worker_settle(k, s, job, DONE);
}

Test(close, new_calls_of_a_handler_are_eclosed_but_it_may_settle)
{
    struct waiting w;
    struct worker k;
    struct closing c;

    waiting_start(&w);
    worker_init(&k, DONE);
    k.blocks = true;
    cr_assert_eq(lapse_sync_listen(w.s, "q", NULL, schedule_while_closing, &k), 0);
    cr_assert_eq(schedule(w.s, "a", 0), 0);
    wait_until(k.began == 1);
    start_closing(&c, w.s, HOUR);
    wait_until(lapse_sync_get(w.s, "q", "a", 0, NULL) == LAPSE_ECLOSED);
    k.blocks = false;
    pthread_join(c.thread, NULL);
    cr_assert_eq(k.err, LAPSE_ECLOSED);
    cr_assert_eq(k.settled, 1);
    replace(&w);
    waiting_end(&w, "q");
}

Test(close, of_nothing_and_of_a_handle_that_never_connected)
{
    struct waiting w;

    waiting_bare(&w);
    lapse_sync_close(NULL, 0);
    w.options.url = "unix:///nowhere/redis";
    w.s = waiting_open(&w);
    lapse_sync_close(w.s, 0);
    w.options.url = w.server->url;
    replace(&w);
    waiting_end(&w, "q");
}

Test(close, in_a_forked_child_calls_are_eclosed_and_the_parent_goes_on)
{
    struct waiting w;
    int status;

    waiting_start(&w);
    cr_assert_eq(schedule(w.s, "a", HOUR), 0);
    pid_t child = fork();
    if (child == 0) {
        int err = lapse_sync_get(w.s, "q", "a", 0, NULL);
        lapse_sync_close(w.s, 0);
        _exit(err == LAPSE_ECLOSED ? 0 : 1);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
    cr_assert_eq(lapse_sync_get(w.s, "q", "a", 0, NULL), 0);
    waiting_end(&w, "q");
}

/* ---- at each moment ---- */
enum { JOBS_A_CLOSE = 30, CLOSES = 12 };

static void schedule_due(struct waiting *w, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        cr_assert_eq(schedule(w->s, NULL, 0), 0);
    }
}

/* Closes when this many jobs, or a few more, have begun. Returns how many began. */
static unsigned close_with_jobs_on_their_way(struct waiting *w, unsigned n_runs_before,
                                             int64_t grace_ms)
{
    struct worker k;

    w->s = waiting_open(w);
    schedule_due(w, JOBS_A_CLOSE);
    worker_init(&k, DONE);
    cr_assert_eq(listen_with(w->s, &k, 3, 7), 0);
    wait_until(k.began >= n_runs_before);
    lapse_sync_close(w->s, grace_ms);
    cr_assert_eq(k.inside, 0);
    return k.began;
}

Test(close, at_each_number_of_runs_loses_no_job_and_leaves_none_running)
{
    unsigned n_began = 0;
    struct waiting w;
    struct worker rest;

    waiting_start(&w);
    lapse_sync_close(w.s, 1000);
    for (unsigned n = 0; n < CLOSES; n++) {
        n_began += close_with_jobs_on_their_way(&w, n, n % 2 ? 0 : 10000);
    }

    replace(&w);
    worker_init(&rest, DONE);
    wait_until(depth_of(w.s, "q").running == 0);
    cr_assert_eq(depth_of(w.s, "q").dead, 0);
    cr_assert_eq(listen_with(w.s, &rest, 4, 0), 0);
    wait_until(depth_of(w.s, "q").waiting + depth_of(w.s, "q").running == 0);
    cr_assert_geq(n_began + rest.began, CLOSES * JOBS_A_CLOSE);
    waiting_end(&w, "q");
}
