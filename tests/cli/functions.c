/* SPDX-License-Identifier: MIT */
/* lapse functions: the library for other languages, printed and loaded. */
#include "tool.h"
#include "cluster.h"
#include <hiredis/hiredis.h>
#include <poll.h>

static const char of_another_text[] =
    "#!lua name=lapse1\nredis.register_function('lapse1_old', function() return 1 end)";
static const char of_another_name[] =
    "#!lua name=mine\nredis.register_function('lapse1_get', function() return 1 end)";

/* Names of functions in all libraries; the third value of a library is its list of functions. */
static size_t n_functions(struct server *s)
{
    redisReply *list = redis_cmd(s, "FUNCTION LIST");
    size_t n = 0;

    for (size_t i = 0; i < list->elements; i++) {
        n += list->element[i]->element[5]->elements;
    }
    freeReplyObject(list);
    return n;
}

Test(functions, are_printed_as_the_build_made_them)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/functions.lua", test_build());
    char *text = test_read_file(path, NULL);
    struct proc *p = lapse("functions", "-u", "redis://127.0.0.1:1");

    cr_assert_str_eq(p->out, text);
    expect(p, 0, "#!lua name=lapse1\n", NULL);
    free(text);
}

Test(functions, are_loaded_once_and_called)
{
    struct server *s = tool_redis();

    expect(lapse("functions", "--load"), 0, "{\"library\":\"lapse1\",\"loaded\":true}\n", NULL);
    expect(lapse("functions", "--load"), 0, "{\"library\":\"lapse1\",\"loaded\":false}\n", NULL);
    expect(lapse("functions", "--load", "--format", "text"), 0, "lapse1 was loaded already\n", "");
    expect(lapse("functions", "--load", "--replace"), 0, "\"loaded\":true", NULL);

    expect(lapse("schedule", "q", "--id", "i", "--in", "1h"), 0, NULL, NULL);
    cr_assert_eq(redis_int(s, "EVAL %s 0", "return redis.call('ZCARD', 'lapse:{q}:due')"), 1);
    redisReply *r = redis_cmd(s, "FCALL lapse1_depth 2 lapse:{q}:due lapse:{q}:none 0");
    cr_assert(r->type == REDIS_REPLY_ARRAY && r->element[1]->integer == 1, "%s", r->str);
    freeReplyObject(r);
    server_stop(s);
}

Test(functions, of_another_text_are_replaced_only_when_that_is_asked_for)
{
    struct server *s = tool_redis();

    redis_do(s, "FUNCTION LOAD %s", of_another_text);
    expect(lapse("functions", "--load"), 1, "", "there is a library lapse1 with another text");
    cr_assert_eq(n_functions(s), 1);
    expect(lapse("functions", "--load", "--replace"), 0, "\"loaded\":true", NULL);
    cr_assert_gt(n_functions(s), 15);
    server_stop(s);
}

/* To replace ours would not help. */
Test(functions, whose_names_another_library_has_are_not_loaded)
{
    struct server *s = tool_redis();

    redis_do(s, "FUNCTION LOAD %s", of_another_name);
    expect(lapse("functions", "--load"), 1, "", "lapse1_get already exists");
    expect(lapse("functions", "--load", "--replace"), 1, "", "lapse1_get already exists");
    cr_assert_eq(n_functions(s), 1);
    server_stop(s);
}

Test(functions, need_rights_to_be_loaded_and_the_message_names_them)
{
    struct server *s = tool_redis();
    char url[160];

    snprintf(url, sizeof url, "unix://lapse_listener:secret@%s", s->socket);
    expect(lapse("functions", "--load", "-u", url), 77, "", "+function|load +function|list");
    redis_do(s, "ACL SETUSER lapse_listener +function|load +function|list");
    expect(lapse("functions", "--load", "-u", url), 0, "\"loaded\":true", NULL);
    redis_do(s, "ACL SETUSER lapse_listener -function|list");
    expect(lapse("functions", "--load", "-u", url), 77, "", "+function|load +function|list");
    server_stop(s);
}

