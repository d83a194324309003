/* SPDX-License-Identifier: MIT */
/* Each test bears the sentence that is true of another delayed queue, and shows that it is not true
 * of this one. Whose bug it is stands above it. */
#include "handler.h"
#include "listening.h"
#include "proxy.h"
#include "states.h"
#include "wire.h"
#include <poll.h>

enum { HOUR = 3600000 };

static void quick_sweep(struct lapse_options *o)
{
    o->sweep_ms = 50;
}

/* Renewed after a third, it outlasts two seconds without a CPU. */
static void kept_lease(struct lapse_options *o)
{
    o->sweep_ms = 50;
    o->lease_ms = 3500;
}

/* It does not look by itself. */
static void short_lease(struct lapse_options *o)
{
    o->lease_ms = 400;
}

/* Another listener of the queue, beside f->l. */
static struct lapse *listen_too(struct flow *f, struct flow_handler *w, flow_tweak *tweak)
{
    struct lapse_options opts = flow_options(f);
    struct lapse *first = f->l;

    tweak(&opts);
    f->l = flow_open(f, &opts);
    flow_listen(f, "q", w);

    struct lapse *second = f->l;
    f->l = first;
    return second;
}

/* ---- sergii4: Dequeue() and OnProcessed() ---- */
/* The argument for the length of the lock is not used: it is a second. */
Test(peers_bugs, a_handler_that_takes_longer_than_the_lock_runs_twice)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, kept_lease);
    struct flow_handler a = {.way = FLOW_KEEP};
    struct flow_handler b = {.way = FLOW_KEEP};

    flow_listen(f, "q", &a);
    listen_too(f, &b, kept_lease);
    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
    flow_until(f, a.n_held + b.n_held == 1);

    struct flow_handler *holder = a.n_held ? &a : &b;
    int64_t until_ms = lapse_job_until_ms(holder->held[0]);
    flow_until(f, lapse_job_until_ms(holder->held[0]) > until_ms + 3500);
    cr_assert_eq(a.n_runs + b.n_runs, 1);

    flow_settle(holder, FLOW_DONE);
    cr_assert_eq(holder->errors, 0);
    cr_assert_eq(redis_left(f->server, "lapse", "q"), 0);
    flow_end(f, "q");
}

/* Its loop counts down to 0 inclusive. */
Test(peers_bugs, a_batch_has_one_job_more_than_was_asked_for)
{
    enum { ASKED = 10, DUE = 35 };
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.f = f, .way = FLOW_KEEP};
    struct lapse_listen_options ten = {.size = sizeof ten, .max_running = ASKED};

    for (int i = 0; i < DUE; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    }

    cr_assert_eq(lapse_listen(f->l, "q", &ten, flow_on_job, &w), 0);
    for (size_t left = DUE; left > 0;) {
        size_t most = left < ASKED ? left : ASKED;
        flow_until(f, w.n_held == most);
        flow_calm(f);
        cr_assert_eq(w.n_held, most);
        cr_assert_eq(flow_count(f, "q", "run"), (long long)most);
        flow_settle(&w, FLOW_DONE);
        left -= most;
    }

    flow_each_once(&w, DUE);
    flow_end(f, "q");
}

/* f->l holds a job whose lease is over, and whose queue it does not listen to any more. */
static struct flow *with_a_stale_holder(struct flow_handler *stale)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, quick_sweep);

    *stale = (struct flow_handler){.way = FLOW_KEEP};
    flow_allow_log(f, "the lease of job");
    flow_listen(f, "q", stale);
    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
    flow_until(f, stale->n_held == 1);
    cr_assert_eq(lapse_unlisten(f->l, "q"), 0);
    redis_do(f->server, "ZADD lapse:{q}:run 1 a");
    return f;
}

/* OnProcessed() removes the id from the set, also where it was put there again since. */
Test(peers_bugs, an_ack_after_the_lock_was_lost_removes_what_was_scheduled_meanwhile)
{
    struct flow_handler stale;
    struct flow_handler other = {.way = FLOW_DONE};
    struct flow *f = with_a_stale_holder(&stale);
    struct flow_job before;
    struct flow_job after;

    listen_too(f, &other, quick_sweep);
    flow_until(f, other.settled == 1);
    cr_assert_eq(flow_schedule(f, "q", "a", HOUR, &before), 0);

    flow_settle(&stale, FLOW_DONE);
    cr_assert_eq(stale.err, LAPSE_EGONE);
    cr_assert_eq(flow_get(f, "q", "a", &after), 0);
    cr_assert(after.state == LAPSE_WAITING && after.due_ms == before.due_ms);
    flow_end(f, "q");
}

