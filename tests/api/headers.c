/* SPDX-License-Identifier: MIT */
/* What a job carries beside its body, in an attribute of its record. */
#include "handler.h"
#include <hiredis/hiredis.h>

enum { HOUR = 3600000 };

static const struct lapse_header two[] = {{"trace", "00-4bf9"}, {"a\"b\\c", ""}};

static struct lapse_spec with_headers(const char *id, const struct lapse_header *h, unsigned n)
{
    struct lapse_spec s = flow_job_spec("q", id, HOUR);

    s.body = "body";
    s.body_len = 4;
    s.headers = h;
    s.n_headers = n;
    return s;
}

static void expect_two(const struct lapse_job *job)
{
    size_t len;

    cr_assert_str_eq(lapse_job_header(job, "trace"), "00-4bf9");
    cr_assert_str_eq(lapse_job_header(job, "a\"b\\c"), "");
    cr_assert_null(lapse_job_header(job, "Trace"));
    cr_assert_null(lapse_job_header(job, "trac"));
    cr_assert_null(lapse_job_header(job, ""));
    cr_assert_str_eq(lapse_job_header_name(job, 0), "trace");
    cr_assert_str_eq(lapse_job_header_name(job, 1), "a\"b\\c");
    cr_assert_null(lapse_job_header_name(job, 2));
    cr_assert_null(lapse_job_header_name(job, 0xffffffffu));
    cr_assert(memcmp(lapse_job_body(job, &len), "body", 4) == 0 && len == 4);
}

static void expect_none(const struct lapse_job *job)
{
    cr_assert_null(lapse_job_header(job, "trace"));
    cr_assert_null(lapse_job_header_name(job, 0));
}

static struct lapse_job *duplicate;

static void on_two(struct lapse *l, int err, const struct lapse_job *job, void *n)
{
    (void)l;
    cr_assert_eq(err, 0);
    expect_two(job);
    duplicate = lapse_job_dup(job);
    ++*(int *)n;
}

static void on_none(struct lapse *l, int err, const struct lapse_job *job, void *n)
{
    (void)l;
    cr_assert_eq(err, 0);
    expect_none(job);
    ++*(int *)n;
}

static void on_listed(struct lapse *l, int err, const struct lapse_job *const *jobs, size_t n_jobs,
                      void *n)
{
    cr_assert_eq(n_jobs, 1);
    on_two(l, err, jobs[0], n);
    lapse_job_free(duplicate);
}

static void on_job(struct lapse *l, struct lapse_job *job, void *n)
{
    (void)l;
    expect_two(job);
    ++*(int *)n;
    lapse_done(job, NULL, NULL);
}

Test(headers, come_back_wherever_the_body_does)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_spec s = with_headers("a", two, 2);
    int n = 0;

    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    cr_assert_eq(lapse_get(f->l, "q", "a", on_two, &n), 0);
    flow_until(f, n == 1);
    expect_two(duplicate);
    lapse_job_free(duplicate);
    cr_assert_eq(lapse_list(f->l, "q", LAPSE_WAITING, NULL, 9, on_listed, &n), 0);
    flow_until(f, n == 2);

    /* as everywhere else there is no body, and these belong to it */
    s.on_conflict = LAPSE_KEEP;
    cr_assert_eq(lapse_schedule(f->l, &s, on_none, &n), 0);
    cr_assert_eq(lapse_reschedule(f->l, "q", "a", lapse_in(0), 0, on_none, &n), 0);
    flow_until(f, n == 4);

    cr_assert_eq(lapse_listen(f->l, "q", NULL, on_job, &n), 0);
    flow_until(f, n == 5);
    flow_end(f, "q");
}

Test(headers, are_in_the_hands_of_who_claims)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_spec s = with_headers("a", two, 2);
    struct flow_claim c;

    s.due = lapse_in(0);
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    cr_assert_eq(flow_claim(f, "q", 1, 0, &c), 0);
    cr_assert_eq(c.n, 1);
    expect_two(c.jobs[0]);
    flow_claim_done(f, &c);
    flow_end(f, "q");
}

static void expect_record(struct flow *f, const char *bytes, size_t len)
{
    redisReply *r = redis_cmd(f->server, "HGET lapse:{q}:jobs a");

    cr_assert_eq((size_t)r->len, len);
    cr_assert(memcmp(r->str, bytes, len) == 0);
    freeReplyObject(r);
}
#define RECORD(bytes) expect_record(f, bytes, sizeof(bytes) - 1)

Test(headers, cost_a_job_without_any_not_a_byte)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_spec s = with_headers("a", two, 0);

    s.on_conflict = LAPSE_REPLACE;
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    RECORD("\x01\x00"
           "body");
    s.headers = NULL;
    s.tries = 3;
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    RECORD("\x01\x01\x03"
           "body");

    s.headers = two;
    s.n_headers = 1;
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    RECORD("\x02\x01\x03\x0f"
           "h\x0dtrace=00-4bf9"
           "body");
    flow_end(f, "q");
}

