/* SPDX-License-Identifier: MIT */
/* Each call that waits for its answer: what it gives, and what it refuses. */
#include "waiting.h"

static struct lapse_spec spec_of(const char *id, const char *body)
{
    struct lapse_spec spec = lapse_spec_init();

    spec.queue = "q";
    spec.id = id;
    spec.body = body;
    spec.body_len = strlen(body);
    spec.due = lapse_in(HOUR);
    return spec;
}

Test(calls, a_job_is_scheduled_moved_read_killed_and_cancelled)
{
    struct waiting w;
    struct lapse_job *job = NULL;
    struct lapse_spec spec = spec_of("a", "unpaid");

    waiting_start(&w);
    cr_assert_eq(lapse_sync_schedule(w.s, &spec, 0, &job), 0);
    cr_assert(lapse_job_created(job) && lapse_job_state(job) == LAPSE_WAITING);
    cr_assert_str_eq(lapse_job_queue(job), "q");
    cr_assert_str_eq(lapse_job_id(job), "a");
    int64_t due_ms = lapse_job_due_ms(job);
    lapse_sync_free(job);

    cr_assert_eq(lapse_sync_reschedule(w.s, "q", "a", lapse_in(2 * HOUR), 0, 0, &job), 0);
    cr_assert_geq(lapse_job_due_ms(job), due_ms + HOUR);
    lapse_sync_free(job);

    size_t len;
    cr_assert_eq(lapse_sync_get(w.s, "q", "a", 0, &job), 0);
    cr_assert_arr_eq(lapse_job_body(job, &len), "unpaid", 6);
    cr_assert_eq(len, 6);
    lapse_sync_free(job);

    cr_assert_eq(lapse_sync_kill(w.s, "q", "a", "no customer", 0, &job), 0);
    cr_assert_eq(lapse_job_state(job), LAPSE_DEAD);
    cr_assert_str_eq(lapse_job_reason(job), "no customer");
    lapse_sync_free(job);

    cr_assert_eq(lapse_sync_cancel(w.s, "q", "a", 0, 0, &job), 0);
    cr_assert_str_eq(lapse_job_id(job), "a");
    lapse_sync_free(job);
    cr_assert_eq(depth_of(w.s, "q").waiting, 0);
    waiting_end(&w, "q");
}

Test(calls, a_wait_ends_with_the_job_or_when_it_is_over)
{
    struct waiting w;
    struct lapse_job *job = NULL;
    struct lapse_spec spec = spec_of("a", "unpaid");

    spec.keep_ms = HOUR;
    waiting_start(&w);
    cr_assert_eq(lapse_sync_wait(w.s, "q", "a", HOUR, &job), LAPSE_ENOENT);
    cr_assert_eq(lapse_sync_schedule(w.s, &spec, 0, NULL), 0);
    cr_assert_eq(lapse_sync_wait(w.s, "q", "a", 0, &job), LAPSE_ETIMEOUT);
    cr_assert_eq(lapse_sync_wait(w.s, "q", "a", 20, &job), LAPSE_ETIMEOUT);
    cr_assert_eq(lapse_sync_cancel(w.s, "q", "a", 0, 0, NULL), 0);
    cr_assert_eq(lapse_sync_wait(w.s, "q", "a", HOUR, &job), 0);
    cr_assert_eq(lapse_job_end(job), LAPSE_ENDED_CANCELLED);
    lapse_sync_free(job);
    cr_assert_eq(lapse_sync_wait(w.s, "q", "a", -1, NULL), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_wait(w.s, "q", "a", 3653 * (int64_t)86400000, NULL), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_wait(NULL, "q", "a", 0, NULL), LAPSE_EINVAL);
    waiting_end(&w, "q");
}

Test(calls, an_id_that_lapse_makes_up_comes_with_the_job)
{
    struct waiting w;
    struct lapse_job *job = NULL;
    struct lapse_spec spec = spec_of(NULL, "");

    waiting_start(&w);
    cr_assert_eq(lapse_sync_schedule(w.s, &spec, 0, &job), 0);
    cr_assert_eq(lapse_sync_get(w.s, "q", lapse_job_id(job), 0, NULL), 0);
    cr_assert_gt(lapse_job_created_ms(job), 0, "the id tells");
    lapse_sync_free(job);
    waiting_end(&w, "q");
}

