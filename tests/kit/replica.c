/* SPDX-License-Identifier: MIT */
#include "replica.h"
#include "redis.h"
#include "test.h"
#include <criterion/criterion.h>

const char *const replica_args[] = {"--repl-diskless-sync-delay", "0", NULL};

struct server *replica_of_port(int port)
{
    struct server *replica = server_start_opts(replica_args);

    redis_do(replica, "REPLICAOF 127.0.0.1 %d", port);
    return replica;
}

void replicas_confirm(struct server *master, long long n)
{
    int64_t end_ms = test_now_ms() + 20000;
    long long n_now = 0;

    redis_do(master, "SET other x");
    redis_do(master, "DEL other");

    while (n_now < n) { /* a WAIT is for what this connection wrote last, however often it comes */
        cr_assert_lt(test_now_ms(), end_ms, "%lld of %lld replicas follow", n_now, n);
        n_now = redis_int(master, "WAIT %lld 100", n);
    }
}

void replica_follow(struct server *replica, struct server *master)
{
    redis_do(replica, "REPLICAOF 127.0.0.1 %d", master->port);
    replicas_confirm(master, 1);
}

struct server *replica_start(struct server *master)
{
    struct server *replica = replica_of_port(master->port);

    replicas_confirm(master, 1);
    return replica;
}

bool redis_has_job(struct server *s, const char *queue, const char *id)
{
    return redis_int(s, "HEXISTS lapse:{%s}:jobs %s", queue, id) == 1;
}
