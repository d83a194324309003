/* SPDX-License-Identifier: MIT */
/* Tags: by which jobs are found together. */
#include "handler.h"
#include "states.h"

enum { HOUR = 3600000 };

static const char *const two[] = {"customer-7", "a\"b\\c"};

static struct lapse_spec with_tags(const char *id, const char *const *tags, unsigned n)
{
    struct lapse_spec s = flow_job_spec("q", id, HOUR);

    s.body = "body";
    s.body_len = 4;
    s.tags = tags;
    s.n_tags = n;
    return s;
}

static void expect_two(const struct lapse_job *job)
{
    cr_assert_str_eq(lapse_job_tag(job, 0), "customer-7");
    cr_assert_str_eq(lapse_job_tag(job, 1), "a\"b\\c");
    cr_assert_null(lapse_job_tag(job, 2));
    cr_assert_null(lapse_job_tag(job, 0xffffffffu));
}

static int list_tag(struct flow *f, const char *tag, unsigned n, struct flow_answer *a)
{
    *a = (struct flow_answer){.f = f};
    int err = lapse_list_tag(f->l, "q", tag, NULL, n, flow_list_answered, a);
    return err ? err : flow_wait(f, a);
}

static void on_two(struct lapse *l, int err, const struct lapse_job *job, void *n)
{
    (void)l;
    cr_assert_eq(err, 0);
    expect_two(job);

    struct lapse_job *duplicate = lapse_job_dup(job);
    expect_two(duplicate);
    cr_assert_str_eq(lapse_job_header(duplicate, "trace"), "1");
    lapse_job_free(duplicate);
    ++*(int *)n;
}

static void on_none(struct lapse *l, int err, const struct lapse_job *job, void *n)
{
    (void)l;
    cr_assert_eq(err, 0);
    cr_assert_null(lapse_job_tag(job, 0));
    ++*(int *)n;
}

static void on_job(struct lapse *l, struct lapse_job *job, void *n)
{
    (void)l;
    expect_two(job);
    ++*(int *)n;
    lapse_done(job, NULL, NULL);
}

Test(tags, come_back_wherever_the_body_does)
{
    static const struct lapse_header header = {"trace", "1"};
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_spec s = with_tags("a", two, 2);
    int n = 0;

    s.headers = &header;
    s.n_headers = 1;
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    cr_assert_eq(lapse_get(f->l, "q", "a", on_two, &n), 0);
    flow_until(f, n == 1);

    s.on_conflict = LAPSE_KEEP;
    cr_assert_eq(lapse_schedule(f->l, &s, on_none, &n), 0);
    cr_assert_eq(lapse_reschedule(f->l, "q", "a", lapse_in(0), 0, on_none, &n), 0);
    flow_until(f, n == 3);

    cr_assert_eq(lapse_listen(f->l, "q", NULL, on_job, &n), 0);
    flow_until(f, n == 4 && flow_count(f, "q", "run") == 0);
    cr_assert_eq(redis_int(f->server, "EXISTS lapse:{q}:index"), 0);
    flow_end(f, "q");
}

Test(tags, find_a_job_in_every_state_until_it_is_gone)
{
    static const char *const tags[] = {"x"};
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_spec s = with_tags("a", tags, 1);
    struct flow_answer a;
    struct flow_claim c;

    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    cr_assert_eq(list_tag(f, "x", 9, &a), 0);
    cr_assert(a.n == 1 && a.job.state == LAPSE_WAITING && a.job.body_len == 4);

    cr_assert_eq(flow_reschedule(f, "q", "a", lapse_in(0), NULL), 0);
    cr_assert_eq(flow_claim(f, "q", 1, 0, &c), 0);
    cr_assert_eq(list_tag(f, "x", 9, &a), 0);
    cr_assert(a.n == 1 && a.job.state == LAPSE_RUNNING && a.job.try_no == 1);
    cr_assert_str_eq(lapse_job_tag(c.jobs[0], 0), "x");

    struct flow_answer failed = {.f = f};
    lapse_fail(c.jobs[0], "bad", flow_answered, &failed);
    cr_assert_eq(flow_wait(f, &failed), 0);
    cr_assert_eq(list_tag(f, "x", 9, &a), 0);
    cr_assert(a.n == 1 && a.job.state == LAPSE_DEAD && strcmp(a.job.reason, "bad") == 0);

    cr_assert_eq(flow_reschedule(f, "q", "a", lapse_in(0), NULL), 0);
    cr_assert_eq(flow_claim(f, "q", 1, 0, &c), 0);
    flow_claim_done(f, &c);
    cr_assert_eq(list_tag(f, "x", 9, &a), 0);
    cr_assert_eq(a.n, 0);
    flow_end(f, "q");
}

static struct lapse_job *last;
static size_t n_listed;
static char previous[256];

static void on_page(struct lapse *l, int err, const struct lapse_job *const *jobs, size_t n,
                    void *calls)
{
    (void)l;
    cr_assert_eq(err, 0);
    for (size_t i = 0; i < n; i++) {
        cr_assert_gt(strcmp(lapse_job_id(jobs[i]), previous), 0, "by their ids");
        strcpy(previous, lapse_job_id(jobs[i]));
    }

    lapse_job_free(last);
    last = n ? lapse_job_dup(jobs[n - 1]) : NULL;
    n_listed += n;
    ++*(int *)calls;
}

