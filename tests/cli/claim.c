/* SPDX-License-Identifier: MIT */
/* claim, done, retry, fail, release, renew: jobs for who has no handler, from a shell. */
#include "tool.h"
#include "audit.h"
#include <signal.h>
#include <unistd.h>

enum { HOUR = 3600000 };

/* The token that a claim has printed, as a word of the next command line. */
static const char *claim_one(const char *id)
{
    static char words[8][24];
    static unsigned n;
    char *word = words[n++ % 8];
    struct proc *p = lapse("claim", "q", "--id", id);

    snprintf(word, sizeof words[0], "%lld", member(p->out, "token"));
    expect(p, 0, "\"state\":\"running\"", NULL);
    return word;
}

static const char *put_running(const char *id)
{
    expect(lapse("schedule", "q", "--id", id, "--in", "0s", "x"), 0, NULL, NULL);
    return claim_one(id);
}

/* ---- claim ---- */
Test(claim, prints_the_jobs_with_their_tokens_and_leaves_them_leased)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "a", "--at", "2026-01-01T00:00Z", "one"), 0, NULL, NULL);
    expect(lapse("schedule", "q", "--id", "b", "--at", "2026-01-02T00:00Z", "two"), 0, NULL, NULL);
    expect(lapse("schedule", "q", "--id", "c", "--in", "1h"), 0, NULL, NULL);

    int64_t before_ms = redis_now_ms(s);
    struct proc *p = lapse("claim", "q", "-n", "10", "--lease", "1h");
    cr_assert_eq(count_of(p->out, "\n"), 2);
    cr_assert(strstr(p->out, "\"id\":\"a\"") < strstr(p->out, "\"id\":\"b\""));
    cr_assert(has(p, "\"body\":\"one\"") && has(p, "\"try\":1") && member(p->out, "token") > 0);
    cr_assert_geq(member(p->out, "until_ms"), before_ms + HOUR);
    cr_assert_eq(member(p->out, "until_ms"), redis_int(s, "ZSCORE lapse:{q}:run a"));
    expect(p, 0, NULL, NULL);
    cr_assert_eq(redis_int(s, "ZCARD lapse:{q}:run"), 2);
    expect(lapse("claim", "q", "-n", "10"), 1, "", "");
    cr_assert_eq(audit(s, "lapse", "q", NULL), 0);
    server_stop(s);
}

Test(claim, takes_one_where_no_number_is_given)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--in", "0s"), 0, NULL, NULL);
    expect(lapse("schedule", "q", "--in", "0s"), 0, NULL, NULL);
    struct proc *p = lapse("claim", "q");
    cr_assert_eq(count_of(p->out, "\n"), 1);
    expect(p, 0, NULL, NULL);
    p = lapse("claim", "q", "--format", "text");
    expect(p, 0, "token   ", NULL);
    server_stop(s);
}

/* "take by id" of review/peers: its names are of beanstalkd's tests. */
Test(claim, take_by_id)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "a", "--in", "0s"), 0, NULL, NULL);
    expect(lapse("schedule", "q", "--id", "b", "--in", "0s"), 0, NULL, NULL);
    expect(lapse("claim", "q", "--id", "b"), 0, "\"id\":\"b\"", NULL);
    expect(lapse("claim", "q", "--id", "b"), 1, "", "");
    expect(lapse("claim", "q", "--id", "nothing"), 1, "", "");
    expect(lapse("claim", "q", "-n", "5"), 0, "\"id\":\"a\"", NULL);
    server_stop(s);
}

Test(claim, waits_for_a_job_and_no_longer_than_it_was_told)
{
    struct server *s = tool_redis();

    expect(lapse("claim", "q", "--wait", "50ms"), 1, "", "");

    struct proc *p = lapse_start("claim", "q", "--wait", "1h");
    until_depth(s, "q", "listeners", 1);
    expect(lapse("schedule", "q", "--id", "a", "--in", "20ms"), 0, NULL, NULL);
    proc_wait(p, PROC_WAIT_MS);
    expect(p, 0, "\"id\":\"a\"", NULL);
    /* it has left the other listeners; a Redis that stands still does not hold it up */
    until_depth(s, "q", "listeners", 0);
    cr_assert_eq(redis_int(s, "ZCARD lapse:{q}:run"), 1);
    server_stop(s);
}

