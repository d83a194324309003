/* SPDX-License-Identifier: MIT */
/* lapse forward: what it sets, prints and exits with, and how it ends. */
#include "tool.h"
#include <poll.h>
#include <signal.h>

static void stop(struct proc *p, int signum, int status)
{
    proc_signal(p, signum);
    proc_wait(p, PROC_WAIT_MS);
    cr_assert_eq(p->status, status, "%d: %s", p->status, p->err);
    proc_free(p);
}

/* Or more. */
static void until_entries(struct server *s, long long n)
{
    int64_t end_ms = test_now_ms() + 10000;

    while (redis_int(s, "XLEN lapse:{q}:stream") < n) {
        cr_assert_lt(test_now_ms(), end_ms, "not %lld entries", n);
        poll(NULL, 0, 3);
    }
}

Test(forward, serves_a_stream_until_it_is_stopped)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
    struct server *s = tool_redis();

    for (int i = 0; i < 3; i++) {
        struct proc *p = lapse_start("forward", "q", "--to-stream", "--group", "one", "--group",
                                     "two", "--max", "100");
        until_out(p, "{\"queue\":\"q\",\"forward\":\"stream:lapse:{q}:stream\",\"forward_max\":100,"
                     "\"forward_groups\":\"one,two\"}\n");
        until_depth(s, "q", "listeners", 1);
        expect(lapse("schedule", "q", "--id", "i", "--in", "10ms", "body"), 0, NULL, NULL);
        until_entries(s, i + 1);
        stop(p, signals[i], 0);
        until_depth(s, "q", "listeners", 0);
    }

    struct proc *p = shell("redis-cli -s ${LAPSE_URL#unix://} XINFO GROUPS 'lapse:{q}:stream'");
    cr_assert(has(p, "one") && has(p, "two"), "%s", p->out);
    expect(p, 0, NULL, NULL);
    expect(lapse("get", "q", "i"), 1, "", "no such job");
    server_stop(s);
}

Test(forward, without_a_target_serves_the_one_that_is_set)
{
    struct server *s = tool_redis();

    expect(lapse("forward", "q"), 2, "", "q: has no target; use --to-stream or --to-list");
    expect(lapse("configure", "q", "forward=list"), 0, NULL, NULL);
    struct proc *p = lapse_start("forward", "q", "--format", "text");
    until_out(p, "q: forward=list:lapse:{q}:list\n");
    stop(p, SIGTERM, 0);
    server_stop(s);
}

Test(forward, with_drain_ends_when_what_was_due_is_forwarded)
{
    static const char script[] = "for i = 1, 250 do redis.call('ZADD', 'lapse:{q}:due', 1, i) "
                                 "redis.call('HSET', 'lapse:{q}:jobs', i, '\\1\\0body') end";
    struct server *s = tool_redis();

    redis_do(s, "EVAL %s 0", script);
    expect(lapse("schedule", "q", "--in", "1h"), 0, NULL, NULL);
    expect(lapse("forward", "q", "--to-list", "--element", "id", "--drain"), 0,
           "\"forward_element\":\"id\"", NULL);
    cr_assert_eq(redis_int(s, "LLEN lapse:{q}:list"), 250);
    cr_assert_eq(redis_int(s, "ZCARD lapse:{q}:due"), 1);
    server_stop(s);
}

Test(forward, with_off_takes_the_target_away)
{
    struct server *s = tool_redis();

    expect(lapse("forward", "q", "--to-list", "--key", "x:{q}", "--element", "body", "--drain"), 0,
           "\"forward\":\"list:x:{q}\"", NULL);
    expect(lapse("forward", "q", "--off"), 0, "{\"queue\":\"q\"}\n", NULL);
    expect(lapse("schedule", "q", "--id", "i", "--in", "0s"), 0, NULL, NULL);
    expect(lapse("listen", "q", "--count", "1"), 0, "\"id\":\"i\"", NULL);
    server_stop(s);
}