static char *repeated(struct flow *f, char c, size_t n)
{
    char *text = flow_keep(f, "", 1, n + 1);

    memset(text, c, n);
    return text;
}

Test(headers, may_be_16_of_255_bytes_in_4_KiB)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_header h[17];
    struct lapse_spec s = with_headers("a", h, 16);
    char names[17][2];

    for (int i = 0; i < 17; i++) {
        names[i][0] = (char)('a' + i), names[i][1] = '\0';
        h[i] = (struct lapse_header){names[i], repeated(f, 'v', 255)};
    }
    /* each takes five bytes more: a letter, two for the length, the name and = */
    h[15].value = repeated(f, 'v', 4096 - 15 * 260 - 5);

    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    s.n_headers = 17;
    cr_assert_eq(lapse_schedule(f->l, &s, NULL, NULL), LAPSE_EINVAL);
    s.n_headers = 16;
    h[15].value = repeated(f, 'v', 4096 - 15 * 260 - 5 + 1);
    cr_assert_eq(lapse_schedule(f->l, &s, NULL, NULL), LAPSE_EINVAL, "4097 bytes in all");
    h[15].value = "";
    h[0].value = repeated(f, 'v', 256);
    cr_assert_eq(lapse_schedule(f->l, &s, NULL, NULL), LAPSE_EINVAL);
    flow_end(f, "q");
}

Test(headers, that_break_a_rule_are_einval)
{
    struct flow *f = flow_start(FLOW_FULL);
    const struct lapse_header bad[] = {{NULL, "v"},   {"", "v"},    {"a b", "v"},
                                       {"a=b", "v"},  {"{a}", "v"}, {"a\n", "v"},
                                       {"\x80", "v"}, {"a", NULL},  {repeated(f, 'n', 65), "v"}};
    const struct lapse_header same[] = {{"a", "1"}, {"b", "2"}, {"a", "3"}};
    struct lapse_spec s;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        s = with_headers("a", &bad[i], 1);
        cr_assert_eq(lapse_schedule(f->l, &s, NULL, NULL), LAPSE_EINVAL, "%zu", i);
    }
    s = with_headers("a", same, 3);
    cr_assert_eq(lapse_schedule(f->l, &s, NULL, NULL), LAPSE_EINVAL);
    s = with_headers("a", NULL, 1);
    cr_assert_eq(lapse_schedule(f->l, &s, NULL, NULL), LAPSE_EINVAL);

    cr_assert_eq(redis_int(f->server, "DBSIZE"), 0, "nothing has changed");
    struct lapse_header longest = {repeated(f, 'n', 64), ""};
    s = with_headers("a", &longest, 1);
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    flow_end(f, "q");
}

/* Another program may write them. */
Test(headers, of_another_form_count_as_missing)
{
    struct flow *f = flow_start(FLOW_FULL);
    static const char record[] = "\x02\x00\x15"
                                 "h\x02nohtrace"
                                 "h\x0dtrace=00-4bf9"
                                 "body";
    static const char good[] = "\x02\x00\x1b"
                               "h\x02no"
                               "h\x03=no"
                               "h\x0dtrace=00-4bf9"
                               "z\x01z"
                               "body";
    struct lapse_spec s = with_headers("a", NULL, 0);
    struct flow_claim c;

    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    redis_do(f->server, "HSET lapse:{q}:jobs a %b", record, sizeof record - 1);
    cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_EDATA);

    redis_do(f->server, "HSET lapse:{q}:jobs a %b", good, sizeof good - 1);
    cr_assert_eq(flow_reschedule(f, "q", "a", lapse_in(0), NULL), 0);
    cr_assert_eq(flow_claim(f, "q", 1, 0, &c), 0);
    cr_assert_eq(c.n, 1);
    cr_assert_str_eq(lapse_job_header_name(c.jobs[0], 0), "trace");
    cr_assert_null(lapse_job_header_name(c.jobs[0], 1));
    flow_claim_done(f, &c);
    flow_end(f, "q");
}

Test(headers, count_among_the_bytes_of_waiting_requests)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_header h = {"a", repeated(f, 'v', 250)};
    struct lapse_spec s = with_headers("a", &h, 1);
    static char body[1 << 20];
    int n = 0;

    /* 64 MiB: 63 bodies of 1 MiB, and one that leaves no room for a header */
    s.body = body;
    s.body_len = sizeof body;
    s.headers = NULL;
    s.n_headers = 0;
    s.id = NULL;
    for (int i = 0; i < 63; i++) {
        cr_assert_eq(lapse_schedule(f->l, &s, on_none, &n), 0);
    }
    s.headers = &h;
    s.n_headers = 1;
    cr_assert_eq(lapse_schedule(f->l, &s, on_none, &n), LAPSE_EFULL);
    s.n_headers = 0;
    cr_assert_eq(lapse_schedule(f->l, &s, on_none, &n), 0);
    flow_until(f, n == 64);
    flow_end(f, "q");
}
