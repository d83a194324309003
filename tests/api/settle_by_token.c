/* SPDX-License-Identifier: MIT */
/* lapse_settle(): a job is settled by its token, from anywhere. */
#include "handler.h"
#include "listening.h"
#include "wire.h"

enum { HOUR = 3600000 };

static const struct lapse_settlement ways[] = {
    {.how = LAPSE_HOW_DONE},   {.how = LAPSE_HOW_RETRY, .ms = HOUR},
    {.how = LAPSE_HOW_FAIL},   {.how = LAPSE_HOW_RELEASE},
    {.how = LAPSE_HOW_SNOOZE}, {.how = LAPSE_HOW_RENEW, .ms = HOUR},
};
enum { WAYS = sizeof ways / sizeof *ways };

/* Another process has claimed it and is gone: its lease has a minute. */
static uint64_t claim_elsewhere(struct flow *f, const char *id)
{
    struct lapse_options opts = flow_options(f);
    struct lapse *own = f->l;
    struct flow_claim c;

    opts.lease_ms = 60000;
    f->l = flow_open(f, &opts);
    cr_assert_eq(flow_claim_id(f, "q", id, &c), 0);
    cr_assert_eq(c.n, 1);

    uint64_t token = lapse_job_token(c.jobs[0]);
    lapse_forget(c.jobs[0]);
    flow_close(f, f->l, 0);
    f->l = own;

    return token;
}

static uint64_t put_running(struct flow *f, const char *id)
{
    cr_assert_eq(flow_schedule(f, "q", id, 0, NULL), 0);
    return claim_elsewhere(f, id);
}

Test(settle_by_token, done_ends_a_job_that_another_process_claimed)
{
    struct flow *f = flow_start(FLOW_FULL);
    uint64_t token = put_running(f, "a");

    cr_assert_eq(flow_settle_by(f, "q", "a", token, ways[0]), 0);
    cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_ENOENT);
    cr_assert_eq(flow_stats(f->l).done, 1);
    flow_end(f, "q");
}

Test(settle_by_token, retry_puts_it_back_after_its_delay_with_its_reason)
{
    struct flow *f = flow_start(FLOW_FULL);
    uint64_t token = put_running(f, "a");
    struct lapse_settlement how = {.how = LAPSE_HOW_RETRY, .ms = HOUR, .reason = "no answer"};
    struct flow_job job;

    int64_t before_ms = redis_now_ms(f->server);
    cr_assert_eq(flow_settle_by(f, "q", "a", token, how), 0);
    cr_assert_eq(flow_get(f, "q", "a", &job), 0);
    cr_assert_eq(job.state, LAPSE_WAITING);
    cr_assert(job.due_ms >= before_ms + HOUR && job.due_ms <= redis_now_ms(f->server) + HOUR);
    cr_assert_eq(job.try_no, 1);
    cr_assert_str_eq(job.reason, "no answer");
    cr_assert_eq(flow_stats(f->l).retried, 1);
    flow_end(f, "q");
}

Test(settle_by_token, retry_without_a_delay_waits_for_the_backoff_of_the_job)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_spec s = flow_job_spec("q", "a", 0);
    struct lapse_settlement how = {.how = LAPSE_HOW_RETRY, .ms = LAPSE_BACKOFF};
    struct flow_job job;

    s.backoff_ms = HOUR;
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    uint64_t token = claim_elsewhere(f, "a");
    int64_t before_ms = redis_now_ms(f->server);
    cr_assert_eq(flow_settle_by(f, "q", "a", token, how), 0);
    cr_assert_eq(flow_get(f, "q", "a", &job), 0);
    cr_assert_geq(job.due_ms, before_ms + HOUR - HOUR / 4);
    cr_assert_leq(job.due_ms, redis_now_ms(f->server) + HOUR);
    flow_end(f, "q");
}

