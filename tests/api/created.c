/* SPDX-License-Identifier: MIT */
/* When a job was first scheduled. */
#include "handler.h"
#include "listening.h"

enum { HOUR = 3600000 };

static struct lapse_spec created(const char *id, int64_t delay_ms)
{
    struct lapse_spec s = flow_job_spec("q", id, delay_ms);

    s.flags = LAPSE_CREATED;
    s.body = "body";
    s.body_len = 4;
    return s;
}

/* A delay counts from the moment at which Redis takes the schedule. */
Test(created, a_job_that_asks_knows_when_redis_took_its_schedule)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_spec s = created("a", HOUR);
    struct flow_job job;
    struct flow_job listed[2];

    cr_assert_eq(flow_spec(f, &s, &job), 0);
    int64_t created_ms = job.due_ms - HOUR;
    cr_assert(job.created_ms == created_ms && job.created && job.state == LAPSE_WAITING);
    cr_assert_eq(flow_stats(f->l).scheduled, 1);
    cr_assert_eq(flow_get(f, "q", "a", &job), 0);
    cr_assert_eq(job.created_ms, created_ms);
    cr_assert(job.body_len == 4 && memcmp(job.body, "body", 4) == 0);
    cr_assert_eq(flow_list(f, "q", LAPSE_WAITING, 2, listed, 2), 1);
    cr_assert_eq(listed[0].created_ms, created_ms);
    cr_assert_eq(flow_reschedule(f, "q", "a", lapse_in(2 * HOUR), &job), 0);
    cr_assert_eq(job.created_ms, created_ms);
    cr_assert_eq(flow_kill(f, "q", "a", "why", &job), 0);
    cr_assert_eq(job.created_ms, created_ms);
    cr_assert_eq(flow_cancel(f, "q", "a", &job), 0);
    cr_assert_eq(job.created_ms, created_ms);
    flow_end(f, "q");
}

Test(created, of_one_with_a_moment_is_when_it_was_scheduled_too)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_spec s = created("a", 0);
    struct flow_job job;
    int64_t before_ms = redis_now_ms(f->server);

    s.due = lapse_at(before_ms + HOUR);
    cr_assert_eq(flow_spec(f, &s, &job), 0);
    cr_assert_eq(job.due_ms, before_ms + HOUR);
    cr_assert(job.created_ms >= before_ms && job.created_ms <= redis_now_ms(f->server));
    flow_end(f, "q");
}

Test(created, of_others_only_an_id_that_was_generated_tells_it)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_job job;
    char id[256];
    int64_t before_ms = redis_now_ms(f->server);

    cr_assert_eq(flow_schedule(f, "q", "a", HOUR, &job), 0);
    cr_assert_eq(job.created_ms, 0);
    cr_assert_eq(flow_get(f, "q", "a", &job), 0);
    cr_assert_eq(job.created_ms, 0);
    cr_assert_eq(redis_int(f->server, "HSTRLEN lapse:{q}:jobs a"), 2, "not a byte more");

    cr_assert_eq(flow_schedule(f, "q", NULL, HOUR, &job), 0);
    cr_assert(job.created_ms >= before_ms && job.created_ms <= redis_now_ms(f->server));
    int64_t created_ms = job.created_ms;
    strcpy(id, job.id);
    cr_assert_eq(redis_int(f->server, "HSTRLEN lapse:{q}:jobs %s", id), 2, "not a byte more");
    cr_assert_eq(flow_get(f, "q", id, &job), 0);
    cr_assert_eq(job.created_ms, created_ms);
    flow_end(f, "q");
}

FLOW_ALL_MODES(created, who_runs_the_job_knows_it_too)
{
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_DONE};
    struct lapse_spec s = created("a", 5);
    struct flow_job job;

    cr_assert_eq(flow_spec(f, &s, &job), 0);
    flow_listen(f, "q", &w);
    flow_until(f, w.settled == 1);
    cr_assert_eq(w.runs[0].job.created_ms, job.created_ms);
    cr_assert_eq(job.created_ms, job.due_ms - 5);
    flow_end(f, "q");
}

Test(created, a_new_life_has_a_new_time_and_one_that_is_put_off_has_its_own)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_spec s = created("a", HOUR);
    struct flow_job first;
    struct flow_job job;

    cr_assert_eq(flow_spec(f, &s, &first), 0);
    flow_until(f, redis_now_ms(f->server) > first.created_ms);
    s.on_conflict = LAPSE_DEBOUNCE;
    cr_assert_eq(flow_spec(f, &s, &job), 0);
    cr_assert_eq(job.created_ms, first.created_ms);
    cr_assert_not(job.created);
    s.on_conflict = LAPSE_REPLACE;
    cr_assert_eq(flow_spec(f, &s, &job), 0);
    cr_assert_gt(job.created_ms, first.created_ms);
    cr_assert(job.created);
    cr_assert_eq(flow_stats(f->l).scheduled, 2);
    flow_end(f, "q");
}

Test(created, an_unknown_flag_is_einval)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_spec s = created("a", HOUR);

    s.flags |= 1u << 31;
    cr_assert_eq(flow_spec(f, &s, NULL), LAPSE_EINVAL);
    flow_end(f, "q");
}
