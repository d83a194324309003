/* SPDX-License-Identifier: MIT */
/* cancel, reschedule, requeue, run: several ids, and selections. */
#include "tool.h"
#include "audit.h"
#include "proxy.h"

/* n dead jobs, 1 to n, with the reason "HTTP 500" or, every third, "HTTP 404". */
static void make_dead(struct server *s, int n)
{
    redis_do(s, "EVAL %s 0 %d",
             "for i = 1, ARGV[1] do redis.call('ZADD', 'lapse:{q}:dead', i, i) "
             "redis.call('HSET', 'lapse:{q}:jobs', i, '\\1\\0body') "
             "redis.call('HSET', 'lapse:{q}:attempts', i, '1 1 me 10 10 1 1 HTTP ' .. "
             "(i % 3 == 0 and '404' or '500')) end",
             n);
}

static void schedule(const char *id, const char *in)
{
    expect(lapse("schedule", "q", "--id", id, "--in", in, "body"), 0, NULL, NULL);
}

Test(selection, of_several_ids_prints_each_and_says_no_to_those_that_are_not_there)
{
    struct server *s = tool_redis();

    schedule("a", "1h");
    schedule("b", "1h");
    schedule("c", "1h");
    struct proc *p = lapse("reschedule", "q", "a", "none", "b", "--in", "2h");
    cr_assert(has(p, "\"id\":\"a\"") && has(p, "\"id\":\"b\"") && count_of(p->out, "\n") == 2, "%s",
              p->out);
    expect(p, 1, NULL, "q/none: no such job");

    p = lapse("cancel", "q", "a", "none", "b", "c", "c");
    cr_assert_eq(count_of(p->out, "\"state\":\"cancelled\""), 3);
    cr_assert_eq(count_of(p->err, "no such job"), 2);
    expect(p, 1, NULL, "q/c: no such job");
    no_jobs(s, "q");
    server_stop(s);
}

Test(selection, of_more_ids_than_may_be_pending_takes_them_all)
{
    struct server *s = tool_redis();

    make_dead(s, 12000);
    struct proc *p = shell("$lapse requeue q $(seq 12000)");
    cr_assert_eq(count_of(p->out, "\n"), 12000);
    expect(p, 0, "\"id\":\"12000\",\"state\":\"waiting\"", NULL);
    p = shell("$lapse cancel q $(seq 12000)");
    cr_assert_eq(count_of(p->out, "\n"), 12000);
    expect(p, 0, NULL, NULL);
    no_jobs(s, "q");
    server_stop(s);
}

Test(selection, of_a_state_is_cancelled_and_counted)
{
    struct server *s = tool_redis();
    char before[40];

    make_dead(s, 300);
    schedule("a", "1h");
    struct proc *p = lapse("cancel", "q", "--state", "dead", "--reason", "404", "--limit", "30");
    cr_assert_str_eq(p->out, "{\"queue\":\"q\",\"cancelled\":30,\"running\":0}\n");
    expect(p, 0, NULL, NULL);

    long long now = redis_now_ms(s);
    redis_do(s, "ZADD lapse:{q}:dead XX %lld 1", now);
    snprintf(before, sizeof before, "@%lld", now);
    p = lapse("cancel", "q", "-s", "dead", "--before", before, "--format", "text");
    cr_assert_str_eq(p->out, "q: 269 cancelled, 0 running\n");
    expect(p, 0, NULL, NULL);
    expect(lapse("get", "q", "1"), 0, "\"state\":\"dead\"", NULL);

    expect(lapse("cancel", "q", "--state", "waiting"), 0, "\"cancelled\":1,", NULL);
    expect(lapse("cancel", "q", "--state", "dead"), 0, "\"cancelled\":1,", NULL);
    expect(lapse("cancel", "q", "--state", "dead"), 0, "\"cancelled\":0,", NULL);
    no_jobs(s, "q");
    server_stop(s);
}