Test(settle_by_token, retry_of_the_last_try_and_fail_make_it_dead)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_spec s = flow_job_spec("q", "a", 0);
    struct lapse_settlement retry = {.how = LAPSE_HOW_RETRY, .reason = "once is enough"};
    struct lapse_settlement fail = {.how = LAPSE_HOW_FAIL, .reason = "never"};
    struct flow_job job;

    s.tries = 1;
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    cr_assert_eq(flow_settle_by(f, "q", "a", claim_elsewhere(f, "a"), retry), 0);
    cr_assert_eq(flow_settle_by(f, "q", "b", put_running(f, "b"), fail), 0);
    cr_assert_eq(flow_get(f, "q", "a", &job), 0);
    cr_assert_eq(job.state, LAPSE_DEAD);
    cr_assert_str_eq(job.reason, "once is enough");
    cr_assert_eq(flow_get(f, "q", "b", &job), 0);
    cr_assert_eq(job.state, LAPSE_DEAD);
    cr_assert_str_eq(job.reason, "never");
    cr_assert_eq(flow_stats(f->l).failed, 2);
    flow_end(f, "q");
}

Test(settle_by_token, snooze_puts_it_back_after_its_delay_and_counts_no_try)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_spec s = flow_job_spec("q", "a", 0);
    struct lapse_settlement how = {.how = LAPSE_HOW_SNOOZE, .ms = HOUR, .reason = "not paid"};
    struct flow_job job;

    s.tries = 1;
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    for (unsigned i = 1; i <= 3; i++) {
        int64_t before_ms = redis_now_ms(f->server);
        cr_assert_eq(flow_settle_by(f, "q", "a", claim_elsewhere(f, "a"), how), 0);
        cr_assert_eq(flow_get(f, "q", "a", &job), 0);
        cr_assert(job.state == LAPSE_WAITING && job.try_no == 0);
        cr_assert_geq(job.due_ms, before_ms + HOUR);
        cr_assert_str_eq(job.reason, "not paid");
        cr_assert_eq(flow_stats(f->l).snoozed, i);
        cr_assert_eq(flow_reschedule(f, "q", "a", lapse_in(0), NULL), 0);
    }
    cr_assert_eq(flow_stats(f->l).retried, 0);
    flow_end(f, "q");
}

Test(settle_by_token, release_gives_it_back_unbegun)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_job before;
    struct flow_job job;

    cr_assert_eq(flow_schedule(f, "q", "a", 0, &before), 0);
    cr_assert_eq(flow_settle_by(f, "q", "a", claim_elsewhere(f, "a"), ways[3]), 0);
    cr_assert_eq(flow_get(f, "q", "a", &job), 0);
    cr_assert(job.state == LAPSE_WAITING && job.due_ms == before.due_ms && job.try_no == 0);
    flow_end(f, "q");
}

Test(settle_by_token, renew_makes_its_lease_longer_or_shorter)
{
    struct flow *f = flow_start(FLOW_FULL);
    uint64_t token = put_running(f, "a");
    static const int64_t lengths_ms[] = {HOUR, 0, 5000};

    for (size_t i = 0; i < sizeof lengths_ms / sizeof *lengths_ms; i++) {
        struct lapse_settlement how = {.how = LAPSE_HOW_RENEW, .ms = lengths_ms[i]};
        int64_t length_ms = lengths_ms[i] ? lengths_ms[i] : 30000;
        int64_t before_ms = redis_now_ms(f->server);
        cr_assert_eq(flow_settle_by(f, "q", "a", token, how), 0);
        int64_t until_ms = flow_score(f, "q", "run", "a");
        cr_assert(until_ms >= before_ms + length_ms &&
                  until_ms <= redis_now_ms(f->server) + length_ms);
    }

    cr_assert_eq(flow_settle_by(f, "q", "a", token, ways[0]), 0);
    flow_end(f, "q");
}

