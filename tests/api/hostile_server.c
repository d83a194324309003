/* SPDX-License-Identifier: MIT */
/* A server that is no Redis, or dies while we write: its texts are escaped in the log, and the
 * process lives. */
#include "scripted_server.h"
#include "calls.h"
#include "handler.h"
#include "loop.h"
#include <signal.h>

enum { HOUR = 3600000 };

/* Its first connection is served, and no other while that lasts: hiredis 0.14 asserts that what
 * comes on a subscription is an array. */
static struct scripted_server *fake_start(const void *reply, size_t len)
{
    struct scripted_server *fake = scripted_server_start(reply, len);

    scripted_server_conns(fake, 1);
    return fake;
}

static struct lapse *open_patiently(struct flow *f, const struct scripted_server *fake,
                                    int64_t reply_ms)
{
    struct lapse_options opts = flow_options(f);
    opts.url = fake->url;
    opts.reply_ms = reply_ms;
    return f->l = flow_open(f, &opts);
}

static struct lapse *open_fake(struct flow *f, const struct scripted_server *fake)
{
    return open_patiently(f, fake, 150);
}

Test(hostile_server, what_it_says_is_one_printable_line_in_the_log)
{
    static const char nasty[] = "-WRONGPASS \x1b[2J%s%n%999d\t\x07\xff\xc3\xa9\\ end\r\n";
    struct flow *f = flow_bare(FLOW_FULL, NULL); /* its log hook checks each byte */
    struct scripted_server *fake = fake_start(nasty, sizeof nasty - 1);

    flow_allow_log(f, "Redis"); /* it may take longer to answer than it is given */
    open_fake(f, fake);
    flow_until(f, flow_get(f, "q", "a", NULL) == LAPSE_EAUTH);
    cr_assert_gt(flow_logged(f, "WRONGPASS"), 0);
    cr_assert_eq(flow_logged(f, "[2J%s%n%999d"), flow_logged(f, "WRONGPASS"));
    cr_assert_eq(flow_logged(f, "x1b[2J"), flow_logged(f, "WRONGPASS"));
    scripted_server_stop(fake);
    flow_end(f);
}

Test(hostile_server, a_very_long_error_is_cut)
{
    char *reply = malloc(100003);

    memset(reply, 'x', 100000);
    memcpy(reply, "-ERR ", 5);
    memcpy(reply + 100000, "\r\n", 3);

    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct scripted_server *fake = fake_start(reply, 100002);
    flow_allow_log(f, "Redis"); /* it may take longer to answer than it is given */
    open_fake(f, fake);
    flow_until(f, flow_logged(f, "does not let us in: ERR xxx") > 0);
    cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_EDOWN);
    scripted_server_stop(fake);
    free(reply);
    flow_end(f);
}

/* What HELLO answers; a server of no known version is not named. */
Test(hostile_server, that_is_too_old_is_named_when_it_connects)
{
    static const struct {
        const char *reply, *said;
    } rows[] = {
        {"*4\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n6.2.14\r\n",
         " is version 6.2.14"},
        {"*2\r\n$7\r\nversion\r\n$7\r\n5.\xff\r\n.1\r\n", " is version 5.\\xff\\x0d\\x0a.1"},
        {"*2\r\n$7\r\nversion\r\n$5\r\n7.0.0\r\n", NULL},
        {"*2\r\n$7\r\nversion\r\n$6\r\n10.0.0\r\n", NULL},
        {"*2\r\n$7\r\nversion\r\n$1\r\n6\r\n", NULL},
        {"*2\r\n$7\r\nversion\r\n$0\r\n\r\n", NULL},
        {"*2\r\n$7\r\nversion\r\n:6\r\n", NULL},
        {"*1\r\n$7\r\nversion\r\n", NULL},
        {"*2\r\n:1\r\n*0\r\n", NULL},
        {"-ERR unknown command 'HELLO'\r\n", NULL},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct flow *f = flow_bare(FLOW_FULL, NULL);
        struct scripted_server *fake = fake_start(rows[i].reply, strlen(rows[i].reply));
        flow_allow_log(f, "Redis");
        open_fake(f, fake);
        flow_poll(f, scripted_server_answered(fake) > 0);
        flow_get(f, "q", "a", NULL);
        flow_until(f, !rows[i].said || flow_logged(f, rows[i].said) > 0);
        cr_assert_eq(flow_logged(f, "Redis 7.0 or later is needed: the one at "),
                     rows[i].said != NULL, "row %zu", i);
        cr_assert(!rows[i].said || flow_logged(f, rows[i].said) == 1);
        flow_close(f, f->l, 0);
        scripted_server_stop(fake);
        flow_end(f);
    }
}