Test(calls, a_job_tells_when_it_was_created_if_that_was_asked)
{
    struct waiting w;
    struct lapse_job *job = NULL;
    struct lapse_spec spec = spec_of("a", "");

    waiting_start(&w);
    spec.flags = LAPSE_CREATED;
    cr_assert_eq(lapse_sync_schedule(w.s, &spec, 0, &job), 0);
    cr_assert_eq(lapse_job_created_ms(job), lapse_job_due_ms(job) - HOUR);
    lapse_sync_free(job);
    cr_assert_eq(lapse_sync_get(w.s, "q", "a", 0, &job), 0);
    cr_assert_eq(lapse_job_created_ms(job), lapse_job_due_ms(job) - HOUR);
    lapse_sync_free(job);
    waiting_end(&w, "q");
}

Test(calls, each_error_is_that_of_lapse_h_and_leaves_out_alone)
{
    struct waiting w;
    struct lapse_job *job = NULL;
    struct lapse_spec spec = spec_of("a", "");

    waiting_start(&w);
    cr_assert_eq(lapse_sync_schedule(w.s, &spec, 0, NULL), 0);
    cr_assert_eq(lapse_sync_schedule(w.s, &spec, 0, &job), LAPSE_EEXIST);
    cr_assert_eq(lapse_sync_cancel(w.s, "q", "b", 0, 0, &job), LAPSE_ENOENT);
    cr_assert_eq(lapse_sync_reschedule(w.s, "q", "b", lapse_in(0), 0, 0, &job), LAPSE_ENOENT);
    cr_assert_eq(lapse_sync_kill(w.s, "q", "b", NULL, 0, &job), LAPSE_ENOENT);
    cr_assert_eq(lapse_sync_get(w.s, "q", "b", 0, &job), LAPSE_ENOENT);
    cr_assert_null(job);

    struct lapse_spec kept = spec_of("a", "other");
    kept.on_conflict = LAPSE_KEEP;
    cr_assert_eq(lapse_sync_schedule(w.s, &kept, 0, &job), 0);
    cr_assert_not(lapse_job_created(job));
    lapse_sync_free(job);
    waiting_end(&w, "q");
}

Test(calls, a_job_that_is_kept_is_seen_counted_and_cancelled_again)
{
    struct waiting w;
    struct lapse_job *job = NULL;
    struct lapse_spec spec = spec_of("a", "");
    struct lapse_sync_jobs page = {.n = 0};

    waiting_start(&w);
    spec.keep_ms = 86400000;
    cr_assert_eq(lapse_sync_schedule(w.s, &spec, 0, NULL), 0);
    cr_assert_eq(lapse_sync_cancel(w.s, "q", "a", 0, 0, NULL), 0);
    cr_assert_eq(lapse_sync_cancel(w.s, "q", "a", 0, 0, NULL), 0);
    cr_assert_eq(lapse_sync_kill(w.s, "q", "a", "no", 0, NULL), LAPSE_EENDED);
    cr_assert_eq(lapse_sync_get(w.s, "q", "a", 0, &job), 0);
    cr_assert_eq(lapse_job_state(job), LAPSE_KEPT);
    cr_assert_eq(lapse_job_end(job), LAPSE_ENDED_CANCELLED);
    lapse_sync_free(job);
    cr_assert_eq(depth_of(w.s, "q").kept, 1);
    cr_assert_eq(lapse_sync_list(w.s, "q", LAPSE_KEPT, NULL, 10, 0, &page), 0);
    cr_assert_eq(page.n, 1);
    lapse_sync_free_jobs(&page);
    waiting_end(&w, "q");
}

Test(calls, what_is_not_allowed_is_einval_and_changes_nothing)
{
    struct waiting w;
    struct lapse_spec spec = spec_of("a", "");
    struct lapse_spec bad = spec_of("a b", "");
    struct lapse_sync_jobs page = {.n = 0};
    struct lapse_depth d;
    int64_t too_long = (int64_t)3652 * 86400 * 1000 + 1;

    waiting_start(&w);
    cr_assert_eq(lapse_sync_schedule(NULL, &spec, 0, NULL), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_schedule(w.s, NULL, 0, NULL), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_schedule(w.s, &bad, 0, NULL), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_schedule(w.s, &spec, -1, NULL), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_schedule(w.s, &spec, too_long, NULL), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_cancel(w.s, "q", "a", 2, 0, NULL), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_reschedule(w.s, "q", NULL, lapse_in(0), 0, 0, NULL), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_kill(w.s, "q", "a b", NULL, 0, NULL), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_get(w.s, "q q", "a", 0, NULL), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_list(w.s, "q", LAPSE_WAITING, NULL, 0, 0, &page), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_list(w.s, "q", LAPSE_WAITING, NULL, 101, 0, &page), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_list(w.s, "q", LAPSE_WAITING, NULL, 1, 0, NULL), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_list_tag(w.s, "q", "a b", NULL, 1, 0, &page), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_list_tag(w.s, "q", "a", NULL, 1, 0, NULL), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_depth(w.s, "q", 0, NULL), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_depth(w.s, NULL, 0, &d), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_stats(w.s, NULL, 8), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_lateness(w.s, 0, NULL), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_done(w.s, NULL, 0), LAPSE_EINVAL);
    cr_assert_eq(depth_of(w.s, "q").waiting, 0);
    waiting_end(&w, "q");
}

