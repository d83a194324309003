/* SPDX-License-Identifier: MIT */
/* lapse_history(), and what each process sends for it. */
#include "handler.h"
#include "listener.h"
#include "listening.h"
#include "proxy.h"

enum { HOUR = 3600000, DAY = 24 * HOUR, MINUTE = 60000 };

/* ---- asking ---- */
struct asked {
    struct flow *f;
    int err;
    bool done;
    size_t n;
    struct lapse_past rows[64];
};

static void on_history(struct lapse *l, int err, const struct lapse_past *const *rows, size_t n,
                       void *arg)
{
    struct asked *a = arg;

    (void)l;
    a->err = err;
    a->n = n;
    for (size_t i = 0; i < n && i < sizeof a->rows / sizeof *a->rows; i++) {
        a->rows[i] = *rows[i];
    }
    a->done = true;
}

static void never(struct lapse *l, int err, const struct lapse_past *const *rows, size_t n,
                  void *arg)
{
    (void)l;
    (void)err;
    (void)rows;
    (void)n;
    (void)arg;
    cr_assert_fail("called back");
}

static void ask_steps(struct asked *a, const char *queue, int64_t from_ms, int64_t to_ms,
                      int64_t step_ms)
{
    struct flow *f = a->f;

    a->done = false;
    cr_assert_eq(lapse_history(f->l, queue, from_ms, to_ms, step_ms, on_history, a), 0);
    flow_until(f, a->done);
    cr_assert_eq(a->err, 0, "%s", lapse_strerror(a->err));
}

/* What was ever counted in q. */
static const struct lapse_past *ask_all(struct asked *a)
{
    ask_steps(a, "q", 0, 0, 0);
    cr_assert_eq(a->n, 1);
    return &a->rows[0];
}

/* The first handle has sent what it has counted, and another one asks. */
static void close_and_open(struct flow *f)
{
    flow_close(f, f->l, 5000);
    f->l = flow_open(f, NULL);
}

static unsigned bucket_of(uint64_t us)
{
    unsigned i = 0;

    while (us > lapse_bucket_us(i)) {
        i++;
    }
    return i;
}

static int by_number(const void *a, const void *b)
{
    const uint64_t *x = a;
    const uint64_t *y = b;

    return (*x > *y) - (*x < *y);
}

static void no_sweep(struct lapse_options *opts)
{
    opts->sweep_ms = DAY;
}

/* ---- what is counted ---- */
static void end_each_way(struct flow *f, struct flow_handler *w)
{
    struct lapse_spec s = flow_job_spec("q", NULL, 0);

    w->way = FLOW_KEEP;
    for (int i = 0; i < 7; i++) {
        s.tries = i == 6 ? 1 : 10;
        cr_assert_eq(flow_spec(f, &s, NULL), 0);
    }
    flow_listen(f, "q", w);
    flow_until(f, w->n_held == 7);

    unsigned n = 0;
    for (size_t i = 0; i < 7; i++) {
        if (lapse_job_tries(w->held[i]) == 1) {
            lapse_retry(w->held[i], HOUR, "", flow_on_settled, w); /* it dies of that */
        } else if (n++ < 3) {
            lapse_done(w->held[i], flow_on_settled, w);
        } else if (n == 4) {
            lapse_retry(w->held[i], HOUR, "", flow_on_settled, w);
        } else if (n == 5) {
            lapse_fail(w->held[i], "", flow_on_settled, w);
        } else {
            lapse_snooze(w->held[i], HOUR, "", flow_on_settled, w);
        }
    }
    flow_until(f, w->settled == 7);
}

Test(history, is_what_was_counted)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);
    struct flow_handler w = {.f = f};
    static struct asked a;

    a.f = f;
    cr_assert_eq(ask_all(&a)->from_ms, 0, "there is none");
    end_each_way(f, &w);
    for (int i = 0; i < 4; i++) {
        char id[8];
        snprintf(id, sizeof id, "c%d", i);
        cr_assert_eq(flow_schedule(f, "q", id, HOUR, NULL), 0);
        cr_assert_eq(flow_cancel(f, "q", id, NULL), 0);
        cr_assert_eq(flow_cancel(f, "q", id, NULL), LAPSE_ENOENT);
    }
    close_and_open(f);

    const struct lapse_past *p = ask_all(&a);
    cr_assert(p->scheduled == 11 && p->claimed == 7 && p->done == 3 && p->retried == 1);
    cr_assert(p->dead == 2 && p->cancelled == 4 && p->skipped == 0 && p->forwarded == 0);
    cr_assert(p->gone == 0 && p->recovered == 0 && p->run.n == 7 && p->late[0].n == 7);
    cr_assert_gt(p->from_ms, 0);
    flow_end(f, "q");
}

