/* SPDX-License-Identifier: MIT */
/* lapse_around(): what is called before and after each handler. */
#include "allocations.h"
#include "handler.h"
#include "states.h"
#include <signal.h>

enum { HOUR = 3600000 };

/* What was called, in order: "b1 b2 a2 a1". */
struct trace {
    struct flow *f;
    char text[200];
    enum lapse_how how; /* of the last after */
    int err;
    int64_t ran_us;
    unsigned n_after;
    struct lapse_job *taken;
};

struct pair {
    struct trace *trace;
    const char *name;
    void (*act)(struct trace *t, struct lapse_job *job); /* of before: it has the job then */
};

static void note(struct trace *t, const char *what, const char *name)
{
    size_t len = strlen(t->text);

    snprintf(t->text + len, sizeof t->text - len, "%s%s%s", len ? " " : "", what, name);
}

static int before(struct lapse *l, struct lapse_job *job, void *arg)
{
    struct pair *p = arg;

    (void)l;
    note(p->trace, "b", p->name);
    if (!p->act) {
        return 0;
    }
    p->act(p->trace, job);
    return 1;
}

static void after(struct lapse *l, const struct lapse_job *job, enum lapse_how how, int err,
                  int64_t ran_us, void *arg)
{
    struct pair *p = arg;
    struct trace *t = p->trace;

    (void)l;
    cr_assert_str_eq(lapse_job_id(job), "a");
    note(t, "a", p->name);
    t->how = how;
    t->err = err;
    t->ran_us = ran_us;
    t->n_after++;
}

static void on_told(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    (void)l;
    (void)err;
    (void)job;
    note(arg, "told", "");
}

static void keep(struct lapse *l, struct lapse_job *job, void *arg)
{
    struct trace *t = arg;

    (void)l;
    note(t, "handler", "");
    t->taken = job;
}

/* Two pairs, of which the first has both functions, then one function each. */
static void surround(struct lapse *l, struct pair p[4])
{
    cr_assert_eq(lapse_around(l, before, after, &p[0]), 0);
    cr_assert_eq(lapse_around(l, before, NULL, &p[1]), 0);
    cr_assert_eq(lapse_around(l, NULL, after, &p[2]), 0);
    cr_assert_eq(lapse_around(l, before, after, &p[3]), 0);
}

#define PAIRS(t)                                                 \
    {                                                            \
        {&(t), "1", NULL}, {&(t), "2", NULL}, {&(t), "3", NULL}, \
        {                                                        \
            &(t), "4", NULL                                      \
        }                                                        \
    }

static void run(struct flow *f, struct trace *t)
{
    cr_assert_eq(lapse_listen(f->l, "q", NULL, keep, t), 0);
    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
    flow_until(f, t->taken);
}

static void settle(struct lapse_job *job, enum lapse_how how, lapse_cb *fn, void *arg)
{
    switch (how) {
    case LAPSE_HOW_DONE: lapse_done(job, fn, arg); break;
    case LAPSE_HOW_RETRY: lapse_retry(job, HOUR, "why", fn, arg); break;
    case LAPSE_HOW_SNOOZE: lapse_snooze(job, HOUR, "why", fn, arg); break;
    case LAPSE_HOW_FAIL: lapse_fail(job, "why", fn, arg); break;
    default: lapse_release(job, fn, arg);
    }
}

static int done_by(struct flow *f, uint64_t token)
{
    return flow_settle_by(f, "q", "a", token, (struct lapse_settlement){.how = LAPSE_HOW_DONE});
}

FLOW_ALL_MODES(around, each_handler_they_are_called_in_order_and_back)
{
    struct flow *f = flow_start(mode);
    struct trace t = {.f = f};
    struct pair p[] = PAIRS(t);

    surround(f->l, p);
    run(f, &t);
    cr_expect_str_eq(t.text, "b1 b2 b4 handler");
    flow_spin(f, 5);
    lapse_done(t.taken, on_told, &t);
    flow_until(f, t.n_after == 3);
    cr_expect_str_eq(t.text, "b1 b2 b4 handler told a4 a3 a1");
    cr_expect_eq(t.how, LAPSE_HOW_DONE);
    cr_expect_eq(t.err, 0);
    cr_expect_geq(t.ran_us, 4000); /* the loop counts in ms */
    flow_end(f, "q");
}