Test(claim, of_a_paused_queue_prints_nothing)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "a", "--in", "0s"), 0, NULL, NULL);
    expect(lapse("pause", "q"), 0, NULL, NULL);
    expect(lapse("claim", "q"), 1, "", "");
    expect(lapse("claim", "q", "--id", "a"), 1, "", "");
    cr_assert_eq(redis_int(s, "ZCARD lapse:{q}:due"), 1);
    expect(lapse("unpause", "q"), 0, NULL, NULL);
    expect(lapse("claim", "q", "--id", "a"), 0, "\"state\":\"running\"", NULL);
    cr_assert_eq(audit(s, "lapse", "q", NULL), 0);
    server_stop(s);
}

Test(claim, of_a_forwarded_queue_prints_nothing_and_forwards)
{
    struct server *s = tool_redis();

    expect(lapse("configure", "q", "forward=stream"), 0, NULL, NULL);
    expect(lapse("schedule", "q", "--in", "0s"), 0, NULL, NULL);
    expect(lapse("claim", "q"), 1, "", "");
    cr_assert_eq(redis_int(s, "XLEN lapse:{q}:stream"), 1);
    cr_assert_eq(redis_int(s, "ZCARD lapse:{q}:due"), 0);
    server_stop(s);
}

Test(claim, that_is_ended_by_a_signal_while_it_waits_leaves_the_other_listeners)
{
    static const int signals[] = {SIGTERM, SIGINT};
    struct server *s = tool_redis();

    for (size_t i = 0; i < 2; i++) {
        struct proc *p = lapse_start("claim", "q", "--wait", "1h");
        until_depth(s, "q", "listeners", 1);
        proc_signal(p, signals[i]);
        proc_wait(p, PROC_WAIT_MS);
        expect(p, 128 + signals[i], "", "");
        until_depth(s, "q", "listeners", 0);
    }

    server_stop(s);
}

Test(claim, whose_output_is_lost_gives_its_jobs_back)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "a", "--in", "0s"), 0, NULL, NULL);
    expect(shell("$lapse claim q > /dev/full"), 74, NULL, "stdout");
    cr_assert_eq(redis_int(s, "ZCARD lapse:{q}:due"), 1);
    expect(lapse("get", "q", "a"), 0, "\"state\":\"waiting\"", NULL);
    expect(lapse("get", "q", "a"), 0, "\"try\":0", NULL);
    server_stop(s);
}

Test(claim, of_a_redis_that_may_evict_jobs_is_refused_where_it_waits)
{
    struct server *s = tool_redis();

    redis_do(s, "CONFIG SET maxmemory-policy allkeys-lru");
    expect(lapse("claim", "q", "--wait", "1h"), 78, "", "may evict");
    expect(lapse("schedule", "q", "--id", "a", "--in", "0s"), 0, NULL, NULL);
    expect(lapse("claim", "q", "--wait", "1h", "-o", "flags=may_evict"), 0, "\"id\":\"a\"", NULL);
    server_stop(s);
}

/* ---- done, retry, fail, release, renew ---- */
Test(done, ends_the_job_of_a_token_and_a_second_time_is_refused)
{
    struct server *s = tool_redis();
    const char *token = put_running("a");
    char expected[100];

    struct proc *p = lapse("done", "q", "a", token);
    snprintf(expected, sizeof expected,
             "{\"queue\":\"q\",\"id\":\"a\",\"token\":%s,\"settled\":\"done\"}\n", token);
    cr_assert_str_eq(p->out, expected);
    expect(p, 0, NULL, NULL);
    expect(lapse("done", "q", "a", token), 1, "", "q/a: the lease ended");
    no_jobs(s, "q");
    server_stop(s);
}