Test(selection, of_a_state_is_rescheduled_over_a_time_and_a_repeat_finds_nothing_to_do)
{
    struct server *s = tool_redis();
    char at[40];

    make_dead(s, 300);
    long long due = redis_now_ms(s) + 3600000;
    snprintf(at, sizeof at, "@%lld", due);
    struct proc *p = lapse("reschedule", "q", "--state", "dead", "--at", at, "--spread", "1m");
    cr_assert_str_eq(p->out, "{\"queue\":\"q\",\"rescheduled\":300,\"running\":0}\n");
    expect(p, 0, NULL, NULL);
    cr_assert_eq(redis_int(s, "ZCOUNT lapse:{q}:due %lld %lld", due, due + 59999), 300);
    cr_assert_gt(redis_int(s, "ZCOUNT lapse:{q}:due %lld %lld", due + 30000, due + 59999), 100);
    p = lapse("reschedule", "q", "--state", "waiting", "--at", at, "--spread", "1m");
    expect(p, 0, "\"rescheduled\":0,", NULL);
    cr_assert_eq(audit(s, "lapse", "q", NULL), 0);
    server_stop(s);
}

Test(selection, of_running_jobs_counts_them_and_leaves_or_asks_them)
{
    struct server *s = tool_redis();

    schedule("a", "0s");
    expect(lapse("claim", "q"), 0, "\"id\":\"a\"", NULL);
    expect(lapse("cancel", "q", "--state", "running"), 0, "\"cancelled\":0,\"running\":1", NULL);
    expect(lapse("cancel", "q", "--state", "running", "--running"), 0,
           "\"cancelled\":0,\"running\":1", NULL);
    expect(lapse("cancel", "q", "--state", "running", "--running"), 0,
           "\"cancelled\":0,\"running\":0", NULL);
    expect(lapse("get", "q", "a"), 0, "\"cancelled\":true", NULL);
    expect(lapse("reschedule", "q", "--state", "running", "--in", "1h", "--running"), 0,
           "\"rescheduled\":0,\"running\":1", NULL);
    expect(lapse("requeue", "q", "a"), 1, "", "q/a: the job is running, not dead");
    expect(lapse("run", "q", "a"), 1, "", "q/a: the job is running");
    expect(lapse("get", "q", "a"), 0, "\"state\":\"running\"", NULL);
    server_stop(s);
}

static void schedule_tagged(const char *id, const char *tag, const char *in)
{
    expect(lapse("schedule", "q", "--id", id, "--tag", tag, "--in", in, "body"), 0, NULL, NULL);
}

Test(selection, of_a_tag_is_cancelled_rescheduled_and_requeued)
{
    struct server *s = tool_redis();

    schedule_tagged("a", "customer-7", "1h");
    schedule_tagged("b", "customer-7", "1h");
    schedule_tagged("c", "customer-77", "1h");
    expect(lapse("kill", "q", "b"), 0, NULL, NULL);
    expect(lapse("requeue", "q", "--tag", "customer-77"), 0, "\"requeued\":0,", NULL);
    expect(lapse("requeue", "q", "--tag", "customer-7"), 0, "\"requeued\":1,\"running\":0", NULL);
    expect(lapse("claim", "q"), 0, "\"id\":\"b\"", NULL);
    expect(lapse("reschedule", "q", "--tag", "customer-7", "--in", "2h", "--spread", "1m"), 0,
           "\"rescheduled\":1,\"running\":1", NULL);
    expect(lapse("cancel", "q", "--state", "waiting", "--tag", "customer-7", "-n", "5"), 0,
           "\"cancelled\":1,\"running\":0", NULL);
    expect(lapse("cancel", "q", "--tag", "customer-7", "--running"), 0,
           "\"cancelled\":0,\"running\":1", NULL);
    expect(lapse("get", "q", "b"), 0, "\"cancelled\":true", NULL);
    expect(lapse("get", "q", "c"), 0, "\"state\":\"waiting\"", NULL);
    cr_assert_eq(audit(s, "lapse", "q", NULL), 0);
    server_stop(s);
}

