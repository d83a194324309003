/* SPDX-License-Identifier: MIT */
/* The two keys that a script declares: Redis looks at them before it starts the script, and at no
 * others. And what a script looks at in a cluster, before it begins: is all of the queue there? */
#include "script.h"
#include <poll.h>

#define SELF "1111111111111111111111111111111111111111"
#define OTHER "2222222222222222222222222222222222222222"

static char dir[64];

/* A node that has all slots, and knows another one, which is not there. A node that was just
 * started takes no writes for 2 s. */
static void cluster_init(void)
{
    test_dir(dir, sizeof dir);

    char *conf = text("%s/nodes.conf", dir);
    FILE *f = fopen(conf, "w");
    cr_assert(f, "%s: %m", conf);
    fputs(SELF " 127.0.0.1:1@2 myself,master - 0 0 1 connected 0-16383\n" OTHER
               " 127.0.0.1:3@4 master - 0 0 2 disconnected\n"
               "vars currentEpoch 2 lastVoteEpoch 0\n",
          f);
    cr_assert_eq(fclose(f), 0);

    const char *const args[] = {"--cluster-enabled",
                                "yes",
                                "--cluster-config-file",
                                conf,
                                "--cluster-port",
                                text("%d", server_free_port()),
                                NULL};
    script_init_on(server_start_tcp(args));

    int64_t deadline = test_now_ms() + 20000;
    while (!strstr(ask("CLUSTER INFO")->str, "cluster_state:ok")) {
        cr_assert(test_now_ms() < deadline, "%s", ask("CLUSTER INFO")->str);
        poll(NULL, 0, 10);
    }
}

static void cluster_fini(void)
{
    script_fini();
    test_dir_remove(dir);
}

TestSuite(cluster, .init = cluster_init, .fini = cluster_fini);

/* A script of no queue has one key, which is on one of the nodes. */
static void all_of_a_queue_answer(const char *error)
{
    char *before = dumps();

    for (const struct script_call *call = script_calls; call->name; call++) {
        if (run_is_of_queue(call->name)) {
            redisReply *r = run(call->name, call->args);
            cr_assert(r->type == REDIS_REPLY_ERROR && strncmp(r->str, error, strlen(error)) == 0,
                      "%s: %s", call->name, show(r));
        }
    }

    same(__FILE__, __LINE__, "keys", dumps(), before);
    HEARD("");
}

Test(cluster, takes_every_script)
{
    for (const struct script_call *call = script_calls; call->name; call++) {
        everything_for(call->args);
        given(call->name, call->args);
    }

    ask("FLUSHALL");
}

Test(cluster, starts_no_script_of_a_queue_that_moves)
{
    everything();

    long long slot = redis_int(redis, "CLUSTER KEYSLOT " KEY);
    redis_do(redis, "CLUSTER SETSLOT %lld MIGRATING " OTHER, slot);
    all_of_a_queue_answer("TRYAGAIN ");

    ask("DEL " KEY); /* as if it had been the first to move */
    all_of_a_queue_answer("ASK ");

    redis_do(redis, "CLUSTER SETSLOT %lld STABLE", slot);
    ask("FLUSHALL");
}

/* ---- half a queue ---- */
/* The arguments of a call, with `cluster` in the first of them. */
static const char *in_cluster(const char *args)
{
    const char *first = strstr(args, "; ");
    int before = first ? (int)(first + 2 - args) : 0;
    const char *at = args + before;

    if (strncmp(at, "'0 600'", 7) == 0) {
        return text("%.*s'0 600 cluster'%s", before, args, at + 7);
    }
    cr_assert_eq(*at, '0', "%s", args);
    return text("%.*s'0 cluster'%s", before, args, at + 1);
}

/* Each script of a queue is refused, and names these keys. */
static void refuses_without(const char *lost, const char *named)
{
    const char *half = text("LAPSE EHALF %s", named);

    now_at(0);
    five();
    given("schedule", "0 k +0 0 " KEEP);
    given("claim", "0 me 1000 0 k");
    given("done", "0 me k U+20001");
    ask("DEL %s", lost);
    char *before = dumps();

    for (const struct script_call *call = script_calls; call->name; call++) {
        if (run_is_of_queue(call->name)) {
            redisReply *r = run(call->name, in_cluster(call->args));
            cr_assert(r->type == REDIS_REPLY_ERROR && strcmp(r->str, half) == 0,
                      "%s without %s: %s", call->name, lost, show(r));
        }
    }

    same(__FILE__, __LINE__, "keys", dumps(), before);
    HEARD("");
    ask("FLUSHALL");
}

Test(cluster, refuses_a_queue_of_which_a_key_has_gone)
{
    refuses_without("s:{q}:jobs", "s:{q}:jobs");
    refuses_without("s:{q}:due", "s:{q}:due");
    refuses_without("s:{q}:run", "s:{q}:run");
    refuses_without("s:{q}:dead", "s:{q}:dead");
    refuses_without("s:{q}:kept", "s:{q}:kept");
    refuses_without("s:{q}:attempts", "s:{q}:attempts");
}

Test(cluster, names_all_keys_of_which_one_has_gone)
{
    five();
    ask("DEL s:{q}:run");
    RUN("depth", "'0 cluster'", "-LAPSE EHALF s:{q}:run s:{q}:kept");
    RUN("claim", "'0 60000 cluster' me 1000 10", "-LAPSE EHALF s:{q}:run s:{q}:kept");
    ask("FLUSHALL");
}

Test(cluster, takes_every_script_on_a_queue_that_is_whole)
{
    for (const struct script_call *call = script_calls; call->name; call++) {
        everything_for(call->args);
        given(call->name, in_cluster(call->args));
    }
    ask("FLUSHALL");

    given("schedule", in_cluster("0 a +0 0 " REC)); /* the first job of a queue */
    given("claim", in_cluster("0 me 1000 0 a"));
    given("done", in_cluster("0 me a U+20001"));
    RUN("depth", "'0 cluster'", "[U+20000 0 0 0 0 0 '']"); /* and none at all */
}

/* What another program has left is for doctor. */
Test(cluster, takes_members_without_a_record_for_no_half_queue)
{
    given("schedule", "0 a +5 0 " REC);
    ask("ZADD s:{q}:due 5 b");
    RUN("claim", "'0 cluster' me 1000 10", "[U 0 T+5 0 1 0 0]");
}

Test(cluster, says_what_it_cannot_look_at)
{
    ask("SET s:{q}:dead text");
    cr_assert(strncmp(run("depth", "'0 cluster'")->str, "WRONGTYPE", 9) == 0);
    ask("FLUSHALL");
}

Test(cluster, is_asked_nothing_of_elsewhere)
{
    ask("CONFIG RESETSTAT");
    given("depth", "0");
    cr_assert_eq(calls("hlen"), 0);
    cr_assert_eq(calls("zcard"), 3); /* of its own */
}