Test(retry, puts_the_job_of_a_token_back)
{
    struct server *s = tool_redis();
    const char *token = put_running("a");
    int64_t before_ms = redis_now_ms(s);

    expect(lapse("retry", "q", "a", token, "--in", "1h", "--reason", "no answer"), 0,
           "\"settled\":\"retry\"", NULL);
    struct proc *p = lapse("get", "q", "a");
    cr_assert_geq(member(p->out, "due_ms"), before_ms + HOUR);
    expect(p, 0, "\"reason\":\"no answer\"", NULL);
    server_stop(s);
}

Test(retry, without_in_waits_for_the_backoff_of_the_job)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "a", "--in", "0s", "--backoff", "1h"), 0, NULL, NULL);
    const char *token = claim_one("a");
    int64_t before_ms = redis_now_ms(s);
    expect(lapse("retry", "q", "a", token), 0, NULL, NULL);
    long long due_ms = redis_int(s, "ZSCORE lapse:{q}:due a");
    cr_assert(due_ms >= before_ms + HOUR - HOUR / 4 && due_ms <= redis_now_ms(s) + HOUR);
    server_stop(s);
}

/* What a job that was scheduled so waits after each of its first runs, and how often it may run. */
static const struct {
    const char *backoff, *tries;
    int64_t least_ms[3], most_ms[3];
} backoffs[] = {
    {"1h", "\"tries\":10,", {2700000}, {3600000}},
    {"fixed:2h", "\"tries\":10,", {7200000, 7200000}, {7200000, 7200000}},
    {"30m,2h,5m", "\"tries\":10,", {1800000, 7200000, 300000}, {1800000, 7200000, 300000}},
    {"delayq", "\"tries\":\"forever\"", {2000, 4000, 8000}, {2000, 4000, 8000}},
    {"asynq", "\"tries\":26,", {15000, 16000, 31000}, {45000, 76000, 121000}},
    {"sidekiq", "\"tries\":26,", {15000, 16000, 31000}, {25000, 36000, 61000}},
};

Test(retry, without_in_waits_as_the_schedule_has_said)
{
    struct server *s = tool_redis();

    for (size_t i = 0; i < sizeof backoffs / sizeof *backoffs; i++) {
        expect(lapse("schedule", "q", "--id", "a", "--in", "0s", "--backoff", backoffs[i].backoff),
               0, NULL, NULL);
        for (size_t k = 0; k < 3 && backoffs[i].most_ms[k]; k++) {
            const char *token = claim_one("a");
            int64_t before_ms = redis_now_ms(s);
            expect(lapse("retry", "q", "a", token), 0, NULL, NULL);
            long long due_ms = redis_int(s, "ZSCORE lapse:{q}:due a");
            cr_assert(due_ms >= before_ms + backoffs[i].least_ms[k] &&
                          due_ms <= redis_now_ms(s) + backoffs[i].most_ms[k],
                      "%s, run %zu: %lld ms", backoffs[i].backoff, k + 1,
                      due_ms - (long long)before_ms);
            expect(lapse("reschedule", "q", "a", "--in", "0s"), 0, NULL, NULL);
        }
        expect(lapse("get", "q", "a"), 0, backoffs[i].tries, NULL);
        expect(lapse("cancel", "q", "a"), 0, NULL, NULL);
    }

    /* another number of tries and another limit may stand beside it */
    expect(lapse("schedule", "q", "--id", "a", "--in", "0s", "--tries", "3", "--backoff", "delayq",
                 "--backoff-max", "1s"),
           0, "\"tries\":3,", NULL);
    int64_t before_ms = redis_now_ms(s);
    expect(lapse("retry", "q", "a", claim_one("a")), 0, NULL, NULL);
    cr_assert_geq(redis_int(s, "ZSCORE lapse:{q}:due a"), before_ms + 1000);
    cr_assert_leq(redis_int(s, "ZSCORE lapse:{q}:due a"), redis_now_ms(s) + 1000);
    server_stop(s);
}

