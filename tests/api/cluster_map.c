/* SPDX-License-Identifier: MIT */
/* What nodes of a cluster say of where keys are: of any shape, and untrue. One server that is none
 * stands for a cluster; stubs say what the test wants. */
#include "allocations.h"
#include "ask.h"
#include "flow.h"
#include "handler.h"
#include "listening.h"
#include "scripted_server.h"

enum {
    REPLY_MS = 5000,
    SILENT_MS = 500, /* where there is no answer */
    ASKED_MS = 2000, /* where one is asked for all the while: a stub may stand still for a second */
    QUIET_MS = 600,
    ANSWERS_MAX = 60
};

struct stage {
    struct flow *f; /* its server has all slots */
    struct scripted_server *stub;
    char url[200];
    struct lapse_options opts;
};

/* CLUSTER SLOTS: one row of these slots, on this port. */
static const char *row_of(int first, int last, int port)
{
    static char text[120];

    snprintf(text, sizeof text, "*1\r\n*3\r\n:%d\r\n:%d\r\n*2\r\n$9\r\n127.0.0.1\r\n:%d\r\n", first,
             last, port);
    return text;
}

static void stage_start(struct stage *s)
{
    *s = (struct stage){.f = flow_start_tcp(FLOW_FULL, NULL, NULL)};
    flow_close(s->f, s->f->l, 0);
    /* what users.md asks for in a cluster */
    redis_do(s->f->server, "ACL SETUSER lapse_listener +cluster|slots");
    redis_do(s->f->server, "ACL SETUSER lapse_producer +cluster|slots");
    s->stub = scripted_server_start_tcp("+OK\r\n", 5);
    scripted_server_answer_to(s->stub, "CLUSTER SLOTS", row_of(0, 16383, s->f->server->port));
    snprintf(s->url, sizeof s->url, "redis+cluster://%s127.0.0.1:%d", server_login(),
             s->stub->port);
    s->opts = flow_options(s->f);
    s->opts.url = s->url;
    s->opts.reply_ms = REPLY_MS;
    flow_allow_log(s->f, "map of its cluster");
    flow_allow_log(s->f, "cannot connect");
    flow_allow_log(s->f, "lost the connection");
}

static void stage_open(struct stage *s)
{
    s->f->l = flow_open(s->f, &s->opts);
}

static void stage_end(struct stage *s)
{
    while (s->f->n_open) {
        flow_close(s->f, s->f->handles[s->f->n_open - 1], 0);
    }
    scripted_server_stop(s->stub);
    flow_end(s->f, "q");
}

/* ---- maps ---- */
static const char *const shapes[] = {
    "+OK\r\n",
    "$-1\r\n",
    ":1\r\n",
    "*-1\r\n",
    "*0\r\n",
    "*1\r\n:1\r\n",
    "*1\r\n*0\r\n",
    "*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n$1\r\nh\r\n:1\r\n",
    "*1\r\n*3\r\n:-1\r\n:16383\r\n*2\r\n$1\r\nh\r\n:1\r\n",
    "*1\r\n*3\r\n:5\r\n:4\r\n*2\r\n$1\r\nh\r\n:1\r\n",
    "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$1\r\nh\r\n:0\r\n",
    "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$1\r\nh\r\n:65536\r\n",
    "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$1\r\n?\r\n:1\r\n",
    "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$1\r\n \r\n:1\r\n",
    "*2\r\n*3\r\n:0\r\n:9\r\n*2\r\n$1\r\nh\r\n:1\r\n*3\r\n:9\r\n:16383\r\n*2\r\n$1\r\nh\r\n:2\r\n",
    "-LOADING it is\r\n",
    "-ERR unknown command\r\n",
    "!\r\n",
    "\r\n\r\n",
};

Test(cluster_map, of_another_shape_is_passed_over)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct stage s;
        struct scripted_server *hostile = scripted_server_start_tcp("+OK\r\n", 5);

        stage_start(&s);
        scripted_server_answer_to(hostile, "CLUSTER SLOTS", shapes[i]);
        snprintf(s.url, sizeof s.url, "redis+cluster://%s127.0.0.1:%d,127.0.0.1:%d", server_login(),
                 hostile->port, s.stub->port);
        stage_open(&s);
        cr_assert_eq(flow_get(s.f, "q", "a", NULL), LAPSE_ENOENT, "%s", shapes[i]);
        cr_assert_lt(scripted_server_answered(hostile), ANSWERS_MAX);
        stage_end(&s);
        scripted_server_stop(hostile);
    }
}

