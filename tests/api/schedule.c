/* SPDX-License-Identifier: MIT */
#include "handler.h"

FLOW_ALL_MODES(schedule, a_job_runs_once_and_is_gone)
{
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow_job made;

    flow_listen(f, "orders", &w);
    cr_assert_eq(flow_schedule(f, "orders", "a", 50, &made), 0);
    flow_until(f, w.settled == 1);
    cr_assert_eq(w.errors, 0);
    cr_assert_eq(w.n_runs, 1);
    cr_assert_eq(w.runs[0].job.due_ms, made.due_ms);
    cr_assert_geq(w.runs[0].job.claimed_us, made.due_ms * 1000);
    cr_assert_eq(flow_get(f, "orders", "a", NULL), LAPSE_ENOENT);
    flow_end(f, "orders");
}

Test(schedule, lends_the_job_as_redis_has_it)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_spec s = flow_job_spec("q", "a", 3600000);
    struct flow_job job;

    s.body = "not given here";
    s.body_len = 14;

    int64_t before = redis_now_ms(f->server);
    cr_assert_eq(flow_spec(f, &s, &job), 0);

    int64_t after = redis_now_ms(f->server);
    cr_assert_str_eq(job.queue, "q");
    cr_assert_str_eq(job.id, "a");
    cr_assert_eq(job.state, LAPSE_WAITING);
    cr_assert(job.due_ms >= before + 3600000 && job.due_ms <= after + 3600000);
    cr_assert_eq(job.created, 1);
    cr_assert_eq(job.tries, 10);
    cr_assert_eq(job.try_no, 0);
    cr_assert_eq(job.token, 0);
    cr_assert_eq(job.until_ms, 0);
    cr_assert_eq(job.claimed_us, 0);
    cr_assert_eq(job.body_len, 0);
    cr_assert_str_eq(job.reason, "");
    flow_end(f, "q");
}

Test(schedule, an_absolute_time_is_kept_and_a_past_one_means_now)
{
    struct flow *f = flow_start(FLOW_FULL);
    static const int64_t past[] = {1, 1000, 1700000000000};
    struct lapse_spec s = flow_job_spec("q", "future", 0);
    struct flow_job job;
    int64_t before = redis_now_ms(f->server);

    s.due = lapse_at(before + 7777777);
    cr_assert_eq(flow_spec(f, &s, &job), 0);
    cr_assert_eq(job.due_ms, before + 7777777);

    for (size_t i = 0; i < sizeof past / sizeof *past; i++) {
        s.id = NULL;
        s.due = lapse_at(past[i]);
        cr_assert_eq(flow_spec(f, &s, &job), 0);
        cr_assert(job.due_ms >= before && job.due_ms <= redis_now_ms(f->server), "at %lld",
                  (long long)past[i]);
    }

    s.id = NULL;
    s.due = lapse_in(0);
    cr_assert_eq(flow_spec(f, &s, &job), 0);
    cr_assert(job.due_ms >= before && job.due_ms <= redis_now_ms(f->server));
    flow_end(f, "q");
}

FLOW_ALL_MODES(schedule, what_is_due_at_once_runs_at_once)
{
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_listen(f, "q", &w);
    cr_assert_eq(flow_schedule(f, "q", "zero", 0, NULL), 0);
    flow_until(f, w.n_runs == 1);
    struct lapse_spec s = flow_job_spec("q", "past", 0);
    s.due = lapse_at(1);
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    flow_until(f, w.n_runs == 2 && w.settled == 2);
    cr_assert_str_eq(w.runs[1].job.id, "past");
    flow_end(f, "q");
}

static void no_sweep(struct lapse_options *opts)
{
    opts->sweep_ms = 24 * 3600 * 1000;
}

Test(schedule, a_job_due_while_a_listener_begins_does_not_wait_for_the_sweep)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);

    for (int i = 0; i < 10; i++) {
        struct flow_handler w = {.way = FLOW_DONE};
        flow_listen(f, "q", &w);
        cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
        flow_until(f, w.settled == 1);
        flow_close(f, f->l, 1000);
        struct lapse_options opts = flow_options(f);
        no_sweep(&opts);
        f->l = flow_open(f, &opts);
    }

    flow_end(f, "q");
}

Test(schedule, generated_ids_are_valid_and_differ)
{
    enum { N = 300 };
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_answer a[N];
    struct lapse_spec s = flow_job_spec("q", NULL, 3600000);

    for (int i = 0; i < N; i++) {
        a[i] = (struct flow_answer){.f = f};
        cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &a[i]), 0);
    }

    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_wait(f, &a[i]), 0);
        cr_assert_geq(strlen(a[i].job.id), 16);
        for (int k = 0; k < i; k++) {
            cr_assert_str_neq(a[i].job.id, a[k].job.id);
        }
    }

    cr_assert_eq(flow_count(f, "q", "due"), N);
    cr_assert_eq(flow_cancel(f, "q", a[7].job.id, NULL), 0);
    flow_end(f, "q");
}

Test(schedule, arguments_are_copied)
{
    struct flow *f = flow_start(FLOW_FULL);
    char queue[] = "queue";
    char id[] = "id";
    char body[] = "body";
    struct lapse_spec s = flow_job_spec(queue, id, 3600000);
    struct flow_answer a = {.f = f};
    struct flow_job job;

    s.body = body;
    s.body_len = 4;
    cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &a), 0);
    memset(queue, '!', 5), memset(id, '!', 2), memset(body, '!', 4), memset(&s, '!', sizeof s);
    cr_assert_eq(flow_wait(f, &a), 0);
    cr_assert_eq(flow_get(f, "queue", "id", &job), 0);
    cr_assert_str_eq(job.body, "body");
    flow_end(f, "queue");
}

