/* SPDX-License-Identifier: MIT */
/* redis+sentinel://: the master is found, and gone to when it is another. Most tests have a stub
 * for the Sentinel, which says what the test decides; the last ones have true ones. */
#include "sentinels.h"
#include "allocations.h"
#include "ask.h"
#include "audit.h"
#include "handler.h"
#include "listening.h"
#include "scripted_server.h"
#include <hiredis/hiredis.h>
#include <signal.h>

enum { HOUR = 3600000, QUIET_MS = 600, ANSWERS_MAX = 60 };

/* ---- a master, another server, and a stub ---- */
static const char *const args[] = {"--repl-diskless-sync-delay", "0", NULL};

struct stage {
    struct flow *f; /* its server is the first master */
    struct server *other;
    struct scripted_server *stub;
    char url[200];
    struct lapse_options opts;
};

/* The answer to GET-MASTER-ADDR-BY-NAME. */
static const char *place_of(const struct server *s)
{
    static char text[80];
    char port[8];
    int len = snprintf(port, sizeof port, "%d", s->port);

    snprintf(text, sizeof text, "*2\r\n$9\r\n127.0.0.1\r\n$%d\r\n%s\r\n", len, port);
    return text;
}

static void stub_names(struct scripted_server *stub, const struct server *master)
{
    scripted_server_answer_to(stub, "SENTINEL GET-MASTER-ADDR-BY-NAME", place_of(master));
}

/* The configuration that its answer comes from. */
static void stub_has_epoch(struct scripted_server *stub, int epoch)
{
    char text[120];

    snprintf(text, sizeof text,
             "*4\r\n$5\r\nflags\r\n$6\r\nmaster\r\n$12\r\nconfig-epoch\r\n$1\r\n%d\r\n", epoch);
    scripted_server_answer_to(stub, "SENTINEL MASTER", text);
}

/* No handle is open. */
static void stage_start(struct stage *s)
{
    *s = (struct stage){.f = flow_start_tcp(FLOW_FULL, args, NULL)};
    flow_close(s->f, s->f->l, 0);
    s->stub = scripted_server_start_tcp("+OK\r\n", 5);
    stub_names(s->stub, s->f->server);
    snprintf(s->url, sizeof s->url, "redis+sentinel://%s127.0.0.1:%d/m", server_login(),
             s->stub->port);
    s->opts = flow_options(s->f);
    s->opts.url = s->url;
}

/* The other server is a master without data: nobody follows. */
static void stage_add(struct stage *s)
{
    s->other = server_start_tcp(args);
    flow_allow_log(s->f, "the master is now Redis at ");
}

static struct lapse *stage_open(struct stage *s)
{
    return s->f->l = flow_open(s->f, &s->opts);
}

static void stage_end(struct stage *s)
{
    while (s->f->n_open) {
        flow_close(s->f, s->f->handles[s->f->n_open - 1], 0);
    }
    if (s->other) {
        cr_assert_eq(audit(s->other, "lapse", "q", NULL), 0);
        server_stop(s->other);
    }
    if (s->stub) {
        scripted_server_stop(s->stub);
    }
    flow_end(s->f, "q");
}

static void until_it_has_all(struct server *replica, struct server *master)
{
    int64_t end_ms = test_now_ms() + 20000;

    redis_do(replica, "REPLICAOF 127.0.0.1 %d", master->port);
    do {
        cr_assert_lt(test_now_ms(), end_ms, "the replica does not follow");
        redis_do(master, "SET other x");
        redis_do(master, "DEL other");
    } while (redis_int(master, "WAIT 1 100") != 1);
}

/* Clients of lapse there, without the connection of the test. */
static unsigned n_clients(struct server *s)
{
    unsigned n = 0;
    char *normal = redis_str(s, "CLIENT LIST TYPE normal");
    char *pubsub = redis_str(s, "CLIENT LIST TYPE pubsub");

    for (const char *at = normal; (at = strchr(at, '\n')); at++) {
        n++;
    }
    for (const char *at = pubsub; (at = strchr(at, '\n')); at++) {
        n++;
    }
    free(normal);
    free(pubsub);
    return n - 1;
}