Test(settle_by_token, a_stale_token_is_egone_and_changes_nothing_at_each_of_the_six)
{
    struct flow *f = flow_start(FLOW_FULL);
    uint64_t token = put_running(f, "a");
    uint64_t waits = put_running(f, "w");

    cr_assert_eq(flow_settle_by(f, "q", "w", waits, ways[3]), 0);
    for (size_t i = 0; i < WAYS; i++) {
        char *before = flow_dump(f);
        cr_assert_eq(flow_settle_by(f, "q", "a", token - 1, ways[i]), LAPSE_EGONE);
        cr_assert_eq(flow_settle_by(f, "q", "a", token + 1, ways[i]), LAPSE_EGONE);
        cr_assert_eq(flow_settle_by(f, "q", "w", waits, ways[i]), LAPSE_EGONE);
        cr_assert_eq(flow_settle_by(f, "q", "none", token, ways[i]), LAPSE_EGONE);
        char *after = flow_dump(f);
        cr_assert_str_eq(before, after);
        free(before);
        free(after);
    }

    cr_assert_eq(flow_stats(f->l).gone, 4 * WAYS);
    cr_assert_eq(flow_settle_by(f, "q", "a", token, ways[0]), 0);
    cr_assert_eq(flow_settle_by(f, "q", "a", token, ways[0]), LAPSE_EGONE, "settled twice");
    flow_end(f, "q");
}

Test(settle_by_token, many_of_one_turn_travel_together_and_take_effect_in_their_order)
{
    enum { N = 60 };
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_answer answers[2 * N];
    struct lapse_settlement renew = {.size = sizeof renew, .how = LAPSE_HOW_RENEW, .ms = HOUR};
    struct lapse_settlement done = {.size = sizeof done, .how = LAPSE_HOW_DONE};
    struct flow_claim c;
    char ids[N][16];
    uint64_t tokens[N];

    for (int i = 0; i < N; i++) {
        snprintf(ids[i], sizeof ids[i], "j%d", i);
        cr_assert_eq(flow_schedule(f, "q", ids[i], 0, NULL), 0);
        cr_assert_eq(flow_claim_id(f, "q", ids[i], &c), 0);
        tokens[i] = lapse_job_token(c.jobs[0]);
        lapse_forget(c.jobs[0]);
    }

    long long scripts = flow_scripts(f);
    for (int i = 0; i < N; i++) {
        answers[i] = (struct flow_answer){.f = f};
        answers[N + i] = (struct flow_answer){.f = f};
        cr_assert_eq(lapse_settle(f->l, "q", ids[i], tokens[i], &done, flow_answered, &answers[i]),
                     0);
        cr_assert_eq(
            lapse_settle(f->l, "q", ids[i], tokens[i], &renew, flow_answered, &answers[N + i]), 0);
    }

    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_wait(f, &answers[i]), 0);
        cr_assert_eq(flow_wait(f, &answers[N + i]), LAPSE_EGONE, "it was done before");
    }

    cr_assert_leq(flow_scripts(f) - scripts, 4);
    flow_end(f, "q");
}

/* ---- of a job that this process holds ---- */
Test(settle_by_token, of_a_job_that_this_handle_holds_ends_the_hold)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};

    flow_listen(f, "q", &w);
    for (size_t i = 0; i < WAYS - 1; i++) {
        cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
        flow_until(f, w.n_held == 1);
        struct lapse_job *job = w.held[0];
        cr_assert_eq(flow_settle_by(f, "q", "a", lapse_job_token(job), ways[i]), 0);
        cr_assert_str_eq(lapse_job_id(job), "a", "it can be read");
        cr_assert_eq(lapse_job_until_ms(job), 0);

        w.n_held = 0;
        if (i >= 3) { /* it is due at once, and runs again */
            flow_until(f, w.n_held == 1);
            lapse_done(w.held[0], NULL, NULL);
            w.n_held = 0;
        }
        unsigned settled = w.settled;
        lapse_done(job, flow_on_settled, &w);
        flow_until(f, w.settled == settled + 1);
        cr_assert_eq(w.err, LAPSE_EGONE);
        flow_until(f, redis_left(f->server, f->space, "q") == (i == 1));
        if (i == 1 || i == 2) {
            cr_assert_eq(flow_cancel(f, "q", "a", NULL), 0);
        }
    }

    cr_assert_eq(flow_stats(f->l).gone, WAYS - 1);
    flow_end(f, "q");
}

static void one_slot(struct lapse_options *opts)
{
    opts->max_running = 1;
}