Test(history, of_all_handles_is_one)
{
    struct flow *f = flow_start(FLOW_FULL);
    static struct asked a;

    a.f = f;
    for (int i = 0; i < 5; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, HOUR, NULL), 0);
        close_and_open(f);
    }
    cr_assert_eq(ask_all(&a)->scheduled, 5);
    flow_end(f, "q");
}

Test(history, lateness_of_the_day_is_that_of_the_samples_within_one_bucket)
{
    enum { N = 300 };
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.f = f, .way = FLOW_DONE};
    static struct asked a;
    static uint64_t late_us[N];

    a.f = f;
    flow_listen(f, "q", &w);
    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, i % 60, NULL), 0);
    }
    flow_until(f, w.settled == N);
    for (size_t i = 0; i < N; i++) {
        const struct flow_job *j = &w.runs[i].job;
        late_us[i] = (uint64_t)(j->claimed_us - j->due_ms * 1000);
    }
    int64_t now_ms = w.runs[N - 1].job.claimed_us / 1000;
    close_and_open(f);

    struct lapse_histogram all = {0};
    ask_steps(&a, "q", now_ms - DAY, now_ms + DAY, DAY);
    for (size_t i = 0; i < a.n; i++) {
        all.n += a.rows[i].late[0].n;
        all.max_us = all.max_us > a.rows[i].late[0].max_us ? all.max_us : a.rows[i].late[0].max_us;
        for (unsigned b = 0; b < LAPSE_BUCKETS; b++) {
            all.counts[b] += a.rows[i].late[0].counts[b];
        }
    }

    qsort(late_us, N, sizeof *late_us, by_number);
    cr_assert(all.n == N && all.max_us == late_us[N - 1]);
    cr_assert_eq(bucket_of(lapse_quantile_us(&all, 0.5)), bucket_of(late_us[N / 2 - 1]));
    cr_assert_eq(bucket_of(lapse_quantile_us(&all, 0.99)), bucket_of(late_us[N * 99 / 100 - 1]));
    flow_end(f, "q");
}

Test(history, has_a_row_for_each_step_and_counts_in_one_of_them)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_job job;
    static struct asked a;

    a.f = f;
    cr_assert_eq(flow_schedule(f, "q", "a", 0, &job), 0);
    close_and_open(f);

    int64_t from_ms = job.due_ms - (int64_t)30 * MINUTE;
    ask_steps(&a, "q", from_ms, from_ms + HOUR, MINUTE);
    cr_assert(a.n == 60 || a.n == 61);
    uint64_t n = 0;
    for (size_t i = 0; i < a.n; i++) {
        cr_assert_eq(a.rows[i].from_ms, from_ms - from_ms % MINUTE + (int64_t)i * MINUTE);
        cr_assert_eq(a.rows[i].to_ms, a.rows[i].from_ms + MINUTE);
        n += a.rows[i].scheduled;
    }
    cr_assert_eq(n, 1);
    flow_end(f, "q");
}

Test(history, is_off_where_history_days_is_0)
{
    struct flow *f = flow_start(FLOW_FULL);
    static struct asked a;

    a.f = f;
    cr_assert_eq(flow_configure(f, "q", "history_days=0", NULL), 0);
    cr_assert_eq(flow_schedule(f, "q", "a", HOUR, NULL), 0);
    close_and_open(f);
    cr_assert_eq(redis_int(f->server, "EXISTS lapse:{q}:past"), 0);
    cr_assert_eq(ask_all(&a)->scheduled, 0);
    flow_end(f, "q");
}

/* ---- what it costs, and what is lost ---- */
/* How many calls a process with a name had made when it sent this. */
static long long number_of(struct flow *f, const char *queue)
{
    char *seen = redis_str(f->server, "HGET lapse:{%s}:past seen", queue);
    long long number = seen && strchr(seen, '=') ? atoll(strchr(seen, '=') + 1) : 0;

    free(seen);
    return number;
}

