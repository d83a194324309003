/* SPDX-License-Identifier: MIT */
/* keep_ms: what became of a job is known for a while. */
#include "handler.h"
#include "listening.h"
#include "proxy.h"
#include "states.h"

enum { HOUR = 3600000, DAY = 24 * HOUR };
static const int64_t TEN_YEARS = 315576000000;

static struct lapse_spec keep_spec(const char *id, int64_t delay_ms)
{
    struct lapse_spec s = flow_job_spec("q", id, delay_ms);

    s.body = "body";
    s.body_len = 4;
    s.keep_ms = DAY;
    return s;
}

static void must_schedule(struct flow *f, const char *id, int64_t delay_ms)
{
    struct lapse_spec s = keep_spec(id, delay_ms);

    cr_assert_eq(flow_spec(f, &s, NULL), 0);
}

struct ended {
    unsigned calls;
    int err;
    enum lapse_state state;
    enum lapse_end end;
};

static void on_ended(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct ended *e = arg;

    (void)l;
    e->calls++;
    e->err = err;
    if (job) {
        e->state = lapse_job_state(job);
        e->end = lapse_job_end(job);
    }
}

static struct ended look(struct flow *f, const char *id)
{
    struct ended e = {.calls = 0};

    cr_assert_eq(lapse_get(f->l, "q", id, on_ended, &e), 0);
    flow_until(f, e.calls == 1);
    return e;
}

static void must_have_ended(struct flow *f, const char *id, enum lapse_end end)
{
    struct ended e = look(f, id);

    cr_assert_eq(e.err, 0);
    cr_assert_eq(e.state, LAPSE_KEPT);
    cr_assert_eq(e.end, end, "%d", (int)e.end);
}

static void must_do_all(struct flow *f, struct flow_handler *w, unsigned n)
{
    flow_until(f, w->settled == n);
    cr_assert_eq(w->errors, 0);
}

FLOW_ALL_MODES(kept, is_a_job_that_is_done_with_its_token_and_without_its_body)
{
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow_job job;

    flow_listen(f, "q", &w);
    must_schedule(f, "a", 0);
    must_do_all(f, &w, 1);
    must_have_ended(f, "a", LAPSE_ENDED_DONE);
    cr_assert_eq(flow_get(f, "q", "a", &job), 0);
    cr_assert_eq(job.token, w.runs[0].job.token);
    cr_assert_eq(job.try_no, 1);
    cr_assert_eq(job.tries, 10);
    cr_assert_eq(job.due_ms, w.runs[0].job.due_ms);
    cr_assert_gt(job.until_ms, job.due_ms + DAY - 1);
    cr_assert_eq(job.body_len, 0);
    flow_end(f, "q");
}

Test(kept, is_the_body_too_if_that_is_asked_for)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_spec s = keep_spec("a", 0);
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow_job job;

    s.flags = LAPSE_KEEP_BODY;
    flow_listen(f, "q", &w);
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    must_do_all(f, &w, 1);
    cr_assert_eq(flow_get(f, "q", "a", &job), 0);
    cr_assert(job.body_len == 4 && memcmp(job.body, "body", 4) == 0);
    flow_end(f, "q");
}

Test(kept, is_a_job_that_is_done_by_its_token_from_outside)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_claim c = {.f = f};

    must_schedule(f, "a", 0);
    cr_assert_eq(flow_claim(f, "q", 1, 0, &c), 0);
    cr_assert_eq(c.n, 1);
    uint64_t token = lapse_job_token(c.jobs[0]);
    lapse_forget(c.jobs[0]);
    struct lapse_settlement how = {.how = LAPSE_HOW_DONE};
    cr_assert_eq(flow_settle_by(f, "q", "a", token, how), 0);
    must_have_ended(f, "a", LAPSE_ENDED_DONE);
    flow_end(f, "q");
}

