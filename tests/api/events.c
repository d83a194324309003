/* SPDX-License-Identifier: MIT */
/* What lapse_on_event() tells of jobs that a claim met, and that did not run; and of those that a
 * settle by the token let die. */
#include "allocations.h"
#include "handler.h"
#include "listening.h"
#include "wire.h"

enum { HOUR = 3600000, HEARD_MAX = 128 };

struct heard {
    unsigned n_skipped, n_died;
    unsigned most; /* of what the handle counted so far, so many were not heard of */
    struct {
        char id[16];
        char body[16];
        char reason[201];
        int64_t due_ms;
        unsigned try_no;
        uint64_t token;
    } jobs[HEARD_MAX]; /* the first of both kinds, in order */
    void (*then)(struct lapse *l, void *arg);
    void *arg;
};

static void note(struct heard *h, const struct lapse_job *job)
{
    unsigned i = h->n_skipped + h->n_died;
    size_t len;
    const char *body = lapse_job_body(job, &len);

    if (i >= HEARD_MAX) {
        return;
    }

    snprintf(h->jobs[i].id, sizeof h->jobs[i].id, "%s", lapse_job_id(job));
    snprintf(h->jobs[i].body, sizeof h->jobs[i].body, "%.*s", (int)len, body);
    snprintf(h->jobs[i].reason, sizeof h->jobs[i].reason, "%s", lapse_job_reason(job));
    h->jobs[i].due_ms = lapse_job_due_ms(job);
    h->jobs[i].try_no = lapse_job_try(job);
    h->jobs[i].token = lapse_job_token(job);
}

static void on_event(struct lapse *l, enum lapse_event what, const struct lapse_job *job, void *arg)
{
    struct heard *h = arg;

    if (what == LAPSE_EVENT_CANCEL) {
        return;
    }
    cr_assert(what == LAPSE_EVENT_SKIPPED || what == LAPSE_EVENT_DIED);
    cr_assert_eq(lapse_job_state(job), what == LAPSE_EVENT_DIED ? LAPSE_DEAD : 0);
    cr_assert_eq(lapse_job_until_ms(job), 0);
    cr_assert_str_eq(lapse_job_queue(job), "q");
    note(h, job);
    if (what == LAPSE_EVENT_SKIPPED) {
        h->n_skipped++;
    } else {
        h->n_died++;
    }

    struct lapse_stats s = flow_stats(l);
    unsigned waiting = (unsigned)(s.skipped + s.failed) - h->n_skipped - h->n_died;
    h->most = waiting > h->most ? waiting : h->most;
    if (h->then) {
        h->then(l, h->arg);
    }
}

/* It is too late a millisecond after it is due. */
static struct lapse_spec late_spec(const char *id, enum lapse_late late)
{
    struct lapse_spec s = flow_job_spec("q", id, 0);

    s.body = "text";
    s.body_len = 4;
    s.max_late_ms = 1;
    s.late = late;
    return s;
}

static void put_late(struct flow *f, const char *id, enum lapse_late late)
{
    struct lapse_spec s = late_spec(id, late);
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
}

static void on_scheduled(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    unsigned *n = arg;

    cr_assert(l && job && !err);
    ++*n;
}

static void put_many(struct flow *f, unsigned n, enum lapse_late late)
{
    struct lapse_spec s = late_spec(NULL, late);
    unsigned answered = 0;

    for (unsigned i = 1; i <= n; i++) {
        cr_assert_eq(lapse_schedule(f->l, &s, on_scheduled, &answered), 0);
        if (i % 500 == 0 || i == n) {
            flow_until(f, answered == i);
        }
    }
}

static void until_late(struct flow *f)
{
    int64_t ms = redis_now_ms(f->server) + 1;
    flow_poll(f, redis_now_ms(f->server) > ms);
}

