/* SPDX-License-Identifier: MIT */
/* A settle over a wire that is cut: repeated until it is answered, and it happens once. */
#include "listening.h"
#include "states.h"
#include "wire.h"

static void hold_one(struct flow *f, struct flow_handler *w, const char *id)
{
    size_t runs = w->n_runs;
    cr_assert_eq(flow_schedule(f, "q", id, 0, NULL), 0);
    flow_until(f, w->n_runs == runs + 1 && w->n_held == 1);
}

/* Nothing asks but what the test leads to: no heartbeat, no claim that an event rings for. */
static void alone(struct lapse_options *opts)
{
    opts->flags = LAPSE_NO_EVENTS;
}

/* What Redis has of it then, and takes it away. */
static void expect(struct wire *x, const char *id, enum flow_way how, int64_t not_before_ms)
{
    struct flow_job job;
    int err = flow_get(x->f, "q", id, &job);

    if (how == FLOW_DONE) {
        cr_assert_eq(err, LAPSE_ENOENT);
        return;
    }

    bool waits = how == FLOW_RETRY || how == FLOW_SNOOZE;
    cr_assert_eq(err, 0);
    cr_assert_eq(job.try_no, how == FLOW_SNOOZE ? 0 : 1);
    cr_assert_str_eq(job.reason, "the reason");
    cr_assert_eq(job.state, waits ? LAPSE_WAITING : LAPSE_DEAD);
    if (waits) {
        cr_assert(job.due_ms >= not_before_ms + 3600000 &&
                  job.due_ms <= redis_now_ms(x->f->server) + 3600000);
    }

    cr_assert_eq(flow_cancel(x->f, "q", id, NULL), 0);
}

static uint64_t settles_of(const struct lapse_stats *s, enum flow_way how)
{
    switch (how) {
    case FLOW_DONE: return s->done;
    case FLOW_RETRY: return s->retried;
    case FLOW_SNOOZE: return s->snoozed;
    default: return s->failed;
    }
}

/* Redis may have heard it or not, may have answered or not. What is cut is the settle and nothing
 * else, so the first cuts are within it and all after it has passed hit nothing. */
static void cut_at_each_byte(enum flow_way how, enum proxy_way way, long first, long step,
                             long last)
{
    struct wire x;
    unsigned lost = 0;
    unsigned n = 0;
    unsigned cuts = 0;

    wire_start(&x, FLOW_KEEP, alone);

    struct lapse *direct = x.f->l;
    x.w.delay_ms = 3600000;
    x.w.reason = "the reason";

    for (long bytes = first; bytes <= last; bytes += step, n++) {
        char id[24];
        snprintf(id, sizeof id, "%ld", bytes);
        x.f->l = x.l; /* the listener hears of it by its own schedule */
        hold_one(x.f, &x.w, id);
        flow_calm(x.f);
        x.f->l = direct;
        wire_cut(&x, way, bytes);
        int64_t before_ms = redis_now_ms(x.f->server);
        x.w.err = 0;
        flow_settle(&x.w, how);
        cr_assert(x.w.err == 0 || x.w.err == LAPSE_ELOST, "cut after %ld: %s", bytes,
                  lapse_strerror(x.w.err));
        if (x.w.err) {
            lost++;
        }
        bool cut = proxy_cut_left(x.proxy, way) < 0;
        proxy_cut_after(x.proxy, way, -1);
        expect(&x, id, how, before_ms);
        cr_assert(!cut || cuts == n, "cut after %ld bytes, but not after fewer", bytes);
        if (cut) {
            cuts++;
        }
        flow_until(x.f, flow_stats(x.l).reconnects == cuts);
    }

    cr_assert_eq(x.w.n_runs, n); /* none ran again */

    struct lapse_stats s = flow_stats(x.l);
    cr_assert_eq(s.claimed, n);
    cr_assert_eq(settles_of(&s, how) + lost, n);
    cr_assert_eq(s.gone, 0);
    /* the last ones came after all of it */
    cr_assert(cuts > 0 && cuts < n, "%u cuts of %u", cuts, n);
    wire_end(&x);
}

Test(settle, done_cut_after_each_byte_of_the_answer_happens_once)
{
    cut_at_each_byte(FLOW_DONE, PROXY_DOWN, 0, 1, 40);
}

Test(settle, retry_cut_after_each_byte_of_the_answer_happens_once)
{
    cut_at_each_byte(FLOW_RETRY, PROXY_DOWN, 0, 1, 50);
}

Test(settle, snooze_cut_after_each_byte_of_the_answer_happens_once)
{
    cut_at_each_byte(FLOW_SNOOZE, PROXY_DOWN, 0, 1, 50);
}

Test(settle, fail_cut_after_each_byte_of_the_answer_happens_once)
{
    cut_at_each_byte(FLOW_FAIL, PROXY_DOWN, 0, 1, 40);
}

Test(settle, done_cut_in_the_midst_of_the_request_happens_once)
{
    cut_at_each_byte(FLOW_DONE, PROXY_UP, 0, 11, 200);
}