Test(functions, of_a_server_that_has_none_or_takes_none_say_so)
{
    static const char *const old[] = {"--rename-command", "FUNCTION", "", NULL};
    static const char *const replica[] = {"--replicaof", "127.0.0.1", "1", NULL};
    static const char *const full[] = {"--maxmemory", "1", NULL};
    static const struct {
        const char *const *args;
        const char *said;
    } rows[] = {{old, "it has no functions; Redis 7.0 or later is needed"},
                {replica, "it is a replica: give the URL of the master"},
                {full, "it is out of memory"}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct server *s = server_start_opts(rows[i].args);
        expect(lapse("functions", "--load", "-u", s->url), 69, "", rows[i].said);
        server_stop(s);
    }
    expect(lapse("functions", "--load", "-u", "redis://127.0.0.1:1"), 69, "", "reached");
}

static redisReply *call_as(struct server *s, const char *role, const char *call)
{
    redis_do(s, "AUTH lapse_%s secret", role);
    redisReply *r = redis_cmd(s, call);
    redis_do(s, "AUTH default x");
    return r;
}

Test(functions, are_for_users_who_may_do_what_is_in_them)
{
    static const struct {
        const char *role, *call;
        bool may;
    } rows[] = {
        {"producer", "FCALL lapse1_schedule 2 lapse:{q}:due lapse:{q}:none 0 a +0 0 x", true},
        {"producer", "FCALL lapse1_claim 2 lapse:{q}:due lapse:{q}:none 0 me 1000 1", false},
        {"monitor", "FCALL_RO lapse1_depth 2 lapse:{q}:due lapse:{q}:none 0", true},
        {"monitor", "FCALL_RO lapse1_cancel 2 lapse:{q}:due lapse:{q}:none 0 a 0", false},
        {"listener", "FCALL lapse1_cancel 2 lapse:{q}:due lapse:{q}:none 0 a 0", true},
    };
    struct server *s = tool_redis();

    expect(lapse("functions", "--load"), 0, NULL, NULL);
    redis_do(s, "ACL SETUSER lapse_listener +fcall");
    redis_do(s, "ACL SETUSER lapse_producer +fcall");
    redis_do(s, "ACL SETUSER lapse_monitor +fcall_ro");
    redis_do(s, "ACL SETUSER default nopass");

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        redisReply *r = call_as(s, rows[i].role, rows[i].call);
        cr_expect_eq(r->type == REDIS_REPLY_ARRAY, rows[i].may, "%s: %s", rows[i].call, r->str);
        freeReplyObject(r);
    }
    server_stop(s);
}

/* ---- in a cluster ---- */
/* One line of each of these masters, and no other. */
static void loads_into(struct proc *p, const struct cluster *c, int n, const char *loaded)
{
    char line[100];

    proc_wait(p, PROC_WAIT_MS);
    for (int i = 0; i < n; i++) {
        snprintf(line, sizeof line,
                 "{\"library\":\"lapse1\",\"loaded\":%s,\"server\":\"127.0.0.1:%d\"}\n", loaded,
                 c->nodes[i].server->port);
        cr_assert(has(p, line), "%s not in %s%s", line, p->out, p->err);
    }
    cr_assert_eq(count_of(p->out, "\n"), n, "%s", p->out);
}

/* What the master of this node was told is there, too. */
static void until_functions(struct server *replica, size_t n)
{
    int64_t end = test_now_ms() + PROC_WAIT_MS;

    while (n_functions(replica) != n) {
        cr_assert_lt(test_now_ms(), end, "%zu functions, not %zu", n_functions(replica), n);
        poll(NULL, 0, 5);
    }
}

