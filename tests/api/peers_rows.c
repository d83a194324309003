/* SPDX-License-Identifier: MIT */
/* What users of other queues ask for most, one test a row of the comparison with them. */
#include "handler.h"
#include "listening.h"
#include "states.h"

enum { HOUR = 3600000, MANY = 250 };

/* How many series there are. */
static void on_series(struct lapse *l, int err, const struct lapse_job *const *jobs, size_t n,
                      void *arg)
{
    int *out = arg;

    (void)l;
    (void)jobs;
    cr_assert_eq(err, 0);
    *out = (int)n;
}

static int n_series(struct flow *f)
{
    int n = -1;

    cr_assert_eq(lapse_list(f->l, "q", LAPSE_SERIES, NULL, 10, on_series, &n), 0);
    flow_until(f, n >= 0);
    return n;
}

/* Row 1: by a period, or by a calendar: each 20 ms, by the clock. */
static int64_t ticks(const char *rule, int64_t after_ms, void *arg)
{
    (void)rule;
    (void)arg;
    return (after_ms / 20 + 1) * 20;
}

Test(peers_row_1, a_job_repeats_each_period_or_by_a_calendar_until_its_limit_or_its_removal)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};
    struct lapse_series period = lapse_series_init();
    struct lapse_series calendar = lapse_series_init();
    struct lapse_spec s = flow_job_spec("q", "period", 0);

    cr_assert_eq(lapse_calendar(f->l, "ticks", ticks, NULL), 0);
    flow_listen(f, "q", &w);
    period.every_ms = 100;
    period.times = 3;
    period.catch_up = LAPSE_CATCH_UP_ALL; /* also those at which the machine stood still */
    s.series = &period;
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    flow_until(f, w.settled == 3 && n_series(f) == 0);

    calendar.calendar = "ticks";
    calendar.rule = "20";
    s.id = "calendar";
    s.series = &calendar;
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    cr_assert_eq(n_series(f), 1);
    flow_until(f, w.settled >= 6);
    cr_assert_eq(flow_cancel(f, "q", "calendar", NULL), 0);
    cr_assert_eq(n_series(f), 0);
    flow_until(f, w.settled == w.n_runs);
    flow_each_once(&w, w.n_runs);
    flow_end(f, "q");
}

/* Row 2: "not yet" is no try. Where each is one, ten of them kill the job. */
FLOW_ALL_MODES(peers_row_2, ten_snoozes_use_up_no_try)
{
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_SNOOZE};
    struct lapse_spec s = flow_job_spec("q", "a", 0);

    s.tries = 1;
    flow_listen(f, "q", &w);
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    flow_until(f, w.settled >= 10);
    w.way = FLOW_DONE;
    flow_until(f, flow_stats(f->l).done == 1);
    for (size_t i = 0; i < w.n_runs; i++) {
        cr_assert_eq(w.runs[i].job.try_no, 1);
    }
    cr_assert_eq(flow_stats(f->l).failed, 0);
    flow_end(f, "q");
}

static void sweeps_often(struct lapse_options *o)
{
    o->sweep_ms = 1000;
}

/* Row 3: the dead are bounded by number and by age. */
Test(peers_row_3, the_oldest_of_too_many_dead_jobs_are_freed)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, sweeps_often);
    struct flow_handler w = {.way = FLOW_FAIL, .reason = "no"};

    cr_assert_eq(flow_configure(f, "q", "dead_max=100", NULL), 0);
    flow_listen(f, "q", &w);
    cr_assert_eq(flow_schedule(f, "q", "far", HOUR, NULL), 0);
    for (int i = 0; i < MANY; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    }
    flow_until(f, w.settled == MANY && flow_count(f, "q", "dead") == 100);
    cr_assert_eq(flow_stats(f->l).dead_freed, MANY - 100);

    cr_assert_eq(flow_configure(f, "q", "dead_max= dead_keep=1s", NULL), 0);
    flow_until(f, flow_count(f, "q", "dead") == 0);
    cr_assert_eq(flow_stats(f->l).dead_freed, MANY);
    cr_assert_eq(flow_count(f, "q", "due"), 1);
    flow_end(f, "q");
}

