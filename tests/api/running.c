/* SPDX-License-Identifier: MIT */
/* Cancel and reschedule of a job while it runs: LAPSE_RUNNING_TOO. */
#include "handler.h"
#include "listening.h"
#include "states.h"
#include "wire.h"

enum { HOUR = 3600000 };

/* What it hears, it does not hear by a renewal; and one that is asked for moves the end. */
static void long_lease(struct lapse_options *o)
{
    o->lease_ms = HOUR;
    o->run_ms = 2 * HOUR;
}

static void quick_lease(struct lapse_options *o)
{
    o->sweep_ms = 50;
    o->lease_ms = 3500;
}

static void short_run(struct lapse_options *o)
{
    o->sweep_ms = 50;
    o->lease_ms = 3500;
    o->run_ms = 3500;
}

/* ---- asking ---- */
static int ask_cancel(struct flow *f, const char *id, struct flow_job *out)
{
    struct flow_answer a = {.f = f};

    cr_assert_eq(lapse_cancel(f->l, "q", id, LAPSE_RUNNING_TOO, flow_answered, &a), 0);
    flow_wait(f, &a);
    *out = a.job;
    return a.err;
}

static int ask_reschedule(struct flow *f, const char *id, int64_t delay_ms, struct flow_job *out)
{
    struct flow_answer a = {.f = f};
    struct lapse_due due = lapse_in(delay_ms);

    cr_assert_eq(lapse_reschedule(f->l, "q", id, due, LAPSE_RUNNING_TOO, flow_answered, &a), 0);
    flow_wait(f, &a);
    *out = a.job;
    return a.err;
}

static void must_ask_to_stop(struct flow *f, const char *id)
{
    struct flow_job job;

    cr_assert_eq(ask_cancel(f, id, &job), 0);
    cr_assert_eq(job.state, LAPSE_RUNNING);
}

static void must_ask_again(struct flow *f, const char *id, int64_t delay_ms)
{
    struct flow_job job;

    cr_assert_eq(ask_reschedule(f, id, delay_ms, &job), 0);
    cr_assert_eq(job.state, LAPSE_RUNNING);
}

/* Another process asks. */
static struct lapse *other_process(struct flow *f)
{
    struct lapse_options opts = flow_options(f);
    return flow_open(f, &opts);
}

/* ---- hearing ---- */
struct heard {
    unsigned n;
    const struct lapse_job *job;
};

static void on_event(struct lapse *l, enum lapse_event what, const struct lapse_job *job, void *arg)
{
    struct heard *h = arg;

    cr_assert(l && what == LAPSE_EVENT_CANCEL);
    cr_assert_eq(lapse_job_cancelled(job), 1);
    h->job = job;
    h->n++;
}

static struct lapse_job *hold(struct flow *f, struct flow_handler *w, const char *id)
{
    size_t n = w->n_held;

    w->way = FLOW_KEEP;
    if (!w->f) {
        flow_listen(f, "q", w);
        if (f->mode == FLOW_FULL) {
            flow_until_listeners(f, "q", 1);
        }
    }
    cr_assert_eq(flow_schedule(f, "q", id, 0, NULL), 0);
    flow_until(f, w->n_held == n + 1);
    cr_assert_eq(lapse_job_cancelled(w->held[n]), 0);
    return w->held[n];
}

static void settle(struct flow *f, struct flow_handler *w, enum lapse_how how)
{
    struct lapse_job *job = w->held[--w->n_held];
    unsigned settled = w->settled;

    switch (how) {
    case LAPSE_HOW_DONE: lapse_done(job, flow_on_settled, w); break;
    case LAPSE_HOW_RETRY: lapse_retry(job, 0, "why", flow_on_settled, w); break;
    case LAPSE_HOW_FAIL: lapse_fail(job, "why", flow_on_settled, w); break;
    default: lapse_release(job, flow_on_settled, w);
    }

    flow_until(f, w->settled == settled + 1);
    cr_assert_eq(w->errors, 0);
}

