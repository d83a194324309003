/* SPDX-License-Identifier: MIT */
/* The users of tools/doc/users.md may do what they are for, and nothing else. `make test-acl` runs
 * all flows as them; flow_end() counts what was refused to them. */
#include "handler.h"
#include "listening.h"
#include "states.h"
#include <hiredis/hiredis.h>

enum { HOUR = 3600000, LISTENER = 1, PRODUCER = 2, MONITOR = 4, ALL = 7 };
static const char *const roles[] = {"listener", "producer", "monitor"};

static const char *const ids[FLOW_STATES] = {"waits", "runs", "dead", "ended", "ended-last"};

static struct lapse *open_as(struct flow *f, const char *role, flow_tweak *tweak)
{
    struct lapse_options opts = flow_options(f);
    char url[160];

    snprintf(url, sizeof url, "unix://lapse_%s:secret@%s", role, f->server->socket);
    opts.url = url;
    if (tweak) {
        tweak(&opts);
    }
    return flow_open(f, &opts);
}

FLOW_ALL_MODES(rights, of_a_listener_are_all_that_its_jobs_need)
{
    struct flow *f = flow_bare(mode, NULL);
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow_handler dying = {.way = FLOW_FAIL, .reason = "no"};

    f->l = open_as(f, "listener", NULL);
    flow_listen(f, "q", &w);
    flow_listen(f, "r", &dying);
    cr_assert_eq(flow_schedule(f, "q", "a", 30, NULL), 0);
    cr_assert_eq(flow_schedule(f, "r", "c", 30, NULL), 0);
    cr_assert_eq(flow_schedule(f, "q", "b", HOUR, NULL), 0);
    cr_assert_eq(flow_reschedule(f, "q", "b", lapse_in(0), NULL), 0);
    flow_until(f, w.settled == 2 && dying.settled == 1);
    cr_assert_eq(w.errors + dying.errors, 0);
    cr_assert_eq(flow_cancel(f, "r", "c", NULL), 0);
    flow_end(f, "q", "r");
}

static void by_keyspace(struct lapse_options *o)
{
    o->notify = LAPSE_KEYSPACE;
}

Test(rights, of_a_listener_by_keyspace_name_its_pattern_instead)
{
    static const char *const flags[] = {"--notify-keyspace-events", "Kx", NULL};
    struct flow *f = flow_bare(FLOW_FULL, flags);
    struct flow_handler w = {.way = FLOW_DONE};

    redis_do(
        f->server,
        "ACL SETUSER lapse_listener clearselectors (+psubscribe &__keyspace@0__:lapse:{q}:t:*)");
    f->l = open_as(f, "listener", by_keyspace);
    flow_listen(f, "q", &w);
    flow_until_listeners(f, "q", 1);
    for (unsigned n = 1; flow_stats(f->l).events == 0; n++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 20, NULL), 0);
        flow_until(f, w.settled == n);
    }

    flow_end(f, "q");
}

/* What it may not do itself, its jobs are not spared: the listeners hear of them. */
Test(rights, of_a_producer_are_enough_for_its_calls_and_the_notice)
{
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct flow_handler w = {.way = FLOW_DONE};

    struct lapse_where any = {.state = LAPSE_WAITING};
    f->l = open_as(f, "producer", NULL);

    for (int i = 0; i < FLOW_STATES; i++) {
        struct lapse_spec again = flow_job_spec("q", ids[i], HOUR);
        again.on_conflict = LAPSE_REPLACE;
        flow_put(f, "q", ids[i], (enum flow_state)i, NULL);
        cr_assert_eq(flow_get(f, "q", ids[i], NULL), 0);
        int busy = i == FLOW_RUNS ? LAPSE_EBUSY : 0;
        cr_assert_eq(flow_reschedule(f, "q", ids[i], lapse_in(HOUR), NULL), busy);
        cr_assert_eq(flow_spec(f, &again, NULL), busy);
        cr_assert_eq(flow_reschedule_all(f, "q", any, lapse_in(2 * HOUR), 9, NULL), 0);
        cr_assert_eq(flow_kill(f, "q", ids[i], "no", NULL), busy);
        cr_assert_eq(flow_cancel(f, "q", ids[i], NULL), busy);
        cr_assert_eq(flow_cancel_all(f, "q", any, NULL), 0);
    }

    struct lapse *listener = open_as(f, "listener", NULL);
    struct lapse *producer = f->l;
    f->l = listener;
    flow_listen(f, "p", &w);
    flow_until_listeners(f, "p", 1);
    flow_calm(f); /* its first sweep is over */
    f->l = producer;
    cr_assert_eq(flow_schedule(f, "p", "a", 0, NULL), 0);
    flow_until(f, w.settled == 1);
    cr_assert_eq(flow_stats(listener).via_notice, 1);
    flow_end(f, "p", "q");
}

