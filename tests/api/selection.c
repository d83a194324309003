/* SPDX-License-Identifier: MIT */
/* lapse_cancel_all(), lapse_reschedule_all(). */
#include "handler.h"
#include "listening.h"
#include "proxy.h"
#include "states.h"

enum { HOUR = 3600000 };
#define TEN_YEARS INT64_C(315576000000)

static const struct lapse_where waiting = {.size = sizeof waiting, .state = LAPSE_WAITING};
static const struct lapse_where dead = {.size = sizeof dead, .state = LAPSE_DEAD};

/* Jobs as schedule makes them, or dead ones as kill does: too many to ask for each. */
static void make(struct flow *f, const char *set, int n)
{
    redis_do(f->server, "EVAL %s 0 %s %d",
             "for i = 1, ARGV[2] do redis.call('ZADD', 'lapse:{q}:' .. ARGV[1], 4e12, i) "
             "redis.call('HSET', 'lapse:{q}:jobs', i, '\\1\\0body') "
             "if ARGV[1] == 'dead' then redis.call('HSET', 'lapse:{q}:attempts', i, "
             "'1 0 - 0 10 0 5 HTTP 500') end end",
             set, n);
}

static long long due_between(struct flow *f, int64_t from_ms, int64_t to_ms)
{
    return redis_int(f->server, "ZCOUNT lapse:{q}:due %lld (%lld", (long long)from_ms,
                     (long long)to_ms);
}

static const char *const ids[FLOW_STATES] = {"waits", "runs", "dead", "ended", "ended-last"};

/* A job of each state. */
static void make_states(struct flow *f)
{
    for (enum flow_state state = 0; state < FLOW_STATES; state++) {
        flow_put(f, "q", ids[state], state, NULL);
    }
}

static bool is_there(struct flow *f, enum flow_state state)
{
    return flow_get(f, "q", ids[state], NULL) == 0;
}

static bool is_of_state(enum flow_state state, enum lapse_state want)
{
    switch (state) {
    case FLOW_WAITS:
    case FLOW_ENDED: return want == LAPSE_WAITING;
    case FLOW_RUNS: return want == LAPSE_RUNNING;
    default: return want == LAPSE_DEAD;
    }
}

Test(cancel_all, removes_the_jobs_that_get_shows_in_the_state_and_no_running_one)
{
    struct flow *f = flow_start(FLOW_FULL);

    for (enum lapse_state want = LAPSE_WAITING; want <= LAPSE_DEAD; want++) {
        struct flow_counts c;
        make_states(f);
        cr_assert_eq(flow_cancel_all(f, "q", (struct lapse_where){.state = want}, &c), 0);
        cr_assert_eq(c.n, want == LAPSE_RUNNING ? 0 : 2);
        cr_assert_eq(c.n_running, want == LAPSE_RUNNING);
        for (enum flow_state state = 0; state < FLOW_STATES; state++) {
            bool gone = is_of_state(state, want) && state != FLOW_RUNS;
            cr_assert_eq(is_there(f, state), !gone, "%s", ids[state]);
        }
        redis_do(f->server, "FLUSHALL");
    }

    flow_end(f, "q");
}

Test(kill_all, kills_the_jobs_that_get_shows_as_waiting_and_no_other)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_counts c;
    struct flow_job job;

    make_states(f);
    cr_assert_eq(flow_kill_all(f, "q", (struct lapse_where){.state = LAPSE_WAITING}, "gone", &c),
                 0);
    cr_assert_eq(c.n, 2);
    cr_assert_eq(c.n_running, 0);
    for (enum flow_state state = 0; state < FLOW_STATES; state++) {
        cr_assert_eq(flow_get(f, "q", ids[state], &job), 0);
        bool is_killed = is_of_state(state, LAPSE_WAITING);
        cr_assert_eq(strcmp(job.reason, "gone") == 0, is_killed, "%s", ids[state]);
        cr_assert_eq(job.state == LAPSE_DEAD, is_killed || is_of_state(state, LAPSE_DEAD));
    }

    /* one that is dead already, or runs, is none of these */
    cr_assert_eq(flow_kill_all(f, "q", (struct lapse_where){.state = LAPSE_WAITING}, NULL, &c), 0);
    cr_assert_eq(c.n, 0);
    redis_do(f->server, "FLUSHALL");
    flow_end(f, "q");
}