/* Row 4: one call retries all dead, or deletes them, and one kills a job that waits. */
Test(peers_row_4, one_call_changes_many)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_where dead = {.state = LAPSE_DEAD};
    struct flow_counts c;

    for (int i = 0; i < MANY; i++) {
        char id[8];
        snprintf(id, sizeof id, "%d", i);
        cr_assert_eq(flow_schedule(f, "q", id, HOUR, NULL), 0);
        cr_assert_eq(flow_kill(f, "q", id, "no", NULL), 0);
    }
    cr_assert_eq(flow_count(f, "q", "dead"), MANY);

    cr_assert_eq(flow_reschedule_all(f, "q", dead, lapse_in(HOUR), 0, &c), 0);
    cr_assert_eq(c.n, MANY);
    cr_assert_eq(flow_count(f, "q", "due"), MANY);
    cr_assert_eq(flow_count(f, "q", "dead"), 0);

    cr_assert_eq(flow_kill(f, "q", "7", "no", NULL), 0);
    cr_assert_eq(flow_cancel_all(f, "q", dead, &c), 0);
    cr_assert_eq(c.n, 1);
    cr_assert_eq(flow_count(f, "q", "due"), MANY - 1);
    cr_assert_eq(flow_get(f, "q", "7", NULL), LAPSE_ENOENT);
    flow_end(f, "q");
}

/* Row 6: which queues there are, who listens to one, and how many jobs each holds. */
static void on_queues(struct lapse *l, int err, const struct lapse_queue *const *queues, size_t n,
                      void *arg)
{
    uint64_t *running = arg;

    (void)l;
    cr_assert_eq(err, 0);
    cr_assert_eq(n, 2);
    cr_assert_str_eq(queues[0]->name, "mail.a");
    cr_assert_str_eq(queues[1]->name, "mail.b");
    cr_assert_eq(queues[1]->depth->waiting, 1);
    *running = queues[0]->depth->running;
}

static void on_listeners(struct lapse *l, int err, const struct lapse_listener *const *listeners,
                         size_t n, void *arg)
{
    uint64_t *held = arg;

    (void)l;
    cr_assert_eq(err, 0);
    cr_assert_eq(n, 1);
    *held = listeners[0]->n_held;
}

Test(peers_row_6, it_is_shown_which_queues_there_are_and_who_holds_how_many_jobs)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};
    uint64_t running = 0;
    uint64_t held = 0;

    flow_listen(f, "mail.a", &w);
    cr_assert_eq(flow_schedule(f, "mail.a", NULL, 0, NULL), 0);
    cr_assert_eq(flow_schedule(f, "mail.b", NULL, HOUR, NULL), 0);
    cr_assert_eq(flow_schedule(f, "sms", NULL, HOUR, NULL), 0);
    flow_until(f, w.n_held == 1);

    cr_assert_eq(lapse_queues(f->l, "mail.*", on_queues, &running), 0);
    cr_assert_eq(lapse_listeners(f->l, "mail.a", on_listeners, &held), 0);
    flow_until(f, running == 1 && held == 1);
    flow_settle(&w, FLOW_DONE);
    flow_until(f, w.settled == 1);
    flow_end(f, "mail.a", "mail.b", "sms");
}

/* Row 7: every death is heard of, that of a crash too. */
static void on_death(struct lapse *l, enum lapse_event what, const struct lapse_job *job, void *arg)
{
    struct flow_job *deaths = arg;
    size_t i = strcmp(lapse_job_id(job), "failed") == 0;

    cr_assert(l && what == LAPSE_EVENT_DIED);
    flow_copy(NULL, &deaths[i], job);
}

Test(peers_row_7, a_death_is_heard_of_with_its_reason_be_it_by_a_failure_or_a_crash)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, sweeps_often);
    struct flow_handler w = {.way = FLOW_FAIL, .reason = "no such order"};
    struct flow_job deaths[2] = {{.try_no = 0}};

    lapse_on_event(f->l, on_death, deaths);
    flow_put(f, "q", "crashed", FLOW_ENDED_LAST, NULL);
    cr_assert_eq(flow_schedule(f, "q", "failed", 0, NULL), 0);
    flow_listen(f, "q", &w);
    flow_until(f, deaths[0].try_no && deaths[1].try_no);
    cr_assert_str_eq(deaths[0].id, "crashed");
    cr_assert_str_eq(deaths[0].reason, "the lease ended");
    cr_assert_str_eq(deaths[1].reason, "no such order");
    flow_end(f, "q");
}

/* Row 8: a job that runs is asked to stop, and is not retried. */
Test(peers_row_8, a_running_job_is_asked_to_stop)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};
    struct flow_answer a = {.f = f};

    flow_hold(f, &w, "a");
    cr_assert_eq(lapse_cancel(f->l, "q", "a", LAPSE_RUNNING_TOO, flow_answered, &a), 0);
    cr_assert_eq(flow_wait(f, &a), 0);
    cr_assert_eq(a.job.state, LAPSE_RUNNING);
    flow_until(f, lapse_job_cancelled(w.held[0]));
    flow_settle(&w, FLOW_RETRY);
    cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_ENOENT);
    flow_end(f, "q");
}