/* ---- lmstfy ---- */
/* An ack deletes the body by the id of the job alone. */
Test(peers_bugs, an_ack_of_a_stale_consumer_deletes_the_copy_that_was_delivered_again)
{
    static const enum flow_way ways[] = {FLOW_DONE, FLOW_RETRY, FLOW_FAIL};

    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct flow_handler stale;
        struct flow_handler other = {.way = FLOW_KEEP};
        struct flow *f = with_a_stale_holder(&stale);
        struct flow_job job;

        listen_too(f, &other, quick_sweep);
        flow_until(f, other.n_held == 1);
        stale.reason = "late";
        flow_settle(&stale, ways[i]);
        cr_assert_eq(stale.err, LAPSE_EGONE);

        cr_assert_eq(flow_get(f, "q", "a", &job), 0);
        cr_assert(job.state == LAPSE_RUNNING && job.token == lapse_job_token(other.held[0]));
        flow_settle(&other, FLOW_DONE);
        cr_assert_eq(other.errors, 0);
        flow_end(f, "q");
    }
}

/* BRPOP, then a ZADD to the set that would bring the job back. Here the process ends when Redis has
 * given the job out, and before the process hears of it. */
Test(peers_bugs, a_crash_between_the_pop_and_the_timer_loses_the_job)
{
    place_not_with_masters("the proxy is before one of the masters");

    struct wire x;
    struct flow_handler other = {.way = FLOW_DONE};

    wire_start(&x, FLOW_DONE, short_lease);
    proxy_refuse(x.proxy, true);
    flow_allow_log(x.f, "cannot connect");
    wire_cut(&x, PROXY_DOWN, 0);
    cr_assert_eq(flow_schedule(x.f, "q", "a", 0, NULL), 0);
    flow_poll(x.f, flow_count(x.f, "q", "run") == 1);
    cr_assert_eq(x.w.n_runs, 0);
    lapse_abandon(x.l);
    flow_forget(x.f, x.l);

    listen_too(x.f, &other, quick_sweep);
    flow_until(x.f, other.settled == 1);
    cr_assert_eq(other.errors, 0);
    cr_assert(other.n_runs == 1 && other.runs[0].job.try_no == 2);
    proxy_stop(x.proxy);
    flow_end(x.f, "q");
}

/* What is left of a wait is an unsigned difference, which wraps round where the wait is over. */
Test(peers_bugs, a_wait_that_is_over_goes_on_for_136_years)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_listen(f, "q", &w);
    for (unsigned i = 0; i < 5; i++) {
        struct flow_job job;
        cr_assert_eq(flow_schedule(f, "q", NULL, 20, &job), 0);
        while (redis_now_ms(f->server) <= job.due_ms + 5) { /* and the loop does not turn */
            poll(NULL, 0, 1);
        }
        flow_until(f, w.settled == i + 1);
    }

    flow_each_once(&w, 5);
    flow_end(f, "q");
}

static void three_at_once(struct lapse_options *o)
{
    o->max_running = 3;
}

/* The same of counts: the queues together may run more than the handle may. */
Test(peers_bugs, a_count_of_what_may_be_taken_falls_below_0_and_is_four_billion)
{
    enum { EACH = 6 };
    static const char *const queues[] = {"p", "q"};
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, three_at_once);
    struct flow_handler w = {.f = f, .way = FLOW_KEEP};
    struct lapse_listen_options two = {.size = sizeof two, .max_running = 2};

    for (int i = 0; i < 2 * EACH; i++) {
        cr_assert_eq(flow_schedule(f, queues[i % 2], NULL, 0, NULL), 0);
    }
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(lapse_listen(f->l, queues[i], &two, flow_on_job, &w), 0);
    }

    for (unsigned n = 0; n < 2 * EACH; n++) {
        unsigned left = 2 * EACH - n;
        flow_until(f, w.n_held == (left < 3 ? left : 3) || w.n_held == 2);
        flow_calm(f);
        cr_assert_leq(w.n_held, 3u);
        lapse_done(w.held[--w.n_held], flow_on_settled, &w);
        flow_until(f, w.settled == n + 1);
    }

    flow_each_once(&w, 2 * EACH);
    flow_end(f, "p", "q");
}

