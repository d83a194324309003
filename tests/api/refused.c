/* SPDX-License-Identifier: MIT */
/* A Redis that is there and refuses, or does not answer: the codes, and the one line in the log. */
#include "handler.h"
#include <signal.h>

enum { HOUR = 3600000 };

static void impatient(struct lapse_options *opts)
{
    opts->reply_ms = 3500;
}

/* A line a second at most; what was held back is counted in the next. */
static void not_too_often(struct flow *f, const char *text, int64_t since_ms)
{
    unsigned lines = flow_logged(f, text);
    cr_assert(lines >= 1 && lines <= 1 + (unsigned)((test_now_ms() - since_ms) / 1000), "%u lines",
              lines);
}

Test(refused, for_lack_of_memory_is_erefused_while_due_jobs_still_run)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow_job job;

    flow_enter(f, "full");
    flow_allow_log(f, "Redis refused schedule: OOM ");
    flow_allow_log(f, "Redis refused reschedule: OOM ");
    for (int i = 0; i < 4; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 300, NULL), 0);
    }

    cr_assert_eq(flow_schedule(f, "q", "a", HOUR, NULL), 0);
    flow_listen(f, "q", &w);

    int64_t since = test_now_ms();
    redis_do(f->server, "CONFIG SET maxmemory 1");
    for (int i = 0; i < 5; i++) {
        cr_assert_eq(flow_schedule(f, "full", "b", HOUR, NULL), LAPSE_EREFUSED);
    }

    cr_assert_eq(flow_reschedule(f, "q", "a", lapse_in(2 * HOUR), NULL), LAPSE_EREFUSED);
    cr_assert_eq(lapse_outcome_unknown(LAPSE_EREFUSED), 0);
    not_too_often(f, "Redis refused ", since);
    cr_assert_geq(flow_logged(f, "raise maxmemory"), 1);
    flow_until(f, w.settled == 4);
    cr_assert_eq(w.errors, 0);
    cr_assert_eq(flow_get(f, "q", "a", &job), 0);
    cr_assert_eq(flow_cancel(f, "q", "a", NULL), 0);
    redis_do(f->server, "CONFIG SET maxmemory 0");
    cr_assert_eq(flow_schedule(f, "full", "b", HOUR, NULL), 0);
    flow_end(f, "q", "full");
}

Test(refused, a_key_of_another_program_is_erefused_and_named_in_the_log)
{
    place_not_in_cluster("each script reads the parts of its queue");

    static const struct {
        const char *key;
        int schedule, get, depth;
    } rows[] = {
        {"due", LAPSE_EREFUSED, LAPSE_EREFUSED, LAPSE_EREFUSED},
        {"jobs", LAPSE_EREFUSED, LAPSE_ENOENT, 0},
        {"run", 0, LAPSE_EREFUSED, LAPSE_EREFUSED},
        {"dead", 0, LAPSE_EREFUSED, LAPSE_EREFUSED},
    };
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_depth d;

    flow_allow_log(f, "WRONGTYPE");
    flow_enter(f, "q");

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *key = rows[i].key;
        redis_do(f->server, "SET lapse:{q}:%s foreign", key);
        char *before = flow_dump(f);
        cr_assert_eq(flow_get(f, "q", "a", NULL), rows[i].get, "%s", key);
        cr_assert_eq(flow_depth(f, "q", &d), rows[i].depth, "%s", key);
        cr_assert_eq(flow_schedule(f, "q", "a", HOUR, NULL), rows[i].schedule, "%s", key);
        if (rows[i].schedule) {
            char *after = flow_dump(f);
            cr_assert_str_eq(before, after, "%s", key);
            free(after);
        }
        free(before);
        redis_do(f->server, "DEL lapse:{q}:%s", key);
        cr_assert_eq(flow_cancel(f, "q", "a", NULL), rows[i].schedule ? LAPSE_ENOENT : 0, "%s",
                     key);
    }

    cr_assert_geq(flow_logged(f, "a key of ours was written by another program"), 1);
    flow_end(f, "q");
}