Test(calls, a_list_by_tag_is_one_too_and_the_copies_have_their_tags)
{
    static const char *const tags[] = {"x", "y"};
    struct waiting w;
    struct lapse_sync_jobs page = {.n = 0};
    struct lapse_spec spec = lapse_spec_init();

    waiting_start(&w);
    spec.queue = "q";
    spec.due = lapse_in(HOUR);
    spec.tags = tags;
    for (unsigned i = 0; i < 3; i++) {
        spec.id = i ? "b" : "a";
        spec.n_tags = i;
        spec.on_conflict = LAPSE_REPLACE;
        cr_assert_eq(lapse_sync_schedule(w.s, &spec, 0, NULL), 0);
    }

    cr_assert_eq(lapse_sync_list_tag(w.s, "q", "y", NULL, 100, 0, &page), 0);
    cr_assert_eq(page.n, 1);
    cr_assert_str_eq(lapse_job_id(page.jobs[0]), "b");
    cr_assert_str_eq(lapse_job_tag(page.jobs[0], 1), "y");

    struct lapse_sync_jobs next = {.n = 0};
    cr_assert_eq(lapse_sync_list_tag(w.s, "q", "y", page.jobs[0], 100, 0, &next), 0);
    cr_assert_eq(next.n, 0);
    lapse_sync_free_jobs(&page);
    waiting_end(&w, "q");
}

Test(calls, a_list_is_a_page_of_copies_from_which_the_next_goes_on)
{
    struct waiting w;
    struct lapse_sync_jobs page = {.n = 0};
    char id[8];

    waiting_start(&w);
    for (int i = 0; i < 150; i++) {
        snprintf(id, sizeof id, "%03d", i);
        cr_assert_eq(schedule(w.s, id, HOUR + i), 0);
    }

    cr_assert_eq(lapse_sync_list(w.s, "q", LAPSE_WAITING, NULL, 100, 0, &page), 0);
    cr_assert_eq(page.n, 100);
    cr_assert_str_eq(lapse_job_id(page.jobs[99]), "099");

    struct lapse_sync_jobs next = {.n = 0};
    cr_assert_eq(lapse_sync_list(w.s, "q", LAPSE_WAITING, page.jobs[99], 100, 0, &next), 0);
    cr_assert_eq(next.n, 50);
    cr_assert_str_eq(lapse_job_id(next.jobs[0]), "100");
    lapse_sync_free_jobs(&page);
    cr_assert_eq(page.n, 0);
    lapse_sync_free_jobs(&next);
    waiting_end(&w, "q");
}

Test(calls, statistics_are_those_of_the_handle)
{
    struct waiting w;

    waiting_start(&w);
    cr_assert_eq(schedule(w.s, "a", HOUR), 0);
    cr_assert_eq(schedule(w.s, "b", HOUR), 0);
    cr_assert_eq(stats_of(w.s).scheduled, 2);

    struct lapse_sync_jobs jobs;
    struct lapse_histogram late;
    cr_assert_eq(schedule(w.s, "c", 0), 0);
    cr_assert_eq(lapse_sync_claim(w.s, "q", 1, 60000, 0, &jobs), 0);
    cr_assert_eq(lapse_sync_lateness(w.s, LAPSE_VIA_ASKED, &late), 0);
    cr_assert_eq(late.n, 1);
    cr_assert_eq(lapse_sync_done(w.s, jobs.jobs[0], 0), 0);
    waiting_end(&w, "q");
}

/* ---- many threads ---- */
struct many {
    struct lapse_sync *s;
    atomic_uint next, failed;
};

static void *schedule_many(void *arg)
{
    struct many *m = arg;
    char id[16];

    for (unsigned n; (n = m->next++) < 2000;) {
        snprintf(id, sizeof id, "%u", n);
        if (schedule(m->s, id, HOUR) != 0) {
            m->failed++;
        }
    }

    return NULL;
}