/* ---- what is heard ---- */
static void on_skipped(struct lapse *l, enum lapse_event what, const struct lapse_job *job,
                       void *arg)
{
    struct lapse_guard g = lapse_guard_init();
    struct lapse_job *dup = lapse_job_dup(job);
    unsigned *n = arg;
    size_t len;

    cr_assert(l && what == LAPSE_EVENT_SKIPPED);
    for (int i = 0; i < 2; i++) {
        const struct lapse_job *shown = i ? dup : job;
        const void *body = lapse_job_body(shown, &len);
        cr_assert(len == 5 && memcmp(body, "t\0ext", 5) == 0);
        cr_assert_str_eq(lapse_job_id(shown), "a");
        cr_assert_str_eq(lapse_job_tag(shown, 0), "customer:7");
        cr_assert_null(lapse_job_tag(shown, 1));
        cr_assert_str_eq(lapse_job_header(shown, "trace"), "1234");
        cr_assert_str_eq(lapse_job_unique(shown), "order:7");
        cr_assert_eq(lapse_job_priority(shown), 9);
        cr_assert_eq(lapse_job_guard(shown, &g), 1);
        cr_assert_str_eq(g.key, "order:{q}:7");
        cr_assert(lapse_job_try(shown) == 0 && lapse_job_tries(shown) == 4);
        cr_assert(lapse_job_state(shown) == 0 && lapse_job_due_ms(shown) > 0);
    }
    lapse_job_free(dup);
    ++*n;
}

FLOW_ALL_MODES(events, a_skipped_job_is_heard_of_with_all_that_it_carries)
{
    static const char *const tag = "customer:7";
    static const struct lapse_header header = {"trace", "1234"};
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_DONE};
    struct lapse_guard g = lapse_guard_init();
    struct lapse_spec s = flow_job_spec("q", "a", 200);
    unsigned n = 0;

    server_allow(f->server, "%%R~*{q}*");
    g.key = "order:{q}:7";
    g.op = LAPSE_EXISTS;
    s.body = "t\0ext";
    s.body_len = 5;
    s.tries = 4;
    s.tags = &tag;
    s.n_tags = 1;
    s.headers = &header;
    s.n_headers = 1;
    s.unique = "order:7";
    s.priority = 9;
    s.guard = &g;
    lapse_on_event(f->l, on_skipped, &n);
    flow_listen(f, "q", &w);
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    flow_until(f, n == 1);
    cr_assert_eq(flow_stats(f->l).skipped, 1);
    cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_ENOENT);
    cr_assert(w.n_runs == 0 && n == 1);
    flow_end(f, "q");
}

Test(events, what_a_claim_met_and_did_not_give_out_is_heard_of)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct heard h = {0};
    struct flow_claim claim;

    lapse_on_event(f->l, on_event, &h);
    put_late(f, "skip", LAPSE_LATE_SKIP);
    until_late(f);
    put_late(f, "dead", LAPSE_LATE_DEAD);
    until_late(f);
    cr_assert_eq(flow_schedule(f, "q", "runs", 0, NULL), 0);
    cr_assert_eq(flow_claim(f, "q", 9, 0, &claim), 0);
    cr_assert_eq(claim.n, 1);
    flow_until(f, h.n_skipped == 1 && h.n_died == 1);
    cr_assert(strcmp(h.jobs[0].id, "skip") == 0 && strcmp(h.jobs[0].body, "text") == 0);
    cr_assert_str_eq(h.jobs[0].reason, "");
    cr_assert(strcmp(h.jobs[1].id, "dead") == 0 && strcmp(h.jobs[1].body, "text") == 0);
    cr_assert_str_eq(h.jobs[1].reason, "too late: more than max_late_ms after it was due");
    cr_assert(h.jobs[1].try_no == 0 && h.jobs[0].due_ms < h.jobs[1].due_ms);
    flow_claim_done(f, &claim);

    put_late(f, "skip", LAPSE_LATE_SKIP);
    put_late(f, "dead2", LAPSE_LATE_DEAD);
    until_late(f);
    cr_assert_eq(flow_claim_id(f, "q", "skip", &claim), 0);
    cr_assert_eq(flow_claim_id(f, "q", "dead2", &claim), 0);
    flow_until(f, h.n_skipped == 2 && h.n_died == 2);
    flow_end(f, "q");
}