Test(running, a_cancel_by_another_process_is_heard_at_once)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, long_lease);
    struct flow_handler w = {0};
    struct heard h = {0};
    struct lapse_job *job = hold(f, &w, "a");
    struct lapse *holder = f->l;

    lapse_on_event(holder, on_event, &h);
    f->l = other_process(f);
    must_ask_to_stop(f, "a");
    flow_until(f, h.n == 1);
    cr_assert_eq(h.job, job);
    cr_assert_eq(lapse_job_cancelled(job), 1);
    must_ask_to_stop(f, "a");
    f->l = holder;
    settle(f, &w, LAPSE_HOW_RETRY);
    cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_ENOENT);
    cr_assert_eq(h.n, 1);
    cr_assert_eq(w.n_runs, 1);
    flow_end(f, "q");
}

Test(running, a_cancel_is_heard_by_the_next_renewal_where_no_notice_comes)
{
    struct flow *f = flow_start_opts(FLOW_NO_EVENTS, NULL, quick_lease);
    struct flow_handler w = {0};
    struct heard h = {0};
    struct lapse_job *job = hold(f, &w, "a");

    lapse_on_event(f->l, on_event, &h);
    must_ask_to_stop(f, "a");
    flow_until(f, h.n == 1);
    cr_assert_eq(lapse_job_cancelled(job), 1);
    settle(f, &w, LAPSE_HOW_FAIL);
    cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_ENOENT);
    cr_assert_eq(flow_stats(f->l).failed, 0);
    flow_end(f, "q");
}

Test(running, a_job_that_was_cancelled_and_is_done_counts_as_done)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {0};

    hold(f, &w, "a");
    must_ask_to_stop(f, "a");
    settle(f, &w, LAPSE_HOW_DONE);
    cr_assert_eq(flow_stats(f->l).done, 1);
    cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_ENOENT);
    flow_end(f, "q");
}

Test(running, a_job_that_was_cancelled_is_gone_however_else_its_run_ends)
{
    static const enum lapse_how how[] = {LAPSE_HOW_RETRY, LAPSE_HOW_FAIL, LAPSE_HOW_RELEASE};

    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {0};

    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        hold(f, &w, "a");
        must_ask_to_stop(f, "a");
        settle(f, &w, how[i]);
        cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_ENOENT, "%zu", i);
    }

    struct lapse_stats stats = flow_stats(f->l);
    cr_assert_eq(stats.done + stats.retried + stats.failed, 0);
    flow_end(f, "q");
}

Test(running, a_job_that_was_cancelled_is_gone_when_its_lease_has_ended)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, short_run);
    struct flow_handler w = {0};

    flow_allow_log(f, "held for run_ms");
    struct lapse_job *job = hold(f, &w, "a");
    struct flow_job asked;
    int err = ask_cancel(f, "a", &asked);
    cr_assert(err == 0 || err == LAPSE_ENOENT); /* the lease of a busy machine */
    flow_poll(f, flow_get(f, "q", "a", NULL) == LAPSE_ENOENT);
    flow_until(f, lapse_job_until_ms(job) == 0);
    lapse_done(job, flow_on_settled, &w);
    flow_until(f, w.settled == 1);
    cr_assert_eq(w.err, LAPSE_EGONE);
    flow_end(f, "q");
}

Test(running, a_job_that_was_rescheduled_waits_again_however_its_run_ends_with_all_its_tries)
{
    static const enum lapse_how how[] = {LAPSE_HOW_DONE, LAPSE_HOW_RETRY, LAPSE_HOW_FAIL,
                                         LAPSE_HOW_RELEASE};

    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {0};
    struct flow_job job;

    for (size_t i = 0; i < sizeof how / sizeof *how; i++) {
        hold(f, &w, "a");
        int64_t before_ms = redis_now_ms(f->server);
        must_ask_again(f, "a", HOUR);
        int64_t after_ms = redis_now_ms(f->server);
        settle(f, &w, how[i]);
        cr_assert_eq(flow_get(f, "q", "a", &job), 0);
        cr_assert_eq(job.state, LAPSE_WAITING);
        cr_assert(job.due_ms >= before_ms + HOUR && job.due_ms <= after_ms + HOUR);
        cr_assert_eq(job.try_no, 0);
        cr_assert_eq(flow_cancel(f, "q", "a", NULL), 0);
    }

    struct lapse_stats stats = flow_stats(f->l);
    cr_assert_eq(stats.done, 1);
    cr_assert_eq(stats.retried, 2);
    cr_assert_eq(stats.failed, 0);
    flow_end(f, "q");
}