Test(tags, of_many_jobs_are_listed_in_pages_whatever_happens_between)
{
    static const char *const odd[] = {"all", "odd"};
    static char body[100000];
    struct flow *f = flow_start(FLOW_FULL);
    int calls = 0;

    for (int i = 0; i < 250; i++) {
        char id[8];
        snprintf(id, sizeof id, "j%03d", i);
        struct lapse_spec s = with_tags(id, odd, 1 + (unsigned)i % 2);
        s.body = body;
        s.body_len = i < 10 ? sizeof body : 1; /* more than one call of the script may bring */
        cr_assert_eq(flow_spec(f, &s, NULL), 0);
    }

    cr_assert_eq(lapse_list_tag(f->l, "q", "odd", NULL, 50, on_page, &calls), 0);
    flow_until(f, calls == 1);
    cr_assert_eq(n_listed, 50);
    cr_assert_str_eq(previous, "j099");
    cr_assert_eq(flow_cancel(f, "q", "j099", NULL), 0);
    cr_assert_eq(flow_reschedule(f, "q", "j101", lapse_in(2 * HOUR), NULL), 0);
    cr_assert_eq(lapse_list_tag(f->l, "q", "odd", last, 100, on_page, &calls), 0);
    flow_until(f, calls == 2);
    cr_assert_eq(n_listed, 125);

    n_listed = 0;
    *previous = '\0';
    cr_assert_eq(lapse_list_tag(f->l, "q", "all", NULL, 100, on_page, &calls), 0);
    flow_until(f, calls == 3);
    cr_assert_eq(n_listed, 100);
    lapse_job_free(last);
    flow_end(f, "q");
}

Test(tags, may_be_eight_of_64_characters)
{
    struct flow *f = flow_start(FLOW_FULL);
    char text[9][65];
    const char *tags[9];
    struct lapse_spec s = with_tags("a", tags, 8);
    struct flow_answer a;

    for (int i = 0; i < 9; i++) {
        memset(text[i], 'a' + i, 64);
        text[i][64] = '\0';
        tags[i] = text[i];
    }
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    cr_assert_eq(redis_int(f->server, "ZCARD lapse:{q}:index"), 8);
    cr_assert_eq(list_tag(f, tags[7], 1, &a), 0);
    cr_assert_eq(a.n, 1);

    s.n_tags = 9;
    cr_assert_eq(lapse_schedule(f->l, &s, NULL, NULL), LAPSE_EINVAL);
    flow_end(f, "q");
}

Test(tags, that_break_a_rule_are_einval)
{
    struct flow *f = flow_start(FLOW_FULL);
    char long_tag[66] = "";
    const char *const bad[] = {"", "a b", "{a}", "a\n", "\xc3\xa9", long_tag, NULL};
    const char *const same[] = {"a", "b", "a"};
    struct lapse_spec s;

    memset(long_tag, 'x', 65);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        s = with_tags("a", &bad[i], 1);
        cr_assert_eq(lapse_schedule(f->l, &s, NULL, NULL), LAPSE_EINVAL, "%zu", i);
        cr_assert_eq(lapse_list_tag(f->l, "q", bad[i], NULL, 1, NULL, NULL), LAPSE_EINVAL, "%zu",
                     i);
    }
    s = with_tags("a", same, 3);
    cr_assert_eq(lapse_schedule(f->l, &s, NULL, NULL), LAPSE_EINVAL, "none twice");
    s = with_tags("a", NULL, 1);
    cr_assert_eq(lapse_schedule(f->l, &s, NULL, NULL), LAPSE_EINVAL);

    cr_assert_eq(lapse_list_tag(f->l, "{q}", "a", NULL, 1, NULL, NULL), LAPSE_EINVAL);
    cr_assert_eq(lapse_list_tag(f->l, NULL, "a", NULL, 1, NULL, NULL), LAPSE_EINVAL);
    cr_assert_eq(lapse_list_tag(NULL, "q", "a", NULL, 1, NULL, NULL), LAPSE_EINVAL);
    cr_assert_eq(lapse_list_tag(f->l, "q", "a", NULL, 0, NULL, NULL), LAPSE_EINVAL);
    cr_assert_eq(lapse_list_tag(f->l, "q", "a", NULL, 101, NULL, NULL), LAPSE_EINVAL);
    cr_assert_eq(redis_int(f->server, "DBSIZE"), 0, "nothing has changed");
    flow_end(f, "q");
}

Test(tags, of_jobs_that_do_not_use_them_are_no_key)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_RETRY};

    flow_listen(f, "q", &w);
    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
    flow_until(f, w.settled >= 1);
    cr_assert_eq(redis_int(f->server, "EXISTS lapse:{q}:index"), 0);
    cr_assert_eq(redis_int(f->server, "EVAL %s 1 lapse:{q}:attempts",
                           "return string.find(redis.call('HGET', KEYS[1], 'a'), '^1 ')"),
                 1);
    flow_end(f, "q");
}

/* The bug of a lock that stays when its job is gone cannot be: who is there decides. */
Test(tags, that_have_leaked_find_nothing_and_the_next_life_of_the_id_is_found)
{
    static const char *const tags[] = {"x"};
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_spec s = with_tags("a", tags, 1);
    struct flow_answer a;

    redis_do(f->server, "ZADD lapse:{q}:index 0 %s", "t x a");
    cr_assert_eq(list_tag(f, "x", 1, &a), 0);
    cr_assert_eq(a.n, 0);
    cr_assert_eq(flow_schedule(f, "q", "a", HOUR, NULL), 0);
    cr_assert_eq(list_tag(f, "x", 1, &a), 0);
    cr_assert_eq(a.n, 0, "this life has no tag");
    s.on_conflict = LAPSE_REPLACE;
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    cr_assert_eq(list_tag(f, "x", 1, &a), 0);
    cr_assert_eq(a.n, 1);
    flow_end(f, "q");
}
