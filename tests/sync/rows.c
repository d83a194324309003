/* SPDX-License-Identifier: MIT */
/* Queues, listeners, history and batches, by calls that wait: what they give is the caller's. */
#include "waiting.h"
#include <signal.h>

static int schedule_of(struct lapse_sync *s, const char *queue, const char *id, const char *batch)
{
    struct lapse_spec spec = lapse_spec_init();

    spec.queue = queue;
    spec.id = id;
    spec.batch = batch;
    spec.due = lapse_in(HOUR);
    return lapse_sync_schedule(s, &spec, 0, NULL);
}

/* ---- queues ---- */
Test(rows, queues_come_whole_with_their_depths_and_settings)
{
    static const char *const names[] = {"mail.a", "mail.b", "sms"};
    struct waiting w;
    struct lapse_sync_queue_rows found = {7, NULL};

    waiting_start(&w);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(schedule_of(w.s, names[i], "a", NULL), 0);
    }
    cr_assert_eq(schedule_of(w.s, "mail.b", "b", NULL), 0);
    cr_assert_eq(lapse_sync_configure(w.s, "mail.a", "dead_max=5", 0, NULL), 0);

    cr_assert_eq(lapse_sync_queues(w.s, "mail.*", 0, &found), 0);
    cr_assert_eq(found.n, 2);
    cr_assert_str_eq(found.rows[0]->name, "mail.a");
    cr_assert_str_eq(found.rows[0]->settings, "dead_max=5");
    cr_assert_eq(found.rows[0]->depth->waiting, 1);
    cr_assert_str_eq(found.rows[1]->name, "mail.b");
    cr_assert_str_eq(found.rows[1]->settings, "");
    cr_assert_eq(found.rows[1]->depth->waiting, 2);
    lapse_sync_free_rows(found.rows);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(lapse_sync_remove(w.s, names[i], 0, 0, NULL), 0);
    }

    cr_assert_eq(lapse_sync_queues(w.s, "none.*", 0, &found), 0);
    cr_assert_eq(found.n, 0);
    lapse_sync_free_rows(found.rows);
    waiting_end(&w, "q");
}

Test(rows, a_queue_is_removed_and_what_it_had_is_counted)
{
    struct waiting w;
    struct worker k;
    struct lapse_sync_count count = {7, 7};
    struct lapse_sync_queue_rows found = {7, NULL};

    waiting_start(&w);
    worker_keep_one(&k, w.s);
    for (int i = 0; i < 250; i++) {
        cr_assert_eq(schedule(w.s, NULL, HOUR), 0);
    }

    cr_assert_eq(lapse_sync_remove(w.s, "q", 0, 0, &count), LAPSE_EBUSY);
    cr_assert(count.n == 0 && count.n_running == 1);
    cr_assert_eq(lapse_sync_unlisten(w.s, "q"), 0);
    cr_assert_eq(lapse_sync_remove(w.s, "q", LAPSE_FORCE, 0, &count), 0);
    cr_assert_eq(count.n, 251);
    cr_assert_eq(count.n_running, 1);
    cr_assert_eq(lapse_sync_done(w.s, k.kept[0], 0), LAPSE_EGONE);
    cr_assert_eq(lapse_sync_queues(w.s, NULL, 0, &found), 0);
    cr_assert_eq(found.n, 0);
    lapse_sync_free_rows(found.rows);
    cr_assert_eq(lapse_sync_remove(w.s, "q", 0, 0, NULL), 0);
    waiting_end(&w, "q");
}

/* ---- listeners ---- */
struct told {
    _Atomic enum lapse_told what;
    atomic_uint n;
};

static void on_told(struct lapse_sync *s, enum lapse_told what, void *arg)
{
    struct told *t = arg;

    t->what = what;
    t->n++;
    /* the thread of the handle may not wait for an answer */
    if (lapse_sync_stop(s, "x", 0, NULL) != LAPSE_EINVAL) {
        t->n += 100;
    }
}

/* One listener of q is shown, held so many jobs, and was told that. */
static bool one_listener(struct lapse_sync *s, uint64_t n_held, enum lapse_told told)
{
    struct lapse_sync_listener_rows found = {7, NULL};

    cr_assert_eq(lapse_sync_listeners(s, "q", 0, &found), 0);
    bool is_so = found.n == 1 && found.rows[0]->n_held == n_held && found.rows[0]->told == told &&
                 found.rows[0]->since_ms > 0 && strncmp(found.rows[0]->name, "web/", 4) == 0;
    lapse_sync_free_rows(found.rows);

    return is_so;
}