/* ---- schedules that meet a job which runs ---- */
static struct lapse_spec meets(enum lapse_conflict how, const char *body, int64_t delay_ms)
{
    struct lapse_spec s = flow_job_spec("q", "a", delay_ms);

    s.body = body;
    s.body_len = strlen(body);
    s.tries = 7;
    s.on_conflict = how;
    return s;
}

Test(running, a_job_that_was_scheduled_waits_again_however_its_run_ends_with_the_new_record)
{
    static const enum lapse_how ends[] = {LAPSE_HOW_DONE, LAPSE_HOW_RETRY, LAPSE_HOW_FAIL,
                                          LAPSE_HOW_RELEASE};
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, long_lease);
    struct flow_handler w = {0};
    struct flow_job job;

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        for (int how = LAPSE_EARLIER; how <= LAPSE_DEBOUNCE; how++) {
            struct lapse_spec s = meets((enum lapse_conflict)how, "new", HOUR);
            hold(f, &w, "a");
            cr_assert_eq(flow_spec(f, &s, &job), 0);
            cr_assert(job.state == LAPSE_RUNNING && job.created == 1, "%zu, %d", i, how);
            cr_assert_eq(flow_get(f, "q", "a", &job), 0);
            cr_assert(job.state == LAPSE_RUNNING && job.try_no == 1 && job.tries == 10);
            cr_assert_str_neq(job.body, "new");
            settle(f, &w, ends[i]);
            cr_assert_eq(flow_get(f, "q", "a", &job), 0);
            cr_assert(job.state == LAPSE_WAITING && job.try_no == 0 && job.tries == 7);
            cr_assert_str_eq(job.body, "new");
            cr_assert_eq(flow_cancel(f, "q", "a", NULL), 0);
        }
    }

    cr_assert_eq(flow_stats(f->l).scheduled, 2 * 4 * 3);
    flow_end(f, "q");
}

Test(running, a_job_that_was_scheduled_waits_again_when_its_lease_has_ended)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, short_run);
    struct lapse_spec s = meets(LAPSE_DEBOUNCE, "new", HOUR);
    struct flow_handler w = {0};
    struct flow_job job;

    struct lapse_job *held = hold(f, &w, "a");
    flow_allow_log(f, "the lease of job a");
    cr_assert_eq(flow_spec(f, &s, NULL), 0); /* by then its lease may be over */
    flow_poll(f, flow_get(f, "q", "a", &job) == 0 && job.state == LAPSE_WAITING);
    cr_assert_str_eq(job.body, "new");
    cr_assert_eq(job.tries, 7);
    flow_until(f, lapse_job_until_ms(held) == 0);
    flow_poll(f, redis_int(f->server, "EXISTS lapse:{q}:next") == 0); /* it is swept */
    lapse_done(held, flow_on_settled, &w);
    flow_until(f, w.settled == 1);
    cr_assert_eq(w.err, LAPSE_EGONE);
    flow_end(f, "q");
}

FLOW_ALL_MODES(running, a_job_that_was_scheduled_to_now_runs_again_with_the_new_body)
{
    struct flow *f = flow_start(mode);
    struct lapse_spec s = meets(LAPSE_DEBOUNCE, "new", 0);
    struct flow_handler w = {0};

    hold(f, &w, "a");
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    settle(f, &w, LAPSE_HOW_DONE);
    flow_until(f, w.n_held == 1);
    cr_assert_eq(w.runs[1].job.try_no, 1);
    cr_assert_str_eq(w.runs[1].job.body, "new");
    settle(f, &w, LAPSE_HOW_DONE);
    cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_ENOENT);
    flow_end(f, "q");
}