/* ---- its URL ---- */
Test(sentinel, a_url_that_is_refused_is_einval_and_the_log_says_which_rule_it_breaks)
{
    static const struct {
        const char *url, *rule;
    } rows[] = {
        {"redis+sentinel://a,,b/m", "the URL is refused: a host is missing"},
        {"redis+sentinel://u:s3cret,@h/m", "the URL is refused: a comma in a user"},
        {"redis+sentinel://h", "the URL is refused: behind the hosts comes the name of the master"},
        {"redis+sentinel://h/m?password=s3cret", "the URL is refused: behind the ? are db"},
    };
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct lapse_options opts = flow_options(f);

    flow_allow_log(f, "the URL is refused: ");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct lapse *l = NULL;

        opts.url = rows[i].url;
        cr_assert_eq(lapse_open(&l, f->loop, &opts), LAPSE_EINVAL, "%s", opts.url);
        cr_assert_eq(lapse_options_set(&opts, "url", rows[i].url), LAPSE_EINVAL);
        cr_assert_eq(flow_logged(f, rows[i].rule), 1, "%s", rows[i].rule);
    }
    cr_assert_eq(flow_logged(f, "s3cret"), 0);
    flow_end(f);
}

Test(sentinel, without_memory_a_handle_is_not_opened)
{
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct lapse_options opts = flow_options(f);
    long n = 0;
    int err;

    opts.url = "redis+sentinel://u:p@127.0.0.1:1,127.0.0.1:2/m?sentinel_password=q";
    flow_allow_log(f, "cannot ask the Sentinel at ");
    do {
        struct lapse *l = NULL;

        alloc_fail(++n);
        err = lapse_open(&l, f->loop, &opts);
        alloc_fail(0);
        cr_assert(err == 0 || err == LAPSE_ENOMEM, "allocation %ld: %s", n, lapse_strerror(err));
        lapse_abandon(l);
    } while (err);
    cr_assert_gt(n, 4, "texts, the handle, the Sentinels, the scripts");
    flow_end(f);
}

/* ---- the master is found ---- */
Test(sentinel, jobs_are_scheduled_and_run_at_the_master_that_it_names)
{
    struct stage s;
    struct flow_handler w = {.way = FLOW_DONE};

    stage_start(&s);
    stage_open(&s);
    cr_assert_eq(flow_schedule(s.f, "q", "a", 20, NULL), 0);
    w.f = s.f;
    flow_listen(s.f, "q", &w);
    flow_until(s.f, w.settled == 1);
    cr_assert_eq(flow_stats(s.f->l).failovers, 0);
    stage_end(&s);
}

Test(sentinel, it_is_asked_once_a_second_while_all_is_well)
{
    struct stage s;

    stage_start(&s);
    stub_has_epoch(s.stub, 1);
    stage_open(&s);
    cr_assert_eq(flow_get(s.f, "q", "a", NULL), LAPSE_ENOENT);
    long before = scripted_server_answered(s.stub);
    cr_assert_leq(before, 4, "a handshake, and three questions");
    flow_poll(s.f, scripted_server_answered(s.stub) >= before + 4);
    cr_assert_eq(scripted_server_answered(s.stub), before + 4, "two more each second");
    stage_end(&s);
}

Test(sentinel, those_that_cannot_be_reached_are_passed_over)
{
    struct stage s;

    stage_start(&s);
    flow_allow_log(s.f, "cannot ask the Sentinel at 127.0.0.1:");
    snprintf(s.url, sizeof s.url, "redis+sentinel://%s127.0.0.1:%d,[::1]:1,127.0.0.1:%d/m",
             server_login(), server_free_port(), s.stub->port);
    stage_open(&s);
    cr_assert_eq(flow_get(s.f, "q", "a", NULL), LAPSE_ENOENT);
    cr_assert_eq(flow_logged(s.f, "cannot ask the Sentinel at "), 1, "one line for all of them");
    cr_assert_eq(flow_logged(s.f, "the Sentinel at 127.0.0.1:"), 2);
    stage_end(&s);
}

