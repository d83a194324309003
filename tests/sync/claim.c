/* SPDX-License-Identifier: MIT */
/* Jobs for threads that have no handler. */
#include "waiting.h"

Test(claim, gives_due_jobs_that_any_thread_settles)
{
    struct waiting w;
    struct lapse_sync_jobs jobs = {.n = 0};

    waiting_start(&w);
    for (int i = 0; i < 5; i++) {
        cr_assert_eq(schedule(w.s, NULL, 0), 0);
    }
    cr_assert_eq(lapse_sync_claim(w.s, "q", 3, 0, 0, &jobs), 0);
    cr_assert_eq(jobs.n, 3);
    cr_assert_eq(lapse_job_via(jobs.jobs[0]), LAPSE_VIA_ASKED);
    cr_assert_eq(depth_of(w.s, "q").running, 3);
    cr_assert_eq(lapse_sync_done(w.s, jobs.jobs[0], 0), 0);
    cr_assert_eq(lapse_sync_fail(w.s, jobs.jobs[1], "broken", 0), 0);
    cr_assert_eq(lapse_sync_release(w.s, jobs.jobs[2], 0), 0);

    struct lapse_depth d = depth_of(w.s, "q");
    cr_assert(d.waiting == 3 && d.running == 0 && d.dead == 1);
    waiting_end(&w, "q");
}

Test(claim, waits_for_the_first_and_gives_none_if_none_comes)
{
    struct waiting w;
    struct lapse_sync_jobs jobs = {.n = 7};

    waiting_start(&w);
    cr_assert_eq(lapse_sync_claim(w.s, "q", 3, 0, 0, &jobs), 0);
    cr_assert_eq(jobs.n, 0);
    cr_assert_eq(schedule(w.s, "a", 300), 0);
    cr_assert_eq(lapse_sync_claim(w.s, "q", 3, 60000, 0, &jobs), 0);
    cr_assert_eq(jobs.n, 1);
    cr_assert_eq(lapse_sync_done(w.s, jobs.jobs[0], 0), 0);
    waiting_end(&w, "q");
}

/* Does a call that gave up ask for jobs still? If the loop has not seen it, it asks for none. */
static bool asked_by_a_call_that_gave_up(struct waiting *w)
{
    struct lapse_sync_jobs jobs = {.n = 0};

    cr_assert_eq(lapse_sync_claim(w->s, "q", 3, 60000, 50, &jobs), LAPSE_ETIMEOUT);
    cr_assert_eq(jobs.n, 0);
    depth_of(w->s, "q"); /* its answer comes behind that of the claim's join */
    return redis_int(w->server, "ZCARD lapse:{q}:listeners") == 1;
}

/* More than one call may have given up, and the job goes through the hands of each. */
static bool came_back(struct waiting *w, struct lapse_job **job)
{
    int err = lapse_sync_claim_id(w->s, "q", "a", 0, job);

    cr_assert(err == 0 || err == LAPSE_ENOENT, "%d", err);
    return err == 0;
}

Test(claim, what_comes_after_the_call_gave_up_goes_back)
{
    struct waiting w;
    struct lapse_job *job = NULL;

    waiting_start(&w);
    wait_until(asked_by_a_call_that_gave_up(&w));
    cr_assert_eq(schedule(w.s, "a", 0), 0);
    wait_until(stats_of(w.s).claimed >= 1);
    wait_until(came_back(&w, &job));
    cr_assert_eq(lapse_job_try(job), 1);
    cr_assert_eq(lapse_sync_done(w.s, job, 0), 0);
    cr_assert_eq(lapse_sync_claim_id(w.s, "q", "a", 0, &job), LAPSE_ENOENT);
    waiting_end(&w, "q");
}