Test(rows, a_listener_is_shown_and_told_and_hears_it)
{
    struct waiting w;
    struct worker k;
    struct told told = {0};
    struct lapse_sync_listener_rows found = {7, NULL};

    waiting_bare(&w);
    w.options.name = "web";
    w.s = waiting_open(&w);
    cr_assert_eq(lapse_sync_on_told(w.s, on_told, &told), 0);
    cr_assert_eq(lapse_sync_listeners(w.s, "q", 0, &found), 0);
    cr_assert_eq(found.n, 0);
    lapse_sync_free_rows(found.rows);
    cr_assert_eq(lapse_sync_stop(w.s, "web", 0, NULL), LAPSE_ENOENT);

    /* with a slot that is free: who has none leaves the members after a second */
    worker_init(&k, KEEP);
    cr_assert_eq(listen_with(w.s, &k, 1, 2), 0);
    cr_assert_eq(schedule(w.s, "a", 0), 0);
    wait_until(k.ended == 1);
    wait_until(one_listener(w.s, 1, LAPSE_TOLD_GO_ON));
    cr_assert_eq(lapse_sync_quiet(w.s, "web", 1, 0, &found), 0);
    cr_assert_eq(found.n, 1);
    cr_assert_eq(found.rows[0]->told, LAPSE_TOLD_QUIET);
    cr_assert_eq(strncmp(found.rows[0]->name, "web/", 4), 0);
    wait_until(told.n == 1);
    cr_assert_eq(told.what, LAPSE_TOLD_QUIET);
    cr_assert(one_listener(w.s, 1, LAPSE_TOLD_QUIET));

    cr_assert_eq(lapse_sync_quiet(w.s, found.rows[0]->name, 0, 0, NULL), 0);
    lapse_sync_free_rows(found.rows);
    wait_until(told.n == 2);
    cr_assert_eq(told.what, LAPSE_TOLD_GO_ON);
    cr_assert_eq(lapse_sync_stop(w.s, "web", 0, NULL), 0);
    wait_until(told.n == 3);
    cr_assert_eq(told.what, LAPSE_TOLD_STOP);
    cr_assert_eq(lapse_sync_done(w.s, k.kept[0], 0), 0);

    cr_assert_eq(lapse_sync_on_told(w.s, NULL, NULL), 0);
    cr_assert_eq(lapse_sync_quiet(w.s, "web", 0, 0, NULL), 0);
    wait_until(one_listener(w.s, 0, LAPSE_TOLD_GO_ON));
    cr_assert_eq(told.n, 3);
    waiting_end(&w, "q");
}

/* ---- history ---- */
Test(rows, history_has_a_row_for_each_step)
{
    struct waiting w;
    struct lapse_sync_past_rows found = {7, NULL};

    waiting_start(&w);
    cr_assert_eq(schedule(w.s, "a", HOUR), 0);
    cr_assert_eq(schedule(w.s, "b", HOUR), 0);
    lapse_sync_close(w.s, 1000); /* it sends what it has counted */
    w.s = waiting_open(&w);
    cr_assert_eq(lapse_sync_history(w.s, "q", 0, 0, 0, 0, &found), 0);
    cr_assert_eq(found.n, 1);
    cr_assert_eq(found.rows[0]->scheduled, 2);
    lapse_sync_free_rows(found.rows);

    int64_t now_ms = redis_now_ms(w.server);
    uint64_t scheduled = 0;
    cr_assert_eq(lapse_sync_history(w.s, "q", now_ms - 2 * HOUR, now_ms + 1, HOUR, 0, &found), 0);
    cr_assert_eq(found.n, 3);
    for (size_t i = 0; i < found.n; i++) {
        cr_assert(i == 0 || found.rows[i]->from_ms == found.rows[i - 1]->to_ms);
        scheduled += found.rows[i]->scheduled;
    }
    cr_assert_eq(scheduled, 2);
    lapse_sync_free_rows(found.rows);
    waiting_end(&w, "q");
}

/* ---- batches ---- */
Test(rows, a_batch_is_counted_and_its_own_job_is_due_when_it_has_ended)
{
    struct waiting w;
    struct lapse_job *job = NULL;
    struct lapse_batch batch;

    waiting_start(&w);
    cr_assert_eq(schedule_of(w.s, "q", "a", "all"), 0);
    cr_assert_eq(schedule_of(w.s, "q", "b", "all"), 0);
    cr_assert_eq(lapse_sync_batch_close(w.s, "q", "all", 0, &job), LAPSE_ENOENT);
    cr_assert_null(job);
    cr_assert_eq(schedule_of(w.s, "q", "all", NULL), 0);
    cr_assert_eq(lapse_sync_batch_close(w.s, "q", "all", 0, &job), 0);
    cr_assert_str_eq(lapse_job_id(job), "all");
    lapse_sync_free(job);

    struct lapse_sync_jobs page = {.n = 7};
    cr_assert_eq(lapse_sync_list_batch(w.s, "q", "all", NULL, 100, 0, &page), 0);
    cr_assert_eq(page.n, 2);
    cr_assert_str_eq(lapse_job_batch(page.jobs[1]), "all");
    lapse_sync_free_jobs(&page);

    cr_assert_eq(lapse_sync_cancel(w.s, "q", "a", 0, 0, NULL), 0);
    cr_assert_eq(lapse_sync_kill(w.s, "q", "b", NULL, 0, NULL), 0);
    cr_assert_eq(lapse_sync_batch_get(w.s, "q", "all", 0, &batch), 0);
    cr_assert(batch.left == 0 && batch.dead == 1 && batch.ended == 1 && batch.closed);
    cr_assert_eq(lapse_sync_claim_id(w.s, "q", "all", 0, &job), LAPSE_ENOENT);
    cr_assert_eq(lapse_sync_cancel(w.s, "q", "b", 0, 0, NULL), 0);
    cr_assert_eq(lapse_sync_claim_id(w.s, "q", "all", 0, &job), 0);
    cr_assert_eq(lapse_sync_done(w.s, job, 0), 0);
    cr_assert_eq(lapse_sync_batch_get(w.s, "q", "all", 0, &batch), 0);
    cr_assert(batch.left == 0 && batch.dead == 0 && batch.ended == 0 && !batch.closed);
    waiting_end(&w, "q");
}