Test(sentinel, those_that_one_names_are_asked_when_it_is_gone)
{
    struct stage s;
    char others[200];
    char port[8];

    stage_start(&s);
    stage_add(&s);
    flow_allow_log(s.f, "cannot ask the Sentinel at 127.0.0.1:");
    struct scripted_server *second = scripted_server_start_tcp("+OK\r\n", 5);
    int len = snprintf(port, sizeof port, "%d", second->port);
    snprintf(
        others, sizeof others,
        "*2\r\n*0\r\n*6\r\n$4\r\nname\r\n$1\r\nx\r\n$2\r\nip\r\n$9\r\n127.0.0.1\r\n$4\r\nport\r\n"
        "$%d\r\n%s\r\n",
        len, port);
    stub_names(second, s.other);
    scripted_server_answer_to(s.stub, "SENTINEL SENTINELS", others);

    stage_open(&s);
    cr_assert_eq(flow_schedule(s.f, "q", "a", HOUR, NULL), 0);
    scripted_server_stop(s.stub);
    s.stub = NULL;
    flow_until(s.f, flow_stats(s.f->l).failovers == 1);
    cr_assert_eq(flow_get(s.f, "q", "a", NULL), LAPSE_ENOENT, "the other one is asked");
    stage_end(&s);
    scripted_server_stop(second);
}

Test(sentinel, when_none_answers_the_master_that_is_known_stays)
{
    struct stage s;
    struct flow_handler w = {.way = FLOW_DONE};

    stage_start(&s);
    flow_allow_log(s.f, "cannot ask the Sentinel at 127.0.0.1:");
    flow_allow_log(s.f, "; going on with the master that is known");
    stage_open(&s);
    w.f = s.f;
    flow_listen(s.f, "q", &w);
    cr_assert_eq(flow_schedule(s.f, "q", "a", 0, NULL), 0);
    flow_until(s.f, w.settled == 1);
    scripted_server_stop(s.stub);
    s.stub = NULL;
    flow_until(s.f, flow_logged(s.f, "no Sentinel answers") == 1);
    cr_assert_eq(flow_schedule(s.f, "q", "b", 0, NULL), 0);
    flow_until(s.f, w.settled == 2);
    flow_spin(s.f, QUIET_MS);
    cr_assert_eq(flow_logged(s.f, "no Sentinel answers"), 1, "once");
    cr_assert_eq(flow_stats(s.f->l).reconnects, 0);
    stage_end(&s);
}

/* ---- another master ---- */
/* Those for commands, for events, for WAIT and for ends of jobs. No connection of the first master
 * is cut by anybody else, and it answers on. */
Test(sentinel, another_master_is_gone_to_at_once_with_all_connections)
{
    struct stage s;
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow_answer waiting;
    struct lapse_spec spec = flow_job_spec("q", "copied", HOUR);

    stage_start(&s);
    stage_add(&s);
    flow_allow_log(s.f, "no replica has confirmed it");
    flow_allow_log(s.f, "replicas have it");
    struct server *first = s.f->server;
    s.opts.replicas_ms = 100;
    stage_open(&s);
    w.f = s.f;
    flow_listen(s.f, "q", &w);
    waiting = (struct flow_answer){.f = s.f};
    cr_assert_eq(flow_schedule(s.f, "q", "later", HOUR, NULL), 0);
    cr_assert_eq(lapse_wait(s.f->l, "q", "later", HOUR, flow_answered, &waiting), 0);
    spec.replicas = 1;
    cr_assert_eq(flow_spec(s.f, &spec, NULL), LAPSE_EALONE);
    /* the notices of the queue, the ends of its jobs, and that of no queue */
    flow_poll(s.f, redis_int(first, "EVAL %s 0", "return #redis.call('PUBSUB','CHANNELS')") == 3);
    cr_assert_eq(n_clients(first), 4);

    stub_names(s.stub, s.other);
    flow_until(s.f, flow_stats(s.f->l).failovers == 1);
    flow_until(s.f, waiting.calls == 1);
    cr_assert_eq(waiting.err, LAPSE_ENOENT, "the new one has no such job");
    flow_poll(s.f, n_clients(first) == 0);
    cr_assert_eq(flow_schedule(s.f, "q", "b", 0, NULL), 0);
    flow_until(s.f, w.settled == 1);
    flow_poll(s.f, redis_int(s.other, "PUBSUB NUMPAT") == 1);
    cr_assert_eq(flow_stats(s.f->l).failovers, 1);
    stage_end(&s);
}