/* Row 9: a job says how long one run may take, and how late it may begin. */
Test(peers_row_9, a_job_has_limits_of_its_own)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, sweeps_often);
    struct flow_handler w = {.way = FLOW_KEEP};
    struct lapse_spec slow = flow_job_spec("q", "slow", 0);
    struct lapse_spec late = flow_job_spec("q", "late", 0);

    slow.run_ms = 3500;
    late.max_late_ms = 1;
    flow_allow_log(f, "held for run_ms");
    cr_assert_eq(flow_spec(f, &slow, NULL), 0);
    cr_assert_eq(flow_spec(f, &late, NULL), 0);
    flow_poll(f, redis_now_ms(f->server) > flow_score(f, "q", "due", "late") + 1);
    flow_listen(f, "q", &w);
    flow_until(f, w.n_held >= 2);
    cr_assert_eq(w.runs[1].job.try_no, 2, "its first run took longer than 3.5 s");
    cr_assert_eq(flow_runs_of(&w, "late"), 0);
    cr_assert_eq(flow_stats(f->l).skipped, 1);
    w.way = FLOW_DONE;
    flow_settle(&w, FLOW_DONE);
    flow_until(f, redis_left(f->server, f->space, "q") == 0);
    flow_end(f, "q");
}

/* Row 11: how many start in a time, and how many run at once, of all listeners together. */
Test(peers_row_11, limits_hold_over_all_listeners)
{
    enum { ALL = 24, AT_ONCE = 2, STARTS = 6, WINDOW_US = 200000 };
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w[2] = {{.way = FLOW_KEEP}, {.way = FLOW_KEEP}};
    struct lapse *first = f->l;
    int64_t starts[ALL];
    size_t n = 0;

    cr_assert_eq(flow_configure(f, "q", "rate=6/200ms max_running=2", NULL), 0);
    flow_listen(f, "q", &w[0]);
    f->l = flow_open(f, NULL);
    flow_listen(f, "q", &w[1]);
    flow_until_listeners(f, "q", 2);
    f->l = first;
    for (int i = 0; i < ALL; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    }

    while (n < ALL) {
        flow_until(f, w[0].n_held + w[1].n_held > 0);
        cr_assert_leq(flow_count(f, "q", "run"), AT_ONCE);
        struct flow_handler *holds = w[0].n_held > 0 ? &w[0] : &w[1];
        struct lapse_job *job = holds->held[--holds->n_held];
        starts[n++] = lapse_job_claimed_us(job);
        lapse_done(job, flow_on_settled, holds);
    }
    flow_until(f, w[0].settled + w[1].settled == ALL);
    for (size_t i = STARTS; i < ALL; i++) {
        size_t earlier = 0;
        for (size_t k = 0; k < ALL; k++) {
            earlier += starts[k] > starts[i] - WINDOW_US && starts[k] <= starts[i];
        }
        cr_assert_leq(earlier, STARTS);
    }
    flow_end(f, "q");
}

/* Row 12: of jobs that are due together the more important goes first. */
Test(peers_row_12, the_higher_priority_goes_first)
{
    static const unsigned priorities[] = {0, 7, 255, 1};
    static const char *const in_order[] = {"2", "1", "3", "0"};
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_where waiting = {.state = LAPSE_WAITING};
    struct flow_claim claim;

    for (int i = 0; i < 4; i++) {
        char id[8];
        snprintf(id, sizeof id, "%d", i);
        struct lapse_spec s = flow_job_spec("q", id, HOUR);
        s.priority = priorities[i];
        cr_assert_eq(flow_spec(f, &s, NULL), 0);
    }
    cr_assert_eq(flow_reschedule_all(f, "q", waiting, lapse_in(0), 0, NULL), 0);
    cr_assert_eq(flow_claim(f, "q", 4, 0, &claim), 0);
    cr_assert_eq(claim.n, 4);
    for (int i = 0; i < 4; i++) {
        cr_assert_str_eq(lapse_job_id(claim.jobs[i]), in_order[i]);
    }
    flow_claim_done(f, &claim);
    flow_end(f, "q");
}

