/* SPDX-License-Identifier: MIT */
/* Unique keys: a second name, by which a schedule finds the job that holds it. */
#include "handler.h"
#include "listening.h"

enum { HOUR = 3600000, MANY = 10000, ORDERED = 250 };

static struct lapse_spec with_key(const char *id, const char *key)
{
    struct lapse_spec s = flow_job_spec("q", id, HOUR);

    s.body = "body";
    s.body_len = 4;
    s.unique = key;
    return s;
}

static void on_keyed(struct lapse *l, int err, const struct lapse_job *job, void *n)
{
    (void)l;
    cr_assert_eq(err, 0);
    cr_assert_str_eq(lapse_job_unique(job), "order-7");

    struct lapse_job *duplicate = lapse_job_dup(job);
    cr_assert_str_eq(lapse_job_unique(duplicate), "order-7");
    cr_assert_str_eq(lapse_job_tag(duplicate, 0), "t");
    cr_assert_str_eq(lapse_job_header(duplicate, "trace"), "1");
    cr_assert_eq(memcmp(lapse_job_body(duplicate, NULL), "body", 4), 0);
    lapse_job_free(duplicate);
    ++*(int *)n;
}

static void on_plain(struct lapse *l, int err, const struct lapse_job *job, void *n)
{
    (void)l;
    cr_assert_eq(err, 0);
    cr_assert_null(lapse_job_unique(job));
    ++*(int *)n;
}

Test(unique, keys_come_back_with_the_body)
{
    static const struct lapse_header headers[] = {{"trace", "1"}};
    static const char *const tags[] = {"t"};
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_spec s = with_key("a", "order-7");
    int n = 0;

    s.tags = tags;
    s.n_tags = 1;
    s.headers = headers;
    s.n_headers = 1;
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    cr_assert_eq(lapse_get(f->l, "q", "a", on_keyed, &n), 0);
    flow_until(f, n == 1);
    cr_assert_eq(flow_schedule(f, "q", "plain", HOUR, NULL), 0);
    cr_assert_eq(lapse_get(f->l, "q", "plain", on_plain, &n), 0);
    flow_until(f, n == 2);
    s.unique = NULL;
    s.id = "b";
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    cr_assert_eq(lapse_get(f->l, "q", "b", on_plain, &n), 0);
    flow_until(f, n == 3);
    flow_end(f, "q");
}

Test(unique, a_schedule_whose_key_is_held_is_about_the_job_that_holds_it)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_spec s = with_key("a", "order-7");
    struct flow_job first;
    struct flow_job job;

    cr_assert_eq(flow_spec(f, &s, &first), 0);
    cr_assert_str_eq(first.id, "a");
    cr_assert_eq(first.created, 1);

    s.id = NULL; /* generated */
    cr_assert_eq(flow_spec(f, &s, NULL), LAPSE_EEXIST);

    s.on_conflict = LAPSE_KEEP;
    cr_assert_eq(flow_spec(f, &s, &job), 0);
    cr_assert_str_eq(job.id, "a");
    cr_assert(job.created == 0 && job.due_ms == first.due_ms);

    s.on_conflict = LAPSE_EARLIER;
    s.due = lapse_at(first.due_ms - 5);
    cr_assert_eq(flow_spec(f, &s, &job), 0);
    cr_assert_str_eq(job.id, "a");
    cr_assert(job.created == 0 && job.due_ms == first.due_ms - 5);

    s.on_conflict = LAPSE_LATER;
    s.due = lapse_at(first.due_ms + 5);
    cr_assert_eq(flow_spec(f, &s, &job), 0);
    cr_assert_str_eq(job.id, "a");
    cr_assert(job.created == 0 && job.due_ms == first.due_ms + 5);

    s.on_conflict = LAPSE_DEBOUNCE;
    s.tries = 3;
    cr_assert_eq(flow_spec(f, &s, &job), 0);
    cr_assert_str_eq(job.id, "a");
    cr_assert(job.created == 0 && job.tries == 3);

    s.on_conflict = LAPSE_REPLACE;
    s.tries = 4;
    cr_assert_eq(flow_spec(f, &s, &job), 0);
    cr_assert_str_eq(job.id, "a");
    cr_assert(job.created == 1 && job.tries == 4 && job.state == LAPSE_WAITING);

    cr_assert_eq(redis_int(f->server, "HLEN lapse:{q}:jobs"), 1);
    cr_assert_eq(flow_stats(f->l).scheduled, 2);
    flow_end(f, "q");
}

/* The answer has an id that is longer than that of the call. */
Test(unique, an_id_of_255_characters_is_answered_to_an_id_of_one)
{
    struct flow *f = flow_start(FLOW_FULL);
    char id[256] = "";
    char key[256] = "";
    struct flow_job job;

    memset(id, 'i', 255);
    memset(key, 'k', 255);
    struct lapse_spec s = with_key(id, key);
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    s.id = "x";
    s.on_conflict = LAPSE_KEEP;
    cr_assert_eq(flow_spec(f, &s, &job), 0);
    cr_assert_str_eq(job.id, id);
    flow_end(f, "q");
}

