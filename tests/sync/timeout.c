/* SPDX-License-Identifier: MIT */
/* Calls that give up, and what becomes of what they asked. A call that gives up before the loop has
 * seen it asks nothing, so tests of what the loop has seen repeat the call until it did. */
#include "waiting.h"
#include <signal.h>

/* Is "a" there after a schedule that gave up? The get travels behind it. */
static bool scheduled_by_a_call_that_gave_up(struct waiting *w)
{
    struct lapse_job *job = NULL;
    struct lapse_spec spec = lapse_spec_init();

    spec.queue = "q";
    spec.id = "a";
    spec.due = lapse_in(HOUR);
    server_signal(w->server, SIGSTOP);
    cr_assert_eq(lapse_sync_schedule(w->s, &spec, 50, &job), LAPSE_ETIMEOUT);
    server_signal(w->server, SIGCONT);
    cr_assert_null(job);
    return lapse_sync_get(w->s, "q", "a", 0, NULL) == 0;
}

Test(timeout, a_call_gives_up_and_what_it_asked_happens_all_the_same)
{
    struct waiting w;

    waiting_start(&w);
    cr_assert_eq(depth_of(w.s, "q").waiting, 0); /* it is connected */
    cr_assert(lapse_outcome_unknown(LAPSE_ETIMEOUT));
    wait_until(scheduled_by_a_call_that_gave_up(&w));
    waiting_end(&w, "q");
}

static bool cancelled_by_a_call_that_gave_up(struct waiting *w)
{
    struct lapse_job *job = NULL;
    struct lapse_sync_jobs page = {.n = 7};
    struct lapse_depth d = {.waiting = 7};

    server_signal(w->server, SIGSTOP);
    cr_assert_eq(lapse_sync_get(w->s, "q", "a", 20, &job), LAPSE_ETIMEOUT);
    cr_assert_eq(lapse_sync_cancel(w->s, "q", "a", 0, 20, &job), LAPSE_ETIMEOUT);
    cr_assert_eq(lapse_sync_list(w->s, "q", LAPSE_WAITING, NULL, 9, 20, &page), LAPSE_ETIMEOUT);
    cr_assert_eq(lapse_sync_depth(w->s, "q", 20, &d), LAPSE_ETIMEOUT);
    server_signal(w->server, SIGCONT);
    cr_assert(job == NULL && page.n == 7 && d.waiting == 7);
    return depth_of(w->s, "q").waiting == 0;
}

Test(timeout, of_every_call_leaves_out_alone)
{
    struct waiting w;

    waiting_start(&w);
    cr_assert_eq(schedule(w.s, "a", HOUR), 0);
    wait_until(cancelled_by_a_call_that_gave_up(&w));
    waiting_end(&w, "q");
}

static bool settled_by_a_call_that_gave_up(struct waiting *w, struct lapse_job *job)
{
    server_signal(w->server, SIGSTOP);
    cr_assert_eq(lapse_sync_done(w->s, job, 50), LAPSE_ETIMEOUT);
    server_signal(w->server, SIGCONT);
    return lapse_sync_get(w->s, "q", "a", 0, NULL) == LAPSE_ENOENT;
}

Test(timeout, a_settle_that_gives_up_goes_on)
{
    struct waiting w;
    struct worker k;

    waiting_start(&w);
    worker_keep_one(&k, w.s);
    wait_until(settled_by_a_call_that_gave_up(&w, k.kept[0]));
    waiting_end(&w, "q");
}

Test(timeout, of_0_is_reply_ms_and_says_what_lapse_says)
{
    struct waiting w;

    waiting_bare(&w);
    w.options.url = "unix:///nowhere/redis";
    w.options.reply_ms = 100;
    w.s = waiting_open(&w);
    cr_assert_eq(schedule(w.s, "a", HOUR), LAPSE_EDOWN);
    lapse_sync_close(w.s, 0);

    w.options.url = w.server->url;
    w.options.reply_ms = 4000;
    w.s = waiting_open(&w);
    cr_assert_eq(schedule(w.s, "a", HOUR), 0);
    server_signal(w.server, SIGSTOP);
    cr_assert_eq(schedule(w.s, "b", HOUR), LAPSE_ETIMEOUT);
    server_signal(w.server, SIGCONT);
    waiting_end(&w, "q");
}