/* Row 13: unique by what the job is about, and once more after this run. */
Test(peers_row_13, a_key_makes_a_job_unique_by_its_arguments_for_as_long_as_it_says)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};
    struct lapse_spec s = flow_job_spec("q", NULL, 0);

    s.unique = "mail:7:welcome";
    s.flags = LAPSE_UNIQUE_UNTIL_START;
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    cr_assert_eq(flow_spec(f, &s, NULL), LAPSE_EEXIST);
    flow_listen(f, "q", &w);
    flow_until(f, w.n_held == 1);
    cr_assert_eq(flow_spec(f, &s, NULL), 0, "once more after this run");
    flow_until(f, w.n_held == 2);
    flow_settle(&w, FLOW_DONE);
    cr_assert_eq(flow_count(f, "q", "due"), 0);
    flow_end(f, "q");
}

static const char *const said[] = {"first", "second", "third", "fourth", "fifth", "sixth"};

static void on_errors(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    int64_t last_ms = INT64_MAX;
    int64_t at_ms;
    unsigned try_no;

    (void)l;
    cr_assert_eq(err, 0);
    cr_assert_str_eq(lapse_job_reason(job), "sixth");
    cr_assert_gt(lapse_job_created_ms(job), 0);
    for (unsigned i = 0; i < 5; i++) {
        cr_assert_str_eq(lapse_job_error(job, i, &at_ms, &try_no), said[5 - i]);
        cr_assert(at_ms <= last_ms && at_ms >= lapse_job_created_ms(job));
        cr_assert_eq(try_no, 6 - i);
        last_ms = at_ms;
    }
    cr_assert_null(lapse_job_error(job, 5, NULL, NULL));
    *(bool *)arg = true;
}

static void on_result(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    size_t len;

    (void)l;
    cr_assert_eq(err, 0);
    cr_assert_eq(lapse_job_end(job), LAPSE_ENDED_DONE);
    cr_assert_arr_eq(lapse_job_report(job, &len), "paid", 4);
    cr_assert_eq(len, 4);
    *(bool *)arg = true;
}

/* Row 14: how many jobs there were in a time, of all processes; Prometheus reads none of it yet. */
static void on_past(struct lapse *l, int err, const struct lapse_past *const *rows, size_t n,
                    void *arg)
{
    struct lapse_past *sum = arg;

    (void)l;
    cr_assert_eq(err, 0);
    cr_assert_eq(n, 2);
    for (size_t i = 0; i < n; i++) {
        sum->scheduled += rows[i]->scheduled;
        sum->claimed += rows[i]->claimed;
        sum->done += rows[i]->done;
        sum->dead += rows[i]->dead;
    }
}

Test(peers_row_14, jobs_are_counted_over_time_by_all_processes_together)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};
    struct lapse_past sum = {.from_ms = 0};

    flow_listen(f, "q", &w);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    }
    flow_until(f, w.n_held == 3);
    lapse_fail(w.held[--w.n_held], "broken", flow_on_settled, &w);
    flow_settle(&w, FLOW_DONE);
    flow_until(f, w.settled == 3);
    flow_close(f, f->l, 5000);

    f->l = flow_open(f, NULL);
    int64_t now_ms = redis_now_ms(f->server);
    int64_t to_ms = (now_ms / LAPSE_STEP_MIN_MS + 1) * LAPSE_STEP_MIN_MS;
    int64_t from_ms = to_ms - 2 * (int64_t)LAPSE_STEP_MIN_MS;
    cr_assert_eq(lapse_history(f->l, "q", from_ms, to_ms, LAPSE_STEP_MIN_MS, on_past, &sum), 0);
    flow_until(f, sum.scheduled > 0);
    cr_assert(sum.scheduled == 3 && sum.claimed == 3 && sum.done == 2 && sum.dead == 1);
    flow_end(f, "q");
}

/* Row 15: what it has done so far, and its result for who waits for it, in another process. */
Test(peers_row_15, who_waits_for_a_job_gets_its_result)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse *waits = flow_open(f, NULL);
    struct flow_handler w = {.way = FLOW_KEEP};
    struct lapse_spec s = flow_job_spec("q", "a", 0);
    bool read = false;

    s.keep_ms = 60000;
    flow_listen(f, "q", &w);
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    flow_until(f, w.n_held == 1);
    cr_assert_eq(lapse_wait(waits, "q", "a", 60000, on_result, &read), 0);
    cr_assert_eq(lapse_report(w.held[0], "half", 4, NULL, NULL), 0);
    cr_assert_eq(lapse_report(w.held[0], "paid", 4, NULL, NULL), 0);
    flow_settle(&w, FLOW_DONE);
    flow_until(f, read);
    flow_end(f, "q");
}

static void on_batch(struct lapse *l, int err, const struct lapse_batch *batch, void *arg)
{
    (void)l;
    cr_assert_eq(err, 0);
    *(struct lapse_batch *)arg = *batch;
    ((struct lapse_batch *)arg)->closed = 2 + batch->closed;
}

