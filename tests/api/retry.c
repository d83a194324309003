/* SPDX-License-Identifier: MIT */
/* Jobs that are put back, and jobs that die. */
#include "handler.h"
#include "listening.h"

static void schedule(struct flow *f, const char *id, unsigned tries, int64_t backoff_ms,
                     int64_t backoff_max_ms)
{
    struct lapse_spec s = flow_job_spec("q", id, 0);
    s.tries = tries;
    s.backoff_ms = backoff_ms;
    s.backoff_max_ms = backoff_max_ms;
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
}

/* Runs the job that is due now and settles it; its new due time lies between the moments it
 * was settled, and the wait. */
static void put_back(struct flow_handler *w, int64_t delay_ms, int64_t least_ms, int64_t most_ms,
                     struct flow_job *out)
{
    struct flow *f = w->f;
    char id[256];

    flow_until(f, w->n_held == 1);
    strcpy(id, lapse_job_id(w->held[0]));

    int64_t before_ms = redis_now_ms(f->server);
    w->delay_ms = delay_ms;
    flow_settle(w, FLOW_RETRY);

    int64_t after_ms = redis_now_ms(f->server);
    cr_assert_eq(w->errors, 0);
    cr_assert_eq(flow_get(f, "q", id, out), 0);
    cr_assert_eq(out->state, LAPSE_WAITING);
    cr_assert_geq(out->due_ms, before_ms + least_ms, "%lld ms after it was put back",
                  (long long)(out->due_ms - before_ms));
    cr_assert_leq(out->due_ms, after_ms + most_ms, "%lld ms after it was put back",
                  (long long)(out->due_ms - after_ms));
}

Test(retry, the_backoff_doubles_from_run_to_run_up_to_its_maximum)
{
    static const int64_t wait_ms[] = {1000, 2000, 4000, 8000, 16000, 20000, 20000, 20000};
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP, .reason = "not yet"};
    struct flow_job job;

    schedule(f, "a", 20, 1000, 20000);
    flow_listen(f, "q", &w);

    for (unsigned i = 0; i < sizeof wait_ms / sizeof *wait_ms; i++) {
        put_back(&w, LAPSE_BACKOFF, wait_ms[i] - wait_ms[i] / 4, wait_ms[i], &job);
        cr_assert_eq(job.try_no, i + 1);
        cr_assert_str_eq(job.reason, "not yet");
        cr_assert_eq(flow_reschedule(f, "q", "a", lapse_in(0), NULL), 0);
    }

    flow_until(f, w.n_held == 1);
    cr_assert_eq(lapse_job_try(w.held[0]), 9);
    cr_assert_str_eq(lapse_job_reason(w.held[0]), "not yet");
    flow_settle(&w, FLOW_DONE);
    for (size_t i = 1; i < w.n_runs; i++) {
        cr_assert_gt(w.runs[i].job.token, w.runs[i - 1].job.token);
    }

    cr_assert_eq(flow_stats(f->l).retried, 8);
    flow_end(f, "q");
}

/* Of each kind the first waits; those that are spread lie within the last two. */
Test(retry, the_backoff_is_of_the_kind_that_the_schedule_says)
{
    static const int64_t list_ms[] = {7000, 90000, 8000};
    static const struct {
        enum lapse_backoff_kind kind;
        unsigned n;
        int64_t least_ms[4], most_ms[4];
    } rows[] = {
        {LAPSE_BACKOFF_FIXED, 0, {7200000, 7200000, 7200000}, {7200000, 7200000, 7200000}},
        {LAPSE_BACKOFF_LIST, 3, {7000, 90000, 8000, 8000}, {7000, 90000, 8000, 8000}},
        {LAPSE_BACKOFF_POWER2, 0, {2000, 4000, 8000, 9000}, {2000, 4000, 8000, 9000}},
        {LAPSE_BACKOFF_POWER4, 0, {15000, 16000, 31000}, {7215000, 14416000, 21631000}},
    };
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};
    struct flow_job job;

    flow_listen(f, "q", &w);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct lapse_spec s = flow_job_spec("q", "a", 0);
        s.backoff_ms = 7200000;
        s.backoff_max_ms = 9000;
        s.backoff_kind = rows[i].kind;
        s.backoff_list_ms = rows[i].n ? list_ms : NULL;
        s.n_backoff_list = rows[i].n;
        cr_assert_eq(flow_spec(f, &s, NULL), 0);
        for (size_t k = 0; k < 4 && rows[i].most_ms[k]; k++) {
            put_back(&w, LAPSE_BACKOFF, rows[i].least_ms[k], rows[i].most_ms[k], &job);
            cr_assert_eq(flow_reschedule(f, "q", "a", lapse_in(0), NULL), 0);
        }
        flow_until(f, w.n_held == 1);
        flow_settle(&w, FLOW_DONE);
    }
    flow_end(f, "q");
}