/* The jobs that are skipped are those of the last try, too. */
Test(events, a_job_that_is_skipped_after_a_try_is_heard_of_with_that)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct heard h = {0};
    struct flow_claim claim;
    struct lapse_spec s = flow_job_spec("q", "a", 0);
    struct lapse_guard g = lapse_guard_init();

    server_allow(f->server, "%%R~*{q}*");
    g.key = "order:{q}:7";
    g.op = LAPSE_MISSING;
    s.guard = &g;
    lapse_on_event(f->l, on_event, &h);
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    cr_assert_eq(flow_claim(f, "q", 1, 0, &claim), 0);
    cr_assert_eq(claim.n, 1);
    uint64_t token = lapse_job_token(claim.jobs[0]);
    int64_t due_ms = lapse_job_due_ms(claim.jobs[0]);
    until_late(f);
    struct lapse_settlement retry = {.how = LAPSE_HOW_RETRY, .reason = "no answer"};
    cr_assert_eq(flow_settle_by(f, "q", "a", token, retry), 0);
    lapse_forget(claim.jobs[0]);
    redis_do(f->server, "SET order:{q}:7 1");
    cr_assert_eq(flow_claim(f, "q", 1, 0, &claim), 0);
    flow_until(f, h.n_skipped == 1);
    cr_assert(h.jobs[0].try_no == 1 && h.jobs[0].token == token);
    cr_assert_str_eq(h.jobs[0].reason, "no answer");
    cr_assert_gt(h.jobs[0].due_ms, due_ms);
    redis_do(f->server, "DEL order:{q}:7");
    flow_end(f, "q");
}

Test(events, of_jobs_that_are_forwarded_those_that_stay_behind_are_heard_of)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};
    struct heard h = {0};

    put_late(f, "skip", LAPSE_LATE_SKIP);
    put_late(f, "dead", LAPSE_LATE_DEAD);
    cr_assert_eq(flow_schedule(f, "q", "goes", 0, NULL), 0);
    until_late(f);
    cr_assert_eq(flow_configure(f, "q", "forward=list", NULL), 0);
    flow_allow_log(f, "Redis forwards the jobs");
    lapse_on_event(f->l, on_event, &h);
    flow_listen(f, "q", &w);
    flow_until(f, h.n_skipped == 1 && h.n_died == 1);
    cr_assert_str_eq(h.jobs[0].body, "text");
    cr_assert_str_eq(h.jobs[1].body, "text");
    flow_until(f, flow_stats(f->l).forwarded == 1);
    cr_assert_eq(w.n_runs, 0);
    redis_do(f->server, "DEL lapse:{q}:list");
    flow_end(f, "q");
}

FLOW_ALL_MODES(events, a_job_that_cannot_be_read_is_heard_of)
{
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_DONE};
    struct heard h = {0};

    flow_allow_log(f, "in a format this version cannot read");
    cr_assert_eq(flow_schedule(f, "q", "newer", HOUR, NULL), 0);
    redis_do(f->server, "HSET lapse:{q}:jobs newer %b", "\3\0text", (size_t)6);
    lapse_on_event(f->l, on_event, &h);
    flow_listen(f, "q", &w);
    cr_assert_eq(flow_reschedule(f, "q", "newer", lapse_in(0), NULL), 0);
    flow_until(f, h.n_died == 1);
    cr_assert_str_eq(h.jobs[0].id, "newer");
    cr_assert_str_eq(h.jobs[0].body, "");
    cr_assert_str_eq(h.jobs[0].reason, "stored data is in a format this version cannot read");
    cr_assert(flow_stats(f->l).failed == 1 && w.n_runs == 0);
    flow_end(f, "q");
}

