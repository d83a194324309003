/* SPDX-License-Identifier: MIT */
/* Handlers that block, in threads of their own. */
#include "waiting.h"

static void schedule_due(struct waiting *w, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        cr_assert_eq(schedule(w->s, NULL, 0), 0);
    }
}

Test(listen, each_job_runs_once_and_is_done)
{
    struct waiting w;
    struct worker k;

    waiting_start(&w);
    worker_init(&k, DONE);
    cr_assert_eq(listen_with(w.s, &k, 4, 0), 0);
    schedule_due(&w, 100);
    wait_until(k.ended == 100);
    cr_assert(k.settled == 100 && k.err == 0);

    struct lapse_depth d = depth_of(w.s, "q");
    cr_assert_eq(d.waiting + d.running + d.dead, 0);
    waiting_end(&w, "q");
}

Test(listen, no_more_is_claimed_than_threads_are_free)
{
    struct waiting w;
    struct worker k;

    waiting_start(&w);
    worker_init(&k, DONE);
    k.blocks = true;
    schedule_due(&w, 20);
    cr_assert_eq(listen_with(w.s, &k, 3, 0), 0);
    wait_until(k.inside == 3);

    struct lapse_depth d = depth_of(w.s, "q");
    cr_assert(d.running == 3 && d.waiting == 17, "%d run", (int)d.running);

    k.blocks = false;
    wait_until(k.ended == 20);
    cr_assert_eq(k.most, 3);
    cr_assert_eq(stats_of(w.s).claimed, 20);
    waiting_end(&w, "q");
}

Test(listen, with_max_running_some_wait_here_for_a_thread)
{
    struct waiting w;
    struct worker k;

    waiting_start(&w);
    worker_init(&k, DONE);
    k.blocks = true;
    schedule_due(&w, 20);
    cr_assert_eq(listen_with(w.s, &k, 2, 10), 0);
    wait_until(k.inside == 2 && depth_of(w.s, "q").running == 10);

    k.blocks = false;
    wait_until(k.ended == 20);
    cr_assert_eq(k.most, 2);
    waiting_end(&w, "q");
}

static int schedule_to(struct lapse_sync *s, const char *queue)
{
    struct lapse_spec spec = lapse_spec_init();

    spec.queue = queue;
    return lapse_sync_schedule(s, &spec, 0, NULL);
}

/* Of a pattern, all its queues have its threads together. */
Test(listen, to_a_pattern_claims_no_more_than_threads_are_free)
{
    struct waiting w;
    struct worker k;
    struct lapse_sync_listen_options o = {.size = sizeof o, .threads = 3};
    static const char *const queues[] = {"q.1", "q.2", "q.3", "q.4"};

    waiting_start(&w);
    worker_init(&k, DONE);
    k.blocks = true;
    cr_assert_eq(lapse_sync_listen(w.s, "q.*", &o, worker_on_job, &k), 0);
    cr_assert_eq(lapse_sync_listen(w.s, "q.*", &o, worker_on_job, &k), LAPSE_EEXIST);
    cr_assert_eq(lapse_sync_listen(w.s, "q*.", &o, worker_on_job, &k), LAPSE_EINVAL);
    for (int i = 0; i < 20; i++) {
        cr_assert_eq(schedule_to(w.s, queues[i % 4]), 0);
    }
    wait_until(k.inside == 3);
    cr_assert_eq(stats_of(w.s).claimed, 3);

    k.blocks = false;
    wait_until(k.ended == 20);
    cr_assert_eq(k.most, 3);
    cr_assert_eq(lapse_sync_unlisten(w.s, "q.1"), LAPSE_ENOENT);
    cr_assert_eq(lapse_sync_unlisten(w.s, "q.*"), 0);
    cr_assert_eq(lapse_sync_unlisten(w.s, "q.*"), LAPSE_ENOENT);
    redis_do(w.server, "DEL lapse:{q.2}:seq lapse:{q.3}:seq lapse:{q.4}:seq");
    waiting_end(&w, "q.1");
}

