/* SPDX-License-Identifier: MIT */
/* Of jobs that are due in the same millisecond the one with the higher priority goes first. */
#include "handler.h"
#include <hiredis/hiredis.h>

enum { JOBS = 300, AHEAD_MS = 1500, HOUR = 3600000 };

static struct lapse_spec with_priority(const char *id, unsigned priority)
{
    struct lapse_spec s = flow_job_spec("q", id, HOUR);

    s.priority = priority;
    return s;
}

/* Of some number i, each from 1 to 255 before any comes again. */
static unsigned priority_of(int i)
{
    return 1 + (unsigned)(i * 97) % 255;
}

struct order {
    unsigned priorities[JOBS];
    char ids[JOBS][8];
    int n;
    int n_early;
};

static void on_job(struct lapse *l, struct lapse_job *job, void *arg)
{
    struct order *o = arg;
    (void)l;

    o->n_early += lapse_job_claimed_us(job) < lapse_job_due_ms(job) * 1000;
    o->priorities[o->n] = lapse_job_priority(job);
    strcpy(o->ids[o->n++], lapse_job_id(job));
    lapse_done(job, NULL, NULL);
}

static unsigned max_running;

static void limit_running(struct lapse_options *opts)
{
    opts->max_running = max_running;
}

static void schedule_all(struct flow *f, int64_t at_ms)
{
    unsigned n_before = f->n_answers;
    struct flow_answer answers[JOBS];

    for (int i = 0; i < JOBS; i++) {
        char id[8];
        snprintf(id, sizeof id, "j%03d", i);
        struct lapse_spec s = with_priority(id, priority_of(i));
        s.due = lapse_at(at_ms);
        answers[i] = (struct flow_answer){.f = f};
        cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &answers[i]), 0);
    }
    flow_until(f, f->n_answers == n_before + JOBS);
}

/* beanstalkd#400: priority among jobs that are due together. */
static void no_pair_is_out_of_order(unsigned most)
{
    struct order o = {.n = 0};
    int64_t at_ms;

    max_running = most;
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, limit_running);

    /* all of them are there before they are due */
    for (int64_t ahead_ms = AHEAD_MS;; ahead_ms *= 2) {
        at_ms = redis_now_ms(f->server) + ahead_ms;
        schedule_all(f, at_ms);
        if (redis_now_ms(f->server) < at_ms) {
            break;
        }
        redis_do(f->server, "FLUSHALL");
    }

    cr_assert_eq(lapse_listen(f->l, "q", NULL, on_job, &o), 0);
    flow_until(f, o.n == JOBS);
    cr_assert_eq(o.n_early, 0);
    for (int i = 0; i < JOBS; i++) {
        cr_assert_eq(o.priorities[i], priority_of(atoi(o.ids[i] + 1)));
        cr_assert(
            i == 0 || o.priorities[i - 1] > o.priorities[i] ||
                (o.priorities[i - 1] == o.priorities[i] && strcmp(o.ids[i - 1], o.ids[i]) < 0),
            "%d: %s of %u before %s of %u", i, o.ids[i - 1], o.priorities[i - 1], o.ids[i],
            o.priorities[i]);
    }
    flow_end(f, "q");
}

Test(priority, of_300_jobs_of_one_millisecond_no_pair_is_out_of_order_with_256_slots)
{
    no_pair_is_out_of_order(256);
}

Test(priority, of_300_jobs_of_one_millisecond_no_pair_is_out_of_order_with_10_slots)
{
    no_pair_is_out_of_order(10);
}

Test(priority, of_300_jobs_of_one_millisecond_no_pair_is_out_of_order_with_1_slot)
{
    no_pair_is_out_of_order(1);
}

static void expect_score(struct flow *f, const char *id, int64_t due_ms, unsigned priority)
{
    redisReply *r = redis_cmd(f->server, "ZSCORE lapse:{q}:due %s", id);

    cr_assert_eq(r->type, REDIS_REPLY_STRING, "%s waits", id);
    cr_assert(strtod(r->str, NULL) == (double)due_ms - priority / 1024.0, "%s: %s", id, r->str);
    freeReplyObject(r);
}