Test(running, the_later_of_cancel_and_schedule_counts)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, long_lease);
    struct lapse_spec s = meets(LAPSE_LATER, "new", HOUR);
    struct flow_handler w = {0};
    struct flow_job job;

    hold(f, &w, "a");
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    must_ask_to_stop(f, "a");
    settle(f, &w, LAPSE_HOW_RETRY);
    cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_ENOENT);

    hold(f, &w, "a");
    must_ask_to_stop(f, "a");
    cr_assert_eq(flow_spec(f, &s, &job), 0);
    cr_assert_eq(job.created, 1);
    settle(f, &w, LAPSE_HOW_DONE);
    cr_assert_eq(flow_get(f, "q", "a", &job), 0);
    cr_assert_str_eq(job.body, "new");
    flow_end(f, "q");
}

Test(running, of_10000_schedules_of_a_job_that_runs_one_begins_its_next_life)
{
    enum { MANY = 10000 };
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, long_lease);
    struct flow_answer *answers = calloc(MANY, sizeof *answers);
    struct flow_handler w = {0};
    struct flow_job job;
    int n_made = 0;

    cr_assert(answers);
    hold(f, &w, "a");
    unsigned n_before = f->n_answers;
    for (int i = 0; i < MANY; i++) {
        struct lapse_spec s = meets(LAPSE_LATER, i == 0 ? "first" : "later", HOUR);
        answers[i].f = f;
        cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &answers[i]), 0);
    }
    flow_until(f, f->n_answers == n_before + MANY);
    for (int i = 0; i < MANY; i++) {
        cr_assert(answers[i].err == 0 && answers[i].job.state == LAPSE_RUNNING);
        n_made += answers[i].job.created;
    }
    cr_assert(n_made == 1 && answers[0].job.created == 1);

    settle(f, &w, LAPSE_HOW_DONE);
    cr_assert_eq(flow_get(f, "q", "a", &job), 0);
    cr_assert_str_eq(job.body, "first");
    free(answers);
    flow_end(f, "q");
}

FLOW_ALL_MODES(running, a_job_that_was_rescheduled_to_now_runs_again)
{
    struct flow *f = flow_start(mode);
    struct flow_handler w = {0};

    hold(f, &w, "a");
    must_ask_again(f, "a", 0);
    settle(f, &w, LAPSE_HOW_DONE);
    flow_until(f, w.n_held == 1);
    cr_assert_eq(w.runs[1].job.try_no, 1);
    cr_assert_gt(w.runs[1].job.token, w.runs[0].job.token);
    settle(f, &w, LAPSE_HOW_DONE);
    cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_ENOENT);
    flow_end(f, "q");
}

Test(running, the_later_of_cancel_and_reschedule_counts)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, quick_lease);
    struct flow_handler w = {0};
    struct heard h = {0};
    struct flow_job job;

    lapse_on_event(f->l, on_event, &h);
    struct lapse_job *held = hold(f, &w, "a");
    must_ask_to_stop(f, "a");
    flow_until(f, h.n == 1);
    must_ask_again(f, "a", HOUR);
    flow_until(f, lapse_job_cancelled(held) == 0);
    must_ask_to_stop(f, "a");
    flow_until(f, h.n == 2);
    must_ask_again(f, "a", HOUR);
    settle(f, &w, LAPSE_HOW_RETRY);
    cr_assert_eq(flow_get(f, "q", "a", &job), 0);
    cr_assert_eq(job.state, LAPSE_WAITING);

    cr_assert_eq(ask_reschedule(f, "a", 0, &job), 0);
    cr_assert_eq(job.state, LAPSE_WAITING);
    flow_until(f, w.n_held == 1);
    must_ask_again(f, "a", HOUR);
    must_ask_to_stop(f, "a");
    settle(f, &w, LAPSE_HOW_RETRY);
    cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_ENOENT);
    flow_end(f, "q");
}

Test(running, a_job_that_does_not_run_is_cancelled_and_rescheduled_as_ever)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_job job;

    cr_assert_eq(ask_cancel(f, "a", &job), LAPSE_ENOENT);
    cr_assert_eq(ask_reschedule(f, "a", HOUR, &job), LAPSE_ENOENT);
    cr_assert_eq(flow_schedule(f, "q", "a", HOUR, NULL), 0);
    cr_assert_eq(ask_reschedule(f, "a", 2 * HOUR, &job), 0);
    cr_assert_eq(job.state, LAPSE_WAITING);
    cr_assert_eq(ask_cancel(f, "a", &job), 0);
    cr_assert_eq(job.state, LAPSE_WAITING);
    cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_ENOENT);
    flow_end(f, "q");
}

