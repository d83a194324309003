/* SPDX-License-Identifier: MIT */
/* Jobs that Redis moves to a stream or a list, whichever listener asks. */
#include "handler.h"
#include "listener.h"
#include "listening.h"
#include <hiredis/hiredis.h>

enum { MANY = 300, HOUR = 3600000 };

static void no_sweep(struct lapse_options *o)
{
    o->sweep_ms = 60000;
}

static int forward(struct flow *f, const char *to, char text[FLOW_TEXT])
{
    struct flow_answer a = {.f = f};
    int err = lapse_forward(f->l, "q", to, flow_text_answered, &a);

    if (!err) {
        err = flow_wait(f, &a);
    }
    if (text) {
        strcpy(text, a.text);
    }
    return err;
}

static long long entries(struct flow *f)
{
    return redis_int(f->server, "XLEN lapse:{q}:stream");
}

/* Of the ids in the stream each is there once. */
static void each_once(struct flow *f, long long n)
{
    static const char script[] =
        "local seen, n = {}, 0 for _, e in ipairs(redis.call('XRANGE', KEYS[1], '-', '+')) do "
        "if not seen[e[2][2]] then n = n + 1 end seen[e[2][2]] = true end return n";

    cr_assert_eq(entries(f), n);
    cr_assert_eq(redis_int(f->server, "EVAL %s 1 lapse:{q}:stream", script), n);
}

/* ---- each hint by itself ---- */
FLOW_ALL_MODES(forward, moves_every_job_once_to_a_stream)
{
    struct flow *f = flow_start(mode);
    struct lapse_depth d;
    char text[FLOW_TEXT];

    cr_assert_eq(forward(f, "stream", text), 0);
    cr_assert_str_eq(text, "forward=stream:lapse:{q}:stream");
    for (int i = 0; i < 40; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, i % 2 ? 0 : 30 + i, NULL), 0);
    }
    flow_until(f, flow_stats(f->l).forwarded == 40);
    each_once(f, 40);
    cr_assert_eq(flow_depth(f, "q", &d), 0);
    cr_assert(d.waiting == 0 && d.running == 0 && d.dead == 0);
    cr_assert_eq(flow_stats(f->l).claimed, 0);
    flow_end(f, "q");
}

static void no_alarm_no_sweep(struct lapse_options *o)
{
    o->flags = LAPSE_NO_ALARM;
    o->sweep_ms = 600000;
}

static void alarm_alone(struct lapse_options *o)
{
    o->flags = LAPSE_NO_EVENTS;
    o->sweep_ms = 600000;
}

static void sweep_alone(struct lapse_options *o)
{
    o->flags = LAPSE_NO_EVENTS | LAPSE_NO_ALARM;
    o->sweep_ms = 50;
}

/* It forwards, and what it asked at its start is answered. */
static struct flow *start_alone(enum flow_mode mode, flow_tweak *tweak)
{
    struct flow *f = flow_start_opts(mode, NULL, tweak);

    cr_assert_eq(forward(f, "stream", NULL), 0);
    flow_calm(f);
    return f;
}

/* By another handle, so that only Redis tells the one that forwards. */
static void others_schedule(struct flow *f, struct lapse *other, int64_t delay_ms, int n)
{
    struct lapse *forwards = f->l;

    f->l = other;
    for (int i = 0; i < n; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, delay_ms, NULL), 0);
    }
    f->l = forwards;
}

Test(forward, by_events_alone)
{
    struct flow *f = start_alone(FLOW_FULL, no_alarm_no_sweep);

    others_schedule(f, flow_open(f, NULL), 30, 20);
    flow_until(f, flow_stats(f->l).forwarded == 20);
    cr_assert_eq(flow_stats(f->l).touches, 0);
    cr_assert_gt(flow_stats(f->l).events, 0);
    each_once(f, 20);
    flow_end(f, "q");
}

/* There is none for a job that falls due later: it waits for the first that there is. */
Test(forward, by_notices_alone)
{
    struct flow *f = start_alone(FLOW_MUTE, no_alarm_no_sweep);
    struct lapse *other = flow_open(f, NULL);

    others_schedule(f, other, 30, 1);
    flow_spin(f, 200);
    cr_assert_eq(flow_count(f, "q", "due"), 1);

    others_schedule(f, other, 0, 20);
    flow_until(f, flow_stats(f->l).forwarded == 21);
    cr_assert_eq(flow_stats(f->l).events, 0);
    cr_assert_eq(flow_stats(f->l).touches, 0);
    each_once(f, 21);
    flow_end(f, "q");
}

