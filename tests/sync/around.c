/* SPDX-License-Identifier: MIT */
/* lapse_sync_around(): what is called before and after each handler, and in which thread. */
#include "waiting.h"
#include <signal.h>

/* What was called, in order: "b1 b2 handler a2 a1". */
struct trace {
    pthread_mutex_t mutex; /* of all but the atomic ones */
    char text[200];
    enum lapse_how how; /* of the last after */
    int err;
    int64_t ran_us;
    int call_err; /* of a call that it made */
    char id[16];
    bool same_thread; /* before ran in the thread of the handler */
    pthread_t before, after;
    atomic_uint n_before, n_handler, n_ended, n_after;
    atomic_bool before_blocks;
    atomic_bool before_until_closed, handler_until_closed; /* it waits until the handle has */
    atomic_bool before_loses, has_lost;                    /* its lease; it has */
    struct worker k;
};

struct pair {
    struct trace *trace;
    const char *name;
    bool takes; /* the job is of before, which settles it in the way of the worker */
};

static void trace_init(struct trace *t, enum way way)
{
    memset(t, 0, sizeof *t);
    pthread_mutex_init(&t->mutex, NULL);
    worker_init(&t->k, way);
}

static void note(struct trace *t, const char *what, const char *name)
{
    pthread_mutex_lock(&t->mutex);
    size_t len = strlen(t->text);
    snprintf(t->text + len, sizeof t->text - len, "%s%s%s", len ? " " : "", what, name);
    pthread_mutex_unlock(&t->mutex);
}

static void must_read(struct trace *t, const char *text)
{
    pthread_mutex_lock(&t->mutex);
    bool same = strcmp(t->text, text) == 0;
    pthread_mutex_unlock(&t->mutex);
    cr_assert(same, "%s, and not %s", t->text, text);
}

static void must_have_heard(struct trace *t, enum lapse_how how, int err)
{
    pthread_mutex_lock(&t->mutex);
    enum lapse_how heard = t->how;
    int heard_err = t->err;
    pthread_mutex_unlock(&t->mutex);
    cr_assert(heard == how && heard_err == err, "%d: %s", heard, lapse_strerror(heard_err));
}

/* It says so once more while it closes. */
static void wait_for_closed(struct lapse_sync *s, struct lapse_job *job)
{
    for (int n = 0; n < 2;) {
        n = lapse_sync_report(s, job, "", 0, 0) == LAPSE_ECLOSED ? n + 1 : 0;
        wait_a_little();
    }
}

/* The job may be held for no longer, and the loop has seen that. */
static void lose_lease(struct lapse_sync *s, struct lapse_job *job)
{
    lapse_sync_extend(s, job, 100, 0);
    while (lapse_job_until_ms(job) != 0) {
        wait_a_little();
    }
}

static int before(struct lapse_sync *s, struct lapse_job *job, void *arg)
{
    struct pair *p = arg;
    struct trace *t = p->trace;

    note(t, "b", p->name);
    pthread_mutex_lock(&t->mutex);
    t->before = pthread_self();
    pthread_mutex_unlock(&t->mutex);
    t->n_before++;
    if (t->before_loses) {
        lose_lease(s, job);
        t->has_lost = true;
    }
    while (t->before_blocks) {
        wait_a_little();
    }
    if (t->before_until_closed) {
        wait_for_closed(s, job);
    }
    if (p->takes) {
        worker_on_job(s, job, &t->k);
    }
    return p->takes;
}

static void after(struct lapse_sync *s, const struct lapse_job *job, enum lapse_how how, int err,
                  int64_t ran_us, void *arg)
{
    struct pair *p = arg;
    struct trace *t = p->trace;
    int call_err = schedule(s, "x", HOUR);

    note(t, "a", p->name);
    pthread_mutex_lock(&t->mutex);
    t->how = how;
    t->err = err;
    t->ran_us = ran_us;
    t->call_err = call_err;
    t->after = pthread_self();
    snprintf(t->id, sizeof t->id, "%s", lapse_job_id(job));
    pthread_mutex_unlock(&t->mutex);
    t->n_after++;
}