/* A due time is that of a job without a priority, wherever it is shown. */
Test(priority, stays_with_a_job_in_all_that_becomes_of_it)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_spec s = with_priority("a", 255);
    struct flow_answer a = {.f = f};
    struct flow_job job;
    struct flow_claim c;

    cr_assert_eq(flow_spec(f, &s, &job), 0);
    expect_score(f, "a", job.due_ms, 255);
    int64_t due_ms = job.due_ms;
    cr_assert_eq(flow_get(f, "q", "a", &job), 0);
    cr_assert_eq(job.due_ms, due_ms);

    cr_assert_eq(flow_reschedule(f, "q", "a", lapse_at(due_ms + 7), &job), 0);
    cr_assert_eq(job.due_ms, due_ms + 7);
    expect_score(f, "a", due_ms + 7, 255);

    cr_assert_eq(flow_reschedule(f, "q", "a", lapse_in(0), NULL), 0);
    cr_assert_eq(flow_claim(f, "q", 1, 0, &c), 0);
    cr_assert_eq(c.n, 1);
    cr_assert_eq(lapse_job_priority(c.jobs[0]), 255);
    lapse_retry(c.jobs[0], HOUR, "later", flow_answered, &a);
    cr_assert_eq(flow_wait(f, &a), 0);
    cr_assert_eq(flow_get(f, "q", "a", &job), 0);
    expect_score(f, "a", job.due_ms, 255);

    cr_assert_eq(flow_reschedule(f, "q", "a", lapse_in(0), NULL), 0);
    cr_assert_eq(flow_claim(f, "q", 1, 0, &c), 0);
    cr_assert_eq(c.n, 1);
    flow_claim_done(f, &c);
    flow_end(f, "q");
}

Test(priority, of_a_job_that_has_none_is_0)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_spec s = with_priority("a", 0);
    struct flow_job job;

    cr_assert_eq(flow_spec(f, &s, &job), 0);
    expect_score(f, "a", job.due_ms, 0);
    cr_assert_eq(redis_int(f->server, "HSTRLEN lapse:{q}:jobs a"), 2, "not a byte more");
    flow_end(f, "q");
}

Test(priority, of_more_than_255_is_einval)
{
    static const unsigned bad[] = {256, 0x80000000u, 0xffffffffu};
    struct flow *f = flow_start(FLOW_FULL);

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct lapse_spec s = with_priority("a", bad[i]);
        cr_assert_eq(lapse_schedule(f->l, &s, NULL, NULL), LAPSE_EINVAL, "%u", bad[i]);
    }
    cr_assert_eq(redis_int(f->server, "DBSIZE"), 0, "nothing has changed");
    flow_end(f, "q");
}

static struct lapse_job *last;
static char listed[512];

static void on_page(struct lapse *l, int err, const struct lapse_job *const *jobs, size_t n,
                    void *calls)
{
    (void)l;
    cr_assert_eq(err, 0);
    for (size_t i = 0; i < n; i++) {
        strcat(strcat(listed, lapse_job_id(jobs[i])), " ");
    }
    lapse_job_free(last);
    last = n ? lapse_job_dup(jobs[n - 1]) : NULL;
    ++*(int *)calls;
}

Test(priority, is_the_order_of_a_list_also_where_the_last_of_a_page_is_gone)
{
    static const char *const ids[] = {"z9", "a5", "b5", "c5", "a1", "a0", "b0"};
    struct flow *f = flow_start(FLOW_FULL);
    int64_t at_ms = redis_now_ms(f->server) + HOUR;
    int calls = 0;

    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        struct lapse_spec s = with_priority(ids[i], (unsigned)(ids[i][1] - '0'));
        s.due = lapse_at(at_ms);
        cr_assert_eq(flow_spec(f, &s, NULL), 0);
    }

    cr_assert_eq(lapse_list(f->l, "q", LAPSE_WAITING, NULL, 2, on_page, &calls), 0);
    flow_until(f, calls == 1);
    cr_assert_eq(lapse_list(f->l, "q", LAPSE_WAITING, last, 1, on_page, &calls), 0);
    flow_until(f, calls == 2);
    cr_assert_str_eq(listed, "z9 a5 b5 ");
    cr_assert_eq(flow_cancel(f, "q", "b5", NULL), 0);
    cr_assert_eq(lapse_list(f->l, "q", LAPSE_WAITING, last, 2, on_page, &calls), 0);
    flow_until(f, calls == 3);
    cr_assert_str_eq(listed, "z9 a5 b5 c5 a1 ");
    cr_assert_eq(lapse_list(f->l, "q", LAPSE_WAITING, last, 9, on_page, &calls), 0);
    flow_until(f, calls == 4);
    cr_assert_str_eq(listed, "z9 a5 b5 c5 a1 a0 b0 ");
    lapse_job_free(last);
    flow_end(f, "q");
}