/* Its own calls and the answers of Redis tell it what comes next. */
Test(forward, by_the_alarm_alone)
{
    struct flow *f = start_alone(FLOW_STILL, alarm_alone);

    for (int i = 0; i < 20; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, i % 2 ? 0 : 30 + i, NULL), 0);
    }
    flow_until(f, flow_stats(f->l).forwarded == 20);
    cr_assert_eq(flow_stats(f->l).events, 0);
    cr_assert_gt(flow_stats(f->l).touches, 0);
    cr_assert_leq(flow_stats(f->l).touches, 10);
    each_once(f, 20);
    flow_end(f, "q");
}

/* The touch that moves a job makes the event of it, too. */
Test(forward, by_touch_costs_no_claim_for_the_event)
{
    enum { LONE = 20 };
    struct flow *f = start_alone(FLOW_STILL, no_sweep);
    struct lapse_stats before = flow_stats(f->l);

    for (unsigned i = 1; i <= LONE; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 20, NULL), 0);
        flow_until(f, flow_stats(f->l).forwarded == before.forwarded + i);
        flow_calm(f);
    }

    struct lapse_stats now = flow_stats(f->l);
    cr_assert_eq(now.events - before.events, now.touches - before.touches);
    cr_assert_geq(now.touches - before.touches, LONE - 1);
    cr_assert_eq(now.empty_claims, before.empty_claims);
    each_once(f, LONE);
    flow_end(f, "q");
}

Test(forward, by_the_sweep_alone)
{
    struct flow *f = start_alone(FLOW_STILL, sweep_alone);

    others_schedule(f, flow_open(f, NULL), 10, 20);
    flow_until(f, flow_stats(f->l).forwarded == 20);
    cr_assert_eq(flow_stats(f->l).events, 0);
    cr_assert_eq(flow_stats(f->l).touches, 0);
    each_once(f, 20);
    flow_end(f, "q");
}

Test(forward, to_a_list_keeps_the_order)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);

    cr_assert_eq(flow_configure(f, "q", "forward=list forward_element=id", NULL), 0);
    cr_assert_eq(forward(f, NULL, NULL), 0);
    for (int i = 0; i < 20; i++) {
        char id[8];
        snprintf(id, sizeof id, "j%02d", i);
        cr_assert_eq(flow_schedule(f, "q", id, 20 + i, NULL), 0);
    }
    flow_until(f, flow_stats(f->l).forwarded == 20);
    for (int i = 0; i < 20; i++) {
        char id[8];
        snprintf(id, sizeof id, "j%02d", i);
        char *got = redis_str(f->server, "RPOP lapse:{q}:list");
        cr_assert_str_eq(got, id);
        free(got);
    }
    flow_end(f, "q");
}

/* ---- who forwards ---- */
Test(forward, is_done_by_any_listener_whose_handler_is_not_called_and_says_so_once)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);
    struct flow_handler w = {.way = FLOW_DONE};

    flow_allow_log(f, "its handler is not called");
    flow_listen(f, "q", &w);
    cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    flow_until(f, w.settled == 1);

    cr_assert_eq(flow_configure(f, "q", "forward=stream", NULL), 0);
    for (int i = 0; i < 20; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, i, NULL), 0);
    }
    flow_until(f, flow_stats(f->l).forwarded == 20);
    cr_assert_eq(w.n_runs, 1);
    cr_assert_eq(flow_logged(f, "its handler is not called"), 1);

    cr_assert_eq(flow_configure(f, "q", "forward=", NULL), 0);
    cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    flow_until(f, w.settled == 2);
    each_once(f, 20);
    flow_end(f, "q");
}

Test(forward, of_a_queue_without_a_target_gives_out_nothing_until_there_is_one)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);
    struct lapse *serves = f->l;
    char text[FLOW_TEXT];

    cr_assert_eq(forward(f, NULL, text), 0);
    cr_assert_str_eq(text, "");
    flow_until_listeners(f, "q", 1);
    f->l = flow_open(f, NULL);
    cr_assert_eq(flow_schedule(f, "q", "now", 0, NULL), 0);
    cr_assert_eq(flow_schedule(f, "q", "soon", 20, NULL), 0);
    flow_spin(f, 200);
    cr_assert_eq(flow_count(f, "q", "due"), 2);
    cr_assert_eq(flow_configure(f, "q", "forward=stream", NULL), 0);
    flow_until(f, flow_stats(serves).forwarded == 2);
    flow_end(f, "q");
}

