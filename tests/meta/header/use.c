/* SPDX-License-Identifier: MIT */
/* Uses all of lapse.h, as C11 and as C++17 with every warning an error, and runs where there is no
 * Redis: each call that was accepted is answered once, with an error. */
#include <lapse.h>

#include <ev.h>
#include <stdio.h>
#include <stdlib.h>

static int accepted, answered, wrong, closed_runs;

static void on_answer(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    (void)l;
    answered++;
    if (err == LAPSE_OK || err == LAPSE_EINVAL || job != NULL || arg != &answered) {
        wrong++;
    }
}

static void on_depth(struct lapse *l, int err, const struct lapse_depth *d, void *arg)
{
    (void)d;
    on_answer(l, err, NULL, arg);
}

static void on_batch(struct lapse *l, int err, const struct lapse_batch *b, void *arg)
{
    (void)b;
    on_answer(l, err, NULL, arg);
}

static int64_t never(const char *rule, int64_t after_ms, void *arg)
{
    (void)rule;
    (void)after_ms;
    (void)arg;
    return 0;
}

static int on_before(struct lapse *l, struct lapse_job *job, void *arg)
{
    (void)l;
    (void)job;
    (void)arg;
    return 0;
}

static void on_after(struct lapse *l, const struct lapse_job *job, enum lapse_how how, int err,
                     int64_t ran_us, void *arg)
{
    (void)l;
    (void)job;
    (void)how;
    (void)err;
    (void)ran_us;
    (void)arg;
}

static void on_queues(struct lapse *l, int err, const struct lapse_queue *const *queues, size_t n,
                      void *arg)
{
    (void)queues;
    (void)n;
    on_answer(l, err, NULL, arg);
}

static void on_listeners(struct lapse *l, int err, const struct lapse_listener *const *listeners,
                         size_t n, void *arg)
{
    (void)listeners;
    (void)n;
    on_answer(l, err, NULL, arg);
}

static void on_history(struct lapse *l, int err, const struct lapse_past *const *rows, size_t n,
                       void *arg)
{
    (void)rows;
    (void)n;
    on_answer(l, err, NULL, arg);
}

static void on_list(struct lapse *l, int err, const struct lapse_job *const *jobs, size_t n,
                    void *arg)
{
    (void)jobs;
    if (n != 0) {
        wrong++;
    }
    on_answer(l, err, NULL, arg);
}

static void on_count(struct lapse *l, int err, uint64_t n, uint64_t n_running, void *arg)
{
    if (n != 0 || n_running != 0) {
        wrong++;
    }
    on_answer(l, err, NULL, arg);
}

static void on_text(struct lapse *l, int err, const char *text, void *arg)
{
    if (text != NULL) {
        wrong++;
    }
    on_answer(l, err, NULL, arg);
}

static void on_closed(void *arg)
{
    (void)arg;
    closed_runs++;
}

static void on_log(int level, const char *line, void *arg)
{
    (void)level;
    (void)line;
    (void)arg;
}

/* There is no Redis, so it never runs; it is here to be compiled. */
static void on_job(struct lapse *l, struct lapse_job *job, void *arg)
{
    size_t len = 0;
    const void *body = lapse_job_body(job, &len);
    enum lapse_state state = lapse_job_state(job);
    enum lapse_via via = lapse_job_via(job);
    int64_t late_us = lapse_job_claimed_us(job) - 1000 * lapse_job_due_ms(job);

    (void)l;
    (void)arg;
    wrong++;
    printf("%s %s %d %d %lld %lld %u %u %llu %d %s %d %s %llu\n", lapse_job_queue(job),
           lapse_job_id(job), (int)state, (int)via, (long long)late_us,
           (long long)lapse_job_until_ms(job), lapse_job_try(job), lapse_job_tries(job),
           (unsigned long long)lapse_job_token(job), lapse_job_created(job), lapse_job_reason(job),
           body != NULL, lapse_job_entry(job), (unsigned long long)lapse_job_deliveries(job));

    const char *tag = lapse_job_tag(job, 0);
    const char *trace = lapse_job_header(job, "trace");
    printf("%d %d %u %d\n", tag != NULL, trace != NULL, lapse_job_priority(job),
           (int)lapse_job_end(job));

    struct lapse_gather g = lapse_gather_init();
    printf("%u %d %d\n", lapse_job_parts(job), lapse_job_part(job, 0, NULL) != NULL,
           lapse_job_gather(job, &g));

    if (lapse_job_cancelled(job)) {
        lapse_release(job, NULL, NULL);
    } else if (len == 0) {
        lapse_done(job, NULL, NULL);
    } else if (len == 1) {
        lapse_retry(job, LAPSE_BACKOFF, "why", NULL, NULL);
    } else if (len == 2 && lapse_extend(job, 500) == 0 &&
               lapse_report(job, "", 0, NULL, NULL) == 0) {
        lapse_snooze(job, 5, "why", NULL, NULL);
    } else {
        lapse_fail(job, "why", NULL, NULL);
    }
}

