/* SPDX-License-Identifier: MIT */
/* A Redis that answers but is not ready: loading, a replica, busy with a script of another
 * client. */
#include "handler.h"
#include "loop.h"
#include <hiredis/hiredis.h>

enum { HOUR = 3600000, DUE_MS = 5000 };

static void impatient(struct lapse_options *opts)
{
    opts->reply_ms = 3500;
}

static void finish_command(redisContext *c)
{
    void *reply = NULL;
    cr_assert_eq(redisGetReply(c, &reply), REDIS_OK);
    freeReplyObject(reply);
    redisFree(c);
}

static void is_refused(struct flow *f, const char *word, const char *advice)
{
    flow_allow_log(f, word);
    flow_until(f, flow_schedule(f, "q", NULL, HOUR, NULL) == LAPSE_EREFUSED);
    cr_assert_geq(flow_logged(f, advice), 1);
}

/* Three jobs that fall due while it cannot run them, and run when it can. */
static struct flow *start(struct flow_handler *w)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, impatient);

    flow_listen(f, "q", w);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, DUE_MS, NULL), 0);
    }
    return f;
}

static void go_on(struct flow *f, struct flow_handler *w)
{
    flow_until(f, w->n_runs == 3 && w->settled == 3);
    flow_until(f, flow_schedule(f, "q", NULL, HOUR, NULL) == 0);
    flow_end(f, "q");
}

Test(unready_redis, a_busy_redis_refuses_by_name_and_then_goes_on)
{
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow *f = start(&w);

    struct redisContext *busy = redis_busy(f->server);
    is_refused(f, "BUSY", "SCRIPT KILL ends it");
    redis_not_busy(f->server, busy);
    go_on(f, &w);
}

Test(unready_redis, a_replica_refuses_by_name_until_it_is_master_again)
{
    place_not_by_sentinel("a replica is not used");
    place_not_in_cluster("REPLICAOF is not allowed");

    struct flow_handler w = {.way = FLOW_DONE};
    struct flow *f = start(&w);

    redis_do(f->server, "REPLICAOF 127.0.0.1 1");
    is_refused(f, "READONLY", "give the URL of the master");
    flow_poll(f, redis_int(f->server, "ZCOUNT lapse:{q}:due 0 %lld",
                           (long long)redis_now_ms(f->server) - 200) == 3); /* they fell due */
    cr_assert_eq(w.n_runs, 0);
    redis_do(f->server, "REPLICAOF NO ONE");
    go_on(f, &w);
}

Test(unready_redis, a_replica_without_its_master_refuses_every_connection)
{
    place_not_in_cluster("REPLICAOF is not allowed");

    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_allow_log(f, "MASTERDOWN");
    redis_do(f->server, "CONFIG SET replica-serve-stale-data no");
    redis_do(f->server, "REPLICAOF 127.0.0.1 1");
    f->l = flow_open(f, NULL);
    flow_listen(f, "q", &w);
    flow_until(f, flow_logged(f, "does not let us in: MASTERDOWN") > 0);
    redis_do(f->server, "REPLICAOF NO ONE");
    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
    flow_until(f, w.settled == 1);
    flow_end(f, "q");
}

Test(unready_redis, a_loading_redis_says_so_and_refuses_every_connection)
{
    place_not_in_cluster("what it refuses waits");

    struct flow_handler w = {.way = FLOW_DONE};
    struct flow *f = start(&w);
    struct flow_answer a = {.f = f};

    redis_do(f->server, "DEBUG POPULATE 4000 filler"); /* 20 s, unless they are cut short */
    redis_do(f->server,
             "CONFIG SET key-load-delay 5000 loading-process-events-interval-bytes 1024");
    flow_allow_log(f, "LOADING");
    flow_allow_log(f, "is loading its data; trying again");

    redisContext *c = redis_connect(f->server);
    redis_send(c, "DEBUG RELOAD");
    flow_until(f, flow_schedule(f, "q", NULL, HOUR, NULL) == LAPSE_EREFUSED);
    cr_assert_geq(flow_logged(f, "it is loading its data; this passes"), 1);

    struct lapse *first = f->l;
    struct lapse_options opts = flow_options(f);
    opts.reply_ms = 60000;
    f->l = flow_open(f, &opts); /* one that comes now waits outside */
    cr_assert_eq(lapse_get(f->l, "q", "new", flow_answered, &a), 0);
    flow_until(f, flow_logged(f, "is loading its data; trying again") > 0);
    cr_assert_eq(flow_logged(f, "does not let us in"), 0);
    redis_do(f->server, "CONFIG SET key-load-delay 0");
    finish_command(c);
    cr_assert_eq(flow_wait(f, &a), LAPSE_ENOENT);
    f->l = first;
    go_on(f, &w);
}
