/* SPDX-License-Identifier: MIT */
/* The accessors; what a job is made of is in job_fill.c. */
#include "job/job.h"
#include "unit.h"
#include <criterion/criterion.h>

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
