/* SPDX-License-Identifier: MIT */
/* Why the last runs of a job failed, where its schedule asks for that: LAPSE_KEEP_ERRORS. */
#include "handler.h"
#include "listening.h"

enum { HOUR = 3600000, SHOWN = 6 };

static struct lapse_spec keeping(const char *id, int64_t delay_ms)
{
    static const char *const tags[] = {"t"};
    struct lapse_spec s = flow_job_spec("q", id, delay_ms);

    s.flags = LAPSE_KEEP_ERRORS;
    s.tags = tags;
    s.n_tags = 1;
    s.body = "body";
    s.body_len = 4;
    return s;
}

/* ---- what is shown of one ---- */
struct shown {
    unsigned calls, n;
    char reason[SHOWN][300];
    unsigned try_no[SHOWN];
};

static void show(struct shown *out, const struct lapse_job *job)
{
    struct lapse_job *dup = lapse_job_dup(job);
    const char *reason;

    out->calls++;
    out->n = 0;
    for (; (reason = lapse_job_error(dup, out->n, NULL, &out->try_no[out->n])); out->n++) {
        cr_assert_lt(out->n, (unsigned)SHOWN - 1);
        cr_assert_str_eq(reason, lapse_job_error(job, out->n, NULL, NULL));
        strcpy(out->reason[out->n], reason);
    }
    cr_assert_str_eq(lapse_job_tag(dup, 0), "t");
    cr_assert(memcmp(lapse_job_body(dup, NULL), "body", 4) == 0);
    lapse_job_free(dup);
}

static void on_got(struct lapse *l, int err, const struct lapse_job *job, void *out)
{
    (void)l;
    cr_assert_eq(err, 0);
    show(out, job);
}

static void on_page(struct lapse *l, int err, const struct lapse_job *const *jobs, size_t n,
                    void *out)
{
    (void)l;
    cr_assert(err == 0 && n == 1);
    show(out, jobs[0]);
}

static struct shown got(struct flow *f, const char *id)
{
    struct shown out = {.calls = 0};

    cr_assert_eq(lapse_get(f->l, "q", id, on_got, &out), 0);
    flow_until(f, out.calls == 1);
    return out;
}

/* Schedules it, and ends its first run so. */
static void ended(struct flow *f, const char *id, enum flow_way way, const char *reason)
{
    struct flow_handler w = {.way = FLOW_KEEP, .reason = reason, .delay_ms = HOUR};
    struct lapse_spec s = keeping(id, 0);

    flow_listen(f, "q", &w);
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    flow_until(f, w.n_held == 1);
    flow_settle(&w, way);
    cr_assert_eq(lapse_unlisten(f->l, "q"), 0);
}

/* ---- tests ---- */
Test(errors, come_with_get_and_both_lists)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct shown out = {.calls = 0};

    ended(f, "a", FLOW_RETRY, "no \"route\"");
    out = got(f, "a");
    cr_assert(out.n == 1 && out.try_no[0] == 1);
    cr_assert_str_eq(out.reason[0], "no \"route\"");

    cr_assert_eq(lapse_list(f->l, "q", LAPSE_WAITING, NULL, 9, on_page, &out), 0);
    flow_until(f, out.calls == 2);
    cr_assert(out.n == 1 && strcmp(out.reason[0], "no \"route\"") == 0);
    cr_assert_eq(lapse_list_tag(f->l, "q", "t", NULL, 9, on_page, &out), 0);
    flow_until(f, out.calls == 3);
    cr_assert(out.n == 1 && strcmp(out.reason[0], "no \"route\"") == 0);
    flow_end(f, "q");
}

Test(errors, snoozes_leave_none)
{
    struct flow *f = flow_start(FLOW_FULL);

    ended(f, "a", FLOW_SNOOZE, "not yet");
    cr_assert_eq(got(f, "a").n, 0);
    flow_end(f, "q");
}

/* 199 letters, and one of three bytes. */
Test(errors, a_long_reason_is_cut_at_the_end_of_a_character)
{
    struct flow *f = flow_start(FLOW_FULL);
    char reason[300];

    memset(reason, 'a', 199);
    strcpy(reason + 199, "\xe2\x82\xac and more");
    ended(f, "a", FLOW_FAIL, reason);
    struct shown out = got(f, "a");
    cr_assert(out.n == 1 && strlen(out.reason[0]) == 199);
    flow_end(f, "q");
}

static void quick_lease(struct lapse_options *o)
{
    o->sweep_ms = 50;
    o->lease_ms = 3500;
    o->run_ms = 3500;
}

Test(errors, a_run_that_lost_its_lease_is_one)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, quick_lease);
    struct flow_handler w = {.way = FLOW_KEEP};
    struct lapse_spec s = keeping("a", 0);

    s.tries = 1;
    flow_allow_log(f, "held for run_ms");
    flow_listen(f, "q", &w);
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    flow_until(f, flow_count(f, "q", "dead") == 1);
    struct shown out = got(f, "a");
    cr_assert(out.n == 1 && strcmp(out.reason[0], "the lease ended") == 0);
    flow_settle(&w, FLOW_DONE);
    flow_end(f, "q");
}

Test(errors, are_gone_with_the_life)
{
    struct flow *f = flow_start(FLOW_FULL);

    ended(f, "a", FLOW_FAIL, "broken");
    cr_assert_eq(redis_int(f->server, "HLEN lapse:{q}:errors"), 1);
    cr_assert_eq(flow_reschedule(f, "q", "a", lapse_in(HOUR), NULL), 0);
    cr_assert_eq(redis_int(f->server, "HLEN lapse:{q}:errors"), 0);
    cr_assert_eq(got(f, "a").n, 0);
    flow_end(f, "q");
}

Test(errors, of_jobs_that_do_not_ask_nothing_is_stored)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_FAIL, .reason = "broken"};

    flow_listen(f, "q", &w);
    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
    flow_until(f, w.settled == 1);
    cr_assert_eq(redis_int(f->server, "EXISTS lapse:{q}:errors"), 0);
    cr_assert_eq(redis_int(f->server, "HSTRLEN lapse:{q}:jobs a"), 2, "not a byte more");
    flow_end(f, "q");
}