/* ---- seed-001: a sorted set to a stream ---- */
static void ack_adopted(struct lapse *l, int err, const struct lapse_job *const *jobs, size_t n,
                        void *arg)
{
    struct flow *f = arg;

    (void)l;
    cr_assert_eq(err, 0);
    for (size_t i = 0; i < n; i++) {
        cr_assert_str_eq(lapse_job_id(jobs[i]), "a");
        redis_do(f->server, "XACK lapse:{q}:stream g %s", lapse_job_entry(jobs[i]));
    }
}

/* It has no XAUTOCLAIM, and no second consumer ever sees them. */
Test(peers_bugs, the_entries_of_a_consumer_that_died_stay_with_it)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, quick_sweep);
    struct flow_answer a = {.f = f};
    struct lapse_adoption adoption = {
        .size = sizeof adoption, .group = "g", .consumer = "alive", .idle_ms = 1, .n = 100};

    cr_assert_eq(flow_configure(f, "q", "forward=stream forward_groups=g", NULL), 0);
    cr_assert_eq(lapse_forward(f->l, "q", NULL, flow_text_answered, &a), 0);
    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
    flow_until(f, flow_stats(f->l).forwarded == 1);
    redis_do(f->server, "XREADGROUP GROUP g dead STREAMS lapse:{q}:stream >");
    flow_poll(f, lapse_adopt(f->l, "q", &adoption, ack_adopted, f) == 0 &&
                     redis_int(f->server, "XLEN lapse:{q}:stream") == 0);
    flow_calm(f);
    flow_end(f, "q");
}

/* ---- HDT3213/delayqueue ---- */
static void below_all_runs(struct lapse_options *o)
{
    o->lease_ms = 1000;
    o->run_ms = 1500;
    o->sweep_ms = 60000; /* no help from there */
}

static void take_a_while(struct lapse *l, struct lapse_job *job, void *arg)
{
    poll(NULL, 0, 40);
    flow_on_job(l, job, arg);
}

/* One consumer takes longer for what it has fetched than a job may be invisible. */
Test(peers_bugs, the_visibility_of_a_job_begins_when_it_is_fetched_into_a_buffer)
{
    enum { N = 60 };
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, below_all_runs);
    struct flow_handler w = {.f = f, .way = FLOW_DONE};

    flow_allow_log(f, "the lease of job");
    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    }

    cr_assert_eq(lapse_listen(f->l, "q", NULL, take_a_while, &w), 0);
    flow_until(f, w.settled == N);
    cr_assert_eq(w.errors, 0);
    flow_each_once(&w, N);
    flow_end(f, "q");
}

/* ---- a claim by EVALSHA alone ---- */
/* Its answer is NOSCRIPT then, ever again. */
Test(peers_bugs, a_redis_that_has_forgotten_its_scripts_stops_every_node_for_good)
{
    enum { N = 20 };
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler a = {.way = FLOW_DONE};
    struct flow_handler b = {.way = FLOW_DONE};

    flow_listen(f, "q", &a);
    listen_too(f, &b, quick_sweep);
    flow_until_listeners(f, "q", 2);

    for (unsigned i = 1; i <= N; i++) {
        redis_do(f->server, "SCRIPT FLUSH");
        cr_assert_eq(flow_schedule(f, "q", NULL, i % 2 ? 0 : 30, NULL), 0);
        redis_do(f->server, "SCRIPT FLUSH");
        flow_until(f, a.settled + b.settled == i);
    }

    cr_assert_eq(a.errors + b.errors, 0);
    cr_assert_eq(a.n_runs + b.n_runs, N);
    flow_end(f, "q");
}