static void handler(struct lapse_sync *s, struct lapse_job *job, void *arg)
{
    struct trace *t = arg;

    note(t, "handler", "");
    pthread_mutex_lock(&t->mutex);
    t->same_thread = pthread_equal(t->before, pthread_self()) != 0;
    pthread_mutex_unlock(&t->mutex);
    t->n_handler++;
    if (t->handler_until_closed) {
        wait_for_closed(s, job);
    }
    worker_on_job(s, job, &t->k);
    note(t, "end", "");
    t->n_ended++;
}

static int listen_to(struct lapse_sync *s, struct trace *t, unsigned max_running)
{
    struct lapse_sync_listen_options o = {.size = sizeof o, .max_running = max_running};

    return lapse_sync_listen(s, "q", &o, handler, t);
}

/* A handle with one pair, and the job "a" at its handler, or at before. */
static void start(struct waiting *w, struct trace *t, struct pair *p, enum way way)
{
    waiting_start(w);
    trace_init(t, way);
    *p = (struct pair){t, "1", false};
    cr_assert_eq(lapse_sync_around(w->s, before, after, p), 0);
    cr_assert_eq(listen_to(w->s, t, 0), 0);
    cr_assert_eq(schedule(w->s, "a", 0), 0);
}

/* What was due is not the subject. */
static void end(struct waiting *w)
{
    redis_do(w->server, "FLUSHALL");
    waiting_end(w, "q");
}

Test(around, each_handler_they_are_called_in_order_and_back_before_its_settle_returns)
{
    static struct trace t;
    struct waiting w;
    struct pair p[] = {{&t, "1", false}, {&t, "2", false}, {&t, "3", false}, {&t, "4", false}};

    waiting_start(&w);
    trace_init(&t, DONE);
    t.k.blocks = true;
    cr_assert_eq(lapse_sync_around(w.s, before, after, &p[0]), 0);
    cr_assert_eq(lapse_sync_around(w.s, before, NULL, &p[1]), 0);
    cr_assert_eq(lapse_sync_around(w.s, NULL, after, &p[2]), 0);
    cr_assert_eq(lapse_sync_around(w.s, before, after, &p[3]), 0);
    cr_assert_eq(listen_to(w.s, &t, 0), 0);
    cr_assert_eq(schedule(w.s, "a", 0), 0);
    wait_until(t.k.inside == 1);
    must_read(&t, "b1 b2 b4 handler");

    int64_t end_ms = test_now_ms() + 5;
    wait_until(test_now_ms() > end_ms);
    t.k.blocks = false;
    wait_until(t.n_ended == 1);
    lapse_sync_close(w.s, HOUR);
    must_read(&t, "b1 b2 b4 handler a4 a3 a1 end");
    must_have_heard(&t, LAPSE_HOW_DONE, 0);
    cr_assert_str_eq(t.id, "a");
    cr_assert_geq(t.ran_us, 5000);
    w.s = waiting_open(&w);
    waiting_end(&w, "q");
}

Test(around, a_handler_before_runs_in_its_thread_and_after_in_that_of_the_handle)
{
    static struct trace t;
    struct waiting w;
    struct pair p;

    start(&w, &t, &p, DONE);
    wait_until(t.n_ended == 1);
    lapse_sync_close(w.s, HOUR);
    cr_assert(t.same_thread);
    cr_assert(!pthread_equal(t.before, t.after) && !pthread_equal(t.after, pthread_self()));
    cr_assert_eq(t.call_err, LAPSE_EINVAL, "a call of after: %s", lapse_strerror(t.call_err));
    w.s = waiting_open(&w);
    waiting_end(&w, "q");
}