Test(forward, ends_with_unlisten)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);
    struct flow_handler w = {.way = FLOW_DONE};

    cr_assert_eq(lapse_unlisten(f->l, "q"), LAPSE_ENOENT);
    cr_assert_eq(forward(f, "stream", NULL), 0);
    cr_assert_eq(forward(f, "stream", NULL), LAPSE_EEXIST);
    cr_assert_eq(lapse_listen(f->l, "q", NULL, flow_on_job, &w), LAPSE_EEXIST);
    cr_assert_eq(lapse_unlisten(f->l, "q"), 0);
    cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    flow_spin(f, 100);
    cr_assert_eq(flow_count(f, "q", "due"), 1);
    cr_assert_eq(forward(f, NULL, NULL), 0);
    flow_until(f, flow_stats(f->l).forwarded == 1);
    flow_end(f, "q");
}

Test(forward, that_is_refused_leaves_the_queue_without_a_listener)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);
    struct flow_handler w = {.way = FLOW_DONE};
    char text[FLOW_TEXT];

    cr_assert_eq(forward(f, "stream:elsewhere", text), LAPSE_EINVAL);
    cr_assert(strstr(text, "forward=stream:elsewhere: must be stream, list, "), "%s", text);
    flow_listen(f, "q", &w); /* it has no other listener here */
    cr_assert_eq(forward(f, "stream", NULL), LAPSE_EEXIST);
    cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    flow_until(f, w.settled == 1);

    cr_assert_eq(lapse_forward(f->l, "r", "a b", flow_text_answered, NULL), LAPSE_EINVAL);
    cr_assert_eq(lapse_forward(f->l, "{r}", NULL, flow_text_answered, NULL), LAPSE_EINVAL);
    cr_assert_eq(lapse_forward(f->l, NULL, NULL, flow_text_answered, NULL), LAPSE_EINVAL);
    cr_assert_eq(lapse_forward(NULL, "r", NULL, flow_text_answered, NULL), LAPSE_EINVAL);
    cr_assert_eq(lapse_unlisten(f->l, "r"), LAPSE_ENOENT);
    flow_end(f, "q");
}

Test(forward, that_is_refused_does_not_end_one_that_began_after_unlisten)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);
    struct flow_answer refused = {.f = f};
    struct flow_answer accepted = {.f = f};

    cr_assert_eq(lapse_forward(f->l, "q", "stream:elsewhere", flow_text_answered, &refused), 0);
    cr_assert_eq(lapse_unlisten(f->l, "q"), 0);
    cr_assert_eq(lapse_forward(f->l, "q", "stream", flow_text_answered, &accepted), 0);
    cr_assert_eq(flow_wait(f, &refused), LAPSE_EINVAL);
    cr_assert_eq(flow_wait(f, &accepted), 0);

    cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    flow_until(f, flow_stats(f->l).forwarded == 1);
    cr_assert_eq(lapse_unlisten(f->l, "q"), 0);
    flow_end(f, "q");
}

Test(forward, of_10000_jobs_that_are_due_together_moves_each_once)
{
    enum { ALL = 10000 };
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);

    redis_do(f->server, "EVAL %s 0",
             "for i = 1, 10000 do redis.call('ZADD', 'lapse:{q}:due', 5, 'j' .. i) "
             "redis.call('HSET', 'lapse:{q}:jobs', 'j' .. i, '\\1\\0') end");
    cr_assert_eq(forward(f, "stream", NULL), 0);
    flow_until(f, flow_stats(f->l).forwarded == ALL);
    each_once(f, ALL);
    flow_end(f, "q");
}

Test(forward, by_three_listeners_moves_each_job_once)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);
    struct lapse_options o = flow_options(f);
    struct lapse *l[3] = {f->l};
    uint64_t n = 0;

    no_sweep(&o);
    cr_assert_eq(forward(f, "stream", NULL), 0);
    for (int i = 1; i < 3; i++) {
        f->l = l[i] = flow_open(f, &o);
        cr_assert_eq(forward(f, NULL, NULL), 0);
    }
    flow_until_listeners(f, "q", 3);
    for (int i = 0; i < MANY; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, i % 50, NULL), 0);
    }
    flow_poll(f, flow_count(f, "q", "due") == 0);
    flow_until(f, (n = flow_stats(l[0]).forwarded + flow_stats(l[1]).forwarded +
                       flow_stats(l[2]).forwarded) == MANY);
    each_once(f, MANY);
    flow_end(f, "q");
}

