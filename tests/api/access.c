/* SPDX-License-Identifier: MIT */
/* Users, passwords and databases: which are let in. */
#include "handler.h"
#include "listening.h"
#include "loop.h"

enum { HOUR = 3600000 };

static struct lapse *open_at(struct flow *f, const char *login, const char *query, int64_t reply_ms)
{
    char url[200];
    struct lapse_options opts = flow_options(f);

    snprintf(url, sizeof url, "unix://%s%s%s", login, f->server->socket, query);
    opts.url = url;
    opts.reply_ms = reply_ms;
    return f->l = flow_open(f, &opts);
}

static long long connections(struct flow *f)
{
    char *info = redis_str(f->server, "INFO stats");
    long long n =
        atoll(strstr(info, "total_connections_received:") + strlen("total_connections_received:"));
    free(info);
    return n;
}

/* A listener that is not let in asks again and again, but not like mad, and says so once a second
 * at most. */
static void kept_out(struct flow *f, const char *login, const char *query, const char *word,
                     int expected)
{
    struct flow_handler w = {.way = FLOW_DONE};
    char line[100];
    int64_t since = test_now_ms();
    long long before = connections(f);

    open_at(f, login, query, 2500); /* a Redis that stands still for a second is not silent */
    flow_listen(f, "q", &w);
    snprintf(line, sizeof line, "does not let us in: %s", word);
    flow_allow_log(f, "does not let us in: ");
    flow_until(f, flow_logged(f, line) > 0);
    flow_until(f, flow_schedule(f, "q", "a", 0, NULL) == expected); /* or it was slow to refuse */
    flow_poll(f, connections(f) - before >= 4);
    loop_for(f->loop, 900);

    /* of one that waits 8, 64, 128 ... 500 ms, or half of it */
    long long n = connections(f) - before;
    long long at_most = 8 + (test_now_ms() - since) / 250;
    cr_assert_leq(n, at_most, "%lld connections", n);

    unsigned lines = flow_logged(f, line);
    unsigned most = 1 + (unsigned)(test_now_ms() - since) / 1000;
    cr_assert(lines >= 1 && lines <= most, "%u lines", lines);
    cr_assert_eq(flow_logged(f, "secret"), 0, "a password in the log");
    cr_assert_eq(w.n_runs, 0);
}

Test(access, a_wrong_password_is_tried_again_until_it_is_right)
{
    struct flow *f = flow_bare(FLOW_FULL, NULL);

    redis_do(f->server, "CONFIG SET requirepass other");
    kept_out(f, ":secret@", "", "WRONGPASS", LAPSE_EAUTH);
    redis_do(f->server, "CONFIG SET requirepass secret");
    flow_until(f, flow_schedule(f, "p", NULL, HOUR, NULL) == 0);
    flow_end(f, "q", "p");
}

Test(access, without_the_password_that_is_needed_no_handle_is_let_in)
{
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    redis_do(f->server, "CONFIG SET requirepass secret");
    kept_out(f, "", "", "NOAUTH", LAPSE_EAUTH);
    flow_end(f, "q");
}

Test(access, a_user_that_is_not_there_is_not_let_in)
{
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    kept_out(f, "nobody:secret@", "", "WRONGPASS", LAPSE_EAUTH);
    flow_end(f, "q");
}

Test(access, a_database_that_does_not_exist_is_logged)
{
    place_not_in_cluster("there is one database");

    struct flow *f = flow_bare(FLOW_FULL, NULL);
    kept_out(f, "", "?db=16", "ERR DB index is out of range", LAPSE_EDOWN);
    flow_end(f, "q");
}

FLOW_ALL_MODES(access, a_password_alone_is_of_the_default_user)
{
    struct flow *f = flow_bare(mode, NULL);
    struct flow_handler w = {.way = FLOW_DONE};

    redis_do(f->server, "CONFIG SET requirepass %s", "p@ss:w/rd%41");
    open_at(f, ":p%40ss:w%2Frd%2541@", "", 0);
    flow_listen(f, "q", &w);
    cr_assert_eq(flow_schedule(f, "q", "a", 30, NULL), 0);
    flow_until(f, w.settled == 1);
    cr_assert_eq(w.errors, 0);
    flow_end(f, "q");
}

Test(access, without_the_right_to_subscribe_the_alarm_delivers_and_it_is_logged_once)
{
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct flow_handler w = {.way = FLOW_DONE};
    long long before = connections(f);

    flow_allow_log(f, "Redis refuses the subscription: ");
    redis_do(f->server, "ACL SETUSER me on >secret ~lapse:* resetchannels +@all");
    open_at(f, "me:secret@", "", 0);
    flow_listen(f, "q", &w);
    for (int i = 0; i < 10; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 30 * i, NULL), 0);
    }

    flow_until(f, w.settled == 10);
    cr_assert_eq(flow_logged(f, "Redis refuses the subscription: NOPERM"), 1);
    cr_assert_leq(connections(f) - before, 20);
    for (size_t i = 0; i < w.n_runs; i++) {
        cr_assert(flow_via_ok(FLOW_NO_EVENTS, w.runs[i].job.via), "%d", (int)w.runs[i].job.via);
    }

    flow_end(f, "q");
}

Test(access, without_the_right_to_a_command_it_is_refused_by_name)
{
    struct flow *f = flow_bare(FLOW_FULL, NULL);

    flow_allow_log(f, "NOPERM");
    redis_do(f->server, "ACL SETUSER me on >secret ~other:* &* +@all");
    open_at(f, "me:secret@", "", 0);
    cr_assert_eq(flow_schedule(f, "q", "a", HOUR, NULL), LAPSE_EDENIED);
    cr_assert_eq(flow_logged(f, "Redis refused schedule: NOPERM"), 1);
    cr_assert_eq(redis_int(f->server, "DBSIZE"), 0);
    flow_end(f, "q");
}

FLOW_ALL_MODES(access, over_tcp_it_is_the_same)
{
    struct flow *f = flow_start_tcp(mode, NULL, NULL);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_listen(f, "q", &w);
    for (int i = 0; i < 5; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 20 * i, NULL), 0);
    }

    flow_until(f, w.settled == 5);
    cr_assert_eq(w.errors, 0);
    flow_end(f, "q");
}