Test(around, after_hears_how_the_job_was_settled)
{
    static const enum lapse_how hows[] = {[DONE] = LAPSE_HOW_DONE,
                                          [RETRY] = LAPSE_HOW_RETRY,
                                          [SNOOZE] = LAPSE_HOW_SNOOZE,
                                          [FAIL] = LAPSE_HOW_FAIL,
                                          [RELEASE] = LAPSE_HOW_RELEASE};
    static struct trace t;

    for (enum way way = DONE; way < KEEP; way++) {
        struct waiting w;
        struct pair p;

        start(&w, &t, &p, KEEP);
        wait_until(t.n_ended == 1);
        cr_assert_eq(lapse_sync_unlisten(w.s, "q"), 0); /* or what is released runs again */
        worker_settle(&t.k, w.s, t.k.kept[0], way);
        must_read(&t, "b1 handler end a1");
        must_have_heard(&t, hows[way], 0);
        end(&w);
    }
}

Test(around, before_may_take_the_job_and_only_those_that_it_passed_hear_of_it)
{
    static struct trace t;
    struct waiting w;
    struct pair p[] = {{&t, "1", false}, {&t, "2", true}, {&t, "3", false}};

    waiting_start(&w);
    trace_init(&t, RETRY);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(lapse_sync_around(w.s, before, after, &p[i]), 0);
    }
    cr_assert_eq(listen_to(w.s, &t, 0), 0);
    cr_assert_eq(schedule(w.s, "a", 0), 0);
    wait_until(t.k.ended == 1);
    must_read(&t, "b1 b2 a2 a1");
    must_have_heard(&t, LAPSE_HOW_RETRY, 0);
    cr_assert_eq(depth_of(w.s, "q").waiting, 1);
    end(&w);
}

Test(around, another_thread_may_settle_what_before_has_taken)
{
    static struct trace t;
    struct waiting w;
    struct pair p = {&t, "1", true};

    waiting_start(&w);
    trace_init(&t, KEEP);
    cr_assert_eq(lapse_sync_around(w.s, before, after, &p), 0);
    cr_assert_eq(listen_to(w.s, &t, 0), 0);
    cr_assert_eq(schedule(w.s, "a", 0), 0);
    wait_until(t.k.ended == 1);
    must_read(&t, "b1");
    cr_assert_eq(lapse_sync_done(w.s, t.k.kept[0], 0), 0);
    must_read(&t, "b1 a1");
    must_have_heard(&t, LAPSE_HOW_DONE, 0);
    waiting_end(&w, "q");
}

Test(around, after_hears_of_a_job_that_was_forgotten)
{
    static struct trace t;
    struct waiting w;
    struct pair p;
    struct lapse_settlement done = {.size = sizeof done, .how = LAPSE_HOW_DONE};

    start(&w, &t, &p, KEEP);
    wait_until(t.n_ended == 1);
    uint64_t token = lapse_job_token(t.k.kept[0]);
    cr_assert_eq(lapse_sync_forget(w.s, t.k.kept[0]), 0);
    must_read(&t, "b1 handler end a1");
    must_have_heard(&t, 0, 0);
    cr_assert_eq(lapse_sync_settle(w.s, "q", "a", token, &done, 0), 0);
    waiting_end(&w, "q");
}

Test(around, after_hears_of_a_job_that_was_settled_by_its_token)
{
    static struct trace t;
    struct waiting w;
    struct pair p;
    struct lapse_settlement done = {.size = sizeof done, .how = LAPSE_HOW_DONE};

    start(&w, &t, &p, KEEP);
    wait_until(t.n_ended == 1);
    struct lapse_job *job = t.k.kept[0];
    cr_assert_eq(lapse_sync_settle(w.s, "q", "a", lapse_job_token(job), &done, 0), 0);
    must_read(&t, "b1 handler end");
    cr_assert_eq(lapse_sync_done(w.s, job, 0), LAPSE_EGONE);
    must_have_heard(&t, LAPSE_HOW_DONE, LAPSE_EGONE);
    waiting_end(&w, "q");
}

