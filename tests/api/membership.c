/* SPDX-License-Identifier: MIT */
/* Who listens to a queue: its names, who of them is alive, and what happens when either is lost. */
#include "allocations.h"
#include "handler.h"
#include "listener.h"
#include "listening.h"
#include <signal.h>

enum { MANY = 300 };

static const char ALIVE[] = "lapse:{}:alive";

static void quiet(struct lapse_options *o)
{
    o->sweep_ms = 60000;
}

static bool is_listed(struct flow *f, const char *queue, const char *name)
{
    return redis_int(f->server, "EVAL %s 1 lapse:{%s}:listeners %s",
                     "for _, name in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do if "
                     "string.sub(name, 1, #ARGV[1] + 1) == ARGV[1] .. '/' then return 1 end end "
                     "return 0",
                     queue, name);
}

static long long listed_queues(struct flow *f)
{
    return flow_keys(f, "lapse:{*}:listeners");
}

static void listen_to_many(struct flow *f, struct flow_handler *w)
{
    char name[16];

    for (unsigned i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "q%u", i);
        flow_listen(f, name, w);
    }
    flow_poll(f, listed_queues(f) == MANY);
}

Test(membership, is_entered_again_in_all_queues_when_redis_has_lost_everything)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, quiet);
    struct flow_handler w = {.way = FLOW_DONE};

    listen_to_many(f, &w);
    flow_do(f, "FLUSHALL");
    flow_poll(f, listed_queues(f) == MANY);
    flow_until_alive(f, 1);
    flow_end(f, "q0");
}

/* They took it for dead, and were right to: it was stopped for a minute. */
Test(membership, is_entered_again_when_others_have_removed_it)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, quiet);
    struct flow_handler w = {.way = FLOW_DONE};

    listen_to_many(f, &w);
    redis_do(f->server, "DEL %s", ALIVE);
    redis_do(f->server, "DEL lapse:{q7}:listeners");
    redis_do(f->server, "DEL lapse:{q9}:listeners");
    flow_poll(f, listed_queues(f) == MANY);
    flow_end(f, "q0");
}

/* It is alive all the while, so only the notice tells it. */
Test(membership, is_entered_again_when_a_notice_leads_to_names_without_ours)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, quiet);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_listen(f, "q", &w);
    flow_until_listeners(f, "q", 1);
    flow_heard(f);
    redis_do(f->server, "DEL lapse:{q}:listeners");
    redis_do(f->server, "PUBLISH lapse:{q}:notice:0 members");
    flow_until_listeners(f, "q", 1);
    flow_end(f, "q");
}

/* Anybody may write there. */
Test(membership, of_a_name_that_no_listener_can_have_is_passed_over)
{
    enum { N = 20 };
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, quiet);
    struct flow_handler w = {.way = FLOW_DONE};

    redis_do(f->server, "ZADD lapse:{q}:listeners 1 %0500d", 7);
    redis_do(f->server, "ZADD %s 9999999999999 %0500d", ALIVE, 7);
    flow_listen(f, "q", &w);
    flow_until_listeners(f, "q", 2);
    flow_calm(f);

    for (int i = 0; i < N; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 20, NULL), 0);
    }
    flow_until(f, w.settled == N);
    flow_each_once(&w, N);
    flow_until_listeners(f, "q", 2);
    flow_end(f, "q");
}

/* Of a process that was killed when no other was there: nobody is left who knew it. */
Test(membership, of_the_dead_is_removed_by_who_comes)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, quiet);
    struct flow_handler w = {.way = FLOW_DONE};

    redis_do(f->server, "ZADD lapse:{q}:listeners 5 dead/0000000000000000 6 corpse/1");
    flow_listen(f, "q", &w);
    flow_poll(f, !is_listed(f, "q", "dead") && !is_listed(f, "q", "corpse"));
    flow_until_listeners(f, "q", 1);
    flow_end(f, "q");
}

/* A name that Redis says is alive is left in peace. */
Test(membership, of_the_living_is_not_removed)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, quiet);
    struct flow_handler w = {.way = FLOW_DONE};

    redis_do(f->server, "ZADD %s %lld other/0000000000000000", ALIVE,
             (long long)redis_now_ms(f->server) + 15000);
    redis_do(f->server, "ZADD lapse:{q}:listeners 5 other/0000000000000000");
    flow_listen(f, "q", &w);
    flow_until_listeners(f, "q", 2);
    flow_spin(f, 1000);
    cr_assert(is_listed(f, "q", "other"));
    flow_end(f, "q");
}

/* A message says that it was told something, so it asks at once. The second time it has read the
 * answer to the first. */