Test(kill_all, takes_a_tag_or_a_batch_and_no_more_than_was_asked_for)
{
    static const char *const tags[] = {"x"};
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_spec s = flow_job_spec("q", NULL, HOUR);
    struct flow_counts c;

    for (int i = 0; i < 350; i++) {
        s.batch = i % 2 ? "n" : NULL;
        s.tags = tags;
        s.n_tags = i % 2 ? 0 : 1;
        cr_assert_eq(flow_spec(f, &s, NULL), 0);
    }
    struct lapse_where of_batch = {.batch = "n", .most = 120};
    struct lapse_where of_tag = {.tag = "x"};
    cr_assert_eq(flow_kill_all(f, "q", of_batch, NULL, &c), 0);
    cr_assert_eq(c.n, 120);
    cr_assert_eq(flow_kill_all(f, "q", of_batch, NULL, &c), 0);
    cr_assert_eq(c.n, 55);
    cr_assert_eq(flow_kill_all(f, "q", of_tag, NULL, &c), 0);
    cr_assert_eq(c.n, 175);
    cr_assert_eq(flow_count(f, "q", "dead"), 350);

    of_batch.most = 0;
    cr_assert_eq(flow_reschedule_all(f, "q", of_batch, lapse_in(HOUR), 0, &c), 0);
    cr_assert_eq(c.n, 175);
    cr_assert_eq(flow_cancel_all(f, "q", of_batch, &c), 0);
    cr_assert_eq(c.n, 175);
    cr_assert_eq(flow_count(f, "q", "dead"), 175);
    flow_end(f, "q");
}

Test(kill_all, of_another_selection_is_einval)
{
    struct flow *f = flow_start(FLOW_FULL);
    static const struct lapse_where bad[] = {
        {.state = LAPSE_DEAD}, {.state = LAPSE_RUNNING, .tag = "x"},
        {.state = LAPSE_KEPT}, {.state = LAPSE_SERIES},
        {.reason = "why"},     {.batch = "a b"},
        {.batch = ""},         {.batch = "n", .tag = "x"},
    };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_assert_eq(flow_kill_all(f, "q", bad[i], NULL, NULL), LAPSE_EINVAL, "%zu", i);
    }
    flow_end(f, "q");
}

Test(cancel_all, takes_by_reason_by_moment_and_no_more_than_was_asked_for)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_counts c;
    struct flow_job job;

    for (int i = 0; i < 6; i++) {
        char id[2] = {(char)('a' + i), 0};
        cr_assert_eq(flow_schedule(f, "q", id, HOUR, NULL), 0);
        cr_assert_eq(flow_kill(f, "q", id, i % 2 ? "HTTP 500" : "no customer", NULL), 0);
    }
    cr_assert_eq(flow_schedule(f, "q", "soon", HOUR, &job), 0);
    cr_assert_eq(flow_schedule(f, "q", "later", 2 * HOUR, NULL), 0);

    struct lapse_where http = {.state = LAPSE_DEAD, .reason = "500", .most = 2};
    cr_assert_eq(flow_cancel_all(f, "q", http, &c), 0);
    cr_assert_eq(c.n, 2);
    cr_assert_eq(flow_cancel_all(f, "q", http, &c), 0);
    cr_assert_eq(c.n, 1);
    cr_assert_eq(flow_count(f, "q", "dead"), 3);

    struct lapse_where due = {.state = LAPSE_WAITING, .before_ms = job.due_ms};
    cr_assert_eq(flow_cancel_all(f, "q", due, &c), 0);
    cr_assert_eq(c.n, 0);
    due.before_ms++;
    cr_assert_eq(flow_cancel_all(f, "q", due, &c), 0);
    cr_assert_eq(c.n, 1);
    cr_assert_eq(flow_get(f, "q", "later", NULL), 0);
    flow_end(f, "q");
}