/* Redis stands still meanwhile. */
Test(around, after_hears_of_a_settle_whose_caller_has_given_up)
{
    static struct trace t;
    struct waiting w;
    struct pair p;

    start(&w, &t, &p, KEEP);
    wait_until(t.n_ended == 1);
    server_signal(w.server, SIGSTOP);
    cr_assert_eq(lapse_sync_fail(w.s, t.k.kept[0], "broken", 1), LAPSE_ETIMEOUT);
    must_read(&t, "b1 handler end");
    server_signal(w.server, SIGCONT);
    wait_until(t.n_after == 1);
    must_have_heard(&t, LAPSE_HOW_FAIL, 0);
    end(&w);
}

/* One runs, and one waits for its thread. */
Test(around, jobs_that_have_come_already_nothing_is_called)
{
    static struct trace t;
    struct waiting w;
    struct pair p = {&t, "1", false};

    waiting_start(&w);
    trace_init(&t, DONE);
    t.k.blocks = true;
    cr_assert_eq(listen_to(w.s, &t, 3), 0);
    cr_assert_eq(schedule(w.s, "a", 0), 0);
    cr_assert_eq(schedule(w.s, "b", 0), 0);
    wait_until(t.k.inside == 1 && depth_of(w.s, "q").running == 2);
    cr_assert_eq(lapse_sync_around(w.s, before, after, &p), 0);
    t.k.blocks = false;
    wait_until(t.n_ended == 2);
    cr_assert_eq(schedule(w.s, "c", 0), 0);
    wait_until(t.n_after == 1);
    wait_until(t.n_ended == 3);
    must_read(&t, "handler end handler end b1 handler a1 end");
    end(&w);
}

static int register_in_before(struct lapse_sync *s, struct lapse_job *job, void *arg)
{
    struct pair *p = arg;

    (void)job;
    note(p->trace, "b", "0");
    return lapse_sync_around(s, before, after, p);
}

Test(around, a_function_before_may_register_another_for_jobs_that_come_later)
{
    static struct trace t;
    struct waiting w;
    struct pair p = {&t, "1", false};

    waiting_start(&w);
    trace_init(&t, DONE);
    cr_assert_eq(lapse_sync_around(w.s, register_in_before, NULL, &p), 0);
    cr_assert_eq(listen_to(w.s, &t, 0), 0);
    cr_assert_eq(schedule(w.s, "a", 0), 0);
    wait_until(t.n_ended == 1);
    cr_assert_eq(schedule(w.s, "b", 0), 0);
    wait_until(t.n_ended == 2);
    lapse_sync_close(w.s, HOUR);
    must_read(&t, "b0 handler end b0 b1 handler a1 end");
    w.s = waiting_open(&w);
    waiting_end(&w, "q");
}

Test(around, a_job_that_no_thread_has_begun_nothing_is_called)
{
    static struct trace t;
    struct waiting w;
    struct pair p;

    waiting_start(&w);
    trace_init(&t, DONE);
    p = (struct pair){&t, "1", false};
    t.k.blocks = true;
    cr_assert_eq(lapse_sync_around(w.s, before, after, &p), 0);
    cr_assert_eq(listen_to(w.s, &t, 10), 0);
    for (int i = 0; i < 5; i++) {
        cr_assert_eq(schedule(w.s, NULL, 0), 0);
    }
    wait_until(t.k.inside == 1 && depth_of(w.s, "q").running == 5);
    cr_assert_eq(lapse_sync_unlisten(w.s, "q"), 0);
    wait_until(depth_of(w.s, "q").running == 1);
    t.k.blocks = false;
    wait_until(t.n_ended == 1);
    must_read(&t, "b1 handler a1 end");
    end(&w);
}

static void on_event(struct lapse_sync *s, enum lapse_event what, const struct lapse_job *job,
                     void *arg)
{
    atomic_uint *n = arg;

    (void)s;
    (void)job;
    *n += what == LAPSE_EVENT_CANCEL;
}

