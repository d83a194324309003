/* SPDX-License-Identifier: MIT */
/* F55 and F56: many jobs are changed by one call, beside a listener that has work of its own. How
 * long a call takes says as much of the machine as of the call, so what the listener does without
 * it is measured before, and Redis's own time beside. */
#include "ask.h"
#include "fault.h"
#include "workload.h"
#include <hiredis/hiredis.h>

enum { HOUR = 3600000, ONE_IN = 10, FEW = 100, PER_S = 500 };
#define PILE "pile"
#define MANY_TAG "order-42"
#define AS_MANY_TAG "order-44"
#define FEW_TAG "order-43"

/* ---- the pile ---- */
static void count_answers(struct lapse *l, int err, const struct lapse_job *job, void *arg)
{
    (void)l;
    (void)job;
    cr_assert_eq(err, 0, "%s", lapse_strerror(err));
    --*(long *)arg;
}

/* Asks for each of so many ids, as fast as that is taken, and waits for the answers. */
static void of_each(struct flow *f, long n,
                    int (*ask)(struct lapse *l, const char *id, long i, long *n_open))
{
    long n_open = 0;

    for (long i = 0; i < n;) {
        char id[24];
        snprintf(id, sizeof id, "%ld", i);
        int err = ask(f->l, id, i, &n_open);
        if (err == LAPSE_EFULL) {
            flow_turn(f, test_now_ms() + FLOW_WAIT_MS);
            continue;
        }
        cr_assert_eq(err, 0);
        n_open++;
        i++;
    }
    flow_until(f, n_open == 0);
}

/* A job that waits. Of ten the first has a tag, and the second another; and a hundred of all. */
static long pile_n;
static int schedule_one(struct lapse *l, const char *id, long i, long *n_open)
{
    static const char *const tags[] = {MANY_TAG, AS_MANY_TAG, FEW_TAG};
    long place = i % ONE_IN;
    struct lapse_spec s = flow_job_spec(PILE, id, HOUR);

    if (place < 2 || i % (pile_n / FEW) == 2) {
        s.tags = &tags[place];
        s.n_tags = 1;
    }
    return lapse_schedule(l, &s, count_answers, n_open);
}

static int kill_one(struct lapse *l, const char *id, long i, long *n_open)
{
    (void)i;
    return lapse_kill(l, PILE, id, "no", count_answers, n_open);
}

static void finish(struct flow *f, const struct flow_counts *c)
{
    flow_until(f, c->calls == 1);
    cr_assert_eq(c->err, 0, "%s", lapse_strerror(c->err));
}

/* ---- how long its calls held Redis up ---- */
struct calls {
    long n;
    long long *us;
};

static int by_number(const void *a, const void *b)
{
    long long x = *(const long long *)a;
    long long y = *(const long long *)b;
    return (x > y) - (x < y);
}

static redisReply *redis_ask(struct flow *f, const char *command)
{
    redisReply *r = redisCommand(f->server->redis, command);

    cr_assert(r && r->type != REDIS_REPLY_ERROR, "%s", command);
    return r;
}

/* What the log of slow commands, in which are all, has of this script; sorted. */
static struct calls calls_of(struct flow *f, const char *script)
{
    char path[4096];
    size_t len;

    snprintf(path, sizeof path, "%s/lua/%s.lua", test_build(), script);
    char *text = test_read_file(path, &len);
    redisReply *sha = redisCommand(f->server->redis, "SCRIPT LOAD %b", text, len);
    redisReply *log = redis_ask(f, "SLOWLOG GET -1");
    struct calls c = {.us = calloc(log->elements + 1, sizeof *c.us)};

    for (size_t i = 0; i < log->elements; i++) {
        const redisReply *entry = log->element[i];
        const redisReply *argv = entry->element[3];
        if (argv->elements > 1 && strcmp(argv->element[1]->str, sha->str) == 0) {
            c.us[c.n++] = entry->element[2]->integer;
        }
    }
    qsort(c.us, (size_t)c.n, sizeof *c.us, by_number);

    freeReplyObject(log);
    freeReplyObject(sha);
    free(text);
    return c;
}

/* The CPU time of Redis's own thread. */
static double cpu_ms(struct flow *f)
{
    char *info = redis_str(f->server, "INFO cpu");
    const char *user = strstr(info, "used_cpu_user_main_thread:");
    const char *sys = strstr(info, "used_cpu_sys_main_thread:");

    cr_assert(user && sys);
    double ms = 1000 * (atof(strchr(user, ':') + 1) + atof(strchr(sys, ':') + 1));
    free(info);
    return ms;
}

/* ---- F55 ---- */
/* Cancels all of a selection; returns how many those were. */
static uint64_t cancel(struct flow *f, struct lapse_where where)
{
    struct flow_counts counts = {0};

    where.size = sizeof where;
    cr_assert_eq(lapse_cancel_all(f->l, PILE, &where, 0, flow_counted, &counts), 0);
    finish(f, &counts);
    return counts.n;
}