Test(requeue, takes_the_dead_alone)
{
    struct server *s = tool_redis();

    make_dead(s, 9);
    schedule("a", "1h");
    struct proc *p = lapse("requeue", "q", "3", "a", "none", "1");
    cr_assert_eq(count_of(p->out, "\"try\":0"), 2);
    cr_assert(strstr(p->err, "q/a: the job is waiting, not dead"), "%s", p->err);
    expect(p, 1, "\"state\":\"waiting\"", "q/none: no such job");
    cr_assert_eq(redis_int(s, "ZCOUNT lapse:{q}:due %lld +inf", (long long)redis_now_ms(s) + 1000),
                 1);

    expect(lapse("requeue", "q", "--reason", "404"), 0, "\"requeued\":2,\"running\":0", NULL);
    expect(lapse("requeue", "q", "--spread", "1s"), 0, "\"requeued\":5,", NULL);
    expect(lapse("requeue", "q"), 0, "\"requeued\":0,", NULL);
    cr_assert_eq(redis_int(s, "ZCARD lapse:{q}:due"), 10);
    cr_assert_eq(audit(s, "lapse", "q", NULL), 0);
    server_stop(s);
}

Test(run, makes_jobs_due_now)
{
    struct server *s = tool_redis();

    make_dead(s, 1);
    schedule("a", "1h");
    struct proc *p = lapse("run", "q", "a", "1", "none");
    cr_assert_eq(count_of(p->out, "\"state\":\"waiting\""), 2);
    cr_assert_leq(member(p->out, "due_ms"), redis_now_ms(s));
    expect(p, 1, NULL, "q/none: no such job");
    expect(lapse("listen", "q", "--count", "2"), 0, "\"id\":\"1\"", NULL);
    no_jobs(s, "q");
    server_stop(s);
}

Test(selection, of_those_that_wait_is_killed_with_a_reason)
{
    struct server *s = tool_redis();
    char text[202] = "";

    schedule("a", "1h");
    schedule("b", "2h");
    schedule("c", "3h");
    expect(lapse("kill", "q", "--state", "waiting", "--limit", "1", "--reason", "first"), 0,
           "{\"queue\":\"q\",\"killed\":1,\"running\":0}", "");
    expect(lapse("get", "q", "a"), 0, "\"reason\":\"first\"", "");
    expect(lapse("kill", "q", "--state", "waiting", "--with-reason", "x"), 0, "\"killed\":0", "");
    expect(lapse("kill", "q", "b", "none", "--reason", "second"), 1, "\"reason\":\"second\"",
           "q/none: no such job");
    expect(lapse("kill", "q", "--state", "waiting", "--format", "text"), 0,
           "q: 1 killed, 0 running\n", "");
    expect(lapse("kill", "q", "--state", "dead"), 2, "", "--state is waiting");
    memset(text, 'x', 201);
    expect(lapse("kill", "q", "--state", "waiting", "--with-reason", text), 2, "",
           "--with-reason 'xxx");
    expect(lapse("kill", "q"), 2, "", "missing argument ID, or option --state, --tag or --batch");
    expect(lapse("kill", "q", "a", "--tag", "x"), 2, "", "use only one of them");
    expect(lapse("depth", "q"), 0, "\"waiting\":0,\"running\":0,\"dead\":3", "");
    server_stop(s);
}

/* The answers of its first calls come; the connection ends in a later one. */
Test(selection, that_breaks_off_says_how_far_it_came_and_a_repeat_does_the_rest)
{
    struct server *s = tool_redis();
    struct proxy *wire = proxy_start(s);

    make_dead(s, 50);
    long before = proxy_bytes(wire, PROXY_DOWN);
    expect(lapse("-u", wire->url, "requeue", "q"), 0, "\"requeued\":50", NULL);
    long one = proxy_bytes(wire, PROXY_DOWN) - before;
    redis_do(s, "FLUSHALL");

    make_dead(s, 450);
    proxy_cut_after(wire, PROXY_DOWN, one + 150);
    struct proc *p = lapse("-u", wire->url, "requeue", "q");
    cr_assert(strstr(p->err, "Repeat the command for the rest"), "%s", p->err);
    cr_assert(strstr(p->err, "00 jobs were requeued"), "%s", p->err);
    expect(p, 69, "", NULL);
    cr_assert_gt(redis_int(s, "ZCARD lapse:{q}:dead"), 0);
    expect(lapse("-u", wire->url, "requeue", "q"), 0, "\"requeued\":", NULL);
    cr_assert_eq(redis_int(s, "ZCARD lapse:{q}:due"), 450);
    proxy_stop(wire);
    server_stop(s);
}
