/* SPDX-License-Identifier: MIT */
/* Many queues in one handle, and queues that come and go: nothing of them stays behind. A listener
 * has one channel more, WAKE, which is of no queue. */
#include "handler.h"
#include "listening.h"

enum { MANY = 300, WAKE = 1 };

static void quiet(struct lapse_options *o)
{
    o->sweep_ms = 60000;
}

static void keyspace(struct lapse_options *o)
{
    quiet(o);
    o->notify = LAPSE_KEYSPACE;
}

/* But that of Sentinel. */
static long long channels(struct flow *f)
{
    return redis_int(f->server, "EVAL %s 0", "return #redis.call('PUBSUB', 'CHANNELS', '[^_]*')");
}

static long long patterns(struct flow *f)
{
    return redis_int(f->server, "EVAL %s 0", "return redis.call('PUBSUB', 'NUMPAT')");
}

static void named(char out[16], unsigned i)
{
    snprintf(out, 16, "q%u", i);
}

/* The audit has no room for so many names. */
static void forget_tokens(struct flow *f)
{
    redis_do(
        f->server, "EVAL %s 0",
        "for _, key in ipairs(redis.call('KEYS', 'lapse:{q*}:seq')) do redis.call('DEL', key) end");
}

static void run_one(struct flow *f, const char *queue, struct flow_handler *w, int64_t delay_ms)
{
    unsigned want = w->settled + 1;
    cr_assert_eq(flow_schedule(f, queue, NULL, delay_ms, NULL), 0);
    flow_until(f, w->settled == want);
}

/* common: patterns that are there without a queue. */
static void come_and_go(flow_tweak *tweak, const char *const *args, long long common)
{
    struct flow *f = flow_start_opts(FLOW_FULL, args, tweak);
    struct flow_handler w = {.way = FLOW_DONE};
    struct flow_handler stays = {.way = FLOW_DONE};
    char name[16];

    flow_listen(f, "first", &stays);
    run_one(f, "first", &stays, 0);

    for (unsigned i = 0; i < MANY; i++) {
        named(name, i);
        flow_listen(f, name, &w);
        if (i % 10 == 0) {
            run_one(f, name, &w, i % 20 ? 5 : 0);
        }
        cr_assert_eq(lapse_unlisten(f->l, name), 0);
    }

    flow_poll(f, channels(f) == 1 + WAKE);
    run_one(f, "first", &stays, 5);
    cr_assert_eq(lapse_unlisten(f->l, "first"), 0);
    flow_poll(f, channels(f) == WAKE && patterns(f) == common);

    for (unsigned i = 0; i < 20; i++) {
        named(name, i);
        flow_listen(f, name, &w);
        run_one(f, name, &w, 5);
        cr_assert_eq(lapse_unlisten(f->l, name), 0);
    }

    flow_poll(f, channels(f) == WAKE && patterns(f) == common);
    flow_listen(f, "first", &stays);
    run_one(f, "first", &stays, 5);
    flow_poll(f, channels(f) == 1 + WAKE && patterns(f) == 1);
    cr_assert_eq(flow_stats(f->l).reconnects, 0);
    forget_tokens(f);
    flow_end(f, "first");
}

Test(queues, that_come_and_go_leave_no_channel_behind)
{
    come_and_go(quiet, NULL, 1);
}

Test(queues, that_come_and_go_leave_no_channel_behind_by_keyspace)
{
    static const char *const args[] = {"--notify-keyspace-events", "Kx", NULL};
    if (*server_login()) {
        cr_skip_test("its user may not hear of these");
    }
    come_and_go(keyspace, args, 0);
}