Test(settle_by_token, of_a_held_job_frees_its_slot_before_the_handler_lets_it_go)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, one_slot);
    struct flow_handler w = {.way = FLOW_KEEP};

    flow_listen(f, "q", &w);
    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
    cr_assert_eq(flow_schedule(f, "q", "b", 0, NULL), 0);
    flow_until(f, w.n_held == 1);
    cr_assert_eq(
        flow_settle_by(f, "q", lapse_job_id(w.held[0]), lapse_job_token(w.held[0]), ways[0]), 0);
    flow_until(f, w.n_held == 2);
    lapse_done(w.held[0], NULL, NULL);
    lapse_done(w.held[1], NULL, NULL);
    flow_until(f, redis_left(f->server, f->space, "q") == 0);
    flow_end(f, "q");
}

struct settler {
    struct flow_handler w; /* first: flow_on_job() gets it */
    unsigned n_settled;
};

static void count_settled(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct settler *s = arg;

    (void)l;
    (void)job;
    cr_assert_eq(err, 0);
    s->n_settled++;
}

/* The first handler that runs settles all other jobs, which the same claim has brought. It asks for
 * their tokens without turning the loop. */
static void settle_others(struct lapse *l, struct lapse_job *job, void *arg)
{
    static const struct lapse_settlement done = {.size = sizeof done, .how = LAPSE_HOW_DONE};
    struct settler *s = arg;

    flow_on_job(l, job, &s->w);
    if (s->w.n_runs > 1) {
        redis_do(s->w.f->server, "PING"); /* it takes as long as Redis to answer */
        return;
    }

    char *all =
        redis_str(s->w.f->server, "EVAL %s 0",
                  "local out = '' local all = redis.call('HGETALL', 'lapse:{q}:attempts') "
                  "for i = 1, #all, 2 do out = out .. all[i] .. ' ' .. string.match(all[i + "
                  "1], '^1 (%d+)') .. ' ' end return out");
    char id[64];
    unsigned long long token;
    int len;

    for (const char *at = all; sscanf(at, "%63s %llu %n", id, &token, &len) == 2; at += len) {
        if (strcmp(id, lapse_job_id(job)) != 0) {
            cr_assert_eq(lapse_settle(l, "q", id, token, &done, count_settled, s), 0);
        }
    }
    free(all);
}

Test(settle_by_token, of_a_job_whose_handler_has_not_begun_keeps_it_from_running)
{
    enum { N = 90 };
    struct flow *f = flow_start(FLOW_FULL);
    struct settler s = {.w = {.f = f, .way = FLOW_KEEP}};

    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    }

    cr_assert_eq(lapse_listen(f->l, "q", NULL, settle_others, &s), 0);
    flow_until(f, s.n_settled == N - 1);
    cr_assert_lt(s.w.n_runs, N);
    flow_settle(&s.w, FLOW_DONE);
    cr_assert_eq(s.w.errors, s.w.n_runs - 1, "the first was its own to settle");
    cr_assert_eq(redis_left(f->server, f->space, "q"), 0);
    flow_end(f, "q");
}

Test(settle_by_token, renew_of_a_held_job_is_known_to_its_lease)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};

    flow_hold(f, &w, "a");
    cr_assert_eq(flow_settle_by(f, "q", "a", lapse_job_token(w.held[0]), ways[5]), 0);
    cr_assert_eq(lapse_job_until_ms(w.held[0]), flow_score(f, "q", "run", "a"));
    cr_assert_gt(lapse_job_until_ms(w.held[0]), redis_now_ms(f->server) + HOUR - 60000);
    flow_settle(&w, FLOW_DONE);
    cr_assert_eq(w.errors, 0);
    flow_end(f, "q");
}

Test(settle_by_token, of_a_held_job_that_is_never_let_go_is_freed_with_its_handle)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};

    flow_hold(f, &w, "a");
    cr_assert_eq(flow_settle_by(f, "q", "a", lapse_job_token(w.held[0]), ways[0]), 0);
    flow_close(f, f->l, 60000); /* nothing is left to wait for */
    lapse_done(w.held[0], NULL, NULL);
    f->l = flow_open(f, NULL);
    flow_end(f, "q");
}