static void *allocate(void *old, size_t size)
{
    if (size != 0) {
        return realloc(old, size);
    }
    free(old);
    return NULL;
}

static void expect_accepted(int err)
{
    if (err != 0) {
        wrong++;
    }
    if (err == 0) {
        accepted++;
    }
}

static void expect(int is, int should_be)
{
    if (is != should_be) {
        wrong++;
    }
}

static void use_selections(struct lapse *l)
{
    struct lapse_where w;
    struct lapse_due due = lapse_in(5);

    memset(&w, 0, sizeof w);
    w.size = sizeof w;
    expect(lapse_cancel_all(l, "orders", &w, 0, on_count, &answered), LAPSE_EINVAL);
    w.state = LAPSE_DEAD;
    expect_accepted(lapse_cancel_all(l, "orders", &w, 0, on_count, &answered));
    w.state = (enum lapse_state)0;
    w.batch = "import-7";
    expect_accepted(lapse_kill_all(l, "orders", &w, "why", on_count, &answered));
    w.batch = NULL;
    w.tag = "customer-7";
    expect_accepted(lapse_reschedule_all(l, "orders", &w, due, 9, 0, on_count, &answered));
}

/* Every field of what a job can ask for beside its body. */
static void use_spec(struct lapse *l)
{
    static const char *const tags[] = {"shop-1", "unpaid"};
    static const struct lapse_header headers[] = {{"trace", "4bf9"}};
    static const int64_t waits_ms[] = {1000, 5000};
    struct lapse_spec s = lapse_spec_init();

    s.queue = "orders";
    s.id = "o-2";
    s.due = lapse_in(1000);
    s.tags = tags;
    s.n_tags = 2;
    s.headers = headers;
    s.n_headers = 1;
    s.priority = 255;
    s.keep_ms = 60000;
    s.run_ms = 5000;
    s.backoff_kind = LAPSE_BACKOFF_LIST;
    s.backoff_list_ms = waits_ms;
    s.n_backoff_list = 2;
    expect_accepted(lapse_schedule(l, &s, on_answer, &answered));
    s.n_backoff_list = 0;
    expect(lapse_schedule(l, &s, on_answer, &answered), LAPSE_EINVAL);

    s.backoff_list_ms = NULL;
    s.backoff_kind = LAPSE_BACKOFF_POWER2;
    s.backoff_max_ms = 60000;
    expect_accepted(lapse_schedule(l, &s, on_answer, &answered));
    s.run_ms = 99;
    expect(lapse_schedule(l, &s, on_answer, &answered), LAPSE_EINVAL);
}

static void use_group(struct lapse *l)
{
    struct lapse_gather g = lapse_gather_init();
    struct lapse_spec s = lapse_spec_init();

    s.queue = "orders";
    s.id = "g-1";
    s.on_conflict = LAPSE_GATHER;
    s.gather = &g;
    expect(lapse_schedule(l, &s, on_answer, &answered), LAPSE_EINVAL);
    g.quiet_ms = 5000;
    g.most = 100;
    g.age_ms = 60000;
    expect_accepted(lapse_schedule(l, &s, on_answer, &answered));
}

static void use_verbs(struct lapse *l)
{
    expect_accepted(lapse_cancel(l, "orders", "o-1", 0, on_answer, &answered));
    expect_accepted(lapse_reschedule(l, "orders", "o-1", lapse_in(5), 0, on_answer, &answered));
    expect_accepted(lapse_kill(l, "orders", "o-1", "no", on_answer, &answered));
    expect_accepted(lapse_batch_close(l, "orders", "o-1", on_answer, &answered));
    expect_accepted(lapse_batch_get(l, "orders", "o-1", on_batch, &answered));
}

static void use_queries(struct lapse *l)
{
    expect_accepted(lapse_get(l, "orders", "o-1", on_answer, &answered));
    expect_accepted(lapse_wait(l, "orders", "o-1", 0, on_answer, &answered));
    expect_accepted(lapse_depth(l, "orders", on_depth, &answered));
    expect_accepted(lapse_queues(l, NULL, on_queues, &answered));
    expect_accepted(lapse_history(l, "orders", 0, 0, 0, on_history, &answered));
    expect_accepted(lapse_listeners(l, "orders", on_listeners, &answered));
    expect_accepted(lapse_quiet(l, "nobody", 1, on_listeners, &answered));
    expect_accepted(lapse_stop(l, "nobody", on_listeners, &answered));
    expect_accepted(lapse_remove(l, "orders", LAPSE_FORCE, on_count, &answered));
    expect_accepted(lapse_list(l, "orders", LAPSE_WAITING, NULL, 10, on_list, &answered));
    expect_accepted(lapse_list_tag(l, "orders", "shop-1", NULL, 10, on_list, &answered));
}