/* ---- by the token ---- */
static uint64_t claim_last(struct flow *f, const char *id, struct lapse_job **out)
{
    struct lapse_spec s = flow_job_spec("q", id, 0);
    struct flow_claim claim;

    s.tries = 1;
    s.body = "text";
    s.body_len = 4;
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    cr_assert_eq(flow_claim_id(f, "q", id, &claim), 0);
    cr_assert_eq(claim.n, 1);
    *out = claim.jobs[0];
    return lapse_job_token(*out);
}

Test(events, a_death_by_the_token_of_a_job_that_we_hold_is_heard_of)
{
    static const enum lapse_how ways[] = {LAPSE_HOW_RETRY, LAPSE_HOW_FAIL};

    struct flow *f = flow_start(FLOW_FULL);
    struct heard h = {0};

    lapse_on_event(f->l, on_event, &h);
    for (unsigned i = 0; i < 2; i++) {
        struct lapse_settlement how = {.how = ways[i], .reason = "no answer"};
        struct lapse_job *job;
        uint64_t token = claim_last(f, i ? "b" : "a", &job);
        cr_assert_eq(flow_settle_by(f, "q", i ? "b" : "a", token, how), 0);
        cr_assert_eq(h.n_died, i + 1);
        cr_assert_str_eq(h.jobs[i].id, i ? "b" : "a");
        cr_assert_str_eq(h.jobs[i].body, "text");
        cr_assert_str_eq(h.jobs[i].reason, "no answer");
        cr_assert(h.jobs[i].token == token && h.jobs[i].try_no == 1);
        cr_assert(lapse_job_state(job) == LAPSE_RUNNING && !*lapse_job_reason(job));
        lapse_done(job, NULL, NULL);
    }
    cr_assert_eq(flow_stats(f->l).failed, 2);
    flow_end(f, "q");
}

Test(events, a_death_by_the_token_of_another_job_is_heard_of_by_its_name)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct heard h = {0};
    struct lapse_settlement how = {.how = LAPSE_HOW_RETRY, .reason = "no answer"};
    struct lapse_job *job;

    lapse_on_event(f->l, on_event, &h);
    uint64_t token = claim_last(f, "a", &job);
    lapse_forget(job);
    cr_assert_eq(flow_settle_by(f, "q", "a", token, how), 0);
    cr_assert_eq(h.n_died, 1);
    cr_assert(strcmp(h.jobs[0].id, "a") == 0 && strcmp(h.jobs[0].body, "") == 0);
    cr_assert_str_eq(h.jobs[0].reason, "no answer");
    cr_assert(h.jobs[0].token == token && h.jobs[0].try_no == 0);

    /* what is over, or was cancelled, does not die */
    cr_assert_eq(flow_settle_by(f, "q", "a", token, how), LAPSE_EGONE);
    token = claim_last(f, "b", &job);
    cr_assert_eq(lapse_cancel(f->l, "q", "b", LAPSE_RUNNING_TOO, NULL, NULL), 0);
    flow_calm(f);
    lapse_forget(job);
    cr_assert_eq(flow_settle_by(f, "q", "b", token, how), 0);
    flow_calm(f);
    cr_assert_eq(h.n_died, 1);
    flow_end(f, "q");
}

/* ---- how many ---- */
static long allocations_of_claim(struct flow *f, struct heard *h, lapse_event_fn *fn)
{
    struct flow_claim claim;
    unsigned n = h->n_skipped;

    put_many(f, 100, LAPSE_LATE_SKIP);
    until_late(f);
    lapse_on_event(f->l, fn, h);
    long made = alloc_made();
    cr_assert_eq(flow_claim(f, "q", 100, 0, &claim), 0);
    cr_assert_eq(claim.n, 0);
    if (fn) {
        flow_until(f, h->n_skipped == n + 100);
    }
    return alloc_made() - made;
}

Test(events, without_an_event_function_nothing_is_allocated)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct heard h = {0};

    allocations_of_claim(f, &h, NULL);
    long without = allocations_of_claim(f, &h, NULL);
    long with = allocations_of_claim(f, &h, on_event);
    cr_assert_eq(with, without + 200);
    cr_assert_eq(allocations_of_claim(f, &h, NULL), without);
    cr_assert_eq(flow_stats(f->l).skipped, 400);
    cr_assert_eq(h.n_skipped, 100);
    flow_end(f, "q");
}