Test(cancel_all, of_ten_thousand_takes_a_hundred_calls)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_counts c;

    make(f, "due", 10000);
    cr_assert_eq(flow_cancel_all(f, "q", dead, &c), 0);
    long long before = flow_calls(f, "evalsha");
    cr_assert_eq(flow_cancel_all(f, "q", waiting, &c), 0);
    cr_assert_eq(c.n, 10000);
    cr_assert_eq(flow_calls(f, "evalsha"), before + 100);
    cr_assert_eq(redis_left(f->server, "lapse", "q"), 0);
    flow_end(f, "q");
}

/* A limit above a hundred is more than one call. */
Test(cancel_all, of_most_250_takes_250)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_where where = waiting;
    struct flow_counts c;

    make(f, "due", 300);
    where.most = 250;
    cr_assert_eq(flow_cancel_all(f, "q", where, &c), 0);
    cr_assert_eq(c.n, 250);
    cr_assert_eq(flow_count(f, "q", "due"), 50);
    flow_end(f, "q");
}

Test(reschedule_all, makes_jobs_of_the_state_wait_and_no_running_one)
{
    struct flow *f = flow_start(FLOW_FULL);
    int64_t at = redis_now_ms(f->server) + 5 * HOUR;

    for (enum lapse_state want = LAPSE_WAITING; want <= LAPSE_DEAD; want++) {
        struct flow_counts c;
        struct flow_job job;
        make_states(f);
        struct lapse_where where = {.state = want};
        cr_assert_eq(flow_reschedule_all(f, "q", where, lapse_at(at), 0, &c), 0);
        cr_assert_eq(c.n, want == LAPSE_RUNNING ? 0 : 2);
        cr_assert_eq(c.n_running, want == LAPSE_RUNNING);
        for (enum flow_state state = 0; state < FLOW_STATES; state++) {
            bool moved = is_of_state(state, want) && state != FLOW_RUNS;
            cr_assert_eq(flow_get(f, "q", ids[state], &job), 0);
            cr_assert_eq(job.due_ms == at && job.state == LAPSE_WAITING, moved, "%s", ids[state]);
            cr_assert(!moved || want == LAPSE_WAITING || job.try_no == 0);
            cr_assert_str_eq(job.body, "old");
        }
        cr_assert_eq(flow_reschedule_all(f, "q", where, lapse_at(at), 0, &c), 0);
        cr_assert_eq(c.n, 0, "a repeat has nothing to do");
        redis_do(f->server, "FLUSHALL");
    }

    flow_end(f, "q");
}

/* Counted by their due times: nobody waits for them. */
Test(reschedule_all, of_ten_thousand_dead_over_ten_seconds_puts_a_thousand_into_each)
{
    enum { N = 10000, SPREAD = 10000 };
    struct flow *f = flow_start(FLOW_FULL);
    int64_t at = redis_now_ms(f->server) + HOUR;
    struct flow_counts c;

    make(f, "dead", N);
    cr_assert_eq(flow_reschedule_all(f, "q", dead, lapse_at(at), SPREAD, &c), 0);
    cr_assert_eq(c.n, N);
    cr_assert_eq(due_between(f, at, at + SPREAD), N);
    for (int i = 0; i < 10; i++) {
        long long n = due_between(f, at + 1000 * i, at + 1000 * (i + 1));
        cr_assert(n >= 850 && n <= 1150, "second %d: %lld", i, n);
    }

    char *before = flow_dump(f);
    cr_assert_eq(flow_reschedule_all(f, "q", waiting, lapse_at(at), SPREAD, &c), 0);
    char *after = flow_dump(f);
    cr_assert_eq(c.n, 0, "a repeat changes no due time");
    cr_assert_str_eq(before, after);
    free(before);
    free(after);
    flow_end(f, "q");
}