Test(cluster_map, that_is_none_keeps_nobody_busy)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i += 3) {
        struct stage s;

        stage_start(&s);
        scripted_server_answer_to(s.stub, "CLUSTER SLOTS", shapes[i]);
        s.opts.reply_ms = SILENT_MS;
        stage_open(&s);
        cr_assert_eq(flow_get(s.f, "q", "a", NULL), LAPSE_EDOWN, "%s", shapes[i]);
        flow_spin(s.f, QUIET_MS);
        cr_assert_lt(scripted_server_answered(s.stub), ANSWERS_MAX, "%s", shapes[i]);
        stage_end(&s);
    }
}

Test(cluster_map, of_some_slots_leaves_the_others_waiting)
{
    struct stage s;

    stage_start(&s); /* q is in slot 11958 */
    scripted_server_answer_to(s.stub, "CLUSTER SLOTS", row_of(0, 9, s.f->server->port));
    s.opts.reply_ms = SILENT_MS;
    stage_open(&s);
    cr_assert_eq(flow_get(s.f, "q", "a", NULL), LAPSE_EDOWN);
    stage_end(&s);
}

Test(cluster_map, without_a_host_is_of_the_one_that_was_asked)
{
    struct stage s;
    char text[100];

    stage_start(&s);
    snprintf(text, sizeof text, "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$-1\r\n:%d\r\n",
             s.f->server->port);
    scripted_server_answer_to(s.stub, "CLUSTER SLOTS", text);
    stage_open(&s);
    cr_assert_eq(flow_get(s.f, "q", "a", NULL), LAPSE_ENOENT);
    stage_end(&s);
}

/* ---- redirections ---- */
/* The stub has all slots, and answers a question so. */
static void stage_with_answer(struct stage *s, const char *answer)
{
    stage_start(s);
    scripted_server_answer_to(s->stub, "CLUSTER SLOTS", row_of(0, 16383, s->stub->port));
    scripted_server_answer_to(s->stub, "EVAL_RO", answer);
    scripted_server_answer_to(s->stub, "EVALSHA_RO", answer);
}

/* The server is connected to before: else the map, which still says otherwise, might come before
 * that connection, and the request be moved once more. */
Test(cluster_map, that_a_node_corrects_is_believed_at_once)
{
    struct stage s;
    char map[200];
    char answer[64];

    stage_start(&s); /* b is in slot 3300, q in 11958 */
    snprintf(map, sizeof map,
             "*2\r\n*3\r\n:0\r\n:9999\r\n*2\r\n$9\r\n127.0.0.1\r\n:%d\r\n"
             "*3\r\n:10000\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:%d\r\n",
             s.f->server->port, s.stub->port);
    snprintf(answer, sizeof answer, "-MOVED 11958 127.0.0.1:%d\r\n", s.f->server->port);
    scripted_server_answer_to(s.stub, "CLUSTER SLOTS", map);
    scripted_server_answer_to(s.stub, "EVAL_RO", answer);
    scripted_server_answer_to(s.stub, "EVALSHA_RO", answer);
    stage_open(&s);
    cr_assert_eq(flow_get(s.f, "b", "a", NULL), LAPSE_ENOENT);
    cr_assert_eq(flow_get(s.f, "q", "a", NULL), LAPSE_ENOENT);
    cr_assert_eq(flow_stats(s.f->l).moved, 1);
    stage_end(&s);
}

/* Five times at once, then with pauses of 8 to 500 ms. */
Test(cluster_map, that_leads_nowhere_is_followed_without_a_busy_loop)
{
    static const char *const answers[] = {
        "-MOVED 99999 127.0.0.1:1\r\n",
        "-MOVED 11958\r\n",
        "-MOVED 11958 x\r\n",
        "-MOVED x y\r\n",
        "-TRYAGAIN\r\n",
        "-ASK 11958 127.0.0.1:1\r\n",
        "-CLUSTERDOWN it is\r\n",
        "-LOADING\r\n",
        "-MASTERDOWN\r\n",
        "-READONLY\r\n",
    };

    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        struct stage s;

        stage_with_answer(&s, answers[i]);
        s.opts.reply_ms = ASKED_MS;
        stage_open(&s);
        int err = flow_get(s.f, "q", "a", NULL);
        cr_assert_eq(err, LAPSE_EDOWN, "%s: %s", answers[i], lapse_strerror(err));
        cr_assert_lt(scripted_server_answered(s.stub), ANSWERS_MAX, "%s", answers[i]);
        stage_end(&s);
    }
}

