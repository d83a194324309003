/* SPDX-License-Identifier: MIT */
/* What is asked in one turn of the loop travels together; what is asked of one id, in order. Redis
 * counts the calls. */
#include "handler.h"

enum { HOUR = 3600000, MANY = 300 };

/* Connected; no listener, so that nothing but the test asks. */
static struct flow *start(void)
{
    struct flow *f = flow_start(FLOW_FULL);
    flow_enter(f, "q");
    cr_assert_eq(flow_get(f, "q", "nobody", NULL), LAPSE_ENOENT);
    return f;
}

static void ask_schedules(struct flow *f, struct flow_answer *a, int n, const void *body,
                          size_t len)
{
    char id[16];

    for (int i = 0; i < n; i++) {
        snprintf(id, sizeof id, "%d", i);
        struct lapse_spec s = flow_job_spec("q", id, HOUR);
        s.on_conflict = LAPSE_REPLACE;
        s.body = body;
        s.body_len = len;
        a[i] = (struct flow_answer){.f = f};
        cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &a[i]), 0);
    }
}

static void all_answered(struct flow *f, struct flow_answer *a, int n)
{
    for (int i = 0; i < n; i++) {
        cr_assert_eq(flow_wait(f, &a[i]), 0, "answer %d: %s", i, lapse_strerror(a[i].err));
    }
}

Test(batch, a_hundred_schedules_of_one_turn_are_one_call_and_one_more_is_two)
{
    static const struct {
        int jobs, calls;
    } rows[] = {{1, 1}, {2, 1}, {99, 1}, {100, 1}, {101, 2}, {200, 2}, {201, 3}, {300, 3}};
    static struct flow_answer a[MANY];
    struct flow *f = start();

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        long long before = flow_scripts(f);
        ask_schedules(f, a, rows[i].jobs, NULL, 0);
        all_answered(f, a, rows[i].jobs);
        cr_assert_eq(flow_scripts(f) - before, rows[i].calls, "%d schedules: %lld calls",
                     rows[i].jobs, flow_scripts(f) - before);
    }

    flow_end(f, "q");
}

Test(batch, each_verb_of_a_turn_is_a_call_of_its_own)
{
    static struct flow_answer a[100];
    static struct flow_answer b[50];
    static struct flow_answer c[50];
    static struct flow_answer d[50];
    struct flow *f = start();
    char id[16];

    ask_schedules(f, a, 100, NULL, 0);
    all_answered(f, a, 100);

    long long before = flow_scripts(f);
    for (int i = 0; i < 50; i++) { /* taking turns, each verb with ids of its own */
        snprintf(id, sizeof id, "%d", i);
        b[i].f = c[i].f = d[i].f = f;
        cr_assert_eq(lapse_cancel(f->l, "q", id, 0, flow_answered, &b[i]), 0);
        snprintf(id, sizeof id, "%d", i + 50);
        cr_assert_eq(lapse_reschedule(f->l, "q", id, lapse_in(2 * HOUR), 0, flow_answered, &c[i]),
                     0);
        snprintf(id, sizeof id, "new-%d", i);
        struct lapse_spec s = flow_job_spec("q", id, HOUR);
        cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &d[i]), 0);
    }

    all_answered(f, b, 50);
    all_answered(f, c, 50);
    all_answered(f, d, 50);
    cr_assert_eq(flow_scripts(f) - before, 3);
    flow_end(f, "q");
}

Test(batch, each_queue_of_a_turn_is_a_call_of_its_own)
{
    static const char *const queues[] = {"q1", "q2", "q3"};
    struct flow *f = start();
    struct flow_answer a[30];

    for (size_t i = 0; i < sizeof queues / sizeof *queues; i++) {
        flow_enter(f, queues[i]);
    }

    long long before = flow_scripts(f);

    for (int i = 0; i < 30; i++) {
        struct lapse_spec s = flow_job_spec(queues[i % 3], NULL, HOUR);
        a[i] = (struct flow_answer){.f = f};
        cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &a[i]), 0);
    }

    all_answered(f, a, 30);
    cr_assert_eq(flow_scripts(f) - before, 3);
    flow_end(f, "q1", "q2", "q3");
}