Test(around, a_job_that_is_cancelled_in_the_line_nothing_is_called)
{
    static struct trace t;
    static atomic_uint n_cancelled;
    struct waiting w;
    struct pair p = {&t, "1", false};

    waiting_start(&w);
    trace_init(&t, DONE);
    t.k.blocks = true;
    cr_assert_eq(lapse_sync_on_event(w.s, on_event, &n_cancelled), 0);
    cr_assert_eq(lapse_sync_around(w.s, before, after, &p), 0);
    cr_assert_eq(listen_to(w.s, &t, 3), 0);
    cr_assert_eq(schedule(w.s, "a", 0), 0);
    wait_until(t.k.inside == 1);
    cr_assert_eq(schedule(w.s, "b", 0), 0);
    wait_until(depth_of(w.s, "q").running == 2);
    cr_assert_eq(lapse_sync_cancel(w.s, "q", "b", LAPSE_RUNNING_TOO, 0, NULL), 0);
    wait_until(n_cancelled == 1);
    t.k.blocks = false;
    wait_until(t.n_ended == 1 && depth_of(w.s, "q").running == 0);
    must_read(&t, "b1 handler a1 end");
    waiting_end(&w, "q");
}

/* Another process runs it meanwhile. */
Test(around, a_handler_does_not_begin_whose_lease_ended_while_before_had_it)
{
    static struct trace t;
    struct waiting w;
    struct pair p[] = {{&t, "1", false}, {&t, "2", false}};
    struct lapse_sync_jobs jobs;

    waiting_bare(&w);
    w.options.lease_ms = 4500;
    w.options.sweep_ms = 50;
    w.s = waiting_open(&w);
    struct lapse_sync *other = waiting_open(&w);
    trace_init(&t, DONE);
    t.before_loses = true;
    t.before_blocks = true;
    cr_assert_eq(lapse_sync_around(w.s, before, after, &p[0]), 0);
    cr_assert_eq(lapse_sync_around(w.s, before, after, &p[1]), 0);
    cr_assert_eq(listen_to(w.s, &t, 0), 0);
    cr_assert_eq(schedule(w.s, "a", 0), 0);
    wait_until(t.has_lost);
    cr_assert_eq(lapse_sync_claim(other, "q", 1, HOUR, 0, &jobs), 0);
    cr_assert_eq(jobs.n, 1);
    cr_assert_eq(lapse_sync_done(other, jobs.jobs[0], 0), 0);
    t.before_blocks = false;
    wait_until(t.n_after >= 1);
    lapse_sync_close(other, 0);
    lapse_sync_close(w.s, HOUR);
    must_read(&t, "b1 a1");
    must_have_heard(&t, LAPSE_HOW_RELEASE, LAPSE_EGONE);
    w.s = waiting_open(&w);
    waiting_end(&w, "q");
}

Test(around, a_handler_does_not_begin_whose_job_was_cancelled_while_before_had_it)
{
    static struct trace t;
    static atomic_uint n_cancelled;
    struct waiting w;
    struct pair p[] = {{&t, "1", false}, {&t, "2", false}};

    waiting_start(&w);
    trace_init(&t, DONE);
    t.before_blocks = true;
    cr_assert_eq(lapse_sync_on_event(w.s, on_event, &n_cancelled), 0);
    cr_assert_eq(lapse_sync_around(w.s, before, after, &p[0]), 0);
    cr_assert_eq(lapse_sync_around(w.s, before, after, &p[1]), 0);
    cr_assert_eq(listen_to(w.s, &t, 0), 0);
    cr_assert_eq(schedule(w.s, "a", 0), 0);
    wait_until(t.n_before == 1);
    cr_assert_eq(lapse_sync_cancel(w.s, "q", "a", LAPSE_RUNNING_TOO, 0, NULL), 0);
    wait_until(n_cancelled == 1);
    t.before_blocks = false;
    wait_until(t.n_after >= 1);
    lapse_sync_close(w.s, HOUR);
    must_read(&t, "b1 a1");
    must_have_heard(&t, LAPSE_HOW_RELEASE, 0);
    w.s = waiting_open(&w);
    cr_assert_eq(lapse_sync_get(w.s, "q", "a", 0, NULL), LAPSE_ENOENT);
    waiting_end(&w, "q");
}

