/* SPDX-License-Identifier: MIT */
/* How much may wait for Redis. */
#include "handler.h"
#include "loop.h"

enum { HOUR = 3600000, MIB = 1 << 20 };

static void three_pending(struct lapse_options *opts)
{
    opts->max_pending = 3;
}

static void one_pending(struct lapse_options *opts)
{
    opts->max_pending = 1;
}

static void two_mib(struct lapse_options *opts)
{
    opts->max_bytes = 2 * MIB;
}

static void impatient(struct lapse_options *opts)
{
    opts->reply_ms = 1200; /* beyond the longest wait between two attempts to connect */
    opts->max_pending = 50;
}

Test(limits, one_request_more_than_max_pending_is_efull_until_one_is_answered)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, three_pending);
    struct lapse_spec s = flow_job_spec("q", NULL, HOUR);

    for (int round = 0; round < 3; round++) {
        struct flow_answer a = {.f = f};
        struct flow_answer b = {.f = f};
        struct flow_answer c = {.f = f};
        struct flow_answer never = {.f = f};
        cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &a), 0);
        cr_assert_eq(lapse_depth(f->l, "q", flow_depth_answered, &b), 0);
        cr_assert_eq(lapse_list(f->l, "q", LAPSE_WAITING, NULL, 1, flow_list_answered, &c), 0);
        cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &never), LAPSE_EFULL);
        cr_assert_eq(lapse_cancel(f->l, "q", "a", 0, flow_answered, &never), LAPSE_EFULL);
        cr_assert_eq(lapse_reschedule(f->l, "q", "a", lapse_in(1), 0, flow_answered, &never),
                     LAPSE_EFULL);
        cr_assert_eq(lapse_get(f->l, "q", "a", flow_answered, &never), LAPSE_EFULL);
        cr_assert_eq(lapse_depth(f->l, "q", flow_depth_answered, &never), LAPSE_EFULL);
        cr_assert_eq(lapse_list(f->l, "q", LAPSE_WAITING, NULL, 1, flow_list_answered, &never),
                     LAPSE_EFULL);
        cr_assert_eq(flow_wait(f, &a) + flow_wait(f, &b) + flow_wait(f, &c), 0);
        cr_assert_eq(never.calls, 0);
        cr_assert_eq(flow_count(f, "q", "due"), round + 1);
    }

    flow_end(f, "q");
}

static void ask_again(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    struct flow_answer *a = arg;

    (void)job;
    cr_assert_eq(err, LAPSE_ENOENT);
    cr_assert_eq(lapse_get(l, "q", "a", flow_answered, a), 0,
                 "the place of the answered one is free");
    cr_assert_eq(lapse_get(l, "q", "a", flow_answered, a), LAPSE_EFULL);
}

Test(limits, the_place_of_a_request_is_free_in_its_callback)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, one_pending);
    struct flow_answer a = {.f = f};
    cr_assert_eq(lapse_get(f->l, "q", "a", ask_again, &a), 0);
    cr_assert_eq(flow_wait(f, &a), LAPSE_ENOENT);
    flow_end(f, "q");
}

Test(limits, bodies_over_max_bytes_are_efull_until_some_are_stored)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, two_mib);
    char *body = calloc(1, MIB);
    struct lapse_spec s = flow_job_spec("q", NULL, HOUR);

    s.body = body;

    for (int round = 0; round < 2; round++) {
        struct flow_answer a = {.f = f};
        struct flow_answer b = {.f = f};
        struct flow_answer c = {.f = f};
        struct flow_answer never = {.f = f};
        s.body_len = MIB;
        cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &a), 0);
        s.body_len = MIB - 10;
        cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &b), 0);
        s.body_len = 11;
        cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &never), LAPSE_EFULL);
        s.body_len = 10;
        cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &c), 0);
        s.body_len = 1;
        cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &never), LAPSE_EFULL);
        s.body_len = 0;
        cr_assert_eq(lapse_schedule(f->l, &s, NULL, NULL), 0, "without a body there is room");
        cr_assert_eq(flow_wait(f, &a) + flow_wait(f, &b) + flow_wait(f, &c), 0);
        cr_assert_eq(never.calls, 0);
    }

    free(body);
    flow_end(f, "q");
}

Test(limits, requests_made_before_the_connection_is_up_wait_for_it)
{
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct flow_answer a[20];

    f->l = flow_open(f, NULL);
    for (int i = 0; i < 20; i++) { /* not one turn of the loop in between */
        struct lapse_spec s = flow_job_spec("q", NULL, HOUR);
        a[i] = (struct flow_answer){.f = f};
        cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &a[i]), 0);
    }

    for (int i = 0; i < 20; i++) {
        cr_assert_eq(flow_wait(f, &a[i]), 0);
    }

    flow_end(f, "q");
}

static struct flow *without_redis(void)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, impatient);

    cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_ENOENT);
    flow_allow_log(f, "lost the connection to Redis at ");
    flow_allow_log(f, "cannot connect to Redis at ");
    server_kill9(f->server);
    /* before that, a request may be ELOST */
    flow_until(f, flow_logged(f, "lost the connection to Redis at ") == 1);
    return f;
}

