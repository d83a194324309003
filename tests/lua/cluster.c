/* SPDX-License-Identifier: MIT */
/* The two keys that a script declares. Redis looks at them before it starts the script, and at no
 * others. */
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