/* No replica is there, so what is asked for never comes; the job is stored all the same. */
Test(timeout, of_0_is_long_enough_to_hear_that_too_few_have_it)
{
    struct waiting w;
    struct lapse_spec spec = lapse_spec_init();
    struct lapse_job *job = NULL;

    waiting_bare(&w);
    w.options.reply_ms = 4000;
    w.options.replicas_ms = 5000;
    w.s = waiting_open(&w);
    spec.queue = "q";
    spec.id = "a";
    spec.due = lapse_in(HOUR);
    spec.replicas = 1;
    cr_assert_eq(lapse_sync_schedule(w.s, &spec, 0, &job), LAPSE_EALONE);
    cr_assert_eq(lapse_job_replicas(job), 0);
    lapse_sync_free(job);
    redis_do(w.server, "DEL lapse:{q}:fence");
    waiting_end(&w, "q");
}

/* All that this handle writes is to have a copy. */
static void open_for_copies(struct waiting *w)
{
    w->options.reply_ms = 2000;
    w->options.replicas = 1;
    w->options.replicas_ms = 4000;
    w->s = waiting_open(w);
}

Test(timeout, of_0_is_long_enough_where_all_that_is_written_is_to_have_copies)
{
    struct waiting w;

    waiting_bare(&w);
    open_for_copies(&w);
    cr_assert_eq(schedule(w.s, "b", HOUR), LAPSE_EALONE);
    waiting_end(&w, "q");
}

Test(timeout, of_0_is_long_enough_for_a_cancel_that_is_to_have_copies)
{
    struct waiting w;
    struct lapse_job *job = NULL;

    waiting_bare(&w);
    w.s = waiting_open(&w);
    cr_assert_eq(schedule(w.s, "a", HOUR), 0);
    lapse_sync_close(w.s, 0);

    open_for_copies(&w);
    cr_assert_eq(lapse_sync_cancel(w.s, "q", "a", 0, 0, &job), LAPSE_EALONE);
    cr_assert_str_eq(lapse_job_id(job), "a");
    lapse_sync_free(job);
    waiting_end(&w, "q");
}

/* It was built when the struct ended behind its flags. */
Test(timeout, of_0_is_long_enough_for_an_older_caller_too)
{
    struct waiting w;
    struct lapse_spec spec = lapse_spec_init();

    waiting_bare(&w);
    w.options.reply_ms = 1000;
    w.options.replicas_ms = 4000;
    w.s = waiting_open(&w);
    spec.size = offsetof(struct lapse_spec, max_wait_ms);
    spec.queue = "q";
    spec.id = "a";
    spec.due = lapse_in(HOUR);
    spec.replicas = 1;
    cr_assert_eq(lapse_sync_schedule(w.s, &spec, 0, NULL), LAPSE_EALONE);
    redis_do(w.server, "DEL lapse:{q}:fence");
    waiting_end(&w, "q");
}

/* ---- a loop that stands still ---- */
struct blocker {
    atomic_bool blocks, blocked;
    struct lapse_sync *s;
    atomic_int err;
};

static void on_health(struct lapse_sync *s, const struct lapse_health *h, void *arg)
{
    struct blocker *b = arg;

    (void)h;
    b->err = schedule(s, "x", HOUR);
    b->blocked = true;
    while (b->blocks) {
        wait_a_little();
    }
}

Test(timeout, what_the_loop_has_not_seen_yet_is_taken_back)
{
    struct waiting w;
    struct blocker b = {.blocks = true};

    waiting_bare(&w);
    w.options.url = "unix:///nowhere/redis";
    w.options.reply_ms = 50;
    w.s = waiting_open(&w);
    cr_assert_eq(lapse_sync_on_health(w.s, on_health, &b), 0);
    wait_until(b.blocked); /* DISCONNECTED */
    cr_assert_eq(b.err, LAPSE_EINVAL, "a call of the health function: %s", lapse_strerror(b.err));
    cr_assert_eq(schedule(w.s, "a", HOUR), LAPSE_ETIMEOUT);
    b.blocks = false;
    lapse_sync_close(w.s, 0);
    w.options.url = w.server->url;
    w.s = waiting_open(&w);
    waiting_end(&w, "q");
}

static bool selected_by_a_call_that_gave_up(struct waiting *w)
{
    struct lapse_where where = {.size = sizeof where, .state = LAPSE_WAITING};
    struct lapse_sync_count count = {7, 7};

    server_signal(w->server, SIGSTOP);
    cr_assert_eq(lapse_sync_cancel_all(w->s, "q", &where, 0, 50, &count), LAPSE_ETIMEOUT);
    server_signal(w->server, SIGCONT);
    cr_assert(count.n == 7 && count.n_running == 7, "nobody waits for them");
    return lapse_sync_get(w->s, "q", "a", 0, NULL) == LAPSE_ENOENT;
}

Test(timeout, a_selection_that_gives_up_goes_on)
{
    struct waiting w;

    waiting_start(&w);
    cr_assert_eq(schedule(w.s, "a", HOUR), 0);
    wait_until(selected_by_a_call_that_gave_up(&w));
    waiting_end(&w, "q");
}
