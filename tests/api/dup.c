/* SPDX-License-Identifier: MIT */
/* Duplicates of jobs, and jobs that are given back. */
#include "allocations.h"
#include "handler.h"
#include "listening.h"
#include "states.h"

static struct lapse_job *dups[8];
static size_t n_dups;

static void dup_it(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    (void)l;
    (void)arg;
    cr_assert_eq(err, 0);
    dups[n_dups++] = lapse_job_dup(job);
}

static void dup_page(struct lapse *l, int err, const struct lapse_job *const *jobs, size_t n,
                     void *arg)
{
    cr_assert_eq(n, 1);
    dup_it(l, err, jobs[0], arg);
}

Test(dup, outlives_the_callback_in_every_field_and_in_every_state)
{
    struct flow *f = flow_start(FLOW_FULL);

    for (enum flow_state state = 0; state < FLOW_STATES; state++) {
        struct flow_job job;
        struct flow_job read;
        flow_put(f, "q", "a", state, &job);
        n_dups = 0;
        cr_assert_eq(lapse_get(f->l, "q", "a", dup_it, NULL), 0);
        flow_until(f, n_dups == 1);
        if (state == FLOW_WAITS || state == FLOW_DEAD) {
            cr_assert_eq(lapse_list(f->l, "q", job.state, NULL, 9, dup_page, NULL), 0);
            flow_until(f, n_dups == 2);
        }
        for (size_t i = 0; i < n_dups; i++) {
            flow_copy(f, &read, dups[i]);
            cr_assert(flow_same(&job, &read), "%s", flow_state_names[state]);
            cr_assert(read.body_len == 3 && memcmp(read.body, "old", 3) == 0);
            lapse_job_free(dups[i]);
        }
        redis_do(f->server, "FLUSHALL");
    }

    lapse_job_free(NULL);
    flow_end(f, "q");
}

Test(dup, of_a_duplicate_and_of_a_job_that_a_handler_has)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};

    flow_hold(f, &w, "a");

    struct lapse_job *dup = lapse_job_dup(w.held[0]);
    struct lapse_job *second = lapse_job_dup(dup);
    flow_settle(&w, FLOW_DONE);
    lapse_job_free(dup);
    cr_assert_str_eq(lapse_job_id(second), "a");
    cr_assert_eq(lapse_job_try(second), 1);
    lapse_job_free(second);
    flow_end(f, "q");
}

Test(dup, without_memory_there_is_none)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};

    flow_hold(f, &w, "a");
    alloc_fail(1);
    cr_assert_null(lapse_job_dup(w.held[0]));
    alloc_fail(0);
    flow_settle(&w, FLOW_DONE);
    flow_end(f, "q");
}

Test(dup, a_job_that_was_given_back_is_freed_likewise)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};

    flow_hold(f, &w, "a");
    flow_close(f, f->l, 0);
    cr_assert_str_eq(lapse_job_id(w.held[0]), "a");
    lapse_job_free(w.held[0]);
    flow_end(f, "q");
}

FLOW_ALL_MODES(release, gives_a_job_back_at_once_and_counts_no_try)
{
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_KEEP};

    flow_hold(f, &w, "a");
    uint64_t token = w.runs[0].job.token;
    lapse_release(w.held[--w.n_held], flow_on_settled, &w);
    flow_until(f, w.n_held == 1);
    cr_assert(w.settled == 1 && w.errors == 0);
    cr_assert_eq(w.runs[1].job.try_no, 1);
    cr_assert_gt(w.runs[1].job.token, token);
    cr_assert_eq(flow_stats(f->l).retried, 0);
    flow_settle(&w, FLOW_DONE);
    flow_end(f, "q");
}

Test(release, of_a_job_whose_lease_was_lost_is_egone)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};

    flow_hold(f, &w, "a");
    redis_do(f->server, "FLUSHALL");
    lapse_release(w.held[--w.n_held], flow_on_settled, &w);
    flow_until(f, w.settled == 1);
    cr_assert_eq(w.err, LAPSE_EGONE);
    cr_assert_eq(flow_stats(f->l).gone, 0);
    flow_end(f, "q");
}