static void use_settings(struct lapse *l)
{
    struct lapse_adoption what;

    expect_accepted(lapse_configure(l, "orders", NULL, on_text, &answered));
    expect_accepted(lapse_pause(l, "orders", NULL, 1000, on_text, &answered));
    expect_accepted(lapse_unpause(l, "orders", NULL, on_text, &answered));
    expect_accepted(lapse_forward(l, "sent", "stream", on_text, &answered));
    memset(&what, 0, sizeof what);
    what.size = sizeof what;
    what.group = "g";
    what.consumer = "me";
    what.n = 1;
    expect_accepted(lapse_adopt(l, "sent", &what, on_list, &answered));
}

static void on_event(struct lapse *l, enum lapse_event what, const struct lapse_job *job, void *arg)
{
    (void)l;
    (void)arg;
    wrong += what == LAPSE_EVENT_CANCEL && lapse_job_cancelled(job);
}

static void on_told(struct lapse *l, enum lapse_told what, void *arg)
{
    (void)l;
    (void)arg;
    wrong += what != LAPSE_TOLD_STOP;
}

static void register_functions(struct lapse *l)
{
    lapse_on_event(l, on_event, NULL);
    lapse_on_told(l, on_told, NULL);
    expect(lapse_around(l, on_before, on_after, NULL), 0);
    expect(lapse_calendar(l, "never", never, NULL), 0);
}

static void use_statistics(struct lapse *l)
{
    struct lapse_stats stats;
    struct lapse_histogram late;

    lapse_stats(l, &stats, sizeof stats);
    expect(stats.done == 0, 1);
    expect(lapse_lateness(l, LAPSE_VIA_TOUCH, &late), 0);
    expect(lapse_quantile_us(&late, 0.99) == 0 && lapse_bucket_us(0) == 100, 1);
}

int main(void)
{
    struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
    struct lapse_options o = lapse_options_init();
    struct lapse_spec s = lapse_spec_init();
    struct lapse_listen_options h = {sizeof h, 4, 6, 1};
    struct lapse *l = NULL;
    struct lapse *other = NULL;

    lapse_set_allocator(allocate);
    o.url = "unix:///nowhere/redis";
    o.log = on_log;
    o.flags = LAPSE_NO_EVENTS | LAPSE_NO_ALARM;
    expect(lapse_options_set(&o, "reply_ms", "50ms"), 0);
    expect(lapse_options_set(&o, "no such", "1"), LAPSE_EINVAL);
    expect(lapse_open(&other, loop, &o), 0);
    o.flags = 0;
    expect(lapse_open(&l, loop, &o), 0);
    if (wrong) {
        return 1;
    }

    expect(lapse_listen(l, "orders", &h, on_job, NULL), 0);
    expect(lapse_listen(l, "orders", NULL, on_job, NULL), LAPSE_EEXIST);
    s.queue = "orders";
    s.id = "o-1";
    s.body = "unpaid";
    s.body_len = 6;
    s.due = lapse_in(1000);
    s.tries = LAPSE_FOREVER;
    s.on_conflict = LAPSE_REPLACE;
    expect_accepted(lapse_schedule(l, &s, on_answer, &answered));
    s.due = lapse_at(1);
    expect_accepted(lapse_schedule(l, &s, on_answer, &answered));
    register_functions(l);
    use_spec(l);
    use_group(l);
    use_verbs(l);
    use_queries(l);
    use_selections(l);
    use_settings(l);
    expect(lapse_cancel(l, "", "o-1", 0, on_answer, &answered), LAPSE_EINVAL);
    expect(answered, 0);

    use_statistics(l);
    expect(lapse_outcome_unknown(LAPSE_ELOST) && !lapse_outcome_unknown(LAPSE_EDOWN), 1);
    expect(strcmp(lapse_version(), LAPSE_VERSION), 0);
    expect(lapse_strerror(LAPSE_EBUSY)[0] != 0 && lapse_strerror(12345)[0] != 0, 1);
    lapse_abandon(other);
    lapse_close(l, 200, on_closed, NULL);
    expect(lapse_get(l, "orders", "o-1", on_answer, &answered), LAPSE_ECLOSED);
    ev_run(loop, 0);
    ev_loop_destroy(loop);
    printf("lapse " LAPSE_VERSION ": %d accepted, %d answered, %d closed, %d wrong\n", accepted,
           answered, closed_runs, wrong);

    return wrong || accepted != 29 || answered != 29 || closed_runs != 1;
}