/* The same name again, while the end of its last life is on its way to Redis. */
Test(queues, that_come_again_at_once_are_heard)
{
    enum { ROUNDS = 200 };
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, quiet);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_listen(f, "other", &w);

    for (int i = 0; i < ROUNDS; i++) {
        flow_listen(f, "q", &w);
        for (int turns = i % 7; turns > 0; turns--) {
            ev_run(f->loop, EVRUN_NOWAIT);
        }
        cr_assert_eq(lapse_unlisten(f->l, "q"), 0);
        for (int turns = i % 5; turns > 0; turns--) {
            ev_run(f->loop, EVRUN_NOWAIT);
        }
    }

    flow_listen(f, "q", &w);
    flow_until_listeners(f, "q", 1);
    flow_poll(f, channels(f) == 2 + WAKE);

    uint64_t woken = flow_stats(f->l).via_notice;
    for (int i = 0; i < 10; i++) {
        run_one(f, "q", &w, 0);
    }

    cr_assert_gt(flow_stats(f->l).via_notice, woken);
    cr_assert_eq(flow_stats(f->l).reconnects, 0);
    flow_end(f, "q", "other");
}

/* A user of before: it loses the connection once, and nothing else. */
Test(queues, that_go_where_we_may_not_unsubscribe_cost_one_connection)
{
    place_not_with_masters("one of the masters alone has the user");

    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct lapse_options opts = flow_options(f);
    struct flow_handler w = {.way = FLOW_DONE};
    char url[160];
    char name[16];

    redis_do(f->server, "ACL SETUSER old on >secret ~* &* +@all -unsubscribe");
    snprintf(url, sizeof url, "unix://old:secret@%s", f->server->socket);
    opts.url = url;
    opts.reply_ms = 3500;
    f->l = flow_open(f, &opts);
    flow_allow_log(f, "refuses the subscription");
    flow_listen(f, "first", &w);
    flow_until_listeners(f, "first", 1);
    flow_listen(f, "goes", &w);
    flow_until_listeners(f, "goes", 1);
    cr_assert_eq(lapse_unlisten(f->l, "goes"), 0);
    flow_until(f,
               flow_logged(f, "refuses the subscription") == 1 && flow_stats(f->l).reconnects == 1);
    flow_poll(f, channels(f) == 1 + WAKE);

    for (unsigned i = 0; i < 10; i++) {
        named(name, i);
        flow_listen(f, name, &w);
        run_one(f, name, &w, 5);
        cr_assert_eq(lapse_unlisten(f->l, name), 0);
    }

    run_one(f, "first", &w, 5);
    cr_assert_eq(channels(f), 11 + WAKE);
    cr_assert_eq(flow_stats(f->l).reconnects, 1);
    cr_assert_eq(flow_logged(f, "refuses the subscription"), 1);
    forget_tokens(f);
    flow_end(f, "first", "goes");
}

/* Each is due at another moment, and one alarm rings for all. */
Test(queues, by_the_hundred_each_have_their_alarm)
{
    struct flow *f = flow_start_opts(FLOW_STILL, NULL, quiet);
    struct flow_handler w = {.way = FLOW_DONE};
    char name[16];

    for (unsigned i = 0; i < MANY; i++) {
        named(name, i);
        flow_listen(f, name, &w);
    }

    for (unsigned i = 0; i < MANY; i++) {
        named(name, i * 7 % MANY);
        cr_assert_eq(flow_schedule(f, name, NULL, 20 + i % 100, NULL), 0);
    }

    flow_until(f, w.settled == MANY);
    flow_each_once(&w, MANY);
    forget_tokens(f);
    flow_end(f, "q0");
}

/* Most have nothing: their sweeps must not have all the room there is, nor be asked again in each
 * turn. */
Test(queues, that_owe_a_claim_share_the_room_that_is_left)
{
    struct flow *f = flow_bare(FLOW_FULL, NULL);
    struct lapse_options opts = flow_options(f);
    struct flow_handler w = {.way = FLOW_DONE};
    char name[16];

    opts.max_running = 100;
    f->l = flow_open(f, &opts);
    for (unsigned i = 0; i < MANY; i++) {
        named(name, i);
        cr_assert_eq(flow_schedule(f, name, NULL, 0, NULL), 0);
    }

    long long before = flow_scripts(f);
    for (unsigned i = 0; i < MANY; i++) {
        named(name, i);
        flow_listen(f, name, &w);
    }

    flow_until(f, w.settled == MANY);

    /* of each queue a claim or two, its listen, and the done */
    cr_assert_lt(flow_scripts(f) - before, 8 * MANY);
    flow_each_once(&w, MANY);
    forget_tokens(f);
    flow_end(f, "q0");
}