/* So that jobs that failed together do not come back together. */
Test(retry, the_backoff_is_jittered)
{
    enum { N = 40, WAIT_MS = 1000000 };
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};
    int64_t first = INT64_MAX;
    int64_t last = 0;

    for (int i = 0; i < N; i++) {
        schedule(f, NULL, 0, WAIT_MS, 0);
    }

    flow_listen(f, "q", &w);
    flow_until(f, w.n_held == N);
    w.delay_ms = LAPSE_BACKOFF;
    flow_settle(&w, FLOW_RETRY);

    for (int i = 0; i < N; i++) {
        int64_t due_ms = flow_score(f, "q", "due", w.runs[i].job.id);
        first = due_ms < first ? due_ms : first;
        last = due_ms > last ? due_ms : last;
    }

    cr_assert_gt(last - first, WAIT_MS / 100);
    cr_assert_leq(last - first, WAIT_MS / 4 + 10000);
    flow_end(f, "q");
}

/* Redis reads their records for it, and stops when it has read enough for one call. */
Test(retry, the_backoff_of_jobs_with_large_bodies_takes_several_calls_and_each_is_put_back)
{
    enum { N = 5, BYTES = 200000, WAIT_MS = 3600000 };
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP, .delay_ms = LAPSE_BACKOFF};
    char *body = calloc(1, BYTES);

    for (int i = 0; i < N; i++) {
        struct lapse_spec s = flow_job_spec("q", NULL, 0);
        s.backoff_ms = WAIT_MS;
        s.body = body;
        s.body_len = BYTES;
        cr_assert_eq(flow_spec(f, &s, NULL), 0);
    }

    flow_listen(f, "q", &w);
    flow_until(f, w.n_held == N);
    flow_settle(&w, FLOW_RETRY);
    cr_assert_eq(w.errors, 0);
    cr_assert_eq(flow_count(f, "q", "due"), N);
    cr_assert_eq(flow_stats(f->l).retried, N);
    free(body);
    flow_end(f, "q");
}

Test(retry, a_delay_of_its_own_is_kept_to_the_millisecond)
{
    static const int64_t delays_ms[] = {0, 1, 5000, 86400000, 315576000000};
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};
    struct flow_job job;

    schedule(f, "a", LAPSE_FOREVER, 0, 0);
    flow_listen(f, "q", &w);
    for (size_t i = 2; i < sizeof delays_ms / sizeof *delays_ms; i++) {
        put_back(&w, delays_ms[i], delays_ms[i], delays_ms[i], &job);
        cr_assert_eq(flow_reschedule(f, "q", "a", lapse_in(0), NULL), 0);
    }

    for (size_t i = 0; i < 2; i++) {
        flow_until(f, w.n_held == 1);
        w.delay_ms = delays_ms[i];
        flow_settle(&w, FLOW_RETRY);
    }

    flow_until(f, w.n_held == 1);
    flow_settle(&w, FLOW_DONE);
    cr_assert_eq(w.errors, 0);
    cr_assert_eq(w.runs[w.n_runs - 1].job.try_no, 6);
    flow_end(f, "q");
}

Test(retry, a_delay_of_more_than_ten_years_is_one_of_ten_years)
{
    static const int64_t ten_years_ms = 315576000000;
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};
    struct flow_job job;

    schedule(f, "a", 2, 1000, 1000);
    flow_listen(f, "q", &w);
    put_back(&w, INT64_MAX, ten_years_ms, ten_years_ms, &job);
    flow_end(f, "q");
}

FLOW_ALL_MODES(retry, it_runs_again_when_it_is_due_again_and_not_before)
{
    enum { RUNS = 5 };
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_RETRY, .delay_ms = 30, .reason = "again"};

    schedule(f, "a", RUNS, 0, 0);
    flow_listen(f, "q", &w);
    flow_until(f, w.settled == RUNS);
    cr_assert_eq(w.n_runs, RUNS);

    for (unsigned i = 0; i < RUNS; i++) {
        const struct flow_job *job = &w.runs[i].job;
        cr_assert_eq(job->try_no, i + 1);
        cr_assert_geq(job->claimed_us, job->due_ms * 1000);
        cr_assert(i == 0 || job->due_ms * 1000 + 999 >= w.runs[i - 1].job.claimed_us + 30000);
        cr_assert(flow_via_ok(mode, job->via) || job->via == LAPSE_VIA_EVENT, "via %d",
                  (int)job->via);
    }

    cr_assert_eq(flow_count(f, "q", "dead"), 1);
    flow_end(f, "q");
}