Test(rights, of_a_monitor_are_to_look)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse *monitor = open_as(f, "monitor", NULL);
    struct flow_job page[FLOW_STATES];
    struct lapse_depth depth;
    char queues[FLOW_TEXT];
    struct lapse_where dead = {.state = LAPSE_DEAD};

    for (int i = 0; i < FLOW_STATES; i++) {
        flow_put(f, "q", ids[i], (enum flow_state)i, NULL);
    }

    char *before = flow_dump(f);
    f->l = monitor;
    for (int i = 0; i < FLOW_STATES; i++) {
        cr_assert_eq(flow_get(f, "q", ids[i], NULL), 0);
    }

    cr_assert_eq(flow_depth(f, "q", &depth), 0);
    cr_assert_eq(depth.waiting + depth.running + depth.dead, FLOW_STATES);
    cr_assert_eq(flow_list(f, "q", LAPSE_DEAD, 1, page, FLOW_STATES), 1);
    cr_assert_eq(flow_queues(f, NULL, queues), 0);
    cr_assert_str_eq(queues, "q 3+1+1 ''");
    cr_assert_eq(flow_listeners(f, "q", queues), 0);
    cr_assert_eq(server_refusals(f->server), 0);

    flow_allow_log(f, "NOPERM");
    cr_assert_eq(flow_schedule(f, "q", "new", HOUR, NULL), LAPSE_EDENIED);
    cr_assert_eq(flow_cancel(f, "q", ids[FLOW_DEAD], NULL), LAPSE_EDENIED);
    cr_assert_eq(flow_reschedule(f, "q", ids[FLOW_WAITS], lapse_in(0), NULL), LAPSE_EDENIED);

    cr_assert_eq(flow_kill(f, "q", ids[FLOW_WAITS], NULL, NULL), LAPSE_EDENIED);
    cr_assert_eq(flow_cancel_all(f, "q", dead, NULL), LAPSE_EDENIED);
    cr_assert_eq(flow_reschedule_all(f, "q", dead, lapse_in(0), 0, NULL), LAPSE_EDENIED);
    dead.state = LAPSE_WAITING;
    cr_assert_eq(flow_kill_all(f, "q", dead, NULL, NULL), LAPSE_EDENIED);

    char *after = flow_dump(f);
    cr_assert_str_eq(after, before);
    free(before);
    free(after);
    redis_do(f->server, "ACL LOG RESET");
    flow_end(f, "q");
}