/* ---- what goes wrong ---- */
Test(forward, of_a_full_redis_waits_until_there_is_room)
{
    struct flow *f = flow_start(FLOW_FULL);

    flow_allow_log(f, "OOM");
    flow_allow_log(f, "goes through again");
    cr_assert_eq(flow_configure(f, "q", "forward=stream", NULL), 0);
    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
    redis_do(f->server, "CONFIG SET maxmemory 1");
    cr_assert_eq(forward(f, NULL, NULL), 0);
    flow_until(f, flow_logged(f, "Redis refused claim: OOM"));
    cr_assert_eq(flow_count(f, "q", "due"), 1);
    redis_do(f->server, "CONFIG SET maxmemory 0");
    flow_until(f, flow_stats(f->l).forwarded == 1);
    each_once(f, 1);
    flow_end(f, "q");
}

Test(forward, to_a_target_of_another_type_made_meanwhile_waits_until_it_is_gone)
{
    struct flow *f = flow_start(FLOW_FULL);

    flow_allow_log(f, "WRONGTYPE");
    flow_allow_log(f, "goes through again");
    cr_assert_eq(forward(f, "stream", NULL), 0);
    flow_until_listeners(f, "q", 1);
    redis_do(f->server, "SET lapse:{q}:stream x");
    cr_assert_eq(flow_schedule(f, "q", "a", 0, NULL), 0);
    flow_until(f, flow_logged(f, "WRONGTYPE"));
    cr_assert_eq(flow_count(f, "q", "due"), 1);
    redis_do(f->server, "DEL lapse:{q}:stream");
    flow_until(f, flow_stats(f->l).forwarded == 1);
    each_once(f, 1);
    flow_end(f, "q");
}

/* ---- a target that is full, and consumers ---- */
Test(forward, to_a_full_list_goes_on_when_consumers_come_back)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);
    long long taken = 0;

    cr_assert_eq(flow_configure(f, "q", "forward=list forward_max=10", NULL), 0);
    cr_assert_eq(forward(f, NULL, NULL), 0);
    for (int i = 0; i < 45; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    }
    flow_until(f, flow_stats(f->l).forwarded == 10);
    flow_spin(f, 300);
    cr_assert_eq(redis_int(f->server, "LLEN lapse:{q}:list"), 10);
    cr_assert_eq(flow_count(f, "q", "due"), 35);

    while (taken < 45) {
        flow_poll(f, redis_int(f->server, "LLEN lapse:{q}:list") > 0);
        cr_assert_leq(redis_int(f->server, "LLEN lapse:{q}:list"), 10);
        redis_do(f->server, "RPOP lapse:{q}:list");
        taken++;
    }
    flow_until(f, flow_stats(f->l).forwarded == 45); /* the answer comes behind what it tells */
    flow_end(f, "q");
}

/* Reads and acknowledges all that there is for a group. */
static long long consume(struct flow *f, const char *group, const char *consumer)
{
    static const char script[] =
        "local read = redis.call('XREADGROUP', 'GROUP', ARGV[1], ARGV[2], 'COUNT', 100, "
        "'STREAMS', KEYS[1], '>') if not read then return 0 end "
        "for _, e in ipairs(read[1][2]) do redis.call('XACK', KEYS[1], ARGV[1], e[1]) end "
        "return #read[1][2]";

    return redis_int(f->server, "EVAL %s 1 lapse:{q}:stream %s %s", script, group, consumer);
}

Test(forward, to_a_full_stream_goes_on_when_all_groups_have_acknowledged_and_leaves_it_empty)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_options o = flow_options(f);
    long long read[2] = {0};

    o.sweep_ms = 100;
    f->l = flow_open(f, &o);
    cr_assert_eq(
        flow_configure(f, "q", "forward=stream forward_max=10 forward_groups=one,two", NULL), 0);
    cr_assert_eq(forward(f, NULL, NULL), 0);
    for (int i = 0; i < 45; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    }

    flow_until(f, flow_stats(f->l).forwarded == 10);
    read[0] = consume(f, "one", "c");
    cr_assert_eq(read[0], 10);
    flow_spin(f, 300);
    cr_assert_eq(entries(f), 10); /* the other group has read nothing */

    while (read[0] + read[1] < 90) {
        flow_spin(f, 5);
        cr_assert_leq(entries(f), 10);
        read[1] += consume(f, "two", "c");
        read[0] += consume(f, "one", "c");
    }
    flow_poll(f, entries(f) == 0);
    cr_assert(read[0] == 45 && read[1] == 45);
    flow_end(f, "q");
}