Test(around, jobs_without_a_handler_nothing_is_called)
{
    static struct trace t;
    struct waiting w;
    struct pair p = {&t, "1", false};
    struct lapse_sync_jobs jobs;

    waiting_start(&w);
    trace_init(&t, DONE);
    cr_assert_eq(lapse_sync_around(w.s, before, after, &p), 0);
    cr_assert_eq(schedule(w.s, "a", 0), 0);
    cr_assert_eq(lapse_sync_claim(w.s, "q", 1, HOUR, 0, &jobs), 0);
    cr_assert_eq(jobs.n, 1);
    cr_assert_eq(lapse_sync_done(w.s, jobs.jobs[0], 0), 0);
    must_read(&t, "");
    waiting_end(&w, "q");
}

Test(around, a_handler_begins_after_before_though_its_queue_was_stopped_meanwhile)
{
    static struct trace t;
    struct waiting w;
    struct pair p = {&t, "1", false};

    waiting_start(&w);
    trace_init(&t, DONE);
    t.before_blocks = true;
    cr_assert_eq(lapse_sync_around(w.s, before, after, &p), 0);
    cr_assert_eq(listen_to(w.s, &t, 0), 0);
    cr_assert_eq(schedule(w.s, "a", 0), 0);
    wait_until(t.n_before == 1);
    cr_assert_eq(lapse_sync_unlisten(w.s, "q"), 0);
    t.before_blocks = false;
    lapse_sync_close(w.s, HOUR);
    must_read(&t, "b1 handler a1 end");
    must_have_heard(&t, LAPSE_HOW_DONE, 0);
    w.s = waiting_open(&w);
    waiting_end(&w, "q");
}

/* ---- closing ---- */
struct closing {
    struct lapse_sync *s;
    int64_t grace_ms;
    struct trace *trace;
    pthread_t thread;
};

static void *close_it(void *arg)
{
    struct closing *c = arg;

    lapse_sync_close(c->s, c->grace_ms);
    note(c->trace, "closed", "");
    return NULL;
}

/* The first handle closes, and another is opened, to look at Redis. */
static void start_closing(struct closing *c, struct waiting *w, struct trace *t, int64_t grace_ms)
{
    *c = (struct closing){.s = w->s, .grace_ms = grace_ms, .trace = t};
    cr_assert_eq(pthread_create(&c->thread, NULL, close_it, c), 0);
    w->s = waiting_open(w);
}

/* The job that waits for the thread goes back as the close begins. */
Test(around, a_close_waits_for_before_and_its_handler_and_after)
{
    static struct trace t;
    struct waiting w;
    struct pair p = {&t, "1", false};
    struct closing c;

    waiting_start(&w);
    trace_init(&t, DONE);
    t.before_blocks = true;
    cr_assert_eq(lapse_sync_around(w.s, before, after, &p), 0);
    cr_assert_eq(listen_to(w.s, &t, 2), 0);
    cr_assert_eq(schedule(w.s, "a", 0), 0);
    cr_assert_eq(schedule(w.s, "b", 0), 0);
    wait_until(t.n_before == 1 && depth_of(w.s, "q").running == 2);
    start_closing(&c, &w, &t, HOUR);
    wait_until(depth_of(w.s, "q").running == 1);
    t.before_blocks = false;
    pthread_join(c.thread, NULL);
    must_read(&t, "b1 handler a1 end closed");
    must_have_heard(&t, LAPSE_HOW_DONE, 0);
    end(&w);
}