Test(refused, in_the_middle_is_ebroken_and_the_same_schedule_again_mends_it)
{
    place_not_in_cluster("of a queue that lacks a part nothing runs");

    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct lapse_options opts = flow_options(f);
    struct flow_job job;
    struct lapse_spec s = flow_job_spec("q", "a", HOUR);
    char url[160];

    s.body = "body", s.body_len = 4;
    snprintf(url, sizeof url, "unix://half:secret@%s", f->server->socket);
    opts.url = url;
    f->l = flow_open(f, &opts);
    flow_allow_log(
        f, "Redis broke off in the middle of schedule: it denied HSET to this user (some of "
           "it may have happened");
    /* the second thing that it writes with */
    redis_do(f->server, "ACL SETUSER half on >secret ~* &* +@all -hset");
    cr_assert_eq(flow_spec(f, &s, NULL), LAPSE_EBROKEN);
    cr_assert_eq(lapse_outcome_unknown(LAPSE_EBROKEN), 1);
    cr_assert_eq(flow_logged(f, "some of it may have happened"), 1);
    redis_do(f->server, "ACL SETUSER half +hset");
    cr_assert_eq(flow_spec(f, &s, NULL), 0);
    cr_assert_eq(flow_get(f, "q", "a", &job), 0);
    cr_assert_str_eq(job.body, "body");
    flow_end(f, "q");
}

Test(refused, an_answer_that_does_not_come_is_etimeout_and_may_have_happened)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, impatient);

    cr_assert_eq(flow_schedule(f, "q", "before", HOUR, NULL), 0);
    flow_allow_log(f, "no answer from Redis at ");
    flow_allow_log(f, "cannot connect to Redis at ");
    server_signal(f->server, SIGSTOP);
    cr_assert_eq(flow_schedule(f, "q", "a", HOUR, NULL), LAPSE_ETIMEOUT);
    cr_assert_eq(lapse_outcome_unknown(LAPSE_ETIMEOUT), 1);
    cr_assert_eq(flow_logged(f, "no answer from Redis at "), 1);
    cr_assert_eq(flow_schedule(f, "q", "b", HOUR, NULL), LAPSE_EDOWN,
                 "this one cannot have reached it");
    server_signal(f->server, SIGCONT);

    int err;
    flow_until(f, (err = flow_schedule(f, "q", "a", HOUR, NULL)) == 0 || err == LAPSE_EEXIST);
    cr_assert_eq(flow_get(f, "q", "b", NULL), LAPSE_ENOENT);
    cr_assert_eq(flow_count(f, "q", "due"), 2);
    flow_end(f, "q");
}

Test(refused, an_answer_that_died_with_redis_is_elost_and_may_have_happened)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_answer a = {.f = f};
    struct flow_answer b = {.f = f};
    struct lapse_spec s = flow_job_spec("q", "a", HOUR);

    redis_do(f->server, "CONFIG SET appendfsync always");
    cr_assert_eq(flow_schedule(f, "q", "before", HOUR, NULL), 0);
    flow_allow_log(f, "lost the connection to Redis at ");
    flow_allow_log(f, "cannot connect to Redis at ");
    server_signal(f->server, SIGSTOP);
    cr_assert_eq(lapse_schedule(f->l, &s, flow_answered, &a), 0);
    ev_run(f->loop, EVRUN_NOWAIT); /* it is in the socket */
    server_kill9(f->server);
    cr_assert_eq(lapse_get(f->l, "q", "before", flow_answered, &b), 0);
    cr_assert_eq(flow_wait(f, &a), LAPSE_ELOST);
    cr_assert_eq(lapse_outcome_unknown(LAPSE_ELOST), 1);
    server_restart(f->server);

    int err = flow_wait(f, &b);
    cr_assert(err == 0 || err == LAPSE_ELOST, "%s: it was sent to the dying one, or it waited",
              lapse_strerror(err));
    err = flow_schedule(f, "q", "a", HOUR, NULL);
    cr_assert(err == 0 || err == LAPSE_EEXIST, "%s", lapse_strerror(err));
    cr_assert_eq(flow_count(f, "q", "due"), 2);
    flow_end(f, "q");
}