/* When the lease ends that is the first to end. */
static long long lease_end_ms(struct waiting *w)
{
    return redis_int(w->server, "EVAL %s 1 lapse:{q}:run",
                     "return redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]");
}

Test(listen, leases_are_renewed_while_handlers_block)
{
    struct waiting w;
    struct worker k;

    waiting_bare(&w);
    w.options.lease_ms = 4500;
    w.s = waiting_open(&w);
    worker_init(&k, DONE);
    k.blocks = true;
    cr_assert_eq(listen_with(w.s, &k, 2, 0), 0);
    schedule_due(&w, 2);
    wait_until(k.inside == 2);

    /* both are renewed after the first lease would have ended */
    long long first_ms = lease_end_ms(&w);
    wait_until(lease_end_ms(&w) > first_ms + w.options.lease_ms);
    cr_assert_eq(depth_of(w.s, "q").running, 2);
    k.blocks = false;
    wait_until(k.ended == 2);
    cr_assert(k.began == 2 && k.settled == 2, "%s", lapse_strerror(k.err));
    waiting_end(&w, "q");
}

Test(listen, each_way_to_settle_is_what_redis_has_then)
{
    struct waiting w;
    struct worker k;
    struct lapse_job *job;

    waiting_start(&w);
    worker_init(&k, RETRY);
    cr_assert_eq(listen_with(w.s, &k, 1, 0), 0);
    cr_assert_eq(schedule(w.s, "retried", 0), 0);
    wait_until(k.ended == 1);
    cr_assert_eq(lapse_sync_get(w.s, "q", "retried", 0, &job), 0);
    cr_assert_eq(lapse_job_state(job), LAPSE_WAITING);
    cr_assert_str_eq(lapse_job_reason(job), "again");
    lapse_sync_free(job);

    k.way = SNOOZE;
    cr_assert_eq(schedule(w.s, "snoozed", 0), 0);
    wait_until(k.ended == 2);
    cr_assert_eq(lapse_sync_get(w.s, "q", "snoozed", 0, &job), 0);
    cr_assert(lapse_job_state(job) == LAPSE_WAITING && lapse_job_try(job) == 0);
    cr_assert_str_eq(lapse_job_reason(job), "too early");
    lapse_sync_free(job);

    k.way = FAIL;
    cr_assert_eq(schedule(w.s, "failed", 0), 0);
    wait_until(k.ended == 3);
    cr_assert_eq(lapse_sync_get(w.s, "q", "failed", 0, &job), 0);
    cr_assert_eq(lapse_job_state(job), LAPSE_DEAD);
    cr_assert_str_eq(lapse_job_reason(job), "broken");
    lapse_sync_free(job);
    cr_assert_eq(k.settled, 3);
    waiting_end(&w, "q");
}

Test(listen, a_released_job_runs_again_and_no_try_is_counted)
{
    struct waiting w;
    struct worker k;

    waiting_start(&w);
    worker_init(&k, RELEASE);
    k.blocks = true;
    cr_assert_eq(listen_with(w.s, &k, 1, 0), 0);
    cr_assert_eq(schedule(w.s, "a", 0), 0);
    wait_until(k.began == 1);
    k.blocks = false;
    wait_until(k.began >= 2);
    k.way = DONE;
    wait_until(depth_of(w.s, "q").waiting + depth_of(w.s, "q").running == 0);
    cr_assert_eq(k.last_try, 1);
    waiting_end(&w, "q");
}

Test(listen, a_job_is_settled_by_another_thread_after_its_handler_returned)
{
    struct waiting w;
    struct worker k;

    waiting_start(&w);
    worker_init(&k, KEEP);
    cr_assert_eq(listen_with(w.s, &k, 1, 8), 0);
    schedule_due(&w, 8);
    wait_until(k.ended == 8);
    for (unsigned i = 0; i < 8; i++) {
        cr_assert_gt(lapse_job_until_ms(k.kept[i]), 0);
        cr_assert_eq(lapse_sync_done(w.s, k.kept[i], 0), 0);
    }
    cr_assert_eq(depth_of(w.s, "q").running, 0);
    waiting_end(&w, "q");
}