/* ---- Sidekiq: SortedEntry ---- */
/* ZINCRBY of a member that is not there makes it, with the delta as its score: due at once. */
Test(peers_bugs, a_reschedule_of_a_job_that_is_gone_makes_it_due_at_once)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_where dead = {.state = LAPSE_DEAD};
    struct flow_counts c;

    cr_assert_eq(flow_schedule(f, "q", "a", HOUR, NULL), 0);
    cr_assert_eq(flow_cancel(f, "q", "a", NULL), 0);
    cr_assert_eq(flow_reschedule(f, "q", "a", lapse_in(0), NULL), LAPSE_ENOENT);
    cr_assert_eq(flow_reschedule_all(f, "q", dead, lapse_in(0), 0, &c), 0);
    cr_assert_eq(c.n, 0);
    cr_assert_eq(flow_keys(f, "lapse:{q}:*"), 0);
    flow_end(f, "q");
}

/* remove_job takes all jobs of a score out, and pushes the others back one by one. */
Test(peers_bugs, a_removal_of_one_job_removes_all_of_its_score_for_a_while)
{
    struct flow *f = flow_start(FLOW_FULL);
    int64_t at = redis_now_ms(f->server) + HOUR;
    struct lapse_where one = {.state = LAPSE_WAITING, .most = 1};
    struct flow_counts c;

    for (int i = 0; i < 20; i++) {
        struct lapse_spec s = flow_job_spec("q", NULL, 0);
        s.due = lapse_at(at);
        cr_assert_eq(flow_spec(f, &s, NULL), 0);
    }

    long long before = flow_calls(f, "zadd");
    for (int left = 19; left >= 0; left--) {
        cr_assert_eq(flow_cancel_all(f, "q", one, &c), 0);
        cr_assert_eq(c.n, 1);
        cr_assert_eq(flow_count(f, "q", "due"), left);
    }
    cr_assert_eq(flow_calls(f, "zadd"), before);
    flow_end(f, "q");
}

/* ---- Faktory: RemoveBefore() ---- */
/* It takes each job out of its set, and then calls back who has to put it elsewhere. */
Test(peers_bugs, a_connection_that_is_lost_while_old_jobs_are_put_back_loses_some)
{
    enum { N = 150 };
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_where old = {.state = LAPSE_DEAD};
    struct lapse *direct = f->l;
    struct flow_counts c;

    flow_allow_log(f, "lost the connection");
    for (int i = 0; i < N; i++) {
        char id[8];
        snprintf(id, sizeof id, "%d", i);
        cr_assert_eq(flow_schedule(f, "q", id, HOUR, NULL), 0);
        cr_assert_eq(flow_kill(f, "q", id, "x", NULL), 0);
    }
    old.before_ms = redis_now_ms(f->server) + 1;

    struct proxy *wire = proxy_start(f->server);
    struct lapse_options opts = flow_options(f);
    opts.url = wire->url;
    for (long bytes = 0; bytes < 2000; bytes += 200) {
        f->l = flow_open(f, &opts);
        cr_assert_eq(flow_get(f, "q", "nobody", NULL), LAPSE_ENOENT);
        proxy_cut_after(wire, PROXY_UP, bytes);
        int err = flow_reschedule_all(f, "q", old, lapse_in(HOUR), 0, &c);
        cr_assert(err == 0 || err == LAPSE_ELOST, "%s", lapse_strerror(err));
        proxy_cut_after(wire, PROXY_UP, -1);
        flow_close(f, f->l, 0);
        cr_assert_eq(flow_count(f, "q", "dead") + flow_count(f, "q", "due"), N);
    }

    f->l = direct;
    proxy_stop(wire);
    cr_assert_eq(redis_int(f->server, "HLEN lapse:{q}:jobs"), N);
    flow_end(f, "q");
}

/* ---- asynq: the archive ---- */
/* unpack() of 8,000 members fails after some of them were removed, and what is trimmed from the set
 * leaves its hash behind. */
Test(peers_bugs, eight_thousand_dead_jobs_are_too_many_for_one_command_and_their_bodies_stay)
{
    enum { N = 8500 };
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_where dead = {.state = LAPSE_DEAD};
    struct flow_counts c;

    redis_do(f->server, "EVAL %s 0 %d",
             "for i = 1, ARGV[1] do redis.call('ZADD', 'lapse:{q}:dead', 5, i) "
             "redis.call('HSET', 'lapse:{q}:jobs', i, '\\1\\0body') "
             "redis.call('HSET', 'lapse:{q}:attempts', i, '1 1 x 1 1 1 1 no') end",
             N);
    cr_assert_eq(flow_reschedule_all(f, "q", dead, lapse_in(HOUR), 0, &c), 0);
    cr_assert_eq(c.n, N);
    cr_assert_eq(redis_int(f->server, "HLEN lapse:{q}:jobs"), N);

    struct lapse_where waiting = {.state = LAPSE_WAITING};
    cr_assert_eq(flow_cancel_all(f, "q", waiting, &c), 0);
    cr_assert_eq(c.n, N);
    cr_assert_eq(redis_int(f->server, "DBSIZE"), 0);
    flow_end(f, "q");
}