/* What a reconnect does is done: the lease of a job that the replica has is renewed there. */
Test(sentinel, what_a_reconnect_does_is_done_at_the_new_master)
{
    struct stage s;
    struct flow_handler w = {.way = FLOW_KEEP};

    stage_start(&s);
    stage_add(&s);
    until_it_has_all(s.other, s.f->server);
    s.opts.lease_ms = 60000;
    stage_open(&s);
    w.f = s.f;
    flow_hold(s.f, &w, "a");
    cr_assert_eq(redis_int(s.f->server, "WAIT 0 0") >= 0, true);
    flow_poll(s.f, flow_score(s.f, "q", "run", "a") ==
                       redis_int(s.other, "EVAL %s 0",
                                 "return redis.call('ZSCORE','lapse:{q}:run','a') or '0'"));

    redis_do(s.other, "REPLICAOF NO ONE");
    long long until_ms = redis_int(s.other, "ZSCORE lapse:{q}:run a");
    stub_names(s.stub, s.other);
    flow_until(s.f, flow_stats(s.f->l).failovers == 1);
    flow_poll(s.f, redis_int(s.other, "ZSCORE lapse:{q}:run a") > until_ms);
    flow_settle(&w, FLOW_DONE);
    cr_assert_eq(w.errors, 0);
    stage_end(&s);
}

/* What was set is no clock: a step of Redis's clock would be logged as such. */
Test(sentinel, the_clock_of_the_new_master_is_learnt_from_its_answers)
{
    struct stage s;

    stage_start(&s);
    stage_add(&s);
    stage_open(&s);
    cr_assert_eq(flow_get(s.f, "q", "a", NULL), LAPSE_ENOENT);
    stub_names(s.stub, s.other);
    flow_until(s.f, flow_stats(s.f->l).failovers == 1);
    cr_assert_eq(flow_schedule(s.f, "q", "a", HOUR, NULL), 0);
    cr_assert_eq(flow_logged(s.f, "clock"), 0);
    stage_end(&s);
}

Test(sentinel, a_request_that_a_replica_refuses_waits_for_the_master)
{
    struct stage s;

    stage_start(&s);
    stage_add(&s);
    flow_allow_log(s.f, "should be the master, as Sentinel says, and its role is replica");
    flow_allow_log(s.f, "READONLY");
    stage_open(&s);
    cr_assert_eq(flow_get(s.f, "q", "a", NULL), LAPSE_ENOENT);

    redis_do(s.f->server, "REPLICAOF 127.0.0.1 %d", s.other->port); /* its clients stay */
    struct flow_answer a = {.f = s.f};
    struct lapse_spec spec = flow_job_spec("q", "a", HOUR);
    cr_assert_eq(lapse_schedule(s.f->l, &spec, flow_answered, &a), 0);
    flow_until(s.f, flow_logged(s.f, "its role is replica") > 0);
    cr_assert_eq(a.calls, 0);
    stub_names(s.stub, s.other);
    cr_assert_eq(flow_wait(s.f, &a), 0);
    cr_assert_eq(redis_int(s.other, "HEXISTS lapse:{q}:jobs a"), 1);
    stage_end(&s);
}