Test(kept, is_a_job_that_is_cancelled_in_each_state_but_running)
{
    static const enum flow_state states[] = {FLOW_WAITS, FLOW_DEAD, FLOW_ENDED};
    struct flow *f = flow_start(FLOW_FULL);

    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        struct lapse_spec s = keep_spec("a", HOUR);
        struct flow_handler w = {.way = FLOW_FAIL, .reason = "no"};

        s.on_conflict = LAPSE_REPLACE;
        if (states[i] != FLOW_WAITS) {
            s.due = lapse_in(0);
        }
        cr_assert_eq(flow_spec(f, &s, NULL), 0);
        if (states[i] == FLOW_DEAD) {
            flow_listen(f, "q", &w);
            must_do_all(f, &w, 1);
            cr_assert_eq(lapse_unlisten(f->l, "q"), 0);
            cr_assert_eq(look(f, "a").state, LAPSE_DEAD, "a dead job is dead");
            cr_assert_eq(look(f, "a").end, 0);
        }
        cr_assert_eq(flow_cancel(f, "q", "a", NULL), 0);
        must_have_ended(f, "a", LAPSE_ENDED_CANCELLED);
    }

    flow_end(f, "q");
}

/* Its holder gives it back. */
Test(kept, is_a_job_that_was_asked_to_stop_and_was_not_done)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};
    struct flow_answer a = {.f = f};

    flow_listen(f, "q", &w);
    must_schedule(f, "a", 0);
    flow_until(f, w.n_held == 1);
    cr_assert_eq(lapse_cancel(f->l, "q", "a", LAPSE_RUNNING_TOO, flow_answered, &a), 0);
    cr_assert_eq(flow_wait(f, &a), 0);
    flow_settle(&w, FLOW_FAIL);
    must_have_ended(f, "a", LAPSE_ENDED_CANCELLED);
    flow_end(f, "q");
}

Test(kept, answers_a_cancel_whose_answer_was_lost_when_it_is_asked_again)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct proxy *proxy = proxy_start(f->server);
    struct lapse_options opts = flow_options(f);
    struct lapse *near = f->l;
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow_job job;

    flow_allow_log(f, "lost the connection to Redis at ");
    must_schedule(f, "a", HOUR);
    opts.url = proxy->url;
    f->l = flow_open(f, &opts);
    cr_assert_eq(flow_get(f, "q", "a", NULL), 0);
    proxy_cut_after(proxy, PROXY_DOWN, 1);
    cr_assert_eq(flow_cancel(f, "q", "a", NULL), LAPSE_ELOST);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(flow_cancel(f, "q", "a", &job), 0);
        cr_assert_eq(job.state, LAPSE_KEPT, "it was cancelled before");
    }

    flow_close(f, f->l, 0);
    proxy_stop(proxy);
    f->l = near;
    flow_listen(f, "q", &w);
    must_schedule(f, "b", 0);
    must_do_all(f, &w, 1);
    cr_assert_eq(flow_cancel(f, "q", "b", NULL), LAPSE_EENDED, "it ran");
    cr_assert_eq(lapse_outcome_unknown(LAPSE_EENDED), 0);
    flow_end(f, "q");
}

Test(kept, has_ended_for_cancel_reschedule_and_kill)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow_answer a = {.f = f};
    struct lapse_due due = lapse_in(5);

    flow_listen(f, "q", &w);
    must_schedule(f, "a", 0);
    must_do_all(f, &w, 1);
    flow_until_listeners(f, "q", 1);
    char *before = flow_dump(f);
    cr_assert_eq(flow_cancel(f, "q", "a", NULL), LAPSE_EENDED);
    cr_assert_eq(flow_reschedule(f, "q", "a", due, NULL), LAPSE_EENDED);
    cr_assert_eq(flow_kill(f, "q", "a", "no", NULL), LAPSE_EENDED);
    cr_assert_eq(lapse_reschedule(f->l, "q", "a", due, LAPSE_RUNNING_TOO, flow_answered, &a), 0);
    cr_assert_eq(flow_wait(f, &a), LAPSE_EENDED);
    char *after = flow_dump(f);
    cr_assert_str_eq(before, after);
    free(before);
    free(after);
    flow_end(f, "q");
}