Test(batch, a_call_carries_no_more_than_256_kib_of_bodies_and_the_one_that_passed)
{
    static const struct {
        int jobs;
        size_t len;
        int calls;
    } rows[] = {{10, 65536, 3},  {4, 65536, 1},  {5, 65536, 2},
                {2, 1 << 20, 2}, {100, 1000, 1}, {20, 131072, 10}};
    static struct flow_answer a[100];
    struct flow *f = start();
    char *body = calloc(1, 1 << 20);

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        long long before = flow_scripts(f);
        ask_schedules(f, a, rows[i].jobs, body, rows[i].len);
        all_answered(f, a, rows[i].jobs);
        cr_assert_eq(flow_scripts(f) - before, rows[i].calls, "%d of %zu bytes: %lld calls",
                     rows[i].jobs, rows[i].len, flow_scripts(f) - before);
    }

    free(body);
    flow_end(f, "q");
}

Test(batch, what_is_asked_of_one_id_in_one_turn_happens_in_that_order)
{
    struct flow *f = start();
    struct flow_answer a[9];
    struct lapse_spec s = flow_job_spec("q", "a", HOUR);
    struct lapse_due later = lapse_in(2 * HOUR);

    for (int i = 0; i < 9; i++) {
        a[i] = (struct flow_answer){.f = f};
    }

    long long before = flow_scripts(f);
    cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &a[0]), 0);
    cr_assert_eq(lapse_cancel(f->l, "q", "a", 0, flow_answered, &a[1]), 0);
    cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &a[2]), 0);
    cr_assert_eq(lapse_reschedule(f->l, "q", "a", later, 0, flow_answered, &a[3]), 0);
    cr_assert_eq(lapse_get(f->l, "q", "a", flow_answered, &a[4]), 0);
    cr_assert_eq(lapse_cancel(f->l, "q", "a", 0, flow_answered, &a[5]), 0);
    cr_assert_eq(lapse_get(f->l, "q", "a", flow_answered, &a[6]), 0);
    cr_assert_eq(lapse_reschedule(f->l, "q", "a", later, 0, flow_answered, &a[7]), 0);
    cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &a[8]), 0);

    static const int errors[] = {0, 0, 0, 0, 0, 0, LAPSE_ENOENT, LAPSE_ENOENT, 0};
    for (int i = 0; i < 9; i++) {
        cr_assert_eq(flow_wait(f, &a[i]), errors[i], "call %d: %s", i, lapse_strerror(a[i].err));
        cr_assert_eq(a[i].nth, (unsigned)i + 2, "call %d was answered as number %u", i, a[i].nth);
    }

    cr_assert_eq(a[4].job.due_ms, a[3].job.due_ms);
    cr_assert_eq(flow_scripts(f) - before, 9);
    flow_end(f, "q");
}

Test(batch, many_ids_each_with_its_own_order_share_the_calls)
{
    enum { IDS = 40, STEPS = 4 };
    static struct flow_answer a[IDS][STEPS];
    struct flow *f = start();
    char id[16];
    long long before = flow_scripts(f);

    for (int i = 0; i < IDS; i++) {
        snprintf(id, sizeof id, "%d", i);
        struct lapse_spec s = flow_job_spec("q", id, HOUR);
        for (int k = 0; k < STEPS; k++) {
            a[i][k].f = f;
        }
        cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &a[i][0]), 0);
        cr_assert_eq(
            lapse_reschedule(f->l, "q", id, lapse_in(2 * HOUR), 0, flow_answered, &a[i][1]), 0);
        cr_assert_eq(lapse_get(f->l, "q", id, flow_answered, &a[i][2]), 0);
        cr_assert_eq(lapse_cancel(f->l, "q", id, 0, flow_answered, &a[i][3]), 0);
    }

    for (int i = 0; i < IDS; i++) {
        for (int k = 0; k < STEPS; k++) {
            cr_assert_eq(flow_wait(f, &a[i][k]), 0);
            cr_assert(k == 0 || a[i][k].nth > a[i][k - 1].nth);
        }
    }

    cr_assert_eq(flow_scripts(f) - before, STEPS);
    flow_end(f, "q");
}

/* A random walk: whatever was asked, in whichever turns, each answer is what a model of one id
 * says. */
