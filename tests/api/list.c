/* SPDX-License-Identifier: MIT */
#include "handler.h"
#include "states.h"

enum { HOUR = 3600000, N = 250 };

/* Jobs of the queue q. */
struct batch {
    const char *prefix; /* of their ids, which are numbered */
    int digits;         /* of the numbers, at least */
    int n;
    int64_t at_ms; /* when the first two are due, */
    int step_ms;   /* and each two after them */
    size_t body_len;
};

static void schedule_all(struct flow *f, struct batch b)
{
    char *body = calloc(1, b.body_len + 1);
    char id[32];
    struct flow_answer *a = calloc((size_t)b.n, sizeof *a);

    for (int i = 0; i < b.n; i++) {
        snprintf(id, sizeof id, "%s%0*d", b.prefix, b.digits, i);
        memset(body, 'a' + i % 26, b.body_len);

        struct lapse_spec s = flow_job_spec("q", id, 0);
        s.due = lapse_at(b.at_ms + i / 2 * b.step_ms);
        s.body = body;
        s.body_len = b.body_len;
        a[i].f = f;
        cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &a[i]), 0);
    }

    for (int i = 0; i < b.n; i++) {
        cr_assert_eq(flow_wait(f, &a[i]), 0);
    }

    free(body);
    free(a);
}

/* By score, those of one score by their bytes, each once. */
static void in_order(const struct flow_job *jobs, int n, int64_t (*score)(const struct flow_job *))
{
    for (int i = 1; i < n; i++) {
        int64_t a = score(&jobs[i - 1]);
        int64_t b = score(&jobs[i]);
        cr_assert(a < b || (a == b && strcmp(jobs[i - 1].id, jobs[i].id) < 0), "%s, then %s",
                  jobs[i - 1].id, jobs[i].id);
    }
}

static int64_t by_due(const struct flow_job *job)
{
    return job->due_ms;
}

static int64_t by_end(const struct flow_job *job)
{
    return job->until_ms;
}

static int64_t by_bytes_alone(const struct flow_job *job)
{
    (void)job;
    return 0;
}

Test(list, pages_of_any_size_show_each_waiting_job_once_by_due)
{
    static const unsigned sizes[] = {1, 2, 3, 7, 50, 99, 100};
    static struct flow_job jobs[N];
    struct flow *f = flow_start(FLOW_FULL);

    /* two of each due time */
    schedule_all(f, (struct batch){.prefix = "job-",
                                   .digits = 1,
                                   .n = N,
                                   .at_ms = redis_now_ms(f->server) + HOUR,
                                   .step_ms = 3,
                                   .body_len = 5});

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        cr_assert_eq(flow_list(f, "q", LAPSE_WAITING, sizes[i], jobs, N), N, "pages of %u",
                     sizes[i]);
        in_order(jobs, N, by_due);
        for (int k = 0; k < N; k++) {
            cr_assert(jobs[k].state == LAPSE_WAITING && jobs[k].body_len == 5 && !jobs[k].created &&
                      strcmp(jobs[k].queue, "q") == 0 &&
                      jobs[k].body[0] == 'a' + atoi(jobs[k].id + 4) % 26);
        }
    }

    cr_assert_eq(flow_list(f, "q", LAPSE_RUNNING, 100, jobs, N), 0);
    cr_assert_eq(flow_list(f, "q", LAPSE_DEAD, 100, jobs, N), 0);
    cr_assert_eq(flow_list(f, "empty", LAPSE_WAITING, 100, jobs, N), 0);
    flow_end(f, "q", "empty");
}

Test(list, ties_are_in_the_order_of_their_bytes)
{
    static const char *const ids[] = {"B", "a", "A",   "b",  "aa", "~", "!",
                                      "-", "_", "a.b", "10", "9",  "Z"};
    enum { IDS = sizeof ids / sizeof *ids };
    static struct flow_job jobs[IDS];
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_spec s = flow_job_spec("q", NULL, 0);

    s.due = lapse_at(redis_now_ms(f->server) + HOUR);
    for (int i = 0; i < IDS; i++) {
        s.id = ids[i];
        cr_assert_eq(flow_spec(f, &s, NULL), 0);
    }

    for (unsigned n = 1; n <= IDS; n++) {
        cr_assert_eq(flow_list(f, "q", LAPSE_WAITING, n, jobs, IDS), IDS);
        in_order(jobs, IDS, by_bytes_alone);
    }

    flow_end(f, "q");
}

/* Each dies at a moment of its own. */
static void fail_from_the_last(struct flow_handler *w)
{
    while (w->n_held) {
        unsigned settled = w->settled;
        lapse_fail(w->held[--w->n_held], "dead", flow_on_settled, w);
        flow_until(w->f, w->settled > settled);
        int64_t now_ms = redis_now_ms(w->f->server);
        while (redis_now_ms(w->f->server) <= now_ms) {}
    }
}