Test(limits, without_redis_a_request_is_edown_after_reply_ms_and_did_not_happen)
{
    place_not_in_cluster("a master that starts refuses all for 2 s");

    struct flow *f = without_redis();

    cr_assert_eq(flow_schedule(f, "q", "a", HOUR, NULL), LAPSE_EDOWN);
    cr_assert_eq(lapse_outcome_unknown(LAPSE_EDOWN), 0);
    server_restart(f->server);
    cr_assert_eq(flow_schedule(f, "q", "b", HOUR, NULL), 0);
    cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_ENOENT);
    flow_end(f, "q");
}

Test(limits, without_redis_requests_wait_up_to_max_pending_and_each_is_answered)
{
    place_not_in_cluster("a master that starts refuses all for 2 s");

    struct flow *f = without_redis();
    struct flow_answer a[50];
    struct flow_answer never = {.f = f};

    for (int i = 0; i < 50; i++) {
        a[i] = (struct flow_answer){.f = f};
        cr_assert_eq(lapse_get(f->l, "q", "a", flow_answered, &a[i]), 0);
    }

    cr_assert_eq(lapse_get(f->l, "q", "a", flow_answered, &never), LAPSE_EFULL);
    for (int i = 0; i < 50; i++) {
        cr_assert_eq(flow_wait(f, &a[i]), LAPSE_EDOWN);
    }

    server_restart(f->server);
    /* no handle has connected yet */
    cr_assert_eq(lapse_get(f->l, "q", "a", flow_answered, &never), 0);
    cr_assert_eq(flow_wait(f, &never), LAPSE_ENOENT, "it came back in time");
    flow_end(f, "q");
}

Test(limits, a_handle_may_be_opened_before_there_is_a_redis)
{
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow_answer a = {.f = f};
    struct lapse_spec s = flow_job_spec("q", "a", 0);

    flow_allow_log(f, "cannot connect to Redis at ");
    server_kill9(f->server);
    f->l = flow_open(f, NULL);
    flow_listen(f, "q", &w);
    cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &a), 0);
    flow_until(f, flow_logged(f, "Connection refused") > 0);
    server_restart(f->server);
    flow_until(f, w.settled == 1);
    cr_assert(a.calls == 1 && !a.err && !w.errors);
    flow_end(f, "q");
}

static long rss_kib(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    cr_assert(f && fscanf(f, "%*d %ld", &pages) == 1);
    fclose(f);
    return pages * sysconf(_SC_PAGESIZE) / 1024;
}

static void sixteen_running(struct lapse_options *opts)
{
    opts->max_running = 16;
}

/* The kit's handler copies bodies. */
static void keep_job(struct lapse *l, struct lapse_job *job, void *arg)
{
    struct flow_handler *w = arg;

    if (!l || w->way == FLOW_DONE) {
        lapse_done(job, flow_on_settled, w);
    } else {
        w->held[w->n_held++] = job;
    }
}

#ifdef __SANITIZE_ADDRESS__
enum { MORE_KIB = 128 * 1024 }; /* it keeps what was freed */
#else
enum { MORE_KIB = 24 * 1024 };
#endif

/* What hiredis reads and the reply that it makes of it come on top: a script gives at most a bit
 * over 256 KiB. */
Test(limits, sixteen_bodies_of_1_mib_in_hand_take_their_16_mib_and_little_more)
{
    enum { JOBS = 40, HELD = 16 };
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, sixteen_running);
    struct flow_handler w = {.way = FLOW_KEEP};
    char *body = calloc(1, MIB);
    char id[8];
    struct lapse_spec s = flow_job_spec("q", id, 0);

    s.body = body;
    s.body_len = MIB;
    for (int i = 0; i < JOBS; i++) {
        snprintf(id, sizeof id, "%d", i);
        cr_assert_eq(flow_spec(f, &s, NULL), 0);
    }

    long before = rss_kib();
    w.f = f;
    cr_assert_eq(lapse_listen(f->l, "q", NULL, keep_job, &w), 0);
    flow_until(f, w.n_held == HELD);
    loop_for(f->loop, 100);
    cr_assert_eq(w.n_held, HELD);

    long more = rss_kib() - before;
    cr_assert(more > HELD * 1024 && more < MORE_KIB, "%ld KiB", more);
    w.way = FLOW_DONE;
    flow_settle(&w, FLOW_DONE);
    flow_until(f, w.settled == JOBS);
    free(body);
    flow_end(f, "q");
}

static void much(struct lapse_options *opts)
{
    opts->max_bytes = 64 * MIB;
}

static void ask_all(struct flow *f, struct flow_answer *a, int n, size_t body_len)
{
    struct lapse_spec s = flow_job_spec("q", NULL, HOUR);

    s.body = calloc(1, s.body_len = body_len);
    for (int i = 0; i < n; i++) {
        a[i] = (struct flow_answer){.f = f};
        cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &a[i]), 0);
    }
    free((void *)s.body);
}

/* hiredis moves what waits for the socket at each write, and copies it: all at once that was twice
 * max_bytes. */
Test(limits, bodies_on_their_way_take_their_bytes_once)
{
    enum { N = 60 };
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, much);
    static struct flow_answer a[N];

    cr_assert_eq(flow_get(f, "q", "nothing", NULL), LAPSE_ENOENT);
    server_signal(f->server, SIGSTOP);

    long before = rss_kib();
    ask_all(f, a, N, MIB);
    loop_for(f->loop, 100);

    long more = rss_kib() - before;
    cr_assert(more > N * 1024 && more < N * 1024 + 24 * 1024, "%ld KiB", more);
    server_signal(f->server, SIGCONT);
    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_wait(f, &a[i]), 0);
    }

    flow_end(f, "q");
}