Test(sentinel, a_server_that_is_no_master_is_not_used)
{
    struct stage s;

    stage_start(&s);
    stage_add(&s);
    flow_allow_log(s.f, "should be the master, as Sentinel says, and its role is replica");
    until_it_has_all(s.other, s.f->server);
    stub_names(s.stub, s.other);
    s.opts.reply_ms = 300;
    stage_open(&s);
    cr_assert_eq(flow_get(s.f, "q", "a", NULL), LAPSE_EDOWN);
    flow_spin(s.f, QUIET_MS);
    cr_assert_lt(scripted_server_answered(s.stub), ANSWERS_MAX, "no busy loop");
    redis_do(s.other, "REPLICAOF NO ONE");
    flow_until(s.f, flow_get(s.f, "q", "a", NULL) == LAPSE_ENOENT);
    cr_assert_eq(flow_stats(s.f->l).failovers, 0);
    stage_end(&s);
}

/* One that was cut off knows the old master, of an earlier epoch. */
Test(sentinel, of_an_older_epoch_it_is_not_believed_while_the_master_is_there)
{
    struct stage s;

    stage_start(&s);
    stage_add(&s);
    flow_allow_log(s.f, "it has not heard of the last failover");
    stub_has_epoch(s.stub, 7);
    stage_open(&s);
    cr_assert_eq(flow_schedule(s.f, "q", "a", HOUR, NULL), 0);

    stub_has_epoch(s.stub, 6);
    stub_names(s.stub, s.other);
    flow_until(s.f, flow_logged(s.f, "it has not heard of the last failover") == 1);
    flow_spin(s.f, QUIET_MS);
    cr_assert_eq(flow_stats(s.f->l).failovers, 0);
    cr_assert_lt(scripted_server_answered(s.stub), ANSWERS_MAX, "no busy loop");
    cr_assert_eq(flow_get(s.f, "q", "a", NULL), 0);

    stub_has_epoch(s.stub, 8);
    flow_until(s.f, flow_stats(s.f->l).failovers == 1);
    stage_end(&s);
}

/* Its configuration may have been removed, and written again. */
Test(sentinel, of_an_older_epoch_it_is_believed_when_the_master_is_gone)
{
    struct stage s;

    stage_start(&s);
    stage_add(&s);
    flow_allow_log(s.f, "connect");
    stub_has_epoch(s.stub, 7);
    stage_open(&s);
    cr_assert_eq(flow_schedule(s.f, "q", "a", HOUR, NULL), 0);
    server_kill9(s.f->server);
    flow_until(s.f, flow_logged(s.f, "cannot connect to Redis at ") > 0);
    stub_has_epoch(s.stub, 0);
    stub_names(s.stub, s.other);
    flow_until(s.f, flow_stats(s.f->l).failovers == 1);
    cr_assert_eq(flow_get(s.f, "q", "a", NULL), LAPSE_ENOENT);
    stage_end(&s);
}

/* ---- what is wrong has one line, and keeps nobody busy ---- */
/* One line says this, and calls end with EDOWN. */
static void is_refused(struct stage *s, const char *why)
{
    flow_allow_log(s->f, why);
    s->opts.reply_ms = 300;
    stage_open(s);
    cr_assert_eq(flow_get(s->f, "q", "a", NULL), LAPSE_EDOWN);
    flow_spin(s->f, 1500);
    cr_assert_eq(flow_logged(s->f, why), 1, "%s", why);
    stage_end(s);
}

Test(sentinel, a_name_that_it_does_not_know_has_one_line)
{
    struct stage s;

    stage_start(&s);
    scripted_server_answer_to(s.stub, "SENTINEL GET-MASTER-ADDR-BY-NAME", "*-1\r\n");
    is_refused(&s, "where the master is: it knows no master of the name m; asking the next one");
}

static void on_health(struct lapse *l, const struct lapse_health *h, void *arg)
{
    bool *by_sentinel = arg;

    (void)l;
    if (h->kind == LAPSE_HEALTH_AUTH_FAILED) {
        *by_sentinel = h->by_sentinel;
    }
}