Test(list, running_by_end_of_lease_and_dead_by_death)
{
    enum { JOBS = 30 };
    static struct flow_job jobs[JOBS];
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP, .reason = "dead"};

    flow_listen(f, "q", &w);
    schedule_all(f, (struct batch){.prefix = "",
                                   .digits = 1,
                                   .n = JOBS,
                                   .at_ms = redis_now_ms(f->server),
                                   .step_ms = 10,
                                   .body_len = 3});
    flow_until(f, w.n_held == JOBS);
    cr_assert_eq(flow_list(f, "q", LAPSE_RUNNING, 7, jobs, JOBS), JOBS);
    in_order(jobs, JOBS, by_end);
    for (int i = 0; i < JOBS; i++) {
        cr_assert(jobs[i].state == LAPSE_RUNNING && jobs[i].token && jobs[i].until_ms &&
                  jobs[i].body_len == 3);
    }

    cr_assert_eq(flow_list(f, "q", LAPSE_WAITING, 7, jobs, JOBS), 0);

    char first[16];
    char last[16];
    snprintf(first, sizeof first, "%s", lapse_job_id(w.held[JOBS - 1]));
    snprintf(last, sizeof last, "%s", lapse_job_id(w.held[0]));
    fail_from_the_last(&w);
    cr_assert_eq(flow_list(f, "q", LAPSE_DEAD, 7, jobs, JOBS), JOBS);
    cr_assert_str_eq(jobs[0].id, first);
    cr_assert_str_eq(jobs[JOBS - 1].id, last);
    for (int i = 0; i < JOBS; i++) {
        cr_assert(jobs[i].state == LAPSE_DEAD && strcmp(jobs[i].reason, "dead") == 0 &&
                  !jobs[i].until_ms);
    }

    flow_end(f, "q");
}

Test(list, a_page_may_hold_more_bytes_than_one_script_gives)
{
    enum { BIG = 40 };
    static struct flow_job jobs[BIG];
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_answer a = {.f = f};

    /* 4 pass 256 KiB */
    schedule_all(f, (struct batch){.prefix = "",
                                   .digits = 1,
                                   .n = BIG,
                                   .at_ms = redis_now_ms(f->server) + HOUR,
                                   .step_ms = 1,
                                   .body_len = 70000});
    cr_assert_eq(lapse_list(f->l, "q", LAPSE_WAITING, NULL, BIG, flow_list_answered, &a), 0);
    cr_assert_eq(flow_wait(f, &a), 0);
    cr_assert_eq(a.n, BIG, "a short page would be the last");
    cr_assert_eq(flow_list(f, "q", LAPSE_WAITING, 11, jobs, BIG), BIG);
    in_order(jobs, BIG, by_due);

    for (int i = 0; i < BIG; i++) {
        for (size_t k = 0; k < 70000; k++) {
            cr_assert_eq(jobs[i].body[k], 'a' + atoi(jobs[i].id) % 26);
        }
    }

    flow_end(f, "q");
}

/* Pages go on behind the last job of the one before, also when that is gone. */
enum what { NOTHING, CANCEL, MOVE_FAR };
struct reader {
    struct flow *f;
    enum what then;
    unsigned pages, seen, of[N];
    bool over;
};

static void on_page(struct lapse *l, int err, const struct lapse_job *const *jobs, size_t n,
                    void *arg)
{
    struct reader *r = arg;

    cr_assert_eq(err, 0);
    r->pages++;
    for (size_t i = 0; i < n; i++, r->seen++) {
        r->of[atoi(lapse_job_id(jobs[i]))]++;
    }

    r->over = n < 10;
    if (r->over) {
        return;
    }

    const struct lapse_job *last = jobs[n - 1];
    if (r->then == CANCEL) {
        cr_assert_eq(lapse_cancel(l, "q", lapse_job_id(last), 0, NULL, NULL), 0);
    }

    if (r->then == MOVE_FAR) {
        cr_assert_eq(
            lapse_reschedule(l, "q", lapse_job_id(last), lapse_in(9 * HOUR), 0, NULL, NULL), 0);
    }

    cr_assert_eq(lapse_list(l, "q", LAPSE_WAITING, last, 10, on_page, r), 0);
}

static void read_while(enum what then)
{
    struct flow *f = flow_start(FLOW_FULL);
    static struct reader r;

    r.f = f;
    r.then = then;
    /* all due at one time: only the ids decide */
    schedule_all(f, (struct batch){.prefix = "",
                                   .digits = 3,
                                   .n = 95,
                                   .at_ms = redis_now_ms(f->server) + HOUR,
                                   .step_ms = 0,
                                   .body_len = 1});
    cr_assert_eq(lapse_list(f->l, "q", LAPSE_WAITING, NULL, 10, on_page, &r), 0);
    flow_until(f, r.over);
    for (int i = 0; i < 95; i++) {
        cr_assert_geq(r.of[i], 1, "job %d was passed over", i);
    }

    if (then != MOVE_FAR) { /* those come again at their new place */
        cr_assert_eq(r.seen, 95);
    }

    flow_end(f, "q");
}

Test(list, goes_on_behind_the_last_job_of_a_page)
{
    read_while(NOTHING);
}

Test(list, goes_on_where_it_was_when_that_job_was_cancelled)
{
    read_while(CANCEL);
}

Test(list, goes_on_where_it_was_when_that_job_was_moved)
{
    read_while(MOVE_FAR);
}

Test(list, a_job_whose_lease_is_over_shows_what_it_will_be)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_job jobs[2];

    flow_put(f, "q", "again", FLOW_ENDED, NULL);
    cr_assert_eq(flow_list(f, "q", LAPSE_RUNNING, 10, jobs, 2), 1, "no sweep has been by");
    cr_assert_eq(jobs[0].state, LAPSE_WAITING);
    cr_assert_eq(jobs[0].until_ms, 0);
    flow_end(f, "q");
}