Test(reschedule_all, of_the_waiting_moves_each_once_though_they_come_back_before_it)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_job last;
    struct flow_counts c;

    for (int i = 0; i < 250; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 2 * HOUR, &last), 0);
    }
    cr_assert_eq(flow_schedule(f, "q", NULL, 4 * HOUR, NULL), 0);

    int64_t before = redis_now_ms(f->server);
    cr_assert_eq(flow_reschedule_all(f, "q", waiting, lapse_in(3 * HOUR), 1000, &c), 0);
    cr_assert_eq(c.n, 251);
    int64_t took = redis_now_ms(f->server) - before;
    cr_assert_eq(due_between(f, before + 3 * HOUR, before + 3 * HOUR + took + 1000), 251);
    flow_end(f, "q");
}

FLOW_ALL_MODES(reschedule_all, to_now_runs_the_dead_and_once_each_though_they_die_again)
{
    enum { N = 250 };
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_FAIL, .reason = "again"};
    struct flow_counts c;

    make(f, "dead", N);
    flow_listen(f, "q", &w);
    cr_assert_eq(flow_reschedule_all(f, "q", dead, lapse_in(0), 0, &c), 0);
    cr_assert_eq(c.n, N);
    flow_until(f, w.settled == N);
    flow_calm(f);
    flow_each_once(&w, N);
    cr_assert_eq(flow_count(f, "q", "dead"), N);
    flow_end(f, "q");
}

Test(reschedule_all, beyond_ten_years_by_the_clock_of_redis_is_einval)
{
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct lapse_options opts = flow_options(f);
    int64_t far = redis_now_ms(f->server) + TEN_YEARS;
    struct flow_counts c;

    f->l = flow_open(f, &opts); /* it knows no clock yet */
    make(f, "dead", 1);
    char *before = flow_dump(f);
    cr_assert_eq(flow_reschedule_all(f, "q", dead, lapse_at(far + HOUR), 0, &c), LAPSE_EINVAL);
    cr_assert_eq(c.n, 0);
    cr_assert_eq(flow_reschedule_all(f, "q", dead, lapse_at(far - HOUR), 2 * HOUR, &c),
                 LAPSE_EINVAL);
    char *after = flow_dump(f);
    cr_assert_str_eq(before, after);
    free(before);
    free(after);
    flow_end(f, "q");
}

Test(reschedule_all, is_refused_by_a_full_redis_where_cancel_all_is_not)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_counts c;

    flow_allow_log(f, "Redis refused reschedule_all: OOM ");
    make(f, "dead", 3);
    redis_do(f->server, "CONFIG SET maxmemory 1");
    cr_assert_eq(flow_reschedule_all(f, "q", dead, lapse_in(0), 0, &c), LAPSE_EREFUSED);
    cr_assert_eq(flow_cancel_all(f, "q", dead, &c), 0);
    cr_assert_eq(c.n, 3);
    redis_do(f->server, "CONFIG SET maxmemory 0");
    flow_end(f, "q");
}

/* ---- the answer is lost ---- */
static void quiet_wire(struct lapse_options *o)
{
    o->reply_ms = o->sweep_ms = 60000;
}

struct lossy {
    struct flow *f;
    struct proxy *wire;
    int64_t at_ms;
    bool cancels;
};

static int lossy_ask(struct lossy *x, struct flow_counts *c)
{
    return x->cancels ? flow_cancel_all(x->f, "q", waiting, c)
                      : flow_reschedule_all(x->f, "q", dead, lapse_at(x->at_ms), 1000, c);
}

static void lossy_start(struct lossy *x)
{
    x->f = flow_bare(FLOW_FULL, NULL);
    x->wire = proxy_start(x->f->server);
    x->at_ms = redis_now_ms(x->f->server) + HOUR;
    flow_allow_log(x->f, "lost the connection");
}