static void ten_running(struct lapse_options *o)
{
    o->max_running = 10;
}

/* Copies of all that is skipped at once would take as much memory as there are jobs. */
Test(events, no_more_jobs_wait_to_be_heard_of_than_may_run)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, ten_running);
    struct flow_handler w = {.way = FLOW_DONE};
    struct heard h = {0};

    put_many(f, 500, LAPSE_LATE_SKIP);
    put_many(f, 500, LAPSE_LATE_DEAD);
    until_late(f);
    lapse_on_event(f->l, on_event, &h);
    flow_listen(f, "q", &w);
    flow_until(f, h.n_skipped == 500 && h.n_died == 500);
    cr_assert_lt(h.most, 10);
    cr_assert_eq(flow_schedule(f, "q", "runs", 0, NULL), 0);
    flow_until(f, w.settled == 1);
    flow_end(f, "q");
}

/* ---- what the function may do ---- */
static void then_abandon(struct lapse *l, void *arg)
{
    struct flow *f = arg;

    flow_forget(f, l);
    lapse_abandon(l);
    f->l = NULL;
}

Test(events, of_a_claim_may_end_the_handle_while_others_wait_to_be_heard_of)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};
    struct heard h = {.then = then_abandon, .arg = f};

    put_many(f, 50, LAPSE_LATE_SKIP);
    until_late(f);
    lapse_on_event(f->l, on_event, &h);
    flow_listen(f, "q", &w);
    flow_poll(f, f->l == NULL);
    cr_assert_eq(h.n_skipped, 1);

    struct lapse_options opts = flow_options(f);
    f->l = flow_open(f, &opts);
    flow_end(f, "q");
}

static void then_unlisten(struct lapse *l, void *arg)
{
    struct heard *h = arg;

    h->then = NULL;
    cr_assert_eq(lapse_unlisten(l, "q"), 0);
}

Test(events, are_heard_of_a_queue_that_is_not_listened_to_any_more)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};
    struct heard h = {.then = then_unlisten, .arg = &h};

    put_many(f, 50, LAPSE_LATE_SKIP);
    until_late(f);
    lapse_on_event(f->l, on_event, &h);
    flow_listen(f, "q", &w);
    flow_until(f, h.n_skipped == 50);
    cr_assert_eq(flow_schedule(f, "q", "a", HOUR, NULL), 0);
    flow_end(f, "q");
}

Test(events, a_handle_that_closes_ends_when_all_were_heard_of)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};
    struct heard h = {0};

    put_many(f, 50, LAPSE_LATE_SKIP);
    until_late(f);
    lapse_on_event(f->l, on_event, &h);
    flow_listen(f, "q", &w);
    flow_until(f, flow_stats(f->l).skipped > 0);
    uint64_t skipped = flow_stats(f->l).skipped;
    flow_close(f, f->l, 10000);
    cr_assert_eq(h.n_skipped, skipped);

    struct lapse_options opts = flow_options(f);
    f->l = flow_open(f, &opts);
    flow_end(f, "q");
}

Test(events, of_which_the_function_was_taken_away_are_not_heard)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct heard h = {0};
    struct flow_claim claim;

    put_many(f, 50, LAPSE_LATE_SKIP);
    until_late(f);
    lapse_on_event(f->l, on_event, &h);
    cr_assert_eq(flow_claim(f, "q", 50, 0, &claim), 0);
    lapse_on_event(f->l, NULL, NULL);
    flow_calm(f);
    cr_assert_eq(flow_stats(f->l).skipped, 50);
    cr_assert_leq(h.n_skipped, 50);
    flow_end(f, "q");
}

static void one_running(struct lapse_options *o)
{
    o->max_running = 1;
}