Test(around, after_hears_how_the_job_was_settled)
{
    static const enum lapse_how hows[] = {LAPSE_HOW_DONE, LAPSE_HOW_RETRY, LAPSE_HOW_SNOOZE,
                                          LAPSE_HOW_FAIL, LAPSE_HOW_RELEASE};

    for (size_t i = 0; i < 2 * sizeof hows / sizeof *hows; i++) {
        struct flow *f = flow_start(FLOW_FULL);
        struct trace t = {.f = f};
        struct pair p = {&t, "1", NULL};

        cr_assert_eq(lapse_around(f->l, before, after, &p), 0);
        run(f, &t);
        cr_assert_eq(lapse_unlisten(f->l, "q"), 0); /* or what is released runs again */
        settle(t.taken, hows[i / 2], i % 2 ? on_told : NULL, &t);
        flow_until(f, t.n_after == 1);
        cr_expect_str_eq(t.text, i % 2 ? "b1 handler told a1" : "b1 handler a1");
        cr_expect_eq(t.how, hows[i / 2]);
        cr_expect_eq(t.err, 0);
        flow_end(f, "q");
    }
}

static void retry_later(struct trace *t, struct lapse_job *job)
{
    (void)t;
    lapse_retry(job, HOUR, "not yet", NULL, NULL);
}

static void take(struct trace *t, struct lapse_job *job)
{
    t->taken = job;
}

Test(around, before_may_settle_the_job_and_its_handler_is_not_called)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct trace t = {.f = f};
    struct pair p[] = {{&t, "1", NULL}, {&t, "2", retry_later}, {&t, "3", NULL}};

    for (int i = 0; i < 3; i++) {
        cr_assert_eq(lapse_around(f->l, before, after, &p[i]), 0);
    }
    cr_assert_eq(lapse_listen(f->l, "q", NULL, keep, &t), 0);
    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
    flow_until(f, t.n_after == 2);
    cr_expect_str_eq(t.text, "b1 b2 a2 a1");
    cr_expect_eq(t.how, LAPSE_HOW_RETRY);
    cr_expect_eq(flow_count(f, "q", "due"), 1);
    flow_end(f, "q");
}

Test(around, before_may_settle_the_job_later)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct trace t = {.f = f};
    struct pair p = {&t, "1", take};

    cr_assert_eq(lapse_around(f->l, before, after, &p), 0);
    run(f, &t);
    lapse_done(t.taken, NULL, NULL);
    flow_until(f, t.n_after == 1);
    cr_expect_str_eq(t.text, "b1 a1");
    cr_expect_eq(flow_count(f, "q", "run"), 0);
    flow_end(f, "q");
}

Test(around, after_hears_of_a_job_that_was_forgotten)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct trace t = {.f = f};
    struct pair p = {&t, "1", NULL};

    cr_assert_eq(lapse_around(f->l, before, after, &p), 0);
    run(f, &t);
    uint64_t token = lapse_job_token(t.taken);
    lapse_forget(t.taken);
    flow_until(f, t.n_after == 1);
    cr_expect_eq(t.how, 0);
    cr_expect_eq(t.err, 0);
    cr_expect_eq(done_by(f, token), 0);
    flow_end(f, "q");
}

Test(around, after_hears_of_a_job_that_was_settled_by_its_token)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct trace t = {.f = f};
    struct pair p = {&t, "1", NULL};

    cr_assert_eq(lapse_around(f->l, before, after, &p), 0);
    run(f, &t);
    cr_assert_eq(done_by(f, lapse_job_token(t.taken)), 0);
    cr_expect_eq(t.n_after, 0);
    lapse_done(t.taken, NULL, NULL);
    flow_until(f, t.n_after == 1);
    cr_expect_eq(t.how, LAPSE_HOW_DONE);
    cr_expect_eq(t.err, LAPSE_EGONE);
    flow_end(f, "q");
}

Test(around, after_hears_of_a_job_that_was_given_back_as_the_handle_closed)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct trace t = {.f = f};
    struct pair p[] = PAIRS(t);

    surround(f->l, p);
    run(f, &t);
    flow_close(f, f->l, 0);
    cr_expect_str_eq(t.text, "b1 b2 b4 handler a4 a3 a1");
    cr_expect_eq(t.how, LAPSE_HOW_RELEASE);
    cr_expect_eq(t.err, 0);
    lapse_job_free(t.taken);
    cr_expect_eq(redis_int(f->server, "ZCARD lapse:{q}:due"), 1);
    redis_do(f->server, "FLUSHALL");
    flow_end(f);
}