Test(cluster_map, in_which_two_nodes_name_each_other_ends_in_time)
{
    struct stage s;
    struct scripted_server *other = scripted_server_start_tcp("+OK\r\n", 5);
    char answer[64];

    snprintf(answer, sizeof answer, "-MOVED 11958 127.0.0.1:%d\r\n", other->port);
    stage_with_answer(&s, answer);
    snprintf(answer, sizeof answer, "-MOVED 11958 127.0.0.1:%d\r\n", s.stub->port);
    scripted_server_answer_to(other, "EVAL_RO", answer);
    scripted_server_answer_to(other, "EVALSHA_RO", answer);
    scripted_server_answer_to(other, "CLUSTER SLOTS", row_of(0, 16383, other->port));
    s.opts.reply_ms = SILENT_MS;
    stage_open(&s);
    cr_assert_eq(flow_get(s.f, "q", "a", NULL), LAPSE_EDOWN);
    cr_assert_lt(scripted_server_answered(s.stub), ANSWERS_MAX);
    cr_assert_lt(scripted_server_answered(other), ANSWERS_MAX);
    stage_end(&s);
    scripted_server_stop(other);
}

/* Nobody is there. The map says where it is. */
Test(cluster_map, is_asked_again_where_a_redirection_leads_to_nobody)
{
    struct stage s;

    stage_with_answer(&s, "-MOVED 11958 127.0.0.1:1\r\n");
    stage_open(&s);
    struct flow_answer a = {.f = s.f};
    cr_assert_eq(lapse_get(s.f->l, "q", "a", flow_answered, &a), 0);
    flow_until(s.f, flow_stats(s.f->l).moved >= 1);
    scripted_server_answer_to(s.stub, "CLUSTER SLOTS", row_of(0, 16383, s.f->server->port));
    cr_assert_eq(flow_wait(s.f, &a), LAPSE_ENOENT, "%s", lapse_strerror(a.err));
    stage_end(&s);
}

/* ---- nodes ---- */
/* After twelve times sweep_ms, as an empty queue is looked at. */
Test(cluster_map, a_node_that_is_not_used_is_closed_and_found_again)
{
    struct stage s;

    stage_start(&s);
    s.opts.sweep_ms = 20;
    flow_poll(s.f, redis_clients(s.f->server) == 1); /* the test itself */
    stage_open(&s);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(flow_get(s.f, "q", "a", NULL), LAPSE_ENOENT);
        cr_assert_eq(redis_clients(s.f->server), 2);
        flow_poll(s.f, redis_clients(s.f->server) == 1);
    }
    stage_end(&s);
}

/* A new handle listens, schedules a job, and runs it. Memory may be missing for one call. */
static void run_one(struct stage *s, struct flow_handler *w)
{
    struct flow_answer a = {.f = s->f};
    struct lapse_spec spec = flow_job_spec("q", NULL, 0);
    unsigned want = w->settled + 1;

    int err = lapse_listen(s->f->l, "q", NULL, flow_on_job, w);
    if (err == LAPSE_ENOMEM) {
        err = lapse_listen(s->f->l, "q", NULL, flow_on_job, w);
    }
    cr_assert_eq(err, 0, "%s", lapse_strerror(err));

    err = lapse_schedule(s->f->l, &spec, flow_answered, &a);
    if (err == LAPSE_ENOMEM) {
        err = lapse_schedule(s->f->l, &spec, flow_answered, &a);
    }
    cr_assert_eq(err, 0, "%s", lapse_strerror(err));
    cr_assert_eq(flow_wait(s->f, &a), 0);
    flow_until(s->f, w->settled == want);
}

Test(cluster_map, memory_that_is_missing_once_keeps_no_job_from_running_once)
{
    enum { AT_LEAST = 10 };
    struct stage s;
    struct flow_handler w = {.way = FLOW_DONE};
    bool failed = true;
    long n = 0;

    stage_start(&s);
    w.f = s.f;
    flow_allow_log(s.f, "out of memory");
    flow_allow_log(s.f, "the first commands could not be sent");
    while (failed) {
        stage_open(&s);
        alloc_fail(++n);
        run_one(&s, &w);
        failed = alloc_has_failed();
        alloc_fail(0);
        flow_close(s.f, s.f->l, 5000);
    }
    cr_assert_gt(n, AT_LEAST);
    cr_assert_eq(w.errors, 0, "%s", lapse_strerror(w.err));
    flow_each_once(&w, (size_t)n);
    stage_end(&s);
}