/* ---- until when ---- */
Test(unique, a_key_is_held_by_a_job_that_waits_or_runs_and_by_no_other)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_spec s = with_key("a", "k");
    struct lapse_spec other = with_key("b", "k");
    struct flow_claim c;

    s.due = lapse_in(0);
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    cr_assert_eq(flow_spec(f, &other, NULL), LAPSE_EEXIST);
    cr_assert_eq(flow_claim(f, "q", 1, 0, &c), 0);
    cr_assert_eq(c.n, 1);
    cr_assert_eq(flow_spec(f, &other, NULL), LAPSE_EEXIST);
    other.on_conflict = LAPSE_REPLACE;
    cr_assert_eq(flow_spec(f, &other, NULL), LAPSE_EBUSY);
    other.on_conflict = LAPSE_REJECT;
    flow_claim_done(f, &c);
    cr_assert_eq(flow_spec(f, &other, NULL), 0, "done");
    cr_assert_eq(flow_cancel(f, "q", "b", NULL), 0);
    cr_assert_eq(flow_spec(f, &s, NULL), 0, "cancelled");
    cr_assert_eq(flow_kill(f, "q", "a", "x", NULL), 0);
    cr_assert_eq(flow_spec(f, &other, NULL), 0, "dead");
    cr_assert_eq(flow_reschedule(f, "q", "a", lapse_in(HOUR), NULL), LAPSE_EEXIST);
    cr_assert_eq(flow_cancel(f, "q", "b", NULL), 0);
    cr_assert_eq(flow_reschedule(f, "q", "a", lapse_in(HOUR), NULL), 0);
    cr_assert_eq(flow_spec(f, &other, NULL), LAPSE_EEXIST, "taken again");
    flow_end(f, "q");
}

/* Also over the end of a run, where the calls that come meanwhile let it wait again. */
Test(unique, a_key_is_held_by_a_job_that_waits_again_after_its_run)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_spec s = with_key("a", "k");
    struct lapse_spec other = with_key("b", "k");
    struct flow_claim c;
    struct flow_job job;

    s.due = lapse_in(0);
    other.body = "new";
    other.body_len = 3;
    other.on_conflict = LAPSE_EARLIER;
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    cr_assert_eq(flow_claim(f, "q", 1, 0, &c), 0);
    cr_assert_eq(c.n, 1);
    cr_assert_eq(flow_spec(f, &other, &job), 0);
    cr_assert_str_eq(job.id, "a");
    cr_assert(job.state == LAPSE_RUNNING && job.created == 1);
    flow_claim_done(f, &c);

    other.on_conflict = LAPSE_REJECT;
    cr_assert_eq(flow_spec(f, &other, NULL), LAPSE_EEXIST);
    cr_assert_eq(flow_get(f, "q", "a", &job), 0);
    cr_assert_eq(job.state, LAPSE_WAITING);
    cr_assert_str_eq(job.body, "new");
    flow_end(f, "q");
}

/* So the second run begins with what has come since the first began. */
Test(unique, until_start_a_key_is_free_once_its_job_runs)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_spec s = with_key("a", "k");
    struct lapse_spec other = with_key("b", "k");
    struct flow_answer answer = {.f = f};
    struct flow_claim c;

    s.due = lapse_in(0);
    s.flags = other.flags = LAPSE_UNIQUE_UNTIL_START;
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    cr_assert_eq(flow_spec(f, &other, NULL), LAPSE_EEXIST);
    cr_assert_eq(flow_claim(f, "q", 1, 0, &c), 0);
    cr_assert_eq(c.n, 1);
    cr_assert_eq(flow_spec(f, &other, NULL), 0);
    lapse_retry(c.jobs[0], HOUR, "later", flow_answered, &answer);
    cr_assert_eq(flow_wait(f, &answer), 0);
    cr_assert_eq(flow_cancel(f, "q", "b", NULL), 0);
    cr_assert_eq(flow_spec(f, &other, NULL), 0, "the first does not take it again");
    flow_end(f, "q");
}

/* ---- many at once ---- */
Test(unique, of_10000_schedules_of_one_key_in_one_turn_one_makes_the_job)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_answer *answers = calloc(MANY, sizeof *answers);
    unsigned n_before = f->n_answers;
    int n_made = 0;

    cr_assert(answers);
    for (int i = 0; i < MANY; i++) {
        struct lapse_spec s = with_key(NULL, "k");
        s.on_conflict = LAPSE_KEEP;
        answers[i].f = f;
        cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &answers[i]), 0);
    }
    flow_until(f, f->n_answers == n_before + MANY);

    for (int i = 0; i < MANY; i++) {
        cr_assert_eq(answers[i].err, 0);
        cr_assert_str_eq(answers[i].job.id, answers[0].job.id);
        n_made += answers[i].job.created;
    }
    cr_assert_eq(n_made, 1);
    cr_assert_eq(answers[0].job.created, 1, "the first that asked");
    cr_assert_eq(redis_int(f->server, "HLEN lapse:{q}:jobs"), 1);
    free(answers);
    flow_end(f, "q");
}

