/* SPDX-License-Identifier: MIT */
/* The back-off and the accessors; what a job is made of is in job_fill.c. */
#include "job/job.h"
#include "unit.h"
#include <criterion/criterion.h>
#include <stdlib.h>

static const int64_t waits[] = {
    0,
    1,
    127,
    128,
    999,
    1000,
    1001,
    16383,
    16384,
    3599999,
    3600000,
    3600001,
    JOB_TEN_YEARS_MS,
    ((int64_t)1 << 49) - 1,
};
enum { WAITS = sizeof waits / sizeof *waits };

/* ---- back-off ---- */
static void expect_backoff(struct lapse_job *job, int64_t whole)
{
    int64_t least = INT64_MAX;
    int64_t most = -1;

    for (int i = 0; i < 200; i++) {
        int64_t wait = job_backoff_ms(job);
        cr_assert(wait >= whole - whole / 4 && wait <= whole,
                  "try %u of %ld to %ld: %ld is not %ld", job->try_no, (long)job->backoff_ms,
                  (long)job->backoff_max_ms, (long)wait, (long)whole);
        least = wait < least ? wait : least;
        most = wait > most ? wait : most;
    }

    if (whole >= 4) {
        cr_expect_lt(least, most, "it is jittered");
    }
}

Test(job, backoff_doubles_from_try_to_try_up_to_its_maximum)
{
    struct lapse_job job = {.backoff_ms = 1000, .backoff_max_ms = 3600000};
    int64_t whole = 1000;

    for (job.try_no = 1; job.try_no <= 40; job.try_no++) {
        expect_backoff(&job, whole < 3600000 ? whole : 3600000);
        whole = whole < 3600000 ? whole * 2 : whole;
    }

    job.backoff_max_ms = JOB_TEN_YEARS_MS;
    for (job.try_no = 1, whole = 1000; job.try_no <= 40; job.try_no++) {
        expect_backoff(&job, whole < JOB_TEN_YEARS_MS ? whole : JOB_TEN_YEARS_MS);
        whole = whole < JOB_TEN_YEARS_MS ? whole * 2 : whole;
    }
}

Test(job, backoff_of_any_numbers_a_record_can_hold_is_within_its_bounds)
{
    static const unsigned nth[] = {0, 1, 2, 3, 100, 0x80000000, LAPSE_FOREVER};

    for (size_t b = 0; b < WAITS * WAITS; b++) {
        for (size_t t = 0; t < sizeof nth / sizeof *nth; t++) {
            struct lapse_job job = {.try_no = nth[t],
                                    .backoff_ms = waits[b % WAITS],
                                    .backoff_max_ms = waits[b / WAITS]};
            int64_t whole = job.backoff_ms;
            for (unsigned i = 1; i < nth[t] && i < 64 && whole < job.backoff_max_ms; i++) {
                whole *= 2;
            }
            expect_backoff(&job, whole < job.backoff_max_ms ? whole : job.backoff_max_ms);
        }
    }
}

Test(job, backoff_has_all_its_quarter)
{
    struct lapse_job job = {.try_no = 1, .backoff_ms = 8, .backoff_max_ms = 8};
    bool seen[9] = {0};

    for (int i = 0; i < 2000; i++) {
        seen[job_backoff_ms(&job)] = true;
    }
    cr_expect(seen[6] && seen[7] && seen[8] && !seen[5]);
}

/* ---- accessors ---- */
Test(job, accessors_say_what_is_in_it)
{
    struct lapse_job job = {.queue = "q",
                            .id = "i",
                            .body = "body",
                            .body_len = 3,
                            .reason = "because",
                            .state = LAPSE_DEAD,
                            .via = LAPSE_VIA_SWEEP,
                            .created = 1,
                            .tries = 2,
                            .try_no = 3,
                            .token = 4,
                            .due_ms = 5,
                            .until_ms = 6,
                            .claimed_us = 7,
                            .backoff_ms = 8,
                            .backoff_max_ms = 9,
                            .score_ms = 11};
    size_t len = 0;

    cr_expect_eq(lapse_job_queue(&job), job.queue);
    cr_expect_eq(lapse_job_id(&job), job.id);
    cr_expect_eq(lapse_job_body(&job, &len), job.body);
    cr_expect_eq(len, 3);
    cr_expect_eq(lapse_job_body(&job, NULL), job.body);
    cr_expect_eq(lapse_job_state(&job), LAPSE_DEAD);
    cr_expect_eq(lapse_job_due_ms(&job), 5);
    cr_expect_eq(lapse_job_until_ms(&job), 6);
    cr_expect_eq(lapse_job_claimed_us(&job), 7);
    cr_expect_eq(lapse_job_try(&job), 3);
    cr_expect_eq(lapse_job_tries(&job), 2);
    cr_expect_eq(lapse_job_token(&job), 4);
    cr_expect_eq(lapse_job_created(&job), 1);
    cr_expect_eq(lapse_job_via(&job), LAPSE_VIA_SWEEP);
    cr_expect_str_eq(lapse_job_reason(&job), "because");
    job.created = 0;
    cr_expect_eq(lapse_job_created(&job), 0);
}
