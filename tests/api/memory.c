/* SPDX-License-Identifier: MIT */
/* Where memory is missing once: the call or the answer says so, and all goes on with the next one.
 * F22 of the fault runs fails every allocation of many more scenarios. */
#include "allocations.h"
#include "audit.h"
#include "calls.h"
#include "listening.h"
#include "wire.h"

/* ---- calls ---- */
Test(memory, that_a_call_lacks_is_enomem_and_the_next_call_works)
{
    struct flow *f = flow_start(FLOW_FULL);

    for (size_t i = 0; i < n_api_calls; i++) {
        struct flow_answer a = {.f = f};
        long live = alloc_live();

        alloc_fail(1);
        cr_assert_eq(api_calls[i].make(f->l, &a), LAPSE_ENOMEM, "%s", api_calls[i].name);
        cr_assert_eq(alloc_live(), live);
        cr_assert_eq(api_calls[i].make(f->l, &a), 0, "%s", api_calls[i].name);
        cr_assert_eq(flow_wait(f, &a), api_calls[i].answer, "%s: %s", api_calls[i].name,
                     lapse_strerror(a.err));
        cr_assert_eq(a.calls, 1, "%s", api_calls[i].name);
    }

    flow_end(f, "q");
}

Test(memory, that_a_handle_lacks_is_enomem_and_leaves_nothing)
{
    enum { AT_LEAST = 4 }; /* the handle, its texts, and tables */
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_options opts = flow_options(f);
    struct lapse *l = NULL;
    int err = LAPSE_ENOMEM;
    long n = 0;

    while (err == LAPSE_ENOMEM) {
        long live = alloc_live();
        int fds = fds_open();

        alloc_fail(++n);
        err = lapse_open(&l, f->loop, &opts);
        if (err) {
            cr_assert_null(l);
            cr_assert_eq(alloc_live(), live);
            cr_assert_eq(fds_open(), fds);
        }
    }

    alloc_fail(0);
    cr_assert_eq(err, 0, "%s", lapse_strerror(err));
    cr_assert_gt(n, AT_LEAST);
    lapse_abandon(l);
    flow_end(f);
}

/* ---- answers ---- */
static void schedule_with_body(struct flow *f, const char *id)
{
    struct lapse_spec spec = flow_job_spec("q", id, 3600000);
    spec.body = "body";
    spec.body_len = strlen(spec.body);
    cr_assert_eq(flow_spec(f, &spec, NULL), 0);
}

/* The request is the first allocation, and each body one more. */
Test(memory, that_a_body_lacks_is_enomem_for_its_call_alone)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_job jobs[2];

    schedule_with_body(f, "a");
    schedule_with_body(f, "b");

    alloc_fail(2);
    cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_ENOMEM);
    cr_assert_eq(flow_get(f, "q", "a", &jobs[0]), 0);
    cr_assert_eq(jobs[0].body_len, 4);

    for (long n = 2; n <= 3; n++) {
        alloc_fail(n);
        cr_assert_eq(flow_list(f, "q", LAPSE_WAITING, 10, jobs, 2), LAPSE_ENOMEM);
    }
    cr_assert_eq(flow_list(f, "q", LAPSE_WAITING, 10, jobs, 2), 2);

    flow_end(f, "q");
}

/* ---- listeners ---- */
/* Asks twice, so that all is answered to which the answers of before have led. */
static void let_it_answer(struct flow *f)
{
    for (int i = 0; i < 2; i++) {
        int err = flow_get(f, "q", "nothing", NULL);
        cr_assert(err == LAPSE_ENOENT || (err == LAPSE_ENOMEM && alloc_has_failed()), "%s",
                  lapse_strerror(err));
    }
}

/* Who leaves removes the dead one, if it has heard of it already. */
static void list_others(struct flow *f)
{
    redis_do(f->server,
             "ZADD lapse:{q}:listeners 1 other/0000000000000001 1 gone/ffffffffffffffff");
    redis_do(f->server, "ZADD lapse:{}:alive 9999999999999 other/0000000000000001");
}