Test(functions, of_a_cluster_are_loaded_into_each_master)
{
    struct cluster *c = tool_cluster(2, 1);
    char said[60];

    struct proc *p = lapse("functions", "--load");
    loads_into(p, c, 2, "true");
    expect(p, 0, NULL, "");
    for (int i = 0; i < 2; i++) {
        size_t n = n_functions(c->nodes[i].server);
        cr_assert_gt(n, 15);
        until_functions(c->nodes[2 + i].server, n);
    }

    p = lapse("functions", "--load");
    loads_into(p, c, 2, "false");
    expect(p, 0, NULL, "");
    snprintf(said, sizeof said, "127.0.0.1:%d: lapse1 is loaded\n", c->nodes[1].server->port);
    expect(lapse("functions", "--load", "--replace", "--format", "text"), 0, said, "");

    expect(lapse("schedule", "q", "--id", "i", "--in", "1h"), 0, NULL, NULL);
    redisReply *r = redis_cmd(cluster_of(c, "{q}"), "FCALL lapse1_depth 2 lapse:{q}:due "
                                                    "lapse:{q}:none 0 cluster");
    cr_assert(r->type == REDIS_REPLY_ARRAY && r->element[1]->integer == 1, "%s", r->str);
    freeReplyObject(r);
    cluster_stop(c);
}

Test(functions, of_a_cluster_are_loaded_into_all_masters_but_those_that_fail_and_are_named)
{
    struct cluster *c = tool_cluster(3, 0);
    char said[120];

    redis_do(c->nodes[2].server, "FUNCTION LOAD %s", of_another_text);
    struct proc *p = lapse("functions", "--load");
    loads_into(p, c, 2, "true");
    snprintf(said, sizeof said, "127.0.0.1:%d: there is a library lapse1 with another text",
             c->nodes[2].server->port);
    expect(p, 1, NULL, said);
    cr_assert_eq(n_functions(c->nodes[2].server), 1);

    server_kill9(c->nodes[2].server);
    p = lapse("functions", "--load");
    loads_into(p, c, 2, "false");
    snprintf(said, sizeof said, "127.0.0.1:%d: cannot be reached: Connection refused\n",
             c->nodes[2].server->port);
    expect(p, 69, NULL, said);

    /* what is worse than a master that is away */
    for (int i = 0; i < 2; i++) {
        redis_do(c->nodes[i].server, "ACL SETUSER u on >p ~* &* +@all");
    }
    tool_cluster_url(c, "u:p@");
    redis_do(c->nodes[1].server, "ACL SETUSER u -function|load");
    p = lapse("functions", "--load", "--replace");
    loads_into(p, c, 1, "true");
    cr_assert_eq(count_of(p->err, "cannot be reached"), 1, "%s", p->err);
    snprintf(said, sizeof said, "127.0.0.1:%d: NOPERM", c->nodes[1].server->port);
    expect(p, 77, NULL, said);
    redis_do(c->nodes[1].server, "ACL DELUSER u");
    p = lapse("functions", "--load");
    loads_into(p, c, 1, "false");
    snprintf(said, sizeof said, "127.0.0.1:%d: does not let this user in: AUTH: WRONGPASS",
             c->nodes[1].server->port);
    expect(p, 77, NULL, said);

    server_kill9(c->nodes[0].server);
    server_kill9(c->nodes[1].server);
    expect(lapse("functions", "--load"), 69, "", "the cluster could not be reached: redis+cluster");
    cluster_stop(c);
}

/* The map of a cluster may be of before a failover. */
Test(functions, that_a_node_does_not_take_which_is_no_master_any_more_say_what_to_do)
{
    static const char ok[] = "+OK\r\n";
    struct scripted_server *f = scripted_server_start_tcp(ok, strlen(ok));
    char slots[200];
    char url[80];

    snprintf(slots, sizeof slots,
             "*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n$9\r\n127.0.0.1\r\n:%d\r\n$1\r\ni\r\n", f->port);
    scripted_server_answer_to(f, "CLUSTER SLOTS", slots);
    scripted_server_answer_to(f, "FUNCTION LOAD", "-READONLY You can't write here.\r\n");
    snprintf(url, sizeof url, "redis+cluster://127.0.0.1:%d", f->port);
    expect(lapse("-u", url, "functions", "--load"), 69, "",
           "READONLY You can't write here.: it is a replica by now; repeat the command");
    scripted_server_stop(f);
}