/* The answers of the first connection are cut, and a repeat goes on. */
static void lossy_round(struct lossy *x, long bytes)
{
    struct flow *f = x->f;
    struct lapse_options opts = flow_options(f);
    struct flow_counts c = {0};
    uint64_t n = 0;

    quiet_wire(&opts);
    opts.url = x->wire->url;
    f->l = flow_open(f, &opts);
    make(f, x->cancels ? "due" : "dead", 450);
    cr_assert_eq(flow_get(f, "q", "nothing", NULL), LAPSE_ENOENT);
    proxy_cut_after(x->wire, PROXY_DOWN, bytes);

    int err = lossy_ask(x, &c);
    cr_assert(err == 0 || err == LAPSE_ELOST, "%s", lapse_strerror(err));
    n = c.n;
    if (err) {
        cr_assert_leq(flow_count(f, "q", x->cancels ? "due" : "dead"), 450 - (long long)n);
        cr_assert_eq(lossy_ask(x, &c), 0);
        n += c.n;
    }

    cr_assert(n <= 450 && n >= 350, "one call was not heard of at most: %llu",
              (unsigned long long)n);
    cr_assert_eq(redis_int(f->server, "HLEN lapse:{q}:jobs"), x->cancels ? 0 : 450);
    if (!x->cancels) {
        cr_assert_eq(due_between(f, x->at_ms, x->at_ms + 1000), 450);
    }
    proxy_cut_after(x->wire, PROXY_DOWN, -1);
    flow_close(f, f->l, 0);
    redis_do(f->server, "FLUSHALL");
}

static void lossy_rounds(bool cancels)
{
    struct lossy x = {.cancels = cancels};

    lossy_start(&x);
    for (long bytes = 1; bytes < 500; bytes += 23) {
        lossy_round(&x, bytes);
    }
    proxy_stop(x.wire);
    x.f->l = NULL;
    flow_end(x.f, "q");
}

Test(cancel_all, whose_answer_was_lost_anywhere_is_completed_by_a_repeat)
{
    lossy_rounds(true);
}

Test(reschedule_all, whose_answer_was_lost_anywhere_is_completed_by_a_repeat_and_moves_none_twice)
{
    lossy_rounds(false);
}

/* ---- the handle closes ---- */
static void on_closed(void *arg)
{
    *(bool *)arg = true;
}

Test(cancel_all, that_a_close_cuts_off_tells_how_far_it_came)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_counts c = {0};
    bool closed = false;
    struct lapse_where bad = waiting;

    make(f, "due", 20000);
    cr_assert_eq(lapse_cancel_all(f->l, "q", &waiting, 0, flow_counted, &c), 0);
    flow_poll(f, flow_count(f, "q", "due") < 20000);
    lapse_close(f->l, 0, on_closed, &closed);
    cr_assert_eq(lapse_cancel_all(f->l, "q", &bad, 0, flow_counted, NULL), LAPSE_ECLOSED);
    flow_until(f, closed);
    cr_assert_eq(c.calls, 1);
    cr_assert(c.err == LAPSE_ECLOSED || c.err == LAPSE_ELOST, "%s", lapse_strerror(c.err));

    long long gone = 20000 - flow_count(f, "q", "due");
    long long unknown = gone - (long long)c.n;
    cr_assert(unknown == 0 || (unknown == 100 && c.err == LAPSE_ELOST), "%lld", unknown);
    flow_forget(f, f->l);
    flow_end(f, "q");
}

Test(cancel_all, goes_on_in_the_grace_of_a_close)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_counts c = {0};
    bool closed = false;

    make(f, "due", 2000);
    cr_assert_eq(lapse_cancel_all(f->l, "q", &waiting, 0, flow_counted, &c), 0);
    lapse_close(f->l, 10000, on_closed, &closed);
    flow_until(f, closed);
    cr_assert(c.calls == 1 && c.err == 0 && c.n == 2000);
    flow_forget(f, f->l);
    flow_end(f, "q");
}