/* It let us in, and does not let us ask. */
Test(sentinel, that_denies_the_question_makes_requests_end_with_edenied)
{
    struct stage s;
    bool by_sentinel = false;

    stage_start(&s);
    flow_allow_log(s.f, "cannot ask the Sentinel at ");
    s.opts.reply_ms = 2000;
    scripted_server_answer_to(s.stub, "SENTINEL GET-MASTER-ADDR-BY-NAME",
                              "-NOPERM User s has no permissions\r\n");
    stage_open(&s);
    lapse_on_health(s.f->l, on_health, &by_sentinel);
    cr_assert_eq(flow_get(s.f, "q", "a", NULL), LAPSE_EDENIED);
    cr_assert(by_sentinel);
    scripted_server_answer_to(s.stub, "SENTINEL GET-MASTER-ADDR-BY-NAME", "*-1\r\n");
    cr_assert_eq(flow_get(s.f, "q", "a", NULL), LAPSE_EDOWN);
    stage_end(&s);
}

Test(sentinel, that_is_a_redis_has_one_line)
{
    struct stage s;

    stage_start(&s);
    snprintf(s.url, sizeof s.url, "redis+sentinel://%s127.0.0.1:%d/m", server_login(),
             s.f->server->port);
    is_refused(&s, "(it is no Sentinel: give redis:// for a single Redis)");
}

/* host and port of another shape, each as an answer to all that is asked */
static const char *const shapes[] = {
    "+OK\r\n",
    ":1\r\n",
    "$-1\r\n",
    "*-1\r\n",
    "*0\r\n",
    "*1\r\n$1\r\nh\r\n",
    "*3\r\n$1\r\nh\r\n$1\r\n1\r\n$1\r\n2\r\n",
    "*2\r\n$9\r\n127.0.0.1\r\n$1\r\n0\r\n",
    "*2\r\n$9\r\n127.0.0.1\r\n$5\r\n65536\r\n",
    "*2\r\n$9\r\n127.0.0.1\r\n$2\r\n-1\r\n",
    "*2\r\n$9\r\n127.0.0.1\r\n$0\r\n\r\n",
    "*2\r\n$9\r\n127.0.0.1\r\n:6379\r\n",
    "*2\r\n$9\r\n127.0.0.1\r\n$1\r\nx\r\n",
    "*2\r\n$0\r\n\r\n$1\r\n1\r\n",
    "*2\r\n$3\r\na\nb\r\n$1\r\n1\r\n",
    "*2\r\n$3\r\na\033b\r\n$1\r\n1\r\n",
    "*2\r\n$3\r\na@b\r\n$1\r\n1\r\n",
    "*2\r\n*0\r\n*0\r\n",
    "*2\r\n:1\r\n:1\r\n",
    "*2\r\n$-1\r\n$-1\r\n",
    "-ERR no\r\n",
    "hello\r\n",
    "*10000000\r\n",
    "",
};

/* The first answers so to everything, the second as it should. */
static void stage_with_hostile(const char *answer, int delay_ms)
{
    struct stage s;
    struct scripted_server *hostile = scripted_server_start_tcp(answer, strlen(answer));

    stage_start(&s);
    flow_allow_log(s.f, "cannot ask the Sentinel at 127.0.0.1:");
    scripted_server_delay(hostile, delay_ms);
    snprintf(s.url, sizeof s.url, "redis+sentinel://%s127.0.0.1:%d,127.0.0.1:%d/m", server_login(),
             hostile->port, s.stub->port);
    s.opts.reply_ms = 60000;
    stage_open(&s);
    cr_assert_eq(flow_get(s.f, "q", "a", NULL), LAPSE_ENOENT, "%s", answer);
    cr_assert_lt(scripted_server_answered(hostile), ANSWERS_MAX);
    stage_end(&s);
    scripted_server_stop(hostile);
}

Test(sentinel, an_answer_of_another_shape_is_passed_over)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        stage_with_hostile(shapes[i], 0);
    }
}