/* A listener at work, with nothing beside it. */
static struct verdict work_alone(struct flow *f, const struct work_opts *o)
{
    struct work *w = work_start(f->server, o);

    while (work_starts(w) < o->jobs) {
        work_wait(w, 20);
    }
    return work_end(w, 60000);
}

Test(f55, a_tag_of_many_is_cancelled_beside_a_listener_at_work, .timeout = 600)
{
    long n = fault_n(20000, 1000000);
    struct flow *f = flow_start(FLOW_FULL);
    struct work_opts o = work_opts();

    o.producers = o.listeners = 1;
    o.per_s = PER_S;
    o.jobs = fault_n(1000, 5000);
    struct verdict alone = work_alone(f, &o);

    pile_n = n;
    of_each(f, n, schedule_one);
    cr_assert_eq(cancel(f, (struct lapse_where){.tag = "nobody"}), 0); /* it brings the script */
    redis_do(f->server, "CONFIG SET slowlog-max-len 1000000 slowlog-log-slower-than 0");
    cr_assert_eq(cancel(f, (struct lapse_where){.tag = FEW_TAG}), FEW);
    struct calls few = calls_of(f, "cancel_all");
    cr_assert_eq(few.n, 1, "%ld calls", few.n);
    double own_ms = cpu_ms(f);
    cr_assert_eq(cancel(f, (struct lapse_where){.tag = AS_MANY_TAG}), (uint64_t)n / ONE_IN);
    own_ms = cpu_ms(f) - own_ms;

    struct work *w = work_start(f->server, &o);
    redis_do(f->server, "SLOWLOG RESET");
    cr_assert_eq(cancel(f, (struct lapse_where){.tag = MANY_TAG}), (uint64_t)n / ONE_IN);
    redis_do(f->server, "CONFIG SET slowlog-log-slower-than -1");
    cr_assert_eq(flow_count(f, PILE, "due"), n - 2 * n / ONE_IN - FEW);
    while (work_starts(w) < o.jobs) {
        work_wait(w, 20);
    }
    struct calls c = calls_of(f, "cancel_all");
    cr_assert_eq(c.n, n / ONE_IN / 100, "%ld calls", c.n);

    /* the history of the work knows nothing of the pile: nothing is left of it */
    cancel(f, (struct lapse_where){.state = LAPSE_WAITING});
    flow_close(f, f->l, FLOW_WAIT_MS);
    redis_do(f->server, "DEL lapse:{" PILE "}:past");
    struct verdict v = work_end(w, 60000);
    fault_row("F55", "100,000 of 1,000,000 jobs are cancelled by their tag, beside a listener",
              "each call <= 1.5 ms of Redis; the other listener's p99 <= 5 ms; 100 in one call",
              "%ld of %ld jobs in %ld calls: p50 %.2f, p99 %.2f, max %.2f ms, %.2f ms of its CPU; "
              "100 in one of %.2f ms; p99 of the other %.1f ms, and %.1f ms before",
              n / ONE_IN, n, c.n, (double)c.us[c.n / 2] / 1000, (double)c.us[c.n * 99 / 100] / 1000,
              (double)c.us[c.n - 1] / 1000, own_ms / (double)c.n, (double)few.us[0] / 1000,
              v.late_p99_ms, alone.late_p99_ms);
    free(few.us);
    free(c.us);
    flow_end(f, PILE, WORK_QUEUE);
}

/* ---- F56 ---- */
Test(f56, dead_jobs_are_requeued_evenly_over_a_time, .timeout = 600)
{
    enum { N = 10000, SECONDS = 10 };
    struct flow *f = flow_start(FLOW_FULL);
    const struct lapse_where dead = {.size = sizeof dead, .state = LAPSE_DEAD};
    struct flow_counts counts = {0};
    long least = N;
    long most = 0;

    pile_n = N;
    of_each(f, N, schedule_one);
    of_each(f, N, kill_one);

    struct lapse_due due = lapse_at(redis_now_ms(f->server) + HOUR);
    cr_assert_eq(
        lapse_reschedule_all(f->l, PILE, &dead, due, SECONDS * 1000, 0, flow_counted, &counts), 0);
    finish(f, &counts);
    cr_assert_eq(counts.n, N);

    for (int s = 0; s < SECONDS; s++) {
        long long from_ms = due.at_ms + s * 1000;
        long in_it = (long)redis_int(f->server, "ZCOUNT lapse:{" PILE "}:due %lld (%lld", from_ms,
                                     from_ms + 1000);
        least = in_it < least ? in_it : least;
        most = in_it > most ? in_it : most;
    }
    cr_assert(least >= 850 && most <= 1150, "%ld to %ld in a second", least, most);
    fault_row("F56", "10,000 dead jobs are requeued over 10 s",
              "from 850 to 1,150 of them are due in each second", "%ld to %ld in each", least,
              most);
    flow_end(f, PILE);
}