/* ---- snoozed ---- */
FLOW_ALL_MODES(retry, a_snoozed_job_runs_again_when_it_is_due_again_and_never_dies_of_it)
{
    enum { RUNS = 5 };
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_SNOOZE, .delay_ms = 30, .reason = "not paid"};

    schedule(f, "a", 1, 0, 0);
    flow_listen(f, "q", &w);
    flow_until(f, w.settled == RUNS);
    w.way = FLOW_DONE;
    flow_until(f, w.settled == RUNS + 1);
    cr_assert_eq(w.n_runs, RUNS + 1);

    for (unsigned i = 0; i < w.n_runs; i++) {
        const struct flow_job *job = &w.runs[i].job;
        cr_assert_eq(job->try_no, 1);
        cr_assert_str_eq(job->reason, i == 0 ? "" : "not paid");
        cr_assert_geq(job->claimed_us, job->due_ms * 1000);
        cr_assert(i == 0 || job->due_ms * 1000 + 999 >= w.runs[i - 1].job.claimed_us + 30000);
        cr_assert(i == 0 || job->token > w.runs[i - 1].job.token);
    }

    struct lapse_stats s = flow_stats(f->l);
    cr_assert(s.snoozed == RUNS && s.retried == 0 && s.failed == 0 && s.done == 1);
    cr_assert_eq(w.errors, 0);
    flow_end(f, "q");
}

Test(retry, a_snooze_of_a_negative_delay_is_due_at_once_and_one_of_ages_in_ten_years)
{
    static const int64_t ten_years_ms = 315576000000;
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP, .delay_ms = LAPSE_BACKOFF};
    struct flow_job job;

    schedule(f, "a", 1, 3600000, 0);
    flow_listen(f, "q", &w);
    flow_until(f, w.n_held == 1);
    flow_settle(&w, FLOW_SNOOZE);
    flow_until(f, w.n_held == 1);

    int64_t before_ms = redis_now_ms(f->server);
    w.delay_ms = INT64_MAX;
    flow_settle(&w, FLOW_SNOOZE);
    cr_assert_eq(flow_get(f, "q", "a", &job), 0);
    cr_assert_geq(job.due_ms, before_ms + ten_years_ms);
    cr_assert_leq(job.due_ms, redis_now_ms(f->server) + ten_years_ms);
    flow_end(f, "q");
}

Test(retry, a_job_whose_tries_are_used_up_is_dead_and_keeps_its_reason_and_body)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_RETRY, .delay_ms = 0, .reason = "the printer burns"};
    struct lapse_spec s = flow_job_spec("q", "a", 0);
    struct flow_job job;

    s.tries = 3;
    s.body = "page 1";
    s.body_len = 6;
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    flow_listen(f, "q", &w);
    flow_until(f, w.settled == 3);
    cr_assert_eq(w.errors, 0);
    cr_assert_eq(flow_get(f, "q", "a", &job), 0);
    cr_assert_eq(job.state, LAPSE_DEAD);
    cr_assert_eq(job.try_no, 3);
    cr_assert_eq(job.tries, 3);
    cr_assert_str_eq(job.reason, "the printer burns");
    cr_assert_str_eq(job.body, "page 1");

    struct lapse_stats st = flow_stats(f->l);
    cr_assert_eq(st.retried, 2);
    cr_assert_eq(st.failed, 1);
    flow_end(f, "q");
}

Test(retry, with_one_try_it_is_dead_after_the_first_run)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_RETRY, .delay_ms = 3600000};

    schedule(f, "a", 1, 0, 0);
    flow_listen(f, "q", &w);
    flow_until(f, w.settled == 1);
    cr_assert_eq(flow_count(f, "q", "dead"), 1);
    cr_assert_eq(flow_count(f, "q", "due"), 0);
    flow_end(f, "q");
}

Test(retry, fail_is_dead_at_once)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_FAIL, .reason = "no such address"};
    struct flow_job job;

    schedule(f, "a", LAPSE_FOREVER, 0, 0);
    flow_listen(f, "q", &w);
    flow_until(f, w.settled == 1);
    cr_assert_eq(flow_get(f, "q", "a", &job), 0);
    cr_assert_eq(job.state, LAPSE_DEAD);
    cr_assert_eq(job.try_no, 1);
    cr_assert_str_eq(job.reason, "no such address");
    cr_assert_eq(flow_stats(f->l).failed, 1);
    flow_end(f, "q");
}