static struct lapse_batch batch_so_far(struct flow *f)
{
    struct lapse_batch b = {0};

    cr_assert_eq(lapse_batch_get(f->l, "q", "n", on_batch, &b), 0);
    flow_until(f, b.closed);
    b.closed -= 2;
    return b;
}

/* Row 16: a batch. It is counted in and out; when it is closed, and the last has ended, in whatever
 * way, its own job runs once. A dead job keeps it open, and is seen. */
Test(peers_row_16, when_all_jobs_of_a_batch_have_ended_its_own_job_runs_once)
{
    static const char *const ids[] = {"done", "cancelled", "dead"};
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow_answer a = {.f = f};

    flow_listen(f, "q", &w);
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        struct lapse_spec s = flow_job_spec("q", ids[i], i == 0 ? 0 : HOUR);
        s.batch = "n";
        cr_assert_eq(flow_spec(f, &s, NULL), 0);
    }
    cr_assert_eq(flow_kill(f, "q", "dead", "no", NULL), 0);
    cr_assert_eq(flow_schedule(f, "q", "n", HOUR, NULL), 0);
    flow_until(f, w.settled == 1);
    cr_assert_eq(lapse_batch_close(f->l, "q", "n", flow_answered, &a), 0);
    cr_assert_eq(flow_wait(f, &a), 0);
    cr_assert_eq(flow_cancel(f, "q", "cancelled", NULL), 0);

    struct lapse_batch b = batch_so_far(f);
    cr_assert_eq(b.left, 0);
    cr_assert_eq(b.dead, 1);
    cr_assert_eq(b.ended, 2);
    cr_assert_eq(b.closed, 1);

    cr_assert_eq(flow_reschedule(f, "q", "dead", lapse_in(0), NULL), 0);
    flow_until(f, w.settled == 3);
    cr_assert_str_eq(w.runs[1].job.id, "dead");
    cr_assert_str_eq(w.runs[2].job.id, "n");
    cr_assert_eq(flow_count(f, "q", "due"), 0);
    flow_end(f, "q");
}

/* Row 17: not the last reason alone, and when the job was made. */
Test(peers_row_17, a_job_tells_the_errors_of_its_runs_and_when_it_was_created)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_KEEP};
    struct lapse_spec s = flow_job_spec("q", "a", 0);
    bool read = false;

    s.flags = LAPSE_CREATED | LAPSE_KEEP_ERRORS;
    s.tries = 6;
    flow_listen(f, "q", &w);
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    for (unsigned i = 0; i < 6; i++) {
        w.reason = said[i];
        flow_until(f, w.n_held == 1);
        flow_settle(&w, FLOW_RETRY);
    }
    flow_until(f, flow_count(f, "q", "dead") == 1);
    cr_assert_eq(lapse_get(f->l, "q", "a", on_errors, &read), 0);
    flow_until(f, read);
    flow_end(f, "q");
}

/* Row 18: a listener can be told from anywhere to take no more jobs, to go on, and to stop. */
static void on_told(struct lapse *l, enum lapse_told what, void *arg)
{
    (void)l;
    *(enum lapse_told *)arg = what;
}

Test(peers_row_18, a_listener_can_be_told_to_be_quiet_to_go_on_and_to_stop)
{
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct lapse_options o = flow_options(f);
    struct flow_handler w = {.way = FLOW_DONE};
    enum lapse_told told = LAPSE_TOLD_GO_ON;
    struct lapse *listener;

    o.name = "worker";
    listener = f->l = flow_open(f, &o);
    lapse_on_told(listener, on_told, &told);
    flow_listen(f, "q", &w);
    flow_until_listeners(f, "q", 1);
    f->l = flow_open(f, NULL);

    cr_assert_eq(lapse_quiet(f->l, "worker", 1, NULL, NULL), 0);
    flow_until(f, told == LAPSE_TOLD_QUIET);
    cr_assert_eq(flow_schedule(f, "q", "waits", 0, NULL), 0);
    flow_spin(f, 300);
    cr_assert_eq(w.n_runs, 0);

    cr_assert_eq(lapse_quiet(f->l, "worker", 0, NULL, NULL), 0);
    flow_until(f, told == LAPSE_TOLD_GO_ON && w.settled == 1);
    cr_assert_eq(lapse_stop(f->l, "worker", NULL, NULL), 0);
    flow_until(f, told == LAPSE_TOLD_STOP);
    flow_close(f, listener, 5000);
    flow_end(f, "q");
}
