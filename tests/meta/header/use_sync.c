/* SPDX-License-Identifier: MIT */
/* Uses all of lapse_sync.h, as C11 and as C++17 with every warning an error, and runs where there
 * is no Redis: each call returns an error, or does nothing that needs Redis. */
#include <lapse_sync.h>

#include <stdio.h>

static int wrong;

static void expect(int is, int should_be, const char *what)
{
    if (is != should_be) {
        printf("%s: %s\n", what, lapse_strerror(is));
        wrong++;
    }
}
#define EXPECT(call, should_be) expect(call, should_be, #call)

/* There is no Redis, so it never runs; it is here to be compiled. */
static void on_job(struct lapse_sync *s, struct lapse_job *job, void *arg)
{
    (void)arg;
    wrong++;
    switch (lapse_job_try(job)) {
    case 1: lapse_sync_retry(s, job, LAPSE_BACKOFF, "why", 0); break;
    case 2: lapse_sync_fail(s, job, "why", 0); break;
    case 3: lapse_sync_release(s, job, 0); break;
    case 5: lapse_sync_extend(s, job, 500, 0); break;
    case 6: lapse_sync_report(s, job, "half", 4, 0); break;
    case 4: lapse_sync_snooze(s, job, 5, "why", 0); break;
    default: lapse_sync_done(s, job, 0); break;
    }
}

static void on_health(struct lapse_sync *s, const struct lapse_health *h, void *arg)
{
    (void)s;
    (void)h;
    (void)arg;
}

static void on_event(struct lapse_sync *s, enum lapse_event what, const struct lapse_job *job,
                     void *arg)
{
    (void)s;
    (void)arg;
    wrong += what != LAPSE_EVENT_CANCEL && lapse_job_cancelled(job);
}

static int on_before(struct lapse_sync *s, struct lapse_job *job, void *arg)
{
    (void)arg;
    if (lapse_job_try(job) <= 5) {
        return 0;
    }

    lapse_sync_done(s, job, 0);
    return 1; /* whatever that returned: the job is settled */
}

static void on_after(struct lapse_sync *s, const struct lapse_job *job, enum lapse_how how, int err,
                     int64_t ran_us, void *arg)
{
    (void)s;
    (void)job;
    (void)arg;
    wrong += how == LAPSE_HOW_DONE && err == LAPSE_OK && ran_us < 0;
}

static int64_t on_next(const char *rule, int64_t after_ms, void *arg)
{
    (void)arg;
    return rule[0] == '1' ? after_ms + 1000 : -1;
}

static void use_calendar(struct lapse_sync *s)
{
    struct lapse_spec spec = lapse_spec_init();
    struct lapse_series series = lapse_series_init();

    series.calendar = "seconds";
    series.rule = "1";
    spec.queue = "orders";
    spec.series = &series;
    EXPECT(lapse_sync_schedule(s, &spec, 0, NULL), LAPSE_EINVAL);
    EXPECT(lapse_sync_calendar(s, "seconds", on_next, NULL), 0);
    EXPECT(lapse_sync_schedule(s, &spec, 0, NULL), LAPSE_EDOWN);
}

static void use_selections(struct lapse_sync *s)
{
    struct lapse_sync_count count;
    struct lapse_where where;

    memset(&where, 0, sizeof where);
    where.size = sizeof where;
    where.state = LAPSE_DEAD;
    EXPECT(lapse_sync_cancel_all(s, "orders", &where, 0, 0, &count), LAPSE_EDOWN);
    where.state = LAPSE_WAITING;
    EXPECT(lapse_sync_kill_all(s, "orders", &where, "why", 0, &count), LAPSE_EDOWN);
    where.tag = "customer-7";
    EXPECT(lapse_sync_reschedule_all(s, "orders", &where, lapse_in(0), 9, 0, 0, &count),
           LAPSE_EDOWN);
}

static void use_settings(struct lapse_sync *s)
{
    struct lapse_sync_jobs jobs;
    struct lapse_adoption what;
    char *text = NULL;

    EXPECT(lapse_sync_configure(s, "orders", NULL, 0, &text), LAPSE_EDOWN);
    EXPECT(lapse_sync_pause(s, "orders", NULL, 0, 0, &text), LAPSE_EDOWN);
    EXPECT(lapse_sync_unpause(s, "orders", NULL, 0, &text), LAPSE_EDOWN);
    EXPECT(lapse_sync_forward(s, "moved", "list", 0, &text), LAPSE_EDOWN);
    lapse_sync_free_text(text);
    memset(&what, 0, sizeof what);
    what.size = sizeof what;
    what.group = "g";
    what.consumer = "me";
    what.n = 1;
    EXPECT(lapse_sync_adopt(s, "moved", &what, 0, &jobs), LAPSE_EDOWN);
    lapse_sync_free_jobs(&jobs);
}