Test(retry, forever_means_forever)
{
    enum { N = 60 };
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_RETRY, .delay_ms = 0};

    schedule(f, "a", LAPSE_FOREVER, 1, 1);
    flow_listen(f, "q", &w);
    flow_until(f, w.n_runs >= N);
    w.way = FLOW_DONE;
    flow_until(f, redis_left(f->server, f->space, "q") == 0);
    for (unsigned i = 0; i < w.n_runs; i++) {
        cr_assert_eq(w.runs[i].job.try_no, i + 1);
        cr_assert_eq(w.runs[i].job.tries, LAPSE_FOREVER);
    }

    cr_assert_eq(flow_count(f, "q", "dead"), 0);
    flow_end(f, "q");
}

Test(retry, a_dead_job_made_due_again_runs_with_a_larger_token)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_FAIL, .reason = "broken"};
    struct flow_job job;

    schedule(f, "a", 2, 0, 0);
    flow_listen(f, "q", &w);
    flow_until(f, w.settled == 1);
    w.way = FLOW_RETRY;
    cr_assert_eq(flow_reschedule(f, "q", "a", lapse_in(0), &job), 0);
    cr_assert_eq(job.state, LAPSE_WAITING);
    cr_assert_eq(job.try_no, 0);
    cr_assert_str_eq(job.reason, "");
    flow_until(f, w.settled == 3);
    cr_assert_eq(w.n_runs, 3);
    cr_assert_eq(w.runs[1].job.try_no, 1);
    cr_assert_str_eq(w.runs[1].job.reason, "");
    cr_assert_eq(w.runs[2].job.try_no, 2);
    cr_assert(w.runs[0].job.token < w.runs[1].job.token &&
              w.runs[1].job.token < w.runs[2].job.token);
    cr_assert_eq(flow_count(f, "q", "dead"), 1);
    flow_end(f, "q");
}

Test(retry, why_is_kept_byte_for_byte_and_cut_at_200)
{
    char long_text[301];

    memset(long_text, 'x', 300);
    long_text[300] = 0;
    long_text[199] = 'y';

    const char *const whys[] = {
        "", " ", "two  spaces, %s %d {} and a\nline", "\x01\xff caf\xc3\xa9", long_text, NULL};
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};
    schedule(f, "a", LAPSE_FOREVER, 0, 0);
    flow_listen(f, "q", &w);

    for (size_t i = 0; i < sizeof whys / sizeof *whys; i++) {
        char want[201];
        struct flow_job job;
        snprintf(want, sizeof want, "%s", whys[i] ? whys[i] : "");
        w.reason = whys[i];
        put_back(&w, 60000, 60000, 60000, &job);
        cr_assert_str_eq(job.reason, want);
        cr_assert_eq(flow_reschedule(f, "q", "a", lapse_in(0), NULL), 0);
        flow_until(f, w.n_held == 1);
        cr_assert_str_eq(lapse_job_reason(w.held[0]), want);
    }

    flow_settle(&w, FLOW_FAIL);
    flow_end(f, "q");
}

Test(retry, why_is_cut_at_the_end_of_a_character)
{
    static const struct {
        const char *character;
        size_t ascii; /* bytes before it */
        size_t kept;
    } rows[] = {
        {"\xc3\xa9", 198, 200},
        {"\xc3\xa9", 199, 199},
        {"\xe2\x82\xac", 197, 200},
        {"\xe2\x82\xac", 198, 198},
        {"\xe2\x82\xac", 199, 199},
        {"\xf0\x9f\x98\x80", 196, 200},
        {"\xf0\x9f\x98\x80", 197, 197},
        {"\xf0\x9f\x98\x80", 199, 199},
        {"\x80\x80\x80\x80\x80", 197, 200}, /* not UTF-8 */
    };
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};
    char reason[301];

    schedule(f, "a", LAPSE_FOREVER, 0, 0);
    flow_listen(f, "q", &w);

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct flow_job job;
        memset(reason, 0, sizeof reason);
        memset(reason, 'x', rows[i].ascii);
        while (strlen(reason) < 250) {
            strcat(reason, rows[i].character);
        }
        w.reason = reason;
        put_back(&w, 60000, 60000, 60000, &job);
        cr_assert_eq(strlen(job.reason), rows[i].kept, "row %zu: %zu bytes", i, strlen(job.reason));
        cr_assert_eq(strncmp(job.reason, reason, rows[i].kept), 0);
        cr_assert_eq(flow_reschedule(f, "q", "a", lapse_in(0), NULL), 0);
        flow_until(f, w.n_held == 1);
    }

    flow_settle(&w, FLOW_FAIL);
    flow_end(f, "q");
}