/* A new handle listens, schedules a job, and runs it; beside a listener that is alive and one
 * that is not. */
static void run_one(struct flow *f, struct flow_handler *w)
{
    struct flow_answer a = {.f = f};
    struct lapse_spec spec = flow_job_spec("q", NULL, 0);
    unsigned want = w->settled + 1;

    int err = lapse_listen(f->l, "q", NULL, flow_on_job, w);
    if (err == LAPSE_ENOMEM) {
        err = lapse_listen(f->l, "q", NULL, flow_on_job, w);
    }
    cr_assert_eq(err, 0, "%s", lapse_strerror(err));

    err = lapse_schedule(f->l, &spec, flow_answered, &a);
    if (err == LAPSE_ENOMEM) {
        err = lapse_schedule(f->l, &spec, flow_answered, &a);
    }
    cr_assert_eq(err, 0, "%s", lapse_strerror(err));

    cr_assert_eq(flow_wait(f, &a), 0);
    flow_until(f, w->settled == want);
    flow_until_listeners(f, "q", 3);
    let_it_answer(f);
}

Test(memory, that_a_listener_lacks_once_keeps_no_job_from_running_once)
{
    enum { AT_LEAST = 6 };
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct flow_handler w = {.f = f, .way = FLOW_DONE};
    bool failed = true;
    long n = 0;

    flow_allow_log(f, "out of memory: a job of queue q is returned");
    flow_allow_log(f, "for the map of its cluster: out of memory");
    while (failed) {
        list_others(f);
        f->l = flow_open(f, NULL);
        alloc_fail(++n);
        run_one(f, &w);
        failed = alloc_has_failed();
        alloc_fail(0);
        flow_close(f, f->l, 5000);
    }

    cr_assert_gt(n, AT_LEAST);
    cr_assert_eq(w.errors, 0, "%s", lapse_strerror(w.err));
    flow_each_once(&w, (size_t)n);
    redis_do(f->server, "DEL lapse:{q}:listeners");
    redis_do(f->server, "DEL lapse:{}:alive");
    flow_end(f, "q");
}

/* Its claim is executed and its answer lost; then the connection is made again. */
static bool run_one_reclaimed(long nth)
{
    struct wire x;

    wire_start(&x, FLOW_DONE, NULL);
    flow_allow_log(x.f, "cannot connect");
    flow_allow_log(x.f, "out of memory: a job of queue q is returned");
    wire_cut(&x, PROXY_DOWN, 0);
    proxy_refuse(x.proxy, true);
    cr_assert_eq(flow_schedule(x.f, "q", "a", 0, NULL), 0);
    flow_until(x.f, flow_logged(x.f, "lost the connection"));
    cr_assert_eq(flow_count(x.f, "q", "run"), 1);

    proxy_cut_after(x.proxy, PROXY_DOWN, -1);
    alloc_fail(nth);
    proxy_refuse(x.proxy, false);
    flow_until(x.f, x.w.settled == 1);

    bool failed = alloc_has_failed();
    alloc_fail(0);
    cr_assert_eq(x.w.errors, 0, "%s", lapse_strerror(x.w.err));
    flow_each_once(&x.w, 1);
    cr_assert_geq(flow_logged(x.f, "replies to their claims were lost"), 1);
    wire_end(&x);
    return failed;
}

/* The tokens that are known are copied first; then each job that goes back needs a request. */
Test(memory, that_a_reclaim_lacks_puts_it_off_and_counts_no_try)
{
    place_not_with_masters("behind the proxy is one, and the heartbeats are on another");

    enum { AT_LEAST = 2 };
    long n = 1;

    while (run_one_reclaimed(n)) {
        n++;
    }
    cr_assert_gt(n, AT_LEAST);
}