Test(claim, of_a_job_with_a_longest_run_of_its_own_is_as_of_any_other)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "a", "--in", "0s", "--max-run", "5m"), 0, NULL, NULL);
    static const char find[] =
        "return string.find(redis.call('HGET', 'lapse:{q}:jobs', 'a'), 'r\\006300000', 1, true)";
    cr_assert_eq(redis_int(s, "EVAL %s 0", find), 4);
    expect(lapse("done", "q", "a", claim_one("a")), 0, NULL, NULL);
    server_stop(s);
}

Test(snooze, puts_the_job_of_a_token_back_without_using_up_its_only_try)
{
    struct server *s = tool_redis();
    int64_t before_ms = redis_now_ms(s);

    expect(lapse("schedule", "q", "--id", "a", "--in", "0s", "--tries", "1"), 0, NULL, NULL);
    expect(lapse("snooze", "q", "a", claim_one("a"), "--in", "1h", "--reason", "not paid"), 0,
           "\"settled\":\"snooze\"", NULL);
    struct proc *p = lapse("get", "q", "a");
    cr_assert_geq(member(p->out, "due_ms"), before_ms + HOUR);
    cr_assert(has(p, "\"state\":\"waiting\"") && has(p, "\"try\":0"), "%s", p->out);
    expect(p, 0, "\"reason\":\"not paid\"", NULL);
    server_stop(s);
}

Test(snooze, without_in_is_refused)
{
    expect(lapse("snooze", "q", "a", "7"), 2, "", "missing option --in, such as --in 30m");
    expect(lapse("snooze", "q", "a", "7", "--in", "-5s"), 2, "", "--in");
}

Test(fail, makes_the_job_of_a_token_dead)
{
    struct server *s = tool_redis();

    expect(lapse("fail", "q", "a", put_running("a"), "--reason", "no such address"), 0,
           "\"settled\":\"fail\"", NULL);
    expect(lapse("get", "q", "a"), 0, "\"state\":\"dead\"", NULL);
    expect(lapse("get", "q", "a"), 0, "no such address", NULL);
    server_stop(s);
}

Test(release, gives_the_job_of_a_token_back_unbegun)
{
    struct server *s = tool_redis();

    expect(lapse("release", "q", "a", put_running("a"), "--format", "text"), 0, " release\n", NULL);
    expect(lapse("get", "q", "a"), 0, "\"try\":0", NULL);
    expect(lapse("claim", "q"), 0, "\"id\":\"a\"", NULL);
    server_stop(s);
}

Test(renew, makes_the_lease_of_a_token_longer)
{
    struct server *s = tool_redis();
    const char *token = put_running("a");
    int64_t before_ms = redis_now_ms(s);

    expect(lapse("renew", "q", "a", token, "--for", "1h"), 0, "\"settled\":\"renew\"", NULL);
    cr_assert_geq(redis_int(s, "ZSCORE lapse:{q}:run a"), before_ms + HOUR);
    expect(lapse("renew", "q", "a", token), 0, NULL, NULL);
    cr_assert_leq(redis_int(s, "ZSCORE lapse:{q}:run a"), redis_now_ms(s) + 30000);
    expect(lapse("done", "q", "a", token), 0, NULL, NULL);
    server_stop(s);
}

Test(done, a_stale_token_is_refused_at_each_of_the_six_and_changes_nothing)
{
    static const char *const ways[] = {"done", "retry", "fail", "release", "renew"};
    struct server *s = tool_redis();
    const char *old = put_running("a");

    expect(lapse("release", "q", "a", old), 0, NULL, NULL);
    const char *token = claim_one("a");
    char *before = redis_str(s, "HGET lapse:{q}:attempts a");
    long long until_ms = redis_int(s, "ZSCORE lapse:{q}:run a");
    expect(lapse("snooze", "q", "a", old, "--in", "0s"), 1, "", "the lease ended");
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        expect(lapse(ways[i], "q", "a", old), 1, "", "the lease ended");
        expect(lapse(ways[i], "q", "other", token), 1, "", "the lease ended");
    }

    char *after = redis_str(s, "HGET lapse:{q}:attempts a");
    cr_assert_str_eq(after, before);
    cr_assert_eq(redis_int(s, "ZSCORE lapse:{q}:run a"), until_ms);
    expect(lapse("done", "q", "a", token), 0, NULL, NULL);
    free(before);
    free(after);
    no_jobs(s, "q");
    server_stop(s);
}