static const char *const shapes[] = {
    "+OK\r\n",
    ":1\r\n",
    "$-1\r\n",
    "*-1\r\n",
    "*0\r\n",
    "*1\r\n:1\r\n",
    "*2\r\n:1\r\n*0\r\n",
    "*2\r\n$1\r\nx\r\n:1\r\n",
    "*2\r\n:1\r\n$6\r\nENOSUX\r\n",
    "*2\r\n:-9223372036854775808\r\n*5\r\n$1\r\na\r\n:9\r\n:1\r\n$0\r\n\r\n$0\r\n\r\n",
    "*2\r\n:1\r\n*5\r\n$1\r\nb\r\n:1\r\n:1\r\n$0\r\n\r\n$0\r\n\r\n",
    "*2\r\n:1\r\n*4\r\n$1\r\na\r\n:1\r\n:1\r\n$0\r\n\r\n",
    "*3\r\n:1\r\n*1\r\n*1\r\n*1\r\n:1\r\n:1\r\n",
    "hello\r\n",
    /* hiredis 0.14.1 sets as much aside, and looks at each when it frees them */
    "*10000000\r\n",
    "$-5\r\n",
    "",
};

/* Each request ends once, with an error, and nothing is read that is not there. */
static void answers_with(const char *reply)
{
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct scripted_server *fake = fake_start(reply, strlen(reply));
    struct flow_answer a[7];
    struct flow_handler w = {.way = FLOW_DONE};
    struct lapse_spec s = flow_job_spec("q", "a", HOUR);
    struct lapse_adoption adoption = {
        .size = sizeof adoption, .group = "g", .consumer = "c", .n = 10};

    flow_allow_log(f, "Redis");
    flow_allow_log(f, "queue q");
    open_fake(f, fake);
    flow_listen(f, "q", &w);

    for (int k = 0; k < 7; k++) {
        a[k] = (struct flow_answer){.f = f};
    }
    cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &a[0]), 0);
    cr_assert_eq(lapse_cancel(f->l, "q", "a", 0, flow_answered, &a[1]), 0);
    cr_assert_eq(lapse_reschedule(f->l, "q", "a", s.due, 0, flow_answered, &a[2]), 0);
    cr_assert_eq(lapse_get(f->l, "q", "a", flow_answered, &a[3]), 0);
    cr_assert_eq(lapse_list(f->l, "q", LAPSE_WAITING, NULL, 5, flow_list_answered, &a[4]), 0);
    cr_assert_eq(lapse_depth(f->l, "q", flow_depth_answered, &a[5]), 0);
    cr_assert_eq(lapse_adopt(f->l, "q", &adoption, flow_list_answered, &a[6]), 0);

    for (int k = 0; k < 4; k++) {
        cr_assert_neq(flow_wait(f, &a[k]), 0, "reply %s, call %d", reply, k);
    }
    flow_wait(f, &a[4]); /* of these some are well formed */
    flow_wait(f, &a[5]);
    cr_assert_neq(flow_wait(f, &a[6]), 0, "reply %s", reply);
    cr_assert_eq(w.n_runs, 0);

    flow_close(f, f->l, 0);
    scripted_server_stop(fake);
    flow_end(f);
}