Test(unique, requests_of_one_turn_take_effect_in_their_order)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_answer answers[ORDERED];
    struct flow_job job;

    for (int i = 0; i < ORDERED; i++) {
        struct lapse_spec s = with_key(NULL, "k");
        s.body = &i;
        s.body_len = sizeof i;
        s.on_conflict = LAPSE_REPLACE;
        answers[i] = (struct flow_answer){.f = f};
        cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &answers[i]), 0);
    }
    cr_assert_eq(flow_wait(f, &answers[ORDERED - 1]), 0);
    cr_assert_eq(flow_get(f, "q", answers[0].job.id, &job), 0);
    cr_assert_eq(memcmp(job.body, &(int){ORDERED - 1}, sizeof(int)), 0);
    flow_end(f, "q");
}

/* ---- bad input ---- */
Test(unique, keys_that_break_a_rule_are_einval)
{
    struct flow *f = flow_start(FLOW_FULL);
    char long_key[257] = "";
    const char *const bad[] = {"", "a b", "{a}", "a\n", "\xc3\xa9", long_key};
    struct lapse_spec s;

    memset(long_key, 'x', 256);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        s = with_key("a", bad[i]);
        cr_assert_eq(lapse_schedule(f->l, &s, NULL, NULL), LAPSE_EINVAL, "%zu", i);
    }
    s = with_key("a", NULL);
    s.flags = LAPSE_UNIQUE_UNTIL_START;
    cr_assert_eq(lapse_schedule(f->l, &s, NULL, NULL), LAPSE_EINVAL, "a flag without a key");
    cr_assert_eq(redis_int(f->server, "DBSIZE"), 0, "nothing has changed");
    flow_end(f, "q");
}

Test(unique, of_jobs_that_have_none_nothing_is_stored)
{
    struct flow *f = flow_start(FLOW_FULL);

    cr_assert_eq(flow_schedule(f, "q", "a", HOUR, NULL), 0);
    cr_assert_eq(redis_int(f->server, "EXISTS lapse:{q}:index"), 0);
    cr_assert_eq(redis_int(f->server, "HSTRLEN lapse:{q}:jobs a"), 2, "not a byte more");
    flow_end(f, "q");
}

/* ---- debounce ---- */
static struct lapse_spec debounced(const char *body, int64_t delay_ms, int64_t max_wait_ms)
{
    struct lapse_spec s = flow_job_spec("q", "a", delay_ms);

    s.body = body;
    s.body_len = 1;
    s.on_conflict = LAPSE_DEBOUNCE;
    s.max_wait_ms = max_wait_ms;
    return s;
}

Test(debounce, runs_once_with_the_last_record_when_the_calls_have_ceased)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow_job job;

    flow_listen(f, "q", &w);
    for (int i = 0; i < 5; i++) {
        char body[] = {(char)('1' + i), '\0'};
        /* not before the last call */
        struct lapse_spec s = debounced(body, i < 4 ? HOUR : 50, 0);
        cr_assert_eq(flow_spec(f, &s, &job), 0);
        cr_assert_eq(job.created, i == 0);
    }
    flow_until(f, w.settled == 1);
    cr_assert_eq(memcmp(w.runs[0].job.body, "5", 1), 0);
    cr_assert_eq(w.runs[0].job.due_ms, job.due_ms);
    flow_end(f, "q");
}

Test(debounce, that_breaks_a_rule_is_einval)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_spec s = debounced("x", 50, 50);

    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    redis_do(f->server, "FLUSHALL");
    s.max_wait_ms = 49;
    cr_assert_eq(lapse_schedule(f->l, &s, NULL, NULL), LAPSE_EINVAL, "shorter than the delay");
    s.max_wait_ms = -1;
    cr_assert_eq(lapse_schedule(f->l, &s, NULL, NULL), LAPSE_EINVAL);
    s.max_wait_ms = INT64_C(315576000001);
    cr_assert_eq(lapse_schedule(f->l, &s, NULL, NULL), LAPSE_EINVAL, "over ten years");
    s.max_wait_ms = 50;
    for (int how = LAPSE_REJECT; how < LAPSE_DEBOUNCE; how++) {
        s.on_conflict = (enum lapse_conflict)how;
        cr_assert_eq(lapse_schedule(f->l, &s, NULL, NULL), LAPSE_EINVAL, "without DEBOUNCE: %d",
                     how);
    }
    s.max_wait_ms = 0;
    s.on_conflict = (enum lapse_conflict)(LAPSE_DEBOUNCE + 1);
    cr_assert_eq(lapse_schedule(f->l, &s, NULL, NULL), LAPSE_EINVAL);
    cr_assert_eq(redis_int(f->server, "DBSIZE"), 0, "nothing has changed");
    flow_end(f, "q");
}