/* It makes the holder look, and Redis decides. */
Test(running, a_forged_notice_stops_nothing)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, long_lease);
    struct flow_handler w = {0};
    struct heard h = {0};
    struct lapse_job *job = hold(f, &w, "a");
    int64_t until_ms = lapse_job_until_ms(job);
    char text[100];

    static const char *const odd[] = {"stop ",
                                      "stop a",
                                      "stop a ",
                                      "stop a x",
                                      "stop  1",
                                      "stop a 1 b",
                                      "stop a 99999999999999999999",
                                      "stop a -1",
                                      "stop {} 1"};

    lapse_on_event(f->l, on_event, &h);
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        redis_do(f->server, "PUBLISH lapse:{q}:notice:0 %s", odd[i]);
    }
    /* the end that a renewal gives it is another one */
    flow_poll(f, redis_now_ms(f->server) > until_ms - HOUR);
    snprintf(text, sizeof text, "stop a %llu", (unsigned long long)lapse_job_token(job));
    redis_do(f->server, "PUBLISH lapse:{q}:notice:0 %s", text);
    flow_until(f, lapse_job_until_ms(job) > until_ms);
    cr_assert_eq(lapse_job_cancelled(job), 0);
    cr_assert_eq(h.n, 0);
    settle(f, &w, LAPSE_HOW_DONE);
    flow_end(f, "q");
}

Test(running, a_job_of_a_claim_is_asked_to_stop_and_settled_by_its_token)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, long_lease);
    struct lapse_settlement retry = {.how = LAPSE_HOW_RETRY};
    struct lapse_settlement renew = {.how = LAPSE_HOW_RENEW};
    struct flow_claim c;
    struct heard h = {0};
    struct flow_job job;

    lapse_on_event(f->l, on_event, &h);
    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
    cr_assert_eq(flow_claim_id(f, "q", "a", &c), 0);
    cr_assert_eq(c.n, 1);
    must_ask_to_stop(f, "a");
    uint64_t token = lapse_job_token(c.jobs[0]);
    cr_assert_eq(flow_settle_by(f, "q", "a", token, renew), 0);
    flow_until(f, h.n == 1);
    cr_assert_eq(h.job, c.jobs[0]);
    cr_assert_eq(flow_settle_by(f, "q", "a", token, retry), 0);
    cr_assert_eq(flow_get(f, "q", "a", &job), LAPSE_ENOENT);
    cr_assert_eq(flow_stats(f->l).retried, 0);
    lapse_done(c.jobs[0], NULL, NULL);
    flow_end(f, "q");
}

Test(running, get_and_list_show_what_is_asked_to_stop)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {0};
    struct flow_job job;

    hold(f, &w, "a");
    hold(f, &w, "b");
    must_ask_to_stop(f, "a");
    cr_assert_eq(flow_get(f, "q", "a", &job), 0);
    cr_assert_eq(job.cancelled, 1);
    cr_assert_eq(job.token, lapse_job_token(w.held[0]));
    cr_assert_eq(flow_get(f, "q", "b", &job), 0);
    cr_assert_eq(job.cancelled, 0);
    flow_settle(&w, FLOW_DONE);
    flow_end(f, "q");
}

Test(running, a_cancel_whose_answer_was_lost_says_the_same_when_it_is_repeated)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {0};
    struct flow_job job;

    flow_allow_log(f, "lost the connection to Redis at ");
    hold(f, &w, "a");

    struct proxy *proxy = proxy_start(f->server);
    struct lapse_options opts = flow_options(f);
    struct lapse *holder = f->l;
    opts.url = proxy->url;
    f->l = flow_open(f, &opts);
    cr_assert_eq(flow_get(f, "q", "a", NULL), 0);
    proxy_cut_after(proxy, PROXY_DOWN, 1);
    cr_assert_eq(ask_cancel(f, "a", &job), LAPSE_ELOST);
    must_ask_to_stop(f, "a");
    flow_until(f, lapse_job_cancelled(w.held[0]) == 1);

    flow_close(f, f->l, 0);
    proxy_stop(proxy);
    f->l = holder;
    settle(f, &w, LAPSE_HOW_RELEASE);
    cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_ENOENT);
    flow_end(f, "q");
}

