/* SPDX-License-Identifier: MIT */
/* lapse_sync_on_event(): what it tells, and in which thread. */
#include "waiting.h"

struct heard {
    atomic_uint n[LAPSE_EVENT_DIED + 1];
    atomic_int call_err; /* of a call that the function made */
    atomic_bool in_this_thread;
    pthread_t thread; /* of the test */
    pthread_mutex_t mutex;
    char id[16], body[16], reason[64]; /* of the last one */
};

static void heard_init(struct heard *h)
{
    memset(h, 0, sizeof *h);
    h->thread = pthread_self();
    pthread_mutex_init(&h->mutex, NULL);
}

static void on_event(struct lapse_sync *s, enum lapse_event what, const struct lapse_job *job,
                     void *arg)
{
    struct heard *h = arg;
    size_t len;
    const char *body = lapse_job_body(job, &len);

    pthread_mutex_lock(&h->mutex);
    snprintf(h->id, sizeof h->id, "%s", lapse_job_id(job));
    snprintf(h->body, sizeof h->body, "%.*s", (int)len, body);
    snprintf(h->reason, sizeof h->reason, "%s", lapse_job_reason(job));
    pthread_mutex_unlock(&h->mutex);
    h->call_err = schedule(s, "x", HOUR);
    h->in_this_thread = pthread_equal(h->thread, pthread_self()) != 0;
    h->n[what]++;
}

static void must_have_heard(struct heard *h, const char *id, const char *body, const char *reason)
{
    pthread_mutex_lock(&h->mutex);
    bool same = strcmp(h->id, id) == 0 && strcmp(h->body, body) == 0;
    bool same_reason = strcmp(h->reason, reason) == 0;
    pthread_mutex_unlock(&h->mutex);
    cr_assert(same && same_reason, "%s: %s, %s", h->id, h->body, h->reason);
    cr_assert_eq(h->call_err, LAPSE_EINVAL, "a call of the function: %s",
                 lapse_strerror(h->call_err));
    cr_assert(!h->in_this_thread);
}

/* Its handler blocks meanwhile. */
Test(events, a_cancel_of_a_running_job_is_heard_by_the_function_and_seen_by_the_handler)
{
    struct waiting w;
    struct worker k;
    struct heard h;
    struct lapse_job *asked = NULL;

    waiting_start(&w);
    heard_init(&h);
    cr_assert_eq(lapse_sync_on_event(w.s, on_event, &h), 0);
    worker_keep_one(&k, w.s);
    cr_assert_eq(lapse_job_cancelled(k.kept[0]), 0);
    cr_assert_eq(lapse_sync_cancel(w.s, "q", "a", LAPSE_RUNNING_TOO, 0, &asked), 0);
    cr_assert_eq(lapse_job_state(asked), LAPSE_RUNNING);
    lapse_sync_free(asked);
    wait_until(h.n[LAPSE_EVENT_CANCEL] == 1);
    must_have_heard(&h, "a", "", "");
    cr_assert_eq(lapse_job_cancelled(k.kept[0]), 1);
    cr_assert_eq(lapse_sync_retry(w.s, k.kept[0], 0, NULL, 0), 0);
    cr_assert_eq(lapse_sync_get(w.s, "q", "a", 0, NULL), LAPSE_ENOENT);
    cr_assert_eq(h.n[LAPSE_EVENT_DIED], 0);
    waiting_end(&w, "q");
}

static void until_past(struct waiting *w)
{
    int64_t ms = redis_now_ms(w->server) + 1;
    wait_until(redis_now_ms(w->server) > ms);
}

Test(events, skips_and_deaths_are_heard_until_the_function_is_taken_away)
{
    struct waiting w;
    struct heard h;
    struct lapse_spec s = lapse_spec_init();
    struct lapse_sync_jobs jobs;

    waiting_start(&w);
    heard_init(&h);
    cr_assert_eq(lapse_sync_on_event(w.s, on_event, &h), 0);
    s.queue = "q";
    s.id = "skip";
    s.body = "text";
    s.body_len = 4;
    s.max_late_ms = 1;
    cr_assert_eq(lapse_sync_schedule(w.s, &s, 0, NULL), 0);
    until_past(&w);
    cr_assert_eq(lapse_sync_claim(w.s, "q", 9, 0, 0, &jobs), 0);
    cr_assert_eq(jobs.n, 0);
    wait_until(h.n[LAPSE_EVENT_SKIPPED] == 1);
    must_have_heard(&h, "skip", "text", "");

    s.id = "dies";
    s.max_late_ms = 0;
    cr_assert_eq(lapse_sync_schedule(w.s, &s, 0, NULL), 0);
    cr_assert_eq(lapse_sync_claim(w.s, "q", 9, 0, 0, &jobs), 0);
    cr_assert_eq(jobs.n, 1);
    cr_assert_eq(lapse_sync_fail(w.s, jobs.jobs[0], "no answer", 0), 0);
    wait_until(h.n[LAPSE_EVENT_DIED] == 1);
    must_have_heard(&h, "dies", "text", "no answer");

    cr_assert_eq(lapse_sync_on_event(w.s, NULL, NULL), 0);
    s.id = "unheard";
    cr_assert_eq(lapse_sync_schedule(w.s, &s, 0, NULL), 0);
    cr_assert_eq(lapse_sync_claim(w.s, "q", 9, 0, 0, &jobs), 0);
    cr_assert_eq(jobs.n, 1);
    cr_assert_eq(lapse_sync_fail(w.s, jobs.jobs[0], NULL, 0), 0);
    cr_assert_eq(depth_of(w.s, "q").dead, 2);
    cr_assert_eq(h.n[LAPSE_EVENT_DIED], 1);
    waiting_end(&w, "q");
}

Test(events, of_no_handle_are_einval)
{
    cr_assert_eq(lapse_sync_on_event(NULL, on_event, NULL), LAPSE_EINVAL);
}