static const struct {
    const char *command;
    int who; /* may not */
} forbidden[] = {
    {"CONFIG GET requirepass", ALL},
    {"CONFIG SET maxmemory-policy allkeys-lru", ALL},
    {"CONFIG REWRITE", ALL},
    {"ACL LIST", ALL},
    {"ACL SETUSER me on nopass +@all", ALL},
    {"ACL LOG", ALL},
    {"FLUSHALL", ALL},
    {"FLUSHDB", ALL},
    {"SWAPDB 0 1", ALL},
    {"KEYS *", ALL},
    {"SCAN 0", ALL},
    {"RANDOMKEY", ALL},
    {"INFO", ALL},
    {"MONITOR", ALL},
    {"SLOWLOG GET", ALL},
    {"CLIENT LIST", ALL},
    {"CLIENT KILL TYPE normal", ALL},
    {"CLIENT PAUSE 1", ALL},
    {"SCRIPT LOAD return", ALL},
    {"SCRIPT FLUSH", ALL},
    {"SCRIPT KILL", ALL},
    {"FUNCTION FLUSH", ALL},
    {"FUNCTION LOAD x", ALL},
    {"MODULE LIST", ALL},
    {"DEBUG SLEEP 0", ALL},
    {"SAVE", ALL},
    {"BGREWRITEAOF", ALL},
    {"SHUTDOWN NOSAVE", ALL},
    {"REPLICAOF NO ONE", ALL},
    {"FAILOVER", ALL},
    {"DUMP lapse:{q}:jobs", ALL},
    {"RESTORE lapse:{q}:new 0 x", ALL},
    {"RENAME lapse:{q}:jobs lapse:{q}:new", ALL},
    {"COPY lapse:{q}:jobs lapse:{q}:new", ALL},
    {"MOVE lapse:{q}:jobs 1", ALL},
    {"PERSIST lapse:{q}:t:a", ALL},
    {"EXPIRE lapse:{q}:jobs 1", ALL},
    {"HGETALL lapse:{q}:jobs", ALL},
    {"SORT lapse:{q}:due", ALL},
    {"MULTI", ALL},
    {"WAIT 0 0", MONITOR},
    /* keys and channels of others */
    {"ZSCORE other a", ALL},
    {"ZCARD lapse:q:due", ALL},
    {"EVAL_RO x 1 other", ALL},
    {"SUBSCRIBE other", ALL},
    {"SUBSCRIBE __keyevent@0__:expired", ALL},
    {"PSUBSCRIBE *", ALL},
    {"PSUBSCRIBE lapse:*", ALL},
    {"PSUBSCRIBE __key*", ALL},
    {"PSUBSCRIBE __keyevent@*__:*", ALL},
    {"PSUBSCRIBE __keyevent@0__:expired", ALL},
    {"PUBLISH other x", ALL},
    {"PUBLISH __keyevent@0__:expired lapse:{q}:t:a", ALL},
    /* in a script too */
    {"EVAL_RO return(redis.call('INFO')) 0", ALL},
    {"EVAL_RO return(redis.call('KEYS','*')) 0", ALL},
    {"EVAL_RO return(redis.call('HGET','other','a')) 0", ALL},
    {"EVAL return(redis.call('FLUSHALL')) 0", ALL},
    {"EVAL return(redis.call('SET','other','x')) 0", ALL},
    {"EVAL return(redis.call('PUBLISH','__keyevent@0__:expired','x')) 0", ALL},
    /* what another may */
    {"SUBSCRIBE lapse:{q}:notice:0", PRODUCER | MONITOR},
    {"SUBSCRIBE lapse:{q}:ends:0", MONITOR},
    {"PUBLISH lapse:{q}:ends:0 a", MONITOR},
    {"PSUBSCRIBE __keyevent@*__:expired", PRODUCER | MONITOR},
    {"MGET lapse:{q}:seq", MONITOR},
    {"INCRBY lapse:{q}:seq 1", ALL},
    {"ZSCAN lapse:{q}:run 0", PRODUCER | MONITOR},
    {"ZREMRANGEBYSCORE lapse:{q}:listeners 0 1", PRODUCER | MONITOR},
    {"PUBLISH lapse:{q}:notice:0 0", MONITOR},
    {"ZADD lapse:{q}:due 1 new", MONITOR},
    {"HSET lapse:{q}:jobs new x", MONITOR},
    {"DEL lapse:{q}:jobs", MONITOR},
    {"EVAL return 0", MONITOR},
    {"EVALSHA x 0", MONITOR},
    {"EVAL_RO return(redis.call('ZREM','lapse:{q}:due','a')) 1 lapse:{q}:due", MONITOR},
};

static void must_be_refused(struct flow *f, const char *role, int bit)
{
    redisContext *c = redisConnectUnix(f->server->socket);
    redisReply *r = redisCommand(c, "AUTH lapse_%s secret", role);

    cr_assert(r && r->type == REDIS_REPLY_STATUS);
    freeReplyObject(r);

    for (size_t i = 0; i < sizeof forbidden / sizeof *forbidden; i++) {
        if (!(forbidden[i].who & bit)) {
            continue;
        }
        r = redisCommand(c, forbidden[i].command);
        cr_assert(r && r->type == REDIS_REPLY_ERROR, "a %s may %s", role, forbidden[i].command);
        /* by itself; in a script of Redis 7; in one of Redis 8 and Valkey */
        cr_assert(strstr(r->str, "NOPERM") ||
                      strstr(r->str, "The user executing the script can't") ||
                      strstr(r->str, "ACL failure in script"),
                  "%s, %s: %s", role, forbidden[i].command, r->str);
        freeReplyObject(r);
    }

    redisFree(c);
}

Test(rights, are_no_others)
{
    struct flow *f = flow_start(FLOW_FULL);

    cr_assert_eq(flow_schedule(f, "q", "a", HOUR, NULL), 0);

    char *before = flow_dump(f);
    for (int i = 0; i < 3; i++) {
        must_be_refused(f, roles[i], 1 << i);
    }

    char *after = flow_dump(f);
    cr_assert_str_eq(after, before);
    free(before);
    free(after);
    redis_do(f->server, "ACL LOG RESET");
    flow_end(f, "q");
}