/* ---- what is refused, and what gives up ---- */
Test(rows, what_is_not_allowed_is_einval_and_leaves_out_alone)
{
    struct waiting w;
    struct lapse_sync_queue_rows queues = {7, NULL};
    struct lapse_sync_listener_rows listeners = {7, NULL};
    struct lapse_sync_past_rows past = {7, NULL};
    struct lapse_sync_count count = {7, 7};
    struct lapse_batch batch = {.left = 7};

    waiting_start(&w);
    cr_assert_eq(lapse_sync_queues(w.s, "a*b", 0, &queues), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_queues(w.s, NULL, 0, NULL), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_queues(NULL, NULL, 0, &queues), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_listeners(w.s, "q q", 0, &listeners), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_listeners(w.s, "q", 0, NULL), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_quiet(w.s, "a b", 1, 0, &listeners), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_stop(w.s, NULL, 0, &listeners), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_history(w.s, "q", 0, 1, 1, 0, &past), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_history(w.s, "q", 0, 0, 0, 0, NULL), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_remove(w.s, "q", 2, 0, &count), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_remove(w.s, "q", 0, -1, &count), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_batch_close(w.s, "q", NULL, 0, NULL), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_batch_get(w.s, "q", "a b", 0, &batch), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_batch_get(w.s, "q", "a", 0, NULL), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_list_batch(w.s, "q", "a", NULL, 1, 0, NULL), LAPSE_EINVAL);
    cr_assert_eq(lapse_sync_kill_all(w.s, "q", NULL, NULL, 0, &count), LAPSE_EINVAL);
    cr_assert(queues.n == 7 && listeners.n == 7 && past.n == 7 && count.n == 7 && batch.left == 7);
    lapse_sync_free_rows(NULL);
    waiting_end(&w, "q");
}

static bool quieted_by_a_call_that_gave_up(struct waiting *w, const struct told *told)
{
    struct lapse_sync_queue_rows queues = {7, NULL};
    struct lapse_sync_listener_rows listeners = {7, NULL};
    struct lapse_sync_past_rows past = {7, NULL};
    struct lapse_batch batch = {.left = 7};

    server_signal(w->server, SIGSTOP);
    cr_assert_eq(lapse_sync_quiet(w->s, "web", 1, 20, &listeners), LAPSE_ETIMEOUT);
    cr_assert_eq(lapse_sync_queues(w->s, NULL, 20, &queues), LAPSE_ETIMEOUT);
    cr_assert_eq(lapse_sync_listeners(w->s, "q", 20, &listeners), LAPSE_ETIMEOUT);
    cr_assert_eq(lapse_sync_history(w->s, "q", 0, 0, 0, 20, &past), LAPSE_ETIMEOUT);
    cr_assert_eq(lapse_sync_batch_get(w->s, "q", "all", 20, &batch), LAPSE_ETIMEOUT);
    server_signal(w->server, SIGCONT);
    cr_assert(queues.n == 7 && listeners.n == 7 && past.n == 7 && batch.left == 7);
    cr_assert_eq(depth_of(w->s, "q").waiting, 0); /* its answer comes behind theirs */
    return told->n > 0;
}

Test(rows, a_call_that_gives_up_leaves_out_alone_and_what_it_told_is_heard)
{
    struct waiting w;
    struct worker k;
    struct told told = {0};

    waiting_bare(&w);
    w.options.name = "web";
    w.s = waiting_open(&w);
    cr_assert_eq(lapse_sync_on_told(w.s, on_told, &told), 0);
    worker_init(&k, DONE);
    cr_assert_eq(listen_with(w.s, &k, 1, 0), 0);
    wait_until(one_listener(w.s, 0, LAPSE_TOLD_GO_ON));
    wait_until(quieted_by_a_call_that_gave_up(&w, &told));
    cr_assert_eq(told.what, LAPSE_TOLD_QUIET);
    cr_assert_eq(told.n, 1);
    waiting_end(&w, "q");
}