Test(hostile_server, an_answer_of_another_shape_is_an_error)
{
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        answers_with(shapes[i]);
    }
}

/* In place of what a script answers: no time; too short; rows that are no rows. */
static const char *const nothings[] = {
    "+x\r\n",
    "*2\r\n:1790000000000000\r\n*1\r\n+x\r\n",
    "*2\r\n:1790000000000000\r\n*8\r\n+x\r\n+x\r\n+x\r\n+x\r\n+x\r\n+x\r\n+x\r\n+x\r\n",
    "*4\r\n:1790000000000000\r\n+x\r\n*1\r\n+y\r\n*1\r\n+z\r\n",
};

/* NULL: Redis answers them. */
static void answer_scripts(struct scripted_server *s, const char *answer)
{
    static const char *const commands[] = {"EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO"};

    for (size_t k = 0; k < sizeof commands / sizeof *commands; k++) {
        scripted_server_answer_to(s, commands[k], answer);
    }
}

Test(hostile_server, that_answers_scripts_with_nonsense_ends_each_call_and_shows_no_job)
{
    for (size_t i = 0; i < sizeof nothings / sizeof *nothings; i++) {
        struct flow *f = flow_bare(FLOW_FULL, NULL);
        struct scripted_server *fake = scripted_server_before(f->server);

        flow_allow_log(f, "Redis");
        answer_scripts(fake, nothings[i]);
        open_fake(f, fake);

        for (size_t k = 0; k < n_api_calls; k++) {
            struct flow_answer a = {.f = f};
            cr_assert_eq(api_calls[k].make(f->l, &a), 0, "%s", api_calls[k].name);
            int err = flow_wait(f, &a);
            /* an empty list may look like this */
            cr_assert(err != 0 || (a.n == 0 && !a.has_job), "%s, row %zu", api_calls[k].name, i);
            cr_assert_eq(a.calls, 1);
        }

        flow_close(f, f->l, 0);
        scripted_server_stop(fake);
        flow_end(f);
    }
}

/* A row that is none, or a number that is no number, of a script that this call asks for. */
static const struct {
    const char *script, *call, *answer;
} odd_rows[] = {
    {"names", "queues", "*2\r\n:1\r\n:5\r\n"},
    {"alive", "listeners", "*3\r\n:1\r\n:5\r\n:5\r\n"},
    {"listeners", "listeners", "*4\r\n:1\r\n:5\r\n:1\r\n:1\r\n"},
    {"listeners", "listeners", "*4\r\n:1\r\n+me\r\n+x\r\n:1\r\n"},
    {"listeners", "listeners", "*4\r\n:1\r\n+me\r\n:1\r\n+x\r\n"},
    {"tell", "quiet", "*2\r\n:1\r\n:5\r\n"},
    {"history", "history", "*3\r\n:1\r\n+x\r\n+\r\n"},
    {"history", "history", "*6\r\n:1\r\n:1\r\n+\r\n+x\r\n:60000\r\n+\r\n"},
    {"history", "history", "*6\r\n:1\r\n:1\r\n+\r\n:60000\r\n+x\r\n+\r\n"},
    {"history", "history", "*6\r\n:1\r\n:1\r\n+\r\n:60000\r\n:60000\r\n:1\r\n"},
    {"history", "history", "*6\r\n:1\r\n:1\r\n+\r\n:60000\r\n:60000\r\n+no count\r\n"},
    {"list", "list", "*4\r\n:1\r\n:0\r\n+\r\n*1\r\n+x\r\n"},
    {"configure", "configure", "*2\r\n:1\r\n:5\r\n"},
    {"remove", "remove", "*5\r\n:1\r\n:0\r\n:0\r\n:0\r\n+x\r\n"},
    {"cancel_all", "cancel_all", "*2\r\n:1\r\n+x\r\n"},
    {"reschedule_all", "reschedule_all", "*2\r\n:1\r\n+x\r\n"},
    {"depth", "depth", "*2\r\n:1\r\n+x\r\n"},
    {"get", "get", "*2\r\n:1\r\n*1\r\n+x\r\n"},
};