Test(sentinel, a_host_of_300_bytes_is_passed_over)
{
    char answer[400];
    char host[301];

    memset(host, 'h', 300);
    host[300] = '\0';
    snprintf(answer, sizeof answer, "*2\r\n$300\r\n%s\r\n$1\r\n1\r\n", host);
    stage_with_hostile(answer, 0);
}

Test(sentinel, that_takes_too_long_is_passed_over)
{
    stage_with_hostile("+OK\r\n", 3000);
}

/* Alone, it is asked again and again, but not faster. */
Test(sentinel, that_answers_nonsense_keeps_nobody_busy)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i += 3) {
        struct stage s;
        struct scripted_server *hostile = scripted_server_start_tcp(shapes[i], strlen(shapes[i]));

        stage_start(&s);
        flow_allow_log(s.f, "cannot ask the Sentinel at 127.0.0.1:");
        snprintf(s.url, sizeof s.url, "redis+sentinel://%s127.0.0.1:%d/m", server_login(),
                 hostile->port);
        s.opts.reply_ms = 200;
        stage_open(&s);
        cr_assert_eq(flow_get(s.f, "q", "a", NULL), LAPSE_EDOWN);
        flow_spin(s.f, QUIET_MS);
        cr_assert_lt(scripted_server_answered(hostile), ANSWERS_MAX, "%s", shapes[i]);
        stage_end(&s);
        scripted_server_stop(hostile);
    }
}

/* What it says of other Sentinels is not trusted either. */
Test(sentinel, others_that_are_none_are_passed_over)
{
    static const char *const others[] = {
        "*-1\r\n",
        ":1\r\n",
        "*1\r\n:1\r\n",
        "*1\r\n*2\r\n$2\r\nip\r\n$1\r\nh\r\n",
        "*1\r\n*3\r\n$2\r\nip\r\n$1\r\nh\r\n$4\r\nport\r\n",
        "*1\r\n*4\r\n$2\r\nip\r\n$1\r\n/\r\n$4\r\nport\r\n$1\r\n1\r\n",
        "*1\r\n*4\r\n$2\r\nip\r\n$1\r\nh\r\n$4\r\nport\r\n$1\r\n0\r\n",
    };

    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct stage s;

        stage_start(&s);
        flow_allow_log(s.f, "the Sentinel at 127.0.0.1:");
        scripted_server_answer_to(s.stub, "SENTINEL SENTINELS", others[i]);
        scripted_server_answer_to(s.stub, "SENTINEL MASTER", others[i]);
        stage_open(&s);
        cr_assert_eq(flow_get(s.f, "q", "a", NULL), LAPSE_ENOENT, "%s", others[i]);
        stage_end(&s);
    }
}

/* ---- true Sentinels ---- */
static struct flow *flow_on(struct sentinels *s, struct lapse_options *opts)
{
    struct flow *f = flow_bare(FLOW_FULL, NULL);

    *opts = flow_options(f);
    opts->url = s->url;
    return f;
}

Test(sentinel, after_a_failover_by_hand_a_listener_goes_on_with_the_new_master, .timeout = 120)
{
    struct sentinels *s = sentinels_start(3, 3, NULL, 30000);
    struct lapse_options opts;
    struct flow *f = flow_on(s, &opts);
    struct flow_handler w = {.f = f, .way = FLOW_DONE};
    struct lapse_spec spec = flow_job_spec("q", "durable", 0);
    int old_port = s->redis[0]->port;

    flow_allow_log(f, "the master is now Redis at ");
    flow_allow_log(f, "connection");
    flow_allow_log(f, "cannot connect");
    flow_allow_log(f, "as Sentinel says");
    opts.replicas_ms = 20000;
    f->l = flow_open(f, &opts);
    flow_listen(f, "q", &w);
    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
    flow_until(f, w.settled == 1);

    sentinels_fail_over(s);
    flow_until(f, flow_stats(f->l).failovers == 1);
    cr_assert_neq(sentinels_master_port(s), old_port);
    spec.replicas = 1;
    cr_assert_eq(flow_spec(f, &spec, NULL), 0);
    flow_until(f, w.settled == 2);
    cr_assert_eq(audit(sentinels_master(s), "lapse", "q", NULL), 0);
    flow_end(f);
    sentinels_stop(s);
}