Test(history, a_process_sends_one_script_a_queue_in_10_s_and_none_of_queues_where_nothing_happens)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.f = f, .way = FLOW_DONE};
    struct flow_handler idle = {.f = f, .way = FLOW_DONE};
    static struct asked a;
    uint64_t n = 0;

    a.f = f;
    flow_listen(f, "q", &w);
    flow_listen(f, "idle", &idle);
    for (; number_of(f, "q") == 0 && n < 3000; n++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
        cr_assert_eq(flow_schedule(f, "p", NULL, HOUR, NULL), 0);
        flow_spin(f, 20);
    }
    flow_poll(f, number_of(f, "p") > 0);
    cr_assert_eq(number_of(f, "q") + number_of(f, "p"), 3, "the first and the second");
    cr_assert_eq(redis_int(f->server, "EXISTS lapse:{idle}:past"), 0);

    cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    cr_assert_eq(flow_schedule(f, "p", NULL, HOUR, NULL), 0);
    n++;
    flow_until(f, w.settled == n);
    close_and_open(f);
    cr_assert_eq(number_of(f, "q") + number_of(f, "p"), 7, "and one each at the end");
    const struct lapse_past *p = ask_all(&a);
    cr_assert(p->scheduled == n && p->claimed == n && p->done == n);
    flow_end(f, "q", "p", "idle");
}

/* Jobs that are spread over them would have a script each. */
Test(history, of_more_than_a_thousand_queues_is_sent_more_rarely)
{
    enum { QUEUES = 1200, LEAST_MS = 12000 };
    struct flow *f = flow_start(FLOW_FULL);
    char name[16];

    int64_t start_ms = test_now_ms();
    for (unsigned i = 0; i < QUEUES; i++) {
        snprintf(name, sizeof name, "q%u", i);
        struct lapse_spec spec = flow_job_spec(name, NULL, HOUR);
        cr_assert_eq(lapse_schedule(f->l, &spec, NULL, NULL), 0);
    }
    flow_poll(f, flow_keys(f, "lapse:{q*}:past") > 0);
    flow_poll(f, number_of(f, name) > 0);
    cr_assert_geq(test_now_ms() - start_ms, LEAST_MS);
    flow_close(f, f->l, 5000);
    flow_do(f, "FLUSHALL");
    flow_end(f, "q0");
}

Test(history, what_was_sent_and_not_answered_is_sent_again_and_counts_once)
{
    place_not_with_masters("the proxy is before one of the masters");

    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct proxy *p = proxy_start(f->server);
    struct lapse_options opts = flow_options(f);
    static struct asked a;
    uint64_t n = 0;

    a.f = f;
    opts.url = p->url;
    flow_allow_log(f, "lost the connection");
    f->l = flow_open(f, &opts);
    for (; number_of(f, "q") == 0 && n < 3000; n++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, HOUR, NULL), 0);
        flow_spin(f, 20);
    }

    cr_assert_eq(flow_schedule(f, "q", NULL, HOUR, NULL), 0);
    proxy_cut_after(p, PROXY_DOWN, 1);
    flow_close(f, f->l, 5000);
    cr_assert_eq(proxy_cut_left(p, PROXY_DOWN), -1);
    f->l = flow_open(f, NULL);
    cr_assert_eq(ask_all(&a)->scheduled, n + 1);
    proxy_stop(p);
    flow_end(f, "q");
}

/* There is no replica, so the request waits. */
static void patient(struct lapse_options *opts)
{
    opts->replicas_ms = 60000;
}

static void schedule_to_replicas(struct flow *f, struct flow_answer *a)
{
    struct lapse_spec s = flow_job_spec("q", "a", HOUR);

    *a = (struct flow_answer){.f = f};
    s.replicas = 1;
    cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, a), 0);
    flow_poll(f, flow_count(f, "q", "due") == 1);
    flow_until(f, flow_stats(f->l).scheduled == 1);
}

Test(history, is_sent_though_a_request_still_waits_when_the_grace_is_over)
{
    place_not_with_masters("each has a replica");

    struct flow *f = flow_start_opts(FLOW_FULL, NULL, patient);
    struct flow_answer alone;
    static struct asked a;

    a.f = f;
    schedule_to_replicas(f, &alone);
    flow_close(f, f->l, 1);
    cr_assert(alone.calls == 1 && alone.err == LAPSE_EALONE, "%s", lapse_strerror(alone.err));
    f->l = flow_open(f, NULL);
    cr_assert_eq(ask_all(&a)->scheduled, 1);
    flow_end(f, "q");
}