FLOW_ALL_MODES(refused, scripts_that_are_flushed_at_any_moment_are_sent_again)
{
    struct flow *f = flow_start(mode);
    struct flow_handler w = {.way = FLOW_DONE};
    char id[16];

    flow_listen(f, "q", &w);

    for (int i = 0; i < 30; i++) {
        snprintf(id, sizeof id, "%d", i);
        redis_do(f->server, "SCRIPT FLUSH");
        cr_assert_eq(flow_schedule(f, "q", id, i % 3 * 40, NULL), 0);
        redis_do(f->server, "SCRIPT FLUSH");
        cr_assert_eq(flow_schedule(f, "gone", id, HOUR, NULL), 0);
        redis_do(f->server, "SCRIPT FLUSH");
        cr_assert_eq(flow_cancel(f, "gone", id, NULL), 0);
        flow_turn(f, test_now_ms() + 5);
    }

    flow_until(f, w.settled == 30);
    for (int i = 0; i < 30; i++) {
        snprintf(id, sizeof id, "%d", i);
        cr_assert_eq(flow_runs_of(&w, id), 1);
    }

    cr_assert_eq(w.errors, 0);
    flow_end(f, "q", "gone");
}

/* Redis 6, where HELLO is not known or not allowed. */
Test(refused, by_a_redis_without_eval_ro_is_erefused_and_names_the_version_that_is_needed)
{
    static const char *const old[] = {"--rename-command", "EVAL_RO", "", NULL};
    struct flow *f = flow_start_opts(FLOW_FULL, old, NULL);
    static const char said[] =
        "Redis refused get: it does not know EVAL_RO; Redis 7.0 or later is needed";

    flow_allow_log(f, said);
    cr_assert_eq(flow_schedule(f, "q", "a", HOUR, NULL), 0);
    cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_EREFUSED);
    cr_assert_eq(flow_logged(f, said), 1);
    cr_assert_eq(flow_logged(f, "local"), 0, "the script's text in the log");
    flow_end(f, "q");
}

/* Each as the user of its row, on the Redis that is tested: 7.0 does not say which command it
 * denied, later ones do. */
Test(refused, for_lack_of_a_right_within_a_script_names_the_command_and_the_script)
{
    static const struct {
        const char *rules, *said;
    } rows[] = {
        {"-hget",
         "Redis denied HGET, which `get` needs, to this user; `lapse doctor` lists the rights"},
        {"-zscore",
         "Redis denied ZSCORE, which `get` needs, to this user; `lapse doctor` lists the rights"},
        {"resetkeys ~lapse:{q}:due ~lapse:{q}:none ~lapse:{q}:jobs",
         "denied to this user; `lapse doctor` lists the rights"},
        {"-time", ", which `get` needs, to this user; `lapse doctor` lists the rights"},
        {"-eval_ro", "denied to this user; `lapse doctor` lists the rights"},
    };
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_options opts = flow_options(f);
    struct lapse *direct = f->l;
    char url[160];

    cr_assert_eq(flow_schedule(f, "q", "a", HOUR, NULL), 0);
    snprintf(url, sizeof url, "unix://weak:secret@%s", f->server->socket);
    opts.url = url;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        redis_do(f->server, "ACL DELUSER weak");
        redis_do(f->server, "ACL SETUSER weak on >secret ~* &* +@all");
        char *rules = strdup(rows[i].rules);
        char *rest = rules;
        for (char *rule; (rule = strsep(&rest, " "));) {
            redis_do(f->server, "ACL SETUSER weak %s", rule);
        }
        free(rules);
        flow_allow_log(f, rows[i].said);
        f->l = flow_open(f, &opts);
        cr_assert_eq(flow_get(f, "q", "a", NULL), LAPSE_EDENIED, "%s", rows[i].rules);
        cr_assert_geq(flow_logged(f, rows[i].said), 1, "%s", rows[i].rules);
        flow_close(f, f->l, 0);
    }

    f->l = direct;
    cr_assert_eq(flow_cancel(f, "q", "a", NULL), 0);
    flow_end(f, "q");
}