Test(claim, a_settle_by_token_ends_the_hold_of_this_process)
{
    struct waiting w;
    struct lapse_job *job = NULL;
    struct lapse_settlement how = {.size = sizeof how, .how = LAPSE_HOW_DONE};

    waiting_start(&w);
    cr_assert_eq(schedule(w.s, "a", 0), 0);
    cr_assert_eq(lapse_sync_claim_id(w.s, "q", "a", 0, &job), 0);
    uint64_t token = lapse_job_token(job);
    cr_assert_eq(lapse_sync_settle(w.s, "q", "a", token - 1, &how, 0), LAPSE_EGONE);
    cr_assert_eq(lapse_sync_settle(w.s, "q", "a", token, &how, 0), 0);
    cr_assert_str_eq(lapse_job_id(job), "a");
    cr_assert_eq(lapse_sync_done(w.s, job, 0), LAPSE_EGONE);
    waiting_end(&w, "q");
}

Test(claim, a_forgotten_job_is_settled_by_its_token)
{
    struct waiting w;
    struct lapse_job *job = NULL;
    struct lapse_settlement how = {.size = sizeof how, .how = LAPSE_HOW_DONE};

    waiting_start(&w);
    cr_assert_eq(schedule(w.s, "a", 0), 0);
    cr_assert_eq(lapse_sync_claim_id(w.s, "q", "a", 0, &job), 0);
    uint64_t token = lapse_job_token(job);
    cr_assert_eq(lapse_sync_forget(w.s, job), 0);
    cr_assert_eq(depth_of(w.s, "q").running, 1);
    cr_assert_eq(lapse_sync_settle(w.s, "q", "a", token, &how, 0), 0);
    waiting_end(&w, "q");
}

Test(claim, what_is_not_allowed_is_einval)
{
    struct waiting w;
    struct lapse_sync_jobs jobs = {.n = 0};
    struct lapse_settlement how = {.size = sizeof how};
    struct lapse_job *job = NULL;

    waiting_start(&w);
    cr_assert_eq(lapse_sync_claim(w.s, "q", 0, 0, 0, &jobs), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_claim(w.s, "q", 101, 0, 0, &jobs), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_claim(w.s, "q", 1, LAPSE_WAIT_MAX_MS + 1, 0, &jobs), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_claim(w.s, "q", 1, 0, 0, NULL), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_claim_id(w.s, "q", NULL, 0, &job), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_settle(w.s, "q", "a", 1, &how, 0), LAPSE_EINVAL);
    waiting_end(&w, "q");
}

Test(claim, gives_the_parts_of_a_group_as_one_job)
{
    static const char *const parts[] = {"one", "", "three"};
    struct waiting w;
    struct lapse_sync_jobs jobs = {.n = 0};
    struct lapse_job *job = NULL;
    struct lapse_gather limits = lapse_gather_init();
    struct lapse_spec spec = lapse_spec_init();
    size_t len;

    limits.quiet_ms = HOUR;
    limits.most = 3;
    spec.queue = "q";
    spec.id = "a";
    spec.on_conflict = LAPSE_GATHER;
    spec.gather = &limits;
    waiting_start(&w);
    for (unsigned i = 0; i < 3; i++) {
        spec.body = parts[i];
        spec.body_len = strlen(parts[i]);
        cr_assert_eq(lapse_sync_schedule(w.s, &spec, 0, &job), 0);
        cr_assert(lapse_job_parts(job) == i + 1 && lapse_job_created(job) == (i == 0));
        lapse_sync_free(job);
    }
    limits.most = 4;
    cr_assert_eq(lapse_sync_schedule(w.s, &spec, 0, NULL), LAPSE_EEXIST);

    cr_assert_eq(lapse_sync_claim(w.s, "q", 3, 0, 0, &jobs), 0);
    cr_assert_eq(jobs.n, 1);
    cr_assert_eq(lapse_job_parts(jobs.jobs[0]), 3);
    for (unsigned i = 0; i < 3; i++) {
        const char *part = lapse_job_part(jobs.jobs[0], i, &len);
        cr_assert(part && len == strlen(parts[i]) && memcmp(part, parts[i], len) == 0);
    }
    cr_assert_eq(lapse_sync_done(w.s, jobs.jobs[0], 0), 0);
    waiting_end(&w, "q");
}