/* ---- as people write it ---- */
static const char WORKER[] =
    "while job=$($lapse claim q --wait 1s); do "
    "id=$(expr \"$job\" : '.*\"id\":\"\\([^\"]*\\)') && "
    "token=$(expr \"$job\" : '.*\"token\":\\([0-9]*\\)') && "
    "body=$(expr \"$job\" : '.*\"body\":\"\\([^\"]*\\)') && "
    "echo \"$body\" >> \"$TMPDIR/out\" && $lapse done q $id $token > /dev/null || exit 9; done";

Test(claim, a_loop_of_claim_work_and_done_does_each_job_once)
{
    enum { N = 20 };
    struct server *s = tool_redis();
    char folder[] = "/tmp/lapse-loop-XXXXXX";
    char path[64];

    cr_assert(mkdtemp(folder));
    setenv("TMPDIR", folder, 1);
    for (int i = 0; i < N; i++) {
        char body[16];
        snprintf(body, sizeof body, "work-%d", i);
        expect(lapse("schedule", "q", "--in", i % 2 ? "0s" : "300ms", body), 0, NULL, NULL);
    }

    expect(shell(WORKER), 0, NULL, NULL);
    no_jobs(s, "q");

    snprintf(path, sizeof path, "%s/out", folder);
    char *out = test_read_file(path, NULL);
    for (int i = 0; i < N; i++) {
        char line[16];
        snprintf(line, sizeof line, "work-%d\n", i);
        cr_assert_eq(count_of(out, line), 1, "%s: %s", line, out);
    }
    free(out);
    unlink(path);
    rmdir(folder);
    server_stop(s);
}

/* ---- errors ---- */
Test(claim, of_a_job_that_keeps_its_errors_get_and_list_show_them_all)
{
    struct server *s = tool_redis();

    expect(lapse("schedule", "q", "--id", "a", "--in", "0s", "--errors", "x"), 0,
           "\"created\":true}\n", NULL);
    expect(lapse("get", "q", "a"), 0, "\"body\":\"x\"}\n", NULL);
    expect(lapse("retry", "q", "a", claim_one("a"), "--in", "0s", "--reason", "first \"try\""), 0,
           NULL, NULL);
    int64_t before_ms = redis_now_ms(s);
    expect(lapse("fail", "q", "a", claim_one("a"), "--reason", "second"), 0, NULL, NULL);

    struct proc *p = lapse("get", "q", "a");
    const char *errors = strstr(p->out, "\"errors\":[{\"at_ms\":");
    cr_assert(errors, "%s", p->out);
    cr_assert_geq(member(errors, "at_ms"), before_ms);
    expect(p, 0, ",\"try\":2,\"reason\":\"second\"},{\"at_ms\":", NULL);
    expect(lapse("get", "q", "a"), 0, ",\"try\":1,\"reason\":\"first \\\"try\\\"\"}]}\n", NULL);
    expect(lapse("list", "q", "--state", "dead"), 0,
           ",\"try\":1,\"reason\":\"first \\\"try\\\"\"}]}\n", NULL);
    expect(lapse("get", "q", "a", "--format", "text"), 0, "\nerror   2", NULL);
    expect(lapse("get", "q", "a", "--format", "text"), 0, "Z try 1: first \"try\"\n", NULL);

    expect(lapse("requeue", "q"), 0, "\"requeued\":1", NULL);
    expect(lapse("get", "q", "a"), 0, "\"body\":\"x\"}\n", NULL);
    cr_assert_eq(audit(s, "lapse", "q", NULL), 0);
    server_stop(s);
}