Test(calls, many_threads_share_one_connection_and_travel_together)
{
    struct waiting w;
    pthread_t threads[16];

    waiting_start(&w);
    struct many m = {.s = w.s};
    long long conns = redis_int(w.server, "EVAL %s 0",
                                "return tonumber(redis.call('INFO', 'stats'):match("
                                "'total_connections_received:(%d+)'))");
    for (int i = 0; i < 16; i++) {
        cr_assert_eq(pthread_create(&threads[i], NULL, schedule_many, &m), 0);
    }
    for (int i = 0; i < 16; i++) {
        pthread_join(threads[i], NULL);
    }

    cr_assert_eq(m.failed, 0);
    cr_assert_eq(depth_of(w.s, "q").waiting, 2000);
    cr_assert_leq(redis_int(w.server, "EVAL %s 0",
                            "return tonumber(redis.call('INFO', 'stats'):match("
                            "'total_connections_received:(%d+)'))"),
                  conns + 1);
    waiting_end(&w, "q");
}

Test(calls, a_selection_is_rescheduled_and_cancelled_and_counted)
{
    struct waiting w;
    struct lapse_where where = {.size = sizeof where, .state = LAPSE_WAITING};
    struct lapse_where none = {.size = sizeof none};
    struct lapse_sync_count count = {7, 7};

    waiting_start(&w);
    for (int i = 0; i < 250; i++) {
        cr_assert_eq(schedule(w.s, NULL, HOUR), 0);
    }

    cr_assert_eq(lapse_sync_cancel_all(w.s, "q", &none, 0, 0, &count), LAPSE_EINVAL);
    none.tag = "a b";
    cr_assert_eq(lapse_sync_cancel_all(w.s, "q", &none, 0, 0, &count), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_cancel_all(NULL, "q", &where, 0, 0, &count), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_cancel_all(w.s, "q", &where, 0, -1, &count), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_reschedule_all(w.s, "q", &where, lapse_in(0), -1, 0, 0, &count),
                 LAPSE_EINVAL);
    cr_assert(count.n == 7 && count.n_running == 7, "nothing was asked");

    struct lapse_due due = lapse_in(2 * HOUR);
    cr_assert_eq(lapse_sync_reschedule_all(w.s, "q", &where, due, HOUR, 0, 0, &count), 0);
    cr_assert(count.n == 250 && count.n_running == 0);
    where.most = 5;
    cr_assert_eq(lapse_sync_kill_all(w.s, "q", &where, "no customer", 0, &count), 0);
    cr_assert(count.n == 5 && count.n_running == 0);
    cr_assert_eq(depth_of(w.s, "q").dead, 5);
    where.most = 120;
    cr_assert_eq(lapse_sync_cancel_all(w.s, "q", &where, 0, 5000, &count), 0);
    cr_assert_eq(count.n, 120);
    none.tag = "customer-7";
    cr_assert_eq(lapse_sync_cancel_all(w.s, "q", &none, 0, 5000, &count), 0);
    cr_assert_eq(count.n, 0);
    where.most = 0;
    cr_assert_eq(lapse_sync_cancel_all(w.s, "q", &where, 0, 0, NULL), 0);
    cr_assert_eq(depth_of(w.s, "q").waiting, 0);
    waiting_end(&w, "q");
}

/* What it gives is a duplicate. */
Test(calls, a_job_tells_its_errors)
{
    struct waiting w;
    struct lapse_job *job = NULL;
    struct lapse_spec spec = spec_of("a", "body");
    unsigned try_no = 0;
    int64_t at_ms = 0;

    waiting_start(&w);
    spec.flags = LAPSE_KEEP_ERRORS;
    spec.due = lapse_in(0);
    cr_assert_eq(lapse_sync_schedule(w.s, &spec, 0, NULL), 0);
    cr_assert_eq(lapse_sync_claim_id(w.s, "q", "a", 0, &job), 0);
    cr_assert_null(lapse_job_error(job, 0, NULL, NULL));
    cr_assert_eq(lapse_sync_fail(w.s, job, "broken", 0), 0);
    cr_assert_eq(lapse_sync_get(w.s, "q", "a", 0, &job), 0);
    cr_assert_str_eq(lapse_job_error(job, 0, &at_ms, &try_no), "broken");
    cr_assert(at_ms > 0 && try_no == 1);
    cr_assert_null(lapse_job_error(job, 1, NULL, NULL));
    cr_assert_arr_eq(lapse_job_body(job, NULL), "body", 4);
    lapse_sync_free(job);
    waiting_end(&w, "q");
}