/* An answer that lies there would be read before the end of the connection is: by then the job
 * would have been given back, and nobody would know what came of it. */
static void redis_dies_unheard(struct flow *f)
{
    server_signal(f->server, SIGSTOP);
    flow_spin(f, 50); /* all that came is read */
    server_kill9(f->server);
}

/* Once as it is, and once when it was settled by its token before. */
static void close_without_redis(bool settles, int err)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct trace t = {.f = f};
    struct pair p[] = PAIRS(t);

    flow_allow_log(f, "Redis");
    surround(f->l, p);
    run(f, &t);
    if (settles) {
        cr_assert_eq(done_by(f, lapse_job_token(t.taken)), 0);
    }
    redis_dies_unheard(f);
    flow_close(f, f->l, 0);
    cr_expect_str_eq(t.text, "b1 b2 b4 handler a4 a3 a1");
    cr_expect_eq(t.how, LAPSE_HOW_RELEASE);
    cr_expect_eq(t.err, err, "%s", lapse_strerror(t.err));
    lapse_done(t.taken, on_told, &t);
    cr_expect_eq(t.n_after, 3);
    server_restart(f->server);
    redis_do(f->server, "FLUSHALL");
    flow_end(f);
}

Test(around, after_hears_of_a_job_that_could_not_be_given_back_as_the_handle_closed)
{
    close_without_redis(false, LAPSE_ECLOSED);
    close_without_redis(true, LAPSE_EGONE);
}

static int close_before(struct lapse *l, struct lapse_job *job, void *arg)
{
    struct trace *t = arg;

    (void)job;
    note(t, "close", "");
    lapse_close(l, 0, NULL, NULL);
    while (redis_int(t->f->server, "ZCARD lapse:{q}:run")) {
        ev_run(t->f->loop, EVRUN_NOWAIT);
    }
    return 0;
}

/* The handle gives the job back while before has it. */
Test(around, a_handler_does_not_begin_where_before_has_let_the_handle_close)
{
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct trace t = {.f = f};
    struct lapse_options o = flow_options(f);
    struct lapse *l;
    long live = alloc_live();

    cr_assert_eq(lapse_open(&l, f->loop, &o), 0);
    cr_assert_eq(lapse_around(l, close_before, NULL, &t), 0);
    cr_assert_eq(lapse_listen(l, "q", NULL, keep, &t), 0);
    f->l = flow_open(f, NULL);
    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
    flow_until(f, *t.text);
    flow_close(f, f->l, 0);
    flow_until(f, alloc_live() == live);
    cr_expect_str_eq(t.text, "close");
    cr_expect_eq(redis_int(f->server, "ZCARD lapse:{q}:due"), 1);
    redis_do(f->server, "FLUSHALL");
    flow_end(f);
}

Test(around, jobs_without_a_handler_nothing_is_called)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct trace t = {.f = f};
    struct pair p = {&t, "1", NULL};
    struct flow_claim c = {.f = f};

    cr_assert_eq(lapse_around(f->l, before, after, &p), 0);
    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
    cr_assert_eq(flow_claim(f, "q", 1, 0, &c), 0);
    flow_claim_done(f, &c);
    cr_expect_str_eq(t.text, "");
    flow_end(f, "q");
}

Test(around, more_than_sixteen_or_nothing_is_refused)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct trace t = {.f = f};
    struct pair p = {&t, "1", NULL};

    cr_expect_eq(lapse_around(NULL, before, after, &p), LAPSE_EINVAL);
    cr_expect_eq(lapse_around(f->l, NULL, NULL, &p), LAPSE_EINVAL);
    for (int i = 0; i < LAPSE_AROUND_MAX; i++) {
        cr_assert_eq(lapse_around(f->l, before, after, &p), 0);
    }
    cr_expect_eq(lapse_around(f->l, before, after, &p), LAPSE_EFULL);
    run(f, &t);
    lapse_close(f->l, HOUR, NULL, NULL);
    cr_expect_eq(lapse_around(f->l, before, after, &p), LAPSE_ECLOSED);
    lapse_done(t.taken, NULL, NULL);
    flow_close(f, f->l, HOUR);
    cr_expect_eq(t.n_after, (unsigned)LAPSE_AROUND_MAX);
    flow_end(f, "q");
}