Test(batch, random_requests_of_few_ids_answer_as_if_one_by_one)
{
    enum { IDS = 5, ASKED = 2000 };
    static struct flow_answer a[ASKED];
    static int want[ASKED];
    bool there[IDS] = {false};
    struct flow *f = start();
    unsigned seed = 4711;
    char id[2] = "0";

    for (int i = 0; i < ASKED; i++) {
        int which = (int)((seed = seed * 1103515245 + 12345) >> 16) % IDS;
        int verb = (int)(seed >> 24) % 4;
        struct lapse_spec s = flow_job_spec("q", id, HOUR);
        *id = (char)('0' + which);
        a[i].f = f;
        want[i] = there[which] ? 0 : LAPSE_ENOENT;
        switch (verb) {
        case 0:
            want[i] = there[which] ? LAPSE_EEXIST : 0;
            there[which] = true;
            cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &a[i]), 0);
            break;
        case 1:
            there[which] = false;
            cr_assert_eq(lapse_cancel(f->l, "q", id, 0, flow_answered, &a[i]), 0);
            break;
        case 2:
            cr_assert_eq(lapse_reschedule(f->l, "q", id, lapse_in(HOUR), 0, flow_answered, &a[i]),
                         0);
            break;
        case 3: cr_assert_eq(lapse_get(f->l, "q", id, flow_answered, &a[i]), 0); break;
        }
        if (seed % 50 < 3) {
            ev_run(f->loop, EVRUN_NOWAIT);
        }
    }

    for (int i = 0; i < ASKED; i++) {
        cr_assert_eq(flow_wait(f, &a[i]), want[i], "request %d", i);
    }

    flow_end(f, "q");
}

Test(batch, a_lone_request_of_an_idle_process_waits_for_no_timer)
{
    struct flow *f = start();
    struct flow_answer a = {.f = f};

    for (int i = 0; i < 50; i++) {
        long long before = flow_scripts(f);
        a.calls = 0;
        cr_assert_eq(lapse_get(f->l, "q", "a", flow_answered, &a), 0);
        ev_run(f->loop, EVRUN_NOWAIT); /* one look at the descriptors: it is sent now, or it waits
                                          for a timer */
        for (int64_t end = test_now_ms() + FLOW_WAIT_MS; flow_scripts(f) == before;) {
            cr_assert(test_now_ms() < end, "it was not sent");
        }
        redis_do(f->server, "PING"); /* before Redis reads that, it has written the answer */
        for (int k = 0; k < 3 && !a.calls; k++) {
            ev_run(f->loop, EVRUN_NOWAIT);
        }
        cr_assert_eq(a.err, LAPSE_ENOENT, "the answer was there, and was not given");
        cr_assert_eq(flow_scripts(f), before + 1);
    }

    flow_end(f, "q");
}

static void ask_sixty(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    (void)l;
    (void)err;
    (void)job;
    struct flow_answer *a = arg;
    ask_schedules(a->f, a, 60, NULL, 0);
}

Test(batch, what_one_callback_asks_travels_together)
{
    static struct flow_answer a[60];
    struct flow *f = start();
    long long before = flow_scripts(f);

    a[0].f = f;
    cr_assert_eq(lapse_get(f->l, "q", "a", ask_sixty, a), 0);
    flow_until(f, f->n_answers == 61); /* start() got one */
    all_answered(f, a, 60);
    cr_assert_eq(flow_scripts(f) - before, 2);
    flow_end(f, "q");
}

static void events_alone(struct lapse_options *o)
{
    o->flags = LAPSE_NO_ALARM;
    o->sweep_ms = 600000;
}

/* One script takes a few of them. Only their events announce the others. */
Test(batch, a_claim_of_many_big_jobs_goes_on_until_all_are_claimed)
{
    enum { N = 50, BODY = 100 * 1024, AHEAD_MS = 500 };
    static char body[BODY];
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, events_alone);
    struct flow_handler w = {.way = FLOW_DONE};
    int64_t due_ms = redis_now_ms(f->server) + AHEAD_MS;

    for (int i = 0; i < N; i++) {
        struct lapse_spec s = flow_job_spec("q", NULL, 0);
        s.due = lapse_at(due_ms);
        s.body = body;
        s.body_len = BODY;
        cr_assert_eq(flow_spec(f, &s, NULL), 0);
    }

    flow_listen(f, "q", &w);
    flow_until(f, w.settled == N);
    flow_each_once(&w, N);
    flow_end(f, "q");
}
