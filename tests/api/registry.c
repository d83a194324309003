/* SPDX-License-Identifier: MIT */
/* The registry: the names of the queues that are used, and lapse_queues(), which reads it. */
#include "handler.h"
#include "states.h"

static const char QUEUES[] = "lapse:{}:queues";

static long long entered(struct flow *f)
{
    return redis_int(f->server, "ZCARD %s", QUEUES);
}

Test(registry, a_schedule_enters_its_queue_once)
{
    struct flow *f = flow_start(FLOW_FULL);

    cr_assert_eq(flow_schedule(f, "q", "a", 3600000, NULL), 0);
    flow_poll(f, entered(f) == 1);
    long long before = flow_scripts(f);
    cr_assert_eq(flow_schedule(f, "q", "b", 3600000, NULL), 0);
    cr_assert_eq(flow_scripts(f) - before, 1);
    flow_end(f, "q");
}

Test(registry, a_listener_enters_its_queue)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_listen(f, "q", &w);
    flow_poll(f, entered(f) == 1);
    flow_end(f, "q");
}

static void looks_often(struct lapse_options *o)
{
    o->sweep_ms = 10;
}

/* Who uses it does not hear that it was removed. */
Test(registry, a_queue_that_it_has_lost_is_entered_again_by_a_use_a_while_later)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, looks_often);

    cr_assert_eq(flow_schedule(f, "q", "a", 3600000, NULL), 0);
    flow_poll(f, entered(f) == 1);
    redis_do(f->server, "DEL %s", QUEUES);
    flow_poll(f, flow_schedule(f, "q", NULL, 3600000, NULL) == 0 && entered(f) == 1);
    flow_end(f, "q");
}

Test(registry, who_may_not_enter_a_queue_schedules_to_it_with_one_warning)
{
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct lapse_options opts = flow_options(f);
    char url[160];

    redis_do(f->server, "ACL SETUSER one on >secret ~lapse:{q}:* ~lapse:{p}:* &* +@all");
    snprintf(url, sizeof url, "unix://one:secret@%s", f->server->socket);
    opts.url = url;
    flow_allow_log(f, "enter");
    f->l = flow_open(f, &opts);
    cr_assert_eq(flow_schedule(f, "q", "a", 3600000, NULL), 0);
    flow_until(f, flow_logged(f, "enter") == 1);
    cr_assert_eq(flow_schedule(f, "p", "a", 3600000, NULL), 0);
    cr_assert_eq(flow_schedule(f, "p", "b", 3600000, NULL), 0);
    cr_assert_eq(flow_logged(f, "enter"), 1);
    cr_assert_eq(entered(f), 0);
    flow_end(f, "q", "p");
}

/* ---- lapse_queues() ---- */
static void expect_queues(struct flow *f, const char *pattern, const char *expected)
{
    char found[FLOW_TEXT];

    cr_assert_eq(flow_queues(f, pattern, found), 0);
    cr_assert_str_eq(found, expected, "%s: %s", pattern ? pattern : "all", found);
}

Test(queues_of_a_space, are_listed_by_name_with_their_jobs_and_settings)
{
    struct flow *f = flow_start(FLOW_FULL);

    expect_queues(f, NULL, "");
    flow_put(f, "b", "dead", FLOW_DEAD, NULL);
    flow_put(f, "a", "runs", FLOW_RUNS, NULL);
    cr_assert_eq(flow_schedule(f, "b", NULL, 3600000, NULL), 0);
    cr_assert_eq(flow_configure(f, "b", "rate=5/1s max_running=2", NULL), 0);
    expect_queues(f, NULL, "a 0+1+0 '', b 1+0+1 'rate=5/1s max_running=2'");
    flow_end(f, "a", "b");
}