Test(kept, is_a_job_that_was_skipped)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_guard g = lapse_guard_init();
    struct lapse_spec s = keep_spec("a", 0);
    struct flow_handler w = {.way = FLOW_DONE};

    g.key = "paid:{q}";
    g.op = LAPSE_EXISTS;
    s.guard = &g;
    server_allow(f->server, "%%R~*{q}*");
    flow_listen(f, "q", &w);
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    flow_until(f, flow_stats(f->l).skipped == 1);
    must_have_ended(f, "a", LAPSE_ENDED_SKIPPED);
    cr_assert_eq(flow_cancel(f, "q", "a", NULL), LAPSE_EENDED);
    flow_end(f, "q");
}

Test(kept, is_a_job_that_was_forwarded)
{
    struct flow *f = flow_start(FLOW_FULL);

    must_schedule(f, "a", 0);
    cr_assert_eq(lapse_forward(f->l, "q", "list", NULL, NULL), 0);
    flow_until(f, flow_stats(f->l).forwarded == 1);
    must_have_ended(f, "a", LAPSE_ENDED_FORWARDED);
    cr_assert_eq(redis_int(f->server, "LLEN lapse:{q}:list"), 1);
    flow_end(f, "q");
}

Test(kept, is_counted_and_listed)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_depth d;
    struct flow_job jobs[8];

    for (int i = 0; i < 7; i++) {
        char id[2] = {(char)('a' + i), '\0'};
        must_schedule(f, id, HOUR);
        cr_assert_eq(flow_cancel(f, "q", id, NULL), 0);
    }
    must_schedule(f, "w", HOUR);
    cr_assert_eq(flow_depth(f, "q", &d), 0);
    cr_assert(d.kept == 7 && d.waiting == 1 && d.running == 0 && d.dead == 0);
    cr_assert_eq(flow_list(f, "q", LAPSE_KEPT, 3, jobs, 8), 7);
    for (int i = 0; i < 7; i++) {
        cr_assert_eq(jobs[i].id[0], 'a' + i, "by until when they are kept");
        cr_assert_eq(jobs[i].state, LAPSE_KEPT);
    }
    flow_end(f, "q");
}

Test(kept, are_many_that_are_cancelled_and_are_gone_when_those_that_are_kept_are_cancelled)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_where waiting = {.state = LAPSE_WAITING};
    struct lapse_where kept = {.state = LAPSE_KEPT};
    struct flow_counts counts;
    char id[16];

    for (int i = 0; i < 250; i++) {
        snprintf(id, sizeof id, "j%d", i);
        must_schedule(f, id, HOUR);
    }
    cr_assert_eq(flow_cancel_all(f, "q", waiting, &counts), 0);
    cr_assert_eq(counts.n, 250);
    cr_assert_eq(flow_count(f, "q", "kept"), 250);
    must_have_ended(f, "j9", LAPSE_ENDED_CANCELLED);
    cr_assert_eq(flow_reschedule_all(f, "q", kept, lapse_in(0), 0, NULL), LAPSE_EINVAL);
    cr_assert_eq(flow_cancel_all(f, "q", kept, &counts), 0);
    cr_assert_eq(counts.n, 250);
    cr_assert_eq(redis_int(f->server, "EXISTS lapse:{q}:kept lapse:{q}:jobs lapse:{q}:attempts"),
                 0);
    flow_end(f, "q");
}