static int call_of(struct flow *f, const char *name)
{
    struct flow_answer a = {.f = f};
    size_t k = 0;

    while (k < n_api_calls && strcmp(api_calls[k].name, name) != 0) {
        k++;
    }
    cr_assert_lt(k, n_api_calls, "%s", name);
    cr_assert_eq(api_calls[k].make(f->l, &a), 0);
    return flow_wait(f, &a);
}

/* A script that Redis knows is asked for by its hash. NULL: Redis answers it. */
static void answer_script(struct flow *f, struct scripted_server *s, const char *name,
                          const char *answer)
{
    static const char *const commands[] = {"EVALSHA", "EVALSHA_RO"};
    char path[300];
    char command[64];
    size_t len;

    snprintf(path, sizeof path, "%s/lua/%s.lua", test_build(), name);
    char *text = test_read_file(path, &len);
    char *sha = redis_str(f->server, "SCRIPT LOAD %b", text, len);
    for (size_t k = 0; k < sizeof commands / sizeof *commands; k++) {
        snprintf(command, sizeof command, "%s %s", commands[k], sha);
        scripted_server_answer_to(s, command, answer);
    }
    free(text);
    free(sha);
}

Test(hostile_server, whose_script_answers_with_an_odd_row_fails_that_call_alone)
{
    place_not_with_masters("the odd rows come from one of the masters");

    struct flow *f = flow_start(FLOW_FULL);
    struct scripted_server *fake = scripted_server_before(f->server);
    struct lapse_options opts = flow_options(f);

    flow_allow_log(f, "Redis");
    opts.url = fake->url;
    f->l = flow_open(f, &opts);
    for (size_t k = 0; k < n_api_calls; k++) {
        call_of(f, api_calls[k].name);
    }

    for (size_t i = 0; i < sizeof odd_rows / sizeof *odd_rows; i++) {
        int before = call_of(f, odd_rows[i].call);

        answer_script(f, fake, odd_rows[i].script, odd_rows[i].answer);
        int err = call_of(f, odd_rows[i].call);
        cr_assert(err == LAPSE_EBROKEN || err == LAPSE_EDATA, "%s, row %zu: %s", odd_rows[i].script,
                  i, lapse_strerror(err));

        answer_script(f, fake, odd_rows[i].script, NULL);
        cr_assert_eq(call_of(f, odd_rows[i].call), before, "%s", odd_rows[i].call);
    }

    flow_close(f, f->l, 0);
    scripted_server_stop(fake);
    flow_end(f, "q");
}

/* Unlike those of a list, its jobs may come with an error. */
static void on_adopted(struct lapse *l, int err, const struct lapse_job *const *jobs, size_t n,
                       void *arg)
{
    struct flow_answer *a = arg;

    (void)l;
    (void)jobs;
    a->calls++;
    a->err = err;
    a->n = n;
}