/* XACK frees no memory, and a consumer that is gone keeps its entries (seed-001). */
Test(forward, keeps_what_a_consumer_has_not_acknowledged_and_frees_the_rest)
{
    struct flow *f = flow_start(FLOW_FULL);
    struct lapse_options o = flow_options(f);

    o.sweep_ms = 50;
    f->l = flow_open(f, &o);
    cr_assert_eq(flow_configure(f, "q", "forward=stream forward_groups=g", NULL), 0);
    cr_assert_eq(forward(f, NULL, NULL), 0);
    for (int i = 0; i < 10; i++) {
        cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    }
    flow_until(f, flow_stats(f->l).forwarded == 10);
    cr_assert_eq(consume(f, "g", "c"), 10);
    flow_poll(f, entries(f) == 0);

    cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    flow_until(f, flow_stats(f->l).forwarded == 11);
    redis_do(f->server, "XREADGROUP GROUP g gone STREAMS lapse:{q}:stream >");
    cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    flow_until(f, flow_stats(f->l).forwarded == 12);
    cr_assert_eq(consume(f, "g", "c"), 1);
    flow_spin(f, 200);
    cr_assert_eq(entries(f), 2);
    flow_end(f, "q");
}

/* What a blocked consumer is given before it dies. */
static void give_and_die(struct flow *f, const char *command, uint64_t forwarded)
{
    redisContext *consumer = redis_connect(f->server);

    redis_send(consumer, command);
    cr_assert_eq(flow_schedule(f, "q", "i", 0, NULL), 0);
    flow_until(f, flow_stats(f->l).forwarded == forwarded);
    flow_poll(f, redis_int(f->server, "LLEN lapse:{q}:list") == 0);
    redisFree(consumer);
}

Test(forward, to_a_list_loses_what_a_dead_consumer_popped_but_not_what_it_moved_to_its_own)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);

    cr_assert_eq(flow_configure(f, "q", "forward=list forward_element=id", NULL), 0);
    cr_assert_eq(forward(f, NULL, NULL), 0);

    give_and_die(f, "BRPOP lapse:{q}:list 0", 1);
    cr_assert_eq(redis_int(f->server, "EXISTS lapse:{q}:list lapse:{q}:mine"), 0);
    cr_assert_eq(flow_get(f, "q", "i", NULL), LAPSE_ENOENT);

    give_and_die(f, "BLMOVE lapse:{q}:list lapse:{q}:mine RIGHT LEFT 0", 2);
    redis_do(f->server, "LMOVE lapse:{q}:mine lapse:{q}:list RIGHT RIGHT");
    char *got = redis_str(f->server, "RPOP lapse:{q}:list");
    cr_assert_str_eq(got, "i");
    free(got);
    flow_end(f, "q");
}

Test(forward, of_a_paused_queue_waits)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);

    cr_assert_eq(forward(f, "stream", NULL), 0);
    cr_assert_eq(flow_configure(f, "q", "paused=9007199254740992", NULL), 0);
    cr_assert_eq(flow_schedule(f, "q", NULL, 0, NULL), 0);
    flow_spin(f, 100);
    cr_assert_eq(flow_stats(f->l).forwarded, 0);
    cr_assert_eq(flow_configure(f, "q", "paused=", NULL), 0);
    flow_until(f, flow_stats(f->l).forwarded == 1);
    flow_end(f, "q");
}

Test(forward, outlives_a_cut_connection)
{
    struct flow *f = flow_start_opts(FLOW_FULL, NULL, no_sweep);

    flow_allow_log(f, "connect");
    cr_assert_eq(forward(f, "stream", NULL), 0);
    for (int i = 0; i < 20; i++) {
        struct lapse_spec s = flow_job_spec("q", NULL, 10 * i);
        cr_assert_eq(lapse_schedule(f->l, &s, NULL, NULL), 0);
    }
    flow_until(f, flow_stats(f->l).scheduled == 20);
    flow_heard(f); /* the connection for events is subscribed, and no normal one */
    for (int i = 0; i < 3; i++) {
        redis_do(f->server, "CLIENT KILL TYPE normal SKIPME yes");
        flow_until(f, flow_stats(f->l).reconnects == (uint64_t)i + 1);
        flow_spin(f, 20);
    }
    flow_poll(f, flow_count(f, "q", "due") == 0);
    each_once(f, 20);
    flow_end(f, "q");
}