/* KEEP with keep_ms is a throttle: once in so long, whatever asks. */
Test(kept, is_like_dead_to_a_schedule)
{
    static const struct {
        enum lapse_conflict how;
        int err, created;
        enum lapse_state state;
    } expected[] = {
        {LAPSE_REJECT, LAPSE_EEXIST, 0, 0},   {LAPSE_KEEP, 0, 0, LAPSE_KEPT},
        {LAPSE_REPLACE, 0, 1, LAPSE_WAITING}, {LAPSE_EARLIER, 0, 1, LAPSE_WAITING},
        {LAPSE_LATER, 0, 1, LAPSE_WAITING},   {LAPSE_DEBOUNCE, 0, 1, LAPSE_WAITING},
    };
    struct flow *f = flow_start(FLOW_FULL);

    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        struct lapse_spec s = keep_spec("a", HOUR);
        struct flow_job job;

        s.on_conflict = LAPSE_REPLACE;
        cr_assert_eq(flow_spec(f, &s, NULL), 0);
        cr_assert_eq(flow_cancel(f, "q", "a", NULL), 0);
        s.on_conflict = expected[i].how;
        cr_assert_eq(flow_spec(f, &s, &job), expected[i].err);
        cr_assert_eq(job.created, expected[i].created);
        cr_assert_eq(job.state, expected[i].state);
    }
    flow_end(f, "q");
}

static void quick_sweep(struct lapse_options *o)
{
    o->sweep_ms = 10;
}

/* Also where nothing waits or runs any more. */
Test(kept, is_freed_by_a_sweep_of_a_queue_that_has_nothing_else)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, quick_sweep);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_listen(f, "q", &w);
    for (int i = 0; i < 250; i++) {
        struct lapse_spec s = keep_spec(NULL, 0);
        s.keep_ms = 1 + i % 3;
        cr_assert_eq(flow_spec(f, &s, NULL), 0);
    }
    flow_poll(f, w.settled == 250 && flow_count(f, "q", "kept") == 0);
    cr_assert_eq(redis_int(f->server, "EXISTS lapse:{q}:jobs lapse:{q}:attempts"), 0);
    flow_end(f, "q");
}

Test(kept, has_a_free_key_and_is_not_found_by_its_tags)
{
    static const char *const tags[] = {"t"};
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_spec s = keep_spec("a", HOUR);
    struct flow_answer a = {.f = f};

    s.tags = tags;
    s.n_tags = 1;
    s.unique = "k";
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    cr_assert_eq(flow_cancel(f, "q", "a", NULL), 0);
    cr_assert_eq(lapse_list_tag(f->l, "q", "t", NULL, 10, flow_list_answered, &a), 0);
    cr_assert_eq(flow_wait(f, &a), 0);
    cr_assert_eq(a.n, 0);
    s.id = "b";
    cr_assert_eq(flow_spec(f, &s, NULL), 0, "the key is free");
    flow_end(f, "q");
}

Test(kept, for_no_time_or_over_ten_years_is_einval)
{
    struct flow *f = flow_start(FLOW_FULL);
    const int64_t bad[] = {-1, INT64_MIN, INT64_MAX, TEN_YEARS + 1};
    struct lapse_spec s = keep_spec("a", HOUR);

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        s.keep_ms = bad[i];
        cr_assert_eq(lapse_schedule(f->l, &s, NULL, NULL), LAPSE_EINVAL);
    }
    s.keep_ms = 0;
    s.flags = LAPSE_KEEP_BODY;
    cr_assert_eq(lapse_schedule(f->l, &s, NULL, NULL), LAPSE_EINVAL, "what is gone has no body");
    s.keep_ms = TEN_YEARS;
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    cr_assert_eq(flow_cancel(f, "q", "a", NULL), 0);
    s.keep_ms = 1;
    s.flags = 0;
    s.on_conflict = LAPSE_REPLACE;
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    flow_end(f, "q");
}

Test(kept, is_no_job_that_does_not_ask_for_it)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_listen(f, "q", &w);
    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
    must_do_all(f, &w, 1);
    cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_ENOENT);
    cr_assert_eq(flow_cancel(f, "q", "a", NULL), LAPSE_ENOENT);
    flow_end(f, "q");
}