/* Its entries are no entries, or it never gets on. */
Test(hostile_server, that_adopts_what_cannot_be_ends_the_call)
{
    static const char *const replies[] = {
        "*5\r\n:1\r\n:1\r\n$1\r\n-\r\n:0\r\n*2\r\n:1\r\n:1\r\n",
        "*5\r\n:1\r\n:1\r\n$1\r\n-\r\n:0\r\n*1\r\n$3\r\n1-1\r\n",
        "*5\r\n:1\r\n:1\r\n$1\r\n-\r\n:0\r\n*2\r\n$43\r\n"
        "1000000000000000000000000000000000000000000\r\n:1\r\n",
        "*4\r\n:1\r\n:1\r\n$43\r\n1000000000000000000000000000000000000000000\r\n:0\r\n",
        "*6\r\n:1\r\n:1\r\n$1\r\n-\r\n:0\r\n*2\r\n$3\r\n1-1\r\n:1\r\n"
        "*2\r\n$3\r\n1-1\r\n:1\r\n",
        "*4\r\n:1\r\n:1\r\n$1\r\n-\r\n:0\r\n",
    };
    enum { N = sizeof replies / sizeof *replies };

    for (int i = 0; i < N; i++) {
        struct flow *f = flow_bare(FLOW_FULL, NULL);
        struct scripted_server *fake = fake_start(replies[i], strlen(replies[i]));
        struct flow_answer a = {0};
        struct lapse_adoption adoption = {
            .size = sizeof adoption, .group = "g", .consumer = "c", .n = 1};

        open_fake(f, fake);
        cr_assert_eq(lapse_adopt(f->l, "q", &adoption, on_adopted, &a), 0);
        flow_until(f, a.calls == 1);
        cr_assert_eq(a.err, i < N - 1 ? LAPSE_EBROKEN : 0, "reply %d: %s", i,
                     lapse_strerror(a.err));
        flow_close(f, f->l, 0);
        scripted_server_stop(fake);
        flow_end(f);
    }
}

/* "The next one is due at": a moment that is over, ever again. */
Test(hostile_server, that_names_a_past_moment_as_the_next_due_keeps_no_listener_busy)
{
    static const char *const nexts[] = {"-9007199254740992", "-1", "1", "1790000000000"};

    for (size_t i = 0; i < sizeof nexts / sizeof *nexts; i++) {
        char reply[200];
        int len =
            snprintf(reply, sizeof reply,
                     "*7\r\n:1790000000000000\r\n:0\r\n:%s\r\n:0\r\n:0\r\n:0\r\n:0\r\n", nexts[i]);
        struct flow *f = flow_bare(FLOW_NO_EVENTS, NULL);
        struct scripted_server *fake = fake_start(reply, (size_t)len);
        struct flow_handler w = {.way = FLOW_DONE};
        flow_allow_log(f, "clock");
        open_patiently(f, fake, 10000); /* it always answers, if late */
        flow_listen(f, "q", &w);
        flow_poll(f, scripted_server_answered(fake) > 3);
        loop_for(f->loop, 300);
        cr_assert_lt(scripted_server_answered(fake), 60, "next %s: %ld requests", nexts[i],
                     scripted_server_answered(fake));
        flow_close(f, f->l, 0);
        scripted_server_stop(fake);
        flow_end(f);
    }
}

/* Anybody may write a score. One that no clock will ever reach must not keep us from the others,
 * nor busy. */
Test(hostile_server, a_forged_due_time_beyond_all_clocks_does_no_harm)
{
    static const char *const scores[] = {
        "9007199254740993", "1e17", "9223372036854775807", "1e19", "1e300", "inf"};

    for (size_t i = 0; i < sizeof scores / sizeof *scores; i++) {
        struct flow *f = flow_start(FLOW_FULL);
        struct flow_handler w = {.way = FLOW_DONE};
        struct flow_job jobs[2];
        struct lapse_depth d;
        cr_assert_eq(flow_schedule(f, "q", "far", HOUR, NULL), 0);
        redis_do(f->server, "ZADD lapse:{q}:due %s far", scores[i]);
        flow_listen(f, "q", &w);
        cr_assert_eq(flow_schedule(f, "q", "now", 0, NULL), 0);
        flow_until(f, w.settled == 1);
        long long before = flow_scripts(f);
        loop_for(f->loop, 300);
        long long n = flow_scripts(f) - before;
        cr_assert_lt(n, 30, "%s: %lld calls", scores[i], n);
        cr_assert_eq(flow_schedule(f, "q", "soon", 20, NULL), 0);
        flow_until(f, w.settled == 2);
        cr_assert_eq(flow_depth(f, "q", &d), 0);
        cr_assert(d.waiting == 1 && d.late_ms == 0);
        cr_assert_eq(flow_get(f, "q", "far", &jobs[0]), 0);
        cr_assert_eq(flow_list(f, "q", LAPSE_WAITING, 1, jobs, 2), 1);
        cr_assert_eq(flow_reschedule(f, "q", "far", lapse_in(0), NULL), 0);
        flow_until(f, w.settled == 3);
        flow_end(f, "q");
    }
}