Test(forward, with_wrong_options_exits_2_and_changes_nothing)
{
    static const char *const bad[][2] = {
        {"--to-stream --to-list", "use only one of them"},
        {"--off --to-list", "--off: takes no other option"},
        {"--off --max 5", "--off: takes no other option"},
        {"--off --drain", "--off: takes no other option"},
        {"--max 5", "missing option --to-stream or --to-list"},
        {"--key 'x{q}'", "missing option --to-stream or --to-list"},
        {"--to-list --group g", "--group 'g': only with --to-stream"},
        {"--to-stream --group a,b", "--group 'a,b': must be a name without comma and space"},
        {"--to-stream --group ''", "--group '': must be a name"},
        {"--to-stream --element id", "--element 'id': only with --to-list"},
        {"--to-list --element key", "q: forward_element=key: must be job, body or id"},
        {"--to-list --element 'id paused=5'", "must be job, body or id"},
        {"--to-list --max 0", "--max '0': must be a whole number"},
        {"--to-stream --key x", "forward=stream:x: must be stream, list, stream:KEY or list:KEY"},
        {"--to-stream --key '{r}{q}'", "where {q} is the first hash tag of KEY"},
        {"--to-stream --key 'a b'", "--key 'a b': must be at most 255 bytes, without spaces"},
        {"--to-stream --key 'lapse:{q}:due'", "none of the keys of lapse"},
        {"--to-stream x", "unexpected argument 'x'"},
    };
    struct server *s = tool_redis();

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char line[200];
        snprintf(line, sizeof line, "$lapse forward q %s", bad[i][0]);
        expect(shell(line), 2, "", bad[i][1]);
    }
    cr_assert_eq(redis_int(s, "DBSIZE"), 0);

    redis_do(s, "SET lapse:{q}:stream x");
    expect(lapse("forward", "q", "--to-stream"), 2, "", "the type of this key is string");
    expect(lapse("forward"), 2, "", "missing argument QUEUE");
    server_stop(s);
}

/* Three forwarders, of which one is killed again and again: each job is there once. */
Test(forward, by_three_of_which_one_dies_every_time_moves_each_job_once)
{
    enum { ROUNDS = 12, JOBS = 50 };
    static const char script[] =
        "for i = 1, 50 do local id = ARGV[1] .. '-' .. i local due = ARGV[2] + i * 4 "
        "redis.call('ZADD', 'lapse:{q}:due', due, id) "
        "redis.call('HSET', 'lapse:{q}:jobs', id, '\\1\\0body') end";
    static const char count[] =
        "local seen, n = {}, 0 for _, e in ipairs(redis.call('XRANGE', KEYS[1], '-', '+')) do "
        "if not seen[e[2][2]] then n = n + 1 end seen[e[2][2]] = true end return n";
    struct server *s = tool_redis();
    struct proc *p[3];

    for (int i = 0; i < 3; i++) {
        p[i] = lapse_start("forward", "q", "--to-stream", "-o", "sweep_ms=200");
    }
    for (int round = 0; round < ROUNDS; round++) {
        char number[16];
        char now[24];
        snprintf(number, sizeof number, "%d", round);
        snprintf(now, sizeof now, "%lld", (long long)redis_now_ms(s));
        redis_do(s, "EVAL %s 0 %s %s", script, number, now);
        until_entries(s, round * JOBS + JOBS / 2);
        proc_signal(p[round % 3], SIGKILL);
        proc_wait(p[round % 3], PROC_WAIT_MS);
        proc_free(p[round % 3]);
        p[round % 3] = lapse_start("forward", "q", "--to-stream", "-o", "sweep_ms=200");
    }

    until_depth(s, "q", "due", 0);
    until_entries(s, ROUNDS * JOBS);
    cr_assert_eq(redis_int(s, "XLEN lapse:{q}:stream"), ROUNDS * JOBS);
    cr_assert_eq(redis_int(s, "EVAL %s 1 lapse:{q}:stream", count), ROUNDS * JOBS);
    for (int i = 0; i < 3; i++) {
        until_out(p[i], "\"forward\":\"stream:"); /* before that it may not hear signals yet */
        stop(p[i], SIGTERM, 0);
    }
    server_stop(s);
}