Test(listen, a_reason_is_cut_where_lapse_h_cuts_it)
{
    struct waiting w;
    struct worker k;
    struct lapse_job *job;
    char reason[400];

    waiting_start(&w);
    worker_keep_one(&k, w.s);
    memset(reason, 'x', sizeof reason);
    memcpy(reason + 199, "\xc3\xa4", 2); /* a character of two bytes, of which one has no place */
    reason[sizeof reason - 1] = '\0';
    cr_assert_eq(lapse_sync_fail(w.s, k.kept[0], reason, 0), 0);
    cr_assert_eq(lapse_sync_get(w.s, "q", "a", 0, &job), 0);
    cr_assert_eq(strlen(lapse_job_reason(job)), 199);
    lapse_sync_free(job);
    waiting_end(&w, "q");
}

Test(listen, unlisten_gives_back_what_no_thread_has_begun_uncounted)
{
    struct waiting w;
    struct worker k;
    struct worker next;

    waiting_start(&w);
    worker_init(&k, DONE);
    k.blocks = true;
    cr_assert_eq(listen_with(w.s, &k, 1, 10), 0);
    schedule_due(&w, 5);
    wait_until(k.inside == 1 && depth_of(w.s, "q").running == 5);
    cr_assert_eq(lapse_sync_unlisten(w.s, "q"), 0);
    wait_until(depth_of(w.s, "q").running == 1);
    cr_assert_eq(lapse_sync_unlisten(w.s, "q"), LAPSE_ENOENT);

    worker_init(&next, DONE);
    cr_assert_eq(listen_with(w.s, &next, 1, 0), 0);
    wait_until(next.ended == 4);
    cr_assert_eq(next.last_try, 1);
    k.blocks = false;
    wait_until(k.ended == 1);
    cr_assert(k.settled == 1 && next.settled == 4);
    waiting_end(&w, "q");
}

static void stop_and_settle(struct lapse_sync *s, struct lapse_job *job, void *arg)
{
    struct worker *k = arg;

    if (lapse_sync_unlisten(s, "q") || schedule(s, "more", HOUR)) {
        k->err = LAPSE_EINVAL;
    }
    worker_settle(k, s, job, DONE);
    k->ended++;
}

Test(listen, a_handler_may_make_any_call_and_stop_its_own_queue)
{
    struct waiting w;
    struct worker k;

    waiting_start(&w);
    worker_init(&k, DONE);
    for (unsigned i = 1; i <= 20; i++) {
        cr_assert_eq(lapse_sync_listen(w.s, "q", NULL, stop_and_settle, &k), 0);
        cr_assert_eq(schedule(w.s, NULL, 0), 0);
        wait_until(k.ended == i);
        cr_assert_eq(k.err, 0, "%s", lapse_strerror(k.err));
        cr_assert_eq(lapse_sync_cancel(w.s, "q", "more", 0, 0, NULL), 0);
    }
    waiting_end(&w, "q");
}

Test(listen, what_is_not_allowed_is_refused_and_starts_nothing)
{
    struct waiting w;
    struct worker k;
    struct lapse_sync_listen_options o = {.size = sizeof o, .threads = 10001};
    struct {
        struct lapse_sync_listen_options o;
        int64_t extra;
    } newer = {{.size = sizeof newer, .threads = 1}, 1};

    waiting_start(&w);
    worker_init(&k, DONE);
    cr_assert_eq(lapse_sync_listen(w.s, "q", &o, worker_on_job, &k), LAPSE_EINVAL);
    o = (struct lapse_sync_listen_options){.size = sizeof o, .max_running = 100001};
    cr_assert_eq(lapse_sync_listen(w.s, "q", &o, worker_on_job, &k), LAPSE_EINVAL);
    o = (struct lapse_sync_listen_options){.threads = 1, .max_running = 1};
    cr_assert_eq(lapse_sync_listen(w.s, "q", &o, worker_on_job, &k), LAPSE_EINVAL);
    o = (struct lapse_sync_listen_options){.size = sizeof o, .weight = LAPSE_WEIGHT_MAX + 1};
    cr_assert_eq(lapse_sync_listen(w.s, "q", &o, worker_on_job, &k), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_listen(w.s, "q", &newer.o, worker_on_job, &k), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_listen(w.s, "q q", NULL, worker_on_job, &k), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_listen(w.s, NULL, NULL, worker_on_job, &k), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_listen(w.s, "q", NULL, NULL, &k), LAPSE_EINVAL);
    newer.extra = 0;
    cr_assert_eq(lapse_sync_listen(w.s, "q", &newer.o, worker_on_job, &k), 0);
    cr_assert_eq(lapse_sync_listen(w.s, "q", NULL, worker_on_job, &k), LAPSE_EEXIST);
    waiting_end(&w, "q");
}