Test(hostile_server, a_forged_due_time_before_all_clocks_is_due_and_runs_once)
{
    static const char *const scores[] = {"0", "-1", "-1e17", "-1e300", "-inf", "0.5"};
    enum { N = sizeof scores / sizeof *scores };
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};

    for (size_t i = 0; i < N; i++) {
        cr_assert_eq(flow_schedule(f, "q", scores[i], HOUR, NULL), 0);
        redis_do(f->server, "ZADD lapse:{q}:due %s %s", scores[i], scores[i]);
    }

    flow_listen(f, "q", &w);
    flow_until(f, w.settled == N);
    cr_assert_eq(w.errors, 0);
    for (size_t i = 0; i < N; i++) {
        cr_assert(w.runs[i].job.due_ms == 1 && w.runs[i].job.try_no == 1);
    }

    flow_end(f, "q");
}

/* ---- nonsense from a true Redis, for a while ---- */
static const char nonsense[] = "*4\r\n:1790000000000000\r\n+x\r\n*1\r\n+y\r\n+z\r\n";

/* A listener whose scripts of this name are not run, and answered with nonsense. */
static struct scripted_server *listen_to_nonsense(struct flow *f, const char *name,
                                                  struct flow_handler *w)
{
    struct scripted_server *s = scripted_server_before(f->server);
    struct lapse_options opts = flow_options(f);

    flow_allow_log(f, "clock");
    scripted_server_answer(s, scripted_step(name), nonsense);
    opts.url = s->url;
    opts.sweep_ms = 50;
    f->l = flow_open(f, &opts);
    flow_listen(f, "q", w);
    cr_assert_eq(flow_schedule(f, "q", "later", HOUR, NULL), 0); /* so that there is a sweep */
    cr_assert_eq(flow_schedule(f, "q", "a", 20, NULL), 0);
    return s;
}

Test(hostile_server, that_answers_a_script_with_nonsense_for_a_while_loses_no_job)
{
    place_not_with_masters("the nonsense comes from one of the masters");

    static const char *const names[] = {"claim", "touch", "sweep", "heartbeat"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct flow *f = flow_bare(FLOW_FULL, NULL);
        struct flow_handler w = {.way = FLOW_DONE};
        struct scripted_server *s = listen_to_nonsense(f, names[i], &w);

        flow_poll(f, scripted_server_answered(s) > 0);
        scripted_server_answer(s, SCRIPTED_NONE, "");
        flow_until(f, w.settled == 1);
        cr_assert_eq(w.errors, 0, "%s: %s", names[i], lapse_strerror(w.err));
        flow_each_once(&w, 1);

        flow_close(f, f->l, 5000);
        scripted_server_stop(s);
        flow_end(f, "q");
    }
}