/* Redis does not answer: it is waited for no longer than for jobs that go back. */
Test(history, that_redis_does_not_take_when_the_grace_is_over_keeps_no_handle_open)
{
    place_not_with_masters("each has a replica");

    struct flow *f = flow_start_opts(FLOW_FULL, NULL, patient);
    struct flow_answer alone;

    schedule_to_replicas(f, &alone);
    server_signal(f->server, SIGSTOP);
    flow_close(f, f->l, 1);
    cr_assert(alone.calls == 1 && alone.err == LAPSE_EALONE, "%s", lapse_strerror(alone.err));
    server_signal(f->server, SIGCONT);
    f->l = flow_open(f, NULL);
    flow_end(f, "q");
}

Test(history, by_a_user_who_may_not_count_is_none_and_all_else_goes_on)
{
    place_not_with_masters("one of the masters alone has the user");

    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_options opts = flow_options(f);
    struct flow_handler w = {.way = FLOW_DONE};
    static struct asked a;
    char url[160];

    a.f = f;
    flow_allow_log(f, "count");
    redis_do(f->server, "ACL SETUSER me on >secret ~lapse:{q}:[^p]* ~lapse:{}:* &* +@all");
    snprintf(url, sizeof url, "unix://me:secret@%s", f->server->socket);
    opts.url = url;
    struct lapse *direct = f->l;
    struct lapse *denied = f->l = flow_open(f, &opts);
    flow_listen(f, "q", &w);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    }
    flow_until(f, w.settled == 3);
    cr_assert_eq(w.errors, 0);
    flow_close(f, denied, 5000);
    cr_assert_eq(flow_logged(f, "count"), 1);
    f->l = direct;
    cr_assert_eq(ask_all(&a)->scheduled, 0);
    flow_end(f, "q");
}

static size_t n_listeners(struct flow *f)
{
    struct flow_answer a = {.f = f};

    cr_assert_eq(lapse_listeners(f->l, "q", flow_listeners_answered, &a), 0);
    cr_assert_eq(flow_wait(f, &a), 0, "%s", lapse_strerror(a.err));
    return a.n;
}

/* It sends what it has counted each 10 s, and it is alive for 15 s more. */
Test(history, of_a_listener_that_is_killed_lacks_what_it_counted_last_and_then_it_is_gone)
{
    enum { SENT = 20, LOST = 15 };
    struct flow *f = flow_start(FLOW_FULL);
    struct runs *runs = runs_new(SENT + LOST);
    static struct asked a;

    a.f = f;
    struct lapse_options opts = flow_options(f);
    struct listener *dies = listener_start(runs, "q", &opts, LISTENER_SETTLES);
    for (int i = 0; i < SENT; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    }
    flow_until(f, ask_all(&a)->done == SENT);

    for (int i = 0; i < LOST; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    }
    flow_poll(f, redis_left(f->server, f->space, "q") == 0);
    listener_signal(dies, SIGKILL);
    cr_assert_eq(n_listeners(f), 1);
    flow_until(f, n_listeners(f) == 0);

    close_and_open(f);
    const struct lapse_past *p = ask_all(&a);
    cr_assert_eq(p->scheduled, SENT + LOST);
    cr_assert(p->claimed == SENT && p->done == SENT && p->run.n == SENT);
    listener_free(dies);
    runs_free(runs);
    flow_end(f, "q");
}

/* ---- bad input ---- */
Test(history, of_no_such_steps_is_einval)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse *l = f->l;
#define REFUSED(...) cr_assert_eq(lapse_history(__VA_ARGS__, never, f), LAPSE_EINVAL, #__VA_ARGS__)
    REFUSED(NULL, "q", 0, 0, 0);
    REFUSED(l, NULL, 0, 0, 0);
    REFUSED(l, "{q}", 0, 0, 0);
    REFUSED(l, "q", 0, 1, 0);
    REFUSED(l, "q", MINUTE, 0, 0);
    REFUSED(l, "q", 0, 0, MINUTE);
    REFUSED(l, "q", MINUTE, MINUTE, MINUTE);
    REFUSED(l, "q", -1, MINUTE, MINUTE);
    REFUSED(l, "q", 0, MINUTE, MINUTE - 1);
    REFUSED(l, "q", 0, MINUTE, -MINUTE);
    REFUSED(l, "q", 0, (int64_t)MINUTE * LAPSE_STEPS_MAX + 1, MINUTE);
    REFUSED(l, "q", 0, INT64_MAX, INT64_C(60000000000000000));
#undef REFUSED
    flow_end(f);
}