/* Blocks for longer than run_ms, which it has said before. */
static void extend_and_block(struct lapse_sync *s, struct lapse_job *job, void *arg)
{
    struct worker *k = arg;
    int64_t first_ms = lapse_job_until_ms(job);
    int64_t end_ms = test_now_ms() + 10000;

    k->err = lapse_sync_extend(s, job, HOUR, 0);
    while (lapse_job_until_ms(job) < first_ms + 2500 && test_now_ms() < end_ms) {
        wait_a_little();
    }
    worker_settle(k, s, job, DONE);
    k->ended++;
}

Test(listen, a_blocking_handler_extends_what_it_may_be_held_for)
{
    struct waiting w;
    struct worker k;

    waiting_bare(&w);
    w.options.lease_ms = 6000;
    w.options.run_ms = 6100;
    w.options.sweep_ms = 50;
    w.s = waiting_open(&w);
    worker_init(&k, DONE);
    struct lapse_sync_listen_options o = {.size = sizeof o, .threads = 4};
    cr_assert_eq(lapse_sync_listen(w.s, "q", &o, extend_and_block, &k), 0);
    schedule_due(&w, 4);
    wait_until(k.ended == 4);
    cr_assert(k.err == 0 && k.settled == 4, "%s", lapse_strerror(k.err));
    cr_assert_eq(stats_of(w.s).recovered, 0);
    cr_assert_eq(stats_of(w.s).claimed, 4);
    waiting_end(&w, "q");
}

Test(listen, an_extension_that_is_wrong_or_too_late_says_so)
{
    struct waiting w;
    struct worker k;
    struct lapse_settlement done = {.size = sizeof done, .how = LAPSE_HOW_DONE};

    waiting_start(&w);
    worker_keep_one(&k, w.s);
    struct lapse_job *job = k.kept[0];
    cr_assert_eq(lapse_sync_extend(NULL, job, HOUR, 0), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_extend(w.s, NULL, HOUR, 0), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_extend(w.s, job, 99, 0), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_extend(w.s, job, HOUR, -1), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_extend(w.s, job, HOUR, 0), 0);
    cr_assert_eq(lapse_sync_settle(w.s, "q", "a", lapse_job_token(job), &done, 0), 0);
    cr_assert_eq(lapse_sync_extend(w.s, job, HOUR, 0), LAPSE_EGONE);
    cr_assert_eq(lapse_sync_done(w.s, job, 0), LAPSE_EGONE);
    waiting_end(&w, "q");
}

/* Its lease ended while it waited for a thread, so another process may have it. */
Test(listen, a_job_whose_lease_ended_in_the_line_is_not_begun)
{
    struct waiting w;
    struct worker k;

    waiting_bare(&w);
    w.options.lease_ms = 4000;
    w.options.run_ms = 4500;
    w.options.sweep_ms = 60000; /* which would give it back */
    w.s = waiting_open(&w);
    worker_init(&k, DONE);
    k.blocks = true;
    cr_assert_eq(listen_with(w.s, &k, 1, 2), 0);
    schedule_due(&w, 2);
    wait_until(k.inside == 1 && stats_of(w.s).claimed == 2);
    wait_until(depth_of(w.s, "q").running == 0);
    cr_assert_eq(lapse_sync_unlisten(w.s, "q"), 0);
    cr_assert_eq(k.began, 1);
    k.blocks = false;
    wait_until(k.ended == 1);
    cr_assert_eq(k.began, 1);
    waiting_end(&w, "q");
}