/* From its first request on. So what it asks of its queue and of other listeners is meant too. */
Test(hostile_server, that_answers_a_new_listener_with_nonsense_for_a_while_loses_no_job)
{
    for (size_t i = 0; i < sizeof nothings / sizeof *nothings; i++) {
        struct flow *f = flow_start(FLOW_FULL);
        struct flow_handler w = {.f = f, .way = FLOW_DONE};
        struct scripted_server *s = scripted_server_before(f->server);
        struct lapse_options opts = flow_options(f);

        cr_assert_eq(flow_schedule(f, "q", "a", 20, NULL), 0);
        flow_allow_log(f, "Redis");
        answer_scripts(s, nothings[i]);
        opts.url = s->url;
        opts.sweep_ms = 50;
        struct lapse *l = flow_open(f, &opts);
        cr_assert_eq(lapse_listen(l, "q", NULL, flow_on_job, &w), 0);
        flow_poll(f, scripted_server_answered(s) > 10);

        answer_scripts(s, NULL);
        flow_until(f, w.settled == 1);
        cr_assert_eq(w.errors, 0, "row %zu: %s", i, lapse_strerror(w.err));
        flow_each_once(&w, 1);

        flow_close(f, l, 5000);
        scripted_server_stop(s);
        flow_end(f, "q");
    }
}

/* Nobody knows whether it was settled. */
Test(hostile_server, that_answers_a_settle_with_nonsense_makes_it_elost)
{
    place_not_with_masters("the nonsense comes from one of the masters");

    static const struct {
        const char *name;
        enum flow_way way;
    } rows[] = {{"done", FLOW_DONE}, {"retry", FLOW_RETRY}, {"fail", FLOW_FAIL}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct flow *f = flow_bare(FLOW_FULL, NULL);
        struct flow_handler w = {.way = rows[i].way};
        struct scripted_server *s = listen_to_nonsense(f, rows[i].name, &w);

        flow_until(f, w.settled == 1);
        cr_assert_eq(w.err, LAPSE_ELOST, "%s: %s", rows[i].name, lapse_strerror(w.err));

        flow_close(f, f->l, 5000);
        scripted_server_stop(s);
        flow_end(f, "q");
    }
}

/* ---- SIGPIPE ---- */
static bool pending(void)
{
    sigset_t set;
    sigpending(&set);
    return sigismember(&set, SIGPIPE);
}

static bool blocked(void)
{
    sigset_t set;
    sigprocmask(SIG_BLOCK, NULL, &set);
    return sigismember(&set, SIGPIPE);
}

/* Redis dies between two turns of our loop: the next write is the first to notice. */
static void die_while_we_write(struct flow *f, int times)
{
    struct lapse_spec s = flow_job_spec("q", NULL, HOUR);
    char *body = calloc(1, 1 << 20);

    s.body = body;
    s.body_len = 1 << 20;
    flow_allow_log(f, "lost the connection to Redis at ");
    flow_allow_log(f, "cannot connect to Redis at ");

    for (int i = 0; i < times; i++) {
        struct flow_answer a = {.f = f};
        cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_ENOENT);
        server_kill9(f->server);
        cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &a), 0);
        cr_assert_eq(flow_wait(f, &a), LAPSE_ELOST);
        server_restart(f->server);
    }

    free(body);
}

Test(hostile_server, that_dies_while_we_write_does_not_kill_the_host)
{
    signal(SIGPIPE, SIG_DFL);
    struct flow *f = flow_start(FLOW_FULL);
    die_while_we_write(f, 3);
    cr_assert(!blocked() && !pending(), "the mask is the host's again");
    flow_end(f);
}

static volatile sig_atomic_t heard;
static void on_pipe(int sig)
{
    (void)sig;
    heard++;
}

Test(hostile_server, that_dies_while_we_write_does_not_disturb_a_host_with_a_handler)
{
    signal(SIGPIPE, on_pipe);
    struct flow *f = flow_start(FLOW_FULL);
    die_while_we_write(f, 2);
    cr_assert(!blocked() && heard == 0, "it is not the host's business");
    raise(SIGPIPE);
    cr_assert_eq(heard, 1, "what is the host's still comes");
    flow_end(f);
}

Test(hostile_server, that_dies_while_we_write_leaves_a_host_that_blocks_sigpipe_as_it_was)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_DFL);
    struct flow *f = flow_start(FLOW_FULL);
    die_while_we_write(f, 2);
    cr_assert(blocked());
    flow_end(f);
}