static long long n_connected(struct server *s)
{
    char *info = redis_str(s, "INFO stats");
    const char *at = strstr(info, "total_connections_received:");
    long long n = at ? strtoll(at + strlen("total_connections_received:"), NULL, 10) : -1;

    free(info);
    return n;
}

/* Its connection is made again, as another Sentinel may know more: it was not silent. */
Test(sentinel, that_goes_on_naming_a_master_which_is_gone_is_not_said_to_be_silent, .timeout = 120)
{
    struct sentinels *s = sentinels_start(1, 1, NULL, 600000);
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct lapse_options opts = flow_options(f);

    flow_allow_log(f, "onnect");
    opts.url = s->url;
    f->l = flow_open(f, &opts);
    cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_ENOENT);
    long long n = n_connected(s->sentinel[0]);
    server_kill9(s->redis[0]);
    flow_poll(f, n_connected(s->sentinel[0]) > n);
    cr_assert_eq(flow_logged(f, "no Sentinel answers"), 0);
    server_restart(s->redis[0]);
    cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_ENOENT);
    redis_do(s->redis[0], "PING"); /* its connection was open before, too */
    flow_end(f);
    sentinels_stop(s);
}

Test(sentinel, that_wants_a_password_gets_its_own, .timeout = 120)
{
    struct sentinels *s = sentinels_start(1, 1, "s3cret", 30000);
    struct lapse_options opts;
    struct flow *f = flow_on(s, &opts);
    char url[260];

    snprintf(url, sizeof url, "%s?sentinel_password=%%73%%33cret", s->url);
    opts.url = url;
    f->l = flow_open(f, &opts);
    cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_ENOENT);
    flow_close(f, f->l, 0);

    flow_allow_log(f, "cannot ask the Sentinel at ");
    opts.url = s->url;
    opts.reply_ms = 2000;
    f->l = flow_open(f, &opts);
    cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_EAUTH);
    cr_assert_eq(flow_logged(f, "NOAUTH"), 1);
    flow_close(f, f->l, 0);

    snprintf(url, sizeof url, "%s?sentinel_user=default&sentinel_password=wr0ng", s->url);
    opts.url = url;
    f->l = flow_open(f, &opts);
    cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_EAUTH);
    cr_assert_eq(flow_logged(f, "WRONGPASS"), 1);
    cr_assert_eq(flow_logged(f, "wr0ng") + flow_logged(f, "s3cret"), 0);
    flow_end(f);
    sentinels_stop(s);
}

Test(sentinel, that_is_given_as_a_redis_says_what_to_give, .timeout = 120)
{
    struct sentinels *s = sentinels_start(1, 1, NULL, 30000);
    struct lapse_options opts;
    struct flow *f = flow_on(s, &opts);
    static const char *const logins[] = {"", "u:p@", ""};
    static const char *const databases[] = {"", "", "/3"};
    char url[100];
    char said[100];

    flow_allow_log(f, "is a Sentinel: give redis+sentinel://");
    flow_allow_log(f, "no answer from Redis"); /* at first, on a busy machine */
    snprintf(said, sizeof said, "is a Sentinel: give redis+sentinel://127.0.0.1:%d/MASTER",
             s->sentinel[0]->port);
    opts.url = url;
    opts.reply_ms = 300;
    for (size_t i = 0; i < sizeof logins / sizeof *logins; i++) {
        snprintf(url, sizeof url, "redis://%s127.0.0.1:%d%s", logins[i], s->sentinel[0]->port,
                 databases[i]);
        f->l = flow_open(f, &opts);
        cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_EDOWN);
        flow_until(f, flow_logged(f, said) > i);
        cr_assert_eq(flow_logged(f, said), i + 1, "%s", url);
        flow_close(f, f->l, 0);
    }
    flow_end(f);
    sentinels_stop(s);
}