Test(settle, retry_cut_in_the_midst_of_the_request_happens_once)
{
    cut_at_each_byte(FLOW_RETRY, PROXY_UP, 0, 11, 250);
}

/* What Redis did with the first attempt cannot be known: it never answered that one. */
Test(settle, a_repeat_that_hears_egone_says_elost)
{
    struct wire x;

    wire_start(&x, FLOW_KEEP, NULL);
    hold_one(x.f, &x.w, "a");
    wire_cut(&x, PROXY_DOWN, 0);
    flow_settle(&x.w, FLOW_DONE);
    cr_assert_eq(x.w.err, LAPSE_ELOST);
    cr_assert_eq(flow_get(x.f, "q", "a", NULL), LAPSE_ENOENT);
    cr_assert_eq(flow_stats(x.l).gone, 0);
    wire_end(&x);
}

Test(settle, many_at_once_over_a_cut_wire_happen_once_each)
{
    enum { N = 120 };
    struct wire x;

    wire_start(&x, FLOW_KEEP, NULL);
    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_schedule(x.f, "q", NULL, 0, NULL), 0);
    }

    flow_until(x.f, x.w.n_held == N);
    wire_cut(&x, PROXY_UP, 3000);
    flow_settle(&x.w, FLOW_DONE);
    cr_assert(x.w.err == 0 || x.w.err == LAPSE_ELOST, "%s", lapse_strerror(x.w.err));
    cr_assert_eq(flow_count(x.f, "q", "run") + flow_count(x.f, "q", "due"), 0);
    flow_each_once(&x.w, N);
    wire_end(&x);
}

/* The lease was over, and another listener has the job. */
Test(settle, what_another_holds_by_now_is_egone_and_changes_nothing)
{
    static const enum flow_way how[] = {FLOW_DONE, FLOW_RETRY, FLOW_SNOOZE, FLOW_FAIL};
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};
    struct flow_job before;
    struct flow_job after;

    flow_listen(f, "q", &w);

    for (int i = 0; i < 3; i++) {
        cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
        flow_until(f, w.n_held == 1);
        /* as a sweep and a claim of another process would, long after */
        redis_do(f->server, "ZADD lapse:{q}:run 1 a");
        redis_do(f->server, "EVAL %s 0",
                 "redis.call('ZREM', 'lapse:{q}:run', 'a') redis.call('ZADD', 'lapse:{q}:run', "
                 "99999999999999, 'a') redis.call('HSET', 'lapse:{q}:attempts', 'a', '1 77 other 2 "
                 "10 5 5 ')");
        cr_assert_eq(flow_get(f, "q", "a", &before), 0);
        w.reason = "late";
        flow_settle(&w, how[i]);
        cr_assert_eq(w.err, LAPSE_EGONE);
        cr_assert_eq(flow_get(f, "q", "a", &after), 0);
        cr_assert(flow_same(&before, &after));
        cr_assert_eq(flow_stats(f->l).gone, (unsigned)i + 1);
        redis_do(
            f->server, "EVAL %s 0",
            "for _, k in ipairs({'run', 'jobs', 'attempts'}) do redis.call('DEL', 'lapse:{q}:' .. "
            "k) end");
    }

    cr_assert_eq(w.errors, 3);
    flow_end(f, "q");
}

/* Redis lost its last writes, the counter of tokens among them: so it was before tokens went by the
 * time. */
Test(settle, what_another_holds_by_the_same_token_is_neither_settled_nor_renewed)
{
    static const enum flow_way how[] = {FLOW_DONE, FLOW_RETRY, FLOW_SNOOZE, FLOW_FAIL};
    struct lapse_options opts;
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct flow_handler w = {.way = FLOW_KEEP};
    struct flow_job before;
    struct flow_job after;

    opts = flow_options(f);
    opts.lease_ms = 3500;
    f->l = flow_open(f, &opts);
    flow_allow_log(f, "lease");
    flow_listen(f, "q", &w);

    for (int i = 0; i < 3; i++) {
        cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
        flow_until(f, w.n_held == 1);
        redis_do(
            f->server, "EVAL %s 0",
            "local h = redis.call('HGET', 'lapse:{q}:attempts', 'a') redis.call('HSET', "
            "'lapse:{q}:attempts', 'a', (h:gsub('^(1 %d+) %S+', '%1 other/1'))) redis.call('ZADD', "
            "'lapse:{q}:run', 99999999999999, 'a')");
        cr_assert_eq(flow_get(f, "q", "a", &before), 0);
        cr_assert_eq(before.token, lapse_job_token(w.held[0]));
        flow_until(f, lapse_job_until_ms(w.held[0]) == 0);
        flow_settle(&w, how[i]);
        cr_assert_eq(w.err, LAPSE_EGONE);
        cr_assert_eq(flow_get(f, "q", "a", &after), 0);
        cr_assert(flow_same(&before, &after));
        redis_do(
            f->server, "EVAL %s 0",
            "for _, k in ipairs({'run', 'jobs', 'attempts'}) do redis.call('DEL', 'lapse:{q}:' .. "
            "k) end");
    }

    flow_end(f, "q");
}