Test(settle_by_token, the_handlers_settle_behind_it_is_egone)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};
    struct flow_answer a = {.f = f};
    struct lapse_settlement done = {.size = sizeof done, .how = LAPSE_HOW_DONE};

    flow_hold(f, &w, "a");
    cr_assert_eq(lapse_settle(f->l, "q", "a", lapse_job_token(w.held[0]), &done, flow_answered, &a),
                 0);
    lapse_retry(w.held[0], 0, "", flow_on_settled, &w);
    cr_assert_eq(flow_wait(f, &a), 0);
    flow_until(f, w.settled == 1);
    cr_assert_eq(w.err, LAPSE_EGONE);
    cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_ENOENT);
    flow_end(f, "q");
}

/* ---- forgetting ---- */
Test(settle_by_token, a_forgotten_job_stays_leased_and_is_settled_by_its_token)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};

    flow_hold(f, &w, "a");
    uint64_t token = lapse_job_token(w.held[0]);
    int64_t until_ms = lapse_job_until_ms(w.held[0]);
    lapse_forget(w.held[0]);
    flow_close(f, f->l, 60000);
    cr_assert_eq(flow_score(f, "q", "run", "a"), until_ms);
    f->l = flow_open(f, NULL);
    cr_assert_eq(flow_settle_by(f, "q", "a", token, ways[0]), 0);
    flow_end(f, "q");
}

Test(settle_by_token, a_forgotten_job_is_not_given_back_after_a_reconnect)
{
    struct wire x;
    struct flow_job job;

    wire_start(&x, FLOW_KEEP, NULL);
    cr_assert_eq(flow_schedule(x.f, "q", "a", 0, NULL), 0);
    flow_until(x.f, x.w.n_held == 1);
    uint64_t token = lapse_job_token(x.w.held[0]);
    lapse_forget(x.w.held[0]);
    x.w.n_held = 0;
    wire_lose(&x);
    flow_until(x.f, flow_stats(x.l).reconnects == 1);
    cr_assert_eq(flow_schedule(x.f, "q", "b", 0, NULL), 0);
    flow_until(x.f, x.w.n_held == 1); /* what was lost was reclaimed before */
    cr_assert_eq(flow_get(x.f, "q", "a", &job), 0);
    cr_assert(job.state == LAPSE_RUNNING && job.token == token && job.try_no == 1);
    flow_settle(&x.w, FLOW_DONE);
    cr_assert_eq(flow_settle_by(x.f, "q", "a", token, ways[0]), 0);
    wire_end(&x);
}

/* ---- a wire that is cut ---- */
Test(settle_by_token, is_repeated_when_its_answer_is_lost_and_happens_once)
{
    struct wire x;
    unsigned lost = 0;
    unsigned n = 0;

    wire_start(&x, FLOW_KEEP, NULL);

    struct lapse *direct = x.f->l;
    for (long bytes = 0; bytes < 60; bytes += 3, n++) {
        char id[24];
        snprintf(id, sizeof id, "%ld", bytes);
        uint64_t token = 0;
        cr_assert_eq(flow_schedule(x.f, "p", id, 0, NULL), 0);
        struct flow_claim c;
        cr_assert_eq(flow_claim_id(x.f, "p", id, &c), 0);
        token = lapse_job_token(c.jobs[0]);
        lapse_forget(c.jobs[0]);

        x.f->l = x.l;
        wire_cut(&x, bytes % 2 ? PROXY_UP : PROXY_DOWN, bytes);
        int err = flow_settle_by(x.f, "p", id, token, ways[0]);
        proxy_cut_after(x.proxy, PROXY_UP, -1);
        proxy_cut_after(x.proxy, PROXY_DOWN, -1);
        cr_assert(err == 0 || err == LAPSE_ELOST, "%s", lapse_strerror(err));
        lost += err != 0;
        x.f->l = direct;
        cr_assert_eq(flow_get(x.f, "p", id, NULL), LAPSE_ENOENT);
    }

    cr_assert_eq(flow_stats(x.l).done + lost, n);
    cr_assert_gt(lost, 0);
    redis_do(x.f->server, "DEL lapse:{p}:seq");
    wire_end(&x);
}
