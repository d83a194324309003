/* SPDX-License-Identifier: MIT */
/* Each kind of callback gets what is its own. */
#include "base/task.h"
#include <criterion/criterion.h>
#include <stdlib.h>

static struct core core;
static struct deliver d;
static int arg;
/* what a callback was called with, and how many were */
static struct {
    void *l;
    const void *what;
    size_t n;
    int err, calls;
    void *arg;
} got;

static void on_callback(struct lapse *l, int err, const struct lapse_job *job, void *a)
{
    got = (__typeof__(got)){.l = l, .what = job, .err = err, .arg = a, .calls = got.calls + 1};
}

static void on_depth(struct lapse *l, int err, const struct lapse_depth *depth, void *a)
{
    got = (__typeof__(got)){.l = l, .what = depth, .err = err, .arg = a, .calls = got.calls + 1};
}

static void on_list(struct lapse *l, int err, const struct lapse_job *const *jobs, size_t n,
                    void *a)
{
    got = (__typeof__(got)){
        .l = l, .what = jobs, .n = n, .err = err, .arg = a, .calls = got.calls + 1};
}

static void on_job(struct lapse *l, struct lapse_job *job, void *a)
{
    got = (__typeof__(got)){.l = l, .what = job, .arg = a, .calls = got.calls + 1};
}

static void on_closed(void *a)
{
    got = (__typeof__(got)){.arg = a, .calls = got.calls + 1};
}

static void after(struct req *r, bool alive)
{
    (void)r;
    cr_expect(alive);
}

static void run(struct req r, int err)
{
    r.arg = &arg;
    r.after = after;
    deliver_push(&d, &r, err);
    ev_run(core.loop, EVRUN_NOWAIT);
    cr_assert(deliver_idle(&d));
    cr_expect_eq(got.arg, &arg);
}

static void start(void)
{
    core.loop = ev_loop_new(0);
    core.handle = (struct lapse *)(void *)&core;
    deliver_init(&d, &core);
}

static void end(void)
{
    ev_loop_destroy(core.loop);
}

TestSuite(deliver_kinds, .init = start, .fini = end);

Test(deliver_kinds, a_callback_gets_error_and_job)
{
    const struct lapse_job *job = (void *)&arg;
    run((struct req){.kind = REQ_CALLBACK, .fn.callback = on_callback, .job = job}, -7);
    cr_expect(got.calls == 1 && got.l == core.handle && got.err == -7 && got.what == job);
}

Test(deliver_kinds, a_depth_callback_gets_error_and_depth)
{
    struct lapse_depth depth;
    run((struct req){.kind = REQ_DEPTH, .fn.depth = on_depth, .depth = &depth}, -8);
    cr_expect(got.calls == 1 && got.l == core.handle && got.err == -8 && got.what == &depth);
}

Test(deliver_kinds, a_list_callback_gets_error_and_jobs)
{
    const struct lapse_job *jobs[2];
    run((struct req){.kind = REQ_LIST, .fn.list = on_list, .jobs = jobs, .n_jobs = 2}, -9);
    cr_expect(got.calls == 1 && got.l == core.handle && got.err == -9 && got.what == jobs &&
              got.n == 2);
}

Test(deliver_kinds, a_handler_gets_its_job)
{
    const struct lapse_job *job = (void *)&arg;
    run((struct req){.kind = REQ_HANDLER, .fn.handler = on_job, .job = job}, 0);
    cr_expect(got.calls == 1 && got.l == core.handle && got.what == job);
}

Test(deliver_kinds, closed_gets_its_arg)
{
    run((struct req){.kind = REQ_CLOSED, .fn.closed = on_closed}, 0);
    cr_expect_eq(got.calls, 1);
}

static void on_closed_free(void *r)
{
    deliver_close(&d);
    free(r);
    got.calls++;
}

static void after_gone(struct req *r, bool alive)
{
    (void)r; /* freed */
    cr_expect_not(alive);
    got.calls++;
}

Test(deliver_kinds, closed_may_free_the_entry_that_it_came_from)
{
    struct req *r = calloc(1, sizeof *r);

    *r = (struct req){
        .kind = REQ_CLOSED, .fn.closed = on_closed_free, .arg = r, .after = after_gone};
    deliver_push(&d, r, 0);
    ev_run(core.loop, EVRUN_NOWAIT);
    cr_expect_eq(got.calls, 2);
}