/* ---- 10,000 cancels against settles at the same moment ---- */
enum { MANY = 10000 };

struct race {
    struct job_of_race {
        char id[8];
        struct lapse_job *held;
        bool done; /* this is how it was settled */
        unsigned runs;
        struct flow_answer cancelled;
    } job[MANY];
    unsigned n_held, n_settled, n_answers;
};

static void on_race_job(struct lapse *l, struct lapse_job *job, void *arg)
{
    struct race *r = arg;
    struct job_of_race *j = &r->job[atoi(lapse_job_id(job) + 1)];

    (void)l;
    if (j->runs++ == 0) {
        j->held = job;
        r->n_held++;
    } else {
        lapse_retry(job, 0, "again", NULL, NULL); /* until its cancel */
    }
}

static void on_race_settled(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct race *r = arg;

    (void)l, (void)job;
    cr_assert_eq(err, 0);
    r->n_settled++;
}

static void many_held(struct lapse_options *o)
{
    o->lease_ms = HOUR;
    o->max_running = MANY;
    o->max_pending = 3 * MANY;
    o->reply_ms = 60000; /* thousands are asked at once */
}

static void race_start(struct race *r, struct flow *f)
{
    for (int i = 0; i < MANY; i++) {
        struct lapse_spec s = flow_job_spec("q", r->job[i].id, 0);
        snprintf(r->job[i].id, sizeof r->job[i].id, "j%d", i);
        s.tries = LAPSE_FOREVER;
        cr_assert_eq(lapse_schedule(f->l, &s, NULL, NULL), 0);
        if (i % 1000 == 999) {
            flow_until(f, r->n_held == (unsigned)i + 1);
        }
    }
}

static void race_settle(struct race *r, struct job_of_race *j, int i)
{
    j->done = i % 3 == 0;
    if (j->done) {
        lapse_done(j->held, on_race_settled, r);
    } else if (i % 3 == 1) {
        lapse_retry(j->held, 0, "again", on_race_settled, r);
    } else {
        lapse_fail(j->held, "never", on_race_settled, r);
    }
}

/* Either it was done before its cancel, and that is ENOENT; or its cancel is answered with 0, and
 * it is gone when its run has ended. */
Test(running, each_of_ten_thousand_cancels_beside_settles_is_answered_as_it_was, .timeout = 120)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, many_held);
    struct race *r = calloc(1, sizeof *r);
    struct lapse_depth depth;
    unsigned n_asked = 0;

    cr_assert_eq(lapse_listen(f->l, "q", NULL, on_race_job, r), 0);
    race_start(r, f);

    struct lapse_options opts = flow_options(f);
    many_held(&opts);
    struct lapse *asker = flow_open(f, &opts);
    for (int i = 0; i < MANY; i++) {
        struct job_of_race *j = &r->job[i];
        int mine = (int)((unsigned)i * 7919U % MANY);
        cr_assert_eq(
            lapse_cancel(asker, "q", j->id, LAPSE_RUNNING_TOO, flow_answered, &j->cancelled), 0);
        race_settle(r, &r->job[mine], mine);
        if (i % 50 == 49) {
            ev_run(f->loop, EVRUN_NOWAIT);
        }
    }

    flow_until(f, r->n_settled == MANY);
    for (int i = 0; i < MANY; i++) {
        struct job_of_race *j = &r->job[i];
        flow_wait(f, &j->cancelled);
        cr_assert(j->cancelled.err == 0 || j->cancelled.err == LAPSE_ENOENT);
        cr_assert(j->cancelled.err == 0 || j->done, "%s: ENOENT, and it was not done", j->id);
        n_asked += j->cancelled.err == 0 && j->cancelled.job.state == LAPSE_RUNNING;
    }

    flow_poll(f, flow_depth(f, "q", &depth) == 0 && depth.waiting + depth.running == 0);
    cr_assert_eq(depth.dead, 0);
    cr_assert_gt(n_asked, 0);
    flow_end(f, "q");
    free(r);
}