static void use_rows(struct lapse_sync *s)
{
    struct lapse_sync_queue_rows queues = {0, NULL};
    struct lapse_sync_listener_rows listeners = {0, NULL};
    struct lapse_sync_past_rows past = {0, NULL};
    struct lapse_sync_count count;
    struct lapse_batch batch;
    struct lapse_job *job = NULL;

    EXPECT(lapse_sync_queues(s, "*", 0, &queues), LAPSE_EDOWN);
    EXPECT(lapse_sync_listeners(s, "orders", 0, &listeners), LAPSE_EDOWN);
    EXPECT(lapse_sync_quiet(s, "web", 1, 0, NULL), LAPSE_EDOWN);
    EXPECT(lapse_sync_stop(s, "web", 0, &listeners), LAPSE_EDOWN);
    EXPECT(lapse_sync_history(s, "orders", 0, 0, 0, 0, &past), LAPSE_EDOWN);
    EXPECT(lapse_sync_remove(s, "orders", LAPSE_FORCE, 0, &count), LAPSE_EDOWN);
    EXPECT(lapse_sync_batch_close(s, "orders", "all", 0, &job), LAPSE_EDOWN);
    EXPECT(lapse_sync_batch_get(s, "orders", "all", 0, &batch), LAPSE_EDOWN);
    lapse_sync_free_rows(queues.rows);
    lapse_sync_free_rows(listeners.rows);
    lapse_sync_free_rows(past.rows);
}

int main(void)
{
    struct lapse_options o = lapse_options_init();
    struct lapse_spec spec = lapse_spec_init();
    struct lapse_sync_listen_options h = {sizeof h, 2, 4, 6, 1};
    struct lapse_sync_jobs jobs;
    struct lapse_depth depth;
    struct lapse_stats stats;
    struct lapse_histogram late;
    struct lapse_job *job = NULL;
    struct lapse_settlement how;
    struct lapse_sync *s = NULL;

    o.url = "unix:///nowhere/redis";
    o.reply_ms = 50;
    EXPECT(lapse_sync_open(NULL, &o), LAPSE_EINVAL);
    EXPECT(lapse_sync_open(&s, &o), 0);
    EXPECT(lapse_sync_on_health(s, on_health, NULL), 0);
    EXPECT(lapse_sync_on_event(s, on_event, NULL), 0);
    EXPECT(lapse_sync_around(s, on_before, on_after, NULL), 0);
    EXPECT(lapse_sync_around(s, NULL, NULL, NULL), LAPSE_EINVAL);

    spec.queue = "orders";
    spec.id = "o-1";
    spec.due = lapse_in(1000);
    EXPECT(lapse_sync_schedule(s, &spec, 0, &job), LAPSE_EDOWN);
    EXPECT(lapse_sync_cancel(s, "orders", "o-1", 0, 0, &job), LAPSE_EDOWN);
    EXPECT(lapse_sync_reschedule(s, "orders", "o-1", lapse_in(5), 0, 0, NULL), LAPSE_EDOWN);
    EXPECT(lapse_sync_kill(s, "orders", "o-1", "no", 0, NULL), LAPSE_EDOWN);
    EXPECT(lapse_sync_get(s, "orders", "o-1", 0, &job), LAPSE_EDOWN);
    EXPECT(lapse_sync_get(s, "", "o-1", 0, &job), LAPSE_EINVAL);
    use_calendar(s);
    use_selections(s);
    EXPECT(lapse_sync_list(s, "orders", LAPSE_WAITING, NULL, LAPSE_SYNC_JOBS, 0, &jobs),
           LAPSE_EDOWN);
    EXPECT(lapse_sync_depth(s, "orders", 0, &depth), LAPSE_EDOWN);
    use_settings(s);
    use_rows(s);
    EXPECT(lapse_sync_claim(s, "orders", 9, 0, 0, &jobs), LAPSE_EDOWN);
    EXPECT(lapse_sync_claim_id(s, "orders", "o-1", 0, &job), LAPSE_EDOWN);
    memset(&how, 0, sizeof how);
    how.size = sizeof how;
    how.how = LAPSE_HOW_DONE;
    EXPECT(lapse_sync_settle(s, "orders", "o-1", 1, &how, 0), LAPSE_EDOWN);
    EXPECT(lapse_sync_listen(s, "orders", &h, on_job, NULL), 0);
    EXPECT(lapse_sync_listen(s, "orders", NULL, on_job, NULL), LAPSE_EEXIST);
    EXPECT(lapse_sync_unlisten(s, "orders"), 0);
    EXPECT(lapse_sync_done(s, NULL, 0), LAPSE_EINVAL);
    EXPECT(lapse_sync_forget(s, NULL), LAPSE_EINVAL);
    EXPECT(lapse_sync_stats(s, &stats, sizeof stats), 0);
    EXPECT(lapse_sync_lateness(s, LAPSE_VIA_TOUCH, &late), 0);
    jobs.n = 0;
    lapse_sync_free_jobs(&jobs);
    lapse_sync_free(job);
    lapse_sync_close(s, 0);
    printf("lapse_sync " LAPSE_VERSION ": %d wrong\n", wrong);

    return wrong != 0;
}