/* ---- asynq: CancelProcessing() ---- */
static void cancel_while_it_runs(struct flow *f, const char *id)
{
    struct flow_answer a = {.f = f};

    cr_assert_eq(lapse_cancel(f->l, "q", id, LAPSE_RUNNING_TOO, flow_answered, &a), 0);
    cr_assert_eq(flow_wait(f, &a), 0);
    cr_assert_eq(a.job.state, LAPSE_RUNNING);
}

/* Its context is cancelled, the handler returns that error, and so it is retried. asynq#532 */
Test(peers_bugs, a_cancelled_task_is_retried)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, kept_lease);
    struct flow_handler w = {.way = FLOW_KEEP};

    flow_hold(f, &w, "a");
    cancel_while_it_runs(f, "a");
    flow_until(f, lapse_job_cancelled(w.held[0]));
    flow_settle(&w, FLOW_RETRY);
    cr_assert_eq(w.errors, 0);
    cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_ENOENT);
    flow_spin(f, 200);
    cr_assert_eq(w.n_runs, 1);
    flow_end(f, "q");
}

/* It is published and not kept: a worker that is not subscribed at that moment goes on, and so does
 * the task. asynq#968 */
Test(peers_bugs, a_cancel_that_nobody_hears_is_lost)
{
    struct flow *f = flow_start_opts(FLOW_NO_EVENTS, NULL, kept_lease);
    struct flow_handler w = {.way = FLOW_KEEP};

    flow_hold(f, &w, "a");
    cancel_while_it_runs(f, "a");
    flow_until(f, lapse_job_cancelled(w.held[0]));
    flow_settle(&w, FLOW_FAIL);
    cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_ENOENT);
    flow_end(f, "q");
}

/* ---- delayq: Enqueue() of an id that runs ---- */
/* The ack of the run removes the id, whatever was enqueued under it meanwhile. */
Test(peers_bugs, a_job_that_is_enqueued_again_while_it_runs_is_lost_when_it_is_acknowledged)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, kept_lease);
    struct flow_handler w = {.way = FLOW_KEEP};
    struct flow_answer a = {.f = f};
    struct flow_job job;

    flow_hold(f, &w, "a");
    cr_assert_eq(
        lapse_reschedule(f->l, "q", "a", lapse_in(HOUR), LAPSE_RUNNING_TOO, flow_answered, &a), 0);
    cr_assert_eq(flow_wait(f, &a), 0);
    flow_settle(&w, FLOW_DONE);
    cr_assert_eq(flow_get(f, "q", "a", &job), 0);
    cr_assert_eq(job.state, LAPSE_WAITING);
    cr_assert_eq(job.try_no, 0);
    flow_end(f, "q");
}

/* ... with what it carries. */
Test(peers_bugs, a_body_that_is_enqueued_while_the_job_runs_is_lost_when_it_is_acknowledged)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, kept_lease);
    struct flow_handler w = {.way = FLOW_KEEP};
    struct lapse_spec s = flow_job_spec("q", "a", HOUR);
    struct flow_job job;

    flow_hold(f, &w, "a");
    s.body = "new";
    s.body_len = 3;
    s.on_conflict = LAPSE_EARLIER;
    cr_assert_eq(flow_spec(f, &s, &job), 0);
    cr_assert_eq(job.state, LAPSE_RUNNING);
    flow_settle(&w, FLOW_DONE);
    cr_assert_eq(flow_get(f, "q", "a", &job), 0);
    cr_assert_eq(job.state, LAPSE_WAITING);
    cr_assert_str_eq(job.body, "new");
    flow_end(f, "q");
}