Test(queues_of_a_space, are_chosen_by_a_name_or_its_beginning)
{
    static const char *const names[] = {"email", "email.a", "email.b", "email_x", "sms", "Zulu"};
    struct flow *f = flow_start(FLOW_FULL);

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        flow_enter(f, names[i]);
    }

    expect_queues(f, "email.*", "email.a 0+0+0 '', email.b 0+0+0 ''");
    expect_queues(f, "email", "email 0+0+0 ''");
    expect_queues(f, "s*", "sms 0+0+0 ''");
    expect_queues(f, "nothing", "");
    expect_queues(f, "nothing*", "");
    cr_assert_eq(flow_queues(f, "*", NULL), 0);
    flow_end(f, "email", "email.a", "email.b", "email_x", "sms", "Zulu");
}

/* 250 are three pages of names; 200 are two that are full, and one that is empty. */
Test(queues_of_a_space, are_all_listed_however_many_they_are)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_answer a = {.f = f};
    struct flow_answer b = {.f = f};

    redis_do(f->server, "EVAL %s 1 lapse:{}:queues",
             "for i = 1, 250 do redis.call('ZADD', KEYS[1], 0, 'q' .. i) end");
    cr_assert_eq(lapse_queues(f->l, NULL, flow_queues_answered, &a), 0);
    cr_assert_eq(flow_wait(f, &a), 0);
    cr_assert_eq(a.n, 250);

    redis_do(f->server, "ZREMRANGEBYRANK lapse:{}:queues 0 49");
    cr_assert_eq(lapse_queues(f->l, NULL, flow_queues_answered, &b), 0);
    cr_assert_eq(flow_wait(f, &b), 0);
    cr_assert_eq(b.n, 200);
    flow_end(f);
}

Test(queues_of_a_space, whose_names_no_queue_can_have_are_passed_over)
{
    struct flow *f = flow_start(FLOW_FULL);

    redis_do(f->server, "ZADD lapse:{}:queues 0 a 0 b{} 0 %b 0 zz", "c\0d", (size_t)3);
    expect_queues(f, NULL, "a 0+0+0 '', zz 0+0+0 ''");
    flow_end(f);
}

/* Each is of several bytes up to the first that ends a text in C. */
Test(queues_of_a_space, whose_names_contain_zeros_do_not_hide_those_behind_a_page_of_them)
{
    struct flow *f = flow_start(FLOW_FULL);

    redis_do(f->server, "ZADD lapse:{}:queues 0 a 0 zz");
    redis_do(f->server, "EVAL %s 1 lapse:{}:queues",
             "for i = 1, 250 do redis.call('ZADD', KEYS[1], 0, 'c\\0' .. i) end");
    expect_queues(f, NULL, "a 0+0+0 '', zz 0+0+0 ''");
    flow_end(f);
}

Test(queues_of_a_space, of_which_one_cannot_be_read_are_an_error)
{
    struct flow *f = flow_start(FLOW_FULL);

    flow_enter(f, "a");
    flow_enter(f, "b");
    flow_allow_log(f, "WRONGTYPE");
    redis_do(f->server, "SET lapse:{a}:due x");
    cr_assert_eq(flow_queues(f, NULL, NULL), LAPSE_EREFUSED);
    expect_queues(f, "b", "b 0+0+0 ''");
    redis_do(f->server, "DEL lapse:{a}:due");
    flow_end(f, "a", "b");
}

Test(queues_of_a_space, that_are_asked_for_as_the_handle_ends_are_answered_once)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct flow_answer a = {.f = f};

    redis_do(f->server, "EVAL %s 1 lapse:{}:queues",
             "for i = 1, 250 do redis.call('ZADD', KEYS[1], 0, 'q' .. i) end");
    cr_assert_eq(lapse_queues(f->l, NULL, flow_queues_answered, &a), 0);
    flow_close(f, f->l, 0);
    f->l = NULL;
    cr_assert(a.calls == 1 && (a.err == LAPSE_ECLOSED || a.err == LAPSE_ELOST), "%d", a.err);
    flow_end(f);
}