static void asks(struct flow *f, const char *message)
{
    for (int i = 0; i < 2; i++) {
        long long before = flow_heartbeats(f);
        redis_do(f->server, "PUBLISH lapse:{}:wake:0 %s", message);
        flow_poll(f, flow_heartbeats(f) > before);
    }
}

/* As long as the names stay the same they are not sent again. */
Test(membership, of_the_living_is_heard_of_after_there_was_no_memory_for_it)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, quiet);
    struct flow_handler w = {.way = FLOW_DONE};
    bool failed = true;

    flow_listen(f, "q", &w);
    flow_until_listeners(f, "q", 1);
    char *own = redis_str(f->server, "EVAL %s 1 lapse:{q}:listeners",
                          "return 'told ' .. redis.call('ZRANGE', KEYS[1], 0, 0)[1]");
    flow_heard(f);

    for (long n = 1; failed; n++) {
        char name[32];
        snprintf(name, sizeof name, "other%ld", n);
        redis_do(f->server, "ZADD %s 9999999999999 %s/0000000000000000", ALIVE, name);
        redis_do(f->server, "ZREM %s %b", ALIVE, "", (size_t)0); /* the version */
        alloc_fail(n);
        asks(f, own);
        failed = alloc_has_failed();
        alloc_fail(0);
        asks(f, own);

        redis_do(f->server, "ZADD lapse:{q}:listeners 5 %s/0000000000000000", name);
        redis_do(f->server, "PUBLISH lapse:{q}:notice:0 members");
        asks(f, own);
        flow_calm(f);
        cr_assert(is_listed(f, "q", name), "allocation %ld", n);
    }

    free(own);
    flow_end(f, "q");
}

/* The dead one owned half of the jobs, which notices then do not lead to. */
Test(membership, of_the_dead_owns_nothing_when_its_heartbeat_has_ended)
{
    enum { JOBS = 20 };
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct runs *runs = runs_new(1000);
    struct lapse_options opts = flow_options(f);
    struct flow_handler w = {.way = FLOW_DONE};
    uint64_t late = 1;

    quiet(&opts);
    opts.log = NULL;
    opts.name = "victim";
    struct listener *victim = listener_start(runs, "q", &opts, LISTENER_SETTLES);
    flow_until_listeners(f, "q", 1);
    f->l = flow_open(f, NULL);
    flow_listen(f, "q", &w);
    flow_until_listeners(f, "q", 2);
    listener_signal(victim, SIGKILL);

    /* Its last heartbeat ends in a second, not in fifteen. */
    redis_do(f->server, "EVAL %s 1 %s %lld",
             "for _, name in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do "
             "if string.sub(name, 1, 7) == 'victim/' then "
             "redis.call('ZADD', KEYS[1], ARGV[1], name) end end",
             ALIVE, (long long)redis_now_ms(f->server) + 1000);
    for (unsigned n = 0; late > 0; n += JOBS) {
        late = JOBS + flow_stats(f->l).via_notice;
        for (int i = 0; i < JOBS; i++) {
            cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
        }
        flow_until(f, w.settled == n + JOBS);
        late -= flow_stats(f->l).via_notice;
        flow_spin(f, 100);
        cr_assert_lt(n, 100 * JOBS, "its heartbeat never ends");
    }

    listener_free(victim);
    runs_free(runs);
    flow_end(f, "q");
}

/* Its user is confined to one queue, and was not given the key of all listeners. */
Test(membership, without_the_right_to_say_that_we_are_alive_jobs_run)
{
    enum { N = 10 };
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct lapse_options opts = flow_options(f);
    struct flow_handler w = {.way = FLOW_DONE};
    char url[160];

    redis_do(f->server, "ACL SETUSER one on >secret ~lapse:{q}:* &* +@all");
    snprintf(url, sizeof url, "unix://one:secret@%s", f->server->socket);
    opts.url = url;
    quiet(&opts);
    flow_allow_log(f, "heartbeat");
    flow_allow_log(f, "enter");
    f->l = flow_open(f, &opts);
    flow_listen(f, "q", &w);
    flow_until_listeners(f, "q", 1);
    flow_calm(f); /* its first sweep is over */
    for (unsigned i = 0; i < N; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, i % 2 * 20, NULL), 0);
    }

    flow_until(f, w.settled == N);
    flow_each_once(&w, N);
    cr_assert_eq(flow_stats(f->l).via_sweep, 0);
    cr_assert_eq(flow_logged(f, "heartbeat"), 1);
    redis_do(f->server, "ACL LOG RESET");
    flow_end(f, "q");
}