/* ---- asynq: Unique() and TaskID() ---- */
/* The lock of the key is taken first; then the id is found to be a task's, and the lock stays. */
Test(peers_bugs, a_lock_of_a_key_stays_when_the_id_is_taken)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_spec s = flow_job_spec("q", "a", HOUR);

    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    s.unique = "key";
    cr_assert_eq(flow_spec(f, &s, NULL), LAPSE_EEXIST);
    cr_assert_eq(redis_int(f->server, "EXISTS lapse:{q}:index"), 0);
    s.id = "b";
    cr_assert_eq(flow_spec(f, &s, NULL), 0, "the key was never taken");
    flow_end(f, "q");
}

/* asynq#1124: there is no call that makes a task due then, whatever becomes of it meanwhile. */
Test(peers_bugs, an_upsert_of_a_task_is_refused_in_some_of_its_states)
{
    static const enum flow_state states[] = {FLOW_WAITS, FLOW_DEAD, FLOW_ENDED, FLOW_ENDED_LAST};
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_job job;

    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        for (int how = LAPSE_REPLACE; how <= LAPSE_DEBOUNCE; how++) {
            struct lapse_spec s = flow_job_spec("q", "a", 2 * HOUR);
            flow_put(f, "q", "a", states[i], &job);
            s.on_conflict = (enum lapse_conflict)how;
            cr_assert_eq(flow_spec(f, &s, &job), 0, "%zu, %d", i, how);
            cr_assert_eq(job.state, LAPSE_WAITING, "%zu, %d", i, how);
            cr_assert_eq(flow_cancel(f, "q", "a", NULL), 0);
        }
    }

    for (int how = LAPSE_EARLIER; how <= LAPSE_DEBOUNCE; how++) {
        struct lapse_spec s = flow_job_spec("q", "a", 2 * HOUR);
        flow_put(f, "q", "a", FLOW_RUNS, &job);
        s.on_conflict = (enum lapse_conflict)how;
        cr_assert_eq(flow_spec(f, &s, &job), 0, "%d", how);
        cr_assert_eq(job.state, LAPSE_RUNNING, "%d", how);
        redis_do(f->server, "FLUSHALL");
    }
    flow_end(f, "q");
}

/* ---- BullMQ: debounce ---- */
/* bullmq#2767: each call puts the job off by the whole delay. */
Test(peers_bugs, a_debounced_job_never_runs_while_calls_come)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};
    struct lapse_spec s = flow_job_spec("q", "a", HOUR);
    struct flow_job first = {.due_ms = 0};
    struct flow_job job;

    s.on_conflict = LAPSE_DEBOUNCE;
    s.max_wait_ms = HOUR;
    cr_assert_eq(flow_spec(f, &s, &first), 0);
    for (int i = 0; i < 20; i++) {
        cr_assert_eq(flow_spec(f, &s, &job), 0);
        cr_assert_eq(job.due_ms, first.due_ms, "no later than the first call allows");
    }
    cr_assert_eq(flow_cancel(f, "q", "a", NULL), 0);

    /* and it runs, though a call comes with each turn */
    flow_listen(f, "q", &w);
    s.due = lapse_in(200);
    s.max_wait_ms = 200;
    while (w.settled == 0) {
        cr_assert_eq(flow_spec(f, &s, NULL), 0);
    }
    flow_poll(f, redis_int(f->server, "HLEN lapse:{q}:jobs") == 0);
    flow_end(f, "q");
}

/* ---- HDT3213/delayqueue: TryIntercept() ---- */
/* It looks into one list after the other, while the message goes from one to the next. */
Test(peers_bugs, a_message_on_its_way_between_two_states_cannot_be_intercepted)
{
    enum { N = 500 };
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};
    static struct flow_answer cancels[N];
    unsigned n_cancelled = 0;
    char id[16];

    for (int i = 0; i < N; i++) {
        snprintf(id, sizeof id, "j%d", i);
        cr_assert_eq(flow_schedule(f, "q", id, 0, NULL), 0);
    }
    flow_listen(f, "q", &w);
    for (int i = N - 1; i >= 0; i--) {
        snprintf(id, sizeof id, "j%d", i);
        cancels[i] = (struct flow_answer){.f = f};
        cr_assert_eq(lapse_cancel(f->l, "q", id, 0, flow_answered, &cancels[i]), 0);
    }
    for (int i = 0; i < N; i++) {
        int err = flow_wait(f, &cancels[i]);
        cr_assert(err == 0 || err == LAPSE_EBUSY || err == LAPSE_ENOENT, "%d", err);
        n_cancelled += err == 0;
    }

    /* cancelled or run, and never both or neither */
    flow_until(f, w.settled + n_cancelled == N);
    cr_assert_eq(redis_int(f->server, "HLEN lapse:{q}:jobs"), 0);
    flow_end(f, "q");
}