Test(around, a_handler_does_not_begin_whose_job_went_back_while_before_had_it)
{
    static struct trace t;
    struct waiting w;
    struct pair p[] = {{&t, "1", false}, {&t, "2", false}};
    struct closing c;

    waiting_start(&w);
    trace_init(&t, DONE);
    t.before_until_closed = true;
    cr_assert_eq(lapse_sync_around(w.s, before, after, &p[0]), 0);
    cr_assert_eq(lapse_sync_around(w.s, before, after, &p[1]), 0);
    cr_assert_eq(listen_to(w.s, &t, 0), 0);
    cr_assert_eq(schedule(w.s, "a", 0), 0);
    wait_until(t.n_before == 1);
    start_closing(&c, &w, &t, 0);
    pthread_join(c.thread, NULL);
    must_read(&t, "b1 a1 closed");
    must_have_heard(&t, LAPSE_HOW_RELEASE, LAPSE_EGONE);
    cr_assert_eq(depth_of(w.s, "q").waiting, 1);
    end(&w);
}

/* after does not run while a handler has the job. */
static void settle_late(bool is_redis_there)
{
    static struct trace t;
    struct waiting w;
    struct pair p;
    struct closing c;

    start(&w, &t, &p, DONE);
    wait_until(t.n_ended == 1);
    t.handler_until_closed = true;
    cr_assert_eq(schedule(w.s, "b", 0), 0);
    wait_until(t.n_handler == 2);
    if (!is_redis_there) {
        server_kill9(w.server);
    }
    start_closing(&c, &w, &t, 0);
    pthread_join(c.thread, NULL);
    must_read(&t, "b1 handler a1 end b1 handler a1 end closed");
    must_have_heard(&t, LAPSE_HOW_DONE, LAPSE_EGONE);
    cr_assert_eq(t.k.err, LAPSE_EGONE);
    if (!is_redis_there) {
        server_restart(w.server);
    }
    end(&w);
}

Test(around, after_hears_of_a_job_that_went_back_when_its_handler_settles_it)
{
    settle_late(true);
}

Test(around, after_hears_of_a_job_that_could_not_go_back_when_its_handler_settles_it)
{
    settle_late(false);
}

Test(around, a_job_that_nobody_has_settled_only_before_is_called)
{
    static struct trace t;
    struct waiting w;
    struct pair p;

    start(&w, &t, &p, KEEP);
    wait_until(t.n_ended == 1);
    lapse_sync_close(w.s, 0);
    must_read(&t, "b1 handler end");
    cr_assert_str_eq(lapse_job_id(t.k.kept[0]), "a");
    lapse_sync_free(t.k.kept[0]);
    w.s = waiting_open(&w);
    end(&w);
}

Test(around, more_than_sixteen_or_nothing_is_refused)
{
    static struct trace t;
    struct waiting w;
    struct pair p;

    start(&w, &t, &p, KEEP);
    wait_until(t.n_ended == 1);
    cr_assert_eq(lapse_sync_around(NULL, before, after, &p), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_around(w.s, NULL, NULL, &p), LAPSE_EINVAL);
    for (int i = 1; i < LAPSE_AROUND_MAX; i++) {
        cr_assert_eq(lapse_sync_around(w.s, before, after, &p), 0);
    }
    cr_assert_eq(lapse_sync_around(w.s, before, after, &p), LAPSE_EFULL);
    cr_assert_eq(lapse_sync_done(w.s, t.k.kept[0], 0), 0);
    cr_assert_eq(t.n_after, 1);
    cr_assert_eq(schedule(w.s, "b", 0), 0);
    wait_until(t.n_ended == 2);
    cr_assert_eq(lapse_sync_done(w.s, t.k.kept[1], 0), 0);
    cr_assert_eq(t.n_after, 1 + LAPSE_AROUND_MAX);
    waiting_end(&w, "q");
}