/* The thread of the loop hears it, and any other may ask. */
Test(listen, any_thread_may_ask_whether_its_job_is_asked_to_stop)
{
    struct waiting w;
    struct worker k;
    struct lapse_job *asked;

    waiting_bare(&w);
    w.options.lease_ms = 4500;
    w.s = waiting_open(&w);
    worker_init(&k, KEEP);
    cr_assert_eq(listen_with(w.s, &k, 2, 0), 0);
    cr_assert_eq(schedule(w.s, "a", 0), 0);
    wait_until(k.ended == 1);
    cr_assert_eq(lapse_job_cancelled(k.kept[0]), 0);
    cr_assert_eq(lapse_sync_cancel(w.s, "q", "a", 0, 0, NULL), LAPSE_EBUSY);
    cr_assert_eq(lapse_sync_cancel(w.s, "q", "a", LAPSE_RUNNING_TOO, 0, &asked), 0);
    cr_assert_eq(lapse_job_state(asked), LAPSE_RUNNING);
    lapse_sync_free(asked);
    wait_until(lapse_job_cancelled(k.kept[0]) == 1);
    worker_settle(&k, w.s, k.kept[0], RETRY);
    cr_assert_eq(k.settled, 1);
    cr_assert_eq(lapse_sync_get(w.s, "q", "a", 0, NULL), LAPSE_ENOENT);
    waiting_end(&w, "q");
}

/* Which queue ran next. Each has one thread, so it is at its own limit while it runs. */
struct turns {
    struct worker k;
    _Atomic unsigned n;
    char order[64];
};

static void note_turn(struct lapse_sync *s, struct lapse_job *job, void *arg)
{
    struct turns *t = arg;

    t->order[t->n++] = *lapse_job_queue(job);
    worker_on_job(s, job, &t->k);
}

static int schedule_in(struct lapse_sync *s, const char *queue)
{
    struct lapse_spec spec = lapse_spec_init();

    spec.queue = queue;
    spec.due = lapse_in(0);
    return lapse_sync_schedule(s, &spec, 0, NULL);
}

Test(listen, queues_share_the_slots_of_the_handle_by_weight_and_level)
{
    enum { TENS = 3 };
    struct lapse_sync_listen_options six = {.size = sizeof six, .weight = 6, .level = 1};
    struct lapse_sync_listen_options four = {.size = sizeof four, .weight = 4, .level = 1};
    static struct turns t;
    struct waiting w;

    waiting_bare(&w);
    w.options.max_running = 1;
    w.options.sweep_ms = 60000;
    w.s = waiting_open(&w);
    worker_init(&t.k, DONE);
    t.k.blocks = true;
    cr_assert_eq(lapse_sync_listen(w.s, "q", NULL, note_turn, &t), 0);
    cr_assert_eq(schedule(w.s, "first", 0), 0);
    wait_until(t.k.inside == 1);

    for (int i = 0; i < 10 * TENS; i++) {
        cr_assert_eq(schedule_in(w.s, i % 10 < 6 ? "s" : "f"), 0);
    }
    cr_assert_eq(lapse_sync_listen(w.s, "s", &six, note_turn, &t), 0);
    cr_assert_eq(lapse_sync_listen(w.s, "f", &four, note_turn, &t), 0);
    cr_assert_eq(schedule(w.s, "second", 0), 0);
    cr_assert_eq(lapse_sync_unlisten(w.s, "q"), 0);
    cr_assert_eq(lapse_sync_listen(w.s, "q", NULL, note_turn, &t), 0);
    t.k.blocks = false;
    wait_until(t.k.ended == 10 * TENS + 2);

    cr_assert(strncmp(t.order, "qq", 2) == 0, "%s", t.order);
    for (int ten = 0; ten < TENS; ten++) {
        int n = 0;
        for (int i = 0; i < 10; i++) {
            n += t.order[2 + 10 * ten + i] == 's';
        }
        cr_assert_eq(n, 6, "%s", t.order);
    }
    redis_do(w.server, "DEL lapse:{s}:seq lapse:{f}:seq"); /* the audit knows one queue */
    waiting_end(&w, "q");
}