/* ---- beanstalkd#400 ---- */
static void one_slot(struct lapse_options *o)
{
    o->max_running = 1;
}

/* Each job is made ready by itself when its delay is over, and a worker that waits takes it. */
Test(peers_bugs, of_two_jobs_with_one_delay_the_first_to_be_put_runs_first_whatever_its_priority)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, one_slot);
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow_answer put[2] = {{.f = f}, {.f = f}};

    flow_listen(f, "q", &w);
    flow_until_listeners(f, "q", 1);
    for (int i = 0; i < 2; i++) {
        struct lapse_spec s = flow_job_spec("q", i ? "first" : "second", 300);
        s.priority = i ? 20 : 10;
        cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &put[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(flow_wait(f, &put[i]), 0);
    }
    cr_assert_eq(put[0].job.due_ms, put[1].job.due_ms, "they travel together");

    flow_until(f, w.settled == 2);
    cr_assert_str_eq(w.runs[0].job.id, "first");
    cr_assert_str_eq(w.runs[1].job.id, "second");
    flow_end(f, "q");
}

/* ---- lmstfy: ttl ---- */
/* A job whose ttl is over is dropped, and nobody can tell that from one that was done. */
Test(peers_bugs, a_job_that_was_too_late_is_gone_in_silence)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};
    struct lapse_spec s = flow_job_spec("q", "a", 0);
    struct flow_job job;

    s.keep_ms = HOUR;
    s.max_late_ms = 1;
    s.due = lapse_at(redis_now_ms(f->server) - HOUR);
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    redis_do(f->server, "ZADD lapse:{q}:due 5 a"); /* the past is now, to a schedule */
    flow_listen(f, "q", &w);
    flow_until(f, flow_stats(f->l).skipped == 1);
    cr_assert_eq(flow_get(f, "q", "a", &job), 0);
    cr_assert_eq(job.state, LAPSE_KEPT);
    cr_assert_eq(flow_cancel(f, "q", "a", NULL), LAPSE_EENDED);
    cr_assert_eq(w.n_runs, 0);
    flow_end(f, "q");
}

/* ---- asynq: the retention of completed tasks ---- */
/* What is trimmed from the set leaves its hash behind, and who asks again for an id that was kept
 * finds a lock. */
Test(peers_bugs, what_is_kept_for_a_while_leaves_its_hash_behind)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, quick_sweep);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_listen(f, "q", &w);
    for (int i = 0; i < 150; i++) {
        struct lapse_spec s = flow_job_spec("q", NULL, 0);
        s.keep_ms = 1;
        s.body = "some bytes";
        s.body_len = 10;
        s.flags = LAPSE_KEEP_BODY;
        cr_assert_eq(flow_spec(f, &s, NULL), 0);
    }
    flow_poll(f, w.settled == 150 && flow_count(f, "q", "kept") == 0);
    cr_assert_eq(redis_int(f->server, "EXISTS lapse:{q}:jobs lapse:{q}:attempts lapse:{q}:index"),
                 0);
    flow_end(f, "q");
}

/* ---- HDT3213/delayqueue: WithMsgTTL ---- */
/* The bodies are keys of their own, which expire, and the message is delivered without. */
Test(peers_bugs, a_body_expires_before_its_message_is_delivered)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_spec s = flow_job_spec("q", "a", 200);
    struct flow_handler w = {.way = FLOW_DONE};

    s.keep_ms = 1; /* shorter than it waits */
    s.body = "body";
    s.body_len = 4;
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    cr_assert_eq(redis_int(f->server, "PTTL lapse:{q}:jobs"), -1);
    flow_listen(f, "q", &w);
    flow_until(f, w.settled == 1);
    cr_assert_eq(w.runs[0].job.body_len, 4);
    cr_assert(memcmp(w.runs[0].job.body, "body", 4) == 0);
    flow_end(f, "q");
}