static long claim_late(struct flow *f, long fails)
{
    struct flow_claim claim;

    put_late(f, "a", LAPSE_LATE_SKIP);
    until_late(f);
    long made = alloc_made();
    alloc_fail(fails);
    cr_assert_eq(flow_claim(f, "q", 1, 0, &claim), 0);
    cr_assert_eq(claim.n, 0);
    made = alloc_made() - made;
    flow_calm(f);
    return made;
}

Test(events, that_find_no_memory_are_not_heard_and_keep_no_slot)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, one_running);
    struct heard h = {0};
    struct flow_claim claim;

    claim_late(f, 0);
    long without = claim_late(f, 0);
    lapse_on_event(f->l, on_event, &h);
    for (long i = 1; i <= 2; i++) {
        claim_late(f, without + i);
        cr_assert(alloc_has_failed());
        alloc_fail(0);
        cr_assert_eq(h.n_skipped, 0);
        cr_assert_eq(flow_schedule(f, "q", "runs", 0, NULL), 0);
        cr_assert_eq(flow_claim(f, "q", 1, 0, &claim), 0);
        cr_assert_eq(claim.n, 1);
        flow_claim_done(f, &claim);
    }
    cr_assert_eq(flow_stats(f->l).skipped, 4);
    flow_end(f, "q");
}

/* ---- 10,000 ---- */
enum { ALL = 10000, IN_ONE = 100 };

static unsigned char times_heard[ALL];

static void on_each(struct lapse *l, enum lapse_event what, const struct lapse_job *job, void *arg)
{
    unsigned *n = arg;
    unsigned i = (unsigned)atoi(lapse_job_id(job) + 1);

    cr_assert(l && what == LAPSE_EVENT_SKIPPED && i < ALL);
    times_heard[i]++;
    ++*n;
}

static void put_all(struct flow *f)
{
    unsigned answered = 0;

    for (unsigned i = 0; i < ALL; i++) {
        char id[8];
        snprintf(id, sizeof id, "j%04u", i);
        struct lapse_spec s = late_spec(id, LAPSE_LATE_SKIP);
        cr_assert_eq(lapse_schedule(f->l, &s, on_scheduled, &answered), 0);
        if (i % 1000 == 999) {
            flow_until(f, answered == i + 1);
        }
    }
}

static void hundred_running(struct lapse_options *o)
{
    o->max_running = IN_ONE;
}

/* The skips of an answer that is lost are known to Redis alone: nobody counts them, and none of
 * these jobs runs, or is skipped again. */
Test(events, of_10000_skips_with_a_lost_answer_are_each_counted_once_at_most_and_none_runs)
{
    struct wire x;
    unsigned n = 0;

    wire_start(&x, FLOW_DONE, hundred_running);
    proxy_refuse(x.proxy, true);
    flow_allow_log(x.f, "cannot connect");
    wire_lose(&x);
    lapse_on_event(x.l, on_each, &n);
    put_all(x.f);
    until_late(x.f);

    wire_cut(&x, PROXY_DOWN, 20000);
    proxy_cut_conn(x.proxy, 0);
    proxy_refuse(x.proxy, false);
    flow_until(x.f, n >= ALL - IN_ONE); /* Redis is asked of the last ones only */
    flow_poll(x.f, flow_count(x.f, "q", "due") == 0);
    uint64_t skipped = 0;
    for (bool more = true; more;) {
        skipped = flow_stats(x.l).skipped;
        flow_calm(x.f);
        more = skipped != flow_stats(x.l).skipped || n < skipped;
    }

    unsigned unheard = 0;
    for (unsigned i = 0; i < ALL; i++) {
        cr_assert_leq(times_heard[i], 1, "%u", i);
        unheard += times_heard[i] == 0;
    }
    cr_assert_eq(n, skipped);
    cr_assert_eq(n + unheard, ALL);
    cr_assert(unheard > 0 && unheard <= IN_ONE, "%u", unheard);
    cr_assert(x.w.n_runs == 0 && flow_stats(x.l).claimed == 0);
    cr_assert_eq(redis_int(x.f->server, "EXISTS lapse:{q}:jobs"), 0);
    wire_end(&x);
}