/* ---- deaths ---- */
struct deaths {
    unsigned n;
    char id[16], reason[64], body[16];
    unsigned try_no;
    uint64_t token;
};

static void on_death(struct lapse *l, enum lapse_event what, const struct lapse_job *job, void *arg)
{
    struct deaths *d = arg;
    size_t len;
    const char *body = lapse_job_body(job, &len);

    cr_assert(l && what == LAPSE_EVENT_DIED);
    cr_assert_eq(lapse_job_state(job), LAPSE_DEAD);
    cr_assert_eq(lapse_job_until_ms(job), 0);
    snprintf(d->id, sizeof d->id, "%s", lapse_job_id(job));
    snprintf(d->reason, sizeof d->reason, "%s", lapse_job_reason(job));
    snprintf(d->body, sizeof d->body, "%.*s", (int)len, body);
    d->try_no = lapse_job_try(job);
    d->token = lapse_job_token(job);
    d->n++;
}

static void hold_last(struct flow *f, struct flow_handler *w, const char *id)
{
    struct lapse_spec s = flow_job_spec("q", id, 0);
    size_t n = w->n_held;

    s.tries = 1;
    s.body = "text";
    s.body_len = 4;
    w->way = FLOW_KEEP;
    if (!w->f) {
        flow_listen(f, "q", w);
    }
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    flow_until(f, w->n_held == n + 1);
}

Test(running, a_death_by_our_settle_is_heard_of_with_its_reason)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {0};
    struct deaths d = {0};

    lapse_on_event(f->l, on_death, &d);
    hold_last(f, &w, "a");
    uint64_t token = lapse_job_token(w.held[0]);
    settle(f, &w, LAPSE_HOW_RETRY);
    flow_until(f, d.n == 1);
    cr_assert(strcmp(d.id, "a") == 0 && strcmp(d.reason, "why") == 0);
    cr_assert(strcmp(d.body, "text") == 0 && d.try_no == 1 && d.token == token);

    hold(f, &w, "b");
    settle(f, &w, LAPSE_HOW_FAIL);
    flow_until(f, d.n == 2);
    cr_assert_str_eq(d.id, "b");

    hold(f, &w, "c");
    settle(f, &w, LAPSE_HOW_DONE);
    lapse_on_event(f->l, NULL, NULL);
    hold(f, &w, "d");
    settle(f, &w, LAPSE_HOW_FAIL);
    cr_assert_eq(flow_get(f, "q", "d", NULL), 0);
    cr_assert_eq(d.n, 2);
    flow_end(f, "q");
}

static void sweeps_often(struct lapse_options *o)
{
    o->sweep_ms = 1000;
}

Test(running, a_death_that_our_sweep_decides_is_heard_of)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, sweeps_often);
    struct flow_handler w = {.way = FLOW_DONE};
    struct deaths d = {0};

    lapse_on_event(f->l, on_death, &d);
    flow_put(f, "q", "a", FLOW_ENDED_LAST, NULL);
    flow_listen(f, "q", &w);
    flow_until(f, d.n == 1);
    cr_assert_str_eq(d.id, "a");
    cr_assert_str_eq(d.reason, "the lease ended");
    cr_assert_eq(flow_count(f, "q", "dead"), 1);
    cr_assert_eq(w.n_runs, 0);
    flow_end(f, "q");
}

static void close_in_event(struct lapse *l, enum lapse_event what, const struct lapse_job *job,
                           void *arg)
{
    struct flow *f = arg;

    cr_assert(what == LAPSE_EVENT_DIED && lapse_job_state(job) == LAPSE_DEAD);
    flow_forget(f, l);
    lapse_abandon(l);
    cr_assert_str_eq(lapse_job_id(job), "a"); /* it is lent until this returns */
    f->l = NULL;
}

Test(running, the_event_function_may_end_its_handle)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {0};

    lapse_on_event(f->l, close_in_event, f);
    hold_last(f, &w, "a");
    lapse_fail(w.held[--w.n_held], "why", NULL, NULL);
    flow_poll(f, f->l == NULL);
    f->l = other_process(f);
    cr_assert_eq(flow_count(f, "q", "dead"), 1);
    flow_end(f, "q");
}