Test(schedule, without_a_callback_it_happens_all_the_same)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_spec s = flow_job_spec("q", "a", 3600000);

    cr_assert_eq(lapse_schedule(f->l, &s, NULL, NULL), 0);
    cr_assert_eq(lapse_reschedule(f->l, "q", "a", lapse_in(7200000), 0, NULL, NULL), 0);
    cr_assert_eq(lapse_get(f->l, "q", "a", NULL, NULL), 0);
    cr_assert_eq(lapse_depth(f->l, "q", NULL, NULL), 0);
    cr_assert_eq(lapse_list(f->l, "q", LAPSE_WAITING, NULL, 10, NULL, NULL), 0);
    cr_assert_eq(flow_get(f, "q", "a", NULL), 0);
    cr_assert_eq(lapse_cancel(f->l, "q", "a", 0, NULL, NULL), 0);
    cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_ENOENT);
    flow_end(f, "q");
}

FLOW_ALL_MODES(schedule, any_bytes_up_to_a_mebibyte_reach_the_handler)
{
    enum { MAX = 1 << 20 };
    static const size_t lens[] = {0, 1, 3, 256, 65536, MAX};
    enum { N = sizeof lens / sizeof *lens };
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_DONE};
    char *body = malloc(MAX);
    char id[24];

    for (size_t i = 0; i < MAX; i++) {
        body[i] = (char)(i * 7 + i / 256);
    }

    flow_listen(f, "q", &w);

    for (int i = 0; i < N; i++) {
        snprintf(id, sizeof id, "%d", i);
        struct lapse_spec s = flow_job_spec("q", id, i % 2 ? 20 : 0);
        s.body = lens[i] ? body : NULL;
        s.body_len = lens[i];
        cr_assert_eq(flow_spec(f, &s, NULL), 0);
    }

    flow_until(f, w.settled == N);

    for (size_t i = 0; i < N; i++) {
        const struct flow_job *job = &w.runs[i].job;
        size_t len = lens[atoi(job->id)];
        cr_assert_eq(job->body_len, len);
        cr_assert_eq(memcmp(job->body, body, len), 0);
    }

    free(body);
    flow_end(f, "q");
}

FLOW_ALL_MODES(schedule, ids_are_bytes_and_no_language)
{
    static const char *const ids[] = {"-rf",   "$(x)", ";ls", "%s%n",    "*",    "?[a-z]",
                                      "\\x00", "'",    "\"",  "a:b:t:c", "`id`", "--",
                                      "+1",    "0",    "..",  "nil",     "~",    "!"};
    char longest[256];
    enum { N = sizeof ids / sizeof *ids };
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_DONE};

    memset(longest, 'i', 255), longest[255] = 0;
    flow_listen(f, "q", &w);
    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_schedule(f, "q", ids[i], 20, NULL), 0, "%s", ids[i]);
    }

    cr_assert_eq(flow_schedule(f, "q", longest, 20, NULL), 0);
    flow_until(f, w.settled == N + 1);
    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_runs_of(&w, ids[i]), 1, "%s", ids[i]);
    }

    cr_assert_eq(flow_runs_of(&w, longest), 1);
    flow_end(f, "q");
}

FLOW_ALL_MODES(schedule, forever_is_never_dead)
{
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_RETRY, .delay_ms = 0, .reason = "again"};
    struct lapse_spec s = flow_job_spec("q", "a", 0);
    struct flow_job job;

    s.tries = LAPSE_FOREVER;
    cr_assert_eq(flow_spec(f, &s, &job), 0);
    cr_assert_eq(job.tries, LAPSE_FOREVER);
    flow_listen(f, "q", &w);
    flow_until(f, w.n_runs >= 15);
    w.way = FLOW_DONE;

    size_t n = w.n_runs;
    flow_until(f, w.n_runs > n && w.settled == w.n_runs);
    for (unsigned i = 0; i < w.n_runs; i++) {
        cr_assert_eq(w.runs[i].job.try_no, i + 1);
        cr_assert_eq(w.runs[i].job.tries, LAPSE_FOREVER);
    }

    cr_assert_eq(w.errors, 0);
    flow_end(f, "q");
}

FLOW_ALL_MODES(schedule, the_last_of_its_tries_leaves_it_dead)
{
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_RETRY, .delay_ms = 0, .reason = "no luck"};
    struct lapse_spec s = flow_job_spec("q", "a", 0);
    struct flow_job job;

    s.tries = 3;
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    flow_listen(f, "q", &w);
    flow_until(f, w.settled == 3);
    cr_assert_eq(flow_get(f, "q", "a", &job), 0);
    cr_assert_eq(job.state, LAPSE_DEAD);
    cr_assert_eq(job.try_no, 3);
    cr_assert_str_eq(job.reason, "no luck");
    cr_assert_eq(w.n_runs, 3);
    flow_end(f, "q");
}

/* A courtesy, not a promise: see lapse.h. */
Test(schedule, made_up_ids_sort_in_the_order_in_which_jobs_were_scheduled)
{
    enum { N = 1000 };
    static struct flow_answer a[N];
    static struct flow_job listed[N];
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_spec s = flow_job_spec("q", NULL, 0);

    s.due = lapse_at(redis_now_ms(f->server) + 3600000);
    for (int i = 0; i < N; i++) {
        a[i] = (struct flow_answer){.f = f};
        cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &a[i]), 0);
    }

    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_wait(f, &a[i]), 0);
    }

    cr_assert_eq(flow_list(f, "q", LAPSE_WAITING, 100, listed, N), N);
    for (int i = 0; i < N; i++) {
        cr_assert_str_eq(listed[i].id, a[i].job.id, "number %d", i);
        cr_assert_eq(strlen(listed[i].id), 22);
    }

    flow_end(f, "q");
}
